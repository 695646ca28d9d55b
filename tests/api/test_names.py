"""One table behind every public name, and what torch does as the oracle of what the names mean."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

import weft as flow
from weft.api import table
from weft.nn import functional as lookup
from weft.ops import OPS


def same(got: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            same(g, e)
    elif isinstance(expected, torch.Tensor):
        assert tuple(got.shape) == tuple(expected.shape)
        assert got.dtype.torch == expected.dtype
        torch.testing.assert_close(got.to_torch(), expected, equal_nan=True)
    else:
        assert got == expected


def test_one_function_stands_behind_all_names_of_an_op() -> None:
    assert flow.tanh is flow._C.tanh is flow.Tensor.tanh is OPS["tanh"].entry
    assert flow.matmul is flow.Tensor.matmul is flow.Tensor.__matmul__
    assert flow.relu.__doc__ == OPS["relu"].__doc__


def test_every_op_is_reached_through_C() -> None:
    for name, op in OPS.items():
        if not op.conversion:
            assert callable(getattr(flow._C, name))
    with pytest.raises(AttributeError, match=r"no 'rellu'; there are relu"):
        flow._C.rellu  # noqa: B018


def test_ops_that_are_not_public_names_stay_in_C() -> None:
    assert not hasattr(flow, "relu_grad") and not hasattr(flow.Tensor, "narrow_scatter_zeros")


def test_every_public_function_says_what_it_does() -> None:
    silent = [
        f"{place}.{name}" for place in ("flow", "tensor", "neural") for name, f in table.listed(place) if not f.__doc__
    ]
    assert not silent


X = [[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]]

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("reshape", (3, 2), {}), ("reshape", ((3, -1),), {}), ("view", (6,), {}), ("permute", (1, 0), {}),
    ("permute", ((1, 0),), {}), ("transpose", (0, 1), {}), ("swapaxes", (0, 1), {}), ("t", (), {}),
    ("expand", (4, 2, 3), {}), ("broadcast_to", ((2, 2, 3),), {}), ("flatten", (), {}), ("flatten", (1,), {}),
    ("unflatten", (1, (3, 1)), {}), ("movedim", (0, 1), {}), ("split", (2, 1), {}), ("split", ([1, 2], 1), {}),
    ("chunk", (2, 1), {}), ("tensor_split", (2, 1), {}), ("tensor_split", ((1, 2), 1), {}), ("unbind", (1,), {}),
    ("repeat", (2, 1, 2), {}), ("tile", (2,), {}), ("narrow", (1, 1, 2), {}), ("squeeze", (), {}),
    ("unsqueeze", (-1,), {}), ("sum", (), {}), ("sum", (1,), {}), ("sum", (), {"dim": (0, 1), "keepdim": True}),
    ("sum", (), {"dtype": "float64"}), ("mean", (0, True), {}), ("max", (), {}), ("max", (1,), {}),
    ("max", (), {"dim": 0, "keepdim": True}), ("min", (), {}), ("min", (-1,), {}), ("amax", (1,), {}),
    ("argmax", (), {}), ("argmax", (1,), {}), ("argmin", (0, True), {}), ("norm", (), {}), ("norm", (1,), {}),
    ("var", (), {}), ("var", (1, False, True), {}), ("std", (0,), {}), ("std", (), {"dim": 1, "correction": 0}),
    ("logsumexp", (1,), {}), ("softmax", (1,), {}), ("log_softmax", (-1,), {}), ("any", (), {}), ("all", (1,), {}),
    ("clamp_min", (0.0,), {}), ("clamp_max", (1.0,), {}), ("clamp", (-1, 1), {}), ("floor", (), {}), ("round", (), {}),
    ("masked_select", (torch.tensor([True, False, True]),), {}), ("nonzero", (), {"as_tuple": True}),
    ("argwhere", (), {}), ("take_along_dim", (torch.tensor([[0, 2], [1, 1]]), 1), {}),
    ("take_along_dim", (torch.tensor([0, 5]),), {}), ("isclose", (torch.tensor([0.5, 0.25, 2.0]),), {}),
    ("index_select", (1, torch.tensor([2, 0])), {}), ("gather", (0, torch.tensor([[1, 0, 1]])), {}),
    ("scatter", (1, torch.tensor([[0], [2]]), 9.0), {}), ("addcmul", (torch.ones(3), torch.ones(3)), {"value": 2}),
    ("contiguous", (), {}), ("type_as", (torch.zeros(1, dtype=torch.float64),), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=lambda v: v if isinstance(v, str) else None)
def test_methods_take_what_torchs_take(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    theirs = {k: getattr(torch, v) if k == "dtype" else v for k, v in kwargs.items()}
    expected = getattr(torch.tensor(X), name)(*args, **theirs)
    ours = tuple(flow.tensor(a) if isinstance(a, torch.Tensor) else a for a in args)
    x = flow.tensor(X)
    same(getattr(x, name)(*ours, **kwargs), expected)
    if hasattr(flow, name) and name not in ("view", "expand", "unflatten"):
        same(getattr(flow, name)(x, *ours, **kwargs), expected)


VIEWS = ["reshape", "view", "permute", "transpose", "expand", "split", "chunk", "unbind", "narrow", "flatten", "t"]


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(name: str) -> None:
    args = {"reshape": (3, 2), "view": (3, 2), "permute": (1, 0), "transpose": (0, 1), "expand": (4, 2, 3)}
    args |= {"split": (1,), "chunk": (2,), "unbind": (), "narrow": (0, 0, 1), "flatten": (), "t": ()}
    x = flow.tensor(X)
    y = getattr(x, name)(*args[name])
    y = y[0] if isinstance(y, tuple) else y
    x[0, 0] = 42
    assert y.to_torch().flatten()[0] == 42


@pytest.mark.parametrize("name", ["__add__", "__sub__", "__mul__", "__truediv__", "__pow__"])
@pytest.mark.parametrize("other", [2, 2.5, True, "tensor", "ints"])
def test_operators_promote_and_reflect_as_torchs_do(name: str, other: Any) -> None:
    f = getattr(operator, name)
    made = {"tensor": torch.tensor([1.5, 2.0, 0.5]), "ints": torch.tensor([1, 2, 3])}
    theirs = made.get(other, other) if isinstance(other, str) else other
    if other is True and name == "__sub__":
        pytest.skip("torch refuses to subtract booleans")
    ours = flow.tensor(theirs) if isinstance(theirs, torch.Tensor) else theirs
    for data in (torch.tensor(X).abs(), torch.tensor([[1, 2, 3]])):
        same(f(flow.tensor(data), ours), f(data, theirs))
        same(f(ours, flow.tensor(data)), f(theirs, data))


@pytest.mark.parametrize("name", ["__and__", "__or__", "__xor__", "__iand__", "__ior__", "__ixor__"])
def test_operators_on_truths_and_bits(name: str) -> None:
    f = getattr(operator, name)
    for a, b in (([True, False, True], [True, True, False]), ([6, 5, 4], [3, 3, 3])):
        same(f(flow.tensor(a), flow.tensor(b)), f(torch.tensor(a), torch.tensor(b)))
    same(~flow.tensor([True, False]), ~torch.tensor([True, False]))


@pytest.mark.parametrize("name", ["__mod__", "__floordiv__"])
def test_division_with_remainder(name: str) -> None:
    f = getattr(operator, name)
    same(f(flow.tensor(X), 0.7), f(torch.tensor(X), 0.7))
    same(f(flow.tensor([7, -7]), 3), f(torch.tensor([7, -7]), 3))
    same(f(5.0, flow.tensor(X)), f(5.0, torch.tensor(X)))


@pytest.mark.parametrize("name", ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"])
def test_comparisons(name: str) -> None:
    f = getattr(operator, name)
    same(f(flow.tensor(X), 0.5), f(torch.tensor(X), 0.5))
    same(f(0.5, flow.tensor(X)), f(0.5, torch.tensor(X)))


def test_a_tensor_is_compared_with_anything() -> None:
    x = flow.ones(2)
    assert (x == None) is False and (x != "a") is True  # noqa: E711
    assert x in {x: 1}


@pytest.mark.parametrize("name", ["__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__"])
def test_operators_in_place_keep_the_tensor(name: str) -> None:
    x, reference = flow.tensor(X), torch.tensor(X)
    before, memory = x, x.data_ptr()
    x = getattr(operator, name)(x, 2)
    assert x is before and x.data_ptr() == memory
    same(x, getattr(operator, name)(reference, 2))


INPLACE = sorted(n for n, op in OPS.items() if op.inplace_kernel is not None and len(op.params) == 1)


@pytest.mark.parametrize("name", INPLACE)
def test_every_in_place_kernel_makes_a_method(name: str) -> None:
    x, reference = flow.tensor(X).abs() + 0.5, torch.tensor(X).abs() + 0.5
    memory = x.data_ptr()
    y = getattr(x, f"{name}_")()
    assert y is x and x.data_ptr() == memory
    same(x, getattr(flow._C, name)(flow.tensor(reference)).to_torch())
    leaf = flow.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        getattr(leaf, f"{name}_")()


def test_in_place_of_what_was_computed_has_a_gradient() -> None:
    x = flow.tensor(X, requires_grad=True)
    y = x * 2
    y += 1
    y[0] += 3
    y.relu_()
    y.sum().backward()
    reference = torch.tensor(X, requires_grad=True)
    z = reference * 2
    z += 1
    z[0] += 3
    z.relu_()
    z.sum().backward()
    assert torch.equal(x.grad.to_torch(), reference.grad)


def test_nn_functional_has_inplace() -> None:
    x = flow.tensor(X)
    assert lookup.relu(x) is not x
    assert lookup.relu(x, inplace=True) is x
    assert lookup.relu(x, True) is x
    same(x, torch.tensor(X).relu())
    assert flow.nn.functional.softmax is flow.softmax
    with pytest.raises(AttributeError, match=r"nn\.functional has no 'narrow'"):
        lookup.narrow  # noqa: B018


def test_the_forms_of_nn_functional() -> None:
    F, TF = lookup, torch.nn.functional
    ids, weight = torch.tensor([[0, 2]]), torch.tensor(X).t()
    same(F.embedding(flow.tensor(ids), flow.tensor(weight)), TF.embedding(ids, weight))
    same(F.leaky_relu(flow.tensor(X), negative_slope=0.2), TF.leaky_relu(torch.tensor(X), 0.2))
    same(
        F.softmax(flow.tensor([1, 2]), 0, dtype=flow.float64), TF.softmax(torch.tensor([1, 2]), 0, dtype=torch.float64)
    )
    x = flow.ones(1000)
    assert F.dropout(x, 0.5, training=False) is x
    dropped = F.dropout(x, 0.25)
    assert abs((dropped == 0).float().mean().item() - 0.25) < 0.05 and abs(dropped.mean().item() - 1) < 0.1
    q = torch.randn(2, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    ours = flow.tensor(q)
    for options in ({}, {"is_causal": True}, {"scale": 0.5}):
        expected = TF.scaled_dot_product_attention(q, q, q, **options)
        got = F.scaled_dot_product_attention(ours, ours, ours, **options)
        torch.testing.assert_close(got.to_torch(), expected, equal_nan=True)
        apart = F.scaled_dot_product_attention(ours, ours, ours, dropout_p=1e-12, **options)  # keeps all but the road
        torch.testing.assert_close(apart.to_torch(), expected)
    mask = torch.tensor([[True, False, True]] * 3)
    for m in (mask, torch.zeros(3, 3).masked_fill(~mask, -3.0)):
        expected = TF.scaled_dot_product_attention(q, q, q, m)
        got = F.scaled_dot_product_attention(ours, ours, ours, flow.tensor(m), 1e-12)
        torch.testing.assert_close(got.to_torch(), expected, equal_nan=True)


def test_stacking() -> None:
    parts = [torch.tensor(X), torch.tensor(X) + 1]
    ours = [flow.tensor(p) for p in parts]
    for name in ("stack", "cat", "concat", "hstack", "vstack", "dstack", "column_stack"):
        same(getattr(flow, name)(ours), getattr(torch, name)(parts))
    same(flow.stack(ours, -1), torch.stack(parts, -1))
    vectors = [p[0] for p in parts]
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        same(getattr(flow, name)([flow.tensor(v) for v in vectors]), getattr(torch, name)(vectors))


def test_overwriting() -> None:
    x = flow.zeros(2, 3)
    assert x.fill_(2).tolist() == [[2.0] * 3] * 2
    assert x.zero_().tolist() == [[0.0] * 3] * 2
    assert x.copy_(flow.tensor([1, 2, 3])).tolist() == [[1.0, 2.0, 3.0]] * 2
    flow.manual_seed(0)
    assert 0.4 < x.uniform_(0, 1).numpy().clip(0, 1).mean() * 1.0 + 0.2 < 1.0
    big = flow.empty(10000).normal_(3, 2)
    assert abs(big.mean().item() - 3) < 0.1 and abs(big.numpy().std() - 2) < 0.1
    ones = flow.empty(10000).bernoulli_(0.25)
    assert abs(ones.mean().item() - 0.25) < 0.02 and set(ones.tolist()) == {0.0, 1.0}
    waits = flow.empty(10000).exponential_(2.0)
    assert abs(waits.mean().item() - 0.5) < 0.03 and (waits >= 0).numpy().all()


def test_an_op_registered_at_run_time_is_called_by_name() -> None:
    def test_only_doubled(x: flow.Tensor) -> flow.Tensor:
        return x * 2

    flow.register(test_only_doubled)
    try:
        assert flow._C.test_only_doubled(flow.ones(2)).tolist() == [2.0, 2.0]
        with pytest.raises(TypeError, match=r"flow\._C\.relu exists already"):
            flow.register(test_only_doubled, name="relu")
    finally:
        del table.ADAPTERS["flow"]["test_only_doubled"]


@pytest.mark.parametrize("cut", [lambda x: x.unbind(1), lambda x: x.split([1, 2, 1], 1), lambda x: x.chunk(2), list])
def test_the_gradient_of_parts_is_put_together_once(cut: Any) -> None:
    reference, x = torch.arange(12.0).view(3, 4).requires_grad_(), flow.arange(12.0).view(3, 4).requires_grad_()
    sum((i + 1) * (p * p).sum() for i, p in enumerate(cut(reference * 2))).backward()
    parts = cut(x * 2)
    assert len({id(p.grad_fn) for p in parts}) == 1
    sum((i + 1) * (p * p).sum() for i, p in enumerate(parts)).backward()
    same(x.grad, reference.grad)


def test_parts_stay_views_when_they_are_overwritten() -> None:
    x = flow.ones(3, 2, requires_grad=True)
    y = x * 1
    first, second, _ = y.unbind()
    first.mul_(5)
    (y.sum() + second.sum()).backward()
    assert x.grad.tolist() == [[5.0, 5.0], [2.0, 2.0], [1.0, 1.0]]
