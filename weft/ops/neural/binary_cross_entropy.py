"""The cross entropy of probabilities of yes or no, element by element."""

from __future__ import annotations

from torch import Tensor

from weft.core.errors import OptionError
from weft.ops.declaration import op
from weft.ops.form import alike
from weft.ops.kernels import aten
from weft.ops.neural.activations import clamp
from weft.ops.pointwise.arithmetic import div, mul, sub
from weft.ops.pointwise.elementary import log


@op("..., ... -> ...")
def binary_cross_entropy_each(x: Tensor, target: Tensor) -> Tensor:
    """-target * log(x) - (1 - target) * log(1 - x), with logarithms of -100 at least; both lie between 0 and 1.

    >>> flow._C.binary_cross_entropy_each(flow.tensor([0.0, 1.0]), flow.tensor([1.0, 0.0])).tolist()
    [100.0, 100.0]
    """
    for name, t in (("input", x), ("target", target)):
        if t.device.type != "meta" and t.numel() and not 0 <= (ends := t.aminmax()).min <= ends.max <= 1:
            raise OptionError(
                f"binary_cross_entropy: all elements of {name} should be between 0 and 1; they lie from "
                f"{float(ends.min):g} to {float(ends.max):g}. Of scores, take binary_cross_entropy_with_logits"
            )
    return aten.binary_cross_entropy(x, target, None, 0)


@binary_cross_entropy_each.grad
def _(dy, x, target, needs):
    rest = sub(1.0, x)
    dx = div(mul(dy, sub(x, target)), clamp(mul(rest, x), 1e-12)) if needs[0] else None
    return dx, mul(dy, sub(log(rest), log(x))) if needs[1] else None


binary_cross_entropy_each.form(lambda x, target: x if alike(x, target) and x.shape == target.shape else None)
binary_cross_entropy_each.samples(lambda rand: [(rand(4, 6).sigmoid(), rand(4, 6).sigmoid())])
