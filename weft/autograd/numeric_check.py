"""`autograd.gradcheck`: gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft.autograd.engine import grad
from weft.autograd.modes import enable_grad, no_grad
from weft.core.errors import ArgumentError, AutogradError, OptionError
from weft.tensor.tensor import Tensor, of_torch

Tensors = tuple[Tensor, ...]
# Torch's options that add nothing here: every gradient is checked in full and dense, and jvps use the same formulas as
# gradients, so forward mode is checked with them.
IMPLIED = ("fast_mode", "masked", "check_undefined_grad", "check_grad_dtypes", "check_sparse_nnz", "check_forward_ad",
           "check_batched_forward_grad", "check_fwd_over_rev")  # fmt: skip


def _followed(inputs: Any) -> list[tuple[int, Tensor]]:
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    found = [(i, t) for i, t in enumerate(given) if isinstance(t, Tensor) and t.requires_grad]
    if not found or any(t.dtype.is_complex or t.is_global for _, t in found):
        raise ArgumentError("gradcheck(): takes local tensors of real numbers, one of which requires a gradient")
    return found


def _options(name: str, nondet_tol: float = 0.0, check_batched_grad: bool = False, check_backward_ad: bool = True,
             check_rev_over_rev: bool = True, **others: Any) -> tuple[float, bool]:  # fmt: skip
    """Torch's further options: the tolerance of nondeterminism, and whether to check batched gradients."""
    if unknown := sorted(set(others) - set(IMPLIED)):
        raise ArgumentError(f"{name}(): unknown options {', '.join(unknown)}")
    if not (check_backward_ad and check_rev_over_rev):
        raise OptionError(f"{name}(): only backward gradients are checked; leave them on")
    return nondet_tol, check_batched_grad


def _results(func: Callable[..., Any], given: Sequence[Any]) -> Tensors:
    found = func(*given)
    several = (found,) if isinstance(found, Tensor) else tuple(found)
    return tuple(y for y in several if isinstance(y, Tensor) and y.dtype.differentiable)


def _differences(func: Callable[..., Any], given: list[Any], place: int, eps: float) -> list[torch.Tensor]:
    """For each result, the finite differences by each element of an input: [elements of the input, of the result]."""
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


def _gradients(y: Tensor, x: Tensor, batched: bool = False) -> torch.Tensor:
    """The derivatives of each element of a result: [elements of the input, of the result]."""
    each = torch.eye(y.numel(), dtype=y.dtype.torch, device=y.device.torch).reshape(y.numel(), *y.shape)
    vectors = [of_torch(each)] if batched and len(each) else [of_torch(row) for row in each]
    found = []
    for v in vectors:
        (g,) = grad(y, x, v, retain_graph=True, allow_unused=True, materialize_grads=True, is_grads_batched=batched)
        assert g is not None
        found.append(g.to_torch().reshape(-1 if batched else 1, x.numel()).double())
    return torch.cat(found).T if found else torch.zeros(x.numel(), 0, dtype=torch.float64)


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, **options: Any,
) -> bool:  # fmt: skip
    """Whether the gradients of a function agree with finite differences. Use float64: float32 is too coarse.

    Gradients must be repeatable within `nondet_tol`, and with `check_batched_grad` agree with those of
    `grad(is_grads_batched=True)`. Torch's other options are accepted and add nothing.

    >>> flow.autograd.gradcheck(flow.sin, (flow.ones(2, dtype=flow.float64, requires_grad=True),))
    True
    """
    tolerance, batched = _options("gradcheck", **options)
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for place, x in _followed(inputs):
        with enable_grad():
            results = _results(func, given)
        for k, (y, expected) in enumerate(zip(results, _differences(func, given, place, eps), strict=True)):
            got = _gradients(y, x) if y.requires_grad else torch.zeros_like(expected)
            wrong = ""
            if not torch.allclose(got, expected, rtol, atol, equal_nan=True):
                wrong = f"the gradients are\n{got}\nand the finite differences\n{expected}"
            elif y.requires_grad and not torch.allclose(again := _gradients(y, x), got, 0, tolerance, equal_nan=True):
                wrong = f"the gradients are\n{got}\nand, computed again,\n{again}"
            elif (
                y.requires_grad
                and batched
                and not torch.allclose(again := _gradients(y, x, batched=True), got, rtol, atol, equal_nan=True)
            ):
                wrong = f"the gradients are\n{got}\nand, computed in a batch,\n{again}"
            if wrong and raise_exception:
                raise AutogradError(
                    f"gradcheck(): of result {k} by input {place}, {wrong}\n(a row per element of the input)"
                )
            if wrong:
                return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, **options: Any,
) -> bool:  # fmt: skip
    """Likewise for second derivatives."""
    _options("gradgradcheck", **options)
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    followed = _followed(inputs)
    with enable_grad():
        results = _results(func, given)
    if grad_outputs is None:
        drawn = torch.Generator().manual_seed(0)
        every = 2 if gen_non_contig_grad_outputs else 1
        likes = [torch.rand((*y.shape, every), generator=drawn, dtype=y.dtype.torch)[..., 0] for y in results]
        vectors = [of_torch(v.to(y.device.torch)) for v, y in zip(likes, results, strict=True)]
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
    return gradcheck(
        gradients, (*given, *starts), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, **options
    )
