"""`backward` and `grad`: argument checks, then a sweep over the tape."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from torch.autograd.graph import GradientEdge

from weft.autograd.freshness import fresh
from weft.autograd.graph import passing
from weft.autograd.node import AccumulateGrad, Slot
from weft.autograd.plain import OTHERS, plain
from weft.autograd.sweep import Sweep
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, AutogradError
from weft.ops import ops
from weft.tensor.tensor import Tensor, rewrap


def backward(
    tensors: Sequence[Tensor] | Tensor, grad_tensors: Sequence[Tensor | None] | Tensor | None = None,
    retain_graph: bool | None = None, create_graph: bool = False, inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:  # fmt: skip
    """Add the gradients of `tensors` to `.grad` of every leaf, or of `inputs` only."""
    outputs, gradients = _roots((tensors,) if isinstance(tensors, (Tensor, GradientEdge)) else tensors, grad_tensors)
    if here.trace is not None and not create_graph:
        here.trace.loss(outputs)
    wanted = None if inputs is None else _tensors(inputs, "backward(inputs=...)")
    if wanted is not None and not wanted:
        raise AutogradError(
            "`inputs` argument to `backward()` cannot be empty: name tensors, or leave it out to reach every leaf"
        )
    for t in wanted or ():
        t.retain_grad()
    _run(outputs, gradients, retain_graph, create_graph, wanted, accumulate=True)


def grad(
    outputs: Sequence[Tensor] | Tensor, inputs: Sequence[Tensor] | Tensor,
    grad_outputs: Sequence[Tensor | None] | Tensor | None = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`; no `.grad` is changed.

    For an input that the outputs don't depend on: None if `allow_unused`, zeros if `materialize_grads`. If
    `is_grads_batched`, the `grad_outputs` have an extra first dimension, and so have the results.
    """
    if is_grads_batched:
        options = (create_graph, only_inputs, allow_unused, False, materialize_grads)
        return _each_of_a_batch(outputs, inputs, grad_outputs, retain_graph, options)
    if not only_inputs:
        raise ArgumentError("grad(): computes gradients of the inputs only; use backward() for those of leaves")
    outs, given = _roots(_several(outputs), grad_outputs)
    ins = _tensors(inputs, "the inputs of grad()")
    for t in ins:
        if not fresh(t)._requires_grad:
            raise AutogradError(
                "One of the differentiated Tensors does not require grad; call x.requires_grad_() first"
            )
    found = _run(outs, given, retain_graph, create_graph, ins, accumulate=False)
    result = tuple(found.get(id(t)) for t in ins)
    if materialize_grads:
        return tuple(ops.zeros_like(t) if g is None else g for t, g in zip(ins, result, strict=True))
    if not allow_unused and any(g is None for g in result):
        missing = [i for i, g in enumerate(result) if g is None]
        raise AutogradError(
            f"The differentiated Tensor at index {missing[0]} appears to not have been used in the graph: the outputs "
            f"don't depend on inputs {missing}; pass allow_unused=True to get None for those"
        )
    return result


def _each_of_a_batch(outs: Any, ins: Any, grad_outputs: Any, retain: bool | None, options: Any) -> Any:
    """`grad` for each slice of the output gradients along the first dimension."""
    given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs or ())
    sizes = {g.shape[0] for g in given if g is not None}
    if len(sizes) != 1:
        raise ArgumentError(f"grad(is_grads_batched=True): grad_outputs must have one first size; got {sorted(sizes)}")
    n, found = sizes.pop(), []
    for i in range(n):
        one = [None if g is None else ops.select(g, 0, i) for g in given]
        found.append(grad(outs, ins, one, True if i < n - 1 else retain, *options))
    cat, wider = ops.cat, ops.unsqueeze
    return tuple(None if k[0] is None else cat([wider(g, 0) for g in k], 0) for k in zip(*found, strict=True))


def _several(value: Any) -> list[Any]:
    one = isinstance(value, (Tensor, GradientEdge)) or not isinstance(value, Iterable)
    return [value] if one else list(value)


def _tensors(value: Any, what: str) -> list[Tensor]:
    found = [_standing(t, Tensor) if isinstance(t, GradientEdge) else t for t in _several(value)]
    for t in found:
        if not isinstance(t, Tensor):
            raise ArgumentError(f"{what} must be a tensor or several; got {type(t).__name__}: {t!r}")
    return found


def _standing(at: GradientEdge, make: Callable[[], Tensor]) -> Tensor:
    """The leaf, or a tensor that stands for the result, to which a program's `GradientEdge` belongs."""
    node: Any = at.node
    if isinstance(node, AccumulateGrad):
        return node.variable
    t = make()
    t.node, t._requires_grad = Slot(node, at.output_nr) if at.output_nr else node, True
    return t


def _roots(outputs: Iterable[Any], given: Any) -> tuple[list[Any], list[Tensor | None]]:
    """The outputs as tensors, and one gradient for each, a tensor or None."""
    found = list(outputs)
    if given is None:
        gradients: list[Any] = [None] * len(found)
    else:
        gradients = list(plain((given,) if isinstance(given, (Tensor, *OTHERS)) else tuple(given)))
    if len(found) != len(gradients):
        raise ArgumentError(
            f"{len(gradients)} gradients for {len(found)} outputs: give one each, None for a scalar output's own 1"
        )
    for i, (t, g) in enumerate(zip(found, gradients, strict=True)):
        if g is not None and not isinstance(g, Tensor):
            raise ArgumentError(f"a gradient must be a tensor or None; got {type(g).__name__}: {g!r}")
        if isinstance(t, GradientEdge):
            if g is None:
                raise ArgumentError(f"backward from a GradientEdge takes its gradient; got None for output {i}")
            found[i] = _standing(t, partial(rewrap, g))
        elif not isinstance(t, Tensor):
            raise ArgumentError(f"backward takes tensors; got {type(t).__name__}: {t!r}")
    return found, gradients


def _run(
    outputs: Sequence[Tensor], gradients: Sequence[Tensor | None], retain_graph: bool | None, create_graph: bool,
    wanted: list[Tensor] | None, accumulate: bool,
) -> dict[int, Tensor]:  # fmt: skip
    retain = (create_graph if retain_graph is None else retain_graph) or passing.again
    grad, here.grad = here.grad, create_graph
    inside, here.backward = here.backward, True
    around, passing.ends = passing.ends, []
    if around is None:
        passing.last, passing.undo = passing.ends, []
    try:
        found = Sweep(retain, create_graph, wanted, accumulate).go(outputs, gradients)
        for end in passing.ends:
            end()
        return found
    except Exception:  # Ctrl-C ends the program: nothing is waited for
        for undo in passing.undo if around is None else ():
            with contextlib.suppress(Exception):  # that comes of the same failure, which is raised
                undo()
        raise
    finally:
        here.grad, here.backward, passing.ends = grad, inside, around
        if around is None:
            passing.last = None
