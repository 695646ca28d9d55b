"""A chain's calls, as values: each operand and result with its place in memory. They print and parse.

%x = read() : float32[8,16] register 3+0
%m.weight = variable() : float32[4,16] variable
%m-linear = linear(%x, %m.weight, None) : float32[8,4] arena+0    # m, train.py:12
%whole = box.all_reduce(%m-linear, ranks=(0, 1), reduce='sum') : float32[8,4] arena+128

An op with a dot in its name isn't in the registry: `box.` moves data, between ranks or between places of this one.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec.structs import replace

from weft.core import dtype as dtypes
from weft.core import literal
from weft.core.amount import amount
from weft.core.errors import CompileError, WeftError
from weft.core.literal import NAME, some
from weft.core.reading import MALFORMED
from weft.ops import OPS
from weft.plan.overwriting import overwrites
from weft.plan.spans import Span, Strided, Use, clashes, contiguous, needed

Kind = Literal["register", "arena", "variable", "constant", "made", "view", "inside"]
KEEPS: Final = ("accumulate", "pack")  # the form of what they take
OWN: Final = {  # calls that are no ops; how many values each takes, and makes
    **dict.fromkeys(("read", "variable", "graph.input", "graph.number"), (0, 1)),
    **dict.fromkeys(KEEPS, (1, 1)), "graph.output": (1, 0),
}  # fmt: skip
VIEWS: Final = ("box.same", "box.slice")  # their results are views
MOVES: Final = (
    *VIEWS, "box.copy", "box.joined", "box.merge", "box.all_reduce", "box.reduce_scatter", "box.all_gather",
    "box.all_to_all", "box.to_partial", "box.split_to_partial", "box.exchange",
)  # fmt: skip
INDENT: Final = "    "
MOST: Final = 10**14  # bytes
LONG: Final = 300  # characters of a call in an error
FORM_ONLY: Final = ("ones_like", "zeros_like", "full_like")  # the operand's form is all that they read


class Place(msgspec.Struct, frozen=True):
    """The memory of a value, by kind: `register`, at `offset` bytes in a copy, and `step` further in each act of a
    launch; the chain's `arena`; a `variable`; a `constant`, computed once; `made`, allocated in each act; a `view` of
    the value `of`; or `inside` a fused call, without memory."""

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
    """A value that a call makes. `strides`, in elements, if it isn't contiguous."""

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
        """The bytes from its first to its last element."""
        return self.bytes if self.strides is None else self.strided.extent

    @property
    def strided(self) -> Strided:
        strides = contiguous(self.shape) if self.strides is None else self.strides
        return Strided(self.shape, strides, dtypes.named(self.dtype).itemsize)

    def __str__(self) -> str:
        strides = f" strides ({','.join(map(str, self.strides))})" if self.strides is not None else ""
        return f"{self.dtype}[{','.join(map(str, self.shape))}] {self.place}{strides}"


class Call(msgspec.Struct, frozen=True):
    """One step of a chain. `name` and `at`: the job's node, and the program's line; `calls`: what a fused one does."""

    op: str
    args: tuple[Any, ...] = ()
    results: tuple[Result, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    name: str = ""
    at: str = ""
    calls: tuple[Call, ...] = ()

    def option(self, key: str, default: Any = None) -> Any:
        return next((value for k, value in self.options if k == key), default)

    def operands(self) -> Iterator[str]:
        """The names that it reads, in order."""
        for a in self.args:
            if isinstance(a, Ref):
                yield a.name
            elif isinstance(a, tuple):
                yield from (v.name for v in a if isinstance(v, Ref))

    @property
    def brief(self) -> str:
        """What it does, and for which line of the program, for errors and reports."""
        first, *more = list(self.operands()) or [self.name]
        return f"{self.op} of {first}{f' and {len(more)} more' * bool(more)}, of {self.at}"

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int | None = None) -> str:
        """The call as text; lists of more than `most` values are abbreviated."""
        try:
            given = [literal.show(a, _named, most) for a in self.args]
            given += [f"{key}={literal.show(value, _named, most)}" for key, value in self.options]
        except TypeError as cause:
            raise CompileError(f"in a plan, {cause}") from None
        names, forms = (
            some(texts, most) for texts in ([f"%{r.name}" for r in self.results], [*map(str, self.results)])
        )
        named = "" if self.results and self.results[0].name == self.name else f"{self.name}: " if self.name else ""
        left, right = (f"{names} = ", f" : {forms}") if names else ("", "")
        text = f"{named}{left}{self.op}({', '.join(given)}){right}" + (f"    # {self.at}" if self.at else "")
        return "\n".join([text, *(f"{INDENT}{call.text(most)}" for call in self.calls)])


class Step(msgspec.Struct, frozen=True):
    """The calls of one act of a chain, over an arena of so many bytes, on one of torch's threads or all; `roomy`: its
    kernels may allocate more, to take less time."""

    calls: tuple[Call, ...] = ()
    arena: int = 0
    one_thread: bool = False
    roomy: bool = False

    def __str__(self) -> str:
        return "\n".join([self.head, *map(str, self.calls)])

    @property
    def head(self) -> str:
        return f"arena {self.arena}{', one thread' * self.one_thread}{', roomy' * self.roomy}"

    def folded(self) -> str:
        """Abbreviated text: the first members of long lists, and the first and the last of many variables in a row."""
        lines = [self.head]
        for variable, run in itertools.groupby(self.calls, lambda c: c.op == "variable"):
            calls = list(run)
            if variable and len(calls) > literal.LONG:
                size = sum(r.bytes for c in calls for r in c.results)
                lines.append(f"%{calls[0].name} ... %{calls[-1].name}: {len(calls)} variables, {amount(size)}")
            else:
                lines += [c.text(literal.LONG) for c in calls]
        return "\n".join(lines)


def _is_ref(a: Any) -> bool:
    return isinstance(a, Ref)


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


def check_bytes(n: int, where: str = "") -> None:
    """Refuse so much memory that asking for it would fail in some other way."""
    if n > MOST:
        raise CompileError(f"{where}{n} bytes are more than any machine has")


def parse(lines: Sequence[str], numbers: Sequence[int] = ()) -> Step:
    """The inverse of str(step); `numbers` are those of its lines, for errors."""
    numbers = numbers or range(1, len(lines) + 1) or (1,)
    head = re.fullmatch(r"arena (\d+)(, one thread)?(, roomy)?", lines[0]) if lines else None
    if head is None:
        raise CompileError(f"line {numbers[0]}: what a chain does begins like `arena 4096`; this is {lines[:1]!r}")
    check_bytes(int(head[1]), f"line {numbers[0]}: ")
    calls = []
    for number, line in zip(numbers[1:], lines[1:], strict=True):
        within = bool(calls) and line.startswith(INDENT)
        try:
            call = _call(line.removeprefix(INDENT) if within else line)
        except (*MALFORMED, WeftError) as cause:
            raise CompileError(f"line {number}: {cause} in {line!r:.{LONG}}") from None
        calls[len(calls) - within :] = [replace(calls[-1], calls=(*calls[-1].calls, call)) if within else call]
    return Step(tuple(calls), int(head[1]), bool(head[2]), bool(head[3]))


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


def verify(step: Step, reads: Mapping[int, int], writes: Mapping[int, int], acts: int = 1) -> None:
    """Raise CompileError unless every value is made once, before it is read, in a place that its op allows and within
    bounds, and no two live values overlap. `reads` and `writes` give the bytes of one copy of the registers that the
    task consumes and produces."""
    results: dict[str, Result] = {}
    last: dict[str, int] = {}
    for i, call in enumerate(step.calls):
        if call.op != "fused":
            check_op(call)
        for name in call.operands():
            if name not in results:
                raise CompileError(f"{shown(call)}: it reads %{name}, which no call before it makes")
            last[name] = i
        for r in call.results:
            if r.name in results:
                raise CompileError(f"{shown(call)}: %{r.name} is made twice")
            _check_kind(call, r, results)
            _check_bounds(call, r, step.arena, reads if call.op == "read" else writes, acts)
            given = results[call.args[0].name] if call.op in KEEPS else r
            if (given.dtype, given.shape) != (r.dtype, r.shape):
                raise CompileError(f"{shown(call)}: {call.op} takes and makes values of one form")
            results[r.name] = r
        if call.op == "box.joined" and not _side_by_side(call.results[0], [results[n] for n in call.operands()]):
            raise CompileError(f"{shown(call)}: its parts don't lie side by side in %{call.results[0].name}")
    _check_overlaps(step, results, last, acts)


def shown(call: Call) -> str:
    text = str(call).partition("\n")[0]
    if len(text) > LONG:
        text = f"{call.name}: {call.op}(... {len([*call.operands()])} values)    # {call.at}"[:LONG]
    return f"in `{text}`"


def check_op(call: Call) -> None:
    if call.op in OWN:
        found, wanted = (len(list(call.operands())), len(call.results)), OWN[call.op]
        elsewhere = call.op.startswith("graph.") and all(a <= b for a, b in zip(found, wanted, strict=True))
        if not elsewhere and (found != wanted or len(call.args) != wanted[0]):
            raise CompileError(f"{shown(call)}: {call.op} takes {wanted[0]} values and makes {wanted[1]}")
        return
    if call.op in MOVES:
        nothing = call.op != "box.merge" and not any(call.operands())  # nothing arrives for an empty part
        if nothing or not call.results:
            raise CompileError(f"{shown(call)}: {call.op} moves at least one value, and makes at least one")
        return
    op = OPS.get(call.op)
    if op is None:
        raise CompileError(f"{shown(call)}: no op is called {call.op!r}")
    if len(call.args) != len(op.params):
        raise CompileError(f"{shown(call)}: {call.op} takes {len(op.params)} arguments, and here are {len(call.args)}")
    for p, a in zip(op.params, call.args, strict=True):
        if p.kind == "tensor" and not isinstance(a, Ref):
            raise CompileError(f"{shown(call)}: {call.op}'s {p.name} must be a value, and is {a!r:.80}")
        if p.kind == "tensors" and not (isinstance(a, tuple) and all(v is None or isinstance(v, Ref) for v in a)):
            raise CompileError(f"{shown(call)}: {call.op}'s {p.name} must be a list of values, and is {a!r:.80}")
        if p.kind == "attribute" and (isinstance(a, Ref) or (isinstance(a, tuple) and any(map(_is_ref, a)))):
            raise CompileError(f"{shown(call)}: {call.op}'s {p.name} is no value, and here is {a!r:.80}")
    if len(call.results) != len(op.returns):
        raise CompileError(f"{shown(call)}: {call.op} makes {len(op.returns)} values, and here are {len(call.results)}")


def _check_kind(call: Call, r: Result, results: Mapping[str, Result]) -> None:
    """Check that a call can make a result in its place."""
    op, kind, why = OPS.get(call.op), r.place.kind, ""
    if call.op in ("read", "variable"):
        wanted = "register" if call.op == "read" else "variable"
        why = "" if kind == wanted else f"{call.op} names what lies in a {wanted}"
    elif kind == "variable":
        why = "only the call variable() names a variable"
    elif kind == "view":
        first = call.args[0] if call.args else None
        if not isinstance(first, Ref) or first.name != r.place.of or r.place.of not in results:
            why = f"it looks at %{r.place.of}, which isn't the first value that it reads"
        elif call.op not in VIEWS and (op is None or not op.view):
            why = f"{call.op} makes no view"
    elif call.op in VIEWS:
        why = f"{call.op} looks at what it reads"
    elif kind == "constant":
        varies = [a for a in call.operands() if call.op not in FORM_ONLY and results[a].place.kind != "constant"]
        if varies or op is None or op.random or op.writes:
            why = f"no constant is made of %{varies[0]}" if varies else f"{call.op} makes no constant"
    elif op is not None and op.view and kind == "made" and root(results, call.args[0].name).place.kind != "made":
        why = f"{call.op} of what is planned looks at it, or copies it to a place in the arena or a register"
    elif op is None and kind != "register" and (kind == "made" or call.op in OWN):
        why = f"{call.op} needs a place in a register" + (" or in the arena" if call.op in MOVES else "")
    if why:
        raise CompileError(f"{shown(call)}: %{r.name} can't lie in `{r.place}`: {why}")


def root(results: Mapping[str, Result], name: str) -> Result:
    """The result in whose memory a value lies: its own, or that of the base of a view."""
    while results[name].place.kind == "view":
        name = results[name].place.of
    return results[name]


def _check_bounds(call: Call, r: Result, arena: int, registers: Mapping[int, int], acts: int) -> None:
    p = r.place
    if r.strides is not None and len(r.strides) != len(r.shape):
        raise CompileError(f"{shown(call)}: %{r.name} has {len(r.shape)} dimensions and {len(r.strides)} strides")
    if p.kind not in ("register", "arena"):
        return
    if p.kind == "register" and p.register not in registers:
        verb = "consumes" if call.op == "read" else "produces"
        raise CompileError(f"{shown(call)}: the task {verb} no register {p.register}")
    size = registers[p.register] if p.kind == "register" else arena
    if p.offset + p.step * (acts - 1) + r.extent > size:
        raise CompileError(f"{shown(call)}: %{r.name} ends beyond the {size} bytes that are there")
    if p.offset % dtypes.named(r.dtype).itemsize:
        raise CompileError(f"{shown(call)}: %{r.name} of {r.dtype} begins at {p.offset}, between two numbers")


def _side_by_side(whole: Result, parts: Sequence[Result]) -> bool:
    """Whether parts lie one after another along a dimension of the whole, and are all of it."""
    strides, sizes = whole.strided.strides, [len(p.shape) == len(whole.shape) for p in parts]
    for dim, step in enumerate(strides if all(sizes) else ()):
        at, fits = 0, True
        for p in parts:
            place = replace(whole.place, offset=whole.place.offset + at * step * whole.strided.itemsize)
            form = (*whole.shape[:dim], p.shape[dim], *whole.shape[dim + 1 :])
            laid = all(a == b for a, b, n in zip(p.strided.strides, strides, form, strict=True) if n > 1)
            fits, at = fits and (p.place, p.shape) == (place, form) and laid, at + p.shape[dim]
        if fits and at == whole.shape[dim]:
            return True
    return False


def _row(call: Call) -> dict[str, int]:
    """The ends of values that are reduced together in one run of memory, each at the next one's beginning."""
    if call.op != "box.all_reduce" or not isinstance(call.args[0], tuple):
        return {}
    made = sorted(call.results[: len(call.args[0])], key=lambda r: r.place.offset)
    if len({(r.place.kind, r.place.register) for r in made}) > 1 or any(r.strides for r in made):
        raise CompileError(f"{shown(call)}: it reduces in one run of memory, and its results lie in several")
    return {a.name: b.place.offset for a, b in itertools.pairwise(made)}


def _check_overlaps(step: Step, results: Mapping[str, Result], last: Mapping[str, int], acts: int) -> None:
    until, root = dict(last), {}
    for r in results.values():
        root[r.name] = root[r.place.of] if r.place.kind == "view" else r.name
    for r in reversed(list(results.values())):  # a view keeps its base alive
        if r.place.kind == "view":
            until[r.place.of] = max(until.get(r.place.of, 0), until.get(r.name, 0))
    within: dict[str, set[str]] = {}  # what lies in a value: its parts, and whatever lies in them
    reduced: set[tuple[str, str]] = set()  # operands and their sums
    for c in step.calls:
        if c.op == "box.joined":
            names = {*c.operands()}
            within[c.results[0].name] = names.union(*(within.get(name, ()) for name in names))
        elif c.op == "box.all_reduce":
            reduced.update(zip(c.operands(), (r.name for r in c.results), strict=False))
    by_memory: dict[tuple[str, int], list[Span]] = {}
    pieces: dict[str, list[Span]] = {}
    for i, call in enumerate(step.calls):
        row = _row(call)
        for r in call.results:
            p = r.place
            if p.kind not in ("register", "arena") or not r.bytes or call.op == "read":
                continue
            exported = p.kind == "register"  # other tasks read it afterwards
            end = len(step.calls) if exported else max(i, until.get(r.name, i))
            until_byte = max(row.get(r.name, 0), p.offset + p.step * (acts - 1) + r.extent)
            span = Span(p.offset, until_byte, i, end, r.name)
            by_memory.setdefault((p.kind, p.register), []).append(span)
    for spans in by_memory.values():
        for a, b in clashes(spans):
            call, was, now = step.calls[b.first], results[a.name], results[b.name]
            alike = (was.place, was.dtype, was.shape, was.strides) == (now.place, now.dtype, now.shape, now.strides)
            over = a.name in overwrites(call.op, [*call.operands()]) or (a.name, b.name) in reduced
            alone = all(name == a.name for name in call.operands() if root[name] == a.name)  # no view of it as well
            if a.last == b.first and alike and over and alone:
                continue
            if a.name in within.get(b.name, ()) or b.name in within.get(a.name, ()) or _interleaved(was, now):
                continue
            pieces = pieces or _pieces(step, results)
            ends = (p.last for p in pieces.get(a.name, ()) if a.begin + p.end > b.begin and a.begin + p.begin < b.end)
            if was.place.kind == "arena" and max(ends, default=b.first) < b.first:
                continue
            raise CompileError(f"{shown(call)}: %{b.name} lies where %{a.name} does, which is still needed")


def _pieces(step: Step, results: Mapping[str, Result]) -> dict[str, list[Span]]:
    """The lifetimes of a step's values, piece by piece; empty if that can't be told."""

    def use(c: Call) -> Use:
        makes = [r.name for r in c.results]
        return Use(c.op, c.args, [*c.operands()], makes, bool(makes) and c.results[0].place.kind == "view")

    try:
        return needed(map(use, step.calls), lambda name: results[name].strided, {})
    except MALFORMED:  # arguments that no view takes
        return {}


def _interleaved(a: Result, b: Result) -> bool:
    """Whether two strided values are interleaved without a common byte: slices of a whole along inner dimensions."""
    if a.strides is None or a.strides != b.strides or a.dtype != b.dtype or a.place.step or b.place.step:
        return False
    a, b = sorted((a, b), key=lambda r: r.place.offset)
    gap = (b.place.offset - a.place.offset) // dtypes.named(a.dtype).itemsize
    whole, apart = math.inf, False  # the stride of the next outer dimension
    for s, m, n in sorted(zip(b.strides or (), a.shape, b.shape, strict=False), reverse=True):
        if m == n == 1:
            continue
        first, gap = divmod(gap, s) if s else (0, gap)
        if not s or max(m, first + n) * s > whole:
            return False
        whole, apart = s, apart or first >= m
    return apart or gap > 0
