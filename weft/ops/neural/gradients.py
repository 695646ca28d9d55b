"""Gradients of activations by torch's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from weft.core.dispatch import here
from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import REQUIRED, Op, op, positional
from weft.ops.kernels import aten


def gradient_by_kernel(
    declared: Op, name: str, composed: Callable[..., Any] | None = None,
    arranged: Callable[..., tuple[Any, ...]] = lambda *given: given, out: str = "grad_input",
) -> Op:  # fmt: skip
    """Declare torch's kernel of this name for the gradient of a unary op. It takes dy, x and the op's options as they
    are `arranged`, and may write into `out`. What is differentiated again is `composed` of public ops; without that,
    the op is linear piece by piece."""
    packet = getattr(aten, name)
    takes = [(p.name, p.type, REQUIRED) for p in declared.params[1:]]

    def body(*given: Any) -> Tensor:
        return packet(*arranged(*given))

    def gradient(*given: Any) -> Any:
        return made(*given) if composed is None or not here.grad else composed(*given)

    def second(ddx: Any, x: Any, *given: Any) -> Any:
        *options, needs = given  # zeros rather than None: optimizers check whether there is a gradient
        return made(ddx, x, *options) if needs[0] else None, zeros_like(x) if needs[1] else None

    def samples(rand: Any) -> Any:
        assert declared.sample_function is not None
        for row in declared.sample_function(rand):
            x, *given = declared.bind(row if isinstance(row, tuple) else (row,), {})
            yield rand(*x.shape), x, *given

    body.__name__, body.__doc__ = f"{declared.name}_grad", f"The gradient of {declared.name}."
    functions: Any = (body, "dy", ()), (gradient, "dy", ()), (second, "ddx", [("needs", "Any", REQUIRED)])
    for f, first, last in functions:
        f.__signature__ = positional((first, "Tensor", REQUIRED), ("x", "Tensor", REQUIRED), *takes, *last)
    made = op("..., ... -> ...", linear="dy", returns="dx", promotes=True)(body)
    made.samples(samples)
    declared.grad(gradient)
    if composed is None:
        made.grad(second)
    if out:
        into = getattr(packet, out)
        made.out(lambda dx, *given: into(*arranged(*given), **{out: dx}))
        made.prepared(lambda dx, *given: (into, arranged(*given), {out: dx}))
    return made
