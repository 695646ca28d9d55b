"""`flow.one_embedding`: OneFlow's tables of embeddings, in memory, as one parameter of `capacity` rows.

An id is a row. Stores on SSDs and caches of the device have no counterpart: a table that is too large for one rank is
split over several by its sbp, `embedding.to_global(placement, flow.sbp.split(0))`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from zlib import crc32

from weft.checkpoint.checkpoint import load, save
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OptionError
from weft.core.rank import current
from weft.functional.create import creation
from weft.functional.neural.embeddings import embedding
from weft.functional.random.generators import Generator
from weft.functional.random.random_tensors import rand, randn
from weft.nn.module.module import Module
from weft.ops import ops
from weft.optim.adam import Adam
from weft.optim.optimizer import Optimizer
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

# ---- options -----------------------------------------------------------------------------------------


def make_uniform_initializer(low: float, high: float) -> dict[str, Any]:
    return {"type": "uniform", "low": low, "high": high}


def make_normal_initializer(mean: float, std: float) -> dict[str, Any]:
    return {"type": "normal", "mean": mean, "std": std}


def make_constant_initializer(value: float) -> dict[str, Any]:
    return {"type": "constant", "value": value}


def make_column_options(initializer: dict[str, Any]) -> dict[str, Any]:
    """A column of a `MultiTableMultiColumnEmbedding`'s table."""
    return {"initializer": initializer}


def make_table_options(param: Any) -> dict[str, Any]:
    """A table, by its initializer, or by the options of its columns."""
    return {"columns": list(param)} if isinstance(param, (list, tuple)) else {"initializer": param}


def _store(capacity: int | None, persistent_path: Any) -> dict[str, Any]:
    if capacity is None or capacity < 1:
        raise OptionError(f"a store's capacity is the number of its rows, all in memory here; got {capacity}")
    return {"capacity": capacity, "persistent_path": persistent_path}


def make_device_mem_store_options(
    persistent_path: Any, capacity: int | None = None, size_factor: int = 1, storage_dim: int = -1,
    physical_block_size: int = 4096,
) -> dict[str, Any]:  # fmt: skip
    """A store of `capacity` rows, whose snapshots go to a folder, or to one for each rank."""
    return _store(capacity, persistent_path)


def make_cached_ssd_store_options(
    cache_budget_mb: int, persistent_path: Any, capacity: int | None = None, size_factor: int = 1,
    storage_dim: int = -1, physical_block_size: int = 4096, host_cache_budget_mb: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """As `make_device_mem_store_options`: everything is in memory."""
    return _store(capacity, persistent_path)


# ---- layers ------------------------------------------------------------------------------------------


def _affine(initializer: dict[str, Any]) -> tuple[str, float, float]:
    """An initializer as a standard distribution, a shift and a scale."""
    kind = initializer.get("type")
    if kind == "uniform":
        return kind, initializer["low"], initializer["high"] - initializer["low"]
    if kind == "normal":
        return kind, initializer["mean"], initializer["std"]
    if kind == "constant":
        return "", initializer["value"], 0.0
    raise OptionError(f"an initializer is uniform, normal or constant; got {initializer}")


class MultiTableMultiColumnEmbedding(Module):
    """Tables of embeddings that share their rows: ids of different tables are to be different.

    The rows are those of a common `weight`. Where tables begin with different distributions, a row's first value is
    added to it at a lookup, and depends on the table. Gradients are dense.

    >>> one = flow.one_embedding
    >>> store = one.make_device_mem_store_options("tables", capacity=10)
    >>> tables = [one.make_table_options(one.make_constant_initializer(v)) for v in (1.0, 2.0)]
    >>> layer = one.MultiTableEmbedding("e", 2, flow.float, flow.int64, tables, store)
    >>> layer(flow.tensor([[0, 5]])).tolist()
    [[[1.0, 1.0], [2.0, 2.0]]]
    """

    def __init__(
        self, name: str, embedding_dim: int | Sequence[int], dtype: Any, key_type: Any,
        tables: Sequence[dict[str, Any]], store_options: dict[str, Any], default_initializer: Any = None,
        padding_idx: int | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        dims = (embedding_dim,) if isinstance(embedding_dim, int) else tuple(embedding_dim)
        self.embedding_name, self.padding_idx, self._store = name, padding_idx, store_options
        columns = [[_affine(c["initializer"]) for c in t.get("columns", [t] * len(dims))] for t in tables]
        kinds = {kind for table in columns for kind, _, _ in table if kind}
        if not columns or len(kinds) > 1 or any(len(table) != len(dims) for table in columns):
            raise OptionError(
                f"{name}: tables have {len(dims)} columns each, and all begin uniform or all normal; got {list(tables)}"
            )
        shape, own = (store_options["capacity"], sum(dims)), Generator()
        own.manual_seed(seed + crc32(name.encode()))
        draw = randn if kinds == {"normal"} else rand
        first = draw(*shape, dtype=dtypes.of(dtype), generator=own)
        rows = [[[value] * n for row, n in zip(table, dims, strict=True) for value in [row[1:]]] for table in columns]
        flat = creation.tensor([[pair for part in table for pair in part] for table in rows], dtype=dtypes.of(dtype))
        shift, scale = ops.select(flat, -1, 0), ops.select(flat, -1, 1)
        self.tables, alike = len(columns), all(table == columns[0] for table in columns)
        self.weight = Parameter(ops.select(shift, 0, 0) + ops.select(scale, 0, 0) * first if alike else first * 0)
        for key, value in {"first": first, "shift": shift, "scale": scale}.items():
            self.register_buffer(key, None if alike else value)

    def forward(self, ids: Tensor, table_ids: Tensor | None = None) -> Tensor:
        """The rows of ids. `table_ids` has their tables; without it, a column of ids belongs to the table of its
        place."""
        y = embedding(ids, self.weight)
        y = y if self.first is None else y + self._first(ids, table_ids)
        return y if self.padding_idx is None else ops.where(ops.unsqueeze(ids == self.padding_idx, -1), 0.0, y)

    def _first(self, ids: Tensor, table_ids: Tensor | None) -> Tensor:
        """The values with which rows begin in their tables."""
        if table_ids is None and (ids.ndim != 2 or ids.shape[1] != self.tables):
            raise ArgumentError(
                f"{self.embedding_name}: ids of shape [batch, {self.tables}], a column for each table, or table_ids of "
                f"the shape of the ids; got {tuple(ids.shape)}"
            )
        shift, scale = (t if table_ids is None else embedding(table_ids, t) for t in (self.shift, self.scale))
        return shift + scale * embedding(ids, self.first)

    def _place(self, name: str) -> str:
        folder, rank = self._store["persistent_path"], current()
        if isinstance(folder, (list, tuple)):
            folder = folder[rank.index]
        elif self.weight.is_local and rank.world_size > 1:
            folder = os.path.join(folder, f"{rank.index}-{rank.world_size}")
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, name)

    def save_snapshot(self, snapshot_name: str) -> None:
        """Write the tables into the store's folder."""
        save(self.state_dict(), self._place(snapshot_name))

    def load_snapshot(self, snapshot_name: str) -> None:
        self.load_state_dict(load(self._place(snapshot_name)))


class MultiTableEmbedding(MultiTableMultiColumnEmbedding):
    """Tables of one column."""


def with_embeddings(optimizer: Optimizer, embeddings: Sequence[MultiTableMultiColumnEmbedding]) -> Optimizer:
    """The optimizer: here it updates tables as any other parameter, where OneFlow's leaves them to this wrapper."""
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    left = [e.embedding_name for e in embeddings if id(e.weight) not in held]
    if left:
        raise OptionError(f"the optimizer doesn't update {', '.join(left)}; give it embedding.parameters(), too")
    return optimizer


Embedding, make_table = MultiTableMultiColumnEmbedding, make_table_options
NAMES = {
    f.__name__: f for f in (
        make_uniform_initializer, make_normal_initializer, make_constant_initializer, make_column_options,
        make_table_options, make_device_mem_store_options, make_cached_ssd_store_options,
        MultiTableMultiColumnEmbedding, MultiTableEmbedding,
    )
} | {
    "make_cached_host_mem_store_options": make_cached_ssd_store_options,
    "Embedding": Embedding, "make_table": make_table, "Optimizer": with_embeddings,
    "SmartDecayAdam": Adam,  # catches up on the steps in which a row wasn't looked up; here no row misses one
}  # fmt: skip
