"""`autograd.gradcheck`: gradients beside quotients of differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft.autograd.engine import grad
from weft.autograd.modes import enable_grad, no_grad
from weft.core.errors import ArgumentError, AutogradError
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_torch

Tensors = tuple[Tensor, ...]


def _followed(inputs: Any) -> list[tuple[int, Tensor]]:
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    found = [(i, t) for i, t in enumerate(given) if isinstance(t, Tensor) and t.requires_grad]
    if not found or any(t.dtype.is_complex or t.is_global for _, t in found):
        raise ArgumentError("gradcheck(): takes local tensors of real numbers, of which at least one wants a gradient")
    return found


def _results(func: Callable[..., Any], given: Sequence[Any]) -> Tensors:
    found = func(*given)
    several = (found,) if isinstance(found, Tensor) else tuple(found)
    return tuple(y for y in several if isinstance(y, Tensor) and y.dtype.differentiable)


def _differences(func: Callable[..., Any], given: list[Any], place: int, eps: float) -> list[torch.Tensor]:
    """For each result, its change per change of each element of an input: [elements of the input, of the result]."""
    base, rows = given[place].detach().to_torch(), []
    for i in range(base.numel()):
        ends = []
        for by in (eps, -eps):
            moved = base.clone().contiguous()
            moved.view(-1)[i] += by
            with no_grad():
                at = [*given[:place], of_torch(moved), *given[place + 1 :]]
                ends.append([y.to_torch().reshape(-1).double() for y in _results(func, at)])
        rows.append([(a - b) / (2 * eps) for a, b in zip(*ends, strict=True)])
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, **options: Any,
) -> bool:  # fmt: skip
    """Whether the gradients of a function are those that differences suggest. Give it float64: float32 is too coarse.

    Torch's further options are taken, and change nothing.

    >>> flow.autograd.gradcheck(flow.sin, (flow.ones(2, dtype=flow.float64, requires_grad=True),))
    True
    """
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for place, x in _followed(inputs):
        with enable_grad():
            results = _results(func, given)
        for k, (y, expected) in enumerate(zip(results, _differences(func, given, place, eps), strict=True)):
            found = []
            for j in range(y.numel() if y.requires_grad else 0):
                flat = OPS["reshape"](y, (-1,))
                (g,) = grad(OPS["select"](flat, 0, j), x, retain_graph=True, allow_unused=True, materialize_grads=True)
                assert g is not None
                found.append(g.to_torch().reshape(-1).double())
            got = torch.stack(found, 1) if found else torch.zeros_like(expected)
            if not torch.allclose(got, expected, rtol, atol, equal_nan=True):
                if not raise_exception:
                    return False
                raise AutogradError(
                    f"gradcheck(): of result {k} by input {place}, the gradients are\n{got}\nand the differences\n"
                    f"{expected}\n(a row per element of the input)"
                )
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, **options: Any,
) -> bool:  # fmt: skip
    """Likewise for the gradients' own gradients."""
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    followed = _followed(inputs)
    with enable_grad():
        results = _results(func, given)
    if grad_outputs is None:
        drawn = torch.Generator().manual_seed(0)
        vectors = [of_torch(torch.rand(tuple(y.shape), generator=drawn, dtype=y.dtype.torch)) for y in results]
    else:
        vectors = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)

    def gradients(*both: Any) -> Any:
        with enable_grad():
            now = list(both[: len(given)])
            for place, _ in followed:
                if not now[place].requires_grad:
                    now[place].requires_grad_()
            results = _results(func, now)
            pairs = [(y, v) for y, v in zip(results, both[len(given) :], strict=True) if y.requires_grad]
            return grad(
                [y for y, _ in pairs], [now[place] for place, _ in followed], [v for _, v in pairs],
                create_graph=True, allow_unused=True, materialize_grads=True,
            )  # fmt: skip

    starts = [v.detach().requires_grad_() for v in vectors]
    return gradcheck(gradients, (*given, *starts), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
