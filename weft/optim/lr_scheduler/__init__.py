"""Learning rate schedules: rates as functions of the step, set in the optimizer's groups.

Formulas and recursions are torch's; `WarmUpLR`, `CosineDecayLR` and `PolynomialLR`'s long form are OneFlow's.
"""

from weft.optim.lr_scheduler.compose import ChainedScheduler, ReduceLROnPlateau, SequentialLR, WarmUpLR, WarmupLR
from weft.optim.lr_scheduler.cycle import CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from weft.optim.lr_scheduler.decay import (
    ConstantLR,
    CosineDecayLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from weft.optim.lr_scheduler.scheduler import LRScheduler

_LRScheduler = LRScheduler  # deprecated name, used by many programs

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CosineDecayLR", "CyclicLR",
    "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR",
    "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR", "WarmUpLR", "WarmupLR",
]  # fmt: skip
