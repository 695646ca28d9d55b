"""Random numbers: one seed, one sequence. A rank draws what torch's generator of that seed gives on one device, in
program order: local draws, global ones (a rank keeps its part of the whole), and those of graphs.
"""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.core import fingerprints
from weft.core.dispatch import hooks
from weft.core.rank import Rank, current

DEFAULT_SEED = 67280421310721  # torch's own default
CPU = torch.device("cpu")

State = tuple[int, int, dict[torch.device, torch.Tensor]]


class Source:
    """A random generator: one torch generator per device, all with one seed. `only`: of one device.

    draws    how many draws since it was seeded, a count that is equal on all ranks of a program
    pending  the blob that pending graph launches write until they have drawn; None if there were none
    met      the fingerprint of the source at the last global draw; 0 if there was none. For a rank's own source
    """

    __slots__ = ("seed", "draws", "generators", "cpu", "only", "pending", "met", "__weakref__")

    def __init__(self, only: torch.device | None = None) -> None:
        self.seed, self.draws, self.met = DEFAULT_SEED, 0, 0
        self.generators: dict[torch.device, torch.Generator] = {}
        self.cpu: torch.Generator | None = None  # created on first use
        self.only = None if only is None else self.on(only)
        self.pending: Any = None

    def generator(self, device: torch.device) -> torch.Generator:
        """The generator for a draw that is made now, after those of earlier launches."""
        pending = self.pending
        if pending is not None and pending.now is None:
            hooks.wait_over(pending)
        self.draws += 1
        return self.generators.get(device) or self.on(device)

    def on(self, device: torch.device) -> torch.Generator:
        """The device's torch generator."""
        found = self.generators.get(device)
        if found is None:
            if self.generators and self.only is not None:
                return self.only  # of another device: the kernel raises
            found = self.generators[device] = torch.Generator(device)
            found.manual_seed(self.seed)
            self.cpu = self.generators.get(CPU)
        return found

    def settle(self) -> None:
        """Wait until pending launches have drawn."""
        if self.pending is not None and self.pending.now is None:
            hooks.wait_over(self.pending)

    def manual_seed(self, seed: int) -> None:
        self.settle()
        self.on(CPU)  # which validates the seed
        self.reseed(seed)
        self.seed, self.draws = seed % 2**64, 0  # torch's seeds are 64 bits, too, whatever their sign

    def reseed(self, seed: int) -> None:
        """Seed the generators alone, as an earlier launch does."""
        for g in self.generators.values():
            g.manual_seed(seed)

    def state(self) -> State:
        self.settle()
        return self.seed, self.draws, self.states()

    def states(self) -> dict[torch.device, torch.Tensor]:
        return {device: g.get_state() for device, g in self.generators.items()}

    def go_back(self, state: State) -> None:
        """Restore a state; generators made since then are seeded again."""
        self.settle()
        self.seed, self.draws, states = state
        self.set_states(self.seed, states)

    def set_states(self, seed: int, states: dict[torch.device, torch.Tensor]) -> None:
        for device, g in self.generators.items():
            if device not in states:
                g.manual_seed(seed)
        for device, value in states.items():
            self.on(device).set_state(value)

    def take_over(self, device: torch.device, state: torch.Tensor) -> None:
        """Restore one generator from a state that only torch can interpret."""
        g = self.on(device)
        g.set_state(state)
        self.seed, self.draws = g.initial_seed(), zlib.crc32(state.numpy().tobytes())

    @property
    def fingerprint(self) -> int:
        """The state as a number: ranks that have drawn differently have different ones."""
        return mix(self.seed, self.draws)


class Launched:
    """The draws of a launch: later draws wait for them; they were counted when the launch was called."""

    __slots__ = ("on",)

    def __init__(self, on: Callable[[torch.device], torch.Generator]) -> None:
        self.on = on

    def generator(self, device: torch.device) -> torch.Generator:
        return self.on(device)


Drawing = Source | Launched


class _Override(threading.local):
    drawing: Drawing | None = None


_override = _Override()


def mix(seed: int, count: int) -> int:
    """A well-mixed 63-bit number from two (the finalizer of SplitMix64)."""
    z = (seed * 0x9E3779B97F4A7C15 + count * 0xBF58476D1CE4E5B9 + 0x94D049BB133111EB) & (2**64 - 1)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return (z ^ (z >> 31)) >> 1


def of(rank: Rank | None = None) -> Source:
    """A rank's own source."""
    return (rank or current()).resource("random", _make)


def _make(rank: Rank) -> Source:
    return Source()


def begin_anew(seed: int) -> None:
    """Make a new source in a forked child, since the parent's threads may have been drawing at the fork."""
    fresh = Source()
    fresh.manual_seed(seed)
    current().resources["random"] = fresh


def source() -> Source:
    """The source of a call in this thread: its `generator=`, or the rank's own."""
    named = _override.drawing
    return named if isinstance(named, Source) else of()


def generator(device: torch.device) -> torch.Generator | None:
    """The torch generator of kernels in this thread; None where only shapes are inferred."""
    if device.type == "meta":
        return None
    return (_override.drawing or of()).generator(device)


def on_cpu() -> torch.Generator | None:
    """`generator(CPU)`, for hot paths."""
    drawing: Any = _override.drawing or current().resources.get("random")
    if drawing.__class__ is not Source or drawing.pending is not None or drawing.cpu is None:
        return generator(CPU)
    drawing.draws += 1
    return drawing.cpu


def fingerprint(rank: Rank | None = None) -> int:
    """The state of the rank's random numbers at its last global draw, as a number; 0 if there was none.

    It is equal on ranks of one program. Where it differs, local draws or seeds did, and global values will.
    """
    return of(rank).met


def meet() -> None:
    """Note the state before a global draw, where ranks must agree."""
    rank = current()
    met = of(rank).met = source().fingerprint
    if rank.world_size > 1:
        fingerprints.of(rank).put("the random numbers of global draws", met)


class drawing_from:
    """A context manager: kernels inside draw from this source."""

    __slots__ = ("drawing", "before")

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing

    def __enter__(self) -> None:
        self.before, _override.drawing = _override.drawing, self.drawing

    def __exit__(self, *_: object) -> None:
        _override.drawing = self.before


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A context manager: kernels inside draw from a new generator of this seed."""
    fresh = Source()
    fresh.manual_seed(seed)
    with drawing_from(fresh):
        yield
