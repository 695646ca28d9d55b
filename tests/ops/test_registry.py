"""Every op keeps what its declaration says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft
from weft.core.errors import AutogradError
from weft.ops import OPS
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.gradients import check_again
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
GRIDS = ["add", "matmul", "sum", "mean", "layer_norm", "softmax", "embedding", "linear", "amax"]


def apply(check: Callable[..., Any], name: str, *rest: Any) -> None:
    """Run a check over every sample; skip if it applies to none."""
    op = OPS[name]
    rows = registry.cases(op)
    reasons = [registry.WITHOUT_SAMPLES.get(name, "no samples")]
    for args in rows:
        try:
            check(op, args, *rest)
            reasons = []
        except registry.Skipped as reason:
            if reasons:
                reasons = [str(reason)]
        except AssertionError as error:
            raise AssertionError(f"{name}({registry.shown(op, args)}): {error}") from error
    if reasons:
        pytest.skip(reasons[0])


@pytest.mark.parametrize("name", NAMES)
def test_samples_or_a_reason_for_none(name: str) -> None:
    assert bool(registry.cases(OPS[name])) != (name in registry.WITHOUT_SAMPLES)
    assert OPS[name].__doc__, f"{name} doesn't say what it does"


@pytest.mark.parametrize("name", NAMES)
def test_inference(name: str) -> None:
    apply(registry.check_inference, name)


@pytest.mark.parametrize("name", NAMES)
def test_memory(name: str) -> None:
    if name in BY_ADAPTERS:
        pytest.skip(BY_ADAPTERS[name])
    apply(registry.check_memory, name)


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str) -> None:
    try:
        registry.check_example(OPS[name], weft)
    except registry.Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("name", NAMES)
def test_gradient(name: str) -> None:
    if name in BY_ITS_OP:
        pytest.skip(BY_ITS_OP[name])
    apply(registry.check_gradient, name)


@pytest.mark.parametrize("name", NAMES)
def test_second_gradient(name: str) -> None:
    if name in ONCE | UNDERIVED:
        pytest.skip((ONCE | UNDERIVED)[name])
    apply(registry.check_gradient, name, True)


@pytest.mark.parametrize("name", NAMES)
def test_a_second_backward(name: str) -> None:
    kept = UNDERIVED | {"nextafter": "its gradient reads the operands, and torch's a mask that stays"}
    if name in kept:
        pytest.skip(kept[name])
    apply(check_again, name)


@pytest.mark.parametrize("name", [*UNDERIVED, "unique_values"])
def test_a_derivative_that_nobody_has_is_refused(name: str) -> None:
    op = OPS[name]
    x = of_torch(torch.ones(2, 2)).requires_grad_()
    result = op(x, *([x] if len(op.operands) > 1 else []))
    with pytest.raises(AutogradError, match="not implemented"):
        (result[0] if op.visible > 1 else result).sum().backward()


@pytest.mark.parametrize("name", NAMES)
def test_layouts(name: str) -> None:
    apply(registry.check_layouts, name)


@pytest.mark.parametrize("name", NAMES)
def test_layouts_of_integers(name: str) -> None:
    apply(registry.check_integers, name)


@pytest.mark.parametrize("name", NAMES)
def test_empty_parts(name: str) -> None:
    apply(registry.check_empty_parts, name)


@pytest.mark.parametrize("name", [n for n in GRIDS if n in OPS])
def test_layouts_on_a_grid(name: str) -> None:
    apply(registry.check_grids, name)


@pytest.mark.parametrize("name", NAMES)
def test_strides(name: str) -> None:
    apply(registry.check_strides, name)


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].out_kernel])
def test_kernel_into_memory(name: str) -> None:
    apply(registry.check_out, name)


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].inplace_kernel])
def test_kernel_in_place(name: str) -> None:
    apply(registry.check_inplace, name)


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].scatter])
def test_scatter(name: str) -> None:
    apply(registry.check_scattered, name)
