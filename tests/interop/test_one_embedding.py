"""OneFlow's tables of embeddings, in memory: torch's embeddings, and one rank for several, are the oracles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn, one_embedding
from weft.core.errors import ArgumentError, OptionError
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast
IDS = torch.tensor([[0, 4, 9], [1, 4, 8], [0, 5, 9], [2, 6, 7]])


def made(folder: Any, uniform: list[tuple[float, float]], **options: Any) -> Any:
    """As OneFlow's documentation has it."""
    tables = [
        one_embedding.make_table_options(one_embedding.make_uniform_initializer(low=low, high=high))
        for low, high in uniform
    ]
    store = one_embedding.make_cached_ssd_store_options(
        cache_budget_mb=8, persistent_path=str(folder), capacity=10, size_factor=1, physical_block_size=4096
    )
    return one_embedding.MultiTableEmbedding(
        name="sparse", embedding_dim=4, dtype=flow.float, key_type=flow.int64, tables=tables, store_options=store,
        **options,
    )  # fmt: skip


ALIKE, UNLIKE = [(-0.1, 0.1)] * 3, [(-0.1, 0.1), (1.0, 1.5), (-3.0, -2.0)]


@pytest.mark.parametrize("uniform", [ALIKE, UNLIKE], ids=["alike", "unlike"])
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_tables_train_as_torchs_embedding(tmp_path: Path, uniform: Any, graph: bool) -> None:
    flow.manual_seed(0)
    torch.manual_seed(0)
    table, head = made(tmp_path, uniform), nn.Linear(12, 1)
    first = table(flow.from_torch(IDS)).detach()
    for i, (low, high) in enumerate(uniform):
        assert first[:, i].min().item() >= low and first[:, i].max().item() <= high
    theirs, last = torch.nn.Embedding(10, 4), torch.nn.Linear(12, 1)
    last.load_state_dict({n: t.to_torch().clone() for n, t in head.state_dict().items()})
    with torch.no_grad():
        theirs.weight[IDS] = first.to_torch()
    optimizers = [k.Adam([*t.parameters(), *h.parameters()], lr=0.1)
                  for k, t, h in ((flow.optim, table, head), (torch.optim, theirs, last))]  # fmt: skip

    class Train(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = table, head
            self.add_optimizer(optimizers[0])

        def build(self, ids: Any) -> Any:
            loss = (self.head(self.table(ids).flatten(1)) - 1).square().mean()
            loss.backward()
            return loss

    step, found, expected = Train(), [], []
    for _ in range(3):
        optimizers[1].zero_grad()
        theirs_loss = (last(theirs(IDS).flatten(1)) - 1).square().mean()
        theirs_loss.backward()
        optimizers[1].step()
        expected.append(theirs_loss.item())
        if graph:
            found.append(step(flow.from_torch(IDS)).item())
            continue
        optimizers[0].zero_grad()
        loss = (head(table(flow.from_torch(IDS)).flatten(1)) - 1).square().mean()
        loss.backward()
        optimizers[0].step()
        found.append(loss.item())
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_rows_are_split_over_ranks(tmp_path: Path) -> None:
    expected = made(tmp_path, UNLIKE)(flow.from_torch(IDS)).tolist()

    def run() -> Any:
        place = flow.placement("cpu", [0, 1])
        table = made(tmp_path, UNLIKE).to_global(place, S(0))
        y = table(flow.from_torch(IDS).to_global(place, B).to_global(sbp=S(0)))
        y.sum().backward()
        assert table.weight.to_local().shape == (5, 4) and table.weight.grad.sbp == (S(0),)
        table.save_snapshot("split")
        return y.numpy().tolist()

    for found in spawn_threads(2, run, deadline=60):
        assert found == expected
    table = made(tmp_path, UNLIKE, seed=3)
    assert table(flow.from_torch(IDS)).tolist() != expected
    table.load_snapshot("split")
    assert table(flow.from_torch(IDS)).tolist() == expected


def test_columns_tables_and_padding(tmp_path: Path) -> None:
    constant = one_embedding.make_constant_initializer
    columns = [
        one_embedding.make_table_options([one_embedding.make_column_options(constant(v)) for v in pair])
        for pair in ((1.0, 2.0), (3.0, 4.0))
    ]
    store = one_embedding.make_device_mem_store_options([str(tmp_path)], capacity=4)
    layer = one_embedding.MultiTableMultiColumnEmbedding(
        "e",
        embedding_dim=[1, 2],
        dtype=flow.float,
        key_type=flow.int64,
        tables=columns,
        store_options=store,
        padding_idx=3,
    )
    ids, tables = flow.tensor([0, 1, 3]), flow.tensor([1, 0, 1])
    assert layer(ids, tables).tolist() == [[3, 4, 4], [1, 2, 2], [0, 0, 0]]
    with pytest.raises(ArgumentError, match="a column for each table"):
        layer(ids)
    normal = one_embedding.make_table_options(one_embedding.make_normal_initializer(mean=5.0, std=0.1))
    other = one_embedding.make_cached_host_mem_store_options(8, str(tmp_path), capacity=1000)
    drawn = one_embedding.MultiTableEmbedding("n", 4, flow.float, flow.int64, [normal], other).weight
    assert abs(drawn.mean().item() - 5) < 0.05 and abs(drawn.std().item() - 0.1) < 0.01
    with pytest.raises(OptionError, match="capacity"):
        one_embedding.make_cached_ssd_store_options(8, str(tmp_path))
    with pytest.raises(OptionError, match="all begin uniform or all normal"):
        uniform = one_embedding.make_table_options(one_embedding.make_uniform_initializer(0.0, 1.0))
        one_embedding.MultiTableEmbedding("m", 4, flow.float, flow.int64, [normal, uniform], other)
    with pytest.raises(OptionError, match="an initializer is uniform, normal"):
        one_embedding.MultiTableEmbedding(
            "u", 4, flow.float, flow.int64, [one_embedding.make_table({"type": "xavier"})], other
        )


def test_an_optimizer_of_tables_is_the_one_that_holds_them(tmp_path: Path) -> None:
    table, head = made(tmp_path, ALIKE), nn.Linear(4, 1)
    optimizer = one_embedding.SmartDecayAdam([*table.parameters(), *head.parameters()], lr=0.1)
    assert one_embedding.Optimizer(optimizer, embeddings=[table]) is optimizer
    with pytest.raises(OptionError, match="doesn't update sparse"):
        one_embedding.Optimizer(flow.optim.SGD(head.parameters(), lr=0.1), [table])
