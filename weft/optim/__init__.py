"""Optimizers and learning rate schedules. Gradients come in, parameters are written, by the same ops eagerly and in
a graph.
"""

from weft.optim import lr_scheduler
from weft.optim.adafactor import Adafactor
from weft.optim.adam import Adam, AdamW
from weft.optim.adaptive import Adadelta, Adagrad, RMSprop
from weft.optim.composed import ASGD, Adamax, NAdam, RAdam, Rprop
from weft.optim.lamb import LAMB
from weft.optim.lbfgs import LBFGS
from weft.optim.muon import Muon
from weft.optim.optimizer import Optimizer
from weft.optim.sgd import SGD

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LAMB", "LBFGS", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "lr_scheduler",
]  # fmt: skip
