# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Losses as modules. A row of the table is a class."""

from typing import Any
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


class _Loss(Module):
    options: Any
    def __init__(self, reduction: str = 'mean', **options: Any) -> None: ...
    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor: ...

class BCELoss(_Loss):
    function: str
    def __init__(self, weight: Tensor | None = None, reduction: str = 'mean') -> None: ...

class BCEWithLogitsLoss(_Loss):
    function: str
    def __init__(
        self, weight: Tensor | None = None, reduction: str = 'mean', pos_weight: Tensor | None = None
    ) -> None: ...

class CTCLoss(_Loss):
    function: str
    def __init__(self, blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> None: ...

class CombinedMarginLoss(Module):
    def __init__(self, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> None: ...
    def forward(self, x: Tensor, label: Tensor) -> Tensor: ...

class CosineEmbeddingLoss(_Loss):
    function: str
    def __init__(self, margin: float = 0.0, reduction: str = 'mean') -> None: ...

class CrossEntropyLoss(_Loss):
    function: str
    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = 'mean',
        label_smoothing: float = 0.0
    ) -> None: ...

class GaussianNLLLoss(_Loss):
    function: str
    def __init__(self, *, full: bool = False, eps: float = 1e-06, reduction: str = 'mean') -> None: ...

class HingeEmbeddingLoss(_Loss):
    function: str
    def __init__(self, margin: float = 1.0, reduction: str = 'mean') -> None: ...

class HuberLoss(_Loss):
    function: str
    def __init__(self, reduction: str = 'mean', delta: float = 1.0) -> None: ...

class KLDivLoss(_Loss):
    function: str
    def __init__(self, reduction: str = 'mean', log_target: bool = False) -> None: ...

class L1Loss(_Loss):
    function: str
    def __init__(self, reduction: str = 'mean') -> None: ...

class MSELoss(_Loss):
    function: str
    def __init__(self, reduction: str = 'mean') -> None: ...

class MarginRankingLoss(_Loss):
    function: str
    def __init__(self, margin: float = 0.0, reduction: str = 'mean') -> None: ...

class MultiLabelMarginLoss(_Loss):
    function: str
    def __init__(self, reduction: str = 'mean') -> None: ...

class MultiLabelSoftMarginLoss(_Loss):
    function: str
    def __init__(self, weight: Any = None, reduction: str = 'mean') -> None: ...

class MultiMarginLoss(_Loss):
    function: str
    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = 'mean') -> None: ...

class NLLLoss(_Loss):
    function: str
    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = 'mean') -> None: ...

class PoissonNLLLoss(_Loss):
    function: str
    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-08, reduction: str = 'mean'
    ) -> None: ...
    def forward(self, log_input: Tensor, target: Tensor) -> Tensor: ...

class SmoothL1Loss(_Loss):
    function: str
    def __init__(self, reduction: str = 'mean', beta: float = 1.0) -> None: ...

class SoftMarginLoss(_Loss):
    function: str
    def __init__(self, reduction: str = 'mean') -> None: ...

class TripletMarginLoss(_Loss):
    function: str
    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-06, swap: bool = False, reduction: str = 'mean'
    ) -> None: ...

class TripletMarginWithDistanceLoss(_Loss):
    function: str
    def __init__(
        self, *, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = 'mean'
    ) -> None: ...

_WeightedLoss = _Loss
def loss_of(name: str, function: str, options: str, doc: str) -> type[_Loss]: ...
