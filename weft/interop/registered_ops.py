"""Ops that libraries register with torch, `torch.ops.torchvision.roi_align`, as ops of Weft's.

Each is declared when it is first called, from its schema. The kernel is torch's, on whole operands. The gradient is a
second op, which computes the first one again, and asks torch's autograd.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from weft.autograd.trees import leaves, mapped
from weft.core.errors import ArgumentError
from weft.interop.facade import without_torch_function
from weft.ops.declaration import REQUIRED, Op, op

KINDS: Final = {
    "Tensor": "Tensor", "Optional[Tensor]": "Tensor | None", "List[Tensor]": "Sequence[Tensor]",
    "List[Optional[Tensor]]": "Sequence[Tensor | None]",
}  # fmt: skip
_lock: Final = threading.RLock()  # ranks that are threads share the ops


def declared(func: Any) -> Op | None:
    """An op of torch's as one of Weft's; None if it isn't a function of tensors to new tensors."""
    with _lock:
        return _declared(func)


@functools.cache
def _declared(func: Any) -> Op | None:
    if isinstance(func, torch._ops.OpOverloadPacket):
        first, *others = func.overloads()
        return None if others else _declared(getattr(func, first))
    given, made = func._schema.arguments, func._schema.returns
    writes = any(a.alias_info for a in (*given, *made))
    if writes or torch.Tag.nondeterministic_seeded in func.tags or {str(r.type) for r in made} != {"Tensor"}:
        return None
    if not any(str(a.type) in KINDS for a in given):
        return None

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with without_torch_function():
            return func(*args, **kwargs)

    results, names = [f"y{i}" for i in range(len(made))], [a.name for a in given]
    kinds = [KINDS.get(str(a.type), "Any") for a in given]
    ours = _op(func, "", kernel, results, [
        _parameter(a.name, kind, a.default_value if a.has_default_value() else REQUIRED, a.kwarg_only)
        for a, kind in zip(given, kinds, strict=True)
    ])  # fmt: skip

    def grad(*saved: Any) -> Any:
        args, needs, dys = saved[: len(given)], saved[len(given)], saved[len(given) + 1 :]
        with _lock:
            gradient = _gradient(func, tuple(zip(names, kinds, strict=True)), needs)
        found = gradient(dys, *args)
        parts, wanted = iter(found if isinstance(found, tuple) else (found,)), iter(needs)
        operands = [a for a, kind in zip(args, kinds, strict=True) if kind != "Any"]
        return tuple(mapped([*operands], lambda _: next(parts) if next(wanted) else None))

    vars(grad)["__signature__"] = inspect.Signature(
        [*map(_parameter, [*names, "needs"]), *(_parameter(f"d{y}", default=None) for y in results)]
    )
    ours.grad(grad)
    return ours


@functools.cache
def _gradient(func: Any, parameters: tuple[tuple[str, str], ...], needs: tuple[bool, ...]) -> Op:
    """The op of the gradients of those operands that need one."""
    keywords = [a.name for a in func._schema.arguments if a.kwarg_only]
    n = len(parameters) - len(keywords)

    def wanted(args: Sequence[Any]) -> list[Any]:
        flat = leaves([a for a, (_, kind) in zip(args, parameters, strict=True) if kind != "Any"])
        return [x for x, needed in zip(flat, needs, strict=True) if needed]

    def kernel(dys: Any, *args: Any) -> Any:
        with without_torch_function(), torch.enable_grad():
            alone = mapped([*args], lambda a: a.detach() if isinstance(a, torch.Tensor) else a)
            given = [x.requires_grad_() for x in wanted(alone)]
            made = func(*alone[:n], **dict(zip(keywords, alone[n:], strict=True)))
            pairs = zip(made if isinstance(made, (tuple, list)) else (made,), dys, strict=True)
            ys = {y: dy for y, dy in pairs if dy is not None and y.requires_grad}
            if not ys:
                raise ArgumentError(f"{func} has no gradient: its library registered none with torch")
            found = torch.autograd.grad([*ys], given, [*ys.values()], allow_unused=True, materialize_grads=True)
        return found[0] if len(found) == 1 else found

    rows = [_parameter("dys", "Sequence[Tensor | None]"), *(_parameter(*p) for p in parameters)]
    suffix = "_grad_" + "".join("01"[needed] for needed in needs)
    made = _op(func, suffix, kernel, [f"dx{i}*" for i in range(sum(needs))], rows)
    made.form(lambda dys, *args: tuple(wanted(args)))
    return made


def _parameter(name: str, kind: str = "Any", default: Any = REQUIRED, keyword: bool = False) -> inspect.Parameter:
    place = inspect.Parameter.KEYWORD_ONLY if keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, place, annotation=kind, default=default)


def _op(
    func: Any, suffix: str, kernel: Callable[..., Any], results: list[str], parameters: list[inspect.Parameter]
) -> Op:
    """Declare an op whose kernel's signature isn't Python's."""
    name = func.name().replace("::", "_").replace(".", "_")
    kernel.__name__, kernel.__module__, kernel.__doc__ = name + suffix, f"torch.ops.{func.namespace}", str(func._schema)
    vars(kernel)["__signature__"] = inspect.Signature(parameters)
    return op(returns=" ".join(results))(kernel)
