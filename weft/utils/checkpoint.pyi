# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`checkpoint`: what lies inside a function is not kept for backward, but computed once more when backward gets there.

What `flow.utils.checkpoint` names. It costs a second forward, and saves the memory between its inputs and outputs.
"""


__all__ = [
    "checkpoint", "checkpoint_sequential"
]

from weft.autograd.recompute import checkpoint as checkpoint
from weft.autograd.recompute import checkpoint_sequential as checkpoint_sequential

