# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Activations as modules. A row of the table is a class."""

from collections.abc import Callable
from typing import Any
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor


class Activation(Module):
    bare: str
    def forward(self, x: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class CELU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, alpha: Any = 1.0, inplace: Any = False) -> None: ...

class ELU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, alpha: Any = 1.0, inplace: Any = False) -> None: ...

class GELU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, approximate: Any = 'none') -> None: ...

class GLU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, dim: Any = -1) -> None: ...

class Hardshrink(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, lambd: Any = 0.5, inplace: Any = False) -> None: ...

class Hardsigmoid(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, inplace: Any = False) -> None: ...

class Hardswish(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, inplace: Any = False) -> None: ...

class Hardtanh(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, min_val: Any = -1.0, max_val: Any = 1.0, inplace: Any = False) -> None: ...

class LeakyReLU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, negative_slope: Any = 0.01, inplace: Any = False) -> None: ...

class LogSigmoid(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self) -> None: ...

class LogSoftmax(Module):
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class Mish(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, inplace: Any = False) -> None: ...

class PReLU(Module):
    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class QuickGELU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self) -> None: ...

class RReLU(Module):
    def __init__(self, lower: float = 0.125, upper: float = 0.3333333333333333, inplace: bool = False) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class ReLU(Module):
    def __init__(self, inplace: bool = False) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class ReLU6(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, inplace: Any = False) -> None: ...

class SELU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, inplace: Any = False) -> None: ...

class SiLU(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, inplace: Any = False) -> None: ...

class Sigmoid(Module):
    def forward(self, x: Tensor) -> Tensor: ...

class Softmax(Module):
    def __init__(self, dim: int | None = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...
    def extra_repr(self) -> str: ...

class Softmax2d(Activation):
    @staticmethod
    def function(x: Any) -> Any: ...
    options: Any
    bare: str
    def __init__(self) -> None: ...

class Softmin(Activation):
    @staticmethod
    def function(x: Any, dim: Any) -> Any: ...
    options: Any
    bare: str
    def __init__(self, dim: Any = None) -> None: ...

class Softplus(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, beta: Any = 1.0, threshold: Any = 20.0) -> None: ...

class Softshrink(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, lambd: Any = 0.5, inplace: Any = False) -> None: ...

class Softsign(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self) -> None: ...

class Tanh(Module):
    def forward(self, x: Tensor) -> Tensor: ...

class Tanhshrink(Activation):
    @staticmethod
    def function(input: Tensor) -> Tensor: ...
    options: Any
    bare: str
    def __init__(self) -> None: ...

class Threshold(Activation):
    function: str
    options: Any
    bare: str
    def __init__(self, threshold: Any = 0.0, value: Any = 0.0, inplace: Any = False) -> None: ...

def layer_of(
    name: str, function: str | Callable[..., Tensor], doc: str, *, home: str = 'weft.nn.layers.activation',
    bare: str = '', **options: Any
) -> type[Activation]: ...
