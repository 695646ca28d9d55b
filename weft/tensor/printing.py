"""Printing of tensors: torch's text of the numbers, then Weft's attributes."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import torch

from weft.core.dispatch import hooks
from weft.core.errors import ArgumentError
from weft.tensor.blob import Blob
from weft.tensor.data import local_data, whole_data
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

_TAIL = re.compile(r"(, (device='[^']*'|size=\([^)]*\)|dtype=[\w.]+))*\)$")  # torch's attributes after the numbers


def text(t: Tensor) -> str:
    """`repr` and `str`: `tensor([[1., 2.]], requires_grad=True)`.

    A global tensor shows what this rank holds, if computed: in a debugger, a logger or a traceback of one rank,
    printing waits for no other rank and raises nothing.
    """
    if not hasattr(t, "blob"):
        return f"{type(t).__name__}(...), not made yet"
    if t.value is not None:
        return _titled(t, meta_text(t))
    if t.is_local:
        return _titled(t, _with(_numbers(local_data(t, "print(tensor)")), _gradient(t)))
    return _titled(t, _part(t))


def show(x: Tensor) -> str:
    """The text of a tensor's logical value: `print(flow.show(x))`.

    A global tensor is gathered, so every rank of the world must call this. `print(x)` shows the rank's own shard.
    """
    if x.value is None and x.is_global:
        return _titled(x, _bare(whole_data(x, "show(tensor)").cpu(), [*_where(x), *_gradient(x)]))
    return text(x)


def _titled(t: Tensor, numbers: str) -> str:
    return f"Parameter containing:\n{numbers}" if isinstance(t, Parameter) else numbers


def _numbers(data: torch.Tensor) -> str:
    return repr(data.detach()).replace("torch.", "weft.")


def _with(text: str, more: list[str]) -> str:
    return f"{text[:-1]}{''.join(f', {m}' for m in more)})" if more else text


def _gradient(t: Tensor) -> list[str]:
    if t.node is not None:
        return [f"grad_fn={t.grad_fn!r}"]
    return ["requires_grad=True"] if t.requires_grad else []


def _where(t: Tensor) -> list[str]:
    placement, sbp = t.placement, t.sbp
    text = repr(sbp[0]) if len(sbp) == 1 else f"({', '.join(map(repr, sbp))})"
    return [f"placement={placement!r}", f"sbp={text}"]


def _part(t: Tensor) -> str:
    """The text of this rank's shard of a global tensor."""
    assert t.spec is not None and t.shard is not None
    more, data = [*_where(t), *_gradient(t)], _at_hand(t.shard)
    if data is None:
        return _with("tensor(...)", [*more, *_form(t), _missing(t.shard)])
    if not (_alike(t) and tuple(data.shape) == tuple(t.shape)):
        more = [f"part of size={tuple(t.shape)}", *more]
    try:
        return _bare(data.detach().cpu(), more)
    except Exception as error:  # the device failed
        return _with("tensor(...)", [*more, *_form(t), f"unreadable={type(error).__name__}"])


def _alike(t: Tensor) -> bool:
    """Whether each rank of the placement holds the whole."""
    return all(n == 1 or s.is_broadcast for n, s in zip(t.placement.shape, t.sbp, strict=True))


def _at_hand(blob: Blob) -> torch.Tensor | None:
    """The data, if it needs no communication."""
    writers = () if blob.access is None else blob.access.writers
    if writers and all(w.machine.rank.world_size == 1 for w in writers):
        with contextlib.suppress(Exception):  # the failure is shown
            hooks.wait_read(blob)
    return blob.data if blob.data is not None and blob.data.is_meta else blob.now


def _missing(blob: Blob) -> str:
    """Why there are no numbers: their writer is pending, or failed."""
    failed = None if blob.access is None else blob.access.failed
    return "not computed yet" if failed is None else f"not computed: {failed.name} failed with {failed.error!r}"


def _bare(data: torch.Tensor, more: list[str]) -> str:
    """The numbers, with the logical tensor's attributes in place of torch's."""
    numbers = _numbers(data)
    tail = _TAIL.search(numbers)
    assert tail is not None
    kept = [part for part in tail[0][:-1].split(", ") if part.startswith("dtype=")]
    return _with(f"{numbers[: tail.start()]})", [*more, *kept])


def meta_text(t: Tensor) -> str:
    """A tensor without its values."""
    more = [*(_where(t) if t.is_global else []), *(["is_lazy='True'"] if t.is_lazy else []), *_form(t)]
    return _with("tensor(...)", [*more, *_gradient(t)])


def _form(t: Tensor) -> list[str]:
    return [f"size={tuple(t.shape)}", f"dtype={t.dtype!r}"]


def formatted(t: Tensor, specification: str) -> str:
    """`format(tensor, spec)`: a 0-d tensor, or with a spec a one-element tensor, formats as a number; without a spec a
    global one only where this rank has it, as no rank waits for another."""
    if not specification:
        known = hasattr(t, "blob") and t.ndim == 0 and t.value is None and not isinstance(t, Parameter)
        data = local_data(t, "format(tensor)") if known and (t.is_local or _alike(t)) else None
        if data is None or data.is_meta or data.ndim:  # a rank outside of the placement has no elements
            return text(t)
        return format(t.item() if t.is_local else data.item())
    if t.numel() != 1:
        raise ArgumentError(
            f"{specification!r} formats one number; this tensor has shape {list(t.shape)}: reduce or index it first"
        )
    return format(t.item(), specification)


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: Any = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Set how numbers are printed: torch's own options, for both."""
    torch.set_printoptions(precision, threshold, edgeitems, linewidth, profile, sci_mode)
