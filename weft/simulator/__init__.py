"""Simulate plans: a virtual clock and a model checker drive the same actors as the runtime."""

from weft.simulator.modelcheck import Explored, explore
from weft.simulator.simulate import Timed, Timeline, simulate
from weft.simulator.training_pipeline import pipeline

__all__ = ["Explored", "Timed", "Timeline", "explore", "pipeline", "simulate"]
