"""Updates by sparse gradients, against torch's; and those of rows in graphs, against dense ones."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.core.errors import ArgumentError
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

B, S = flow.sbp.broadcast, flow.sbp.split
ROWS, WIDTH = 20, 3
PADDING = 3
LAYERS = {"lookup": {}, "sum": {"mode": "sum"}, "mean": {"mode": "mean"}}
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}), ("SGD", {"maximize": True}), ("SGD", {"momentum": 0.9}), ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1}), ("SparseAdam", {}), ("SparseAdam", {"maximize": True}),
]  # fmt: skip


def ids(n: int) -> list[torch.Tensor]:
    of = torch.Generator().manual_seed(1)
    return [torch.randint(0, ROWS, (4, 3), generator=of) for _ in range(n)]


def table(lib: Any, layer: str, **options: Any) -> Any:
    """The same values in torch and here."""
    cls = lib.nn.Embedding if layer == "lookup" else lib.nn.EmbeddingBag
    made = cls(ROWS, WIDTH, padding_idx=PADDING, sparse=True, **LAYERS[layer], **options)
    values = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(2))
    with lib.no_grad():
        made.weight.copy_(values if lib is torch else of_torch(values))
    return made


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(("name", "options"), STEPS)
def test_steps_are_torchs(layer: str, name: str, options: dict[str, Any]) -> None:
    found = []
    for lib in (torch, flow):
        layer_, head = table(lib, layer), lib.nn.Parameter(lib.ones(WIDTH))
        others = [head] if name != "SparseAdam" else []
        optimizer = getattr(lib.optim, name)([layer_.weight, *others], lr=0.1, **options)
        for x in ids(5):
            optimizer.zero_grad()
            (layer_(x if lib is torch else of_torch(x)) * head).square().mean().backward()
            assert layer_.weight.grad.is_sparse and layer_.weight.grad.layout is torch.sparse_coo
            optimizer.step()
        found.append([t.tolist() for t in (layer_.weight, head, layer_.weight.grad.to_dense())])
    for ours, theirs in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_what_is_added_to_it() -> None:
    sums = []
    for lib in (torch, flow):
        layer, (x, y) = table(lib, "lookup"), ids(2)
        x, y = (x, y) if lib is torch else (of_torch(x), of_torch(y))
        layer(x).sum().backward()
        layer(y).square().sum().backward()  # sparse and sparse
        kinds = [layer.weight.grad.is_sparse]
        sums.append([layer.weight.grad.to_dense().tolist()])
        layer.weight.sum().backward()
        kinds.append(layer.weight.grad.is_sparse)
        layer(x).sum().backward()  # to a dense one
        (layer.weight.sum() + layer(x).sum()).backward()
        sums[-1].append(layer.weight.grad.tolist())
        layer.zero_grad()
        (layer(x).sum() + layer.weight.sum()).backward()
        sums[-1].append(layer.weight.grad.tolist())
        assert kinds == [True, False] and not layer.weight.grad.is_sparse
    assert sums[0] == sums[1]


def test_its_parts_have_torchs_names() -> None:
    layer = table(flow, "lookup")
    layer(flow.tensor([5, 1, 5, PADDING])).sum().backward()
    g = layer.weight.grad
    assert g._indices().tolist() == [[5, 1, 5]] and g._nnz() == 3 and not g.is_coalesced()
    assert (g.sparse_dim(), g.dense_dim(), g.shape) == (1, 1, (ROWS, WIDTH))
    assert g._values().tolist() == [[1.0] * WIDTH] * 3
    whole = g.coalesce()
    assert whole.indices().tolist() == [[1, 5]] and whole.values().tolist() == [[1.0] * WIDTH, [2.0] * WIDTH]
    assert "sparse_coo" in repr(g) and copy.deepcopy(g).to_dense().equal(g.to_dense())
    with pytest.raises(ArgumentError, match=r"values\(\) expected a sparse tensor"):
        flow.ones(2).values()
    assert flow.ones(2).to_dense().tolist() == [1.0, 1.0] and flow.ones(2).layout is torch.strided


def test_clipping_scaling_and_optimizers_that_move_every_row() -> None:
    for step in (
        lambda p: nn.utils.clip_grad_norm_(p, 0.5), lambda p: nn.utils.clip_grad_value_(p, 0.25),
        lambda p: flow.optim.AdamW(p, lr=0.1).step(), lambda p: flow.optim.SGD(p, lr=0.1, weight_decay=0.5).step(),
        lambda p: flow.amp.GradScaler(init_scale=4.0).unscale_(flow.optim.SGD(p, lr=0.1)),
    ):  # fmt: skip
        layer = table(flow, "lookup")
        other = nn.Embedding(ROWS, WIDTH, _weight=layer.weight.detach().clone(), padding_idx=PADDING)
        for m in (layer, other):
            m(of_torch(ids(1)[0])).square().sum().backward()
            step([m.weight])
        assert layer.weight.grad.is_sparse and not other.weight.grad.is_sparse
        torch.testing.assert_close(layer.weight.grad.to_dense().to_torch(), other.weight.grad.to_torch())
        torch.testing.assert_close(layer.weight.detach().to_torch(), other.weight.detach().to_torch())


def test_derivatives_of_it_hooks_and_what_looks_at_its_numbers() -> None:
    found = []
    for lib in (torch, flow):
        layer = table(lib, "lookup")
        x = ids(1)[0] if lib is torch else of_torch(ids(1)[0])
        (g,) = lib.autograd.grad(layer(x).pow(3).sum(), layer.weight, create_graph=True)
        again = lib.autograd.grad(g.to_dense().square().sum(), layer.weight)[0]
        layer.weight.register_hook(lambda g: g * 2)
        with lib.autograd.detect_anomaly(check_nan=True):
            layer(x).sum().backward()
        assert again.is_sparse and layer.weight.grad.is_sparse
        found.append([t.to_dense().tolist() for t in (again, layer.weight.grad)])
        assert layer.weight.grad.any() and not lib.isnan(layer.weight.grad).any()
        with pytest.raises(TypeError, match="to_dense"):
            layer.weight.grad.numpy()
    torch.testing.assert_close(torch.tensor(found[1]), torch.tensor(found[0]))


def test_its_norms_and_references_to_it() -> None:
    found = []
    for lib in (torch, flow):
        layer = table(lib, "lookup")
        layer(lib.tensor([5, 1, 5])).square().sum().backward()
        g = layer.weight.grad
        layer(lib.tensor([2, 1])).sum().backward()
        assert g is layer.weight.grad
        found.append([float(v) for v in (g.norm(), g.norm(1), g.norm(p=float("inf")), g.norm("fro"), g.data.norm(-2))])
    torch.testing.assert_close(found[1], found[0])
    g: Any = flow.autograd.grad(layer(flow.tensor([5, 1])).pow(2).sum(), layer.weight, create_graph=True)[0]
    g.norm().backward()
    assert g.norm(dim=1).equal(g.to_dense().norm(dim=1))


@pytest.mark.parametrize("step", ["clip_grad_norm_", "clip_grad_value_", "unscale_"])
def test_gradients_of_one_row_are_apart(step: str) -> None:
    """Two tables get the same rows."""
    found = []
    for x in ([5], [5, PADDING], [5, 1]):
        one, two = table(flow, "lookup"), table(flow, "lookup")
        dy = flow.ones(len(x), WIDTH)
        (one(flow.tensor(x)) + two(flow.tensor(x))).backward(dy)
        if step == "unscale_":
            flow.amp.GradScaler(init_scale=4.0).unscale_(flow.optim.SGD([one.weight], lr=0.1))
        else:
            getattr(nn.utils, step)([one.weight], 0.25)
        found += [dy[0].tolist(), two.weight.grad.to_dense()[5].tolist()]
        assert one.weight.grad.to_dense()[5].max() < 0.3
    assert found == [[1.0] * WIDTH] * 6


def test_sums_over_ranks_are_sparse() -> None:
    def each() -> list[Any]:
        found = []
        for add in (flow.comm.all_reduce, flow.comm.reduce):
            layer = table(flow, "lookup")
            layer(flow.tensor([1, 1, 4 + flow.env.get_rank()])).sum().backward()
            add(layer.weight.grad)
            g = layer.weight.grad
            found.append([g.is_sparse, g.coalesce().indices().tolist(), g.to_dense()[:, 0].tolist()])
        return found

    expected = [0.0] * ROWS
    expected[1], expected[4], expected[5] = 4.0, 1.0, 1.0
    first, second = spawn_threads(2, each)
    assert first == [[True, [[1, 4, 5]], expected]] * 2 and second[0] == first[0]


def test_a_module_that_becomes_global_has_a_dense_gradient() -> None:
    layer = table(flow, "lookup")
    layer(flow.tensor([5, 1])).sum().backward()
    expected = layer.weight.grad.to_dense().tolist()
    layer.to_global(flow.placement("cpu", [0]), B)
    assert layer.weight.grad.tolist() == expected


@pytest.mark.parametrize("wrap", [
    lambda layer: flow.parallel.fully_shard(nn.Sequential(layer)), nn.parallel.DistributedDataParallel,
], ids=["shards", "means"])  # fmt: skip
def test_gradients_are_dense_over_ranks(wrap: Any) -> None:
    def trained(layer: Any, part: Callable[[Any], Any]) -> Any:
        optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
        for x in ids(3):
            optimizer.zero_grad()
            layer(part(of_torch(x))).square().mean().backward()
            optimizer.step()
        (weight,) = layer.parameters()
        return torch.tensor(weight.numpy())

    expected = trained(table(flow, "lookup"), lambda x: x)
    for found in spawn_threads(
        2, lambda: trained(wrap(table(flow, "lookup")), lambda x: x.chunk(2)[flow.env.get_rank()])
    ):
        torch.testing.assert_close(found, expected)


# ---- graphs ------------------------------------------------------------------------------------------


class Asked(Trains):
    """Whose optimizer is said to be sparse."""

    def add_optimizer(self, optim: Any, **_: Any) -> None:
        super().add_optimizer(optim, is_sparse=True)


def weights_after(model: Any, graph: Any, x_sbp: Any = None) -> torch.Tensor:
    for x in ids(3):
        x = of_torch(x)
        graph(x if x_sbp is None else x.to_global(placement=model[0].weight.placement, sbp=x_sbp))
    return torch.tensor(model[0].weight.numpy())


def model_of(layer: str, sparse: bool = True) -> Any:
    looked_up = table(flow, layer)
    looked_up.sparse = sparse
    head = nn.Linear(WIDTH, 2)
    with flow.no_grad():
        head.weight.fill_(0.5), head.bias.fill_(0.25)
    return nn.Sequential(looked_up, head)


def ops_of(graph: Any) -> list[str]:
    return [n.op for n in graph.job.nodes]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("maximize", [False, True])
def test_a_graph_updates_rows_and_makes_no_gradient_of_a_table(layer: str, maximize: bool) -> None:
    found = []
    for sparse, kind in ((False, Trains), (True, Trains), (layer == "lookup", Asked)):
        model = model_of(layer, sparse)
        graph = kind(model, flow.optim.SGD(model.parameters(), lr=0.1, maximize=maximize))
        found.append(weights_after(model, graph))
        by_rows = sparse or (kind is Asked and layer == "lookup")
        assert ("embedding_weight_grad" not in ops_of(graph)) is (by_rows or layer != "lookup")
        assert ("sgd_rows_update" in ops_of(graph)) is by_rows
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(found[2], found[0])


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_is_nan_at_padding_stays_out_of_the_table(ranks: int) -> None:
    def each() -> list[Any]:
        model = model_of("lookup")
        if ranks > 1:
            model.to_global(placement=flow.placement("cpu", [0, 1]), sbp=B)
            model[0].to_global(placement=flow.placement("cpu", [0, 1]), sbp=S(0))
        seen = flow.tensor([1.0, float("nan"), 2.0]).unsqueeze(1)
        x = flow.tensor([5, PADDING, 12])
        if ranks > 1:
            x, seen = (t.to_global(placement=flow.placement("cpu", [0, 1]), sbp=B) for t in (x, seen))
        graph = Trains(model[0], flow.optim.SGD(model[0].parameters(), lr=0.1), lambda y: (y * seen).sum())
        graph(x)
        assert "sgd_rows_update" in ops_of(graph)
        return model[0].weight.numpy().tolist()

    expected = table(flow, "lookup").weight.tolist()
    expected[5], expected[12] = ([v - by for v in expected[i]] for i, by in ((5, 0.1), (12, 0.2)))
    for found in spawn_threads(ranks, each):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("table_sbp", [B, S(0), S(1)], ids=str)
@pytest.mark.parametrize("x_sbp", [B, S(0)], ids=str)
def test_ranks_exchange_rows(table_sbp: Any, x_sbp: Any) -> None:
    alone = model_of("lookup", False)
    expected = weights_after(alone, Trains(alone, flow.optim.SGD(alone.parameters(), lr=0.1)))

    def each() -> torch.Tensor:
        model = model_of("lookup")
        place = flow.placement("cpu", [0, 1])
        model[0].to_global(placement=place, sbp=table_sbp)
        model[1].to_global(placement=place, sbp=B)
        graph = Trains(model, flow.optim.SGD(model.parameters(), lr=0.1))
        after = weights_after(model, graph, x_sbp)
        assert "sgd_rows_update" in ops_of(graph) and "embedding_weight_grad" not in ops_of(graph)
        whole = ROWS * WIDTH * 4
        sent = [n.route.src.bytes for n in graph.job.nodes if n.op == "boxing"]
        assert all(n != whole for n in sent), "the table's gradient would be as large"
        return after

    for after in spawn_threads(2, each):
        torch.testing.assert_close(after, expected)


class Twice(nn.Sequential):
    def forward(self, x: Any) -> Any:
        return super().forward(x) + super().forward(x.flip(0))


@pytest.mark.parametrize("why", ["momentum", "clipped", "two look-ups", "accumulated", "scaled", "Adagrad"])
def test_where_the_whole_gradient_is_needed_it_is_made(why: str) -> None:
    found = []
    for sparse in (False, True):
        model = model_of("lookup", sparse)
        model = Twice(*model) if why == "two look-ups" else model
        options: dict[str, Any] = {"momentum": 0.9} if why == "momentum" else {}
        group = {"params": list(model.parameters()), **({"clip_grad_max_norm": 0.1} if why == "clipped" else {})}
        optimizer = (flow.optim.Adagrad if why == "Adagrad" else flow.optim.SGD)([group], lr=0.1, **options)
        graph = Trains(model, optimizer, steps=2 if why == "accumulated" else 1)
        if why == "scaled":
            graph.set_grad_scaler(flow.amp.GradScaler(init_scale=4.0))
        found.append(weights_after(model, graph))
        assert "embedding_weight_grad" in ops_of(graph) and "sgd_rows_update" not in ops_of(graph)
    torch.testing.assert_close(found[1], found[0])


def test_a_gradient_that_the_program_reads_is_dense() -> None:
    class Reads(Trains):
        def build(self, x: Any) -> Any:
            super().build(x)
            return self.model[0].weight.grad

    model, other = model_of("lookup"), model_of("lookup", False)
    x = ids(1)[0]
    other(of_torch(x)).square().mean().backward()
    got = Reads(model, flow.optim.SGD(model.parameters(), lr=0.1))(of_torch(x))
    assert not got.is_sparse
    torch.testing.assert_close(got.to_torch(), other[0].weight.grad.to_torch())
