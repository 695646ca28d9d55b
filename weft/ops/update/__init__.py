"""Optimizers' steps, in place."""
