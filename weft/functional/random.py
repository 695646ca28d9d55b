"""Seeds and generators. Each rank has its own source of random numbers; global draws don't depend on the layout."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import torch

from weft.core import random
from weft.core.device import Device
from weft.core.errors import ArgumentError
from weft.core.idle import idle
from weft.functional.table import public
from weft.tensor.tensor import Tensor, of_torch


class Generator:
    """A source of random numbers of its own: `flow.rand(2, generator=flow.Generator().manual_seed(1))`."""

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device(device)
        self.torch = torch.Generator(self.device.torch)

    def manual_seed(self, seed: int) -> Generator:
        self.torch.manual_seed(seed)
        return self

    def seed(self) -> int:
        return self.torch.seed()

    def initial_seed(self) -> int:
        return self.torch.initial_seed()

    def get_state(self) -> Tensor:
        return of_torch(self.torch.get_state())

    def set_state(self, state: Tensor) -> None:
        self.torch.set_state(state.to_torch())

    def clone_state(self) -> Generator:
        """Another that draws from here on what this one would."""
        other = Generator(self.device)
        other.torch.set_state(self.torch.get_state())
        return other


class DefaultGenerator:
    """The running rank's own source, as a generator."""

    @property
    def torch(self) -> torch.Generator:
        return random.of().generator(torch.device("cpu"))

    def manual_seed(self, seed: int) -> DefaultGenerator:
        return manual_seed(seed)

    def seed(self) -> int:
        return seed()

    def initial_seed(self) -> int:
        return initial_seed()

    def get_state(self) -> Tensor:
        return get_rng_state()

    def set_state(self, state: Tensor) -> None:
        set_rng_state(state)


default_generator = DefaultGenerator()


@public("flow")
def manual_seed(seed: int) -> DefaultGenerator:
    """Start this rank's random numbers anew from a seed. Give every rank the same one for global tensors to agree."""
    random.of().manual_seed(int(seed))
    return default_generator


@public("flow")
def seed() -> int:
    """Start this rank's random numbers anew from a seed that nobody knows; gives the seed."""
    chosen = secrets.randbits(63)
    random.of().manual_seed(chosen)
    return chosen


@public("flow")
def initial_seed() -> int:
    """The seed that this rank's random numbers started from."""
    return random.of().seed


@public("flow")
def get_rng_state() -> Tensor:
    """The state of this rank's random numbers, for `set_rng_state`: local draws, seed, count of global draws."""
    source = random.of()
    counts = torch.tensor([source.seed, source.draws], dtype=torch.int64).view(torch.uint8)
    return of_torch(torch.cat([counts, source.generator(torch.device("cpu")).get_state()]))


@public("flow")
def set_rng_state(state: Tensor) -> None:
    """Go on with random numbers where `get_rng_state` was taken."""
    data = state._local("set_rng_state()")
    if data.dtype != torch.uint8 or data.dim() != 1 or data.numel() <= 16:
        raise ArgumentError(f"set_rng_state(): takes what get_rng_state() gave, not {state.dtype}{list(state.shape)}")
    source = random.of()
    source.seed, source.draws = data[:16].clone().view(torch.int64).tolist()
    source.generator(torch.device("cpu")).set_state(data[16:].clone())


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **options: Any) -> Iterator[None]:
    """What is drawn or seeded inside leaves this rank's random numbers as they were, on every device.

    >>> _ = flow.manual_seed(1); first = flow.rand(1); _ = flow.manual_seed(1)
    >>> with flow.random.fork_rng():
    ...     _ = flow.rand(5)
    >>> bool(flow.rand(1) == first)
    True
    """
    idle("fork_rng(devices)", devices is not None)
    source = random.of()
    kept = {device: g.get_state() for device, g in source.generators.items()}
    where = source.seed, source.draws
    try:
        yield
    finally:
        if enabled:
            source.seed, source.draws = where
            for device in list(source.generators):
                if device in kept:
                    source.generators[device].set_state(kept[device])
                else:  # begun inside
                    del source.generators[device]


__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip
