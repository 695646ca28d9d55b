"""Inference: forms from forms, without data, once for each question."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.core.errors import ShapeError
from weft.ops import OPS
from weft.ops.declaration import op
from weft.ops.form import Form
from weft.ops.infer import _infer, freeze, infer, thaw


def test_the_body_runs_once_and_on_no_data() -> None:
    ran: list[str] = []

    @op("i! -> j!")
    def declared(x: torch.Tensor, times: int) -> torch.Tensor:
        ran.append(x.device.type)
        return x.repeat(times).half()

    try:
        forms = [infer(declared, (Form((2,), flow.float32), n)) for n in (3, 3, 2)]
        assert forms == [(Form((6,), flow.float16),)] * 2 + [(Form((4,), flow.float16),)]
        assert ran == ["meta", "meta"]
    finally:
        del OPS["declared"]
        _infer.cache_clear()


def test_numbers_that_python_calls_equal_promote_differently() -> None:
    counts = Form((2,), flow.int64)
    found = [infer(OPS["add"], OPS["add"].bind((counts, n), {}))[0].dtype for n in (1, 1.0, True, 1j)]
    assert found == [flow.int64, flow.float32, flow.int64, flow.complex64]


def test_what_is_frozen_comes_back() -> None:
    given = (Form((2, 3), flow.float32), 1, 1.0, True, [1, (2.0, None)], "same", flow.float64)
    frozen = freeze(given)
    assert hash(frozen) is not None and thaw(frozen) == (*given[:4], (1, (2.0, None)), *given[5:])
    assert freeze(1) != freeze(1.0) and freeze(1) != freeze(True)


def test_shapes_that_do_not_fit_are_refused_with_their_forms() -> None:
    with pytest.raises(ShapeError, match=r"matmul\(.*float32\[2,3\].*float32\[2,3\]"):
        infer(OPS["matmul"], (Form((2, 3), flow.float32), Form((2, 3), flow.float32)))
