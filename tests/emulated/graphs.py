"""CUDA graphs: calls that are recorded, without effect, and then repeated with the same memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tests.emulated.streams import Stream, here, on_stream, permitted
from tests.emulated.tensors import ON_HOST, OnCuda, aten, launch, on_cuda, tensors


class Graph:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def register_generator_state(self, generator: torch.Generator) -> None:
        assert generator.device.type == "cuda"

    def pool(self) -> Any:
        return 0, 1

    def capture_begin(self, *_: Any, **__: Any) -> None:
        here.capture = self

    def capture_end(self) -> None:
        if here.capture is not self:
            raise RuntimeError("CUDA error: no capture is under way")
        here.capture = None

    def record(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Note a call, whose results get memory, and nothing in it."""
        device = kwargs.get("device")
        there = device is not None and device.type == "cuda"
        there = there or any(isinstance(t, OnCuda) for t in tensors([*args, *kwargs.values()]))
        to_host = device is not None and device.type == "cpu"
        if there and (to_host or (func is aten.copy_.default and not isinstance(args[0], OnCuda))):
            permitted()
        if not there or func.is_view or func.overloadpacket in ON_HOST:
            return launch(func, args, kwargs, checked=False)
        operands: dict[int, tuple[Tensor, Tensor]] = {}  # each with one of its form that has no memory

        def form(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(map(form, value))
            if isinstance(value, torch.Generator):
                return None
            if isinstance(value, torch.device):
                return torch.device("meta")
            if not isinstance(value, Tensor):
                return value
            alike = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
            return operands.setdefault(id(value), (value, alike))[1]

        result = func(*form(args), **{name: form(v) for name, v in kwargs.items()}) if func._schema.returns else None
        known = {id(alike): value for value, alike in operands.values()}

        def made(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return tuple(map(made, value))
            if not isinstance(value, Tensor) or id(value) in known:
                return known.get(id(value), value)
            return on_cuda(torch.empty_strided(value.shape, value.stride(), dtype=value.dtype), here.device)

        found = made(result)
        self.calls.append((func, args, kwargs, found))
        return found

    def replay(self) -> None:
        for func, args, kwargs, made in self.calls:
            again = launch(func, args, kwargs)
            both = zip(*(v if isinstance(v, (list, tuple)) else [v] for v in (made, again)), strict=True)
            for old, new in ((a, b) for pair in both for a, b in zip(*map(tensors, pair), strict=False)):
                if old is not new and old.data_ptr() != new.data_ptr() and new.numel():
                    launch(aten.copy_.default, (old, new), {})


@contextlib.contextmanager
def capturing(graph: Graph, stream: Stream | None = None, **_: Any) -> Iterator[None]:
    with on_stream(stream):
        graph.capture_begin()
        try:
            yield
        finally:
            graph.capture_end()
