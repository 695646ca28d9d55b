"""The derivative where operands are equal: what the installed torch says. Torch 2.14 changed that of `clamp`, and 2.15
that of `fmax` and `fmin`."""

from __future__ import annotations

import functools

import torch
from torch.utils._python_dispatch import _disable_current_modes


@functools.cache
def part_of_first(name: str, number: bool = False) -> float:
    """The part of the gradient that the first operand gets; with `number`, the other one is a number."""
    with _disable_current_modes(), torch.inference_mode(False), torch.enable_grad():
        x = torch.zeros((), device="cpu", requires_grad=True)
        (dx,) = torch.autograd.grad(getattr(torch, name)(x, 0 if number else torch.zeros((), device="cpu")), x)
        return dx.item()
