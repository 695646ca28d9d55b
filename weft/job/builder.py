"""Builds a job while a program is traced: names things, captures what the program brings along, knows where it is."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.spec import Spec
from weft.job.job import Job
from weft.job.value import Node, Value
from weft.tensor.tensor import Tensor

PACKAGE = str(Path(__file__).resolve().parent.parent)
Form = tuple[tuple[int, ...], DType, Spec | None, Device]


class Builder:
    """The trace in progress."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.scope: list[str] = []
        self.stage: int | None = None
        self.losses: list[Value] = []
        self._values: dict[int, tuple[Tensor, Value]] = {}  # by identity; the tensor is held so that it stays itself
        self._names: dict[int, str] = {}
        self._counts: dict[str, int] = {}

    def add(
        self, op: str, args: tuple[Any, ...], forms: Sequence[Form], *, name: str = "", ranked: bool = False
    ) -> tuple[Value, ...]:
        """Append a node; its outputs."""
        name = self.unique(name or "-".join(filter(None, (".".join(self.scope[-1:]), op))))
        outputs = tuple(
            Value(name if len(forms) == 1 else f"{name}:{i}", shape, dtype, spec, device)
            for i, (shape, dtype, spec, device) in enumerate(forms)
        )
        micro = any(
            self.job.is_micro(v) for a in args for v in (a if isinstance(a, tuple) else (a,)) if isinstance(v, Value)
        )
        self.job.append(
            Node(name, op, args, outputs, ".".join(self.scope[-1:]), user_line(), micro, ranked, self.stage)
        )
        return outputs

    def unique(self, name: str) -> str:
        count = self._counts.get(name)
        self._counts[name] = 0 if count is None else count + 1
        return name if count is None else self.unique(f"{name}-{count + 1}")

    def name_of(self, t: Tensor, name: str) -> None:
        """Say what a tensor is called before it is captured: a parameter's path."""
        self._names.setdefault(id(t), name)
        self._values.setdefault(-id(t), (t, None))  # type: ignore[arg-type]

    def capture(self, t: Tensor) -> Value:
        """An eager tensor that the program uses: a variable of the job, once."""
        known = self._values.get(id(t))
        if known is not None:
            return known[1]
        name = self.unique(self._names.get(id(t), "constant"))
        form = (tuple(t.shape), t.dtype, t.spec, t.device if t.spec is None else Device("cpu"))
        value = Value(name, *form)
        node = Node(name, "variable", (), (value,), scope=".".join(self.scope[-1:]), stage=self.stage)
        self.job.append(node)
        self.job.variables[value] = t
        self._values[id(t)] = (t, value)
        return value

    def loss(self, outputs: Sequence[Tensor]) -> None:
        self.losses.extend(t.value for t in outputs if t.value is not None)

    @contextlib.contextmanager
    def inside(self, scope: str, stage: int | None = None) -> Iterator[None]:
        """Nodes made inside belong to a module, and to its stage if it has one."""
        before = self.stage
        self.scope.append(scope)
        self.stage = stage if stage is not None else before
        try:
            yield
        finally:
            self.scope.pop()
            self.stage = before


def user_line() -> str:
    """file:line of the innermost frame outside of the package."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back  # type: ignore[assignment]
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
