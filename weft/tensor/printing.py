"""How a tensor prints: torch's own numbers, then what else there is to know."""

from __future__ import annotations

import re
from typing import Any

import torch

from weft.core.errors import ArgumentError
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

_TAIL = re.compile(r"(, (device='[^']*'|size=\([^)]*\)|dtype=[\w.]+))*\)$")  # what torch says behind the numbers


def show(t: Tensor) -> str:
    """The tensor as text: `tensor([[1., 2.]], requires_grad=True)`."""
    if t.value is not None:
        text = _symbol(t)
    elif t.spec is None:
        text = _with(_numbers(t._local("print(tensor)")), _gradient(t))
    else:
        text = _global(t)
    return f"Parameter containing:\n{text}" if isinstance(t, Parameter) else text


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


def _global(t: Tensor) -> str:
    """A global tensor's logical value. Every rank of its placement takes part in gathering it."""
    more = [*_where(t), *_gradient(t)]
    whole = t._whole("print(tensor)")
    if tuple(whole.shape) != tuple(t.shape):  # this rank lies outside the placement
        return _with("tensor(...)", [*more, f"size={tuple(t.shape)}", f"dtype={t.dtype!r}"])
    text = _numbers(whole.cpu())
    tail = _TAIL.search(text)
    assert tail is not None
    return _with(f"{text[: tail.start()]})", [*more, *_kept(tail[0])])


def _kept(tail: str) -> list[str]:
    return [part for part in tail[:-1].split(", ") if part.startswith("dtype=")]


def _symbol(t: Tensor) -> str:
    more = [
        "is_lazy='True'",
        *(_where(t) if t.spec is not None else []),
        f"size={tuple(t.shape)}",
        f"dtype={t.dtype!r}",
    ]
    return _with("tensor(...)", [*more, *_gradient(t)])


def formatted(t: Tensor, specification: str) -> str:
    """`format(tensor, spec)`: a number formats as one, and with a specification so does a tensor of one element."""
    if not specification:
        known = t.ndim == 0 and t.value is None and t.spec is None and t.device.type != "meta"
        return format(t.item()) if known and not isinstance(t, Parameter) else show(t)
    if t.numel() != 1:
        raise ArgumentError(
            f"{specification!r} formats one number; this tensor has shape {list(t.shape)}: reduce or index it first"
        )
    return format(t.item(), specification)


def set_printoptions(
    precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: Any = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """How numbers are printed: torch's own options, for both."""
    torch.set_printoptions(precision, threshold, edgeitems, linewidth, profile, sci_mode)
