"""Eager global ops: the logical value is torch's, whatever the layout; mixtures and strangers are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from tests.graphs import Calls
from weft.core.dtype import kept
from weft.core.errors import ArgumentError, AutogradError, PlacementError, SbpError, ShapeError
from weft.launch import spawn_threads

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
ONE_AXIS = [B, S(0), S(1), P]


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


PROGRAMS: list[Callable[[Any, Any, Any], Any]] = [
    lambda m, a, b: a @ b,
    lambda m, a, b: (a + a[:1]) * b.sum(),
    lambda m, a, b: m.softmax(a, 1) - b.t().mean(0, keepdim=True)[:, :1],
    lambda m, a, b: m.cat([a, b.t()], 0),
    lambda m, a, b: a.reshape(-1)[2:9].exp() - b[1:, 2].sum(),
    lambda m, a, b: a.max(0)[0] + b.t().cumsum(1),
    lambda m, a, b: m.where(a > 0, a, b.t()),
    lambda m, a, b: a.var(1) + b.norm(),
]


def run_all(ranks: Any, layouts: list[Any]) -> list[np.ndarray]:
    """Every program on every pair of layouts: the value, then the gradients."""
    place = flow.placement("cpu", ranks=ranks)
    found = []
    for program, (sa, sb) in product(PROGRAMS, product(layouts, layouts)):
        a = flow.tensor(data(5, 3), placement=place, sbp=sa, requires_grad=True)
        b = flow.tensor(data(3, 5, seed=1), placement=place, sbp=sb, requires_grad=True)
        y = program(flow, a, b)
        (y * y).sum().backward()
        found += [y.detach().numpy(), a.grad.numpy(), b.grad.numpy()]
    return found


def in_torch() -> list[list[torch.Tensor]]:
    found = []
    for program in PROGRAMS:
        a, b = (torch.tensor(x, requires_grad=True) for x in (data(5, 3), data(3, 5, seed=1)))
        y = program(torch, a, b)
        (y * y).sum().backward()
        found.append([y.detach(), a.grad, b.grad])
    return found


@pytest.mark.parametrize(
    ("n", "ranks", "layouts"),
    [
        (1, [0], [B, S(0)]), (2, [0, 1], ONE_AXIS), (3, [0, 1, 2], [S(0), S(1), P]), (4, [0, 1, 2, 3], [S(0), P]),
        (4, [[0, 1], [2, 3]], [(S(0), S(1)), (S(0), S(0)), (P, B)]), (3, [2, 0], [S(1), P]),
    ],
)  # fmt: skip
def test_values_and_gradients_are_torchs(n: int, ranks: Any, layouts: list[Any]) -> None:
    results = spawn_threads(n, run_all, ranks, layouts, deadline=60)
    wanted = [t for three in in_torch() for _ in range(len(layouts) ** 2) for t in three]
    for rank in np.ravel(ranks):
        for got, t in zip(results[rank], wanted, strict=True):
            np.testing.assert_allclose(got, t.numpy(), rtol=2e-4, atol=1e-4)


def refusals() -> list[str]:
    place, other = flow.placement("cpu", ranks=[0, 1]), flow.placement("cpu", ranks=[1])
    x, local = flow.ones(2, 2, placement=place, sbp=S(0)), flow.ones(2, 2)
    said = []
    for call, kind in [
        (lambda: x + local, PlacementError), (lambda: local @ x, PlacementError),
        (lambda: flow.cat([x, local]), PlacementError),
        (lambda: x + flow.ones(2, 2, placement=other, sbp=B), PlacementError),
        (lambda: flow.ones(2, 2, placement=flow.placement("cpu", ranks=[0, 5]), sbp=B), PlacementError),
        (lambda: flow.ones(2, 2, placement=place, sbp=S(2)), SbpError),
        (lambda: x.to_global(sbp=S(5)), SbpError), (lambda: x.to_global(sbp=[B, B]), SbpError),
        (lambda: local.to_local(), SbpError),
    ]:  # fmt: skip
        with pytest.raises(kind) as e:
            call()
        said.append(str(e.value))
    return said


def test_what_can_not_be_is_refused_on_every_rank_alike() -> None:
    first, second = spawn_threads(2, refusals, deadline=60)
    assert first == second
    assert "some operands are global and some are local" in first[0] and "to_global" in first[0]
    assert "[0,5]" in first[4].replace(" ", "") or "5" in first[4]


def draws(sbp: Any, ranks: Any) -> list[np.ndarray]:
    place = flow.placement("cpu", ranks=ranks)
    flow.manual_seed(7)
    x = flow.randn(5, 4, placement=place, sbp=sbp)
    return [x.numpy(), flow.nn.functional.dropout(x, 0.5).numpy(), flow.rand(3, placement=place, sbp=B).numpy()]


def test_draws_do_not_depend_on_the_layout() -> None:
    every = [
        spawn_threads(n, draws, sbp, ranks, deadline=60)[0]
        for n, ranks, sbp in [(1, [0], B), (2, [0, 1], S(0)), (2, [0, 1], S(1)), (3, [0, 1, 2], S(0)), (2, [0, 1], B)]
    ]
    for found in every[1:]:
        for a, b in zip(found, every[0], strict=True):
            np.testing.assert_array_equal(a, b)


def dynamic() -> tuple[list[Any], list[Any], tuple[int, ...]]:
    place = flow.placement("cpu", ranks=[0, 1])
    x = flow.tensor(np.array([[1, 0, 2], [0, 0, 3]], np.float32), placement=place, sbp=S(0))
    where = x.nonzero()
    return where.numpy().tolist(), x[x > 0].numpy().tolist(), tuple(where.shape)


def test_shapes_that_depend_on_data() -> None:
    for found in spawn_threads(2, dynamic, deadline=60):
        assert found == ([[0, 0], [0, 2], [1, 2]], [1.0, 2.0, 3.0], (3, 2))


def conversions() -> list[Any]:
    place = flow.placement("cpu", ranks=[0, 1])
    local = flow.tensor(data(2, 3, seed=flow.env.get_rank()), requires_grad=True)
    x = local.to_global(placement=place, sbp=S(0))
    (x * flow.tensor(data(4, 3, seed=9), placement=place, sbp=B)).sum().backward()
    y = flow.tensor(data(4, 3), placement=place, sbp=S(0), requires_grad=True)
    (y.to_local() * (flow.env.get_rank() + 1)).sum().backward()
    z = flow.tensor(data(4, 3), placement=place, sbp=B)
    shared = z.to_local()
    shared.mul_(2.0)
    return [local.grad.numpy(), y.grad.numpy(), z.numpy(), tuple(x.shape)]


def test_gradients_through_conversions_and_shared_memory() -> None:
    for rank, (mine, y, z, shape) in enumerate(spawn_threads(2, conversions, deadline=60)):
        np.testing.assert_allclose(mine, data(4, 3, seed=9)[2 * rank : 2 * rank + 2], rtol=1e-6)
        np.testing.assert_array_equal(y, np.repeat([[1.0], [2.0]], 2, 0) * np.ones((4, 3)))
        np.testing.assert_allclose(z, data(4, 3) * 2)
        assert shape == (4, 3)


def outside() -> tuple[tuple[int, ...], Any]:
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[1]), sbp=B)
    y = (x * 3).sum()
    return tuple(x.shape), y.to_global(placement=flow.placement("cpu", ranks=[0, 1]), sbp=B).item()


def test_a_rank_outside_goes_along() -> None:
    assert spawn_threads(2, outside, deadline=60) == [((4, 2), 24.0)] * 2


@pytest.mark.filterwarnings("error")
def test_a_partial_number_is_made_whole_without_a_word() -> None:
    """What has no dimension has no layout to choose."""

    def roots() -> list[float]:
        x = flow.ones(4, 6, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0)) * 6
        return [x.sum().sqrt().item(), x.sum().exp().log().item(), x.sum().sin().item()]

    for found in spawn_threads(2, roots):
        np.testing.assert_allclose(found, [12.0, float("inf"), np.sin(144.0)], rtol=1e-5)


def any_and_all() -> None:
    place = flow.placement("cpu", ranks=[[0, 1], [2, 3]])
    for made in (np.zeros((3, 4)), np.ones((3, 4)), np.eye(3, 4), np.eye(3, 4, dtype=np.uint8), np.eye(3, 4) > 0):
        for sbp in product((B, S(0), S(1)), repeat=2):
            x = flow.tensor(made, placement=place, sbp=[B, B]).to_global(sbp=sbp)
            for name, given in product(("any", "all"), ((), (0,), (1,), (0, True))):
                y, expected = getattr(flow, name)(x, *given), getattr(torch, name)(torch.tensor(made), *given)
                assert y.dtype.torch is expected.dtype and np.array_equal(y.numpy(), expected.numpy())
                assert not any(s.is_partial for s in y.sbp)


@pytest.mark.filterwarnings("error")
def test_any_and_all_are_counted_where_slices_are_split() -> None:
    spawn_threads(4, any_and_all)


def written_and_looked_at() -> None:
    """What shares memory with what is told alike on every rank, whatever a rank's own part would share."""
    place = flow.placement("cpu", ranks=[0, 1])
    values = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for sbp in ONE_AXIS:
        x = flow.tensor(values, placement=place, sbp=sbp)
        assert x.contiguous() is x
        turned, view = x.t().contiguous(), x[1:]
        x.add_(1)
        assert turned.numpy().tolist() == values.T.tolist()
        assert view.detach().numpy().tolist() == (values + 1)[1:].tolist()
        x[x > 6] = 0
        assert x.numpy().tolist() == np.where(values + 1 > 6, 0, values + 1).tolist()
    for sbp in ONE_AXIS:  # a kernel may lay out a rank's part in an order of its own
        turned = flow.tensor(values, placement=place, sbp=sbp).t().to(flow.float64)
        row = turned.contiguous().view(-1)
        row.add_(1)
        assert row.detach().numpy().tolist() == (values.T + 1).flatten().tolist()
        assert turned.numpy().tolist() == (values.T + 1).tolist()
    alone = flow.tensor(2.0, placement=place, sbp=B)
    alone[alone > 3] = 1
    assert alone[alone > 1].numpy().tolist() == [2.0]


def test_writes_and_views() -> None:
    spawn_threads(2, written_and_looked_at)


def gradients_after_writes() -> list[Any]:
    found = []
    for sbp in (B, S(0)):
        x = flow.tensor([2.0, -3.0, 0.5], placement=flow.placement("cpu", ranks=[0, 1]), sbp=sbp, requires_grad=True)
        base = x * 1
        part = base[1:]
        mean = part.mean()
        part.clamp_(-1, 1)
        (base.sum() + mean).backward()
        found.append(x.grad.tolist())
        base = x * 1
        part = base[1:]
        squares = part * part
        base.mul_(2)  # part was looked at before
        x.grad = None
        try:
            squares.sum().backward()
        except AutogradError:
            continue
        assert x.grad.tolist() == [0.0, -6.0, 1.0]
    return found


def optimized() -> list[Any]:
    place = flow.placement("cpu", ranks=[0, 1])
    w = flow.nn.Parameter(flow.arange(8, dtype=flow.float32, placement=place, sbp=flow.sbp.split(0)).reshape(4, 2))
    with flow.no_grad():
        row, half = w[1], w.reshape(2, 4)
    optimizer = flow.optim.SGD([w], lr=1.0)
    w.sum().backward()
    optimizer.step()
    return [row.tolist(), half.tolist(), row.requires_grad]


def test_views_of_a_parameter_see_what_an_optimizer_wrote() -> None:
    for found in spawn_threads(2, optimized, deadline=60):
        assert found == [[1.0, 2.0], [[-1.0, 0.0, 1.0, 2.0], [3.0, 4.0, 5.0, 6.0]], False]


def test_gradients_read_what_was_there() -> None:
    assert spawn_threads(2, gradients_after_writes) == [[[1.0, 0.5, 1.5]] * 2] * 2


def found_outside() -> tuple[list[int], list[float]]:
    inside = flow.tensor([0.0, 1.0, 0.0, 2.0], placement=flow.placement("cpu", ranks=[1]), sbp=S(0))
    places, chosen = inside.nonzero(), inside[inside > 0]
    moved = chosen.to_global(placement=flow.placement("cpu", ranks=[0, 1, 2]), sbp=S(0))
    return list(places.shape), moved.numpy().tolist()


def test_shapes_that_depend_on_data_are_known_outside_of_the_placement() -> None:
    assert spawn_threads(3, found_outside) == [([2, 1], [1.0, 2.0])] * 3


def unusual_shapes() -> None:
    place = flow.placement("cpu", ranks=[0, 1])
    number, vector = (flow.ones(*s, placement=place, sbp=B) for s in ((), (3,)))
    assert flow.logsumexp(number, -1).item() == 1.0 and number.std(0).isnan().item()
    assert flow.nn.functional.linear(vector, vector).item() == 3.0
    nothing = flow.zeros(0, 4, placement=place, sbp=S(1))
    assert flow.nn.functional.mse_loss(nothing, nothing).isnan().item()
    assert flow.nn.functional.dropout(vector, 0.0) is vector
    with pytest.raises(ShapeError, match="more than one element"):
        vector.expand(2, 3).add_(1)


@pytest.mark.filterwarnings("ignore:.*has no layout rule")
def test_shapes_that_notations_do_not_tell_of() -> None:
    spawn_threads(2, unusual_shapes)


def test_what_a_composition_is_given_is_looked_at() -> None:
    def wrong() -> None:
        x = flow.ones(3, 4, placement=flow.placement("cpu", ranks=[0, 1]), sbp=B)
        flow.group_norm(x, x)

    with pytest.raises(ArgumentError, match="num_groups"):
        spawn_threads(2, wrong)


TWICE: dict[str, Callable[[Any], Any]] = {
    "with itself": lambda x: x @ x, "turned": lambda x: x * x.t(), "outer": lambda x: x[:, :1] * x[:1],
    "sizes": lambda x: x.norm(dim=0), "spread": lambda x: x.var(0), "logs": lambda x: x.logsumexp(0),
    "products": lambda x: x.cumprod(0), "product": lambda x: x.prod(), "of a value": lambda x: (x * 2) @ (x * x),
    "joined": lambda x: flow.cat([x @ x.t(), x]),
}  # fmt: skip


def second_derivatives() -> list[list[Any]]:
    place, found = flow.placement("cpu", ranks=[0, 1]), []
    for sbp in (B, S(0), S(1)):
        weight = flow.tensor([1.0, 2.0], placement=place, sbp=B)
        for of in TWICE.values():
            x = flow.tensor([[0.5, 2.0], [1.5, -0.7]], placement=place, sbp=sbp, requires_grad=True)
            (gradient,) = flow.autograd.grad((of(x) * weight).sum(), x, create_graph=True)
            found.append(flow.autograd.grad((gradient * gradient).sum(), x)[0].numpy().tolist())
    return found


def test_second_derivatives_go_through_what_was_boxed() -> None:
    found = spawn_threads(2, second_derivatives)[0]
    whole = found[: len(TWICE)]
    for i in (1, 2):
        np.testing.assert_allclose(found[i * len(TWICE) : (i + 1) * len(TWICE)], whole, rtol=1e-4, atol=1e-5)


def rearranged(dtype: torch.dtype) -> list[torch.Tensor]:
    """Each rank has a part of a result, and zeros elsewhere, which are added: of storage formats, too."""
    place = flow.placement("cpu", [0, 1])
    found = []
    for sbp in (S(0), S(1)):
        x = flow.tensor(torch.arange(15).reshape(5, 3).to(dtype), placement=place, sbp=sbp)
        for y in (flow.cat([x, x], sbp.dim), x.reshape(-1), Calls(lambda x: x.reshape(-1))(x)):
            found.append(y.to_global(sbp=B).to_local().to_torch().float())
    return found


@pytest.mark.parametrize("dtype", [kind.torch for kind in kept], ids=str)
def test_storage_formats_are_rearranged(dtype: torch.dtype) -> None:
    x = torch.arange(15.0).reshape(5, 3).to(dtype).float()
    wanted = [y for d in (0, 1) for y in (torch.cat([x, x], d), x.reshape(-1), x.reshape(-1))]
    for found in spawn_threads(2, rearranged, dtype):
        assert all(map(torch.equal, found, wanted))


def test_infinities_of_a_part_are_multiplied_by_no_zeros() -> None:
    """One row over two ranks, whose squares might be made of a partial sum and the whole."""

    def run() -> list[Any]:
        place = flow.placement("cpu", ranks=[0, 1])
        x = flow.tensor([[float("inf"), 1.0, -2.0]], placement=place, sbp=flow.sbp.split(0))
        return [(x * x).tolist(), flow.linalg.vector_norm(x).item(), (x * x.exp()).tolist()]

    inf = float("inf")
    for squares, norm, powers in spawn_threads(2, run):
        assert squares == [[inf, 1.0, 4.0]] and norm == inf and powers[0][0] == inf
