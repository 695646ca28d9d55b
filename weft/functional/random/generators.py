"""Seeds and generators: each rank has a source of random numbers; global draws are equal in any layout."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import torch

from weft.api.table import public
from weft.core import random
from weft.core.device import Device
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, OptionError, TraceError
from weft.core.idle import idle
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch


class Generator:
    """A random number generator: `flow.rand(2, generator=flow.Generator().manual_seed(1))`.

    OneFlow's device="auto" is for draws on any device.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device("cpu" if device == "auto" else device).check()
        self.source = random.Source(None if device == "auto" else self.device.torch)

    @property
    def torch(self) -> torch.Generator:
        """The torch generator, for draws after those of earlier launches."""
        return self.source.generator(self.device.torch)

    def manual_seed(self, seed: int) -> Generator:
        _seed(self.source, seed)
        return self

    def seed(self) -> int:
        return _anew(self.source)

    def initial_seed(self) -> int:
        return self.source.seed

    def get_state(self) -> Tensor:
        return of_torch(_state(self.source, "get_state()")[2][self.device.torch])

    def set_state(self, state: Tensor) -> None:
        _eager("set_state()")
        self.source.settle()
        self.source.take_over(self.device.torch, state.to_torch())

    def clone_state(self) -> Generator:
        """A copy with the same state."""
        other = Generator(self.device)
        other.source.go_back(_state(self.source, "clone_state()"))
        return other


class DefaultGenerator(Generator):
    """The running rank's own source, as a generator."""

    device = Device("cpu")

    def __init__(self) -> None:
        """Which rank's it is, is asked at each use."""

    @property
    def source(self) -> random.Source:
        return random.of()

    @property
    def torch(self) -> torch.Generator:
        found = random.generator(random.CPU)  # in a loader's thread, the loader's
        assert found is not None
        return found

    def get_state(self) -> Tensor:
        return get_rng_state()

    def set_state(self, state: Tensor) -> None:
        set_rng_state(state)


default_generator = DefaultGenerator()


def _seed(source: random.Source, seed: int) -> None:
    """Seed it now; while a graph is traced, at this point of each launch."""
    try:
        seed = int(seed)
    except (TypeError, ValueError):
        raise OptionError(f"a seed is an integer; got {seed!r}") from None
    if here.trace is not None:
        here.trace.steer(source, "seed", seed)
    else:
        source.manual_seed(seed)


def _anew(source: random.Source) -> int:
    _eager("seed()")
    chosen = secrets.randbits(63)
    source.manual_seed(chosen)
    return chosen


def _state(source: random.Source, name: str) -> random.State:
    _eager(name)
    return source.state()


def _eager(name: str) -> None:
    if here.trace is not None:
        raise TraceError(
            f"{name} inside build(): a launch draws when it runs, so its state or seed is unknown while it is traced. "
            "Call it outside of the graph; inside, manual_seed(n) seeds each launch, and fork_rng() isolates draws"
        )


@public("flow")
def manual_seed(seed: int) -> DefaultGenerator:
    """Seed this rank's random numbers. Give every rank the same seed, so that global tensors agree."""
    _seed(random.of(), seed)
    return default_generator


@public("flow")
def seed() -> int:
    """Seed this rank's random numbers from entropy; returns the seed."""
    return _anew(random.of())


@public("flow")
def initial_seed() -> int:
    """The seed of this rank's random numbers."""
    return random.of().seed


@public("flow")
def get_rng_state() -> Tensor:
    """The state of this rank's random numbers, for `set_rng_state`: seed, count of draws, and torch's own state."""
    source = random.of()
    seed, draws, _ = _state(source, "get_rng_state()")
    counts = torch.tensor([seed, draws], dtype=torch.uint64).view(torch.uint8)
    return of_torch(torch.cat([counts, source.on(random.CPU).get_state()]))


@public("flow")
def set_rng_state(state: Tensor) -> None:
    """Go on with random numbers where `get_rng_state` was taken."""
    data = local_data(state, "set_rng_state()")
    if data.dtype != torch.uint8 or data.dim() != 1 or data.numel() <= 16:
        raise ArgumentError(f"set_rng_state(): takes what get_rng_state() gave, not {state.dtype}{list(state.shape)}")
    _eager("set_rng_state()")
    source = random.of()
    source.settle()
    source.seed, source.draws = data[:16].clone().view(torch.uint64).tolist()
    source.on(random.CPU).set_state(data[16:].clone())


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, device_type: Any = None) -> Iterator[None]:
    """A context manager that restores this rank's random state at its end, on every device.

    >>> _ = flow.manual_seed(1); first = flow.rand(1); _ = flow.manual_seed(1)
    >>> with flow.random.fork_rng():
    ...     _ = flow.rand(5)
    >>> bool(flow.rand(1) == first)
    True
    """
    idle("fork_rng(devices)", bool(devices))  # [] asks for the CPU, which is forked
    source, trace = random.of(), here.trace
    if not enabled:
        yield
    elif trace is not None:
        trace.steer(source, "fork")
        try:
            yield
        finally:
            trace.steer(source, "join")
    else:
        kept = source.state()
        try:
            yield
        finally:
            source.go_back(kept)


__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip
