"""Generate the source of calls that move data (see `moves`): within this rank, and between ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from weft.boxing.execute import execute, execute_together, neutral, reduced
from weft.boxing.two_level import Call as Request
from weft.compiler.arena import aligned
from weft.compiler.calls.moves import as_view, requests, step_of
from weft.compiler.calls.source import Memory, Source
from weft.core import dtype as dtypes
from weft.plan.calls import Call, Ref, Result
from weft.transport.reduction import function_of


class Carrier(NamedTuple):
    """The context of code generation: source, memory, forms of all values, and the line to other ranks."""

    source: Source
    memory: Memory
    forms: Mapping[str, Result]
    rank: int
    line: Any


def carry(w: Carrier, call: Call) -> None:
    match call.op:
        case "box.same" | "box.slice":
            _look(w, call)
        case "box.copy":
            _copy(w, call)
        case "box.joined":
            w.memory.static[call.results[0].name] = w.memory.placed(call.results[0])
        case "box.merge":
            _merge(w, call)
        case _:
            _move(w, call)


def _look(w: Carrier, call: Call) -> None:
    (source,), out = call.args, call.results[0]
    kind, options = call.op.removeprefix("box."), dict(call.options)
    if source.name in w.memory.static:
        base = w.memory.static[source.name]
        w.memory.static[out.name] = base if kind == "same" else as_view(kind, options, base)
    elif kind == "same":
        w.source.own[out.name] = w.source.own[source.name]
    else:
        size = options["stop"] - options["start"]
        text = f"{w.source.own[source.name]}.narrow({options['dim']}, {options['start']}, {size})"
        w.source.line(f"{w.source.variable(out)} = {text}")


def _copy(w: Carrier, call: Call) -> None:
    (source,), out = call.args, w.memory.placed(call.results[0])
    where = call.option("where")
    if where is None:
        text = w.source.expression(source)
    elif source.name in w.memory.static:
        text = w.source.called(f"{source.name}_piece", w.memory.static[source.name][where])
    else:
        text = f"{w.source.own[source.name]}[{w.source.called('where', where)}]"
    w.source.line(f"{w.source.called(call.results[0].name, out)}.copy_({text})")
    w.memory.static[call.results[0].name] = out


def _merge(w: Carrier, call: Call) -> None:
    out, pieces = w.memory.placed(call.results[0]), [w.memory.static[a.name] for a in call.args]
    fill = call.option("fill")
    if fill:
        _request(w, call, Request("fill", (), (out, neutral(fill, out.dtype))))
    for where, places in call.option("receives"):
        for request in reduced(out[where], [pieces[i] for i in places], call.option("reduces"), w.memory.fresh):
            _request(w, call, request)
    w.memory.static[call.results[0].name] = out


def _move(w: Carrier, call: Call) -> None:
    """A step of a boxing: prepared requests if its memory is planned, else a generic call."""
    several = isinstance(call.args[0], tuple)
    given = call.args[0] if several else call.args
    results = call.results[: len(given)]
    if several and call.op == "box.all_reduce":
        _in_row(w, call, given, results)
        return
    outs = [w.memory.placed(r) for r in results]
    whole = call if not several else Call(call.op, call.args, results[:1], call.options)
    step = step_of(whole, w.rank, w.forms[given[0].name].shape)
    source = w.source
    if w.memory.knows(given):
        known = [w.memory.known(a) for a in given]
        if call.op == "box.all_reduce" and known[0].data_ptr() == outs[0].data_ptr():
            known = outs  # which says that it is in place
        _requests(w, call, requests(step, known, outs, _scratch(w, call)))
    elif several:
        text = [source.called("step", step), source.expression(given), source.called(f"{call.name}_out", outs)]
        source.line(f"{source.called('box', execute_together)}({', '.join(text)}, {source.called('line', w.line)})")
    else:
        text = [source.called("step", step), source.expression(given[0]), source.called("line", w.line)]
        source.line(f"{source.called('box', execute)}({', '.join(text)}, out={source.called(call.name, outs[0])})")
    for r, out in zip(results, outs, strict=True):
        w.memory.static[r.name] = out


def _in_row(w: Carrier, call: Call, given: Sequence[Ref], results: Sequence[Result]) -> None:
    """One all-reduce over contiguous memory that holds all its members."""
    for a, r in zip(given, results, strict=True):
        memory = w.memory.static[r.name] = w.memory.placed(r)
        known = w.memory.static.get(a.name)
        if known is None or known.data_ptr() != memory.data_ptr():
            w.source.line(f"{w.source.called(r.name, memory)}.copy_({w.source.expression(a)})")
    first = min(results, key=lambda r: r.place.offset)
    end = max(r.place.offset + r.bytes for r in results)
    size = (end - first.place.offset) // dtypes.named(first.dtype).itemsize
    row = Result("bucket", first.dtype, (size,), first.place)
    flat = w.memory.placed(row)
    step = step_of(Call(call.op, call.args, (row,), call.options), w.rank, (size,))
    _requests(w, call, requests(step, [flat], [flat], _scratch(w, call)))


def _scratch(w: Carrier, call: Call) -> Callable[[Sequence[int], torch.dtype], torch.Tensor]:
    """An allocator of a step's scratch memory: in the arena if it is planned."""
    r = call.results[-1]
    if not r.name.endswith(".scratch"):
        return w.memory.fresh
    at = r.place.offset

    def new(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        nonlocal at
        form = Result(r.name, dtypes.of_torch(dtype).name, tuple(shape), r.place)
        made = w.memory.typed(w.memory.arena, at, form)
        at += aligned(form.bytes)
        return made

    return new


def _requests(w: Carrier, call: Call, found: Iterator[Request]) -> None:
    for request in found:
        _request(w, call, request)


def _request(w: Carrier, call: Call, request: Request) -> None:
    hint = call.results[0].name
    given = [w.source.literal(f"{hint}_{request.method}", a) for a in request.args]
    if request.ranks:
        group = w.source.called("group_" + "_".join(map(str, request.ranks[:4])), w.line.group(request.ranks))
        w.source.line(f"{group}.{request.method}({', '.join(given)})")
    elif request.method == "copy_each":
        w.source.line(f"{w.source.called('copy', torch._foreach_copy_)}({', '.join(given)})")
    elif request.method == "combine":
        function = function_of(request.args[3], request.args[0].dtype)
        w.source.line(f"{w.source.called(function.__name__, function)}({given[1]}, {given[2]}, out={given[0]})")
    elif request.local:
        w.source.line(f"{given[0]}.{request.method}_({given[1]})")
    else:
        w.source.line(f"{w.source.called('line', w.line)}.exchange({', '.join(given)})")
