"""Checkpoints of other libraries: Hugging Face's folders of safetensors files, torch's `.pt`, and OneFlow's folders."""

from __future__ import annotations

import io
import math
import os
import pickletools
import re
import threading
import warnings
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

from weft.autograd.trees import mapped
from weft.checkpoint.file import FOREIGN, PICKLE, SAVED
from weft.checkpoint.place import INSIDE, named
from weft.core import dtype as dtypes
from weft.core.errors import CheckpointError
from weft.core.reading import opened, parsed
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

INDEX: Final = ".safetensors.index.json"
ALLOWING: Final = threading.Lock()  # torch has one list of the classes that may be read, for all threads
SAFE: Final = [Namespace, dtypes.named]  # beside torch's: what may be in a pickle that is read
ENDING: Final = ".safetensors"
WHOLE: Final = f"model{ENDING}"  # the name of a model's only file
PICKLED: Final = "pickled_data"  # in OneFlow's folders


def parts(folder: str) -> tuple[dict[str, list[str] | None], str | None]:
    """The files of a model's folder, and which tensors of each: those that its index names, or all; and which save of
    Weft's the index is of."""
    names = sorted(os.listdir(folder))
    indexes = [n for n in names if n.endswith(INDEX)]
    files = [n for n in names if n.endswith(ENDING)]
    if not indexes and (len(files) == 1 or WHOLE in files):  # beside it may be what a killed save left
        return {os.path.join(folder, WHOLE if WHOLE in files else files[0]): None}, None
    if len(indexes) != 1:
        raise CheckpointError(
            f"{folder} is a folder without checkpoint{ENDING}, which flow.save writes, and with "
            f"{len(indexes)} files *{INDEX}, {len(files)} files *{ENDING}: of a model's folder there is one index, or "
            "one file. Give the path of a file"
        )
    path = os.path.join(folder, indexes[0])

    def refuse(why: str) -> CheckpointError:
        return CheckpointError(f"{path} is no index of safetensors files: {why}")

    with opened(path, CheckpointError) as file:
        index = parsed(file.read(), refuse)
    where = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(where, dict) or not all(map(_is_name, where.values())):
        raise refuse("its weight_map goes from the names of tensors to those of files in the folder")
    more = index.get("metadata")
    saved = more.get(SAVED) if isinstance(more, dict) else None
    found: dict[str, list[str] | None] = {}
    for name, file_name in where.items():
        found.setdefault(os.path.join(folder, file_name), []).append(name)  # type: ignore[union-attr]
    return found, saved


def _is_name(value: Any) -> bool:
    """Whether it names a file in the folder."""
    plain = isinstance(value, str) and value.isprintable() and os.path.basename(value) == value
    return plain and value not in ("", os.curdir, os.pardir)


def unpickled(
    path: Any, convert: Callable[[str, torch.Tensor], Any], parameter: Callable[[Any, bool], Any] = Parameter
) -> list[Any]:
    """What torch.save or OneFlow wrote, in a list that is empty if it is another format; only data is read, no code is
    run. A tensor is converted with its name, which is its path as in a file of Weft's: `model.weight`."""
    if not hasattr(path, "read") and os.path.isfile(os.path.join(named(path), PICKLED)):
        if os.path.lexists(os.path.join(named(path), INSIDE)):  # Weft saved to OneFlow's folder, later
            return []
        return [_converted(_oneflows(named(path)), convert, parameter)]
    if not is_torchs(path):
        return []
    what = "this" if hasattr(path, "read") else named(path)
    archive = _start(path).startswith(b"PK") and not hasattr(path, "read")
    try:
        with ALLOWING, torch.serialization.safe_globals(SAFE), warnings.catch_warnings(action="ignore"):
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=archive or None)
    except Exception as cause:
        raise CheckpointError(f"{what} {PICKLE}") from cause
    return [_converted(loaded, convert, parameter)]


def is_torchs(path: Any) -> bool:
    """Whether it is a file, or its content, that torch.save wrote."""
    start = _start(path)
    return start[8:] != b"{" and any(start.startswith(magic) for magic in FOREIGN)


def _converted(tree: Any, convert: Callable[[str, torch.Tensor], Any], parameter: Callable[[Any, bool], Any]) -> Any:
    names = {id(t): name for name, t in _named(tree, "")}
    known: dict[int, Any] = {}

    def turned(v: torch.Tensor) -> Any:
        made = convert(names.get(id(v), ""), v.detach())
        if isinstance(v, torch.nn.Parameter):
            return parameter(made, v.requires_grad)
        return made.requires_grad_() if v.requires_grad and isinstance(made, Tensor) else made

    def turn(v: Any) -> Any:
        if not isinstance(v, torch.Tensor):
            return v
        if id(v) not in known:
            known[id(v)] = turned(v)
        return known[id(v)]

    return mapped(tree, turn)


def _named(tree: Any, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in nested dicts, lists and tuples, by their paths."""
    if isinstance(tree, torch.Tensor):
        yield path, tree
    elif isinstance(tree, (dict, list, tuple)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _named(value, f"{path}.{key}" if path else f"{key}")


def _start(path: Any) -> bytes:
    if hasattr(path, "read"):
        if not isinstance(path, io.IOBase) or not path.seekable():
            return b""
        at = path.tell()
        start = path.read(9)
        path.seek(at)
        return start if isinstance(start, bytes) else b""
    if not os.path.isfile(named(path)):
        return b""
    with open(path, "rb") as file:
        return file.read(9)


# ---- OneFlow's: a pickle of everything but the tensors, and a folder for each of those ------------------------------

DTYPES: Final = {
    "kFloat": torch.float32, "kDouble": torch.float64, "kFloat16": torch.float16,
    "kInt8": torch.int8, "kUInt8": torch.uint8, "kInt32": torch.int32, "kInt64": torch.int64, "kBool": torch.bool,
}  # fmt: skip


PLAIN: Final[dict[str, Callable[[], Any]]] = {
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": set, "NONE": lambda: None,
    "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
}  # fmt: skip
KINDS: Final = {"collections.OrderedDict": OrderedDict, "argparse.Namespace": Namespace}


class Kept:
    """A tensor in a folder of its own."""

    __hash__ = None  # type: ignore[assignment]  # a set of tensors is refused

    def __init__(self, folder: str, kind: Any) -> None:
        if kind not in ("oneflow.Tensor", "oneflow.nn.Parameter"):
            raise CheckpointError(f"there is a {kind} in it")
        self.folder, self.name = folder, ""

    def read(self) -> torch.Tensor:
        place = os.path.join(self.folder, self.name)
        if not _is_name(self.name):
            raise CheckpointError(f"{self.folder} names no folder in it for a tensor, but {self.name!r}")
        with opened(os.path.join(place, "meta"), CheckpointError) as file:
            meta = file.read().decode(errors="replace")
        with opened(os.path.join(place, "out"), CheckpointError) as file:
            data = bytearray(file.read())
        kind, shape = re.search(r"data_type: (\w+)", meta), [int(n) for n in re.findall(r"dim: (\d+)", meta)]
        dtype = DTYPES.get(kind[1] if kind else "")
        if dtype is None or math.prod(shape) * dtype.itemsize != len(data):
            raise CheckpointError(f"{place} has {len(data)} bytes, for which its meta doesn't fit: {meta}")
        return torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)


def _oneflows(folder: str) -> Any:
    """The data of a OneFlow folder's pickle, whose instructions are followed here: nothing is imported or called."""
    path = os.path.join(folder, PICKLED)
    with opened(path, CheckpointError) as file:
        text = file.read()
    try:
        loaded = _followed(text, folder)
        data = loaded["data"] if isinstance(loaded, dict) and "protocol_version" in loaded else loaded
        return mapped(data, lambda v: v.read() if isinstance(v, Kept) else v)
    except (CheckpointError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as cause:
        raise CheckpointError(
            f"{path} holds more than tensors, numbers, texts, lists and dicts, or is damaged: {cause}. Whole modules "
            "are code; save their state there: flow.save(module.state_dict(), path)"
        ) from cause


def _followed(text: bytes, folder: str) -> Any:
    """What a pickle's instructions make, of plain data and of tensors in files."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: list[Any] = []

    def top() -> Any:
        return stack[-1]

    def since_mark() -> int:
        return len(stack) - marks.pop()

    def last(n: int) -> list[Any]:
        items = stack[len(stack) - n :]
        del stack[len(stack) - n :]
        return items

    for instruction, arg, _ in pickletools.genops(text):
        match instruction.name:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "MARK":
                marks.append(len(stack))
            case "MEMOIZE":
                memo.append(top())
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[arg or 0])
            case "SETITEM" | "SETITEMS" as name:
                items = last(2 if name == "SETITEM" else since_mark())
                top().update(zip(items[::2], items[1::2], strict=True))
            case "APPEND" | "APPENDS" as name:
                items = last(1 if name == "APPEND" else since_mark())
                top().extend(items)
            case "ADDITEMS":
                items = last(since_mark())
                top().update(items)
            case "TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3" | "FROZENSET" as name:
                items = last(int(name[-1]) if name[-1].isdigit() else since_mark())
                stack.append(frozenset(items) if name == "FROZENSET" else tuple(items))
            case "STACK_GLOBAL":
                stack.append(".".join(last(2)))
            case "REDUCE" | "NEWOBJ":
                name, given = last(2)
                stack.append(KINDS[name]() if name in KINDS and given == () else Kept(folder, name))
            case "BUILD":
                (state,) = last(1)
                if isinstance(top(), Kept):
                    top().name = state["path"]
                elif isinstance(top(), Namespace):
                    vars(top()).update(state)
            case name if name in PLAIN:
                stack.append(PLAIN[name]())
            case name if isinstance(arg, (int, float, str)):
                stack.append(arg)
            case name:
                raise CheckpointError(f"its instruction {name} is not for data")
    (loaded,) = stack
    return loaded
