"""Optimizer updates, in place."""
