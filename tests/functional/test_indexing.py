"""Indexing against torch: random keys, read and written, with gradients, on local and global tensors."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as flow
from bench.memory import peak
from weft.core.errors import IndexingError, WeftError
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

SHAPE = (3, 4, 2, 3)


def twin(key: Any) -> Any:
    """The key for torch."""
    if isinstance(key, (list, tuple)):
        return type(key)(map(twin, key))
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
@given(keys(), st.sampled_from([(), (1,), (1, 1)]))
def test_the_gradient_of_writing_reaches_both_sides(key: tuple[Any, ...], ahead: tuple[int, ...]) -> None:
    x, reference = pair()
    shape = (*ahead, *reference[twin(key)].shape)
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
        ((0, 0, 0, 0, 0), "too many indices for tensor of dimension 4: 5"),
        (slice(None, None, -1), "step must be greater than zero"),
        ((..., 0, ..., None), "Dimension out of range .*first ... of x"),
        ({}, "an index is an int, a slice, None"),
        (1.5, "an index is an int"),
    ],
)
def test_what_cannot_be_indexed_is_refused(key: Any, message: str) -> None:
    x, _ = pair()
    with pytest.raises(WeftError, match=message):
        x[key]


def test_a_mask_must_have_the_shape_of_what_it_covers() -> None:
    with pytest.raises(
        IndexError, match=r"The shape of the mask \[2\] at index 0 does not match the shape of the indexed tensor \[3\]"
    ):
        flow.ones(3)[flow.tensor([True, False])]
    with pytest.raises(IndexError, match="must be long, int, byte or bool tensors, positions or masks"):
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


# ---- keys that are sequences but no tuples ---------------------------------------------------------------

POSITIONS = st.sampled_from([0, 1, -1, 2])
ELEMENTS = st.one_of(
    POSITIONS, POSITIONS, st.lists(POSITIONS, min_size=1, max_size=2), st.tuples(POSITIONS, POSITIONS),
    st.sampled_from([None, ..., slice(None), slice(0, 2), True, [True, False, True], range(2), [[0, 1], [1, 0]]]),
    st.lists(POSITIONS, min_size=2, max_size=2).map(flow.tensor), POSITIONS.map(flow.tensor),
    st.lists(POSITIONS, min_size=2, max_size=2).map(np.array), POSITIONS.map(np.int64),
)  # fmt: skip
SEQUENCES = st.one_of(
    st.lists(ELEMENTS, max_size=4), st.lists(ELEMENTS, max_size=2).map(lambda k: [k]),
    st.lists(POSITIONS, min_size=31, max_size=33), st.lists(ELEMENTS, min_size=32, max_size=33),
    st.lists(ELEMENTS, max_size=3).map(lambda k: (slice(None), k)), st.lists(POSITIONS).map(np.array),
)  # fmt: skip


def answer(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call leaves, or which of Python's errors it raises; and whether it warns, in this file."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            left = call()
            left = left.to_torch() if isinstance(left, flow.Tensor) else left
            result = (tuple(left.shape), left.flatten().tolist())
        except (IndexError, TypeError, RuntimeError, ValueError) as error:
            result = (error,)
    return result, [w.filename for w in said if "non-tuple sequence" in str(w.message)]


def alike(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    (got, warned), (expected, warns) = answer(ours), answer(theirs)
    assert warned == warns
    if isinstance(expected[0], Exception):
        assert isinstance(got[0], flow.errors.WeftError) and isinstance(got[0], (IndexError, TypeError, RuntimeError))
    else:
        assert got == expected


@settings(max_examples=250)
@given(SEQUENCES)
def test_a_list_is_read_as_torch_reads_it(key: Any) -> None:
    x, reference = pair()
    alike(lambda: x[key], lambda: reference[twin(key)])


@settings(max_examples=100)
@given(SEQUENCES)
def test_a_list_is_written_as_torch_writes_it(key: Any) -> None:
    def written(t: Any, k: Any) -> Any:
        t[k] = -1.0
        return t

    def added(t: Any, k: Any) -> Any:
        t[k] += 5
        return t

    for change in (written, added):
        x, reference = pair()
        alike(lambda x=x, change=change: change(x, key), lambda r=reference, change=change: change(r, twin(key)))


@pytest.mark.filterwarnings("ignore:Using a non-tuple")
@pytest.mark.parametrize(
    "key", [[[1, 2], [2, 0]], [slice(None), [1, 3]], [None, 1], [flow.tensor([0, 2]), flow.tensor([1, 1])], [..., [0]]]
)
def test_a_list_says_the_same_of_global_tensors_and_in_graphs(key: Any) -> None:
    class Graph(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            y = x * 1
            y[key] += 1
            return y[key], y

    P = flow.placement("cpu", [0])
    _, reference = pair()
    reference[twin(key)] += 1
    for where in ({}, {"placement": P, "sbp": flow.sbp.split(0)}):
        x = flow.tensor(torch.arange(72.0).view(SHAPE), **where)
        part, whole = Graph()(x)
        assert np.array_equal(part.numpy(), reference[twin(key)].numpy()) and np.array_equal(whole.numpy(), reference)
        x[key] += 1
        assert np.array_equal(x.numpy(), reference)


@pytest.mark.parametrize(
    "key",
    [
        torch.tensor([0, 1]), torch.tensor(1), torch.tensor(True), (slice(None), torch.tensor([0])),
        [torch.tensor([0]), 1], torch.tensor([True, False, True, False][:3]),
        *(np.array([1, 0], kind) for kind in ("int8", "int16", "uint16", "uint32", "uint64")),
        (slice(None), np.array([2, 0], "int16")), slice(np.int64(0), np.int32(2)), slice(torch.tensor(1), None),
        [1, 0], [-1, 0, 2], [True, False, True], [[0, 1]], [0], [],
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Using a non-tuple")
def test_arrays_of_others_are_keys_too(key: Any) -> None:
    """Torch's tensors and NumPy's arrays of any whole numbers; one of a single element keeps its dimension."""
    x = torch.arange(24.0).reshape(3, 4, 2)
    assert_same(flow.tensor(x)[key], x[key])
    kept = flow.tensor(x)
    kept[key] = flow.full_like(kept[key], 7.0)
    x[key] = torch.full_like(x[key], 7.0)
    assert_same(kept, x)


def assert_same(ours: Any, theirs: Any) -> None:
    assert tuple(ours.shape) == tuple(theirs.shape) and torch.equal(ours.to_torch(), theirs)


@pytest.mark.parametrize("key", [slice(None, None, -1), slice(0, 3, 0), slice(0.5, 1), slice("a", None), [9], 9, "a"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_wrong_key_is_refused_as_torch_refuses_it(key: Any, inside: bool) -> None:
    key = (None, key) if inside else key
    for write in (lambda x: x[key], lambda x: x.__setitem__(key, 1.0)):
        with pytest.raises(Exception) as theirs:
            write(torch.ones(3))
        with pytest.raises(WeftError) as ours:
            write(flow.ones(3))
        assert isinstance(ours.value, next(k for k in theirs.type.__mro__ if k.__module__ == "builtins"))


@pytest.mark.filterwarnings("ignore")
def test_every_ellipsis_skips_as_many_dimensions_as_in_torch() -> None:
    parts = (..., 0, slice(None), slice(1, None), None, True)
    values = torch.arange(24).reshape(2, 3, 4)
    for n in range(1, 5):
        for key in itertools.product(parts, repeat=n):
            if key.count(...) < 2:
                continue
            try:
                want = values[key]
            except IndexError:
                with pytest.raises(IndexingError):
                    of_torch(values)[key]
                continue
            assert torch.equal(of_torch(values)[key].to_torch(), want), key


def test_what_cannot_fill_is_refused() -> None:
    """By a 0-d tensor, as by a number."""
    for m in (torch, flow):
        mask, whole, real = m.tensor([True, False]), m.ones(2, dtype=m.int64), m.ones(2)
        byte = m.ones(2, dtype=m.uint8)
        for x, value in (
            (whole, float("nan")), (whole, 1e300), (whole, 2j), (real, 2j), (byte, 300),
            (m.ones(2, dtype=m.float16), 65519.0),
            (m.ones(2, dtype=m.float16), 10**5),
        ):  # fmt: skip
            with pytest.raises(RuntimeError, match="value cannot be converted"):
                x.masked_fill(mask, m.tensor(value))
            with pytest.raises(RuntimeError, match="value cannot be converted"):
                x.masked_fill_(mask, m.tensor(value))
        assert whole.masked_fill(mask, m.tensor(2.7)).tolist() == [2, 1]
        assert byte.masked_fill(mask, m.tensor(-1)).tolist() == [255, 1]
        short = m.ones(2, dtype=m.float16)
        assert short.masked_fill(mask, m.tensor(float("-inf"))).tolist() == [float("-inf"), 1.0]
        with pytest.raises(RuntimeError, match="value cannot be converted"):
            short.masked_fill(mask, m.tensor(65504.0, dtype=m.bfloat16))  # 65536
        with pytest.raises(RuntimeError, match="value cannot be converted"):
            short.index_fill(0, m.tensor([1]), 1e6)
        with pytest.raises(RuntimeError, match="value cannot be converted"):
            m.ones(2, 2, dtype=m.float16).fill_diagonal_(1e6)


def test_several_index_tensors_and_whole_dimensions() -> None:
    a, i, w = torch.arange(60.0).view(3, 4, 5), torch.tensor([1, 0, 2]), slice(None)
    x = of_torch(a.clone())
    for key in (i, i), (w, i), (i, w, i), (w, w, i[:, None]), (i, w):
        ours = tuple(of_torch(k) if isinstance(k, torch.Tensor) else k for k in key)
        assert x[ours].tolist() == a[key].tolist()
    with pytest.raises(IndexingError):
        x[of_torch(i), of_torch(i + 9)]


def written(lib: Any, key: Any, mask: Any, x: Any, value: Any) -> Any:
    y = x * 1.0
    y[tuple(mask if k is MASK else k for k in key)] = value
    return y


MASK: Any = object()
MASKED: list[tuple[Any, tuple[int, ...], tuple[int, ...]]] = [
    ((MASK,), (4, 3), ()), ((MASK,), (4, 3), (5,)), ((MASK,), (4, 3), (1, 5)), ((MASK,), (4, 3, 5), (1,)),
    ((slice(None), MASK), (3,), (4, 1, 5)), ((slice(None), MASK), (3,), (5,)), ((slice(0, 2), MASK), (3,), (2, 1, 5)),
    ((..., MASK), (5,), (3, 1)), ((..., MASK), (3, 5), (4, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("key", "shape", "size"), MASKED)
def test_what_is_the_same_along_a_masks_true_elements_is_written_without_their_places(
    key: Any, shape: tuple[int, ...], size: tuple[int, ...]
) -> None:
    """In graphs, where their number isn't known, and in layouts: `embeddings[ids == 7] = learned`."""
    torch.manual_seed(0)
    x, value, mask = torch.randn(4, 3, 5).double(), torch.randn(size).double(), torch.rand(shape) > 0.5
    leaves = x.clone().requires_grad_(), value.clone().requires_grad_()
    expected = written(torch, key, mask, *leaves)
    (expected * x).sum().backward()

    class Graph(flow.nn.Graph):
        def build(self, mask: Any, x: Any, value: Any, weight: Any) -> Any:
            x, value = (t.detach().requires_grad_() for t in (x, value))
            y = written(flow, key, mask, x, value)
            return y.detach(), *flow.autograd.grad((y * weight).sum(), [x, value])

    def check(place: Any) -> None:
        given = [place(flow.from_torch(t.clone())) for t in (mask, x, value, x)]
        for y, dx, dv in (Graph()(*given), Graph.build(Graph(), *given)):
            for ours, theirs in ((y, expected), (dx, leaves[0].grad), (dv, leaves[1].grad)):
                assert np.allclose(ours.numpy(), theirs.detach().numpy())

    check(lambda t: t)
    P, B = flow.placement("cpu", ranks=[0, 1]), flow.sbp.broadcast
    spawn_threads(2, lambda: check(lambda t: t.to_global(P, B)), deadline=60)


ROWS, AT = 4096, [3, 0]
WRITES: dict[str, Any] = {
    "x[i] = v": lambda lib, x, i, v: x.__setitem__(i, v),
    "x[[3, 0]] = 1": lambda lib, x, i, v: x.__setitem__(AT, 1.0),
    "x[:, i] = 1": lambda lib, x, i, v: x.__setitem__((slice(None), i), 1.0),
    "x[i, i] = 1": lambda lib, x, i, v: x.__setitem__((i, i), 1.0),
    "index_put_": lambda lib, x, i, v: x.index_put_((i,), v),
    "index_copy_": lambda lib, x, i, v: x.index_copy_(0, i, v),
    "index_fill_": lambda lib, x, i, v: x.index_fill_(0, i, 2.0),
    "put_": lambda lib, x, i, v: x.put_(i, v[:, 0]),
    "scatter_reduce_": lambda lib, x, i, v: x.scatter_reduce_(0, i[:, None].expand(2, 8), v, "amax"),
    "relu_ as inplace=True": lambda lib, x, i, v: lib.nn.functional.relu(x, inplace=True),
}


@pytest.mark.parametrize("name", WRITES)
def test_to_write_few_rows_copies_no_more_than_these(name: str) -> None:
    reference, v, i = torch.randn(ROWS, 8), torch.randn(2, 8), torch.tensor(AT)
    x = flow.from_torch(reference.clone())
    mine, its = flow.from_torch(v), flow.from_torch(i)
    WRITES[name](torch, reference, i, v)
    assert peak(lambda: WRITES[name](flow, x, its, mine), 1) < ROWS * 8
    assert torch.equal(flow.to_torch(x), reference)


@pytest.mark.parametrize("places", [AT, list(range(100))])
def test_a_failing_write_leaves_the_tensor_as_it_was(places: list[int]) -> None:
    x, i = flow.zeros(8, 2), flow.tensor([*places, 100])
    for write in (lambda: x.__setitem__(i, 1.0), lambda: x.index_put_((i,), flow.ones(2))):
        with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 8"):
            write()
    assert not x.numpy().any()
