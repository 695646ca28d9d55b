"""Random numbers: a generator per rank and device for local draws; for global ones, seeds that no layout changes.

A global draw must give every rank of a placement the same logical tensor, so its seed comes from the rank's seed and a
count of global draws, which advances alike on every rank: all of them run the same program.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch

from weft.core.rank import Rank, current

DEFAULT_SEED = 67280421310721  # torch's own default


class Randomness:
    """A rank's source of random numbers."""

    def __init__(self, rank: Rank) -> None:
        self.generators: dict[torch.device, torch.Generator] = {}
        self.seed, self.draws = DEFAULT_SEED, 0

    def manual_seed(self, seed: int) -> None:
        self.seed, self.draws = seed, 0
        for g in self.generators.values():
            g.manual_seed(seed)

    def generator(self, device: torch.device) -> torch.Generator:
        found = self.generators.get(device)
        if found is None:
            found = self.generators[device] = torch.Generator(device)
            found.manual_seed(self.seed)
        return found

    def next_draw(self) -> int:
        """The seed of the next global draw."""
        self.draws += 1
        return mix(self.seed, self.draws)


class Seeded:
    """Generators of one seed, made for the devices that kernels ask for."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.made: dict[torch.device, torch.Generator] = {}

    def on(self, device: torch.device) -> torch.Generator:
        found = self.made.get(device)
        if found is None:
            found = self.made[device] = torch.Generator(device)
            found.manual_seed(self.seed)
        return found


class _Override(threading.local):
    generator: torch.Generator | Seeded | None = None


_override = _Override()


def mix(seed: int, count: int) -> int:
    """A well-spread 63-bit number from two (the finaliser of SplitMix64)."""
    z = (seed * 0x9E3779B97F4A7C15 + count * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) & (2**64 - 1)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (z ^ (z >> 31)) >> 1


def of(rank: Rank | None = None) -> Randomness:
    return (rank or current()).resource("random", Randomness)


def generator(device: torch.device) -> torch.Generator | None:
    """The generator that a kernel in this thread draws from; None where only shapes are inferred."""
    if device.type == "meta":
        return None
    instead = _override.generator
    if instead is None:
        return of().generator(device)
    return instead.on(device) if type(instead) is Seeded else instead  # type: ignore[return-value]


@contextlib.contextmanager
def drawing_from(g: torch.Generator | Seeded) -> Iterator[None]:
    before, _override.generator = _override.generator, g
    try:
        yield
    finally:
        _override.generator = before


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Kernels inside draw as from a fresh generator of this seed, on whatever device they draw."""
    with drawing_from(Seeded(seed)):
        yield
