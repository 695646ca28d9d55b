# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.random: Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state"""

from weft.functional.random.generators import DefaultGenerator

from weft import (
    Generator as Generator, get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed,
    seed as seed, set_rng_state as set_rng_state
)
from weft.functional.random.generators import fork_rng as fork_rng

default_generator: DefaultGenerator
