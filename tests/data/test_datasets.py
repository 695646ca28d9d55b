"""Datasets put together, samplers and workers: in the order, and with the numbers, that torch's give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow
from weft import data

theirs = torch.utils.data


class Count(data.IterableDataset):
    """Numbers below n, of which each worker yields its part."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[Any]:
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return (flow.tensor(i) for i in range(first, self.n, step))


class Broken(data.Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        if i == 2:
            raise ValueError("sample 2 is spoilt")
        return flow.tensor(float(i))


def numbers(loader: Any) -> list[Any]:
    return [b.tolist() for b in loader]


def test_streams_of_samples() -> None:
    assert numbers(data.DataLoader(Count(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert numbers(data.DataLoader(Count(5), batch_size=2, drop_last=True)) == [[0, 1], [2, 3]]
    chained = data.ChainDataset([Count(2), Count(3)])
    assert numbers(data.DataLoader(chained, batch_size=None)) == [0, 1, 0, 1, 2]


def _told(worker: int) -> None:
    torch.manual_seed(worker)


def test_workers_share_a_stream_and_may_stay() -> None:
    loader = data.DataLoader(Count(6), batch_size=2, num_workers=2, persistent_workers=True, worker_init_fn=_told)
    for _ in range(2):  # a second pass with the same workers
        assert sorted(numbers(loader)) == [[0, 2], [1, 3], [4], [5]]
    assert data.get_worker_info() is None


@pytest.mark.parametrize("workers", [0, 1])
def test_a_spoilt_sample_raises_where_the_batch_is_read(workers: int) -> None:
    batches = iter(data.DataLoader(Broken(), batch_size=1, num_workers=workers))
    assert next(batches).tolist() == [0.0] and next(batches).tolist() == [1.0]
    with pytest.raises(ValueError, match="sample 2 is spoilt"):
        next(batches)
    # Read to the end: torch waits five seconds for the workers of batches that are left.
    assert [batch.tolist() for batch in batches] == [[3.0]]


def test_datasets_put_together() -> None:
    a, b = data.TensorDataset(flow.arange(3)), data.TensorDataset(flow.arange(10, 12))
    both = data.ConcatDataset([a, b])
    assert [int(both[i][0]) for i in range(len(both))] == [0, 1, 2, 10, 11]
    assert [int(x[0]) for x in data.Subset(both, [4, 0])] == [11, 0]
    stacked = data.StackDataset(a, data.Subset(both, [3, 4, 0]))
    assert [(int(x[0]), int(y[0])) for x, y in stacked] == [(0, 10), (1, 11), (2, 0)]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("SubsetRandomSampler", ([3, 5, 8, 9],)),
        ("WeightedRandomSampler", ([0.1, 3.0, 0.5, 2.0], 6)),
        ("WeightedRandomSampler", ([0.1, 3.0, 0.5, 2.0], 3, False)),
    ],
)
def test_a_seed_samples_as_torchs_does(name: str, args: tuple[Any, ...]) -> None:
    torch.manual_seed(4)
    flow.manual_seed(4)
    for _ in range(2):
        assert [int(i) for i in getattr(data, name)(*args)] == [int(i) for i in getattr(theirs, name)(*args)]
    one, other = flow.Generator(), torch.Generator()
    one.manual_seed(9)
    other.manual_seed(9)
    ours = getattr(data, name)(*args, generator=one)
    assert [int(i) for i in ours] == [int(i) for i in getattr(theirs, name)(*args, generator=other)]


def test_batches_of_indices() -> None:
    order = data.SequentialSampler(range(5))
    batches = data.BatchSampler(order, batch_size=2, drop_last=False)
    assert list(batches) == [[0, 1], [2, 3], [4]]
    rows = data.TensorDataset(flow.arange(5))
    assert [b[0].tolist() for b in data.DataLoader(rows, batch_sampler=batches)] == list(batches)
    assert [b[0].tolist() for b in data.DataLoader(rows, batch_size=2, sampler=[4, 1, 0])] == [[4, 1], [0]]
