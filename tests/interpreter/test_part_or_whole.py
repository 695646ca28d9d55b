"""A rank's part is neither taken for the whole nor for a part of something else."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from tests.ranks import on
from weft.core.errors import SbpError
from weft.tensor.blob import Blob
from weft.tensor.counters import counters

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
LAYOUTS = [B, S(0), S(1), P]
VALUES = np.arange(9, dtype=np.float32).reshape(3, 3)


def pair() -> Any:
    return flow.placement("cpu", ranks=[0, 1])


def laid(sbp: Any) -> Any:
    return flow.tensor(VALUES, placement=pair(), sbp=sbp)


def summed(*parts: Any) -> Any:
    """A sum of which each rank holds the part that is given."""
    return flow.tensor(parts[flow.env.get_rank()]).to_global(placement=pair(), sbp=P)


WHOLE: dict[str, Callable[[Any], Any]] = {
    "apply_": lambda x: x.clone().apply_(lambda v: v * v + 1).numpy(),
    "map_": lambda x: x.clone().map_(x * 2, lambda a, b: a * b + 1).numpy(),
    "map_ of another layout": lambda x: x.clone().map_(
        x.to_global(sbp=B) if x.is_global else x, lambda a, b: a * b + 1
    ).numpy(),
    "dlpack": lambda x: torch.from_dlpack(x).numpy(), "torch": lambda x: torch.as_tensor(x).numpy(),
}  # fmt: skip


@on(2)
def test_what_reads_all_of_a_tensor_reads_all_of_a_global_one() -> None:
    for name, read in WHOLE.items():
        for sbp in LAYOUTS:
            assert read(laid(sbp)).tolist() == read(flow.tensor(VALUES)).tolist(), (name, sbp)


@on(2)
def test_what_takes_local_tensors_refuses_global_ones() -> None:
    for sbp in LAYOUTS:
        for take in (lambda x: x.resize_(9), lambda x: x.resize_as_(x[0]), flow.utils.data.TensorDataset):
            with pytest.raises(SbpError, match="this rank has a part"):
                take(laid(sbp))
        assert flow.Tensor(laid(sbp)).tolist() == flow.tensor(laid(sbp)).tolist() == VALUES.tolist()
    assert flow.Tensor(flow.ones(4), placement=pair(), sbp=S(0)).to_local().shape == (2,)


@on(2)
def test_parts_of_a_sum_keep_its_dtype() -> None:
    half = flow.zeros(2, dtype=flow.float16, placement=pair(), sbp=P)
    assert half.copy_(summed([70000.0, 1.0], [-69999.0, 1.0])).tolist() == [1.0, 2.0]
    assert summed([0, 0], [1, 1]).copy_(summed([0.5, 1.0], [0.5, 2.6])).tolist() == [1, 3]
    whole = summed(*(np.array([n], np.int32) for n in (2**31 - 1, 1)))
    for of in (lambda x: x.sum(), lambda x: x * 1.0, lambda x: x / 2, lambda x: flow.cat([x, x.long()])[:1]):
        assert of(whole).item() == of(flow.tensor(np.array([-(2**31)], np.int32))).item()


COPIES: dict[str, Callable[[Any], Any]] = {
    "flatten": lambda x: x.t().flatten(), "reshape": lambda x: x.t().reshape(1, 9), "ravel": lambda x: x.t().ravel(),
    "of a view": lambda x: x[:, :2].t().reshape(-1), "contiguous": lambda x: x.t().contiguous(),
    "a view": lambda x: x.t().reshape(3, 3), "of one row": lambda x: x[:1].t().reshape(3),
}  # fmt: skip


@on(3)
def test_what_one_device_would_copy_is_a_copy_on_every_rank() -> None:
    """Over 3 ranks each part is one row or column, which could be viewed in any order."""
    place = flow.placement("cpu", ranks=[0, 1, 2])
    for name, made in COPIES.items():
        for sbp in LAYOUTS:
            x, alone = flow.tensor(VALUES, placement=place, sbp=sbp), flow.tensor(VALUES)
            for t in (y := made(x), z := made(alone)), (x, alone):
                for each in t:
                    each.mul_(3).add_(1)
            assert (y.tolist(), x.tolist()) == (z.tolist(), alone.tolist()), (name, sbp)


@on(2)
def test_views_tell_of_a_gradient_that_their_base_got() -> None:
    for sbp in LAYOUTS:
        learns, base = laid(sbp).requires_grad_(), laid(sbp) * 0
        row, deep, copy = base[0], base.t()[1:], base.t().reshape(-1)
        base[:, [0, 1]] = learns[:, [1, 0]]
        assert row.requires_grad and deep.requires_grad and not row.is_leaf and not copy.requires_grad
        (row.sum() + deep.sum()).backward()
        assert learns.grad.tolist() == [[2.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


@on(2)
def test_a_tensor_of_the_other_dtype_and_place_is_itself() -> None:
    x, other = laid(S(0)), laid(B)
    x.type_as(other).fill_diagonal_(9)
    x.to(other)[0, 1] = 7
    assert x.tolist() == [[9.0, 7.0, 2.0], [3.0, 9.0, 5.0], [6.0, 7.0, 9.0]]


@on(2)
def test_masks_where_values_are_put() -> None:
    for sbp in LAYOUTS:
        for mask in ([True, False, True], VALUES > 4):
            x, alone = laid(sbp), torch.tensor(VALUES)
            new = alone[torch.tensor(mask)] * 2
            x.index_put_((flow.tensor(mask, placement=pair(), sbp=S(0)),), flow.tensor(new, placement=pair(), sbp=B))
            assert x.tolist() == alone.index_put_((torch.tensor(mask),), new).tolist()


def test_a_first_write_is_told_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "overwritten", counters.overwritten)
    found = importlib.util.find_spec("weft.tensor.written")
    assert found is not None and found.loader is not None
    anew = importlib.util.module_from_spec(found)  # as in a process that starts
    found.loader.exec_module(anew)
    blob = Blob(torch.ones(1))
    anew.mark([blob])
    assert blob.written != 0
