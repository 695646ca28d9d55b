"""Activations as modules. A row of the table is a class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.functional.neural import activations
from weft.nn import functional as F
from weft.nn.module.making import filled, taking
from weft.nn.module.module import Module
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


class Activation(Module):
    """A module for a function of one tensor; its options are attributes, in the order of the function's arguments."""

    function: str | Callable[..., Tensor]
    options: dict[str, Any]  # with their defaults; ... is required
    bare: str = ""  # an option that is printed without its name

    def forward(self, x: Tensor) -> Tensor:
        function = self.function if callable(self.function) else getattr(F, self.function)
        values = [self.__dict__[name] for name in self.options if name != "inplace"]
        return function(x, *values, inplace=True) if self.__dict__.get("inplace") else function(x, *values)

    def extra_repr(self) -> str:
        return ", ".join(
            f"{'' if name == self.bare else f'{name}='}{getattr(self, name)!r}"
            for name in self.options
            if name != "inplace" or getattr(self, name)
        )


def layer_of(
    name: str, function: str | Callable[..., Tensor], doc: str, *, home: str = __name__, bare: str = "", **options: Any
) -> type[Activation]:
    """The module class of a function, or of one of nn.functional by name; it takes the options."""
    takes = taking(**options)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        given = takes.bind(self, *args, **kwargs)
        given.apply_defaults()
        self.__dict__.update((k, v) for k, v in given.arguments.items() if k != "self")

    __init__.__signature__ = takes  # type: ignore[attr-defined]
    function = function if isinstance(function, str) else staticmethod(function)
    members = {"function": function, "options": options, "bare": bare, "__doc__": doc, "__module__": home}
    return type(name, (Activation,), {**members, "__init__": __init__})


CELU = layer_of("CELU", "celu", "x, or alpha (exp(x / alpha) - 1) below zero.", alpha=1.0, inplace=False)
ELU = layer_of("ELU", "elu", "x, or alpha (exp(x) - 1) below zero.", alpha=1.0, inplace=False)
GELU = layer_of("GELU", "gelu", "x times the normal distribution's CDF.", approximate="none")
GLU = layer_of("GLU", "glu", "The first half times the sigmoid of the second.", dim=-1)
Hardshrink = layer_of(
    "Hardshrink", "hardshrink", "x, or zero within lambd of zero.", bare="lambd", lambd=0.5, inplace=False
)
Hardsigmoid = layer_of("Hardsigmoid", "hardsigmoid", "A piecewise linear sigmoid.", inplace=False)
Hardswish = layer_of("Hardswish", "hardswish", "x times hardsigmoid(x).", inplace=False)
Hardtanh = layer_of("Hardtanh", "hardtanh", "x in [min_val, max_val].", min_val=-1.0, max_val=1.0, inplace=False)
LeakyReLU = layer_of("LeakyReLU", "leaky_relu", "x, or slope * x below zero.", negative_slope=0.01, inplace=False)
LogSigmoid = layer_of("LogSigmoid", "logsigmoid", "The logarithm of the sigmoid.")
Mish = layer_of("Mish", "mish", "x tanh(softplus(x)).", inplace=False)
QuickGELU = layer_of("QuickGELU", "quick_gelu", "x sigmoid(1.702 x).")
ReLU6 = layer_of("ReLU6", "relu6", "x limited to [0, 6].", inplace=False)
SELU = layer_of("SELU", "selu", "A scaled ELU that keeps mean zero and variance one.", inplace=False)
SiLU = layer_of("SiLU", "silu", "x sigmoid(x).", inplace=False)
Softplus = layer_of("Softplus", "softplus", "log(1 + exp(beta x)) / beta.", beta=1.0, threshold=20.0)
Softshrink = layer_of(
    "Softshrink", "softshrink", "x, shrunk towards zero by lambd.", bare="lambd", lambd=0.5, inplace=False
)
Softsign = layer_of("Softsign", "softsign", "x / (1 + |x|).")
Threshold = layer_of(
    "Threshold", "threshold", "x, or `value` where x isn't above.", threshold=0.0, value=0.0, inplace=False
)


class ReLU(Module):
    """x where positive, else zero.

    >>> flow.nn.ReLU()(flow.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        return F.relu_(x) if self.inplace else F.relu(x)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return F.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)


class Softmax(Module):
    """exp(x), normalized to sum to one along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class PReLU(Module):
    """A leaky ReLU with a trained slope."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(filled((num_parameters,), init, device, dtype))

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


Softmin = layer_of(
    "Softmin", lambda x, dim: F.softmin(x, dim), "softmax(-x).", home=__name__,
    dim=None,
)  # fmt: skip
Tanhshrink = layer_of("Tanhshrink", F.tanhshrink, "x - tanh(x).", home=__name__)
Softmax2d = layer_of("Softmax2d", lambda x: F.softmax(x, -3), "softmax over the channels of images.", home=__name__)


class RReLU(Module):
    """x where positive, elsewhere x times a slope, random while training."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, x: Tensor) -> Tensor:
        return activations.rrelu(x, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"
