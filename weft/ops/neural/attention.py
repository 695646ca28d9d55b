"""Attention: a fused kernel that never stores the matrix of scores, or a composition where the fused one doesn't
apply."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from weft.core.dispatch import here
from weft.core.dtype import bool_, float32
from weft.core.errors import ShapeError
from weft.core.one_thread import each_alone
from weft.ops.declaration import op
from weft.ops.form import WIDE, Form, alike
from weft.ops.kernels import aten
from weft.ops.linalg.matmul import matmul
from weft.ops.neural.softmax import safe_softmax, softmax_grad
from weft.ops.pointwise.arithmetic import add, mul
from weft.ops.pointwise.copies import where
from weft.ops.shape.broadcast import fit
from weft.ops.shape.triangle import hide_future
from weft.ops.shape.views import transpose

FLASH, EFFICIENT, CUDNN = SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION
ROWS_OF_SUMS: Final = 32  # a multiple of it are the sums (logsumexp) that the second kernel takes
COLUMNS_OF_BIAS: Final = 16
LARGE: Final = 1 << 18  # bytes
SMALL: Final = 1 << 16
HEADS: Final = 8  # that each of several threads is to compute in a call, so that they seldom wait for each other
ROWS: Final = 64  # queries whose gradients are computed at once by products: smaller ones are slower
MANY: Final = 768  # queries of which torch's kernel takes as many at once as is fast
SHORT: Final = (torch.bfloat16, torch.float16)


def _check(q: Tensor, k: Tensor, v: Tensor) -> None:
    fits = q.dim() == k.dim() == v.dim() == 4 and q.shape[:2] == k.shape[:2] == v.shape[:2]
    if not fits or q.shape[-1] != k.shape[-1] or k.shape[2] != v.shape[2]:
        raise ShapeError(
            "attention takes queries [batch, heads, t, d], keys [batch, heads, s, d] and values [batch, heads, s, e]; "
            f"got {list(q.shape)}, {list(k.shape)}, {list(v.shape)}"
        )


def _flash(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether the fused kernel applies: on the CPU, with keys as wide as values."""
    return q.device.type in ("cpu", "meta") and q.shape[-1] == v.shape[-1] and q.numel() > 0 < k.numel()


def _on_cuda(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None
) -> SDPBackend | None:
    """The fused kernel for CUDA that torch takes; None where that composes one, or would pad the width."""
    if q.device.type != "cuda" or not q.numel() or not k.numel():
        return None
    chosen = SDPBackend(torch._fused_sdp_choice(q, k, v, mask, 0.0, is_causal, scale=scale))
    if chosen in (FLASH, CUDNN):
        if q.shape[-1] % 8 or v.shape[-1] % 8:
            return None
        return chosen if mask is None and q.shape[-1] == v.shape[-1] else EFFICIENT
    return EFFICIENT if chosen == EFFICIENT else None


def _bias(mask: Tensor | None, q: Tensor, k: Tensor) -> Tensor | None:
    """The mask as the kernel takes it: for all scores, its rows at multiples of a number of elements."""
    if mask is None:
        return None
    n = k.shape[2]
    wide = mask.new_zeros(*mask.shape[:-1], n + -n % COLUMNS_OF_BIAS)[..., :n]
    return wide.copy_(mask).expand(*q.shape[:3], n)


def _forward_on_cuda(kernel: SDPBackend, q, k, v, mask, is_causal, scale) -> tuple[Tensor, Tensor]:
    if kernel == FLASH:
        return aten._scaled_dot_product_flash_attention(q, k, v, 0.0, is_causal, False, scale=scale)[:2]
    if kernel == CUDNN:
        y, sums = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, is_causal, scale=scale)[:2]
        return y, sums.view(q.shape[:3])
    bias = _bias(mask, q, k)
    y, sums = aten._scaled_dot_product_efficient_attention(q, k, v, bias, True, 0.0, is_causal, scale=scale)[:2]
    return y, sums[..., : q.shape[2]]


def _backward_on_cuda(kernel: SDPBackend, dy, q, k, v, out, logsumexp, mask, is_causal, scale):
    unread = torch.empty((), dtype=torch.int64, device=q.device)  # the seed and offset of dropout
    sizes = None, None, q.shape[2], k.shape[2]
    if kernel == CUDNN:
        return aten._scaled_dot_product_cudnn_attention_backward(
            dy, q, k, v, out, logsumexp.unsqueeze(-1), unread, unread, None, *sizes, 0.0, is_causal, scale=scale
        )
    if kernel == FLASH:
        return aten._scaled_dot_product_flash_attention_backward(
            dy, q, k, v, out, logsumexp, *sizes, 0.0, is_causal, unread, unread, scale=scale
        )
    sums = torch.nn.functional.pad(logsumexp, (0, -q.shape[2] % ROWS_OF_SUMS), value=torch.inf)
    return aten._scaled_dot_product_efficient_attention_backward(
        dy, q, k, v, _bias(mask, q, k), out, sums, unread, unread, 0.0, [True, True, True, False], is_causal,
        scale=scale,
    )[:3]  # fmt: skip


def _forward_on_cpu(q, k, v, mask, is_causal, scale):
    forward = aten._scaled_dot_product_flash_attention_for_cpu
    return each_alone(forward, q, k, v, 0.0, is_causal, attn_mask=mask, scale=scale)


def _backward_on_cpu(dy, q, k, v, out, logsumexp, mask, is_causal, scale):
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
    return each_alone(backward, dy, q, k, v, out, logsumexp, 0.0, is_causal, attn_mask=mask, scale=scale)


def _in_rows(*tensors: Tensor) -> bool:
    """Whether rows are contiguous, as the fused kernel assumes."""
    return all(t.stride(-1) == 1 for t in tensors)


def _rows(*tensors: Tensor) -> list[Tensor]:
    """All as they are, or all contiguous: so is then the result, as torch's."""
    return [*tensors] if _in_rows(*tensors) else [t.contiguous() for t in tensors]


def _added(mask: Tensor | None, like: Tensor) -> Tensor | None:
    """The mask as floats to add to the scores, with two or four dimensions, as the fused kernel needs it."""
    if mask is None:
        return None
    if mask.dim() in (0, 1, 3):
        mask = mask[(None,) * ((4 if mask.dim() == 3 else 2) - mask.dim())]
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(~mask, -torch.inf)


def _scores(q: Tensor, k: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    scores = (q * _scale(q.shape[-1], scale)) @ k.transpose(-2, -1)
    scores = scores.float() if scores.dtype in SHORT else scores  # as the fused kernel: 16 bits are too few for sums
    if is_causal:
        scores = hide_future.kernel(scores)
    return scores if mask is None else scores + mask


def _probabilities(scores: Tensor, mask: Tensor | None) -> Tensor:
    return torch.softmax(scores, -1) if mask is None else torch._safe_softmax(scores, -1)


def _wide(*tensors: Tensor) -> list[Tensor]:
    """In float32 at least on CPUs, which have no units for 16 bits, as torch."""
    return [t.float() if t.dtype in SHORT and t.device.type in ("cpu", "meta") else t for t in tensors]


def _scale(width: int, scale: float | None) -> float:
    return 1 / math.sqrt(width) if scale is None else scale


@op(returns="y | logsumexp", promotes=True, contractions=2, strided=True, memory_order="first in rows")
def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:  # fmt: skip
    """softmax(q @ k.T * scale + mask) @ v, for [batch, heads, sequence, width]; scale is 1 / sqrt(width) by default.

    >>> q = flow.ones(1, 1, 2, 4)
    >>> flow._C.scaled_dot_product_attention(q, q, q).tolist()
    [[[[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]]]
    """
    _check(q, k, v)
    mask = _added(attn_mask, q)
    if _flash(q, k, v):
        q, k, v = _rows(q, k, v)
        return _forward_on_cpu(q, k, v, mask, is_causal, scale)
    on_cuda = _on_cuda(q, k, v, mask, is_causal, scale)
    if on_cuda is not None:
        return _forward_on_cuda(on_cuda, q, k, v, mask, is_causal, scale)  # type: ignore[return-value]
    kind, (q, k, v) = v.dtype, _wide(q, k, v)
    scores = _scores(q, k, mask, is_causal, scale)
    y = _probabilities(scores, mask).to(v.dtype) @ v
    return y.to(kind), scores.logsumexp(-1)  # type: ignore[return-value]


@scaled_dot_product_attention.out
def _(results, q, k, v, attn_mask, is_causal, scale):
    for into, given in _parts(results, (q, k, v), attn_mask, is_causal, scale):
        torch._foreach_copy_(into, scaled_dot_product_attention.kernel(*given))


@scaled_dot_product_attention.prepared
def _(y, logsumexp, q, k, v, attn_mask, is_causal, scale):
    if not _flash(q, k, v) or _added(attn_mask, q) is not attn_mask or not _in_rows(q, k, v):
        return None
    parts = _parts((y, logsumexp), (q, k, v), attn_mask, is_causal, scale)
    return [(_flash_attention, (into, *given), {}) for into, given in parts]


def _flash_attention(into, *args):
    torch._foreach_copy_(into, _forward_on_cpu(*args))


@scaled_dot_product_attention.works_in
def _(q, k, v, attn_mask, is_causal, scale):
    rows, columns = _blocks(q, k)
    scores = 4 * rows * (columns + 2 + q.shape[-1]) + (rows * columns * q.itemsize if q.itemsize < 4 else 0)
    return torch.get_num_threads() * scores if _flash(q, k, v) else 0


def _blocks(q: Tensor, k: Tensor) -> tuple[int, int]:
    """The block sizes of queries and keys in torch's kernel."""
    t = q.shape[2]
    return min(t, 256 if t >= MANY else 64 if t >= 192 else 32), min(k.shape[2], 512)


def _terms(mask: tuple[int, ...] | None, is_causal: bool) -> tuple[str, str, str, str]:
    """The notation of queries, keys, values and mask. Queries may be split along the sequence if each attends to all
    keys."""
    t = "t!" if is_causal else "t"
    table = ["b", "h", t, "s!"]
    return f"b h {t} d!", "b h s! d!", "b h s! e!", " ".join(table[len(table) - len(mask or ()) :])


@scaled_dot_product_attention.layout
def _(q, k, v, attn_mask, is_causal, scale):
    queries, keys, values, mask = _terms(attn_mask, is_causal)
    t = queries.split()[2]
    with_mask = f", {mask}" if attn_mask is not None else ""
    return f"{queries}, {keys}, {values}{with_mask} -> b h {t} e!, b h {t}"


@scaled_dot_product_attention.form
def _(q, k, v, attn_mask, is_causal, scale):
    fits = len(q.shape) == len(k.shape) == len(v.shape) == 4 and q.shape[:2] == k.shape[:2] == v.shape[:2]
    if not fits or q.shape[3] != k.shape[3] or k.shape[2] != v.shape[2] or not alike(q, k, v):
        return None
    if attn_mask is not None:
        table = (*q.shape[:3], k.shape[2])[4 - len(attn_mask.shape) :]
        fits = len(table) == len(attn_mask.shape) and all(
            m in (1, n) for m, n in zip(attn_mask.shape, table, strict=False)
        )
        if not fits or attn_mask.dtype not in (q.dtype, bool_):
            return None
    return Form((*q.shape[:3], v.shape[3]), q.dtype), Form(q.shape[:3], q.dtype if q.dtype in WIDE else float32)


@scaled_dot_product_attention.grad
def _(dy, q, k, v, attn_mask, y, logsumexp, is_causal, scale, needs):
    if here.grad or needs[3]:
        return _composed_gradient(dy, q, k, v, attn_mask, is_causal, scale, needs)
    dq, dk, dv = attention_grad(dy, q, k, v, y, logsumexp, attn_mask, is_causal, scale)
    return dq if needs[0] else None, dk if needs[1] else None, dv if needs[2] else None, None


def _composed_gradient(dy, q, k, v, mask: Any, is_causal, scale, needs):
    factor = _scale(q.shape[-1], scale)
    p = safe_softmax(composed_scores(q, k, mask, is_causal, scale), -1)
    dscores = softmax_grad(matmul(dy, transpose(v, -2, -1)), p, -1)
    return (
        mul(matmul(dscores, k), factor) if needs[0] else None,
        mul(matmul(transpose(dscores, -2, -1), q), factor) if needs[1] else None,
        matmul(transpose(p, -2, -1), dy) if needs[2] else None,
        fit(dscores, tuple(mask.shape)) if needs[3] else None,
    )


def composed_scores(q: Any, k: Any, mask: Any, is_causal: bool, scale: float | None) -> Any:
    """The scores of attention before the softmax, in public ops."""
    scores = matmul(mul(q, _scale(q.shape[-1], scale)), transpose(k, -2, -1))
    if is_causal:
        scores = hide_future(scores)
    if mask is None:
        return scores
    return where(mask, scores, float("-inf")) if mask.dtype is bool_ else add(scores, mask)


@scaled_dot_product_attention.samples
def _(rand):
    yield rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(2, 3, 4, 5), None, True
    yield rand(2, 3, 4, 5), rand(2, 3, 6, 5), rand(2, 3, 6, 5), None, False, 0.3
    yield rand(2, 3, 4, 5), rand(2, 3, 6, 5), rand(2, 3, 6, 5), rand(4, 6)
    yield rand(2, 3, 4, 5), rand(2, 3, 6, 5), rand(2, 3, 6, 7), rand(2, 1, 1, 6)
    yield rand(2, 3, 4, 5), rand(2, 3, 6, 5), rand(2, 3, 6, 5), rand(3, 1, 6)
    yield rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(2, 3, 4, 5), torch.ones(4, 4, dtype=torch.bool).tril()


@op(returns="dq dk dv", linear="dy", contractions=5, strided=True)
def attention_grad(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, attn_mask: Tensor | None,
    is_causal: bool, scale: float | None, sparing: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of attention's queries, keys and values; probabilities are computed anew. If `sparing`, in smaller
    parts, which take longer, but less memory."""
    mask = _added(attn_mask, q)
    if dy.shape != out.shape or logsumexp.shape != q.shape[:-1] or out.shape != (*q.shape[:-1], v.shape[-1]):
        raise ShapeError(  # the kernel doesn't check, and would read out of bounds
            f"attention_grad: dy {list(dy.shape)} and out {list(out.shape)} hold values for each of the queries, "
            f"{list(q.shape)}, and logsumexp, {list(logsumexp.shape)}, a number"
        )
    if _flash(q, k, v):
        if k.shape[:-1] != v.shape[:-1] or k.shape[:-2] != q.shape[:-2]:  # nor this
            raise ShapeError(
                f"attention_grad: for queries {list(q.shape)}, keys {list(k.shape)} and values {list(v.shape)}"
            )
        if _half_hidden(q, k, v, mask, is_causal):
            grads = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
            _products(_by_blocks(grads, dy, q, k, v), _scale(q.shape[-1], scale))
            return grads
        q, k, v, out = _rows(q, k, v, out)
        return _backward_on_cpu(dy, q, k, v, out, logsumexp, mask, is_causal, scale)
    on_cuda = _on_cuda(q, k, v, mask, is_causal, scale)
    if on_cuda is not None:
        return _backward_on_cuda(on_cuda, dy, q, k, v, out, logsumexp, mask, is_causal, scale)
    kind, (dy, q, k, v, out) = q.dtype, _wide(dy, q, k, v, out)
    p = _probabilities(_scores(q, k, mask, is_causal, scale), mask).to(q.dtype)
    dp = dy @ v.transpose(-2, -1)
    dscores = p * (dp - (dy * out).sum(-1, True)) * _scale(q.shape[-1], scale)
    grads = dscores @ k, dscores.transpose(-2, -1) @ q, p.transpose(-2, -1) @ dy
    return grads[0].to(kind), grads[1].to(kind), grads[2].to(kind)


attention_grad.form(lambda dy, q, k, v, *_: (q, k, v) if alike(dy, q, k, v) else None)


@attention_grad.out
def _(grads, *args):
    dy, q, k, v, _, _, mask, is_causal, scale, sparing = args
    if _half_hidden(q, k, v, mask, is_causal):
        _products(_by_blocks(grads, dy, q, k, v), _scale(q.shape[-1], scale))
        return
    for into, given in _parts(grads, args[:6], mask, is_causal, scale, sparing):
        torch._foreach_copy_(into, attention_grad.kernel(*given))


def _half_hidden(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool) -> bool:
    """Whether products of blocks give the gradients sooner than torch's kernel, which computes hidden scores, too, and
    by smaller products. Where several threads share its heads it is the faster one."""
    plain = _flash(q, k, v) and is_causal and mask is None and q.shape == k.shape and q.dtype not in SHORT
    return plain and 2 * ROWS <= q.shape[2] < MANY and q.shape[3] >= ROWS and torch.get_num_threads() == 1


@functools.cache
def _hidden(dtype: torch.dtype, device: torch.device) -> Tensor:
    """What hides later keys."""
    return torch.full((ROWS, ROWS), -torch.inf, dtype=dtype, device=device).triu_(1)


def _by_blocks(grads, dy, q, k, v) -> list[list[tuple[Tensor, ...]]]:
    """What `_products` takes: for each block of queries, the last ones first, as these see all keys, each sequence's
    part. Of a meta tensor none is computed: `works_in` says what that allocates."""
    (dq, dk, dv), found = grads, []
    for end in range(0 if q.is_meta else q.shape[2], 0, -ROWS):
        queries = [x[:, :, max(0, end - ROWS) : end] for x in (dq, dy, q)]
        keys = [x[:, :, :end] for x in (dk, dv, k, v)]
        found.append(list(zip(*queries, *keys[:3], keys[2].mT, keys[3].mT, strict=True)))
    return found


def _products(blocks, scale):
    """Write gradients of causal attention block by block: hidden scores aren't computed, and nothing is copied."""
    space = None
    for number, block in enumerate(blocks):
        _, _, first, keys, *_ = block[0]
        rows, more = first.shape[1], number > 0
        size = 2, len(first), rows, keys.shape[1]
        space = first.new_empty(math.prod(size)) if space is None else space  # the first block is the largest
        p, ds = space[: math.prod(size)].view(size)
        pt, dst, latest = p.mT, ds.mT, p[:, :, -rows:]
        hidden = _hidden(p.dtype, p.device)[:rows, :rows]
        for dq, dy, q, dk, dv, k, kt, vt in block:
            torch.baddbmm(p, q, kt, beta=0, alpha=scale, out=p)
            latest.add_(hidden)
            torch.softmax(p, -1, out=p)
            torch.baddbmm(dv, pt, dy, beta=more, out=dv)
            torch.bmm(dy, vt, out=ds)
            aten._softmax_backward_data(ds, p, -1, p.dtype, grad_input=ds)
            torch.baddbmm(dq, ds, k, beta=0, alpha=scale, out=dq)
            torch.baddbmm(dk, dst, q, beta=more, alpha=scale, out=dk)


@attention_grad.prepared
def _(dq, dk, dv, dy, q, k, v, out, logsumexp, attn_mask, is_causal, scale, sparing):
    if _half_hidden(q, k, v, attn_mask, is_causal):
        return _products, (_by_blocks((dq, dk, dv), dy, q, k, v), _scale(q.shape[-1], scale)), {}
    if not _flash(q, k, v):
        return None
    if _added(attn_mask, q) is not attn_mask or not _in_rows(q, k, v, out):
        return None
    parts = _parts((dq, dk, dv), (dy, q, k, v, out, logsumexp), attn_mask, is_causal, scale, sparing)
    return [(_flash_gradients, (into, *given), {}) for into, given in parts]


def _flash_gradients(grads, *args):
    torch._foreach_copy_(grads, _backward_on_cpu(*args))


def _parts(
    results: Sequence[Tensor], operands: Sequence[Tensor], attn_mask: Tensor | None, is_causal: bool,
    scale: float | None, sparing: bool = False,
) -> Iterator[tuple[list[Tensor], tuple[Any, ...]]]:  # fmt: skip
    """The results and the arguments of each part of the batch, and of its heads, that is computed at once."""
    mask, sizes = _added(attn_mask, operands[0]), _part(results[0], sparing)
    for at in itertools.product(*map(range, (0, 0), results[0].shape[:2], sizes)):
        own = [slice(i, i + size) for i, size in zip(at, sizes, strict=True)]
        masks = mask
        if mask is not None and mask.dim() == 4:
            masks = mask[tuple(slice(None) if n == 1 else s for n, s in zip(mask.shape, own, strict=False))]
        yield [r[tuple(own)] for r in results], (*(t[tuple(own)] for t in operands), masks, is_causal, scale)


def _part(q: Tensor, sparing: bool = False) -> tuple[int, int]:
    """How much of a batch, and how many heads, are computed at once: kernels allocate their results. A quarter of a
    large batch on the CPU, if that is worth the while for all threads; if `sparing`, as little as isn't much slower."""
    (size, heads), threads = (max(n, 1) for n in q.shape[:2]), torch.get_num_threads()
    if q.is_cuda or q.nbytes < (SMALL if sparing else LARGE):
        return size, heads
    if sparing:
        several = max(SMALL * size * heads // q.nbytes, threads)
        return min(size, -(-several // heads)), min(heads, several)
    return min(size, max(-(-size // 4), -(-threads * HEADS // heads) if threads > 1 else 1)), heads


@attention_grad.works_in
def _(dy, q, k, v, out, logsumexp, attn_mask, is_causal, scale, sparing):
    if _half_hidden(q, k, v, attn_mask, is_causal):
        return 2 * q.shape[1] * ROWS * q.shape[2] * q.itemsize
    rows, columns = _blocks(q, k)
    scores = 8 * rows * columns + (2 * rows * columns * q.itemsize if q.itemsize < 4 else 0)
    parts = math.prod(-(-n // size) for n, size in zip(q.shape[:2], _part(q, sparing), strict=True))
    copied = 0 if dy.transpose(1, 2).is_contiguous() else dy.nbytes // max(parts, 1)
    return torch.get_num_threads() * scores + 4 * rows + copied if _flash(q, k, v) else 0


@attention_grad.layout
def _(dy, q, k, v, out, logsumexp, attn_mask, is_causal, scale, sparing):
    queries, keys, values, mask = _terms(attn_mask, is_causal)
    t = queries.split()[2]
    y = f"b h {t} e!"
    with_mask = f", {mask}" if attn_mask is not None else ""
    return f"{y}, {queries}, {keys}, {values}, {y}, b h {t}{with_mask} -> {queries}, {keys}, {values}"


@attention_grad.samples
def _(rand):
    for is_causal, width in ((True, 5), (False, 5), (False, 7)):
        q, k, v = rand(2, 3, 4, 5), rand(2, 3, 4, 5), rand(2, 3, 4, width)
        y, logsumexp = scaled_dot_product_attention.kernel(q, k, v, None, is_causal)
        yield rand(2, 3, 4, width), q, k, v, y, logsumexp, None, is_causal, None, not is_causal
