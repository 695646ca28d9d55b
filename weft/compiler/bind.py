"""Binds a chain's calls to memory: one straight Python function, of kernel calls over views that are made beforehand.

The text is written and compiled once. For other copies of registers, or another micro-batch, only what depends on these
is made anew, and handed to the compiled text.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import torch

from weft.boxing.execute import act, execute, neutral, reduced
from weft.boxing.two_level import COMBINE
from weft.boxing.two_level import Call as Request
from weft.compiler import abreast
from weft.compiler.memory import aligned
from weft.compiler.moves import looked, step_of
from weft.compiler.program import FORM_ONLY, kernel_of
from weft.core import dtype as dtypes
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.plan.call import Call, Ref, Result, Step

HEAD: Final = 3  # the number of a function's first line in its source
Dependency = int | str  # a register, or the number of the act


class Draws(Protocol):
    """Where random numbers come from."""

    def kernel(
        self, call: Call, kernel: Callable[..., Any], known: Mapping[str, torch.Tensor]
    ) -> Callable[..., Any]: ...

    def text(self, name: Callable[[str, Any], str], call: Call, text: str) -> str: ...


class Static(dict[str, torch.Tensor]):
    """Values whose memory is known, and which value a tensor was first known as."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[int, str] = {}

    def __setitem__(self, name: str, t: torch.Tensor) -> None:
        self.first.setdefault(id(t), name)
        super().__setitem__(name, t)


class Written:
    """What a call became: lines, and the names in them, in the order in which they were asked for."""

    __slots__ = ("call", "lines", "names")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.lines: list[str] = []
        self.names: list[str] = []


class Binder:
    """One chain on one rank. `static` values are memory known now; others are variables of the function."""

    def __init__(
        self, name: str, step: Step, rank: int, arena: torch.Tensor, variables: Mapping[str, torch.Tensor], line: Any,
        draws: Draws,
    ) -> None:  # fmt: skip
        self.name, self.step, self.rank, self.arena = name, step, rank, arena
        self.given, self.line, self.draws = variables, line, draws
        self.file = f"<weft chain {name}>"
        self.forms = {r.name: r for c in step.calls for r in c.results}
        self.dependents = _dependents(step)
        self.bases: dict[tuple[int, str], torch.Tensor] = {}
        self._reset()

    def _reset(self) -> None:
        self.static = Static()
        self.cells: dict[str, Any] = {}  # what the function closes over
        self.own: dict[str, str] = {}  # values that are variables of the function
        self.written: list[Written] = []
        self.slots: dict[int, torch.Tensor] = {}
        self.phase = 0
        self.now: Written | None = None
        self.again: Iterator[str] | None = None  # the names that the call had when it was first written
        self.text = ""
        self.make: Callable[..., Callable[[], None]] | None = None

    def bind(self, slots: Mapping[int, torch.Tensor], phase: int) -> Callable[[], None]:
        """The function for these copies of the registers, in this act of a launch."""
        before, self.slots = self.slots, dict(slots)
        changed: list[Dependency] = [r for r, memory in slots.items() if before.get(r) is not memory]
        if phase != self.phase:
            changed.append("act")
        self.phase = phase
        if self.make is None or not self._rebound(changed):
            self._reset()
            self.slots, self.phase = dict(slots), phase
            self._write()
        assert self.make is not None
        return self.make(*[self.cells[name] for name in self.closed])

    def _write(self) -> None:
        for call in self.step.calls:
            self.now = Written(call)
            self.written.append(self.now)
            self._call(call)
        lines, self.origins = self._lines()
        name = re.sub(r"\W", "_", self.name)
        own = set(self.own.values())
        self.closed = [k for k in self.cells if k not in own]
        body = "\n".join(f"        {line}" for line in lines) or "        pass"
        source = f"def make({', '.join(self.closed)}):\n    def {name}():\n{body}\n    return {name}\n"
        space: dict[str, Any] = {}
        exec(compile(source, self.file, "exec"), space)
        self.make = space["make"]
        self.text = f"def {name}():\n" + "\n".join(f"    {line}" for line in lines or ["pass"])

    def _rebound(self, changed: list[Dependency]) -> bool:
        """Make anew what depends on what has changed; False if the text would be another one."""
        for i in sorted({i for d in changed for i in self.dependents.get(d, ())}):
            was = self.written[i]
            self.now, self.again = Written(was.call), iter(was.names)
            try:
                self._call(was.call)
            except StopIteration:
                return False
            finally:
                self.again = None
            if self.now.lines != was.lines:
                return False
        return True

    def _lines(self) -> tuple[list[str], list[Call]]:
        """All lines, and whose they are. A variable is deleted after the last line that reads it."""
        found = [(line, w.call) for w in self.written for line in w.lines]
        last = {word: i for i, (line, _) in enumerate(found) for word in re.findall(r"\w+", line)}
        gone: dict[int, list[str]] = {}
        for name in sorted(set(self.own.values()) & last.keys()):
            gone.setdefault(last[name], []).append(name)
        for i in sorted(gone, reverse=True):
            if i < len(found) - 1:
                found.insert(i + 1, (f"del {', '.join(gone[i])}", found[i][1]))
        return [line for line, _ in found], [call for _, call in found]

    def explained(self, error: Exception) -> Exception:
        """What the kernel of the failing line says, which checks what the line's bare call takes for granted."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != self.file:
            trace = trace.tb_next
        call = self.origins[trace.tb_lineno - HEAD] if trace is not None else None
        op = OPS.get(call.op) if call is not None else None
        if call is None or op is None or op.writes or op.random or not self.is_static(call.args):
            return error
        try:
            self.kernel(call)(*[self.known(a) for a in call.args])
        except Exception as better:
            return better
        return error

    # ---- names ---------------------------------------------------------------------------------------

    def line_(self, text: str) -> None:
        assert self.now is not None
        self.now.lines.append(text)

    def called(self, hint: str, value: Any) -> str:
        """A name for something the function closes over."""
        assert self.now is not None
        if self.again is not None:
            name = next(self.again)
        else:
            base = re.sub(r"\W", "_", hint).lstrip("_0123456789") or "v"
            if keyword.iskeyword(base):
                base += "_"
            name, n = base, 1
            while name in self.cells and self.cells[name] is not value:
                n += 1
                name = f"{base}_{n}"
        self.now.names.append(name)
        self.cells[name] = value
        return name

    def variable(self, r: Result) -> str:
        """A name for a variable of the function."""
        if self.again is None:
            self.own[r.name] = self.called(r.name, object())
            self.cells[self.own[r.name]] = None  # reserved
        else:
            next(self.again)
            assert self.now is not None
            self.now.names.append(self.own[r.name])
        return self.own[r.name]

    def expression(self, a: Any) -> str:
        """An argument as source text."""
        if isinstance(a, Ref):
            return self.called(a.name, self.static[a.name]) if a.name in self.static else self.own[a.name]
        if isinstance(a, tuple) and any(isinstance(v, Ref) for v in a):
            if all(v is None or v.name in self.static for v in a):
                return self.called("many", [None if v is None else self.static[v.name] for v in a])
            return "[" + ", ".join(self.expression(v) for v in a) + "]"
        if a is None or isinstance(a, (bool, int, str)) or (isinstance(a, float) and math.isfinite(a)):
            return repr(a)
        if isinstance(a, tuple) and all(isinstance(v, int) for v in a):
            return repr(a)
        return self.called("c", a)

    def literal(self, hint: str, a: Any) -> str:
        """A tensor under the name of the value that it is; anything else as an argument."""
        if isinstance(a, (list, tuple, dict)) and not (isinstance(a, tuple) and all(isinstance(v, int) for v in a)):
            return self.called(hint, a)
        if not isinstance(a, torch.Tensor):
            return self.expression(a)
        return self.called(self.static.first.get(id(a), hint), a)

    def is_static(self, a: Any) -> bool:
        if isinstance(a, Ref):
            return a.name in self.static
        return all(map(self.is_static, a)) if isinstance(a, tuple) else True

    def known(self, a: Any) -> Any:
        if isinstance(a, Ref):
            return self.static[a.name]
        return [self.known(v) for v in a] if isinstance(a, tuple) and any(isinstance(v, Ref) for v in a) else a

    # ---- memory --------------------------------------------------------------------------------------

    def memory(self, r: Result) -> torch.Tensor | None:
        """Where a result goes; None if no plan says."""
        p = r.place
        if p.kind == "register":
            return self.typed(self.slots[p.register], p.offset + p.step * self.phase, r)
        return self.typed(self.arena, p.offset, r) if p.kind == "arena" else None

    def typed(self, memory: torch.Tensor, at: int, r: Result) -> torch.Tensor:
        """Bytes of a register or of the arena, seen as a tensor."""
        dtype = dtypes.named(r.dtype)
        base = self.bases.get((id(memory), r.dtype))
        if base is None:
            whole = memory[: memory.numel() // dtype.itemsize * dtype.itemsize].view(dtype.torch)
            base = self.bases[id(memory), r.dtype] = whole
        return base.as_strided(r.shape, _strides(r), base.storage_offset() + at // dtype.itemsize)

    # ---- calls ---------------------------------------------------------------------------------------

    def _call(self, call: Call) -> None:
        match call.op:
            case "read":
                self.static[call.results[0].name] = self._placed(call.results[0])
            case "variable":
                self.static[call.results[0].name] = self.given[call.results[0].name]
            case "accumulate":
                total = self._placed(call.results[0])
                add = total.add_ if self.phase else total.copy_
                self.line_(f"{self.called(f'{call.name}_adds', add)}({self.expression(call.args[0])})")
                self.static[call.results[0].name] = total
            case "pack":
                part = self._placed(call.results[0])
                self.line_(f"{self.called(f'{call.name}_part', part)}.copy_({self.expression(call.args[0])})")
                self.static[call.results[0].name] = part
            case "box.same" | "box.slice":
                self._look(call)
            case "box.copy":
                self._copy(call)
            case "box.joined":
                self.static[call.results[0].name] = self._placed(call.results[0])
            case "box.merge":
                self._merge(call)
            case op if op.startswith("box."):
                self._move(call)
            case _:
                self._op(call, OPS[call.op])

    def _placed(self, r: Result) -> torch.Tensor:
        memory = self.memory(r)
        assert memory is not None, f"%{r.name} has no place"
        return memory

    def kernel(self, call: Call) -> Callable[..., Any]:
        return kernel_of(OPS[call.op], call.option("where"))

    def _op(self, call: Call, op: Op) -> None:
        kernel, args = self.kernel(call), call.args
        if op.random:
            kernel = self.draws.kernel(call, kernel, self.static)
        if op.abreast:
            args = self._long(call, args)
        first = call.results[0] if call.results else None
        if first is not None and first.place.kind == "constant":
            held = [self._stand_in(a) if op.name in FORM_ONLY and isinstance(a, Ref) else self.known(a) for a in args]
            self.static[first.name] = kernel(*held)
            return
        if op.view and first is not None and self.is_static(args[0]):
            self._view(call, kernel)
            return
        found = [self.memory(r) for r in call.results]
        outs = [o for o in found if o is not None]
        placed = len(outs) == len(found)
        straight = op.out_kernel is not None and call.option("where") is None and not op.random and bool(outs)
        static = self.is_static(args)
        if placed and op.prepare is not None and static and (straight or not outs):
            texts = self._prepared(call, op, args, outs)
            if texts:
                for text in texts:
                    self.line_(text)
                self._know(call, outs)
                return
        if placed and straight:
            names = [self.called(r.name, o) for r, o in zip(call.results, outs, strict=True)]
            target = names[0] if len(names) == 1 else f"({', '.join(names)})"
            given = self._arguments(op, args, positional=True)
            self.line_(f"{self.called(f'{op.name}_out', op.out_kernel)}({target}, {given})")
            self._know(call, outs)
            return
        text = f"{self.called(op.name, kernel)}({self._arguments(op, args)})"
        if op.random:
            text = self.draws.text(self.called, call, text)
        elif outs and placed:
            if op.prepare is not None and call.option("where") is None and static:
                text = next(iter(self._prepared(call, op, args, [])), text)
            self._into(call, outs, text)
            return
        targets = [self.variable(r) for r in call.results]
        self.line_(f"{', '.join(targets)} = {text}" if targets else text)

    def _know(self, call: Call, outs: Sequence[torch.Tensor]) -> None:
        for r, o in zip(call.results, outs, strict=True):
            self.static[r.name] = o

    def _stand_in(self, a: Ref) -> torch.Tensor:
        """A tensor of a value's form, for those who read no more."""
        form = self.forms[a.name]
        return torch.empty(form.shape, dtype=dtypes.named(form.dtype).torch, device=self.arena.device)

    def _view(self, call: Call, kernel: Callable[..., Any]) -> None:
        base = self.static[call.args[0].name]
        if call.results[0].place.kind == "view":
            made = kernel(*[self.known(a) for a in call.args])
            made = made if isinstance(made, (list, tuple)) else (made,)
            assert all(t.untyped_storage()._cdata == base.untyped_storage()._cdata for t in made), f"{call} copies"
            self._know(call, made)
            return
        memory = self._placed(call.results[0])  # a reshape that has to copy: in the order of the elements
        target = self.called(call.results[0].name, memory.view(base.shape))
        self.line_(f"{target}.copy_({self.expression(call.args[0])})")
        self.static[call.results[0].name] = memory

    def _into(self, call: Call, outs: Sequence[torch.Tensor], text: str) -> None:
        """The text's values go into memory of their own."""
        names = [self.called(r.name, o) for r, o in zip(call.results, outs, strict=True)]
        self._know(call, outs)
        if len(names) == 1:
            self.line_(f"{names[0]}.copy_({text})")
        else:
            self.line_(f"{self.called('copy', torch._foreach_copy_)}([{', '.join(names)}], {text})")

    def _long(self, call: Call, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """An update's arguments, with one tensor for those that lie side by side in all its lists."""
        lists = abreast.lists_of(call)
        if not lists or not all(map(self.is_static, lists)):
            return args
        found = abreast.pieces([[self.static[v.name] for v in values] for values in lists])
        if found is None:
            return args
        places = OPS[call.op].writes
        changed = [self.static[v.name] for i in places if call.args[i] in lists for v in call.args[i]]
        # the pieces count their changes apart from the tensors whose memory they are
        count = self.called("changed", torch._C._increment_version)
        self.line_(f"{count}({self.called(f'{call.name}_written', changed)})")
        longer = iter(found)
        return tuple(next(longer) if a in lists else a for a in args)

    def _prepared(self, call: Call, op: Op, args: tuple[Any, ...], outs: Sequence[torch.Tensor]) -> list[str]:
        """The very calls that the op makes for this memory, with its views taken now."""
        assert op.prepare is not None
        found = op.prepare(*outs, *[self.known(a) for a in args])
        made = call.results[0].name if call.results else call.name
        texts = []
        for function, positional, keywords in found if isinstance(found, list) else [found] if found else []:
            parts = [self.literal(f"{call.name}_{i}", a) for i, a in enumerate(positional)]
            parts += [f"{k}={self.literal(made, a)}" for k, a in keywords.items()]
            name = getattr(function, "__name__", call.op).partition(".")[0]
            function = getattr(function, "_op", function)  # torch's overload without the Python around it
            texts.append(f"{self.called(name, function)}({', '.join(parts)})")
        return texts

    def _arguments(self, op: Op, args: tuple[Any, ...], positional: bool = False) -> str:
        parts = []
        for p, a in zip(op.params, args, strict=True):
            text = self.expression(a)
            parts.append(f"{p.name}={text}" if p.keyword_only and not positional else text)
        return ", ".join(parts)

    # ---- moves ---------------------------------------------------------------------------------------

    def _look(self, call: Call) -> None:
        (source,), out = call.args, call.results[0]
        kind, options = call.op.removeprefix("box."), dict(call.options)
        if source.name in self.static:
            base = self.static[source.name]
            self.static[out.name] = base if kind == "same" else looked(kind, options, base)
        elif kind == "same":
            self.own[out.name] = self.own[source.name]
        else:
            size = options["stop"] - options["start"]
            text = f"{self.own[source.name]}.narrow({options['dim']}, {options['start']}, {size})"
            self.line_(f"{self.variable(out)} = {text}")

    def _copy(self, call: Call) -> None:
        (source,), out = call.args, self._placed(call.results[0])
        where = call.option("where")
        if where is None:
            text = self.expression(source)
        elif source.name in self.static:
            text = self.called(f"{source.name}_piece", self.static[source.name][where])
        else:
            text = f"{self.own[source.name]}[{self.called('where', where)}]"
        self.line_(f"{self.called(call.results[0].name, out)}.copy_({text})")

    def _merge(self, call: Call) -> None:
        out, pieces = self._placed(call.results[0]), [self.static[a.name] for a in call.args]
        fill = call.option("fill")
        if fill:
            self._request(call, Request("fill", (), (out, neutral(fill, out.dtype))))
        for where, places in call.option("receives"):
            for request in reduced(out[where], [pieces[i] for i in places], call.option("reduces"), self._fresh):
                self._request(call, request)
        self.static[call.results[0].name] = out

    def _move(self, call: Call) -> None:
        """A step of a boxing, as the requests that it makes of memory that is known; else it is done as it comes."""
        source = call.args[0]
        if isinstance(source, tuple):
            self._fused(call)
            return
        out, shape = self._placed(call.results[0]), self.forms[source.name].shape
        step = step_of(call, self.rank, shape)
        if source.name in self.static:
            self._requests(call, act(step, self.static[source.name], out=out, new=self._scratch(call)))
        else:
            given = [self.called("step", step), self.expression(source), self.called("line", self.line)]
            given.append(f"out={self.called(call.name, out)}")
            self.line_(f"{self.called('box', execute)}({', '.join(given)})")
        self.static[call.results[0].name] = out

    def _fused(self, call: Call) -> None:
        """One all-reduce over memory in which its members lie side by side."""
        results = call.results[: len(call.args[0])]
        first, last = results[0], results[-1]
        size = (last.place.offset + last.bytes - first.place.offset) // dtypes.named(first.dtype).itemsize
        for source, r in zip(call.args[0], results, strict=True):
            memory = self.static[r.name] = self._placed(r)
            known = self.static.get(source.name)
            if known is None or known.data_ptr() != memory.data_ptr():
                self.line_(f"{self.called(r.name, memory)}.copy_({self.expression(source)})")
        bucket = Result("bucket", first.dtype, (size,), first.place)
        flat = self._placed(bucket)
        one = Call(call.op, call.args, (bucket,), call.options, call.name, call.at)
        self._requests(call, act(step_of(one, self.rank, (size,)), flat, out=flat, new=self._scratch(call)))

    def _scratch(self, call: Call) -> Callable[[Sequence[int], torch.dtype], torch.Tensor]:
        """Memory for what a step needs meanwhile: in the arena where it is planned."""
        r = call.results[-1]
        if not r.name.endswith(".scratch"):
            return self._fresh
        at = r.place.offset

        def new(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
            nonlocal at
            form = Result(r.name, dtypes.of_torch(dtype).name, tuple(shape), r.place)
            made = self.typed(self.arena, at, form)
            at += aligned(form.bytes)
            return made

        return new

    def _fresh(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=dtype, device=self.arena.device)

    def _requests(self, call: Call, requests: Iterator[Request]) -> None:
        for request in requests:
            self._request(call, request)

    def _request(self, call: Call, request: Request) -> None:
        hint = call.results[0].name
        given = [self.literal(f"{hint}_{request.method}", a) for a in request.args]
        if request.ranks:
            group = self.called("group_" + "_".join(map(str, request.ranks[:4])), self.line.group(request.ranks))
            self.line_(f"{group}.{request.method}({', '.join(given)})")
        elif request.method == "combine":
            function = COMBINE[request.args[3]]
            self.line_(f"{self.called(function.__name__, function)}({given[1]}, {given[2]}, out={given[0]})")
        elif request.local:
            self.line_(f"{given[0]}.{request.method}_({given[1]})")
        else:
            self.line_(f"{self.called('line', self.line)}.exchange({', '.join(given)})")


def _strides(r: Result) -> tuple[int, ...]:
    if r.strides is not None:
        return r.strides
    found, step = [], 1
    for n in reversed(r.shape):
        found.append(step)
        step *= max(n, 1)
    return tuple(reversed(found))


def _dependents(step: Step) -> dict[Dependency, list[int]]:
    """By register, and for the number of the act, the calls whose memory depends on it."""
    found: dict[Dependency, list[int]] = {}
    of: dict[str, set[Dependency]] = {}
    for i, call in enumerate(step.calls):
        mine: set[Dependency] = {"act"} if call.op == "accumulate" else set()
        for name in call.operands():
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
