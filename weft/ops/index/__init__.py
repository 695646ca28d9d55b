"""Ops that select elements by position."""
