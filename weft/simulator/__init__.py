"""Plans without machines: a virtual clock and a model checker drive the very actors that run."""

from weft.simulator.modelcheck import Explored, explore
from weft.simulator.pipeline import pipeline
from weft.simulator.simulate import Timed, Timeline, simulate

__all__ = ["Explored", "Timed", "Timeline", "explore", "pipeline", "simulate"]
