"""`DataLoader`: torch's, with batches of Weft's tensors. Workers handle torch's, which can cross processes."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import secrets
import select
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing import connection, util
from typing import Any

import numpy as np
import torch
import torch.utils.data as theirs

from weft.core import random
from weft.data.samplers import Late, RandomSampler, T_co
from weft.tensor.array import forwards
from weft.tensor.data import own_data
from weft.tensor.tensor import Tensor, of_torch


def each(value: Any, kind: type | tuple[type, ...], turn: Callable[[Any], Any]) -> Any:
    """A nested structure with every value of a type replaced."""
    if isinstance(value, kind):
        return turn(value)
    if isinstance(value, Mapping):
        return {k: each(v, kind, turn) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(each(v, kind, turn) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(each(v, kind, turn) for v in value)
    return value


def to_weft(value: Any) -> Any:
    return each(value, torch.Tensor, of_torch)


def to_torch(value: Any) -> Any:
    return each(value, (Tensor, np.ndarray), lambda x: own_data(x, "a batch") if isinstance(x, Tensor) else forwards(x))


def default_collate(batch: Any) -> Any:
    """Samples as one batch: tensors and numbers stacked, in the structure of the samples."""
    return to_weft(theirs.default_collate([to_torch(s) for s in batch]))


def default_convert(data: Any) -> Any:
    """A sample with NumPy arrays and torch's tensors converted to Weft's."""
    return to_weft(theirs.default_convert(to_torch(data)))


class Collate:
    """The collate function in a worker: any collation, with torch tensors as its result."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, samples: Any) -> Any:
        if self.function is default_collate:
            return theirs.default_collate([to_torch(s) for s in samples])
        if self.function is default_convert:
            return theirs.default_convert(to_torch(samples))
        return to_torch(self.function(samples))


class Begin:
    """The worker's init function: ends with the parent, draws as torch's workers do, then calls the user's.

    torch's own check, every five seconds, leaves a killed rank's sockets open and its processors busy for as long.
    """

    def __init__(self, function: Callable[[int], Any] | None) -> None:
        self.function = function

    def __call__(self, number: int) -> None:
        threading.Thread(target=end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
        if util.abstract_sockets_supported:
            connection.arbitrary_address = address  # pyright: ignore[reportAttributeAccessIssue]  (missing in its stubs)
        random.begin_anew(torch.initial_seed())  # torch seeds each worker in each epoch
        if self.function is not None:
            self.function(number)


def end_with(parent: Any) -> None:
    if parent is None or not hasattr(os, "pidfd_open"):
        return
    with contextlib.suppress(ProcessLookupError):
        watched = os.pidfd_open(parent.pid)
        if os.getppid() == parent.pid:
            select.select([watched], [], [])
    os._exit(1)


def address(family: str) -> str:
    """The address where the parent fetches a batch's memory: an abstract socket, so no file is left when all processes
    are killed. Clients must know the processes' common key."""
    return f"\0weft-loader-{os.getpid()}-{secrets.token_hex(8)}"


class Batches:
    """What `iter(loader)` gives: torch's iterator, with Weft's tensors. OneFlow's has `next()`, too."""

    def __init__(self, batches: Any) -> None:
        self.theirs = batches

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return to_weft(next(self.theirs))

    next = __next__

    def __len__(self) -> int:
        return len(self.theirs)


class DataLoader(theirs.DataLoader[T_co]):
    """Batches of a dataset, in order or shuffled; arguments as torch's.

    Shuffling draws from the rank's generator, so `flow.manual_seed` makes it repeatable. Workers start as torch's do:
    a forked one may make tensors, but not wait for work of its parent process.
    """

    generator: Any = Late()

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None, sampler: Any = None,
        batch_sampler: Any = None, num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0.0, worker_init_fn: Any = None,
        multiprocessing_context: Any = None, generator: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        if not num_workers and options.get("prefetch_factor") == 2:  # OneFlow's default: torch allows none but None
            del options["prefetch_factor"]
        if shuffle and sampler is batch_sampler is None and not isinstance(dataset, theirs.IterableDataset):
            shuffle, sampler = False, RandomSampler(dataset, generator=generator)
        batched = batch_size is not None or batch_sampler is not None
        super().__init__(
            dataset, batch_size, shuffle, sampler, batch_sampler, num_workers,
            collate_fn or (default_collate if batched else default_convert), pin_memory, drop_last, timeout,
            worker_init_fn, multiprocessing_context, generator, **options,
        )  # fmt: skip

    def _get_iterator(self) -> Any:
        given = self.collate_fn, self.worker_init_fn  # a program may read them, and set others
        self.collate_fn = Collate(self.collate_fn)
        if self.num_workers:
            self.worker_init_fn = Begin(self.worker_init_fn)
        try:
            return super()._get_iterator()
        finally:
            self.collate_fn, self.worker_init_fn = given

    def __iter__(self) -> Batches:  # type: ignore[override]
        return Batches(super().__iter__())


functools.update_wrapper(DataLoader.__init__, theirs.DataLoader.__init__)  # libraries read what it takes, and pass that
