"""Adaptive softmax over many classes: the frequent ones are scored at once, the others by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.core.dispatch import here
from weft.core.errors import IndexingError, OptionError, ShapeError
from weft.nn.layers.container import ModuleList, Sequential
from weft.nn.layers.linear import Linear
from weft.nn.module.module import Module
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor


class Clustered(NamedTuple):
    """The result: each target's log probability, and the mean loss."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of labels among many classes, ordered by falling frequency.

    Classes below `cutoffs[0]` are scored by the head, together with one score per cluster; those of cluster i, from
    `cutoffs[i]` on, by a layer with in_features / div_value ** (i + 1) hidden features.

    >>> layer = flow.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])
    >>> layer(flow.randn(3, 4), flow.tensor([0, 4, 9])).output.shape
    torch.Size([3])
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        ends = list(cutoffs)
        if not ends or ends != sorted(set(ends)) or ends[0] < 1 or ends[-1] >= n_classes:
            raise OptionError(
                f"cutoffs must be increasing integers, from 1 to n_classes - 1 = {n_classes - 1}; got {ends}"
            )
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*ends, n_classes]
        self.shortlist_size, self.n_clusters = ends[0], len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            inner = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, False, device, dtype), Linear(inner, high - low, False, device, dtype)
                )
            )

    def reset_parameters(self) -> None:
        self.head.reset_parameters()
        for first, second in self._tails():
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Clustered:
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
        for i, tail in enumerate(self._tails()):
            inside = ops.logical_and(target >= self.cutoffs[i], target < self.cutoffs[i + 1])
            output = self._with(output, inside, i, tail, x, target, head)
        output = ops.reshape(output, tuple(target_.shape)) if alone else output
        return Clustered(output, ops.neg(ops.mean(output)))

    def _with(self, output: Any, inside: Any, i: int, tail: Any, x: Any, target: Any, head: Any) -> Any:
        """The output with the log probabilities of the rows whose labels are in cluster i."""
        rows = None
        if here.trace is None:  # only those are scored; in a graph their count is unknown, so all are
            rows = ops.reshape(ops.nonzero(inside), (-1,))
            x, target, head = (ops.index_select(t, 0, rows) for t in (x, target, head))
        low, high = self.cutoffs[i : i + 2]
        within = _at(ops.log_softmax(tail(x), 1), ops.clamp(target - low, 0, high - low - 1))
        found = within + ops.select(head, 1, self.shortlist_size + i)
        return ops.where(inside, found, output) if rows is None else ops.index_put(output, [rows], found)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes, per row."""
        head: Any = ops.log_softmax(self.head(input), 1)
        parts: list[Any] = [ops.narrow(head, 1, 0, self.shortlist_size)]
        for i, tail in enumerate(self._tails()):
            parts.append(ops.log_softmax(tail(input), 1) + ops.narrow(head, 1, self.shortlist_size + i, 1))
        return ops.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row."""
        return ops.argmax(self.log_prob(input), 1)

    def _tails(self) -> Any:
        return self.tail


def _at(scores: Any, places: Any) -> Any:
    """The element of each row of scores at its index."""
    return ops.squeeze(ops.gather(scores, 1, ops.unsqueeze(places, 1)), 1)
