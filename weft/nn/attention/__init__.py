"""`flow.nn.attention`: multi-head attention, and `flex_attention`, with scores and masks of one's own, whose blocks and
checks are torch's own code.

Torch calls a `score_mod` or `mask_mod` once for each score, by `vmap`. Here it is called once for all of them, with
indices that broadcast to (batch, heads, queries, keys).
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from torch.nn.attention import SDPBackend, sdpa_kernel  # torch's choice of kernels applies here, too

from weft.autograd.modes import no_grad
from weft.core.derived import GIVEN, Derived
from weft.core.device import Device
from weft.core.dispatch import here, tracing
from weft.core.dtype import bool_, float64
from weft.core.errors import ArgumentError, IndexingError, ShapeError
from weft.functional.create.creation import arange, linspace, ones
from weft.functional.create.likeness import device_of
from weft.nn.attention import multihead
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _for_all(modify: Callable[..., Tensor], prefix: tuple[int, ...] = (), *_: Any) -> Callable[..., Tensor]:
    """A `score_mod`, which takes the scores before the indices, or a `mask_mod`, for all indices at once."""

    def call(*args: Tensor) -> Tensor:
        scores, indices = args[: len(prefix)], args[len(prefix) :]
        return _checked(modify, scores, indices).expand(tuple(i.shape[0] for i in indices))

    return call


def _checked(modify: Callable[..., Tensor], scores: Sequence[Tensor], indices: Sequence[Tensor]) -> Tensor:
    right, y = _right(modify, scores, indices), _together(modify, scores, indices)
    if here.trace is None and not right.item():
        raise ArgumentError(_wrong(modify))
    return y if here.trace is None else ops.require(y, right.expand(y.shape), _wrong(modify))


def _together(modify: Callable[..., Tensor], scores: Sequence[Tensor], indices: Sequence[Tensor]) -> Tensor:
    y = _tensor(modify, modify(*scores, *(ops.reshape(i, (-1, *[1] * (3 - at))) for at, i in enumerate(indices))))
    if y.ndim > 4:
        raise ArgumentError(_wrong(modify))
    return y


def _tensor(modify: Callable[..., Tensor], y: Any) -> Tensor:
    if not isinstance(y, Tensor):
        raise ArgumentError(f"{_name(modify)} must only return Tensors, got type {type(y)}")
    return y


@no_grad()
def _right(modify: Callable[..., Tensor], scores: Sequence[Tensor], indices: Sequence[Tensor]) -> Tensor:
    """Whether the function gives the outermost indices together the values that it gives each alone, for some scores:
    to read those that it is given would gather them from all ranks."""
    corners = [i[:: max(len(i) - 1, 1)] for i in indices]
    places = (0, 0, 0, 0), (0, -1, 0, -1), (-1, 0, -1, 0), (-1, -1, -1, -1)
    if not all(map(len, corners)):
        return ones((), dtype=bool_, **device_of(indices[0]))
    some = [_some(s, corners) for s in scores]
    alone = [  # of copies: it may write into scores
        _tensor(modify, modify(*(s[at].clone() for s in some), *(i[a] for i, a in zip(corners, at, strict=True))))
        for at in places
    ]
    try:
        together = _together(modify, [s.clone() for s in some], corners).expand([len(i) for i in corners])
    except (IndexingError, ShapeError) as error:
        raise ArgumentError(_wrong(modify)) from error
    if any(t.ndim for t in alone):
        raise ArgumentError(_wrong(modify))
    same = [together[at].isclose(t, 1e-3, 1e-3, True) for at, t in zip(places, alone, strict=True)]
    return ops.stack(same).all()


def _name(modify: Callable[..., Tensor]) -> Any:
    return getattr(modify, "__name__", modify)


def _some(scores: Tensor, corners: Sequence[Tensor]) -> Tensor:
    sizes = [len(i) for i in corners]
    return linspace(-1.0, 1.0, math.prod(sizes), dtype=scores.dtype, **device_of(scores)).reshape(sizes)


def _wrong(modify: Callable[..., Tensor]) -> str:
    return (
        f"{_name(modify)}: it is called with indices of shapes [batch, 1, 1, 1], [heads, 1, 1], "
        "[queries, 1] and [keys], and gives another value for one index of each. Index once, table[b, q_idx] for "
        "table[b][q_idx], and say which dimension is reduced, .sum(-1) for .sum()"
    )


def _attend(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Tensor], block_mask: tuple[Any, ...],
    scale: float, options: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The output, and the logarithms to base 2 of the sums, and the greatest scores, in the same unit."""
    key, value = (t.repeat_interleave(query.shape[1] // t.shape[1], 1) for t in (key, value))
    wide = query if query.dtype is float64 else query.float()
    scores = wide @ key.to(wide.dtype).mT * scale
    indices = [arange(size, **device_of(query)) for size in scores.shape]
    blocks, mask_mod = block_mask[2], block_mask[-1]
    lifted = blocks.is_local and query.is_global
    with tracing(None) if lifted else contextlib.nullcontext():  # a graph is global as a whole: to it, a constant
        seen = _checked(mask_mod, (), [arange(size, **device_of(blocks)) for size in scores.shape])
        seen = ops.from_local(seen, *device_of(query).values(), tuple(seen.shape)) if lifted else seen
    scores = ops.where(seen, _for_all(score_mod, (0,))(scores, *indices), -math.inf)
    lse, top = scores.logsumexp(-1), scores.amax(-1)
    return ops.safe_softmax(scores, -1).to(query.dtype) @ value, lse / math.log(2), top / math.log(2)


INSTEAD: Final[dict[str, Callable[..., Any]]] = {
    # the first two refuse sums and gradients on a CPU
    "_apply_kernel_options": lambda *_: {"BACKEND": "TRITON"},
    "_validate_device": lambda *_: None,
    "_vmap_for_bhqkv": _for_all,
    "flex_attention_hop": _attend,
}
CHANGES: Final = {
    **{name: lambda _, ours=ours: ours for name, ours in INSTEAD.items()},
    "_validate_sdpa_input": lambda _: lambda *_, **__: None,  # ops check that
    "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG": lambda _: True,  # as nothing is compiled
}
GIVEN["torch.fx.experimental.symbolic_shapes.has_free_unbacked_symbols"] = lambda _: False  # torch 2.14's asks
GIVEN["torch._higher_order_ops.flex_attention"] = SimpleNamespace(flex_attention=_attend)
Derived(f"{__name__}.flex_attention", "torch.nn.attention.flex_attention", {"": CHANGES}, {"device": "_memory"})
GIVEN["torch._memory"] = Device  # torch.device, which torch 2.11 reads in annotations
Tensor._memory = property(lambda x: Device(x.placement.type) if x.is_global else x.device)  # type: ignore[attr-defined]
attend = multihead.attend

__all__ = ["SDPBackend", "attend", "sdpa_kernel"]
