"""The cross entropy of probabilities of yes or no, element by element."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.errors import OptionError
from weft.ops.declaration import op
from weft.ops.form import alike
from weft.ops.kernels import aten
from weft.ops.neural.activations import clamp, sigmoid
from weft.ops.pointwise.arithmetic import div, mul, sub
from weft.ops.pointwise.elementary import log


@op("..., ... -> ...")
def binary_cross_entropy_each(x: Tensor, target: Tensor) -> Tensor:
    """-target * log(x) - (1 - target) * log(1 - x), with logarithms of -100 at least; both lie between 0 and 1.

    >>> flow._C.binary_cross_entropy_each(flow.tensor([0.0, 1.0]), flow.tensor([1.0, 0.0])).tolist()
    [100.0, 100.0]
    """
    if x.device.type == "cuda":  # there the kernel would end the process
        _check(x, target)
    try:
        return aten.binary_cross_entropy(x, target, None, 0)
    except RuntimeError:
        _check(x, target)
        raise


def _check(x: Tensor, target: Tensor) -> None:
    for name, t in (("input", x), ("target", target)):
        if t.numel() and not 0 <= (ends := t.aminmax()).min <= ends.max <= 1:
            raise OptionError(
                f"binary_cross_entropy: all elements of {name} should be between 0 and 1; they lie from "
                f"{float(ends.min):g} to {float(ends.max):g}. Of scores, take binary_cross_entropy_with_logits"
            )


@binary_cross_entropy_each.grad
def _(dy, x, target, needs):
    if not here.grad and not needs[1]:
        return binary_cross_entropy_each_grad(dy, x, target), None
    rest = sub(1.0, x)
    dx = div(mul(dy, sub(x, target)), clamp(mul(rest, x), 1e-12)) if needs[0] else None
    return dx, mul(dy, sub(log(rest), log(x))) if needs[1] else None


def _form(*operands: Any) -> Any:
    x = operands[-2]
    return x if alike(*operands) and all(o.shape == x.shape for o in operands) else None


binary_cross_entropy_each.form(_form)
binary_cross_entropy_each.samples(lambda rand: [(rand(4, 6).sigmoid(), rand(4, 6).sigmoid())])


@op("..., ..., ... -> ...", linear="dy", returns="dx", promotes=True)
def binary_cross_entropy_each_grad(dy: Tensor, x: Tensor, target: Tensor) -> Tensor:
    """The gradient of binary_cross_entropy_each."""
    return aten.binary_cross_entropy_backward(dy, x, target, None, 0)


binary_cross_entropy_each_grad.form(_form)
binary_cross_entropy_each_grad.out(
    lambda dx, dy, x, target: aten.binary_cross_entropy_backward.grad_input(dy, x, target, None, 0, grad_input=dx)
)
binary_cross_entropy_each_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6).sigmoid(), rand(4, 6).sigmoid())])


@op("..., ... -> ...", promotes=True)
def binary_cross_entropy_of_scores(x: Tensor, target: Tensor) -> Tensor:
    """binary_cross_entropy_each(sigmoid(x), target), numerically stable.

    >>> flow._C.binary_cross_entropy_of_scores(flow.tensor([-200.0]), flow.tensor([1.0])).tolist()
    [200.0]
    """
    if x.dtype is not target.dtype:  # torch's result is of the target's
        common = torch.promote_types(x.dtype, target.dtype)
        x, target = x.to(common), target.to(common)
    return aten.binary_cross_entropy_with_logits(x, target, None, None, 0)


@binary_cross_entropy_of_scores.grad
def _(dy, x, target, needs):
    dx = mul(dy, sub(sigmoid(x), target)) if needs[0] else None
    return dx, mul(dy, mul(x, -1.0)) if needs[1] else None


binary_cross_entropy_of_scores.form(_form)
binary_cross_entropy_of_scores.samples(lambda rand: [(rand(4, 6), rand(4, 6).sigmoid())])
