# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.jit`: OneFlow's names, which compile nothing. `nn.Graph` compiles."""

from typing import _SpecialForm

__all__ = [
    "Final", "annotate", "compile", "export", "ignore", "interface", "is_scripting", "is_tracing", "script",
    "script_if_tracing", "script_method", "unused"
]

Final: _SpecialForm
from weft.system.jit import annotate as annotate
from weft.system.jit import compile as compile
from weft.system.jit import ignore as ignore
from weft.system.jit import is_scripting as is_scripting
from weft.system.jit import is_tracing as is_tracing
from weft.system.jit import script as script
from weft.system.jit import unused as export
from weft.system.jit import unused as interface
from weft.system.jit import unused as script_if_tracing
from weft.system.jit import unused as script_method
from weft.system.jit import unused as unused

