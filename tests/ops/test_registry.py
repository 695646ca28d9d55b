"""Every op keeps what its declaration says."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

import weft
from weft.core.errors import AutogradError
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.gradients import check_again
from weft.testing.layouts import Args
from weft.testing.registry import UNDERIVED

NAMES = list(OPS)
THIRD = "a third gradient: it knows the statistics by value only"
ONCE = {name: THIRD for name in ("layer_norm_grad", "batch_norm_grad", "group_norm_grad")}
NEITHER = "torch has no second gradient of it either"
ONCE |= {name: NEITHER for name in ("grid_sample", "ctc_nll", "standard_gamma")}
BY_ITS_OP = UNDERIVED | {"group_norm_grad": "torch has no gradient of it; group_norm's second gradient checks it"}
BY_ADAPTERS = {
    name: "adapters return the operand itself where nothing would change" for name in ("cast", "conj", "to_device")
}
KEPT = UNDERIVED | {"nextafter": "its gradient reads the operands, and torch's a mask that stays"}
GRIDS = ["add", "matmul", "sum", "mean", "layer_norm", "softmax", "embedding", "linear", "amax"]


def check_second_gradient(op: Op, args: Args) -> None:
    registry.check_gradient(op, args, True)


LAWS: dict[Callable[[Op, Args], Any], Mapping[str, str]] = {  # each with the ops that needn't keep it, and why
    registry.check_inference: {},
    registry.check_memory: BY_ADAPTERS,
    registry.check_gradient: BY_ITS_OP,
    check_second_gradient: ONCE | UNDERIVED,
    check_again: KEPT,
    registry.check_layouts: {},
    registry.check_integers: {},
    registry.check_empty_parts: {},
    registry.check_strides: {},
    registry.check_out: {},
    registry.check_inplace: {},
    registry.check_scattered: {},
}


def apply(check: Callable[[Op, Args], Any], name: str) -> None:
    """Run a check over every sample that it is about."""
    op = OPS[name]
    for args in registry.cases(op):
        try:
            check(op, args)
        except registry.Skipped:
            pass
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {name}({registry.shown(op, args)}): {error}") from error


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_does_and_has_samples_or_a_reason_for_none(name: str) -> None:
    assert bool(registry.cases(OPS[name])) != (name in registry.WITHOUT_SAMPLES)
    assert OPS[name].__doc__, f"{name} doesn't say what it does"
    with contextlib.suppress(registry.Skipped):
        registry.check_example(OPS[name], weft)


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_every_law(name: str) -> None:
    for law, free in LAWS.items():
        if name not in free:
            apply(law, name)


@pytest.mark.parametrize("name", [n for n in GRIDS if n in OPS])
def test_layouts_on_a_grid(name: str) -> None:
    apply(registry.check_grids, name)


@pytest.mark.parametrize("name", [*UNDERIVED, "unique_values"])
def test_a_derivative_that_nobody_has_is_refused(name: str) -> None:
    op = OPS[name]
    x = of_torch(torch.ones(2, 2)).requires_grad_()
    result = op(x, *([x] if len(op.operands) > 1 else []))
    with pytest.raises(AutogradError, match="not implemented"):
        (result[0] if op.visible > 1 else result).sum().backward()
