"""Whatever a reader is given, it reads it or raises an error of Weft's own: valid forms, changed at random."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import weft as flow
from weft import checkpoint
from weft.boxing import routes, steps
from weft.core import placement, sbp
from weft.core.errors import WeftError
from weft.distributed import objects
from weft.job import text as jobs
from weft.plan import ids
from weft.plan import plan as plans
from weft.profiler import chrome
from weft.vm import parse as trace_of

# What tends to break readers: ends of nesting, numbers out of range, names of other forms, letters beyond ASCII.
SPLICES = [
    *"()[]{}:,.-%@#\"'\\ \n\0", "²", "٣", "\ud800", "0", "-1", "1e999", "9" * 5000, str(1 << 70), "NaN", "Infinity",
    "null", "true", "{}", "[]", "[0-99999999999]", "0-99999999999", "[" * 3000, "(" * 300, "-" * 3000, "()", "S(²)",
    "S(64)", "P(x)", "cuda:[1]", "float32[9999999999999]", "bool[-1]", "__metadata__", "$tuple", "$items", "weft.",
]  # fmt: skip


def mutants(text: str, count: int, seed: int) -> list[str]:
    """Texts like this one, in which something is cut, doubled, exchanged or put in."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        t = text
        for _ in range(draw.choice((1, 1, 2, 4))):
            a = draw.randrange(len(t) + 1)
            b = min(len(t), a + draw.choice((0, 1, 1, 3, 20)))
            c = draw.randrange(len(t) + 1)
            t = t[:a] + draw.choice(("", chr(draw.randrange(32, 127)), draw.choice(SPLICES), t[c : c + 12])) + t[b:]
        made.append(t)
    return made


class Reader(NamedTuple):
    read: Callable[[str], Any]
    texts: tuple[str, ...]
    count: int = 500


ROUTE = "float32[4,6] cpu:[0,1] (S(0)) -> cpu:[0,1] (B)\n    all_gather(axis=0, dim=0)"
PLAN = """\
plan "a train", rank 0 of 2, hash 5d41402a
stream 0 compute, caller

register 0 batch: int64[8, 33], 2 copies, batch@0.cpu.0.1.0 -> forward@0.cpu.0.0.1
register 2 tick: order, 3 copies, 1 full, forward@0.cpu.0.0.1 -> nobody

source batch@0.cpu.0.1.0, ahead
    writes batch%0
compute forward@0.cpu.0.0.1, 4 acts
    reads batch%0 over 4
    writes tick%2 at 0 2
    | arena 64
    | %x = read() : int64[8,33] register 0+0
    | %s = sum(%x, (0,), False) : int64[33] arena+0    # net, train.py:3
    | send: %sent = box.all_reduce(%s, ranks=(0, 1), reduce='sum') : int64[] register 1+0
"""
JOB = """\
job Train_0, 4 micro-batches
%x = input() : float32[8,16] cpu:[0,1] (S(0)) @micro
%w = variable() : float32[4,16] cpu:[0,1] (B)
%y = linear(%x, %w, None) : float32[8,4] cpu:[0,1] (S(0)) @stage(1)    # m, train.py:12
%z = boxing(%y, 'all_gather(axis=0, dim=0)') : float32[8,4] cpu:[0,1] (B)
%c = cast(%z, dtype('float16'), (1, -2.5, 'a'), placement('cpu:[0-5]'), sbp('S(0)'), device('cpu')) : float16[8,4] cpu
out: output(%c)
"""
TRACE = json.dumps({"rank": 0, "events": [
    [1, "add", "op", "s", "p", "t", 1, 2, 3, [0], ["float32[2]#5"], ["float32[2]#6"], False, 8, [0, 1], "train.py:3"]
]})  # fmt: skip
CHROME = json.dumps(
    {
        "traceEvents": [{"ph": "X", "name": "add", "ts": 1.5, "dur": 2, "args": {"a": [1]}}, {"ph": "M"}],
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": 5,
    }
)


def saved() -> bytes:
    made = io.BytesIO()
    weights = {"a": flow.ones(2, 3), "b": [flow.zeros(0, 2), (flow.tensor([True]),)]}
    checkpoint.save({"w": weights, 1: flow.float16, "inf": float("inf")}, made)
    return made.getvalue()


SAVED = saved()
START = 8 + int.from_bytes(SAVED[:8], "little")
HEADER = json.loads(SAVED[8:START])
# As it was before there were checksums, so that what lies behind them is looked at.
OLDER = {"weft.version": "1", "weft.structure": HEADER["__metadata__"]["weft.structure"]}
FORMS = (
    '{"a": {"$tuple": [1, {"$dtype": "int8"}]}, "b": {"$items": [[1, 2], ["x", {"$tensor": "w.a"}]]}}',
    '{"$versions": [{"": {"version": 2}}, {"x": {"$tensor": "w.a", "parameter": true}}]}',
    '[[0, 1, 2], [true, null, 1.5, "x"], {"": 1}, "$", -0.0, NaN]',
)


def in_file(text: str) -> Any:
    return checkpoint.load(io.BytesIO(text.encode("latin-1", "replace")))


def in_header(text: str) -> Any:
    """A file with this header, and the data that goes with the right one."""
    head = text.encode("utf-8", "surrogatepass")
    return checkpoint.load(io.BytesIO(len(head).to_bytes(8, "little") + head + SAVED[START:]))


def in_structure(text: str) -> Any:
    return in_header(json.dumps(HEADER | {"__metadata__": OLDER | {"weft.structure": text}}))


def in_message(text: str) -> Any:
    data = torch.frombuffer(bytearray(text.encode("latin-1", "replace")), dtype=torch.uint8) if text else torch.empty(0)
    return objects._decoded(data, len(data))


OBJECTS = (
    {"a": (1, 2.5, None), 3: {1, "x"}, "b": [flow.ones(2, 3), flow.int8], "c": 1j},
    [np.arange(6).reshape(2, 3), np.float32(1), np.array(["ab", "c"]), flow.zeros(0, 2), b"bytes", frozenset([1])],
)


def merged(name: str) -> Callable[[str], Any]:
    """A rank's trace in a file of this name."""

    def read(text: str) -> Any:
        Path(name).write_bytes(text.encode("latin-1", "replace"))
        return chrome.merge([name], "all.json")

    return read


READERS = {
    "checkpoint": Reader(in_file, (SAVED.decode("latin-1"),)),
    "header": Reader(in_header, (json.dumps(HEADER | {"__metadata__": OLDER}),)),
    "structure": Reader(in_structure, FORMS),
    "message": Reader(in_message, tuple(objects._encoded("x", o).numpy().tobytes().decode("latin-1") for o in OBJECTS)),
    "job": Reader(jobs.parse, (JOB,)),
    "plan": Reader(plans.parse, (PLAN,)),
    "id": Reader(ids.parse_id, ("0.cpu.0.1.5",)),
    "route": Reader(routes.parse, (ROUTE,)),
    "step": Reader(steps.parse, ("all_gather(axis=0, dim=0)", "exchange(src=cpu:[0,1] (S(0)), dst=cpu:[0-4] (B))")),
    "placement": Reader(placement.parse, ("cpu:[[0,1],[2,3]]", "cpu:[0-9]")),
    "sbp": Reader(sbp.parse, ("S(0)", "P(max)")),
    "trace": Reader(lambda t: trace_of(t).text(), (TRACE,)),
    "chrome": Reader(merged("t.json"), (CHROME,), 60),
    "gzip": Reader(merged("t.json.gz"), (gzip.compress(CHROME.encode(), mtime=0).decode("latin-1"),), 60),
}


@pytest.mark.filterwarnings("error::SyntaxWarning", "error::DeprecationWarning")
@pytest.mark.parametrize("name", READERS)
def test_mutants(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reader, strange, refused = READERS[name], {}, 0
    for seed, text in enumerate(reader.texts):
        reader.read(text)
        for mutant in mutants(text, reader.count // len(reader.texts), seed):
            try:
                reader.read(mutant)
            except WeftError:
                refused += 1
            except Exception as error:
                strange[type(error).__name__] = f"{str(error)[:150]}: {mutant[:300]!r}"
    assert not strange
    assert refused > reader.count // 5
