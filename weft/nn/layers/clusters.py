"""What a softmax in clusters computes, in a graph, too: torch's code reads which targets are in each cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

from weft.core.dispatch import here
from weft.core.errors import IndexingError, ShapeError
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor


class Clustered(NamedTuple):
    """The result: each target's log probability, and the mean loss."""

    output: Any
    loss: Any


def forward(self: Any, input_: Tensor, target_: Tensor) -> Clustered:
    if input_.ndim != target_.ndim + 1 or input_.shape[:-1] != target_.shape or input_.ndim > 2:
        raise ShapeError(
            "the input is (batch, in_features) and the target (batch,), or both lack the batch; got "
            f"{list(input_.shape)} and {list(target_.shape)}"
        )
    alone = not target_.ndim
    x: Any = ops.unsqueeze(input_, 0) if alone else input_
    target: Any = ops.reshape(target_, (-1,))
    if here.trace is None and target.numel():
        low, high = (int(OPS[n](target).item()) for n in ("amin", "amax"))
        if low < 0 or high >= self.n_classes:
            raise IndexingError(f"labels are 0 to {self.n_classes - 1}; got {low if low < 0 else high}")
    head = ops.log_softmax(self.head(x), 1)
    output = _at(head, ops.clamp(target, 0, self.shortlist_size - 1))
    for i, tail in enumerate(self.tail):
        inside = ops.logical_and(target >= self.cutoffs[i], target < self.cutoffs[i + 1])
        output = _with(self, output, inside, i, tail, x, target, head)
    output = ops.reshape(output, tuple(target_.shape)) if alone else output
    return Clustered(output, ops.neg(ops.mean(output)))


def _with(self: Any, output: Any, inside: Any, i: int, tail: Any, x: Any, target: Any, head: Any) -> Any:
    """The output with the log probabilities of the rows whose labels are in cluster i."""
    rows = None
    if here.trace is None:  # only those are scored; in a graph their count is unknown, so all are
        rows = ops.reshape(ops.nonzero(inside), (-1,))
        x, target, head = (ops.index_select(t, 0, rows) for t in (x, target, head))
    low, high = self.cutoffs[i : i + 2]
    within = _at(ops.log_softmax(tail(x), 1), ops.clamp(target - low, 0, high - low - 1))
    found = within + ops.select(head, 1, self.shortlist_size + i)
    return ops.where(inside, found, output) if rows is None else ops.index_put(output, [rows], found)


def of_all(self: Any, input: Tensor, head_output: Tensor) -> Tensor:
    """The log probabilities of all classes, per row."""
    head: Any = ops.log_softmax(head_output, 1)
    parts: list[Any] = [ops.narrow(head, 1, 0, self.shortlist_size)]
    for i, tail in enumerate(self.tail):
        parts.append(ops.log_softmax(tail(input), 1) + ops.narrow(head, 1, self.shortlist_size + i, 1))
    return ops.cat(parts, 1)


def _at(scores: Any, places: Any) -> Any:
    """The element of each row of scores at its index."""
    return ops.squeeze(ops.gather(scores, 1, ops.unsqueeze(places, 1)), 1)
