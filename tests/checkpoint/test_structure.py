"""What is accepted comes back equal; anything else is refused when it is saved, not when it is loaded."""

from __future__ import annotations

import argparse
import io
from collections import Counter, OrderedDict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as flow
from weft.checkpoint import load, save
from weft.checkpoint.structure import DEEPEST, MARKS, rebuilt
from weft.core.errors import CheckpointError

MARKED = ["__metadata__", "", "/", "a.b", "a#2", "#2", "tensor", "parameter", "weft.header", "\ud800", "é\0", *MARKS]
TEXTS = st.text(st.characters(), max_size=5) | st.sampled_from(MARKED)
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.booleans() | st.none()
TENSORS = st.builds(
    flow.tensor, st.lists(st.integers(-9, 9), max_size=3), dtype=st.sampled_from([flow.int8, flow.float32])
)
ARRAYS = st.sampled_from(
    [np.ones(2), np.arange(6).reshape(2, 3).T, np.array(1, ">i4"), np.ones(3)[::-1], np.zeros(0, bool)]
)
VALUES = st.recursive(
    NUMBERS | TEXTS | TENSORS | ARRAYS | st.sampled_from([flow.int8, flow.bool]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(TEXTS, inner, max_size=3)
        | st.dictionaries(TEXTS | NUMBERS, inner, max_size=3) | st.frozensets(TEXTS | NUMBERS, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


def again(value: Any) -> Any:
    made = io.BytesIO()
    save(value, made)
    made.seek(0)
    return load(made)


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, flow.Tensor):
        return isinstance(b, flow.Tensor) and a.dtype is b.dtype and a.tolist() == b.tolist()
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype.kind == b.dtype.kind and np.array_equal(a, b)
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    return type(a) is type(b) and a == b


@settings(max_examples=150, deadline=None, derandomize=True)
@given(VALUES)
def test_structures_come_back(value: Any) -> None:
    assert alike(value, again(value))


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, (), flow.float32], ids=repr)
def test_a_file_may_hold_one_value(value: Any) -> None:
    assert alike(value, again(value))


@pytest.mark.parametrize("key", [*sorted(MARKED), "k" * 100_000], ids=lambda k: repr(k[:20]))
def test_any_key_names_a_tensor(key: str) -> None:
    other = {"a": {"b": flow.zeros(1)}, "a.b": flow.ones(1), "a.b#2": flow.full((1,), 2.0)}
    value = {key: flow.ones(2), "nested": {key: [flow.zeros(1), {key: flow.ones(3)}]}} | other
    assert alike(value, again(value))


def test_kinds_of_dicts_and_numbers_come_back_as_pythons_own() -> None:
    value = {"o": OrderedDict(a=1), "c": Counter("aab"), "n": np.float64(0.5), "i": np.int64(2), "s": flow.Size([2, 3])}
    assert again(value) == {"o": {"a": 1}, "c": {"a": 2, "b": 1}, "n": 0.5, "i": 2, "s": (2, 3)}


class Options(dict[str, Any]):
    """As programs write it, in one line."""

    __getattr__ = dict.__getitem__


def test_a_dict_that_gives_its_keys_as_attributes() -> None:
    assert again(Options(lr=0.1, more=Options(steps=[1, 2]))) == {"lr": 0.1, "more": {"steps": [1, 2]}}


def test_what_torch_would_save_is_saved() -> None:
    assert again({"a": torch.arange(3), "b": torch.ones(2).view(torch.int32)})["a"].tolist() == [0, 1, 2]
    args = argparse.Namespace(lr=1, betas=(0.9, 0.95), inner=argparse.Namespace(name="$tuple"))
    assert again({"args": args}) == {"args": args} and again(args) == args
    with pytest.raises(CheckpointError, match=r"`args\.run`: it is a function"):
        save({"args": argparse.Namespace(run=again)}, io.BytesIO())
    with pytest.raises(CheckpointError, match=r"Options.*save vars\(x\) instead"):
        save({"args": type("Options", (), {})()}, io.BytesIO())


def test_sets_come_back_and_give_the_same_file_whatever_their_order() -> None:
    given = {"seen": {"b", 1, None, (2, frozenset({3}))}, "none": set(), "fixed": frozenset({1.5, "a"})}
    kept = again(given)
    assert kept == given and [type(v) for v in kept.values()] == [set, set, frozenset]
    files = [io.BytesIO(), io.BytesIO()]
    for file, order in zip(files, (range(0, 800, 8), range(792, -8, -8)), strict=True):
        save(set(order), file)
    assert files[0].getvalue() == files[1].getvalue()
    with pytest.raises(CheckpointError, match="unhashable"):
        rebuilt({"$set": [[1]]}, lambda name: name)


def itself() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"x", "a bytes"), ({flow.ones(1)}, "a set of tensors"), (1j, "a complex"), (np.array(["x"]), "ndarray"),
        ({(1, 2): 1}, "a key is a tuple"), ({b"x": 1}, "a key is a bytes"), ({"a": {None: object()}}, r"`a\.None`"),
        (10**5000, "16610 bits"), ({"a": itself()}, "contain itself"), (nested(DEEPEST + 1), "deeper than"),
        (flow.ones(1, dtype=flow.complex128), "no weft.complex128"),
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_what_would_not_come_back_is_refused_when_it_is_saved(value: Any, says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        save(value, io.BytesIO())


def test_as_deep_as_may_be() -> None:
    assert again(nested(DEEPEST)) == nested(DEEPEST)
