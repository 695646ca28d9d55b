"""`oneflow.test_utils.automated_test_util`: a test written once, run on PyTorch and on Weft, and compared.

Within it `torch` is a pair of both libraries, and what comes of it are pairs: each call is made on both. Arguments are
drawn at random, in the same sequence on every rank and in every run.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import random as python_random
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch as pytorch

from weft.oneflow.test_utils.random_arguments import (
    Nothing,
    all_cpu_placement,
    all_placement,
    all_sbp,
    constant,
    cpu_device,
    flow,
    generator,
    gpu_device,
    nothing,
    oneof,
    pack,
    random,
    random_bool,
    random_cpu_placement,
    random_device,
    random_gpu_placement,
    random_or_nothing,
    random_placement,
    random_sbp,
    run,
)

__path__: list[str] = []  # programs import from OneFlow's files of this folder


# ---- pairs -------------------------------------------------------------------------------------------


def is_global() -> bool:
    return run.is_global


@contextmanager
def GlobalScope() -> Iterator[None]:
    """Within it, random tensors and modules are global ones on every rank."""
    before, run.is_global = run.is_global, True
    try:
        yield
    finally:
        run.is_global = before


class PyTorchDoesNotSupportError(Exception):
    """PyTorch refused what was drawn: another draw is tried."""


class DualObject:
    """A thing of PyTorch's and its counterpart."""

    def __init__(self, name: str, theirs: Any, ours: Any) -> None:
        if isinstance(theirs, pytorch.nn.Module):
            ours.load_state_dict({k: flow.tensor(v.numpy()) for k, v in theirs.state_dict().items()}, strict=False)
            if run.is_global and not any(t.is_global for t in ours.state_dict().values()):
                ours = ours.to_global(placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)
        vars(self).update(name=name, pytorch=theirs, oneflow=ours)
        if isinstance(theirs, pytorch.Tensor | pytorch.nn.Module):
            run.pairs.append(self)

    def __getattr__(self, key: str) -> Any:
        theirs = _LAYOUTS[key](self.pytorch) if key in _LAYOUTS else getattr(self.pytorch, key)
        ours = getattr(self.oneflow, key)
        if theirs is None:
            assert ours is None, f"{self.name}.{key} is None on PyTorch, and {ours} on Weft"
            return None
        return DualObject(f"{self.name}.{key}".lstrip("."), theirs, ours)

    def __setattr__(self, key: str, value: Any) -> None:
        for side in ("pytorch", "oneflow"):
            setattr(vars(self)[side], key, _side(value, side))

    def __call__(self, *args: Any, **kwargs: Any) -> DualObject:
        _annotate(self.pytorch, args, kwargs)
        args = tuple(_drawn(a) for a in args)
        kwargs = {k: v for k, v in ((k, _drawn(v)) for k, v in kwargs.items()) if not isinstance(v, Nothing)}
        try:
            theirs = self.pytorch(*_side(args, "pytorch"), **_side(kwargs, "pytorch"))
        except Exception as error:
            raise PyTorchDoesNotSupportError(f"{self.name}: {error}") from error
        ours = _checked(self.oneflow, self.name, _side(args, "oneflow"), _side(kwargs, "oneflow"))
        if self.name.rpartition(".")[2] in _UNINITIALIZED:
            ours.data.copy_(theirs.detach().cpu().numpy())
        return DualObject(self.name, theirs, ours)

    def __iter__(self) -> Iterator[DualObject]:
        return iter([DualObject(self.name, a, b) for a, b in zip(self.pytorch, self.oneflow, strict=True)])

    def __bool__(self) -> bool:
        assert bool(self.pytorch) == bool(self.oneflow)
        return bool(self.pytorch)

    def __len__(self) -> int:
        return len(self.pytorch)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, DualObject) and not isinstance(self.pytorch, pytorch.Tensor):
            return self.pytorch == other.pytorch and self.oneflow == other.oneflow
        return DualObject.__getattr__(self, "__eq__")(other) if isinstance(other, DualObject) else self.pytorch == other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"PyTorch's:\n{self.pytorch}\n\nWeft's:\n{self.oneflow}"


_UNINITIALIZED = {"Tensor", "new", "empty", "empty_like", "empty_strided", "new_empty"}  # whatever lay there

_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "to_global": lambda x: lambda *args, **kwargs: x.clone() if isinstance(x, pytorch.Tensor) else x,
    "to_local": lambda x: lambda *args, **kwargs: x.clone() if isinstance(x, pytorch.Tensor) else x,
    "broadcast_like": lambda x: lambda like, *args, **kwargs: x.broadcast_to(like.size()),
    "placement": lambda x: "", "sbp": lambda x: "",
}  # fmt: skip


def _operator(name: str) -> Callable[..., DualObject]:
    return lambda self, *args: DualObject.__getattr__(self, name)(*args)


_compared = {"__lt__", "__le__", "__gt__", "__ge__", "__ne__"}
for _name in (n for n in dir(pytorch.Tensor) if n.startswith("__") and (n not in dir(DualObject) or n in _compared)):
    if callable(getattr(pytorch.Tensor, _name)) and not _name.startswith(("__array", "__torch", "__cuda", "__dlpack")):
        setattr(DualObject, _name, _operator(_name))


def GetDualObject(name: str, pytorch: Any, oneflow: Any) -> DualObject:
    return DualObject(name, pytorch, oneflow)


def _mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(tree, tuple | list) and type(tree) in (tuple, list):
        return type(tree)(_mapped(x, function) for x in tree)
    if isinstance(tree, dict):
        return {k: _mapped(v, function) for k, v in tree.items()}
    if isinstance(tree, slice):
        return slice(*(_mapped(x, function) for x in (tree.start, tree.stop, tree.step)))
    return function(tree)


def _drawn(tree: Any) -> Any:
    return _mapped(tree, lambda x: x.value() if isinstance(x, generator) else x)


def _side(tree: Any, side: str) -> Any:
    return _mapped(tree, lambda x: vars(x)[side] if isinstance(x, DualObject) else x)


def _annotate(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Tell random arguments the types that PyTorch's function declares."""
    try:
        called = function.forward if isinstance(function, pytorch.nn.Module) else function
        given = inspect.signature(called, eval_str=True).bind(*args, **kwargs).arguments
        hints = {n: p.annotation for n, p in inspect.signature(called, eval_str=True).parameters.items()}
    except (TypeError, ValueError, NameError):
        return  # a function of C has no signature
    for name, value in given.items():
        if isinstance(value, generator) and hints[name] is not inspect.Parameter.empty:
            value.to(hints[name])


# ---- the comparison ----------------------------------------------------------------------------------

_NOT_IN_GRAPHS = {"to", "tensor", "train", "Parameter", "backward", "numpy", "requires_grad_", "retain_grad", "clone",
                  "to_global", "to_local", "detach", "as_tensor"} | _UNINITIALIZED  # fmt: skip


def _tensors(x: Any) -> list[Any]:
    return [t for t in (x if isinstance(x, tuple | list) else [x]) if isinstance(t, flow.Tensor)]


def _checked(function: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The function's result, which a graph that calls it must give, too."""
    name = name.rpartition(".")[2]
    if not run.in_graph or inspect.isclass(function) or name in _NOT_IN_GRAPHS:
        return function(*args, **kwargs)
    copied = _mapped((args, kwargs), lambda x: x.detach().clone() if isinstance(x, flow.Tensor) else x)
    owner: Any = getattr(function, "__self__", None)
    if isinstance(owner, flow.Tensor):
        again = getattr(owner.detach().clone(), name)
    else:
        again = copy.deepcopy(function) if isinstance(function, flow.nn.Module) else function
    state = flow.get_rng_state()
    ours = function(*args, **kwargs)
    if _tensors(ours):
        after = flow.get_rng_state()
        flow.set_rng_state(state)

        class Again(flow.nn.Graph):
            def __init__(self) -> None:
                super().__init__()
                self.called = again

            def build(self) -> Any:
                return self.called(*copied[0], **copied[1])

        for mine, graphs in zip(_tensors(ours), _tensors(Again()()), strict=True):
            _compare(graphs.numpy(), mine.numpy(), f"{name} in a graph", equal_nan=True)
        flow.set_rng_state(after)
    return ours


def _compare(actual: Any, expected: Any, what: str, rtol: float = 1e-4, atol: float = 1e-5, **options: Any) -> None:
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=what, **options)


def check_equality(pair: DualObject, rtol: float = 1e-4, atol: float = 1e-5, check_dtype: bool = False) -> bool:
    """Whether both sides, and their gradients, are equal; else an AssertionError shows where they differ."""
    theirs, ours = pair.pytorch, pair.oneflow
    if isinstance(theirs, pytorch.nn.Module):
        for key, value in theirs.state_dict(keep_vars=True).items():
            if (mine := ours.state_dict(keep_vars=True).get(key)) is not None:
                check_equality(DualObject(f"{pair.name}.{key}", value, mine), rtol, atol, check_dtype)
    elif isinstance(theirs, tuple | list) and not isinstance(theirs, pytorch.Size):
        assert len(theirs) == len(ours), f"{pair.name}: {len(ours)} results, not {len(theirs)}"
        for a, b in zip(theirs, ours, strict=True):
            check_equality(DualObject(pair.name, a, b), rtol, atol, check_dtype)
    elif isinstance(theirs, pytorch.Tensor):
        mine, expected = ours.numpy(), theirs.detach().cpu().resolve_conj().resolve_neg().numpy()
        _compare(mine, expected, pair.name, rtol, atol)
        assert not check_dtype or mine.dtype == expected.dtype, f"{pair.name}: {mine.dtype}, not {expected.dtype}"
        if (theirs.is_leaf or theirs.retains_grad) and theirs.grad is not None:
            assert ours.grad is not None, f"{pair.name} has a gradient on PyTorch, and none on Weft"
            _compare(ours.grad.numpy(), theirs.grad.cpu().numpy(), f"{pair.name}'s gradient", rtol, atol)
    elif isinstance(theirs, bool | int | float | str | type(None)):
        assert theirs == ours, f"{pair.name}: {ours}, not {theirs}"
    return True


def autotest(
    n: int = 20, auto_backward: bool | str = True, rtol: float = 1e-4, atol: float = 1e-5,
    check_graph: bool | str = True, check_allclose: bool = True, check_dtype: bool = False,
    check_grad_use_random_data: bool = True, **ignored: Any,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:  # fmt: skip
    """Run a test `n` times with other random arguments, and compare every tensor it made and every gradient.

    `check_graph` also runs each call in a graph of its own.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        @functools.wraps(function)
        def test(*args: Any, **kwargs: Any) -> None:
            seed = zlib.crc32(function.__qualname__.encode())
            run.rng = np.random.default_rng(seed)
            for each in (python_random.seed, np.random.seed, pytorch.manual_seed):
                each(seed)
            left, refused = n, 0
            while left:
                run.pairs.clear()
                run.in_graph = check_graph is True
                try:
                    result = function(*args, **kwargs)
                    run.in_graph = False
                    results = [x for x in _sequence(result) if isinstance(x, DualObject)]
                    for pair in results if auto_backward else ():
                        _backward(pair, check_grad_use_random_data)
                except PyTorchDoesNotSupportError as error:
                    refused += 1
                    assert refused <= 20 * n, f"PyTorch refuses whatever is drawn: {error}"
                    continue
                finally:
                    run.in_graph = False
                for pair in [*run.pairs, *results] if check_allclose else ():
                    check_equality(pair, rtol, atol, check_dtype)
                left -= 1
            run.pairs.clear()

        return test

    return decorate


def _sequence(x: Any) -> Sequence[Any]:
    return x if isinstance(x, tuple | list) else [x]


def _backward(pair: DualObject, with_random_data: bool) -> None:
    theirs, ours = pair.pytorch, pair.oneflow
    if not isinstance(theirs, pytorch.Tensor) or not theirs.requires_grad:
        return
    if not with_random_data:
        return theirs.sum().backward(), ours.sum().backward()  # type: ignore[func-returns-value]
    gradient = run.rng.uniform(size=tuple(theirs.shape))
    where = (
        {"placement": ours.placement, "sbp": [flow.sbp.broadcast] * len(ours.sbp)}
        if ours.is_global
        else {"device": ours.device}
    )
    theirs.backward(pytorch.tensor(gradient, dtype=theirs.dtype, device=theirs.device))
    ours.backward(flow.tensor(gradient, dtype=ours.dtype, **where))


def globaltest(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test within a GlobalScope."""

    @functools.wraps(function)
    def test(*args: Any, **kwargs: Any) -> Any:
        with GlobalScope():
            return function(*args, **kwargs)

    return test


def profile(op: Any) -> Callable[[Any], Any]:
    """OneFlow's mark for what it measures; nothing is measured here."""
    return lambda function: function


def random_tensor(
    ndim: Any = None, dim0: Any = 1, dim1: Any = None, dim2: Any = None, dim3: Any = None, dim4: Any = None,
    low: Any = 0, high: Any = 1, dtype: Any = float, requires_grad: Any = True, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A pair of equal tensors; a dimension that isn't given is from 1 to 7."""
    ndim = random(1, 6).to(int) if ndim is None else pack(ndim).to(int)
    sizes = [random(1, 8) if d is None else pack(d) for d in (dim0, dim1, dim2, dim3, dim4)]
    shape = [size.to(int).value() for size in sizes[: ndim.value()]]
    low, high, dtype = pack(low).to(float).value(), pack(high).to(float).value(), pack(dtype).value()
    whole = dtype is int
    values = run.rng.integers(low, high, shape) if whole else run.rng.uniform(low, high, shape).astype(np.float32)
    return _pair(values, pack(requires_grad).value() and not whole)


def choice_tensor(
    a: Any, size: Any = None, replace: bool = True, p: Any = None, dtype: Any = int, requires_grad: Any = False
) -> Any:
    """A pair of equal tensors of elements of `a`."""
    values = np.asarray(run.rng.choice(a, size, replace, p)).astype(dtype)
    return _pair(values, pack(requires_grad).value() and dtype is not int)


def _pair(values: Any, requires_grad: bool) -> DualObject:
    theirs = pytorch.tensor(values).requires_grad_(requires_grad)
    where = {"placement": flow.placement.all("cpu"), "sbp": flow.sbp.broadcast} if run.is_global else {}
    return DualObject("tensor", theirs, flow.tensor(values, requires_grad=requires_grad, **where))


def broadcast(obj: Any, src: int = 0) -> Any:
    """Rank `src`'s value, on every rank."""
    return flow.framework.check_point_v2._broadcast_py_object(obj, src)


torch: Any = DualObject("", pytorch, flow)
util = sys.modules[__name__]  # OneFlow's file of this name has some of these names
__all__ = [
    "GlobalScope", "all_cpu_placement", "all_placement", "all_sbp", "autotest", "broadcast", "check_equality",
    "choice_tensor", "constant", "cpu_device", "globaltest", "gpu_device", "is_global", "nothing", "oneof", "os",
    "profile", "random", "random_bool", "random_cpu_placement", "random_device", "random_gpu_placement",
    "random_or_nothing", "random_placement", "random_sbp", "random_tensor", "torch",
]  # fmt: skip
