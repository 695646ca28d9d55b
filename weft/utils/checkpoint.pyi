# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Activation checkpointing: a function's activations are recomputed in backward instead of kept.

`flow.utils.checkpoint`. It costs a second forward, and saves the memory between the function's inputs and outputs.
"""

from weft.autograd.recompute import checkpoint as checkpoint, checkpoint_sequential as checkpoint_sequential
