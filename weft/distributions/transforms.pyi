# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributions.transforms."""

from collections.abc import Sequence
import torch
from typing import Any
from weft.distributions import Distribution
from weft.distributions.constraints import Constraint
from weft.tensor.tensor import Tensor

class Transform:
    bijective: bool
    def __init__(self, cache_size: int = 0) -> None: ...
    @property
    def event_dim(self) -> int: ...
    @property
    def inv(self) -> Transform: ...
    @property
    def sign(self) -> int: ...
    def with_cache(self, cache_size: Any = 1) -> Any: ...
    def __call__(self, x: Any) -> Any: ...
    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any: ...
    def forward_shape(self, shape: Any) -> Any: ...
    def inverse_shape(self, shape: Any) -> Any: ...

class AbsTransform(Transform):
    domain: Any
    codomain: Any

class AffineTransform(Transform):
    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None: ...
    @property
    def domain(self) -> Any: ...
    @property
    def codomain(self) -> Any: ...
    @property
    def sign(self) -> Tensor | int: ...

class CatTransform(Transform):
    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None: ...
    @property
    def length(self) -> int: ...
    @property
    def bijective(self) -> bool: ...
    @property
    def domain(self) -> Any: ...
    @property
    def codomain(self) -> Any: ...

class ComposeTransform(Transform):
    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None: ...
    @property
    def domain(self) -> Any: ...
    @property
    def codomain(self) -> Any: ...
    @property
    def bijective(self) -> bool: ...

class CorrCholeskyTransform(Transform):
    domain: Any
    codomain: Any
    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any: ...

class CumulativeDistributionTransform(Transform):
    codomain: Any
    sign: int
    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None: ...
    @property
    def domain(self) -> Constraint | None: ...

class ExpTransform(Transform):
    domain: Any
    codomain: Any
    sign: int

class IndependentTransform(Transform):
    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None: ...
    @property
    def domain(self) -> Any: ...
    @property
    def codomain(self) -> Any: ...
    @property
    def bijective(self) -> bool: ...

class LowerCholeskyTransform(Transform):
    domain: Any
    codomain: Any

class PositiveDefiniteTransform(Transform):
    domain: Any
    codomain: Any

class PowerTransform(Transform):
    domain: Any
    codomain: Any
    def __init__(self, exponent: Tensor, cache_size: int = 0) -> None: ...

class ReshapeTransform(Transform):
    def __init__(self, in_shape: torch.Size, out_shape: torch.Size, cache_size: int = 0) -> None: ...
    @property
    def domain(self) -> Any: ...
    @property
    def codomain(self) -> Any: ...

class SigmoidTransform(Transform):
    domain: Any
    codomain: Any
    sign: int

class SoftmaxTransform(Transform):
    domain: Any
    codomain: Any

class SoftplusTransform(Transform):
    domain: Any
    codomain: Any
    sign: int

class StackTransform(Transform):
    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None: ...
    @property
    def bijective(self) -> bool: ...
    @property
    def domain(self) -> Any: ...
    @property
    def codomain(self) -> Any: ...

class StickBreakingTransform(Transform):
    domain: Any
    codomain: Any

class TanhTransform(Transform):
    domain: Any
    codomain: Any
    sign: int

identity_transform: ComposeTransform
