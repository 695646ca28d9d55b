"""Random numbers: one seed, one sequence. A rank's draws take what torch's generator of that seed gives one device, in
the order of the program's calls: local draws, global ones (whole, of which a rank keeps its part), and those of graphs.
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
    """A sequence of draws: a torch generator for each device, all begun from one seed. `only`: of one device.

    draws    how often it was asked since it was seeded, by a count that ranks of one program share
    pending  the blob that launches of graphs write while they are to draw from it; None: there was none yet
    met      the fingerprint of the source of the last global draw; 0: there was none. For a rank's own source
    """

    __slots__ = ("seed", "draws", "generators", "cpu", "only", "pending", "met", "__weakref__")

    def __init__(self, only: torch.device | None = None) -> None:
        self.seed, self.draws, self.met = DEFAULT_SEED, 0, 0
        self.generators: dict[torch.device, torch.Generator] = {}
        self.cpu: torch.Generator | None = None  # of them, once it is made
        self.only = None if only is None else self.on(only)
        self.pending: Any = None

    def generator(self, device: torch.device) -> torch.Generator:
        """For a draw that is made now: after those of the launches that were called before."""
        pending = self.pending
        if pending is not None and pending.now is None:
            hooks.wait_over(pending)
        self.draws += 1
        return self.generators.get(device) or self.on(device)

    def on(self, device: torch.device) -> torch.Generator:
        """The generator itself."""
        found = self.generators.get(device)
        if found is None:
            if self.generators and self.only is not None:
                return self.only  # whose device isn't the kernel's, as the kernel will say
            found = self.generators[device] = torch.Generator(device)
            found.manual_seed(self.seed)
            self.cpu = self.generators.get(CPU)
        return found

    def settle(self) -> None:
        """Wait until the launches that were called have drawn."""
        if self.pending is not None and self.pending.now is None:
            hooks.wait_over(self.pending)

    def manual_seed(self, seed: int) -> None:
        self.settle()
        self.on(CPU)  # which knows what a seed is
        self.reseed(seed)
        self.seed, self.draws = seed % 2**64, 0  # torch's, too, are of 64 bits, whatever their sign

    def reseed(self, seed: int) -> None:
        """The generators alone, as a launch does it that was called earlier."""
        for g in self.generators.values():
            g.manual_seed(seed)

    def state(self) -> State:
        self.settle()
        return self.seed, self.draws, self.states()

    def states(self) -> dict[torch.device, torch.Tensor]:
        return {device: g.get_state() for device, g in self.generators.items()}

    def go_back(self, state: State) -> None:
        """To where the state was taken; generators that were made since begin anew."""
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
        """Let one generator go on from a state that only torch knows."""
        g = self.on(device)
        g.set_state(state)
        self.seed, self.draws = g.initial_seed(), zlib.crc32(state.numpy().tobytes())

    @property
    def fingerprint(self) -> int:
        """Where the sequence is, as a number: ranks that have drawn differently have different ones."""
        return mix(self.seed, self.draws)


class Launched:
    """What a launch draws from: those who draw later wait for it, and its draws were counted when it was called."""

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
    """A well-spread 63-bit number from two (the finaliser of SplitMix64)."""
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
    """In a child of the rank's process, whose threads may have been drawing as it was forked: a source of its own."""
    fresh = Source()
    fresh.manual_seed(seed)
    current().resources["random"] = fresh


def source() -> Source:
    """What a call in this thread draws from: the generator that it names, or the rank's own source."""
    named = _override.drawing
    return named if isinstance(named, Source) else of()


def generator(device: torch.device) -> torch.Generator | None:
    """The generator that a kernel in this thread draws from; None where only shapes are inferred."""
    if device.type == "meta":
        return None
    return (_override.drawing or of()).generator(device)


def on_cpu() -> torch.Generator | None:
    """`generator(CPU)`, for those who ask often."""
    drawing: Any = _override.drawing or current().resources.get("random")
    if drawing.__class__ is not Source or drawing.pending is not None or drawing.cpu is None:
        return generator(CPU)
    drawing.draws += 1
    return drawing.cpu


def fingerprint(rank: Rank | None = None) -> int:
    """Where the rank's random numbers were at its last global draw, as a number; 0: it has made none.

    Ranks of one program have the same. Where they differ, local draws or seeds did, and so do global values.
    """
    return of(rank).met


def meet() -> None:
    """A global draw is about to be made: note where each rank must be alike."""
    rank = current()
    met = of(rank).met = source().fingerprint
    if rank.world_size > 1:
        fingerprints.of(rank).put("the random numbers of global draws", met)


class drawing_from:
    """Kernels inside draw from this."""

    __slots__ = ("drawing", "before")

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing

    def __enter__(self) -> None:
        self.before, _override.drawing = _override.drawing, self.drawing

    def __exit__(self, *_: object) -> None:
        _override.drawing = self.before


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Kernels inside draw as from a fresh generator of this seed, on whatever device they draw."""
    fresh = Source()
    fresh.manual_seed(seed)
    with drawing_from(fresh):
        yield
