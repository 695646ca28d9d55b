"""Batches: their content against the dataset's, their order against torch's."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
import torch

import weft as flow
from tests.worlds import PATIENCE, Start
from weft import data
from weft.launch.threads import spawn_threads

T_co = TypeVar("T_co", covariant=True)


class Point(NamedTuple):
    x: Any
    y: Any


class Squares(data.Dataset):
    """Samples that are Weft's tensors, within a structure."""

    def __len__(self) -> int:
        return 7

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"at": i, "pair": (flow.tensor([float(i)]), flow.tensor(i * i)), "point": Point(i, float(i))}


def test_batches_keep_the_structure_of_samples() -> None:
    batches = list(data.DataLoader(Squares(), batch_size=3))
    assert [b["at"].tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    first = batches[0]
    assert isinstance(first["pair"][0], flow.Tensor) and first["pair"][0].shape == (3, 1)
    assert first["pair"][1].dtype is flow.int64 and first["point"].y.dtype is flow.float64
    assert len(data.DataLoader(Squares(), batch_size=3, drop_last=True)) == 2


@pytest.mark.parametrize("kind", [data.DataLoader, data.DistributedSampler])
def test_loaders_and_samplers_are_generic_as_torchs(kind: Any) -> None:
    class Own(kind[T_co]): ...  # as torchdata derives its loader

    for made in (Own, kind[int]):
        assert made(Squares(), 2).dataset[3]["at"] == 3


class Backwards(data.Sampler[int]):
    """Written for OneFlow, or for an older torch: it passes its dataset on."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.source = source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.source) - 1, -1, -1))


def test_a_sampler_may_pass_its_dataset_on() -> None:
    loader = data.DataLoader(Squares(), batch_size=3, sampler=Backwards(Squares()))
    assert next(iter(loader))["at"].tolist() == [6, 5, 4]
    for kind in (Backwards, data.RandomSampler, data.BatchSampler, data.DistributedSampler, torch.utils.data.Sampler):
        assert issubclass(kind, data.Sampler)
    assert isinstance(loader.batch_sampler, data.Sampler) and not isinstance(loader, data.Sampler)
    assert not isinstance(data.SequentialSampler([0]), Backwards) and list(Backwards([0, 1])) == [1, 0]


def test_a_loaders_arguments_are_told_as_torchs() -> None:
    assert inspect.signature(data.DataLoader) == inspect.signature(torch.utils.data.DataLoader)


def test_without_workers_oneflows_default_of_prefetching_may_be_given() -> None:
    assert len([*data.DataLoader(Squares(), 2, prefetch_factor=2)]) == 4
    with pytest.raises(ValueError, match="prefetch_factor"):  # as OneFlow answered
        data.DataLoader(Squares(), 2, prefetch_factor=3)


def test_an_iterator_tells_its_length_and_has_next() -> None:
    batches = iter(data.DataLoader(Squares(), batch_size=3))
    assert (
        len(batches) == 3 and batches.next()["at"].tolist() == [0, 1, 2] and next(batches)["at"].tolist() == [3, 4, 5]
    )
    assert iter(batches) is batches and len([*batches]) == 1


def test_tensors_by_rows() -> None:
    x, y = flow.arange(6).view(3, 2), flow.arange(3)
    batches = list(data.DataLoader(data.TensorDataset(x, y), batch_size=2))
    assert [b[0].tolist() for b in batches] == [[[0, 1], [2, 3]], [[4, 5]]]
    with pytest.raises(AssertionError, match="the same length"):
        data.TensorDataset(x, flow.arange(2))


def test_a_generator_that_a_sampler_is_given_later_orders_it() -> None:
    class Seeded(data.RandomSampler): ...  # as accelerate derives its sampler

    ours, reference = Seeded(range(20)), torch.utils.data.RandomSampler(range(20))
    ours.generator, reference.generator = (lib.Generator().manual_seed(5) for lib in (flow, torch))
    assert list(ours) == list(reference)


def test_shuffling_repeats_under_a_seed_and_visits_all() -> None:
    def order() -> list[int]:
        return [int(b["at"]) for b in data.DataLoader(Squares(), shuffle=True)]

    flow.manual_seed(5)
    first, second = order(), order()
    flow.manual_seed(5)
    assert order() == first != second and sorted(first) == list(range(7))


def test_a_seed_shuffles_as_torchs_does() -> None:
    theirs = torch.utils.data
    numbers, kept = torch.arange(8), data.TensorDataset(flow.arange(8))
    torch.manual_seed(2)
    flow.manual_seed(2)
    for _ in range(2):
        expected = [int(b[0]) for b in theirs.DataLoader(theirs.TensorDataset(numbers), shuffle=True)]
        assert [int(b[0]) for b in data.DataLoader(kept, shuffle=True)] == expected
    assert isinstance(kept[0][0], flow.Tensor)


def test_a_collation_of_ones_own() -> None:
    loader = data.DataLoader(
        Squares(), batch_size=4, collate_fn=lambda samples: flow.tensor([s["at"] for s in samples])
    )
    assert [b.tolist() for b in loader] == [[0, 1, 2, 3], [4, 5, 6]]
    assert [b["at"] for b in data.DataLoader(Squares(), batch_size=None)] == list(range(7))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loaders_functions_may_be_read_and_set(workers: int) -> None:
    def doubled(samples: Any) -> Any:
        return flow.tensor([2 * s["at"] for s in samples])

    loader = data.DataLoader(Squares(), 7, num_workers=workers)
    assert loader.collate_fn is data.default_collate and loader.worker_init_fn is None
    assert next(iter(loader))["at"].tolist() == [*range(7)]
    loader.collate_fn = doubled
    for _ in range(2):
        assert next(iter(loader)).tolist() == [*range(0, 14, 2)] and loader.collate_fn is doubled
    loader.worker_init_fn = fail
    if workers:
        with pytest.raises(ZeroDivisionError):
            next(iter(loader))


def fail(number: int) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("workers", [0, 1])
def test_flipped_images_are_collated(workers: int) -> None:
    images = np.arange(12).reshape(2, 2, 3)
    flipped = [{"image": x[:, ::-1], "label": i} for i, x in enumerate(images)]
    (batch,) = data.DataLoader(flipped, batch_size=2, num_workers=workers)  # type: ignore[arg-type]
    assert np.array_equal(batch["image"].numpy(), images[:, :, ::-1]) and batch["label"].tolist() == [0, 1]


def test_workers_bring_the_same_batches() -> None:
    loader = data.DataLoader(Squares(), batch_size=3, num_workers=1)
    assert [b["at"].tolist() for b in loader] == [[0, 1, 2], [3, 4, 5], [6]]


def test_workers_may_compute_and_need_no_main_module() -> None:
    flow.ones(4)[1:].add_(1)  # this process has a virtual machine, whose threads its children don't have

    class Local(data.Dataset):  # a class that can't be pickled, as in a script without a guard
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> tuple[flow.Tensor, int]:
            x = flow.arange(4).float()
            x[1:] *= i
            return x.view(2, 2).t()[0] + 1, i

    loader = data.DataLoader(Local(), batch_size=2, num_workers=2)
    for _ in range(2):
        found = [(x.tolist(), i.tolist()) for x, i in loader]
        assert found == [([[1, 1], [1, 3]], [0, 1]), ([[1, 5], [1, 7]], [2, 3])]


@pytest.mark.parametrize("shuffle", [True, False])
def test_each_rank_sees_its_own_part(shuffle: bool) -> None:
    def run() -> list[int]:
        sampler = data.DistributedSampler(Squares(), shuffle=shuffle)
        sampler.set_epoch(3)
        return list(sampler)

    parts = spawn_threads(3, run)
    for i, part in enumerate(parts):
        theirs = torch.utils.data.DistributedSampler(Squares(), 3, i, shuffle=shuffle)  # type: ignore[arg-type]
        theirs.set_epoch(3)
        assert part == list(theirs)
    with pytest.raises(flow.errors.OptionError, match="not one of 2 replicas"):
        data.DistributedSampler(Squares(), 2, 2)


def test_random_parts_share_nothing() -> None:
    a, b = data.random_split(Squares(), [4, 3])
    assert sorted([*a.indices, *b.indices]) == list(range(7))


def test_a_worker_that_dies_leaves_no_folder_behind(alone: Start, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    program = (
        "import faulthandler, os\n"
        "import weft as flow\n"
        "from weft.utils.data import DataLoader\n\n"
        "class Data:\n"
        "    def __len__(self):\n"
        "        return 8\n\n"
        "    def __getitem__(self, i):\n"
        "        if i == 6:\n"
        "            os._exit(3)\n"
        "        return flow.ones(2)\n\n"
        f"faulthandler.dump_traceback_later({PATIENCE / 2})\n"
        "for batch in DataLoader(Data(), batch_size=2, num_workers=1):\n"
        "    print(batch.shape)\n"
    )
    done = alone(program, env={"TMPDIR": str(folder)})
    assert done.ended[0][1] == 1, done.said(0)
    assert not [entry for entry in folder.iterdir() if entry.is_dir()]  # torch may leave a file that it tried out


class Noise(torch.utils.data.Dataset[Any]):
    """Samples that the library draws."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        return self.lib.rand(2)


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_are_drawn_as_torchs_in_each_worker_and_pass(workers: int) -> None:
    found = []
    for lib, library in ((torch, torch.utils.data), (flow, data)):
        lib.manual_seed(3)
        loader = library.DataLoader(Noise(lib), batch_size=2, shuffle=True, num_workers=workers)
        passes = [[batch.tolist() for batch in loader] for _ in range(2)]
        found.append((passes, lib.rand(1).item()))
    assert found[0] == found[1]
    samples = [tuple(sample) for batches in found[1][0] for batch in batches for sample in batch]
    assert len(set(samples)) == 12
