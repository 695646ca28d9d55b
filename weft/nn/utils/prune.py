"""Pruning: a parameter as a product of what is trained and of a mask that leaves out what counts least.

A pruned parameter `name` is trained as `name_orig`; its mask is the buffer `name_mask`, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.nn.module import Module
from weft.ops import OPS
from weft.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)
Parameters = Iterable[tuple[Module, str]]


class BasePruningMethod:
    """Before each forward, makes the parameter of what is trained and of the mask.

    Subclasses write `compute_mask(t, default_mask)`: what stays of t, where default_mask is what stayed so far.
    PRUNING_TYPE says what they look at: all of t ("unstructured"), or slices along a dimension ("structured").
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        raise OptionError(f"{type(self).__name__} should say what stays: def compute_mask(self, t, default_mask)")

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter as it is used."""
        name = self._tensor_name
        return OPS["mul"](getattr(module, f"{name}_orig"), getattr(module, f"{name}_mask"))

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Tensor:
        """The tensor without what counts least by the scores, or by itself."""
        before = OPS["ones_like"](t.detach(), None) if default_mask is None else default_mask
        return OPS["mul"](t, self.compute_mask(t if importance_scores is None else importance_scores, before))

    @classmethod
    def apply(cls, module: M, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> M:
        """Prune a parameter of a module; if it was pruned before, of what stayed."""
        return _prune(cls(*args, **kwargs), module, name, importance_scores)

    def remove(self, module: Module) -> None:
        """Make the parameter one again, of the value that it has."""
        name = self._tensor_name
        with no_grad():
            value = self.apply_mask(module).detach()
        original = getattr(module, f"{name}_orig")
        original.data = value
        for gone in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, gone)
        module.register_parameter(name, original)


def _hooks(module: Module) -> dict[int, Any]:
    return {} if module._hooks is None else module._hooks.tables["forward_pre"]


def _found(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    for key, (hook, *_) in _hooks(module).items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


def _prune(method: BasePruningMethod, module: M, name: str, scores: Any) -> M:
    method._tensor_name = name
    known = _found(module, name)
    if known is not None:
        mask = getattr(module, f"{name}_mask")
        del _hooks(module)[known[0]]
    else:
        original = module._parameters.get(name)
        if original is None:
            there = ", ".join(module._parameters) or "none"
            raise OptionError(f"{type(module).__name__} has no parameter {name!r} of its own to prune; it has: {there}")
        delattr(module, name)
        module.register_parameter(f"{name}_orig", original)
        mask = OPS["ones_like"](original.detach(), None)
        module.register_buffer(f"{name}_mask", mask)
    by = getattr(module, f"{name}_orig") if scores is None else scores
    if tuple(by.shape) != tuple(mask.shape):
        raise OptionError(f"importance_scores have the parameter's shape {list(mask.shape)}; got {list(by.shape)}")
    with no_grad():
        setattr(module, f"{name}_mask", OPS["cast"](method.compute_mask(by.detach(), mask), mask.dtype))
    setattr(module, name, method.apply_mask(module))
    module.register_forward_pre_hook(method)
    return module


def _count(amount: Any, of: int) -> int:
    """How many are left out: a count, or a share."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)) or amount < 0:
        raise OptionError(f"amount is a count, or a share from 0 to 1; got {amount!r}")
    count = amount if isinstance(amount, int) else round(amount * of)
    if (isinstance(amount, float) and amount > 1) or count > of:
        raise OptionError(f"amount {amount} is more than there are: {of}")
    return count


def _without(mask: Any, places: Any) -> Any:
    """The mask with zeros at these places of it as one row."""
    flat = OPS["reshape"](mask, (-1,))
    zeros = OPS["zeros_like"](OPS["index_select"](flat, 0, places), None)
    return OPS["reshape"](OPS["index_put"](flat, [places], zeros), tuple(mask.shape))


def _least(scores: Any, count: int) -> Any:
    return OPS["narrow"](OPS["argsort"](scores, -1, False), 0, 0, count)


class Identity(BasePruningMethod):
    """Leaves out nothing."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Leaves out what a given mask does."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask * OPS["cast"](self.mask, default_mask.dtype)


class L1Unstructured(BasePruningMethod):
    """Leaves out the elements nearest to zero."""

    def __init__(self, amount: Any) -> None:
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Of those that stayed so far; what went before goes on counting as gone."""
        left = int(default_mask.sum().item())
        gone = default_mask.numel() - left
        size = OPS["where"](default_mask == 0, -1.0, OPS["abs"](t)).reshape(-1)
        return _without(default_mask, _least(size, gone + _count(self.amount, left)))


class RandomUnstructured(BasePruningMethod):
    """Leaves out elements at random."""

    def __init__(self, amount: Any) -> None:
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        left = int(default_mask.sum().item())
        gone = default_mask.numel() - left
        drawn = default_mask.clone().uniform_()
        size = OPS["where"](default_mask == 0, -1.0, drawn).reshape(-1)
        return _without(default_mask, _least(size, gone + _count(self.amount, left)))


class LnStructured(BasePruningMethod):
    """Leaves out whole slices along a dimension, those of the smallest norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: float, dim: int = -1) -> None:
        self.amount, self.n, self.dim = amount, n, dim

    def _sizes(self, t: Any, default_mask: Any) -> Any:
        d = self.dim % t.ndim
        rows = OPS["permute"](t * default_mask, (d, *(i for i in range(t.ndim) if i != d))).reshape(t.shape[d], -1)
        if self.n == math.inf:
            return rows.abs().amax(-1)
        return rows.abs().pow(self.n).sum(-1).pow(1 / self.n)

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        d = self.dim % t.ndim
        others = tuple(i for i in range(t.ndim) if i != d)
        there = OPS["amax"](default_mask, others, False) if others else default_mask
        left = int(there.sum().item())
        sizes = OPS["where"](there == 0, -1.0, self._sizes(t, default_mask))
        count = t.shape[d] - left + _count(self.amount, left)
        kept = _without(OPS["ones_like"](there, None), _least(sizes, count))
        return default_mask * kept.reshape([-1 if i == d else 1 for i in range(t.ndim)])


class RandomStructured(LnStructured):
    """Leaves out whole slices along a dimension at random."""

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount, 1, dim)

    def _sizes(self, t: Any, default_mask: Any) -> Any:
        d = self.dim % t.ndim
        return OPS["select"](t.detach().reshape(t.shape[d], -1), 1, 0).clone().uniform_()


# ---- functions ---------------------------------------------------------------------------------------


def identity(module: M, name: str) -> M:
    """Put a mask of ones on a parameter."""
    return Identity.apply(module, name)


def l1_unstructured(module: M, name: str, amount: Any, importance_scores: Any = None) -> M:
    """Leave out a count, or a share, of a parameter's elements: those nearest to zero. Gives the module.

    >>> m = flow.nn.Linear(3, 2, bias=False)
    >>> _ = flow.nn.utils.prune.l1_unstructured(m, "weight", amount=2)
    >>> int((m.weight == 0).sum()), sorted(m.state_dict())
    (2, ['weight_mask', 'weight_orig'])
    """
    return L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)


def random_unstructured(module: M, name: str, amount: Any) -> M:
    """Leave out elements at random."""
    return RandomUnstructured.apply(module, name, amount)


def ln_structured(module: M, name: str, amount: Any, n: float, dim: int, importance_scores: Any = None) -> M:
    """Leave out slices along a dimension: those whose n-norm is the smallest."""
    return LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)


def random_structured(module: M, name: str, amount: Any, dim: int) -> M:
    """Leave out slices along a dimension at random."""
    return RandomStructured.apply(module, name, amount, dim)


def custom_from_mask(module: M, name: str, mask: Any) -> M:
    """Leave out what a mask has zeros for."""
    return CustomFromMask.apply(module, name, mask)


def global_unstructured(
    parameters: Parameters, pruning_method: type[BasePruningMethod], importance_scores: Any = None, **kwargs: Any
) -> None:
    """Leave out elements of several parameters as if they were one."""
    everyone, scores = list(parameters), importance_scores or {}
    by = [scores.get((m, n), _trained(m, n)).detach().reshape(-1) for m, n in everyone]
    masks = [getattr(m, f"{n}_mask", None) for m, n in everyone]
    before = [OPS["ones_like"](b, None) if k is None else k.reshape(-1) for b, k in zip(by, masks, strict=True)]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise OptionError(f"global_unstructured takes a method for elements; {pruning_method.__name__} is for slices")
    with no_grad():
        whole: Any = method.compute_mask(OPS["cat"](by, 0), OPS["cat"](before, 0))
    at = 0
    for m, n in everyone:
        t = _trained(m, n)
        custom_from_mask(m, n, whole.narrow(0, at, t.numel()).reshape(tuple(t.shape)))
        at += t.numel()


def _trained(module: Module, name: str) -> Any:
    return getattr(module, f"{name}_orig", None) if _found(module, name) else getattr(module, name)


def remove(module: M, name: str) -> M:
    """Make a pruned parameter a plain one, with zeros where something was left out."""
    known = _found(module, name)
    if known is None:
        raise OptionError(f"parameter {name!r} of this {type(module).__name__} isn't pruned")
    known[1].remove(module)
    del _hooks(module)[known[0]]
    return module


def is_pruned(module: Module) -> bool:
    """Whether something in a module is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook, *_ in _hooks(m).values())


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "RandomStructured",
    "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured",
    "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip
