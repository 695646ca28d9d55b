# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.autograd.functional."""

from typing import Any

def hessian(
    func: Any, inputs: Any, create_graph: Any = False, strict: Any = False, vectorize: Any = False,
    outer_jacobian_strategy: Any = 'reverse-mode'
) -> Any: ...
def hvp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> Any: ...
def jacobian(
    func: Any, inputs: Any, create_graph: Any = False, strict: Any = False, vectorize: Any = False,
    strategy: Any = 'reverse-mode'
) -> Any: ...
def jvp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> Any: ...
def vhp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> Any: ...
def vjp(func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False) -> Any: ...
