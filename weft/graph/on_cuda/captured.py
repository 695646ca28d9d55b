"""A chain on a CUDA device as a CUDA graph: one call launches all its kernels.

Each of its functions runs once as written, which loads kernels and makes their handles; the second act is captured, and
later ones replay that. What reads a value on the host, or calls Python that others wrote, always runs as written.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import torch

from weft.core import collecting
from weft.core.device import capturing
from weft.ops import OPS
from weft.plan.calls import Call, Ref, Step

BOOKKEEPING: Final = ("read", "variable", "accumulate", "pack", "box.same", "box.slice", "box.copy", "box.joined")
Function = Callable[[], None]


class Captures:
    """The CUDA graphs of one compiled graph. As they run one at a time, they share the memory that kernels allocate."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.first: Any = None  # kept, as the memory is its

    def of(self, function: Function, writes: Sequence[torch.Tensor], generators: Sequence[torch.Generator]) -> Function:
        """A function that does what this one does, which writes these tensors and draws from these generators."""
        return _Captured(self, function, writes, generators)

    def replay(self, function: Function, generators: Sequence[torch.Generator]) -> Function | None:
        """Capture a function and return what launches its kernels; None if it can't be captured. Nothing runs yet."""
        index = self.device.index
        graph = torch.cuda.CUDAGraph()
        drawing = [torch.cuda.default_generators[index], *generators]
        before = [g.clone_state() for g in drawing]
        pool = torch.cuda.graph_pool_handle() if self.first is None else self.first.pool()
        with capturing, collecting.paused(), torch.cuda.stream(_stream(index)):
            try:
                for g in generators:
                    graph.register_generator_state(g)
                graph.capture_begin(pool=pool, capture_error_mode="thread_local")
                function()
                graph.capture_end()
            except BaseException as error:
                for end in (graph.capture_end, partial(_end_pool, index, pool)):
                    with contextlib.suppress(RuntimeError):  # says that the capture is broken off
                        end()
                for g, state in zip(drawing, before, strict=True):  # which believe that they are captured
                    g.graphsafe_set_state(state)
                if isinstance(error, RuntimeError):
                    return None
                raise
        self.first = self.first or graph
        return graph.replay


def _end_pool(index: int, pool: Any) -> None:
    torch._C._cuda_endAllocateToPool(index, pool)
    torch._C._cuda_releasePool(index, pool)


class _Captured:
    __slots__ = ("captures", "function", "writes", "generators", "ran", "replay")

    def __init__(
        self, captures: Captures, function: Function, writes: Sequence[torch.Tensor],
        generators: Sequence[torch.Generator],
    ) -> None:  # fmt: skip
        self.captures, self.function, self.writes, self.generators = captures, function, writes, generators
        self.ran = False
        self.replay: Function | None = None

    def __call__(self) -> None:
        if self.replay is None:
            if self.ran:
                self.replay = self.captures.replay(self.function, self.generators) or self.function
            else:
                self.function()
                self.ran = True
                return
        self.replay()
        if self.replay is not self.function:
            torch._C._increment_version(self.writes)


@functools.cache
def _stream(index: int) -> torch.cuda.Stream:
    """The stream on which functions are captured: one, as kernels keep memory for each."""
    return torch.cuda.Stream(index)


def repeats(step: Step, cells: Mapping[str, Any], device: torch.device) -> bool:
    """Whether a chain's function, of these parameters, does the same at each call, and on the device alone."""
    return all(map(_repeats, step.calls)) and all(t.device == device for t in _tensors([*cells.values()]))


def _repeats(call: Call) -> bool:
    op = OPS.get(call.op)
    if op is None:
        return all(map(_repeats, call.calls)) if call.op == "fused" else call.op in BOOKKEEPING
    return op.built_in and not (op.dynamic or op.rejection)


def _tensors(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    for v in values:
        if isinstance(v, torch.Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _tensors(v)
        elif isinstance(v, dict):
            yield from _tensors([*v.values()])
        elif isinstance(getattr(v, "__self__", None), torch.Tensor):
            yield v.__self__


def writes(step: Step, known: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that a chain's ops overwrite."""
    found: dict[str, torch.Tensor] = {}
    for call in step.calls:
        for i in OPS[call.op].writes if call.op in OPS else ():
            for a in call.args[i] if isinstance(call.args[i], tuple) else (call.args[i],):
                if isinstance(a, Ref) and a.name in known:
                    found[a.name] = known[a.name]
    return [*found.values()]
