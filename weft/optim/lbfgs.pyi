# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.optim.lbfgs."""

from collections.abc import Iterable
from typing import Any
from weft.optim.optimizer import Optimizer
from weft.tensor.tensor import Tensor

class LBFGS(Optimizer):
    def __init__(
        self, params: Iterable[Any], lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-07, tolerance_change: float = 1e-09, history_size: int = 100,
        line_search_fn: str | None = None
    ) -> None: ...
    def check_options(self, options: Any) -> None: ...

