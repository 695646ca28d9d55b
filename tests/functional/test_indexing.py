"""Indexing against torch: random keys, read and written, with gradients, on local and global tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as flow

SHAPE = (3, 4, 2, 3)


def twin(key: Any) -> Any:
    """The key for torch."""
    if isinstance(key, tuple):
        return tuple(map(twin, key))
    return key.to_torch() if isinstance(key, flow.Tensor) else key


@st.composite
def keys(draw: Any) -> tuple[Any, ...]:
    """A legal key into SHAPE: a tuple of ints, slices, None, Ellipsis, lists, tensors and masks."""
    parts: list[Any] = []
    dim, form = 0, None
    end = draw(st.integers(0, len(SHAPE)))
    while dim < end:
        n = SHAPE[dim]
        kind = draw(st.sampled_from(["int", "slice", "slice", "none", "tensor", "list", "mask"]))
        if kind == "none":
            parts.append(None)
            if len(parts) > 7:
                break
            continue
        if kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-n - 1, n + 1)
            parts.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "mask":
            if form is not None:
                continue
            values = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            form = (sum(values),)
            parts.append(flow.tensor(values))
        else:
            form = draw(st.sampled_from([(2,), (2, 2), (1,)])) if form is None else form
            if form == (0,):
                break
            values = np.array(draw(st.lists(st.integers(-n, n - 1), min_size=4, max_size=4)))
            values = values[: int(np.prod(form))] if np.prod(form) <= 4 else np.resize(values, np.prod(form))
            shaped = values.reshape(form)
            parts.append(flow.tensor(shaped) if kind == "tensor" else shaped.tolist())
        dim += 1
    if draw(st.booleans()):
        parts.append(...)
        if dim < len(SHAPE) and draw(st.booleans()):
            parts.append(draw(st.integers(0, SHAPE[-1] - 1)))
    return tuple(parts)


def pair() -> tuple[flow.Tensor, torch.Tensor]:
    reference = torch.arange(72.0).view(SHAPE)
    return flow.tensor(reference), reference


@settings(max_examples=200)
@given(keys())
def test_reading_gives_what_torch_gives(key: tuple[Any, ...]) -> None:
    x, reference = pair()
    expected = reference[twin(key)]
    got = x[key]
    assert tuple(got.shape) == tuple(expected.shape)
    assert torch.equal(got.to_torch(), expected)
    if expected.numel():
        shared = expected.data_ptr() >= reference.data_ptr() and expected.untyped_storage().data_ptr() == (
            reference.untyped_storage().data_ptr()
        )
        ours = got.to_torch().untyped_storage().data_ptr() == x.to_torch().untyped_storage().data_ptr()
        assert ours == shared, "a view shares memory, a copy doesn't"


@settings(max_examples=100)
@given(keys())
def test_the_gradient_of_reading_goes_where_torch_sends_it(key: tuple[Any, ...]) -> None:
    x, reference = pair()
    x.requires_grad_()
    reference.requires_grad_()
    (x[key] * x[key]).sum().backward()
    reference[twin(key)].square().sum().backward()
    assert torch.equal(x.grad.to_torch(), reference.grad)


@settings(max_examples=150)
@given(keys(), st.sampled_from(["number", "scalar", "full"]))
def test_writing_leaves_what_torch_leaves(key: tuple[Any, ...], kind: str) -> None:
    x, reference = pair()
    part = reference[twin(key)]
    value: Any = -1.5 if kind == "number" else torch.tensor(-2.5) if kind == "scalar" else -torch.ones(part.shape)
    reference[twin(key)] = value
    x[key] = flow.tensor(value) if isinstance(value, torch.Tensor) else value
    assert torch.equal(x.to_torch(), reference)


@settings(max_examples=60)
@given(keys())
def test_the_gradient_of_writing_reaches_both_sides(key: tuple[Any, ...]) -> None:
    x, reference = pair()
    shape = reference[twin(key)].shape
    value, twin_value = flow.ones(shape, requires_grad=True), torch.ones(shape, requires_grad=True)
    x.requires_grad_()
    reference.requires_grad_()
    y, z = x * 2, reference * 2
    y[key] = value * 3
    z[twin(key)] = twin_value * 3
    (y * y).sum().backward()
    (z * z).sum().backward()
    assert torch.equal(x.grad.to_torch(), reference.grad)
    # two values for one place: which of them stays is left open, by torch too
    if _distinct(key):
        assert torch.equal(value.grad.to_torch(), twin_value.grad)


def _distinct(key: tuple[Any, ...]) -> bool:
    places = torch.arange(72).view(SHAPE)[twin(key)]
    return places.unique().numel() == places.numel()


@pytest.mark.parametrize("sbp", [flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1), flow.sbp.partial_sum])
@pytest.mark.parametrize(
    "key", [1, slice(1, 3), (slice(None), 2), ([0, 2],), (0, [1, 1]), (slice(None), [3, 0], 1), ...]
)
def test_global_tensors_are_read_and_written_alike_in_every_layout(sbp: Any, key: Any) -> None:
    P = flow.placement("cpu", [0])
    reference = torch.arange(72.0).view(SHAPE)
    x = flow.tensor(reference, placement=P, sbp=sbp)
    assert torch.equal(torch.from_numpy(x[key].numpy()), reference[key])
    x[key] = 7
    reference[key] = 7
    assert torch.equal(torch.from_numpy(x.numpy()), reference)
    assert x.sbp == (sbp,)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0, 0, 0), "too many indices: 5 for a tensor of 4 dimensions"),
        (slice(None, None, -1), "a slice's step must be greater than zero"),
        ((..., 0, ...), "only have a single ellipsis"),
        ("a", "an index is an int, a slice, None"),
        (1.5, "an index is an int"),
    ],
)
def test_what_cannot_be_indexed_is_refused(key: Any, message: str) -> None:
    x, _ = pair()
    with pytest.raises(IndexError, match=message):
        x[key]


def test_a_mask_must_have_the_shape_of_what_it_covers() -> None:
    with pytest.raises(IndexError, match="mask of shape"):
        flow.ones(3)[flow.tensor([True, False])]
    with pytest.raises(IndexError, match="integers or masks"):
        flow.ones(3)[flow.tensor([0.0])]


def test_a_leaf_that_requires_a_gradient_is_not_written() -> None:
    x = flow.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 1
    with flow.no_grad():
        x[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0]


def test_iterating_goes_over_the_first_dimension() -> None:
    assert [row.tolist() for row in flow.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
