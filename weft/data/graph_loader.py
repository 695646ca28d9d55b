"""`GraphLoader`: batches that a graph prefetches on a thread of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import torch

from weft.core import dispatch
from weft.core import sbp as sbps
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, EndOfData, OptionError, SbpError, ShapeError, TraceError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.sbp import NdSbp
from weft.core.spec import Spec
from weft.data.loader import each, to_torch
from weft.ops import ops
from weft.tensor.tensor import Tensor, of_shard, of_torch


class GraphLoader:
    """Prefetched batches for an `nn.Graph`, from an iterable of tensors, or of tuples and dicts of them, of fixed
    shapes.

    In `build`, `x, y = self.loader()` is the batch of the launch, read while earlier steps ran. Outside of a graph,
    `loader()` is the next batch. After the iterable's end, the next call raises `EndOfData`, and the call after that
    starts again, if the iterable can.

    With `placement` and `sbp` the batches are global. `reads="part"`: each rank's iterable yields its own shard;
    `reads="whole"`: every rank's yields the whole batch, of which the rank keeps its shard.
    """

    launches_read_it: Final = True  # so what it holds changes

    def __init__(
        self, iterable: Iterable[Any], placement: Placement | None = None, sbp: Any = None,
        reads: Literal["part", "whole"] = "part",
    ) -> None:  # fmt: skip
        if not isinstance(iterable, Iterable):
            raise ArgumentError(
                f"GraphLoader takes an iterable of batches, like a DataLoader or a list; got {type(iterable).__name__}"
            )
        if (placement is None) != (sbp is None):
            raise SbpError(
                f"GraphLoader: global batches need both placement and sbp; got placement={placement}, sbp={sbp}"
            )
        if reads not in ("part", "whole"):
            raise OptionError(
                f"GraphLoader(reads={reads!r}): 'part' (the rank's own shard) or 'whole' (to be split here)"
            )
        self.iterable, self.placement, self.reads = iterable, placement, reads
        self.sbp: NdSbp | None = None if placement is None else sbps.nd(sbp, placement.ndim)
        if self.sbp is not None and any(s.is_partial for s in self.sbp):
            raise SbpError(f"GraphLoader: batches are split or broadcast, not {sbps.show(self.sbp)}")
        self.owner = ""  # the name of the graph that reads it
        self.batches = 0  # read so far in this epoch
        self._iterator: Iterator[Any] | None = None
        self._first: list[Any] = []  # read for its shapes, not yet returned

    def __call__(self) -> Any:
        if self.owner:
            raise TraceError(
                f"this loader's batches go to {self.owner}, one a launch: call it once in build() and use its result, "
                "and make another GraphLoader for other readers"
            )
        if here.trace is None:
            return self._as_tensors(self.next())
        example = self.example()
        symbols = iter(here.trace.source(self, tensors_of(example, Tensor)))
        self.owner = here.trace.job.name
        return each(example, Tensor, lambda _: next(symbols))

    def next(self) -> Any:
        """The next batch of this rank, as torch tensors; EndOfData after the last, and then from the start."""
        if self._first:
            batch = self._first.pop()
        else:
            if self._iterator is None:
                self._iterator, self.batches = iter(self.iterable), 0
            try:
                batch = to_torch(next(self._iterator))
            except StopIteration:
                self._iterator = None
                raise EndOfData(f"the loader's data ended after {self.batches} batches") from None
        self.batches += 1
        return batch

    def example(self) -> Any:
        """The first batch as Weft tensors, global if so configured; it will be returned again as the first one."""
        with dispatch.outside():  # like later batches, which a thread reads
            batch = self.next()
        self.batches -= 1
        self._first.append(batch)
        if not tensors_of(batch):
            raise ArgumentError(
                f"a batch holds tensors, or tuples and dicts of them; this one is a {type(batch).__name__}"
            )
        with dispatch.tracing(None):
            return self._as_tensors(batch)

    def _as_tensors(self, batch: Any) -> Any:
        made = iter(self._tensors(tensors_of(batch)))
        return each(batch, torch.Tensor, lambda _: next(made))

    def _tensors(self, tensors: list[torch.Tensor]) -> list[Tensor]:
        if self.placement is None:
            return [of_torch(t) for t in tensors]
        if self.reads == "whole":
            whole = [(t, Spec(tuple(t.shape), of_torch(t).dtype, self.placement, self._sbp(t))) for t in tensors]
            return [of_shard(self.part(t, spec), spec) for t, spec in whole]
        return [ops.from_local(of_torch(t), self.placement, self._sbp(t), None, False) for t in tensors]

    def _sbp(self, t: torch.Tensor) -> NdSbp:
        assert self.placement is not None and self.sbp is not None
        return sbps.nd(self.sbp, self.placement.ndim, t.ndim)

    def part(self, t: torch.Tensor, spec: Spec | None) -> torch.Tensor:
        """The shard that a rank keeps of a tensor from its iterable."""
        if spec is None or self.reads == "part":
            return t
        if tuple(t.shape) != spec.shape:
            raise ShapeError(f"the loader's batches have shape {list(spec.shape)}, and this one {list(t.shape)}")
        rank = current().index
        box = spec.box(rank)
        return torch.empty(spec.local_shape(rank), dtype=t.dtype) if box is None else t[tuple(slice(*b) for b in box)]


def tensors_of(batch: Any, kind: Any = torch.Tensor) -> list[Any]:
    """The tensors of a batch, in order."""
    found: list[Any] = []
    each(batch, kind, lambda t: found.append(t) or t)
    return found
