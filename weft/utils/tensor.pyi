# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.tensor: from_torch, to_torch"""

from weft.functional.create.creation import from_torch as from_torch
from weft.interop.oneflow import to_torch as to_torch
