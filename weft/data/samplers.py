"""Samplers and datasets: which samples a rank sees."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import torch
import torch.utils.data as theirs
from torch.utils.data.distributed import DistributedSampler as TheirDistributedSampler

from weft.autograd.plain import plain
from weft.core import random
from weft.core.errors import AssertedError, OptionError
from weft.core.rank import current
from weft.tensor.data import own_data
from weft.tensor.tensor import Tensor, of_torch

T_co = TypeVar("T_co", covariant=True)


class Sampler(theirs.Sampler[T_co], metaclass=abc.ABCMeta):
    """Torch's, whose `__init__` takes the dataset, too, as OneFlow's and older programs' samplers pass it on.

    Every sampler of torch's is one.
    """

    def __init__(self, data_source: Any = None) -> None: ...

    @classmethod
    def __subclasshook__(cls, kind: type) -> Any:
        return True if cls is Sampler and issubclass(kind, theirs.Sampler) else NotImplemented


class DistributedSampler(TheirDistributedSampler[T_co]):
    """Splits a dataset among ranks, in shards of equal length; `set_epoch` reshuffles.

    By default, the ranks are this world's. In a pipeline or with tensor parallelism, name the data-parallel ones.
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        here = current()
        replicas = here.world_size if num_replicas is None else num_replicas
        index = here.index if rank is None else rank
        if not 0 <= index < replicas:
            raise OptionError(f"rank {index} is not one of {replicas} replicas, which go from 0 to {replicas - 1}")
        super().__init__(dataset, replicas, index, shuffle, seed, drop_last)


class TensorDataset(theirs.Dataset[Any]):
    """A dataset whose samples are slices of tensors along their first dimension."""

    def __init__(self, *tensors: Tensor) -> None:
        tensors = plain(tensors)
        lengths = {t.shape[0] for t in tensors}
        if len(lengths) > 1:
            raise AssertedError(
                f"the tensors of a dataset must have the same length; got {[list(t.shape) for t in tensors]}"
            )
        self.tensors = tensors
        self._data = [own_data(t, "TensorDataset") for t in tensors]

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(of_torch(t[index]) for t in self._data)

    def __len__(self) -> int:
        return len(self._data[0])


class Late:
    """A descriptor for the generator of a sampler or loader, resolved when it draws, after earlier launches; the
    rank's own by default."""

    def __get__(self, holder: Any, kind: type | None = None) -> Any:
        return None if holder is None else _source(holder.__dict__.get("named"))

    def __set__(self, holder: Any, named: Any) -> None:
        holder.__dict__["named"] = named


def _source(generator: Any) -> torch.Generator:
    """The torch generator of a sampler, resolved when it is iterated."""
    if generator is not None:
        return getattr(generator, "torch", generator)
    found = random.generator(random.CPU)
    assert found is not None
    return found


class RandomSampler(theirs.RandomSampler):
    """Every sample once, in random order, repeatable by `flow.manual_seed`; with replacement, random samples."""

    def __iter__(self) -> Iterator[int]:
        drawn = _source(self.generator)
        if self.generator is None:
            seed = int(torch.empty((), dtype=torch.int64).random_(generator=drawn).item())
            drawn = torch.Generator().manual_seed(seed)
        yield from theirs.RandomSampler(self.data_source, self.replacement, self._num_samples, drawn)


class SubsetRandomSampler(theirs.SubsetRandomSampler):
    """A subset of samples in random order, repeatable by `flow.manual_seed`."""

    generator: Any = Late()


class WeightedRandomSampler(theirs.WeightedRandomSampler):
    """Samples drawn by weight, repeatable by `flow.manual_seed`."""

    generator: Any = Late()

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None) -> None:
        given = weights.tolist() if isinstance(weights, Tensor) else weights
        super().__init__(given, num_samples, replacement, generator)


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = None) -> list[theirs.Subset[Any]]:
    """Split a dataset randomly into disjoint subsets of these lengths or fractions."""
    return theirs.random_split(dataset, lengths, _source(generator))
