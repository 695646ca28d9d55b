"""Generators, draws, and draws in place."""
