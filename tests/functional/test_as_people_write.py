"""Lines as programs have them, with torch's result beside Weft's."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch

import weft as flow


def overwrites_copies(lib: Any) -> Any:
    x = lib.arange(3.0)
    for copied in (x.repeat(2, 1), x[:1].repeat(3), lib.tile(x, (2, 1)), x[:1].repeat_interleave(3)):
        yield copied.add_(lib.arange(float(copied.shape[-1]))), copied.div_(2)
    yield x


def asserts(lib: Any) -> Any:
    lib._assert(True, "fine")
    with pytest.raises(AssertionError, match="not fine"):
        lib._assert(False, "not fine")
    yield lib.ones(1)


def loads(lib: Any) -> Any:
    for options in ({"weights_only": True}, {"map_location": lambda storage, where: storage, "weights_only": False}):
        file = io.BytesIO()
        lib.save({"x": lib.arange(3.0)}, file)
        file.seek(0)
        yield lib.load(file, **options)["x"]


def heads_share(lib: Any) -> Any:
    q, k, v = (lib.randn(1, heads, 6, 8) for heads in (4, 2, 2))
    attend = lib.nn.functional.scaled_dot_product_attention
    yield attend(q, k, v, is_causal=True, enable_gqa=True)
    with pytest.raises((RuntimeError, ValueError)):
        attend(q, lib.randn(1, 3, 6, 8), lib.randn(1, 3, 6, 8), enable_gqa=True)


def draws_aside(lib: Any) -> Any:
    with lib.random.fork_rng():
        lib.manual_seed(7)
        yield lib.rand(2)
    yield lib.rand(2)


def flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


@pytest.mark.parametrize("program", [overwrites_copies, asserts, loads, heads_share, draws_aside])
def test_the_same_as_torchs(program: Any) -> None:
    results = []
    for lib in (flow, torch):
        lib.manual_seed(1)
        results.append([x.tolist() if isinstance(x, lib.Tensor) else x for x in flat(list(program(lib)))])
    assert flat(results[0]) == pytest.approx(flat(results[1]), rel=1e-5, abs=1e-6)
