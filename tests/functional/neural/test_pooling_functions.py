"""Pooling refuses sizes that torch refuses."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft.core.errors import DtypeError, ShapeError
from weft.nn import functional as F


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize(("dims", "size"), [(1, (2, 3)), (2, (1, 2, 3)), (3, (1, 2)), (1, (0, 1, -1))])
def test_an_adaptive_output_size_has_a_number_for_each_dimension(kind: str, dims: int, size: Any) -> None:
    pool = getattr(F, f"adaptive_{kind}_pool{dims}d")
    with pytest.raises(ShapeError, match=f"output_size must be {dims}"):
        pool(flow.ones(2, 3, 4, 4, 4), size)


def test_sizes_may_be_tensors_of_one_number() -> None:
    x = flow.arange(16.0).reshape(1, 1, 4, 4)
    expected = F.interpolate(x, size=(2, 2)).tolist()
    for size in (flow.tensor(2), (flow.tensor(2), 2), [2, flow.tensor(2)]):
        assert (
            F.interpolate(x, size=size).tolist() == F.adaptive_avg_pool2d(x[..., ::2, ::2], size).tolist() == expected
        )
    with pytest.raises(DtypeError, match="only an integer tensor"):
        F.interpolate(x, size=flow.tensor(2.0))


def test_digits_of_in_place_rounding_are_named() -> None:
    assert flow.tensor([1.26]).round_(decimals=1).item() == pytest.approx(1.3)
    with pytest.raises(TypeError):
        flow.tensor([1.26]).round_(1)  # type: ignore[misc]
