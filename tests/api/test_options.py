"""Further arguments that functions take in PyTorch, and in OneFlow alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError
from weft.nn import functional as F

X = [[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]]
SORTED = [1.0, 3.0, 3.0, 5.0]

ALIKE: list[tuple[str, Callable[[Any], Any]]] = [
    ("prod of a dtype", lambda m: m.tensor([2, 3]).prod(dtype=m.float64) / 4),
    ("prod along", lambda m: m.prod(m.tensor(X), dim=1, keepdim=True, dtype=m.float64)),
    ("searchsorted to the right", lambda m: m.searchsorted(m.tensor(SORTED), m.tensor([3.0, 0.0]), right=True)),
    ("searchsorted by side", lambda m: m.searchsorted(m.tensor(SORTED), m.tensor([3.0]), side="left", out_int32=True)),
    ("searchsorted of a number", lambda m: m.searchsorted(m.tensor(SORTED), 4.0)),
    ("searchsorted by an order",
     lambda m: m.searchsorted(m.tensor([5.0, 1.0, 3.0]), m.tensor([2.0]), sorter=m.tensor([1, 2, 0]))),
    ("split by name", lambda m: m.split(m.tensor(X), split_size_or_sections=[1, 2], dim=1)[1]),
    ("split by its method's name", lambda m: m.tensor(X).split(split_size=2, dim=1)[1]),
    ("mv by name", lambda m: m.mv(input=m.tensor(X), vec=m.tensor([1.0, 2.0, 3.0]))),
    ("gather", lambda m: m.gather(m.tensor(X), 1, m.tensor([[2], [0]]), sparse_grad=False)),
    ("scatter and add", lambda m: m.scatter(m.tensor(X), 1, m.tensor([[2], [0]]), 2.0, reduce="add")),
    ("scatter and multiply", lambda m: m.scatter(m.tensor(X), 1, m.tensor([[2], [0]]), 3.0, reduce="multiply")),
    ("scatter", lambda m: m.tensor(X).scatter_(1, m.tensor([[2], [0]]), 3.0)),
    ("where, a method", lambda m: m.tensor(X).where(m.tensor(X) > 2, m.zeros(()))),
    ("nonzero of a number", lambda m: m.nonzero(m.tensor(5), as_tuple=True)[0]),
    ("bernoulli of all", lambda m: m.bernoulli(m.tensor(X), 1.0)),
    ("softshrink by name", lambda m: m.nn.functional.softshrink(m.tensor(X), lambd=0.5)),
    ("pooled places", lambda m: m.nn.functional.max_pool1d(m.tensor(X), 2, return_indices=True)[1]),
    ("pooled planes", lambda m: m.nn.functional.max_pool2d(m.tensor([X]), 2, 1)),
    ("pooled to a size", lambda m: m.nn.functional.adaptive_max_pool1d(m.tensor(X), 2)),
    ("places, pooled to a size", lambda m: m.nn.functional.adaptive_max_pool2d(m.tensor([X]), 2, True)[1]),
]  # fmt: skip


@pytest.mark.parametrize("run", [run for _, run in ALIKE], ids=[name for name, _ in ALIKE])
def test_it_is_torchs(run: Callable[[Any], Any]) -> None:
    ours, theirs = run(flow), run(torch)
    assert ours.tolist() == theirs.tolist()
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")


def test_draws_come_from_the_generator() -> None:
    weights = [0.1, 0.2, 0.3, 0.4]
    draws: list[Callable[[Any, Any], Any]] = [
        lambda m, source: m.bernoulli(m.tensor([0.5] * 20), generator=source),
        lambda m, source: m.bernoulli(m.zeros(20), p=0.5, generator=source),
        lambda m, source: m.multinomial(m.tensor(weights), 20, replacement=True, generator=source),
    ]
    for draw in draws:
        ours, theirs = (draw(m, m.Generator().manual_seed(7)).tolist() for m in (flow, torch))
        assert ours == theirs
    x, source = flow.ones(100), flow.Generator()
    layers: list[Callable[..., Any]] = [F.dropout, flow.nn.Dropout(generator=source), F.gumbel_softmax]
    for drawn in layers:
        options: dict[str, Any] = {} if isinstance(drawn, flow.nn.Dropout) else {"generator": source}
        first, again = ((source.manual_seed(3), drawn(x, **options))[1].tolist() for _ in range(2))
        assert first == again


def test_integers_are_labels_and_masks_of_whatever_kind() -> None:
    scores, labels = flow.tensor(X), flow.tensor([0, 2])
    for kind in (flow.int32, flow.uint8):
        given = labels.to(kind)
        assert F.cross_entropy(scores, given).item() == F.cross_entropy(scores, labels).item()
        assert F.nll_loss(scores, given).item() == F.nll_loss(scores, labels).item()
    mask = flow.tensor([[1, 0, 0], [0, 2, 0]], dtype=flow.int32)
    held = mask != 0
    assert flow.where(mask, scores, 0.0).tolist() == mask.where(scores, 0.0).tolist() == (scores * held).tolist()
    assert scores.masked_fill(mask, 7.0).tolist() == scores.clone().masked_fill_(mask, 7.0).tolist()
    assert scores.masked_fill(mask, 7.0).tolist() == scores.masked_fill(held, 7.0).tolist()
    assert flow.masked_select(scores, mask).tolist() == [1.0, 0.0]
    assert flow.masked_select(scores, mask.float()).tolist() == [1.0, 0.0]


def test_products_of_what_is_turned() -> None:
    a, b = flow.randn(2, 3, 4), flow.randn(2, 5, 4)
    expected = (a @ b.transpose(1, 2) * 0.5).tolist()
    products: list[Callable[..., Any]] = [flow.matmul, flow._C.matmul, flow.bmm, flow._C.batch_matmul]
    for product in products:
        assert product(a, b, transpose_b=True, alpha=0.5).tolist() == expected
    assert products[0](a, a, transpose_a=True).tolist() == (a.transpose(1, 2) @ a).tolist()
    orders: list[dict[str, Any]] = [{"perm": (2, 0, 1)}, {"dim0": [2, 0, 1]}]
    for order in orders:
        assert flow.transpose(a, **order).tolist() == a.permute(2, 0, 1).tolist()


def test_what_is_added_to_a_dropout_is_not_dropped() -> None:
    x = flow.ones(4)
    assert F.dropout(x, 1.0, addend=x * 3).tolist() == [3.0] * 4
    assert F.dropout(x, 0.5, training=False, addend=x).tolist() == [2.0] * 4
    layer = flow.nn.Dropout(1.0)
    assert layer(x, addend=x).tolist() == [1.0] * 4
    assert layer.eval()(x, x).tolist() == [2.0] * 4


def test_what_has_no_counterpart_is_refused() -> None:
    index = flow.tensor([[0]])
    with pytest.raises(ArgumentError, match="multiply"):
        flow.scatter(flow.tensor(X), 0, index, 1.0, reduce="mean")
    with pytest.raises(ArgumentError, match="side"):
        flow.searchsorted(flow.tensor(SORTED), 1.0, side="middle")


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_arithmetic_may_overwrite(name: str) -> None:
    x, f = flow.tensor([4.0, 6.0]), getattr(flow, name)
    expected = getattr(torch, name)(x.to_torch().clone(), 2)
    assert f(x, 2, **{"inplace": False}).tolist() == expected.tolist() and x.tolist() == [4.0, 6.0]
    y = f(input=x, other=2, **{"inplace": True})
    assert y is x and x.tolist() == expected.tolist()


def test_sums_that_overwrite_take_alpha() -> None:
    x = flow.ones(2)
    assert flow.add(x, flow.ones(2), alpha=3, **{"inplace": True}) is x and x.tolist() == [4.0, 4.0]
    assert x.sub(1, alpha=2, **{"inplace": True}) is x and x.tolist() == [2.0, 2.0]
    with pytest.raises(flow.errors.ArgumentError, match="accepted: add"):
        flow.add(x, 1, **{"inplac": True})
