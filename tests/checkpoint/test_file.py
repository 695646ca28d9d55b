"""The file: plain safetensors with checksums, in which every flipped bit is noticed; older and foreign files."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch

import weft as flow
from bench.saves import flipped_saves
from weft.checkpoint import file, load, save
from weft.core.errors import CheckpointError

DTYPES = [flow.float64, flow.float32, flow.float16, flow.bfloat16, flow.int64, flow.int32, flow.int16, flow.int8,
          flow.uint8, flow.bool, flow.complex64]  # fmt: skip


def saved(value: Any) -> bytes:
    made = io.BytesIO()
    save(value, made)
    return made.getvalue()


def opened(data: bytes) -> Any:
    return load(io.BytesIO(data))


def written(infos: Any, data: bytes = b"", metadata: Any = None) -> bytes:
    """A file of the older layout, and of others."""
    header = infos if isinstance(infos, str) else json.dumps(infos | ({"__metadata__": metadata} if metadata else {}))
    return len(header.encode()).to_bytes(8, "little") + header.encode() + data


def info(dtype: Any = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


def test_other_programs_read_it(tmp_path: Path) -> None:
    given = {f"{d.name}/é\U0001f9f5": torch.arange(6).view(2, 3).to(d.torch) for d in DTYPES} | {"": torch.ones(0, 2)}
    save({n: flow.from_torch(t) for n, t in given.items()}, tmp_path / "x")
    theirs = safetensors.torch.load_file(tmp_path / "x")
    theirs[""] = theirs.pop("tensor")
    back = load(tmp_path / "x")
    assert theirs.keys() == given.keys() == back.keys()
    assert all(torch.equal(t, theirs[n]) and torch.equal(t, back[n].to_torch()) for n, t in given.items())


def test_every_flipped_bit_is_noticed() -> None:
    value = {"a": flow.ones(3, 5), "empty": flow.zeros(0), "b": flow.tensor([True, False]), "n": [1, "é", None]}
    data = bytearray(saved(value))
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CheckpointError):
            opened(bytes(data))
        data[bit // 8] ^= 1 << bit % 8
    assert opened(bytes(data))["b"].tolist() == [True, False]


def test_a_flip_says_where_it_is(tmp_path: Path) -> None:
    save({"small": flow.ones(2), "large": flow.zeros(600_000)}, tmp_path / "x")
    data = bytearray((tmp_path / "x").read_bytes())
    data[-1] ^= 4
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"x was damaged: of 'large', bytes 2097152 to 2400000 .*another copy"):
        load(tmp_path / "x")


def test_flips_of_the_benchmark() -> None:
    assert flipped_saves(40) == {"flipped": 40, "noticed": 40}


def test_a_rank_checks_what_it_reads(tmp_path: Path) -> None:
    rows = torch.arange(6.0).view(6, 1).repeat(1, file.CHUNK // 4)  # a row is a chunk
    save({"x": flow.from_torch(rows)}, tmp_path / "x")
    data = bytearray((tmp_path / "x").read_bytes())
    data[-1] ^= 1
    (tmp_path / "x").write_bytes(data)
    stored = file.read(tmp_path / "x")[1]["x"]
    assert torch.equal(stored.take((1, 5)), rows[1:5])
    for read in (None, (5, 6), (4, 6)):
        with pytest.raises(CheckpointError, match="bytes 5242880 to 6291456"):
            stored.take(read)


def test_files_from_before_there_were_checksums() -> None:
    """The layout of version 1, written here by hand."""
    structure = {"w": {"$tensor": "w"}, "pair": {"$tuple": [1, float("inf")]}, "items": {"$items": [[0, "a"]]}}
    infos = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    old = written(
        infos, torch.ones(2).numpy().tobytes(), {"weft.version": "1", "weft.structure": json.dumps(structure)}
    )
    back = opened(old)
    assert back.pop("w").tolist() == [1.0, 1.0] and back == {"pair": (1, float("inf")), "items": {0: "a"}}


def test_a_version_of_the_future() -> None:
    data = saved({"x": flow.ones(1)}).replace(b'"weft.version":"2"', b'"weft.version":"3"')
    with pytest.raises(CheckpointError, match=r"version '3' .* reads versions 1 and 2.*no older"):
        opened(data)


def test_a_file_that_another_program_wrote_anew(tmp_path: Path) -> None:
    save({"x": flow.ones(2)}, tmp_path / "x")
    with safetensors.safe_open(tmp_path / "x", "pt") as theirs:
        metadata = theirs.metadata()
    safetensors.torch.save_file({"x": torch.zeros(2)}, tmp_path / "y", metadata)
    with pytest.raises(CheckpointError, match="was damaged"):  # in the header, whose order is theirs, or in the data
        load(tmp_path / "y")
    safetensors.torch.save_file({"x": torch.zeros(2)}, tmp_path / "y", {"format": "pt"})
    assert load(tmp_path / "y")["x"].tolist() == [0.0, 0.0]


class Runs:
    def __reduce__(self) -> Any:
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_is_told_what_to_do_and_nothing_runs(
    protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"x": Runs()}, "t")
    for data in (pickle.dumps(Runs(), protocol), (tmp_path / "t").read_bytes()):
        (tmp_path / "p").write_bytes(data)
        for source in ("p", io.BytesIO(data)):
            with pytest.raises(CheckpointError, match=r"is a pickle.*safetensors\.torch\.save_file"):
                load(source)
    assert not (tmp_path / "ran").exists()


HOSTILE = {
    "duplicate": ('{"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "x": 1}', "'x' occurs twice"),
    "deep": ("{" + '"x":{' * 50000, "is nested too deeply"),
    "nan": ('{"x": NaN}', "NaN is not a JSON number"),
    "list": ("[]", "no safetensors file"),
    "latin": ('{"é": 1}'.encode("latin-1").decode("latin-1"), "has a dtype, a shape"),
    "no dict": ({"x": [1]}, "has a dtype, a shape"),
    "more": ({"x": info()["x"] | {"y": 1}}, "has a dtype, a shape"),
    "dtype": (info("F8_E8M0", [4]), "'F8_E8M0', and Weft reads"),
    "no dtype": (info(3), "3, and Weft reads"),
    "negative": (info(shape=[-1], offsets=[4, 0]), "ints from 0 on"),
    "floats": (info(shape=[1.0]), "ints from 0 on"),
    "truth": (info(shape=[True]), "ints from 0 on"),
    "huge": (info(shape=[1 << 62, 1 << 62], offsets=[0, 1 << 62]), "no tensor is as large"),
    "huge and empty": (info(shape=[0, 1 << 62, 1 << 62], offsets=[0, 0]), "no tensor is as large"),
    "digits": ('{"x": ' + "9" * 5000 + "}", "digits"),
    "beyond": (info(shape=[1 << 40], offsets=[0, 1 << 42]), "cut off"),
    "backwards": (info(offsets=[4, 0]), "has 4 bytes"),
    "size": (info(shape=[2]), "has 8 bytes"),
    "offsets": (info(offsets=[0, 4, 8]), "has 4 bytes"),
    "hole": (info(offsets=[4, 8]), "begins at"),
    "overlap": (info() | {"y": info()["x"]}, "begins at"),
    "metadata": ({"__metadata__": {"a": 1}} | info(), "strings by name"),
    "no metadata": ({"__metadata__": [1]} | info(), "strings by name"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers(case: str) -> None:
    header, says = HOSTILE[case]
    with pytest.raises(CheckpointError, match=says):
        opened(written(header, bytes(4)))


def test_hostile_bytes() -> None:
    with pytest.raises(CheckpointError, match="its header says"):
        opened(written(info(), bytes(5)))
    with pytest.raises(CheckpointError, match="of BOOL, with bytes above 1"):
        opened(written(info("BOOL", [4]), b"\0\1\2\1"))
    for size in (0, 1, 101_000_000, (1 << 64) - 1):
        with pytest.raises(CheckpointError, match="no safetensors file"):
            opened(size.to_bytes(8, "little") + b"{}")
    with pytest.raises(CheckpointError, match="cut off"):
        opened((100).to_bytes(8, "little") + b"{}")
    with pytest.raises(CheckpointError, match="returns str"):
        load(io.StringIO("{}"))


def test_data_that_is_not_aligned() -> None:
    infos = {"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
             "b": {"dtype": "I64", "shape": [1], "data_offsets": [1, 9]}}  # fmt: skip
    assert opened(written(infos, b"\7" + (5).to_bytes(8, "little")))["b"].item() == 5


@pytest.mark.parametrize(
    "form",
    [
        {"$tensor": "y"}, {"$tensor": 1}, {"$tensor": "x", "more": 1}, {"$tensor": "x", "parameter": 1}, {"$tuple": 1},
        {"$tuple": [], "x": 1}, {"$dtype": "q"}, {"$dtype": []}, {"$items": [[1]]}, {"$items": [[[1], 2]]},
        {"$items": [[1, 2], [True, 3]]}, {"$versions": []}, {"$versions": [{}, {"$tuple": []}]}, {"$versions": [1, 2]},
        {"$tensor": "i", "parameter": True},
    ],
    ids=str,
)  # fmt: skip
def test_hostile_structures(form: Any) -> None:
    integers = {"i": {"dtype": "I64", "shape": [0], "data_offsets": [4, 4]}}
    with pytest.raises(CheckpointError, match="structure"):
        opened(written(info() | integers, bytes(4), {"weft.structure": json.dumps(form)}))
    text = "[" * 200 + "]" * 200
    with pytest.raises(CheckpointError, match="deeper"):
        opened(written(info(), bytes(4), {"weft.structure": text}))


def test_the_checksums_are_what_the_docstring_says() -> None:
    data = saved({"x": flow.ones(3)})
    size = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + size])["__metadata__"]
    assert metadata["weft.crc32"] == f"{zlib.crc32(data[8 + size :]):08x}"
    zeroed = re.sub(rb'("weft.header":)"\w{8}"', rb'\1"00000000"', data[: 8 + size])
    assert metadata["weft.header"] == f"{zlib.crc32(zeroed):08x}"


def test_what_is_copied_outlives_its_file(tmp_path: Path) -> None:
    save({"x": flow.ones(4)}, tmp_path / "x")
    copied, mapped = load(tmp_path / "x", mmap=False), load(tmp_path / "x")
    mapped["x"][0] = 5.0  # writes no file
    assert load(tmp_path / "x")["x"].tolist() == [1.0] * 4
    with (tmp_path / "x").open("r+b") as file:
        file.seek(-16, os.SEEK_END)
        file.write(bytes(16))
    assert copied["x"].tolist() == [1.0] * 4
