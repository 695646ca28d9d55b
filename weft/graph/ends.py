"""Bind the source and sink of a plan to memory: where a launch's inputs go, and where its outputs are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch

from weft.boxing.part import kernel_of
from weft.compiler.calls.source import Memory
from weft.ops import OPS
from weft.plan.calls import Call, Result
from weft.plan.plan import Task
from weft.runtime.actor import Turn


class Filled(NamedTuple):
    """A slot of memory to fill: with the argument of this index, or with a number from the host."""

    number: int
    is_input: bool
    view: torch.Tensor


def inputs_of(source: Task, memory: Mapping[int, list[torch.Tensor]], numbers: Sequence[str]) -> list[list[Filled]]:
    """For each copy of the source's register, its slots; empty if this rank reads nothing."""
    calls = source.step.calls
    used = {r.place.register for c in calls for r in c.results}
    found = []
    for slot in range(len(memory[next(iter(used))]) if used else 0):
        placed = Memory(torch.empty(0, dtype=torch.uint8), {r: memory[r][slot] for r in used}).placed
        found.append([
            Filled(c.args[0] if c.op == "graph.input" else numbers.index(c.args[0]), c.op == "graph.input", placed(r))
            for c in calls for r in c.results
        ])  # fmt: skip
    return found


def outputs_of(
    sink: Task, memory: Mapping[int, list[torch.Tensor]], variable: Callable[[str], torch.Tensor]
) -> list[Callable[[Turn], torch.Tensor]]:
    """For each output, a function that gives its tensor: in a register, a variable, or a view of one."""
    found: dict[str, Callable[[Turn], torch.Tensor]] = {}
    nothing = torch.empty(0)
    ports = [p.register for p in sink.consumes]

    def named(name: str) -> Callable[[Turn], torch.Tensor]:
        return lambda turn: variable(name)

    def register(r: Result) -> Callable[[Turn], torch.Tensor]:
        port, empty = ports.index(r.place.register), torch.empty(0, dtype=torch.uint8)
        views = [Memory(empty, {r.place.register: m}).placed(r) for m in memory[r.place.register]]
        return lambda turn: views[turn.consumed[port]]

    def view(call: Call, at: int) -> Callable[[Turn], torch.Tensor]:
        kernel, others = kernel_of(OPS[call.op], call.option("where")), call.args[1:]
        base = found[call.args[0].name]
        if len(call.results) > 1:
            return lambda turn: kernel(base(turn), *others)[at]
        return lambda turn: kernel(base(turn), *others)

    shown = []
    for call in sink.step.calls:
        for at, r in enumerate(call.results):
            made = {"read": register(r) if call.op == "read" else None, "variable": named(r.name)}.get(call.op)
            found[r.name] = made or view(call, at)
        if call.op == "graph.output":
            shown.append((lambda turn: nothing) if call.args[0] is None else found[call.args[0].name])
    return shown
