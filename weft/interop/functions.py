"""Replace torch's functions inside torch's modules by Weft's of the same name.

The table is derived: a function of torch's has a public name, `torch.nn.functional.linear` or `torch.Tensor.add`, and
Weft's function of this name is called. What only torch has, in Python, runs as torch wrote it, on Weft's tensors.
Anything else is an error that names the function.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import torch
from torch._library.custom_ops import OPDEFS
from torch.overrides import TorchFunctionMode, handle_torch_function, resolve_name

from weft.autograd.trees import leaves
from weft.core.derived import GIVEN
from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.interop import registered_ops
from weft.interop.facade import Facade, Function, inward, on_one_placement, outward
from weft.interop.inside import inside
from weft.interop.torch_compositions import COMPOSED
from weft.tensor.tensor import Tensor

WEFT: Final = __name__.partition(".")[0]
OPS: Final = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
HANDLE: Final = handle_torch_function.__code__
WEFTS: Final = ("<weft", str(Path(__file__).parents[1]))
Answer = Callable[[Any, Any], Any]


class Table(dict[Any, Answer]):
    """The answers to torch's functions, each found when it is first called."""

    def __missing__(self, func: Function) -> Answer:
        return self.setdefault(func, _find(func))


TABLE: Final = Table()
type(inside).answers = TABLE


class Mode(TorchFunctionMode):
    """A mode in which this thread's calls of torch's functions, factories of tensors included, are Weft's."""

    def __torch_function__(self, func: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (not args or type(args[0]) is not Facade) and _is_wefts(sys._getframe(1)):
            return func(*args, **(kwargs or {}))  # a kernel's call, for a tensor that isn't a stand-in
        return TABLE[func](args, kwargs or {})


def _is_wefts(caller: Any) -> bool:
    """Whether a function of torch's is called in Weft's code."""
    if caller.f_code is HANDLE:  # the function is Python's
        caller = caller.f_back.f_back
    return bool(caller.f_code.co_filename.startswith(WEFTS))


def _find(func: Any) -> Answer:
    if isinstance(func, torch._ops.OpOverload) and func.namespace == "aten":
        return _of_schema(func)
    name = _name(func)
    if func in EXCEPTIONS:
        return lambda args, kwargs: EXCEPTIONS[func](*args, **kwargs)
    if name.endswith((".__get__", ".__set__", ".__delete__")):
        return _accessor(name)
    private = GIVEN.get(name) if name.startswith("torch._") else None  # as torch's Python calls it here
    ours = COMPOSED.get(func) or COMPOSED.get(name) or private or counterpart(name) or GIVEN.get(name)
    ours = ours or counterpart(f"torch.{getattr(func, '__name__', '')}")  # torch.mm's public name is torch.spmm
    if ours is not None:
        return _calling(ours)
    body = _body(func)
    if body is None and isinstance(func, OPS) and (ours := registered_ops.declared(func)) is not None:
        return _calling(ours)
    return functools.partial(_running, body) if body is not None else functools.partial(_torchs_own, func, name)


def _name(func: Any) -> str:
    """A function's public name, like `torch.nn.functional.linear`."""
    if isinstance(func, OPS):
        return str(getattr(func, "overloadpacket", func))  # aten.slice
    home = getattr(func, "__module__", None) or "torch"
    return str(resolve_name(func) or f"{home}.{getattr(func, '__name__', func)}")


def counterpart(name: str) -> Function | None:
    """Weft's function of torch's name, or None."""
    _, *folders, last = name.split(".")
    root: Any = sys.modules[WEFT]
    found: Any = root
    for folder in folders:
        found = getattr(found, folder, None)
    found = getattr(found, last, None)
    if found is None and folders != ["Tensor"]:
        places = (root, root.nn.functional, root.special, root.linalg, root.nn.init, Tensor, root._C)
        found = next(filter(callable, (getattr(place, last, None) for place in places)), None)
    return found if callable(found) else None


def _calling(ours: Function) -> Answer:
    def call(args: Any, kwargs: dict[str, Any]) -> Any:
        if inside.everywhere:
            args, kwargs = on_one_placement(args, kwargs)
        if kwargs:
            out = kwargs.get("out")
            kwargs = {k: inward(v) for k, v in kwargs.items() if not k.startswith("_")}  # `_stacklevel`
            y = ours(*[inward(a) for a in args], **kwargs)
            return outward(y if out is None else out)
        y = ours(*[inward(a) for a in args])
        return args[0] if args and type(args[0]) is Facade and args[0].of is y else outward(y)

    return call


def _of_schema(func: torch._ops.OpOverload) -> Answer:
    """The answer to an op of ATen's, as exported programs call it: that to the function of its name, or the op itself.
    One that also takes a hint to its kernel may have other places, so it is called by names. Lists are of the programs'
    own type."""
    answer, names = TABLE[func.overloadpacket], [a.name for a in func._schema.arguments]
    if getattr(answer, "func", None) is _torchs_own and (ours := registered_ops.declared(func)) is not None:
        answer = _calling(ours)
    hinted = not HINTS.isdisjoint(names)

    def call(args: Any, kwargs: dict[str, Any]) -> Any:
        args = tuple(list(a) if isinstance(a, list) else a for a in args)
        if hinted:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            args, kwargs = (), {k: v for k, v in given.items() if k not in HINTS}
        return answer(args, kwargs)

    return call


HINTS: Final = frozenset({"cudnn_enable", "cudnn_enabled"})


def _accessor(name: str) -> Answer:
    _, _, attribute, verb = name.rsplit(".", 3)
    do: Any = {"__get__": getattr, "__set__": setattr, "__delete__": delattr}[verb]

    def call(args: Any, kwargs: dict[str, Any]) -> Any:
        return do(outward(args[0]), attribute, *args[1:2] if verb == "__set__" else ())

    return call


# ---- what only torch has -----------------------------------------------------------------------------


def _body(func: Any) -> Function | None:
    """The Python implementation of a function of torch's, without dispatch to `__torch_function__`, or None."""
    func = getattr(func, "_torchdynamo_inline", func)  # what torch.jit.script was given
    if isinstance(func, OPS):
        own = OPDEFS.get(_name(func).replace(".", "::"))  # what torch.library.custom_op was given
        func = func if own is None else own._init_fn
    while hasattr(func, "__wrapped__"):
        func = func.__wrapped__
    if not isinstance(func, FunctionType):
        return None
    space = {**func.__globals__, **dict.fromkeys(OVERRIDE_CHECKS, lambda *_: False)}
    body = FunctionType(func.__code__, space, func.__name__, func.__defaults__, func.__closure__)
    body.__kwdefaults__ = func.__kwdefaults__
    return body


OVERRIDE_CHECKS: Final = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


def _running(body: Function, args: Any, kwargs: dict[str, Any]) -> Any:
    with Mode():
        return body(*outward(tuple(args)), **outward(dict(kwargs)))


def _torchs_own(func: Function, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call torch's own function, if no tensor is among the arguments: a factory, or a query."""
    if any(isinstance(a, (Facade, torch.Tensor, Tensor)) for a in leaves((args, kwargs))):
        raise ArgumentError(
            f"{name}: a module of torch's calls it on Weft's tensors, and Weft has no function of this name. Let the "
            f"module do without, or write it with others, once: weft.interop.functions.provide({name}, your_function)"
        )
    return outward(func(*args, **kwargs))


def provide(theirs: Function, ours: Function) -> None:
    """Replace a function of torch's by one of yours, on Weft's tensors, inside torch's modules."""
    TABLE[theirs] = _calling(ours)


# ---- exceptions to the names -------------------------------------------------------------------------


def _dual(*_: Any, **__: Any) -> Any:
    raise ArgumentError(
        "torch.autograd.forward_ad: Weft's tensors have no tangents. Write y, dy = flow.func.jvp(f, (x,), (dx,))"
    )


def _set_grad_enabled(mode: bool) -> None:
    here.grad = mode
    torch._C._set_grad_enabled(mode)


EXCEPTIONS: dict[Any, Function] = {
    torch._C._set_grad_enabled: _set_grad_enabled,
    torch._make_dual: _dual,
    torch._unpack_dual: _dual,
    torch.Tensor.__deepcopy__: lambda x, memo: outward(x).__deepcopy__(memo),
    torch.Tensor.as_subclass: lambda x, cls: x,
}
