"""Saving and loading of local and global tensors, in files that hold data and no code. Tensors leave for the disk
here and come back, perhaps to another placement.
"""

from weft.checkpoint.checkpoint import load, save

__all__ = ["load", "save"]
