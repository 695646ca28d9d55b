"""Tensor's operators, conversions, in-place methods and other methods that aren't ops."""
