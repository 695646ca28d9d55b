"""Doors to other libraries: tensors, modules and state from torch and numpy, and torch's names for Weft's."""
