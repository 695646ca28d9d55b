"""What a chain does, call by call: values that say of each operand and result where it lies. They print, and parse.

%x = read() : float32[8,16] register 3+0
%m.weight = variable() : float32[4,16] variable
%m-linear = linear(%x, %m.weight, None) : float32[8,4] arena+0    # m, train.py:12
%whole = box.all_reduce(%m-linear, ranks=(0, 1), reduce='sum') : float32[8,4] arena+128

An op with a dot in its name isn't in the registry: `box.` moves data, between ranks or between places of this one.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

import msgspec

from weft.core import dtype as dtypes
from weft.core import literal
from weft.core.errors import CompileError, WeftError
from weft.core.literal import NAME
from weft.core.reading import MALFORMED
from weft.ops import OPS

Kind = Literal["register", "arena", "variable", "constant", "made", "view"]
HEAD: Final = ("read", "variable")  # they only name what is there already
IN_PLACE: Final = ("box.all_reduce", "box.joined")  # they may leave what they read where it lies


class Place(msgspec.Struct, frozen=True):
    """Where a value lies: `offset` bytes into a copy of a register, and `step` further in each act of a launch; in the
    chain's arena; in a variable; computed once; in memory that each act allocates; or in that of another value, `of`,
    at which it looks."""

    kind: Kind
    offset: int = 0
    register: int = 0
    step: int = 0
    of: str = ""

    def __str__(self) -> str:
        if self.kind == "register":
            return f"register {self.register}+{self.offset}" + (f"+{self.step} each" if self.step else "")
        if self.kind == "arena":
            return f"arena+{self.offset}"
        return f"view of %{self.of}" if self.kind == "view" else self.kind


class Ref(msgspec.Struct, frozen=True):
    """A value, where a call reads it."""

    name: str


class Result(msgspec.Struct, frozen=True):
    """A value that a call makes. `strides`, in elements, where they aren't those of its shape in one piece."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    place: Place
    strides: tuple[int, ...] | None = None

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * dtypes.named(self.dtype).itemsize

    @property
    def extent(self) -> int:
        """How far from its first byte it reaches, gaps included."""
        if self.strides is None or not self.bytes:
            return self.bytes
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (last + 1) * dtypes.named(self.dtype).itemsize

    def __str__(self) -> str:
        strides = f" strides ({','.join(map(str, self.strides))})" if self.strides is not None else ""
        return f"{self.dtype}[{','.join(map(str, self.shape))}] {self.place}{strides}"


class Call(msgspec.Struct, frozen=True):
    """One step of a chain. `name` and `at` say which node of the job it comes from, and which line of the program."""

    op: str
    args: tuple[Any, ...] = ()
    results: tuple[Result, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    name: str = ""
    at: str = ""

    def option(self, key: str, default: Any = None) -> Any:
        return next((value for k, value in self.options if k == key), default)

    def operands(self) -> Iterator[str]:
        """The names that it reads, in order."""
        for a in self.args:
            if isinstance(a, Ref):
                yield a.name
            elif isinstance(a, tuple):
                yield from (v.name for v in a if isinstance(v, Ref))

    def __str__(self) -> str:
        try:
            given = [literal.show(a, _named) for a in self.args]
            given += [f"{key}={literal.show(value, _named)}" for key, value in self.options]
        except TypeError as cause:
            raise CompileError(f"in a plan, {cause}") from None
        names = ", ".join(f"%{r.name}" for r in self.results)
        named = "" if self.results and self.results[0].name == self.name else f"{self.name}: " if self.name else ""
        left, forms = (f"{names} = ", f" : {', '.join(map(str, self.results))}") if names else ("", "")
        return f"{named}{left}{self.op}({', '.join(given)}){forms}" + (f"    # {self.at}" if self.at else "")


class Step(msgspec.Struct, frozen=True):
    """All that one act of a chain does, over `arena` bytes that it keeps for itself."""

    calls: tuple[Call, ...] = ()
    arena: int = 0

    def __str__(self) -> str:
        return "\n".join([f"arena {self.arena}", *map(str, self.calls)])


def overwrites(op: str) -> bool:
    """Whether an op may make its result where an operand of the same form lies."""
    declared = OPS.get(op)
    if declared is None or declared.random or len(declared.returns) != 1:
        return False
    return declared.elementwise and declared.out_kernel is not None


def _named(a: Any) -> str | None:
    return a.name if isinstance(a, Ref) else None


# ---- reading -----------------------------------------------------------------------------------------

_LEFT: Final = re.compile(rf"(?:(?P<name>{NAME}): )?(?:(?P<left>%{NAME}(?:, %{NAME})*) = )?(?P<op>[\w.]+)\(")
_INSIDE: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[()]""")
_RIGHT: Final = re.compile(r"(?: : (?P<forms>.*?))?(?:    # (?P<at>.*))?")
_RESULT: Final = re.compile(
    rf"(\w+)\[([\d,]*)\] (?:register (\d+)\+(\d+)(?:\+(\d+) each)?|arena\+(\d+)|view of %({NAME})|"
    rf"({'|'.join(k for k in get_args(Kind) if k not in ('register', 'arena', 'view'))}))"
    r"(?: strides \(([\d,]*)\))?(?:, |$)"
)


def parse(lines: Sequence[str], first: int = 1) -> Step:
    """The inverse of str(step); `first` is the number of its first line, for errors."""
    head = re.fullmatch(r"arena (\d{1,18})", lines[0]) if lines else None
    if head is None:
        raise CompileError(f"line {first}: what a chain does begins like `arena 4096`; this is {lines[:1]!r}")
    calls = []
    for number, line in enumerate(lines[1:], first + 1):
        try:
            calls.append(_call(line))
        except (*MALFORMED, WeftError) as cause:
            raise CompileError(f"line {number}: {cause} in {line!r}") from None
    return Step(tuple(calls), int(head[1]))


def _call(line: str) -> Call:
    m = _LEFT.match(line)
    if m is None:
        raise ValueError("no call")
    depth, end = 1, m.end()
    while depth:
        token = _INSIDE.search(line, end)
        if token is None:
            raise ValueError("a bracket is never closed")
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        end = token.end()
    right = _RIGHT.fullmatch(line, end)
    if right is None:
        raise ValueError(f"can't read {line[end:]!r}")
    args, options = literal.read(line[m.end() : end - 1], Ref)
    names = [n[1:] for n in m["left"].split(", ")] if m["left"] else []
    results = tuple(_results(names, right["forms"] or ""))
    name = m["name"] or (names[0] if names else "")
    return Call(m["op"], args, results, tuple(options.items()), name, right["at"] or "")


def _results(names: list[str], text: str) -> Iterator[Result]:
    at = 0
    for name in names:
        m = _RESULT.match(text, at)
        if m is None:
            raise ValueError(f"{text[at:]!r} says no form and place of %{name}")
        at = m.end()
        shape = _numbers(m[2])
        if m[3]:
            place = Place("register", int(m[4]), int(m[3]), int(m[5] or 0))
        elif m[6]:
            place = Place("arena", int(m[6]))
        else:
            place = Place("view", of=m[7]) if m[7] else Place(m[8])  # type: ignore[arg-type]
        yield Result(name, dtypes.named(m[1]).name, shape, place, None if m[9] is None else _numbers(m[9]))
    if at != len(text):
        raise ValueError(f"{text[at:]!r} is of no value")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


# ---- checking ----------------------------------------------------------------------------------------


def verify(step: Step, registers: Mapping[int, int], acts: int = 1) -> None:
    """Raise CompileError unless every value is made before it is read, once, in memory that is there, and no two that
    are needed at one time lie in one place. `registers` gives the bytes of one copy of those that the task has."""
    results: dict[str, Result] = {}
    last: dict[str, int] = {}
    for i, call in enumerate(step.calls):
        _check_op(call)
        for name in call.operands():
            if name not in results:
                raise CompileError(f"{_line(call)}: it reads %{name}, which no call before it makes")
            last[name] = i
        for r in call.results:
            if r.name in results:
                raise CompileError(f"{_line(call)}: %{r.name} is made twice")
            if r.place.kind == "view" and r.place.of not in results:
                raise CompileError(f"{_line(call)}: it looks at %{r.place.of}, which no call before it makes")
            _check_bounds(call, r, step.arena, registers, acts)
            results[r.name] = r
    _check_overlaps(step, results, last)


def _line(call: Call) -> str:
    return f"in `{call!s:.200}`"


def _check_op(call: Call) -> None:
    if "." in call.op or call.op in (*HEAD, "accumulate", "pack"):
        return
    op = OPS.get(call.op)
    if op is None:
        raise CompileError(f"{_line(call)}: no op is called {call.op!r}")
    if len(call.args) != len(op.params):
        raise CompileError(f"{_line(call)}: {call.op} takes {len(op.params)} arguments, and here are {len(call.args)}")
    for p, a in zip(op.params, call.args, strict=True):
        if p.kind == "tensor" and not isinstance(a, Ref):
            raise CompileError(f"{_line(call)}: {call.op}'s {p.name} must be a value, and is {a!r:.80}")
    if op.returns and len(call.results) != len(op.returns):
        raise CompileError(f"{_line(call)}: {call.op} makes {len(op.returns)} values, and here are {len(call.results)}")


def _check_bounds(call: Call, r: Result, arena: int, registers: Mapping[int, int], acts: int) -> None:
    p = r.place
    if r.strides is not None and len(r.strides) != len(r.shape):
        raise CompileError(f"{_line(call)}: %{r.name} has {len(r.shape)} dimensions and {len(r.strides)} strides")
    if p.kind not in ("register", "arena"):
        return
    if p.kind == "register" and p.register not in registers:
        raise CompileError(f"{_line(call)}: the task has no register {p.register}")
    size = registers[p.register] if p.kind == "register" else arena
    if p.offset + p.step * (acts - 1) + r.extent > size:
        raise CompileError(f"{_line(call)}: %{r.name} ends beyond the {size} bytes that are there")
    if p.offset % dtypes.named(r.dtype).itemsize:
        raise CompileError(f"{_line(call)}: %{r.name} of {r.dtype} begins at {p.offset}, between two numbers")


class _Span(msgspec.Struct, frozen=True):
    """A stretch of memory from the call that first writes there to the last that reads it."""

    begin: int
    end: int
    first: int
    last: int
    name: str


def _check_overlaps(step: Step, results: Mapping[str, Result], last: Mapping[str, int]) -> None:
    until = dict(last)
    for r in reversed(list(results.values())):  # who looks at a value needs its memory
        if r.place.kind == "view":
            until[r.place.of] = max(until.get(r.place.of, 0), until.get(r.name, 0))
    shared = {  # handed on where they lie
        (name, r.name) for c in step.calls if c.op in IN_PLACE for name in c.operands() for r in c.results
    }
    by_memory: dict[tuple[str, int], list[_Span]] = {}
    for i, call in enumerate(step.calls):
        for r in call.results:
            p = r.place
            if p.kind not in ("register", "arena") or not r.bytes or call.op == "read":
                continue
            exported = p.kind == "register"  # somebody else reads it afterwards
            end = len(step.calls) if exported else max(i, until.get(r.name, i))
            span = _Span(p.offset, p.offset + r.extent, i, end, r.name)
            by_memory.setdefault((p.kind, p.register), []).append(span)
    for spans in by_memory.values():
        for a, b in _clashes(spans):
            call = step.calls[b.first]
            same = results[a.name].place == results[b.name].place and overwrites(call.op)
            if a.last == b.first and same and a.name in call.operands():
                continue
            if {(a.name, b.name), (b.name, a.name)} & shared or _interleaved(results[a.name], results[b.name]):
                continue
            raise CompileError(f"{_line(call)}: %{b.name} lies where %{a.name} does, which is still needed")


def _interleaved(a: Result, b: Result) -> bool:
    """Whether two lie in one stretch without a byte in common: parts of a whole, side by side in an inner dimension."""
    if a.strides is None or a.strides != b.strides or a.dtype != b.dtype:
        return False
    strides = a.strides
    a, b = sorted((a, b), key=lambda r: r.place.offset)
    gap = (b.place.offset - a.place.offset) // dtypes.named(a.dtype).itemsize
    return any(
        m * s <= gap and gap + n * s <= whole
        for m, n, s, whole in zip(a.shape, b.shape, strides, (math.inf, *strides), strict=False)
    )


def _clashes(spans: Iterable[_Span]) -> Iterator[tuple[_Span, _Span]]:
    """Pairs that overlap in memory and in time, the earlier first."""
    live: list[tuple[int, int, int, _Span]] = []  # begin, end, number: by place
    ending: list[tuple[int, int, tuple[int, int, int, _Span]]] = []
    longest = 0
    for n, span in enumerate(sorted(spans, key=lambda s: s.first)):
        while ending and ending[0][0] < span.first:
            live.remove(ending.pop(0)[2])
        at = bisect_left(live, span.end, key=lambda e: e[0])
        for entry in reversed(live[:at]):
            if entry[0] + longest <= span.begin:
                break
            if entry[1] > span.begin:
                yield entry[3], span
        entry = (span.begin, span.end, n, span)
        insort(live, entry, key=lambda e: e[:3])
        insort(ending, (span.last, n, entry), key=lambda e: e[:2])
        longest = max(longest, span.end - span.begin)
