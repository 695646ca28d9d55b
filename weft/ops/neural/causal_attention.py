"""Causal attention by products of blocks of the queries, on one thread: hidden scores aren't computed. Its gradient may
read the probabilities, or compute them anew."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from weft.core.errors import ShapeError
from weft.ops.declaration import op
from weft.ops.form import Form, alike
from weft.ops.kernels import aten

ROWS: Final = 64  # queries computed at once by products: smaller ones are slower
MANY: Final = 768  # queries of which torch's kernel takes as many at once as is fast
SHORT: Final = (torch.bfloat16, torch.float16)


def scale_of(width: int, scale: float | None) -> float:
    return 1 / math.sqrt(width) if scale is None else scale


def half_hidden(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, threads: int) -> bool:
    """Whether products of blocks give the gradients sooner than torch's kernel, which computes hidden scores, too, and
    by smaller products. Where several threads share its heads it is the faster one."""
    plain = is_causal and mask is None and q.shape == k.shape == v.shape and q.dtype not in SHORT and q.numel() > 0
    here = threads == 1 and q.device.type in ("cpu", "meta")
    return plain and here and 2 * ROWS <= q.shape[2] < MANY and q.shape[3] >= ROWS


def _spans(t: int) -> list[tuple[int, int]]:
    """The blocks of queries, the last one first: it sees all keys, and each of the others those before its end."""
    return [(max(0, end - ROWS), end) for end in range(t, 0, -ROWS)]


@functools.cache
def _hidden(dtype: torch.dtype, device: torch.device) -> Tensor:
    """What hides later keys."""
    return torch.full((ROWS, ROWS), -torch.inf, dtype=dtype, device=device).triu_(1)


def _room(q: Tensor) -> Tensor:
    """Memory for scores of one block after another, of which the first is the largest."""
    return q.new_empty(q.shape[1] * min(ROWS, q.shape[2]) * q.shape[2])


def _in_room(room: Tensor, *shape: int) -> Tensor:
    return room[: math.prod(shape)].view(shape)


def _probable(p: Tensor, q: Tensor, k: Tensor, scale: float) -> None:
    """Write the probabilities of a block, in which the last key is that of the last query."""
    rows = q.shape[1]
    torch.baddbmm(p, q, k.mT, beta=0, alpha=scale, out=p)
    p[:, :, -rows:].add_(_hidden(q.dtype, q.device)[:rows, :rows])
    torch.softmax(p, -1, out=p)


def gradients(
    grads: Sequence[Tensor], dy: Tensor, q: Tensor, k: Tensor, v: Tensor, scale: float | None,
    kept: Sequence[Tensor] = (),
) -> None:  # fmt: skip
    """Write gradients of causal attention block by block: hidden scores aren't computed, and nothing is copied.
    Probabilities that aren't kept are computed anew."""
    (dq, dk, dv), (heads, t, width) = grads, q.shape[1:]
    scale, ds_room = scale_of(width, scale), _room(q)
    p_room = ds_room if kept else _room(q)
    for i, (start, end) in enumerate(_spans(t)):
        queries = [x[:, :, start:end] for x in (dq, dy, q)]
        keys = [x[:, :, :end] for x in (dk, dv, k)]
        ds, p = (_in_room(room, heads, end - start, end) for room in (ds_room, p_room))
        ps, more = kept[i] if kept else [p] * len(q), end < t
        for p, dq_, dy_, q_, dk_, dv_, k_, vt in zip(ps, *queries, *keys, v[:, :, :end].mT, strict=True):
            if not kept:
                _probable(p, q_, k_, scale)
            torch.baddbmm(dv_, p.mT, dy_, beta=more, out=dv_)
            torch.bmm(dy_, vt, out=ds)
            aten._softmax_backward_data(ds, p, -1, p.dtype, grad_input=ds)
            torch.baddbmm(dq_, ds, k_, beta=0, alpha=scale, out=dq_)
            torch.baddbmm(dk_, ds.mT, q_, beta=more, alpha=scale, out=dk_)


def _attend(found: tuple[Tensor, Tensor], q: Tensor, k: Tensor, v: Tensor, scale: float | None) -> None:
    """Write attention, and the probabilities."""
    (y, kept), (heads, t, width) = found, q.shape[1:]
    room = _room(q)
    for (start, end), block in zip(_spans(t), _blocks(kept, t), strict=True):
        queries, keys = [x[:, :, start:end] for x in (y, q)], [x[:, :, :end] for x in (k, v)]
        p = _in_room(room, heads, end - start, end)
        for kept_, y_, q_, k_, v_ in zip(block, *queries, *keys, strict=True):
            _probable(p, q_, k_, scale_of(width, scale))
            torch.bmm(p, v_, out=y_)
            kept_.copy_(p)  # of all heads: a softmax can't write them apart


def kept_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """The shape of the probabilities that are kept: each head's, block after block, without hidden ones."""
    return shape[0], shape[1], sum((end - start) * end for start, end in _spans(shape[2]))


def _blocks(kept: Tensor, t: int) -> list[Tensor]:
    """Views of them, [batch, heads, queries, keys]."""
    spans = _spans(t)
    parts = kept.split([(end - start) * end for start, end in spans], -1)
    return [part.unflatten(-1, (end - start, end)) for part, (start, end) in zip(parts, spans, strict=True)]


@op(returns="y | probabilities", contractions=2, strided=True)
def causal_attention(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """Causal attention by products of blocks, with the probabilities, which its gradient reads.

    >>> q = flow.ones(1, 1, 2, 4)
    >>> flow._C.causal_attention(q, q, q).tolist()
    [[[[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]]]
    """
    if q.dim() != 4 or not q.shape == k.shape == v.shape:
        raise ShapeError(
            "causal_attention takes queries, keys and values of one shape, [batch, heads, t, d]; "
            f"got {list(q.shape)}, {list(k.shape)}, {list(v.shape)}"
        )
    found = torch.empty_like(q), q.new_empty(kept_shape(q.shape))
    _attend(found, q, k, v, scale)
    return found  # type: ignore[return-value]


causal_attention.out(_attend)
causal_attention.layout(lambda q, k, v, scale: "b h t! d!, b h t! d!, b h t! d! -> b h t! d!, b h n!")


@causal_attention.form
def _(q, k, v, scale):
    if not (len(q.shape) == 4 and q.shape == k.shape == v.shape and alike(q, k, v)):
        return None
    return q, Form(kept_shape(q.shape), q.dtype)


@causal_attention.samples
def _(rand):
    yield rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(2, 3, 4, 5)
    yield rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(2, 3, 4, 5), 0.3


@op(returns="dq dk dv", linear="dy", contractions=4, strided=True)
def causal_attention_grad(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, probabilities: Tensor, scale: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of causal attention's queries, keys and values."""
    if not dy.shape == q.shape == k.shape == v.shape or probabilities.shape != kept_shape(q.shape):
        raise ShapeError(
            f"causal_attention_grad: dy {list(dy.shape)}, queries {list(q.shape)}, keys {list(k.shape)} and values "
            f"{list(v.shape)} must be one shape, for which there are probabilities of {list(kept_shape(q.shape))}; "
            f"got {list(probabilities.shape)}"
        )
    grads = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    gradients(grads, dy, q, k, v, scale, _blocks(probabilities, q.shape[2]))
    return grads


@causal_attention_grad.out
def _(grads, dy, q, k, v, probabilities, scale):
    gradients(grads, dy, q, k, v, scale, _blocks(probabilities, q.shape[2]))


causal_attention_grad.works_in(lambda dy, q, *_: _room(q).nbytes)  # softmax's gradient copies what isn't contiguous
causal_attention_grad.form(lambda dy, q, k, v, *_: (q, k, v) if alike(dy, q, k, v) else None)


@causal_attention_grad.layout
def _(dy, q, k, v, probabilities, scale):
    return f"{', '.join(['b h t! d!'] * 4)}, b h n! -> {', '.join(['b h t! d!'] * 3)}"


@causal_attention_grad.samples
def _(rand):
    q, k, v = rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(2, 3, 4, 5)
    yield rand(2, 3, 4, 5), q, k, v, causal_attention.kernel(q, k, v)[1], None
