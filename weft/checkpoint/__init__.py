"""Saving and loading of local and global tensors, perhaps to another placement, in files that hold data and no code."""

from weft.checkpoint.checkpoint import load, save

__all__ = ["load", "save"]
