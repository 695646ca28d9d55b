"""Classes of torch's, and of packages that build on it, made to take Weft's values: optimizers, scalers, distributions,
trainers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import FunctionType, GeneratorType
from typing import Any, Final

import torch
from torch.overrides import _pop_mode_temporarily
from torch.utils._pytree import tree_map_only

from weft.amp.scaler import unscaled
from weft.core.errors import ArgumentError
from weft.interop.entering import WEFTS, contains, entered, outside_of_modules
from weft.interop.facade import Facade, Function, call_outside, facade, inward, outward
from weft.interop.inside import inside
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

WEFT: Final = __name__.partition(".")[0]


def wrap_methods(theirs: type, name: str) -> type:
    """Run a class's methods as code of torch's modules, where the object or an argument holds what is Weft's."""
    for method, f in list(vars(theirs).items()):
        if isinstance(f, FunctionType) and (method[0] != "_" or method == "__init__"):
            setattr(theirs, method, _wrap_method(f))
    return theirs


def wrap_subclasses(theirs: Any, name: str) -> type:
    """Likewise for those that derive from the class."""

    def __init_subclass__(cls: type, **kwargs: Any) -> None:
        super(theirs, cls).__init_subclass__(**kwargs)
        wrap_methods(cls, "")

    theirs.__init_subclass__ = classmethod(__init_subclass__)
    return wrap_methods(theirs, name)


def _wrap_method(theirs: Function) -> Function:
    @functools.wraps(theirs)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if inside.depth:
            return theirs(self, *args, **kwargs)
        args = tuple(map(_parameters_listed, args))
        if not contains(values := (*vars(self).values(), *args, *kwargs.values()), WEFTS):
            return theirs(self, *args, **kwargs)
        if any(p.is_global for m in values if isinstance(m, Module) for p in m.parameters()):
            raise ArgumentError(
                f"{type(self).__name__} gives each rank other rows of the data, so its model is local, and averaged by "
                "DistributedDataParallel; this one's parameters are global. Train it by a loop of your own, or a graph"
            )
        with entered(values):
            return call_outside(functools.partial(theirs, self), args, kwargs)

    return call


def _parameters_listed(v: Any) -> Any:
    """A module's parameters as a list, so that they can be looked at; any other iterator stays as it is."""
    return list(v) if isinstance(v, GeneratorType) and v.__qualname__.startswith("Module.") else v


def wrap_optimizer(theirs: Any, name: str) -> type:
    """Let torch's optimizers, and those derived from them, train Weft's parameters: they see stand-ins for these."""
    add = theirs.add_param_group

    @functools.wraps(add)
    def add_param_group(self: Any, param_group: Any) -> None:
        if isinstance(param_group, dict) and "params" in param_group:
            params = param_group["params"]
            param_group["params"] = tree_map_only(
                Tensor, facade, list(params) if isinstance(params, Iterator) else params
            )
        add(self, param_group)
        kind = type(self)
        if Facade in map(type, self.param_groups[-1]["params"]) and not hasattr(kind.step, "enters"):
            kind.step = _wrap_step(kind.step)

    theirs.add_param_group = add_param_group
    return theirs


def scale_ours(theirs: Any, name: str) -> type:
    """Let torch's scaler scale Weft's losses and gradients. Its own state stays torch's."""
    scale, unscale = theirs.scale, theirs._unscale_grads_

    @functools.wraps(scale)
    def of_losses(self: Any, outputs: Any) -> Any:
        if not self._enabled or inside.depth or not contains((outputs,)):
            return scale(self, outputs)
        scale(self, torch.ones(()))  # makes its state
        return tree_map_only(Tensor, lambda y: y * self.get_scale(), outputs)

    @functools.wraps(unscale)
    def of_gradients(self: Any, optimizer: Any, inverse: Any, found: Any, *args: Any) -> Any:
        given = [p for group in optimizer.param_groups for p in group["params"]]
        if not contains(given, WEFTS):
            return unscale(self, optimizer, inverse, found, *args)
        grads = [inward(p).grad for p in given]
        finite = unscaled([g for g in grads if g is not None], inverse.item())
        return {found.device: found.fill_(not finite)}

    theirs.scale, theirs._unscale_grads_ = of_losses, of_gradients
    return theirs


def with_our_classes(theirs: Any, name: str) -> type:
    """For a class of torch's that derives from this one, Weft's of the same name where it is given Weft's values."""
    path = theirs.__module__.split(".")[1]

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        home = getattr(sys.modules[WEFT], path)
        kinds = Tensor, getattr(home, name)
        if (
            inside.depth
            or not cls.__module__.startswith(f"torch.{path}.")
            or not contains((*args, *kwargs.values()), kinds)
        ):
            return object.__new__(cls)
        return getattr(home, cls.__name__)(*args, **kwargs)

    theirs.__new__ = staticmethod(functools.wraps(theirs.__new__)(__new__))
    return theirs


def data_parallel(theirs: Any, name: str) -> type:
    """Weft's class of the same name, for Weft's modules."""

    def __new__(cls: Any, module: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(module, Module):
            return object.__new__(cls)
        with outside_of_modules():
            return sys.modules[WEFT].nn.parallel.DistributedDataParallel(module, *inward(args), **inward(kwargs))

    theirs.__new__ = staticmethod(functools.wraps(theirs.__new__)(__new__))
    return theirs


def _closure(f: Any) -> Any:
    """An optimizer's closure, which is the program's code, on Weft's tensors."""
    if not callable(f) or isinstance(f, (Tensor, Module)):
        return f

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        depth, inside.depth = inside.depth, 0
        try:
            with _pop_mode_temporarily():  # in which the optimizer runs
                loss = f(*args, **kwargs)
        finally:
            inside.depth = depth
        return outward(loss)

    return call


def _wrap_step(theirs: Function) -> Function:
    @functools.wraps(theirs)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        ours = [p.of for group in self.param_groups for p in group["params"] if type(p) is Facade]
        if not ours or inside.depth:  # a trainer's closure is torch's code as well
            return theirs(self, *args, **kwargs)
        args, kwargs = tuple(map(_closure, args)), {k: _closure(v) for k, v in kwargs.items()}
        with entered(ours):
            return call_outside(functools.partial(theirs, self), args, kwargs)

    step.enters = True  # type: ignore[attr-defined]
    return step
