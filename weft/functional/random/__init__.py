"""Generators, random tensors, and random draws in place."""
