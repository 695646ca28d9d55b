# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.random: Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state"""

from weft.functional.random.generators import DefaultGenerator
from weft.tensor.tensor import Tensor

default_generator: DefaultGenerator
from weft.functional.random.generators import Generator as Generator
from weft.functional.random.generators import fork_rng as fork_rng

def get_rng_state() -> Tensor:
    """The state of this rank's random numbers, for `set_rng_state`: seed, count of draws, and torch's own state."""

def initial_seed() -> int:
    """The seed of this rank's random numbers."""

def manual_seed(seed: int) -> DefaultGenerator:
    """Seed this rank's random numbers. Give every rank the same seed, so that global tensors agree."""

def seed() -> int:
    """Seed this rank's random numbers from entropy; returns the seed."""

def set_rng_state(state: Tensor) -> None:
    """Go on with random numbers where `get_rng_state` was taken."""
