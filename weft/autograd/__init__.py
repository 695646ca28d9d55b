"""Autograd: wraps the interpreter below, records the tape, and runs backward."""

import functools
from typing import TYPE_CHECKING, Any

from weft.autograd import graph
from weft.autograd import modes as grad_mode
from weft.autograd.call import call, whole
from weft.autograd.engine import backward, grad
from weft.autograd.entry import make_entry
from weft.autograd.freshness import detached, fresh, requires_grad_by_base, uncounted
from weft.autograd.function import Function
from weft.autograd.inplace import exchange
from weft.autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)
from weft.autograd.numeric_check import gradcheck, gradgradcheck
from weft.autograd.overwrite import overwriting
from weft.autograd.plain import taken
from weft.autograd.variable import Variable
from weft.core.derived import GIVEN, Derived, lazily
from weft.core.dispatch import hooks
from weft.core.errors import ArgumentError, AutogradError
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.autograd import functional

hooks.road = make_entry
hooks.overwriting = overwriting
hooks.call = call
hooks.whole = whole
hooks.fresh = fresh
hooks.requires_grad_by_base = requires_grad_by_base
hooks.detached = detached
hooks.uncounted = uncounted
hooks.exchange = exchange
hooks.backward = backward
hooks.taken = taken
ops.__dict__.update({name: op.entry for name, op in OPS.items()})  # so that `ops.mul` is a plain attribute


def _row_by_row(theirs: Any) -> Any:
    """Rows one by one, whatever `vectorize` and the strategies are: torch's other ways are C++."""

    def find(
        func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
        *_: str, **__: str,
    ) -> Any:  # fmt: skip
        return theirs(func, inputs, create_graph, strict)

    return functools.wraps(theirs)(find)


GIVEN["torch.is_tensor"] = lambda x: isinstance(x, Tensor)
Derived(
    "weft.autograd.functional", "torch.autograd.functional", {"": {"jacobian": _row_by_row, "hessian": _row_by_row}},
    errors={"RuntimeError": AutogradError, "TypeError": ArgumentError},
)  # fmt: skip
__getattr__ = lazily(__name__, {"functional": ()})

__all__ = [
    "Function", "Variable", "backward", "detect_anomaly", "enable_grad", "functional",
    "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
    "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
