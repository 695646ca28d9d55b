"""Which samples a rank sees, and datasets made of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.utils.data as theirs
from torch.utils.data.distributed import DistributedSampler as TheirDistributedSampler

from weft.core import random
from weft.core.errors import OptionError, ShapeError
from weft.core.rank import current
from weft.tensor.tensor import Tensor


class DistributedSampler(TheirDistributedSampler[Any]):
    """Each rank gets its own part of a dataset, all of the same length; `set_epoch` reshuffles.

    Without arguments the ranks are this world's. In a pipeline or with tensor parallelism, name the data-parallel ones.
    """

    def __init__(
        self, dataset: Any, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
        seed: int = 0, drop_last: bool = False,
    ) -> None:  # fmt: skip
        here = current()
        replicas = here.world_size if num_replicas is None else num_replicas
        index = here.index if rank is None else rank
        if not 0 <= index < replicas:
            raise OptionError(f"rank {index} is none of {replicas} replicas; it goes from 0 to {replicas - 1}")
        super().__init__(dataset, replicas, index, shuffle, seed, drop_last)


class TensorDataset(theirs.Dataset[Any]):
    """Samples that are the slices of tensors along their first dimension."""

    def __init__(self, *tensors: Tensor) -> None:
        lengths = {t.shape[0] for t in tensors}
        if len(lengths) != 1:
            raise ShapeError(f"the tensors of a dataset have one length; got {[list(t.shape) for t in tensors]}")
        self.tensors = tensors
        self._data = [t._local("TensorDataset") for t in tensors]

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self._data)

    def __len__(self) -> int:
        return len(self._data[0])


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Any = None) -> list[theirs.Subset[Any]]:
    """Parts of these lengths, or fractions, that share no sample."""
    source = random.of().generator(torch.device("cpu")) if generator is None else getattr(generator, "torch", generator)
    return theirs.random_split(dataset, lengths, source)
