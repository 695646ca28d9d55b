# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.jit`: the names of OneFlow's, which compile nothing. What compiles is `nn.Graph`."""

from typing import TypeVar

T: TypeVar
from weft.functional.jit import compile as compile
from weft.functional.jit import ignore as ignore
from weft.functional.jit import script as script

