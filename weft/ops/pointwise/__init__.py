"""Ops on each element alone."""
