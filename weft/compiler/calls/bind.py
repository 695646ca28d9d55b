"""Bind a chain's calls to memory: one straight-line Python function of kernel calls over views made in advance.

Its source is generated and compiled once. For other copies of registers, or another micro-batch, only the values that
depend on these are rebuilt and passed to the compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from weft.boxing.part import kernel_of
from weft.compiler import coalesce, inductor
from weft.compiler.calls.carry import Carrier, carry
from weft.compiler.calls.rows import lists_of
from weft.compiler.calls.source import Memory, Source, Tell
from weft.core import dtype as dtypes
from weft.core.errors import WeftError, ours
from weft.core.one_thread import alone
from weft.ops import OPS, explain
from weft.ops.declaration import Op
from weft.ops.kernels import FORMATS, format_of
from weft.plan.calls import FORM_ONLY, Call, Ref, Step
from weft.tensor.tensor import of_torch

Dependency = int | str  # a register, "act" (its number in the launch), "first" (whether it is the first)


class Rewritten(NamedTuple):
    """What a call's parameters and results are for some memory, which it keeps, and an act."""

    cells: dict[str, Any]
    static: dict[str, torch.Tensor]
    on: list[Any]


class Draws(Protocol):
    """The source of random numbers for a chain's draws."""

    def kernel(
        self, call: Call, kernel: Callable[..., Any], known: Mapping[str, torch.Tensor]
    ) -> Callable[..., Any]: ...

    def text(self, name: Callable[[str, Any], str], call: Call, text: str) -> str: ...


class Binder:
    """Binds one chain on one rank."""

    def __init__(
        self, name: str, step: Step, rank: int, arena: torch.Tensor, variables: Mapping[str, torch.Tensor], line: Any,
        draws: Draws,
    ) -> None:  # fmt: skip
        self.name, self.step, self.variables, self.draws = name, step, variables, draws
        self.dependents = _dependents(step)
        self.depends: list[list[Dependency]] = [[] for _ in step.calls]
        for d, calls in self.dependents.items():
            for i in calls:
                self.depends[i].append(d)
        self.arena, self.rank, self.line = arena, rank, line
        self.forms = {r.name: r for c in step.calls for r in c.results}
        self._reset()

    def _reset(self) -> None:
        self.memory = Memory(self.arena)
        self.source = Source(self.name, self.memory)
        self.carrier = Carrier(self.source, self.memory, self.forms, self.rank, self.line)
        self.known: dict[tuple[Any, ...], Rewritten] = {}

    def bind(self, slots: Mapping[int, torch.Tensor], phase: int, tell: Tell | None = None) -> Callable[[], None]:
        """The function for these copies of the registers, in this act of a launch; `tell` is called with timings."""
        if not self.step.one_thread:
            return self._bind(slots, phase, tell)
        made: list[Callable[[], None]] = []
        alone(lambda: made.append(self._bind(slots, phase, tell)))()
        return alone(made[0])

    def _bind(self, slots: Mapping[int, torch.Tensor], phase: int, tell: Tell | None) -> Callable[[], None]:
        if self.source.code is None or not self._rebound(slots, phase):
            self._reset()
            self.memory.slots, self.memory.phase = slots, phase
            for call in self.step.calls:
                self.source.begin(call)
                self._call(call)
            self.source.compile()
            for i, depends in enumerate(self.depends):
                if depends:
                    self._remember(i)
        return self.source.function(tell)

    def _rebound(self, slots: Mapping[int, torch.Tensor], phase: int) -> bool:
        """Rebuild what depends on the changed memory or act; False if the source would change."""
        memory = self.memory
        changed: list[Dependency] = [r for r, copy in slots.items() if memory.slots.get(r) is not copy]
        changed += ["act"] * (phase != memory.phase) + ["first"] * ((phase == 0) != (memory.phase == 0))
        memory.slots, memory.phase = slots, phase
        again = sorted({i for d in changed for i in self.dependents.get(d, ())})
        return all(map(self._again, again))

    def _again(self, i: int) -> bool:
        """Rewrite a call, or take what that gave for the same memory and act; False if the source would change."""
        known = self.known.get(self._key(i))
        if known is None:
            if not self.source.rewrite(self.source.written[i], self._call):
                return False
            known = self._remember(i)
        self.source.cells.update(known.cells)
        self.memory.static.update(known.static)
        return True

    def _remember(self, i: int) -> Rewritten:
        """Keep what a call, as it is now, has in memory."""
        written, static, cells = self.source.written[i], self.memory.static, self.source.cells
        made = {r.name: static[r.name] for r in written.call.results if r.name in static}
        known = self.known[self._key(i)] = Rewritten({name: cells[name] for name in written.names}, made, self._on(i))
        return known

    def _on(self, i: int) -> list[Any]:
        """What a call depends on, as it is now."""
        memory = self.memory
        now = {"act": memory.phase, "first": memory.phase == 0}
        return [memory.slots[d] if isinstance(d, int) else now[d] for d in self.depends[i]]

    def _key(self, i: int) -> tuple[Any, ...]:
        return i, *[id(a) if isinstance(a, torch.Tensor) else a for a in self._on(i)]

    def explained(self, error: Exception) -> Exception:
        """The error to raise for that of a kernel: one of Weft's, which names the op, its operands and the program's
        line. The op's checked kernel says more than the generated fast call."""
        call = self.source.failing(error)
        op = None if call is None else OPS.get(call.op)
        if call is not None and call.op.startswith("box."):
            error.add_note(f"in {call.brief}")
        if call is None or (op is None and not call.calls) or not (call.calls or ours(error)):
            return error
        if op is None:
            kind, message = explain.named(error)
            better: Exception = error if isinstance(error, WeftError) else kind(message)
        else:
            better = self._of_kernel(call, op, error)
        places = ", ".join(dict.fromkeys(c.at for c in (call.calls or (call,)) if c.at))
        better.add_note(f"in {f'one kernel for {inductor.ops_of(call)}' if call.calls else call.op}, of {places}")
        return better

    def _of_kernel(self, call: Call, op: Op, error: Exception) -> Exception:
        if not (op.writes or op.random) and self.memory.knows(call.args):
            try:
                op.compute([self.memory.known(a) for a in call.args], self.kernel(call))
            except Exception as checked:
                error = checked
        return explain.explain(op, error, tuple(map(self._shown, call.args)))

    def _shown(self, a: Any) -> Any:
        """An argument as an eager call would have it."""
        if isinstance(a, tuple):
            return tuple(map(self._shown, a))
        if not isinstance(a, Ref):
            return a
        return of_torch(self.memory.known(a) if self.memory.knows(a) else self._stand_in(a))

    # ---- calls ---------------------------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        known, source = self.memory.static, self.source
        match call.op:
            case "read":
                known[call.results[0].name] = self.memory.placed(call.results[0])
            case "variable":
                known[call.results[0].name] = self.variables[call.results[0].name]
            case "accumulate":
                total = known[call.results[0].name] = self.memory.placed(call.results[0])
                add = total.add_ if self.memory.phase else total.copy_
                source.line(f"{source.called(f'{call.name}_adds', add)}({source.expression(call.args[0])})")
            case "pack":
                part = known[call.results[0].name] = self.memory.placed(call.results[0])
                source.line(f"{source.called(f'{call.name}_part', part)}.copy_({source.expression(call.args[0])})")
            case op if op.startswith("box."):
                carry(self.carrier, call)
            case "fused":
                self._fused(call)
            case _:
                self._op(call, OPS[call.op])

    def kernel(self, call: Call) -> Callable[..., Any]:
        return kernel_of(OPS[call.op], call.option("where"))

    def _op(self, call: Call, op: Op) -> None:
        kernel, args = self.kernel(call), call.args
        if op.random:
            kernel = self.draws.kernel(call, kernel, self.memory.static)
        if op.elementwise_lists:
            args = self._long(call, args)
        first = call.results[0] if call.results else None
        if first is not None and first.place.kind == "constant":
            held = [
                self._stand_in(a) if op.name in FORM_ONLY and isinstance(a, Ref) else self.memory.known(a) for a in args
            ]
            self.memory.static[first.name] = kernel(*held)
            return
        if op.view and first is not None and self.memory.knows(args[0]):
            base = self.memory.known(args[0])
            if not base.numel():  # a view of nothing, as of a variable elsewhere, of which this rank gets what is sent
                self.memory.static[first.name] = base.new_empty(first.shape)
                return
            self._view(call, kernel)
            return
        found = [self.memory.of(r) for r in call.results]
        outs = [o for o in found if o is not None]
        placed = len(outs) == len(found)
        straight = op.out_kernel is not None and call.option("where") is None and not op.random and bool(outs)
        static = self.memory.knows(args)
        if placed and op.prepare is not None and static and (straight or not outs):
            texts = self._prepared(call, op, args, outs)
            if texts:
                for text in texts:
                    self.source.line(text)
                self._know(call, outs)
                return
        if placed and straight:
            names = [self.source.called(r.name, o) for r, o in zip(call.results, outs, strict=True)]
            target = names[0] if len(names) == 1 else f"({', '.join(names)})"
            given = self._arguments(op, args, positional=True)
            self.source.line(f"{self.source.called(f'{op.name}_out', op.out_kernel)}({target}, {given})")
            self._know(call, outs)
            return
        text = f"{self.source.called(op.name, kernel)}({self._arguments(op, args)})"
        if op.random:
            text = self.draws.text(self.source.called, call, text)
        elif outs and placed:
            if op.prepare is not None and call.option("where") is None and static:
                text = next(iter(self._prepared(call, op, args, [])), text)
            self._into(call, outs, text)
            return
        targets = [self.source.variable(r) for r in call.results]
        self.source.line(f"{', '.join(targets)} = {text}" if targets else text)

    def _fused(self, call: Call) -> None:
        outs = [self.memory.placed(r) for r in call.results]
        last = call.option("channels_last", ())
        known, knows = self.memory.known, self.memory.knows
        given = [known(a) if knows(a) else self._stand_in(a, i in last) for i, a in enumerate(call.args)]
        kernel, text = inductor.kernel(call, given, outs), {}
        for a, t in zip(call.args, given, strict=True):
            # what is made anew may lie otherwise than its form says, as what is drawn like a transposed value
            text[id(t)] = self.source.expression(a)
            if not knows(a):
                text[id(t)] += f".contiguous(memory_format={self.source.called('format', format_of(t))})"
        text |= {id(o): self.source.called(r.name, o) for r, o in zip(call.results, outs, strict=True)}
        for function, args in inductor.loops(kernel, given, outs):
            parts = [
                f"[{', '.join(text[id(t)] for t in a)}]"
                if isinstance(a, list)
                else text.get(id(a)) or self.source.literal("between", a)
                for a in args
            ]
            self.source.line(f"{self.source.called('fused', function)}({', '.join(parts)})")
        self._know(call, outs)

    def _know(self, call: Call, outs: Sequence[torch.Tensor]) -> None:
        for r, o in zip(call.results, outs, strict=True):
            self.memory.static[r.name] = o

    def _stand_in(self, a: Ref, channels_last: bool = False) -> torch.Tensor:
        """A placeholder tensor of a value's form, for calls that read only that."""
        form = self.forms[a.name]
        kept = FORMATS[len(form.shape)] if channels_last else torch.contiguous_format
        dtype = dtypes.named(form.dtype).torch
        return torch.empty(form.shape, dtype=dtype, device=self.memory.arena.device, memory_format=kept)

    def _view(self, call: Call, kernel: Callable[..., Any]) -> None:
        base = self.memory.static[call.args[0].name]
        if call.results[0].place.kind == "view":
            made = kernel(*[self.memory.known(a) for a in call.args])
            made = made if isinstance(made, (list, tuple)) else (made,)
            assert all(t.untyped_storage()._cdata == base.untyped_storage()._cdata for t in made), f"{call} copies"
            self._know(call, made)
            return
        memory = self.memory.placed(call.results[0])  # a reshape that has to copy: in the order of the elements
        target = self.source.called(call.results[0].name, memory.view(base.shape))
        self.source.line(f"{target}.copy_({self.source.expression(call.args[0])})")
        self.memory.static[call.results[0].name] = memory

    def _into(self, call: Call, outs: Sequence[torch.Tensor], text: str) -> None:
        """Copy the values of a source expression into the planned memory."""
        names = [self.source.called(r.name, o) for r, o in zip(call.results, outs, strict=True)]
        self._know(call, outs)
        if len(names) == 1:
            self.source.line(f"{names[0]}.copy_({text})")
        else:
            self.source.line(f"{self.source.called('copy', torch._foreach_copy_)}([{', '.join(names)}], {text})")

    def _long(self, call: Call, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """An update's arguments, with one tensor for those that are adjacent in all its lists."""
        lists = lists_of(call)
        if not lists or not all(map(self.memory.knows, lists)):
            return args
        found = coalesce.coalesced([[self.memory.static[v.name] for v in values] for values in lists])
        if found is None:
            return args
        places = OPS[call.op].writes
        changed = [self.memory.static[v.name] for i in places if call.args[i] in lists for v in call.args[i]]
        # the pieces count their changes apart from the tensors whose memory they are
        count = self.source.called("changed", torch._C._increment_version)
        self.source.line(f"{count}({self.source.called(f'{call.name}_written', changed)})")
        longer = iter(found)
        return tuple(next(longer) if a in lists else a for a in args)

    def _prepared(self, call: Call, op: Op, args: tuple[Any, ...], outs: Sequence[torch.Tensor]) -> list[str]:
        """The low-level calls that the op makes for this memory, with their views taken in advance."""
        made = call.results[0].name if call.results else call.name
        texts = []
        for function, positional, keywords in op.requests(outs, [*map(self.memory.known, args)], self.step.roomy):
            parts = [self.source.literal(f"{call.name}_{i}", a) for i, a in enumerate(positional)]
            parts += [f"{k}={self.source.literal(made, a)}" for k, a in keywords.items()]
            name = getattr(function, "__name__", call.op).partition(".")[0]
            function = getattr(function, "_op", function)  # torch's overload without the Python around it
            texts.append(f"{self.source.called(name, function)}({', '.join(parts)})")
        return texts

    def _arguments(self, op: Op, args: tuple[Any, ...], positional: bool = False) -> str:
        parts = []
        for p, a in zip(op.params, args, strict=True):
            text = self.source.expression(a)
            parts.append(f"{p.name}={text}" if p.keyword_only and not positional else text)
        return ", ".join(parts)


def _dependents(step: Step) -> dict[Dependency, list[int]]:
    """For each dependency, the indices of the calls to rewrite when it changes."""
    found: dict[Dependency, list[int]] = {}
    of: dict[str, set[Dependency]] = {}
    for i, call in enumerate(step.calls):
        mine: set[Dependency] = {"first"} if call.op == "accumulate" else set()
        constant = any(r.place.kind == "constant" for r in call.results)  # it reads forms, or other constants
        for name in () if constant else call.operands():
            mine |= of[name]
        for r in call.results:
            place = r.place
            here: set[Dependency] = set()
            if place.kind == "register":
                here = {place.register, "act"} if place.step else {place.register}
            elif place.kind == "view":
                here = of[place.of]
            of[r.name] = here
            mine |= here
        for d in mine:
            found.setdefault(d, []).append(i)
    return found
