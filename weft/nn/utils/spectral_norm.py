"""Spectral normalisation: a weight over its largest singular value, which a few products per step follow."""

from __future__ import annotations

from typing import Any, TypeVar

from weft.autograd import assign, no_grad
from weft.core.errors import OptionError
from weft.nn.losses import normalize
from weft.nn.making import filled
from weft.nn.module import Module
from weft.ops import OPS
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)


class _SpectralNorm:
    """Before each forward, makes the weight of `weight_orig`; while training, `weight_u` and `weight_v` follow it."""

    def __init__(self, name: str, steps: int, eps: float, dim: int) -> None:
        self.name, self.steps, self.eps, self.dim = name, steps, eps, dim

    def matrix(self, weight: Any) -> Any:
        order = (self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        rows = weight if self.dim == 0 else OPS["permute"](weight, order)
        return OPS["reshape"](rows, (rows.shape[0], -1))

    def weight(self, module: Module, follow: bool) -> Tensor:
        weight: Any = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        rows = self.matrix(weight)
        if follow:
            with no_grad():
                for _ in range(self.steps):
                    assign(v, normalize(OPS["matmul"](OPS["transpose"](rows, 0, 1), u), dim=0, eps=self.eps))
                    assign(u, normalize(OPS["matmul"](rows, v), dim=0, eps=self.eps))
            u, v = OPS["clone"](u), OPS["clone"](v)  # the next step overwrites them, and backward reads them
        return weight / OPS["sum"](u * OPS["matmul"](rows, v))

    def __call__(self, module: Module, _: Any) -> None:
        setattr(module, self.name, self.weight(module, module.training))


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a parameter by its largest singular value before each forward. Gives the module.

    >>> m = flow.nn.utils.spectral_norm(flow.nn.Linear(3, 2)); sorted(m.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    weight = module._parameters.get(name)
    if weight is None or n_power_iterations < 1:
        raise OptionError(
            f"spectral_norm: {type(module).__name__} should have a parameter {name!r} of its own, and at least one "
            f"iteration; it has {', '.join(module._parameters) or 'none'}, and {n_power_iterations} were asked for"
        )
    if dim is None:  # where transposed convolutions have their outputs
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    norm = _SpectralNorm(name, n_power_iterations, eps, dim)
    with no_grad():
        shape = norm.matrix(weight.detach()).shape
        delattr(module, name)
        module.register_parameter(f"{name}_orig", Parameter(weight.detach()))
        for part, size in zip("uv", shape, strict=True):
            drawn: Any = filled((size,), 0.0, dtype=weight.dtype)
            module.register_buffer(f"{name}_{part}", normalize(drawn.normal_(), dim=0, eps=eps))
    setattr(module, name, weight.detach())
    module.register_forward_pre_hook(norm)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the weight one parameter again, of the value that it has now."""
    table = {} if module._hooks is None else module._hooks.tables["forward_pre"]
    for key, (hook, *_) in list(table.items()):
        if isinstance(hook, _SpectralNorm) and hook.name == name:
            weight = hook.weight(module, False).detach()
            del table[key]
            for gone in (name, f"{name}_orig", f"{name}_u", f"{name}_v"):
                delattr(module, gone)
            module.register_parameter(name, Parameter(weight))
            return module
    raise OptionError(f"spectral_norm of {name!r} not found in {module}")
