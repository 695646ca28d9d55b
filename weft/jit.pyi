# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.jit`: OneFlow's names, which compile nothing. `nn.Graph` compiles."""

from typing import _SpecialForm

from weft.system.jit import (
    annotate as annotate, compile as compile, unused as export, ignore as ignore, unused as interface,
    is_scripting as is_scripting, is_tracing as is_tracing, script as script, unused as script_if_tracing,
    unused as script_method, unused as unused
)

Final: _SpecialForm
