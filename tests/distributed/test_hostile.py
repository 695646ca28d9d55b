"""Whatever bytes stand where ranks expect each other's messages, they give an error of Weft's, or a value."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, RankError, WeftError
from weft.distributed import objects
from weft.tensor import header
from weft.transport.check import Report, decoded
from weft.transport.memory import Segment
from weft.transport.shared.shm_link import _shown
from weft.transport.stuck import Need, Wait

VALUES = [
    None, 3, 2.5, "text", b"bytes", [1, [2, "x"]], {"a": 1, "b": [2]}, {1: "one", (2, 3): None}, (1, 2), {4},
    frozenset({5}),
    1 + 2j, np.arange(6.0).reshape(2, 3), np.float32(1.5), np.array(["ab", "c"]), np.datetime64("2020-01-01", "D"),
    np.zeros((0, 3)), flow.arange(6), flow.zeros(2, 0), flow.bfloat16, flow.ones(2, dtype=flow.bfloat16), -(2**63),
    flow.empty(3, 2, device="meta").T,
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), {"nested": {"deep": [(), {1: {2}}]}},
]  # fmt: skip
TOLD = [Report("all_reduce", {"lr": "0.1"}), Wait(3, "recv", [Need(1, "sent", 2)], {"group": 4}, {"0": 1}, "why")]


def mutations(data: bytes, count: int, draw: random.Random) -> Iterator[bytes]:
    """Bytes flipped, cut off, left out, put in and doubled."""
    for _ in range(count):
        made = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 5))):
            at, to = sorted((draw.randrange(len(made) + 1), draw.randrange(len(made) + 1)))
            match draw.randrange(5):
                case 0 if made:
                    made[min(at, len(made) - 1)] = draw.randrange(256)
                case 1:
                    del made[at:]
                case 2:
                    del made[at:to]
                case 3:
                    made[at:at] = draw.randbytes(draw.choice((1, 2, 9)))
                case _:
                    made[at:at] = made[at:to]
        yield bytes(made)


def sent(raw: bytes) -> Any:
    data = torch.frombuffer(bytearray(raw), dtype=torch.uint8) if raw else torch.empty(0, dtype=torch.uint8)
    return objects._decoded(data, len(raw), "recv_object_list")


def only_errors_of_weft(reads: Callable[[bytes], Any], data: bytes, count: int, draw: random.Random) -> int:
    refused = 0
    for made in mutations(data, count, draw):
        try:
            reads(made)
        except WeftError:
            refused += 1
    return refused


def test_objects() -> None:
    draw, refused = random.Random(0), 0
    for value in VALUES:
        raw = objects._encoded("send_object_list", value).numpy().tobytes()
        assert repr(sent(raw)) == repr(value)
        refused += only_errors_of_weft(sent, raw, 150, draw)
    assert refused > 1500


@pytest.mark.parametrize("told", TOLD)
def test_what_stands_in_the_store(told: Any) -> None:
    raw = msgspec.json.encode(told)
    assert decoded(raw, type(told), "it") == told
    assert only_errors_of_weft(lambda made: decoded(made, type(told), "it"), raw, 500, random.Random(1)) > 300
    for worse in (b"[" * 100_000, b'{"call":' * 50_000, b"", b"null", b'{"call": 1}', b'"\xff"', b"9" * 10_000):
        with pytest.raises(RankError, match="it is no message of Weft's"):
            decoded(worse, type(told), "it")


def test_handles_and_forms() -> None:
    segment = Segment.make("weft-hostile", 4096)
    draw = random.Random(2)
    assert Segment.open(segment.handle).size == 4096
    numbers = segment.handle.replace(str(4096).encode(), b"999999999999999")
    for handle in (
        numbers,
        b"",
        b"1:2",
        b"-1:3:4",
        b"1:2:3:4",
        b"\xff",
        b"1:99999:10",
        b"0:0:0",
        b"9" * 5000 + b":1:1",
    ):
        with pytest.raises(RankError):
            Segment.open(handle)
    mine = header.encoded((2, 3), flow.float32)
    assert header.read(mine, 0) == ((2, 3), flow.float32)
    for _ in range(500):
        row = mine.clone()
        row[draw.randrange(4)] = draw.choice((-1, -(2**63), 17, 2**40, 2**62, draw.randrange(40)))
        try:
            header.read(row, 1)
        except RankError as error:
            assert "rank 1" in str(error)
        _shown(abs(draw.getrandbits(62)))


def test_crafted_objects() -> None:
    encode, extension = msgspec.msgpack.encode, objects._extension
    for hostile in (
        b"\x91" * 100_000, b"\x82\xa1a\x01\xa1a\x02",  # deep; a key twice
        encode(extension(objects.ITEMS, [[1, 2], [1, 3]])),
        encode(extension(objects.TENSOR, ["float32", [10**12], b""])),
        encode(extension(objects.TENSOR, ["float32", [-1], b"1234"])),
        encode(extension(objects.TENSOR, ["object", [1], b"1234"])),
        encode(extension(objects.ARRAY, ["|O8", [1], b"12345678", False])),
        encode(extension(objects.ARRAY, ["<f8", [2**60, 0], b"", False])),
        encode(extension(objects.SET, [[1]])), encode(extension(objects.SET, "text")),
        encode(extension(objects.COMPLEX, [1, 2, 3])), encode(extension(99, [])), b"\xc7\x04\x01",
    ):  # fmt: skip
        with pytest.raises(RankError, match="received a malformed object"):
            sent(hostile)
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ArgumentError, match="plain data"):
        objects._encoded("send_object_list", circle)
