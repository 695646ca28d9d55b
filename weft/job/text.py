"""A job as text: one node a line, in a small language that `parse` reads back.

job Train_0, 4 micro-batches
%x = input() : float32[8,16] cpu:[0,1] (S(0))
%m.weight = variable() : float32[4,16] cpu:[0,1] (B)
%m-linear = linear(%x, %m.weight, None) : float32[8,4] cpu:[0,1] (S(0))    # m, train.py:12
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

from weft.boxing import routes, steps
from weft.core import dtype as dtypes
from weft.core import literal
from weft.core import placement as placements
from weft.core import sbp as sbps
from weft.core.amount import amount
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.errors import CompileError, WeftError
from weft.core.literal import LONG, NAME, some
from weft.core.reading import MALFORMED
from weft.core.spec import Spec
from weft.job.job import Job
from weft.job.value import Node, Value

PLACE = "    # "


def show(job: Job) -> str:
    """The whole job as text, which `parse` reads back."""
    return "\n".join([_head(job), *map(show_node, job.nodes)]) + "\n"


def folded(job: Job) -> str:
    """Abbreviated text: see `folded_lines`."""
    return "\n".join([_head(job), *(line for _, line in folded_lines(job))]) + "\n"


def folded_lines(job: Job) -> Iterator[tuple[Node, str]]:
    """Nodes and their text: with the first members of long lists, and the first and the last of many variables in a
    row, such as an optimizer's states."""
    for state, run in itertools.groupby(job.nodes, lambda n: n.op == "variable" and not n.at):
        nodes = list(run)
        if state and len(nodes) > LONG:
            size = sum(v.bytes for n in nodes for v in n.outputs)
            ends = (nodes[0].outputs[0].name, nodes[-1].outputs[0].name)
            yield nodes[0], f"%{ends[0]} ... %{ends[1]}: {len(nodes)} variables, {amount(size)}"
        else:
            yield from ((n, show_node(n, LONG)) for n in nodes)


def _head(job: Job) -> str:
    return f"job {job.name}" + (f", {job.micro_batches} micro-batches" if job.micro_batches > 1 else "")


def without_places(text: str) -> str:
    """The text without lines of the program, which may differ between ranks."""
    return "\n".join(line.partition(PLACE)[0] for line in text.splitlines())


def shared_hash(job: Job) -> str:
    """The hash of the job, on which all ranks must agree."""
    return hashlib.sha256("\n".join([_head(job), *map(_call, job.nodes)]).encode()).hexdigest()[:16]


def show_node(n: Node, most: int | None = None) -> str:
    """A node's line of text; lists with more than `most` members are abbreviated."""
    return _call(n, most) + (f"{PLACE}{n.where}" if n.where else "")


def _call(n: Node, most: int | None = None) -> str:
    """The line without the place in the program, which may differ between ranks."""
    left = some([f"%{v.name}" for v in n.outputs], most)
    forms = some([v.form for v in n.outputs], most)
    marked = " @micro" * n.micro + " @late" * n.late + " @ranked" * n.ranked
    marked += "" if n.stage is None else f" @stage({n.stage})"
    called = f"{n.op}({', '.join([f'%{a.name}' if isinstance(a, Value) else _argument(a, most) for a in n.args])})"
    named = "" if n.outputs and n.outputs[0].name == n.name else f"{n.name}: "
    return named + (f"{left} = " if left else "") + called + (f" : {forms}" if forms else "") + marked


def _argument(a: Any, most: int | None = None) -> str:
    try:
        return literal.show(a, lambda v: v.name if isinstance(v, Value) else None, most)
    except TypeError as cause:
        raise CompileError(f"in a job, {cause}") from None


_LINE = re.compile(
    rf"(?:(?P<name>{NAME}): )?(?:(?P<left>%{NAME}(?:, %{NAME})*) = )?(?P<op>\w+)\((?P<args>.*?)\)"
    rf"(?: : (?P<forms>[^@#]+?))?(?P<marks>(?: @[\w()]+)*)(?:    # (?P<where>.*))?$"
)


def parse(text: str) -> Job:
    """The inverse of `show`; the values of variables aren't in the text."""
    lines = text.strip("\n").split("\n")
    head = re.fullmatch(r"job (\S+?)(?:, (\d+) micro-batches)?", lines[0])
    if head is None:
        raise CompileError(f"line 1: a job begins like `job Train_0`; this is {lines[0]!r}")
    job = Job(head[1])
    if head[2]:
        if len(head[2]) > 9:
            raise CompileError(f"line 1: no step has as many micro-batches: {lines[0][:80]!r}")
        job.micro_batches = int(head[2])
    values: dict[str, Value] = {}
    for number, line in enumerate(lines[1:], 2):
        m = _LINE.match(line)
        if m is None:
            raise CompileError(f"line {number}: can't read {line!r}")
        try:
            job.append(_node(m, values))
        except (*MALFORMED, WeftError) as cause:
            raise CompileError(f"line {number}: {cause} in {line!r}") from None
    return job


def _node(m: re.Match[str], values: dict[str, Value]) -> Node:
    names = [n[1:] for n in m["left"].split(", ")] if m["left"] else []
    forms = [_form(f) for f in re.split(r", (?=\w+\[)", m["forms"])] if m["forms"] else []
    outputs = tuple(Value(n, *f) for n, f in zip(names, forms, strict=True))
    args, options = literal.read(m["args"], values.__getitem__)
    if options:
        raise ValueError(f"a node takes no argument by keyword: {', '.join(options)}")
    values.update({v.name: v for v in outputs})
    marks = m["marks"].split()
    stage = next((int(k[7:-1]) for k in marks if k.startswith("@stage(")), None)
    scope, _, at = (m["where"] or "").rpartition(", ")
    name = m["name"] or names[0]
    node = Node(name, m["op"], args, outputs, scope, at, "@micro" in marks, "@ranked" in marks, stage)
    node.late = "@late" in marks
    if node.op == "boxing":
        step = steps.parse(args[1])
        many = isinstance(args[0], tuple)
        pairs = zip(args[0] if many else args[:1], outputs, strict=True)
        found = [routes.Route(a.spec, b.spec, (step,)) for a, b in pairs if a.spec and b.spec]
        node.extra = {"routes": found} if many else {"route": found[0]}
    return node


def _form(text: str) -> tuple[tuple[int, ...], DType, Spec | None, Device]:
    m = re.fullmatch(r"(\w+)\[([\d,]*)\] (\S+)(?: \((.+)\))?", text.strip())
    if m is None:
        raise ValueError(f"{text!r} is no form of a value")
    shape = tuple(map(int, m[2].split(","))) if m[2] else ()
    dtype = dtypes.named(m[1])
    if m[4] is None:
        return shape, dtype, None, Device(m[3])
    spec = Spec(shape, dtype, placements.parse(m[3]), tuple(map(sbps.parse, m[4].split(", "))))
    return shape, dtype, spec, Device("cpu")
