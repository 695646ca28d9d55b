"""Declarations of element-wise ops from kernels: `unary` and `binary`, which fill in what all such ops share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from torch import Tensor

from weft.ops.declaration import REQUIRED, Op, Scalar, op, positional

NEURAL: Final = "flow.nn.functional"


def example(name: str, shows: str, place: str = "flow") -> str:
    """A docstring's example from "3.0, 2.0 -> 1.0": a one-element tensor, and numbers."""
    if not shows:
        return ""
    given, _, gives = shows.partition(" -> ")
    first, *rest = given.split(", ")
    return f"\n\n>>> {place}.{name}({', '.join([f'flow.tensor([{first}])', *rest])}).tolist()\n[{gives}]"


def unary(
    name: str, kernel: Callable[..., Any], doc: str, shows: str = "", *, inplace: Callable[..., Any] | None = None,
    linear: bool = False, out: bool = True, positive: bool = False, place: str = "flow", steady: bool = False,
    memory_order: str = "", **options: Any,
) -> Op:  # fmt: skip
    """Declare y = kernel(x), element-wise, or kernel(x, *options); these are given with their defaults. `positive`: its
    samples are positive. `shows`: "x -> y". `place`: where it is public."""

    def plain(x: Tensor) -> Tensor:
        return kernel(x)

    def with_options(x: Tensor, *given: Any) -> Tensor:
        return kernel(x, *given)

    body: Any = with_options if options else plain
    takes = [(n, type(value).__name__, value) for n, value in options.items()]
    body.__signature__ = positional(("x", "Tensor", REQUIRED), *takes)
    body.__name__, body.__doc__ = name, doc + example(name, shows, place)
    passes = "x" if linear else ""
    declared = op("... -> ...", linear=passes, steady="x" if steady else "", memory_order=memory_order)(body)
    if out:
        declared.out(lambda y, x, *given: kernel(x, *given, out=y))
        declared.prepared(lambda y, x, *given: (kernel, (x, *given), {"out": y}))
    if inplace is not None:
        declared.inplace(inplace)
    declared.samples(lambda rand: [(rand(4, 6).abs() + 0.5 if positive else rand(4, 6),)])
    return declared


def of_two(second: str = "other", first: str = "Tensor | Scalar") -> inspect.Signature:
    """The signature of an op with two operands, of which the second may be a number."""
    return positional(("input", first, REQUIRED), (second, "Tensor | Scalar", REQUIRED))


def binary(
    name: str, kernel: Callable[..., Any], doc: str, shows: str = "", *, linear: str = "",
    inplace: Callable[..., Any] | None = None, positive: bool = False, scalar: bool = True, second: str = "other",
    memory_order: str | Callable[..., str] = "",
) -> Op:  # fmt: skip
    """Declare y = kernel(a, b) with broadcasting and type promotion; b, or a, may be a number. `shows`: "a, b -> y".

    The parameters are named as PyTorch names them: `input`, and `second`.
    """

    def body(a: Tensor | Scalar, b: Tensor | Scalar) -> Tensor:
        return kernel(a, b)

    body.__name__, body.__doc__ = name, doc + example(name, shows)
    body.__signature__ = of_two(second)
    declared = op("..., ... -> ...", linear=linear, memory_order=memory_order)(body)
    declared.out(lambda y, a, b: kernel(a, b, out=y))
    declared.prepared(lambda y, a, b: (kernel, (a, b), {"out": y}) if isinstance(a, Tensor) else None)
    if inplace is not None:
        declared.inplace(lambda a, b: inplace(a, b))

    def samples(rand: Any) -> Any:
        def make(*shape: int) -> Any:
            return rand(*shape).abs() + 0.5 if positive else rand(*shape)

        yield make(4, 6), make(4, 6)
        yield make(4, 6), make(6)
        yield make(4, 1), make(4, 6)
        if scalar:
            yield make(4, 6), 2.0
            yield 1.5, make(4, 6)

    declared.samples(samples)
    return declared
