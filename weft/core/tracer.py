"""What may be asked of the trace in progress, `here.trace`, by those who don't build its job.

`weft.job.builder.Builder` is the tracer. Tensors and symbols are of layers above, so they are `Any` here: what is
checked is which questions there are, and how many answers each takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from weft.core.sbp import NdSbp


class TracedMemories(Protocol):
    """Which tensors are one memory while a program is traced."""

    def follow(self, t: Any) -> None:
        """Let an eager tensor stand for what was written into its memory through others."""

    def become(self, t: Any, symbol: Any) -> None:
        """Let one tensor stand for a symbol, until the trace ends."""

    def share(self, t: Any, twin: Any) -> None:
        """Let two tensors be one memory from now on."""

    def exchange(self, t: Any, other: Any) -> None:
        """Let a symbol's tensor be one memory with another, and no longer with those it was one with."""

    def data(self, t: Any) -> Any:
        """The local memory that a tensor stands over, or stood when the trace began."""

    def stands_over(self, t: Any) -> bool:
        """Whether there is memory from before the trace under a tensor."""
        ...

    def alone(self, t: Any) -> bool:
        """Whether no other tensor is known to share its memory."""
        ...


class TracedOrder(Protocol):
    """How the elements of local symbols lie in memory."""

    def settled(self, v: Any) -> None:
        """The program asked for a symbol's elements in order."""

    def strides(self, v: Any) -> tuple[int, ...]:
        """The strides that a symbol will have."""
        ...


class TracedAttributes(Protocol):
    """What modules held when the program came to them."""

    @property
    def others(self) -> set[int]:
        """Modules of graphs that are called inside this one, and those warned of, by identity."""
        ...

    def see(self, module: Any) -> None:
        """The program calls a module, or sets one of its attributes."""


class TracedJob(Protocol):
    """The job that is being written."""

    name: str
    micro_batches: int


class Trace(Protocol):
    """The trace of one program."""

    @property
    def job(self) -> TracedJob: ...
    @property
    def memories(self) -> TracedMemories: ...
    @property
    def order(self) -> TracedOrder: ...
    @property
    def attributes(self) -> TracedAttributes: ...
    @property
    def modules(self) -> Mapping[int, Any]:
        """What tells the settings of the graph's modules, by identity."""
        ...

    draws: int  # of random numbers, so far
    scaled_by: str | None  # the number of the host that gradients of losses begin with, instead of 1

    # ---- reading and writing tensors

    def read(self, t: Any) -> Any:
        """The symbol of what an op reads of an eager tensor."""

    def write(self, t: Any, symbol: Any) -> None:
        """Let a tensor stand for a symbol, as the program writes it in place."""

    def capture_as(self, t: Any, y: Any) -> None:
        """A local tensor that a global program reads as y, over the same memory."""

    def named(self, t: Any) -> bool:
        """Whether it is a parameter or a buffer of the graph's modules."""
        ...

    def layout_of(self, t: Any) -> NdSbp:
        """In which layout the program sees a global tensor."""
        ...

    def source(self, loader: Any, batch: Sequence[Any]) -> list[Any]:
        """A batch that each launch takes from a loader; `batch` tells its form."""
        ...

    # ---- gradients

    def loss(self, outputs: Sequence[Any]) -> None:
        """Backward begins at these."""

    def begun(self, loss: Any) -> Any:
        """The gradient that a loss begins with."""

    def gradient(self, leaf: Any, g: Any) -> None:
        """Add to a leaf's gradient."""

    # ---- calls

    def again(self, call: Callable[[], Any]) -> Any:
        """What a call computes is computed once more for backward, not kept."""

    def call_module(self, module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module; what it computes belongs to it."""

    def steer(self, source: Any, verb: str, seed: int | None = None) -> None:
        """Let each launch "seed" or "fork" a source of random numbers here, or "join" it again."""
