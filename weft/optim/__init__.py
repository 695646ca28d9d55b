"""Optimizers and learning rate schedules. Parameters are updated by the same ops eagerly and in a graph."""

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from weft.core.derived import GIVEN, Derived, lazily
from weft.core.errors import ArgumentError, OptionError
from weft.optim import lr_scheduler
from weft.optim.adafactor import Adafactor
from weft.optim.adam import Adam, AdamW
from weft.optim.adaptive_rates import Adadelta, Adagrad, RMSprop
from weft.optim.composed import ASGD, Adamax, NAdam, RAdam, Rprop, SparseAdam
from weft.optim.lamb import LAMB
from weft.optim.muon import Muon
from weft.optim.optimizer import Optimizer
from weft.optim.ranges import at_least_zero
from weft.optim.sgd import SGD

if TYPE_CHECKING:
    from weft.optim.lbfgs import LBFGS


def _checked(kind: Any) -> Any:
    """Torch's LBFGS, with options checked at construction, and steps on which ranks agree."""

    def check_options(self: Any, options: Any) -> None:
        at_least_zero(options, "lr", "tolerance_grad", "tolerance_change")
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise OptionError(f"line_search_fn must be None or 'strong_wolfe'; got {options['line_search_fn']!r}")

    theirs = kind.step

    @functools.wraps(theirs)
    def step(self: Any, closure: Any = None) -> Any:
        if closure is None:
            raise ArgumentError("LBFGS evaluates the loss several times a step: give step() a closure that computes it")
        self.agreement.step(type(self).__name__, self.param_groups)
        return theirs(self, closure) if self.param_groups[0]["params"] else closure()

    kind.check_options, kind.step = check_options, step
    return kind


GIVEN["torch.optim.optimizer.ParamsT"] = Iterable[Any]
Derived("weft.optim.lbfgs", "torch.optim.lbfgs", {"": {"LBFGS": _checked}}, errors={"RuntimeError": OptionError})
__getattr__ = lazily(__name__, {"lbfgs": ("LBFGS",)})

__all__ = [
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LAMB", "LBFGS", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam", "lr_scheduler",
]  # fmt: skip
