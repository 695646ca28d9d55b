"""Gradients: wraps whichever interpreter runs below, records the tape, and goes back over it."""

from weft.autograd import functional, graph
from weft.autograd import modes as grad_mode
from weft.autograd.call import call, detached, fresh, whole
from weft.autograd.check import gradcheck, gradgradcheck
from weft.autograd.engine import backward, grad
from weft.autograd.entry import make_entry
from weft.autograd.function import Function
from weft.autograd.inplace import assign, exchange, in_place
from weft.autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)  # fmt: skip
from weft.autograd.recompute import checkpoint
from weft.autograd.variable import Variable
from weft.core.dispatch import hooks

hooks.road = make_entry
hooks.call = call
hooks.whole = whole
hooks.fresh = fresh
hooks.detached = detached
hooks.exchange = exchange
hooks.backward = backward

__all__ = [
    "Function", "Variable", "assign", "backward", "call", "checkpoint", "detect_anomaly", "enable_grad", "functional",
    "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "in_place", "inference_mode", "is_grad_enabled",
    "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
