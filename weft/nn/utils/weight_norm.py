"""Weight normalisation: a weight's length and its direction, trained apart."""

from __future__ import annotations

from typing import Any, TypeVar

from weft.core.errors import OptionError
from weft.nn.module import Module
from weft.ops import OPS
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)


class _WeightNorm:
    """Before each forward, makes the weight of its length (`weight_g`) and its direction (`weight_v`)."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, None if dim == -1 else dim  # in PyTorch and OneFlow -1 says None

    def length(self, v: Tensor) -> Tensor:
        """The norm of each slice along `dim`; of the whole, if None."""
        square = OPS["mul"](v, v)
        if self.dim is None:
            return OPS["root"](OPS["sum"](square))
        others = tuple(d for d in range(v.ndim) if d != self.dim % v.ndim)
        return OPS["root"](OPS["sum"](square, others, True) if others else square)

    def weight(self, module: Module) -> Tensor:
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return OPS["mul"](v, OPS["div"](g, self.length(v)))

    def __call__(self, module: Module, _: Any) -> None:
        setattr(module, self.name, self.weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train a parameter as `name_g`, its length along `dim` (of the whole, if None or -1), and `name_v`, its direction.
    Gives the module.

    >>> m = flow.nn.utils.weight_norm(flow.nn.Linear(3, 2))
    >>> m.weight_g.shape, m.weight_v.shape
    (torch.Size([2, 1]), torch.Size([2, 3]))
    """
    if _found(module, name) is not None:
        raise OptionError(f"{name!r} of this {type(module).__name__} is normalised already")
    weight = module._parameters.get(name)
    if weight is None:
        there = ", ".join(module._parameters) or "none"
        raise OptionError(f"{type(module).__name__} has no parameter {name!r} of its own; it has: {there}")
    norm = _WeightNorm(name, dim)
    delattr(module, name)
    value = weight.detach()
    module.register_parameter(f"{name}_g", Parameter(norm.length(value)))
    module.register_parameter(f"{name}_v", Parameter(OPS["clone"](value)))
    norm(module, ())
    module.register_forward_pre_hook(norm)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight one parameter again, of the value that it has now."""
    found = _found(module, name)
    if found is None:
        raise OptionError(f"weight_norm of {name!r} not found in {module}")
    table, key, norm = found
    weight = norm.weight(module).detach()
    del table[key]
    for gone in (name, f"{name}_g", f"{name}_v"):
        delattr(module, gone)
    module.register_parameter(name, Parameter(weight))
    return module


def _found(module: Module, name: str) -> Any:
    """Where the module keeps this norm's hook."""
    table = {} if module._hooks is None else module._hooks.tables["forward_pre"]
    for key, (hook, *_) in table.items():
        if isinstance(hook, _WeightNorm) and hook.name == name:
            return table, key, hook
    return None
