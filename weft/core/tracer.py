"""The interface of the trace in progress, `here.trace`, for layers below the tracer, `weft.job.builder.Builder`.

Tensors and symbols belong to layers above, so they are `Any` here: type checkers see the methods and their arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from weft.core.sbp import NdSbp


class TracedMemories(Protocol):
    """Which tensors share memory during a trace."""

    def of(self, t: Any) -> Any:
        """What stands for the memory of a tensor."""

    def follow(self, t: Any) -> None:
        """Let an eager tensor stand for the symbol that was written into its memory by an alias, if any."""

    def become(self, t: Any, symbol: Any) -> None:
        """Let this tensor alone stand for a symbol, until the trace ends."""

    def share(self, t: Any, twin: Any) -> None:
        """Let two tensors share memory from now on."""

    def exchange(self, t: Any, other: Any) -> None:
        """Let a symbol's tensor share memory with another tensor, and no longer with its former aliases."""

    def data(self, t: Any) -> Any:
        """The local memory of a tensor, or that which it had when the trace began."""

    def made(self, t: Any) -> None:
        """The program has made a tensor of data, with which each launch begins, whatever is written into it later."""

    def is_made(self, t: Any) -> bool:
        """Whether the program has made a tensor, or it has memory from before the trace, which may change."""
        ...

    def stands_over(self, t: Any) -> bool:
        """Whether a tensor has memory from before the trace."""
        ...

    def alone(self, t: Any) -> bool:
        """Whether no other tensor is known to share its memory."""
        ...


class TracedOrder(Protocol):
    """The memory order (strides) that local values have in the eager program."""

    def settled(self, v: Any) -> None:
        """Set a symbol to contiguous, as the program asked for it."""

    def laid(self, v: Any) -> Any:
        """A symbol as a meta tensor with its strides in the eager program."""
        ...


class TracedGradients(Protocol):
    """The gradients of leaves. Those that backward computes are shares of those that the program sees."""

    def begun(self, loss: Any) -> Any:
        """With what backward begins at a loss."""

    def share(self, g: Any) -> Any:
        """The share of a gradient that the program gives."""

    def add(self, leaf: Any, g: Any) -> None:
        """Add what backward found to a leaf's `.grad`."""

    def read(self, leaf: Any) -> Any:
        """A leaf's `.grad` as the program sees it."""

    def given(self, leaf: Any) -> None:
        """The program sets a leaf's `.grad`."""


class TracedAttributes(Protocol):
    """Modules' attributes before the trace."""

    @property
    def others(self) -> set[int]:
        """The ids of modules of inner graphs, and of those already warned of."""
        ...

    def see(self, module: Any, name: str = "") -> None:
        """Save a module's attributes when the program first calls it, or sets one of them, whose name is given."""

    def make(self, module: Any) -> None:
        """Note a module whose `__init__` runs during the trace."""


class TracedJob(Protocol):
    """The job that is being traced."""

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
    def gradients(self) -> TracedGradients: ...
    @property
    def attributes(self) -> TracedAttributes: ...
    @property
    def modules(self) -> Mapping[int, Any]:
        """By id, what gives the settings of a module of the graph."""
        ...

    guarded: int  # above 0, the program may read what follows from arguments: each launch checks that it is the same
    draws: int  # the number of random ops so far

    # ---- reading and writing tensors

    def read(self, t: Any) -> Any:
        """The symbol that an op reads for an eager tensor."""

    def seen(self, t: Any) -> None:
        """The program has read the value of an eager tensor: the graph holds for this value alone."""

    def write(self, t: Any, symbol: Any) -> None:
        """An in-place write: let a tensor stand for a symbol."""

    def capture_as(self, t: Any, y: Any) -> None:
        """Capture a local tensor that a global program reads as y, over the same memory."""

    def named(self, t: Any) -> bool:
        """Whether it is a parameter or a buffer of the graph's modules."""
        ...

    def layout_of(self, t: Any) -> NdSbp:
        """The layout in which the program reads a global tensor."""
        ...

    def source(self, loader: Any, batch: Sequence[Any]) -> list[Any]:
        """The batch that each launch takes from a loader; `batch` is an example of its form."""
        ...

    # ---- gradients

    def loss(self, outputs: Sequence[Any]) -> None:
        """Backward starts from these outputs."""

    # ---- calls

    def again(self, call: Callable[[], Any]) -> Any:
        """Run a call under activation checkpointing: backward recomputes its values."""

    def call_module(self, module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module: its nodes get its scope, and its stage's placement."""

    def steer(self, source: Any, verb: str, seed: int | None = None) -> None:
        """Let each launch "seed" a random source at this point, "fork" it, or "join" it again."""
