"""The source of a chain's function: its lines, and the names of its parameters.

When a call is rewritten for other memory, it asks for the same names in the same order.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from types import CodeType, FunctionType
from typing import Any, Final

import torch

from weft.core import dtype as dtypes
from weft.plan.calls import Call, Ref, Result
from weft.plan.spans import contiguous

HEAD: Final = 2  # the number of a function's first line in its source
SPACE: Final[dict[str, Any]] = {"__builtins__": builtins}  # which torch needs to call its modes' Python
Tell = Callable[[Sequence[Call], Sequence[int]], object]  # calls, and when each began and the last ended


_OTHERS: Final = re.compile(r"\W", re.ASCII)


@functools.lru_cache(maxsize=1 << 12)
def _identifier(hint: str) -> str:
    """A name for Python's source, in ASCII: digits of other scripts stand in none, and Python takes some letters for
    others."""
    name = _OTHERS.sub("_", hint).lstrip("_0123456789") or "v"
    return f"{name}_" if keyword.iskeyword(name) else name


class Static(dict[str, torch.Tensor]):
    """Values with known memory; and for each tensor, the first value that it was."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[int, str] = {}

    def __setitem__(self, name: str, t: torch.Tensor) -> None:
        self.first.setdefault(id(t), name)
        super().__setitem__(name, t)


class Memory:
    """The memory of results: the current copies of the registers, the act of the launch, and the arena."""

    def __init__(self, arena: torch.Tensor, slots: Mapping[int, torch.Tensor] | None = None) -> None:
        self.arena = arena
        self.static = Static()
        self.slots: Mapping[int, torch.Tensor] = slots or {}
        self.phase = 0
        self._bases: dict[tuple[int, str], torch.Tensor] = {}

    def of(self, r: Result) -> torch.Tensor | None:
        """The memory of a result; None if it isn't planned."""
        p = r.place
        if p.kind == "register":
            return self.typed(self.slots[p.register], p.offset + p.step * self.phase, r)
        return self.typed(self.arena, p.offset, r) if p.kind == "arena" else None

    def placed(self, r: Result) -> torch.Tensor:
        memory = self.of(r)
        assert memory is not None, f"%{r.name} has no place"
        return memory

    def typed(self, memory: torch.Tensor, at: int, r: Result) -> torch.Tensor:
        """Bytes of a register or of the arena, seen as a tensor."""
        dtype = dtypes.named(r.dtype)
        base = self._bases.get((id(memory), r.dtype))
        if base is None:
            whole = memory[: memory.numel() // dtype.itemsize * dtype.itemsize].view(dtype.torch)
            base = self._bases[id(memory), r.dtype] = whole
        strides = contiguous(r.shape) if r.strides is None else r.strides
        return base.as_strided(r.shape, strides, base.storage_offset() + at // dtype.itemsize)

    def fresh(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty(tuple(shape), dtype=dtype, device=self.arena.device)

    def knows(self, a: Any) -> bool:
        """Whether an argument is a constant, or a value with known memory."""
        if isinstance(a, Ref):
            return a.name in self.static
        return all(map(self.knows, a)) if isinstance(a, tuple) else True

    def known(self, a: Any) -> Any:
        """An argument with tensors in place of values."""
        if isinstance(a, Ref):
            return self.static[a.name]
        return [self.known(v) for v in a] if isinstance(a, tuple) and any(isinstance(v, Ref) for v in a) else a


class Written:
    """The lines generated for a call, and the names in them, in the order in which they were asked for."""

    __slots__ = ("call", "lines", "names")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.lines: list[str] = []
        self.names: list[str] = []


class Source:
    """One generated function. Values with known memory are parameters with defaults, which are as fast as local
    variables, and compile in linear time, unlike closures. The other values are local variables."""

    def __init__(self, name: str, memory: Memory) -> None:
        self.name, self.memory = name, memory
        self.file = f"<weft chain {name}>"
        self.cells: dict[str, Any] = {}  # the parameters
        self.own: dict[str, str] = {}  # values that are variables of the function
        self.written: list[Written] = []
        self.now = Written(Call(""))
        self.again: Iterator[str] | None = None  # the names from when the call was first written
        self.text = ""
        self.origins: dict[str, list[Call]] = {}  # of the lines of a file
        self.given: list[str] = []
        self.code: CodeType | None = None
        self.timed: tuple[CodeType, list[Call]] | None = None

    def begin(self, call: Call) -> None:
        self.now = Written(call)
        self.written.append(self.now)

    def rewrite(self, was: Written, write: Callable[[Call], None]) -> bool:
        """Write a call again; False if its source has changed."""
        self.now, self.again = Written(was.call), iter(was.names)
        try:
            write(was.call)
        except StopIteration:
            return False
        finally:
            self.again = None
        return self.now.lines == was.lines

    def compile(self) -> None:
        lines = self._lines()
        own = set(self.own.values())
        self.given = [k for k in self.cells if k not in own]
        self.code = self._compiled(self.file, lines, self.given)
        text = [line for line, _ in lines] or ["pass"]
        self.text = f"def {self._name}():\n" + "\n".join(f"    {line}" for line in text)

    @property
    def _name(self) -> str:
        return _identifier(self.name)

    def _compiled(self, file: str, lines: Sequence[tuple[str, Call]], given: Sequence[str]) -> CodeType:
        self.origins[file] = [call for _, call in lines]
        body = "\n".join(f"    {line}" for line, _ in lines) or "    pass"
        space: dict[str, Any] = {}
        exec(compile(f"def {self._name}({', '.join(given)}):\n{body}\n", file, "exec"), space)
        return space[self._name].__code__

    def function(self, tell: Tell | None = None) -> Callable[[], None]:
        """The compiled function over the current parameters; with timing of each call if `tell` is given."""
        assert self.code is not None
        given = tuple(map(self.cells.__getitem__, self.given))
        if tell is None:
            return FunctionType(self.code, SPACE, self._name, given)
        self.timed = self.timed or self._with_clock()
        code, calls = self.timed
        return FunctionType(code, SPACE, self._name, (*given, perf_counter_ns, partial(tell, calls)))

    def _with_clock(self) -> tuple[CodeType, list[Call]]:
        lines: list[tuple[str, Call]] = []
        calls: list[Call] = []
        for line, call in self._lines():
            if not calls or call is not calls[-1]:
                lines.append((f"_{len(calls)} = _now()", call))
                calls.append(call)
            lines.append((line, call))
        if calls:
            times = ", ".join(f"_{i}" for i in range(len(calls)))
            lines.append((f"_tell(({times}, _now()))", calls[-1]))
        return self._compiled(f"{self.file} with a clock", lines, [*self.given, "_now", "_tell"]), calls

    def failing(self, error: Exception) -> Call | None:
        """The call whose line raised."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename not in self.origins:
            trace = trace.tb_next
        return None if trace is None else self.origins[trace.tb_frame.f_code.co_filename][trace.tb_lineno - HEAD]

    def _lines(self) -> list[tuple[str, Call]]:
        """All lines with their calls. A variable is deleted after the last line that reads it."""
        found = [(line, w.call) for w in self.written for line in w.lines]
        last = {word: i for i, (line, _) in enumerate(found) for word in re.findall(r"\w+", line)}
        gone: dict[int, list[str]] = {}
        for name in sorted(set(self.own.values()) & last.keys()):
            gone.setdefault(last[name], []).append(name)
        for i in sorted(gone, reverse=True):
            if i < len(found) - 1:
                found.insert(i + 1, (f"del {', '.join(gone[i])}", found[i][1]))
        return found

    def line(self, text: str) -> None:
        self.now.lines.append(text)

    def called(self, hint: str, value: Any) -> str:
        """A name for a parameter of the function."""
        if self.again is not None:
            name = next(self.again)
        else:
            base, n = _identifier(hint), 1
            name = base
            while name in self.cells and self.cells[name] is not value:
                n += 1
                name = f"{base}_{n}"
        self.now.names.append(name)
        self.cells[name] = value
        return name

    def variable(self, r: Result) -> str:
        """A name for a local variable of the function."""
        if self.again is None:
            self.own[r.name] = self.called(r.name, object())
            self.cells[self.own[r.name]] = None  # reserved
        else:
            next(self.again)
            self.now.names.append(self.own[r.name])
        return self.own[r.name]

    def expression(self, a: Any) -> str:
        """An argument as source text."""
        if isinstance(a, Ref):
            return self.called(a.name, self.memory.static[a.name]) if a.name in self.memory.static else self.own[a.name]
        if isinstance(a, tuple) and any(isinstance(v, Ref) for v in a):
            if all(v is None or v.name in self.memory.static for v in a):
                return self.called("many", [None if v is None else self.memory.static[v.name] for v in a])
            return "[" + ", ".join(self.expression(v) for v in a) + "]"
        if a is None or isinstance(a, (bool, int, str)) or (isinstance(a, float) and math.isfinite(a)):
            return repr(a)
        if isinstance(a, tuple) and all(isinstance(v, int) for v in a):
            return repr(a)
        return self.called("c", a)

    def literal(self, hint: str, a: Any) -> str:
        """A tensor as the name of its value; anything else as a parameter."""
        if isinstance(a, torch.Tensor):
            return self.called(self.memory.static.first.get(id(a), hint), a)
        if isinstance(a, (list, tuple, dict)) and not (isinstance(a, tuple) and all(isinstance(v, int) for v in a)):
            return self.called(hint, a)
        return self.expression(a)
