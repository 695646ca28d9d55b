"""Functions of each element, or along one dimension, as modules. A row of the table is a class."""

from __future__ import annotations

from typing import Any

from weft.core.errors import OptionError
from weft.nn import functional as F
from weft.nn.making import filled
from weft.nn.module import Module
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


class Activation(Module):
    """A function with options; the options are attributes, in the order of the function's arguments."""

    function: str
    options: dict[str, Any]
    bare: str = ""  # an option that prints without its name

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = list(self.options)
        if len(args) > len(names):
            raise OptionError(f"{self._get_name()} takes {len(names)} arguments: {', '.join(names)}; got {len(args)}")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        unknown = [k for k in given if k not in self.options]
        if unknown:
            raise OptionError(f"{self._get_name()} has no {unknown[0]!r}; it takes {', '.join(names) or 'nothing'}")
        for name, default in self.options.items():
            setattr(self, name, given.get(name, default))

    def forward(self, x: Tensor) -> Tensor:
        values = self.__dict__
        return getattr(F, self.function)(x, *[values[name] for name in self.options])

    def extra_repr(self) -> str:
        return ", ".join(
            f"{'' if name == self.bare else f'{name}='}{getattr(self, name)!r}"
            for name in self.options
            if name != "inplace" or getattr(self, name)
        )


def _row(name: str, function: str, doc: str, *, bare: str = "", **options: Any) -> type[Activation]:
    members = {"function": function, "options": options, "bare": bare, "__doc__": doc, "__module__": __name__}
    return type(name, (Activation,), members)


CELU = _row("CELU", "celu", "x, or alpha (exp(x / alpha) - 1) below zero.", alpha=1.0, inplace=False)
ELU = _row("ELU", "elu", "x, or alpha (exp(x) - 1) below zero.", alpha=1.0, inplace=False)
GELU = _row("GELU", "gelu", "x times the normal law's probability of being below x.", approximate="none")
GLU = _row("GLU", "glu", "The first half times the sigmoid of the second.", dim=-1)
Hardshrink = _row("Hardshrink", "hardshrink", "x, or zero within lambd of zero.", bare="lambd", lambd=0.5)
Hardsigmoid = _row("Hardsigmoid", "hardsigmoid", "A sigmoid of three straight pieces.", inplace=False)
Hardswish = _row("Hardswish", "hardswish", "x times hardsigmoid(x).", inplace=False)
Hardtanh = _row("Hardtanh", "hardtanh", "x, held in [min_val, max_val].", min_val=-1.0, max_val=1.0, inplace=False)
LeakyReLU = _row("LeakyReLU", "leaky_relu", "x, or a little of it below zero.", negative_slope=0.01, inplace=False)
LogSigmoid = _row("LogSigmoid", "logsigmoid", "The logarithm of the sigmoid.")
Mish = _row("Mish", "mish", "x tanh(softplus(x)).", inplace=False)
QuickGELU = _row("QuickGELU", "quick_gelu", "x sigmoid(1.702 x).")
ReLU6 = _row("ReLU6", "relu6", "x, held in [0, 6].", inplace=False)
SELU = _row("SELU", "selu", "A scaled ELU that keeps mean zero and variance one.", inplace=False)
SiLU = _row("SiLU", "silu", "x sigmoid(x).", inplace=False)
Softplus = _row("Softplus", "softplus", "log(1 + exp(beta x)) / beta.", beta=1.0, threshold=20.0)
Softshrink = _row("Softshrink", "softshrink", "x, drawn towards zero by lambd.", bare="lambd", lambd=0.5)
Softsign = _row("Softsign", "softsign", "x / (1 + |x|).")
Threshold = _row(
    "Threshold", "threshold", "x, or `value` where x isn't above.", threshold=0.0, value=0.0, inplace=False
)


class ReLU(Module):
    """x, or zero below zero.

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
    """Positive, and summing to one along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, usual_dim(x) if self.dim is None else self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, usual_dim(x) if self.dim is None else self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


def usual_dim(x: Tensor) -> int:
    """The dimension that torch takes where none is given."""
    return 0 if x.ndim in (0, 1, 3) else 1


class PReLU(Module):
    """A leaky ReLU whose slope is trained."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(filled((num_parameters,), init, device, dtype))

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "PReLU", "QuickGELU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softplus",
    "Softshrink", "Softsign", "Tanh", "Threshold",
]  # fmt: skip
