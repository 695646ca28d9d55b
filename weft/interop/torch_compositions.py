"""Replacements of torch's internal functions, which layers of torch's call, composed of Weft's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch.utils._pytree import tree_map_only

from weft.autograd.overwrite import guarded
from weft.core.dispatch import changed, here
from weft.core.errors import ArgumentError, ours
from weft.functional.create.creation import arange, tensor
from weft.functional.create.likeness import device_of
from weft.functional.neural.dropouts import dropout
from weft.functional.neural.grouped_product import grouped_mm
from weft.functional.neural.interpolation import interpolate
from weft.functional.reduce.sorting import searchsorted
from weft.nn.layers.recurrence import CELLS, recurrent
from weft.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence, pad_sequence
from weft.ops import ops
from weft.ops.explain import named
from weft.tensor.data import whole_data
from weft.tensor.tensor import Tensor, of_torch
from weft.vm.dependency import writable


def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, **out: Any) -> Any:
    """Like torch's `cat`: empty 1-d tensors, such as new caches, are skipped."""
    some = [t for t in tensors if tuple(t.shape) != (0,)]
    return ops.cat(some or tensors, dim if axis is None else axis, **out)


def _grouped_mm(a: Any, b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """torch's older name, which takes all of them by position."""
    return grouped_mm(a, b, offs=offs, bias=bias, out_dtype=out_dtype)


def sliced(x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    inside = slice(start, end, step).indices(x.shape[dim])  # the largest integer as an end means "all"
    return x[(slice(None),) * (dim % x.ndim) + (slice(*inside),)]


def each(name: str) -> Callable[..., Any]:
    """`torch._foreach_<name>`: its kernels, where they may run at once; else Weft's method of that name, on one tensor
    of the lists after another."""
    kernel, writes = getattr(torch, f"_foreach_{name}"), name.endswith("_")
    method = name.replace("maximum", "clamp_min").replace("minimum", "clamp_max")  # these take numbers, too

    def at(i: int, value: Any) -> Any:
        return value[i] if isinstance(value, (list, tuple)) else value

    def call(*args: Any, **kwargs: Any) -> list[Any]:
        if (found := data_at_hand((*args, *kwargs.values()), writes)) is not None:
            n = len(args)
            try:
                made = kernel(*found[:n], **dict(zip(kwargs, found[n:], strict=True)))
                return list(args[0]) if writes else list(map(of_torch, made))
            except Exception as cause:  # told with the tensor that it is about, below
                if not ours(cause):  # raised by a signal handler
                    raise
                if writes and not isinstance(cause, TypeError):  # it may have written some of them
                    kind, message = named(cause)
                    raise kind(message) from None
        count = next(len(a) for a in args if isinstance(a, (list, tuple)))
        if name.startswith("addc") and len(args) == 4:
            *args, kwargs["value"] = args  # type: ignore[assignment]
        made = []
        for i in range(count):
            first, *rest = (at(i, a) for a in args)
            f = getattr(Tensor, method if isinstance(first, Tensor) else f"__r{method}__")
            # a power of a number is the exponent's
            given = (first, *rest) if isinstance(first, Tensor) else (*rest, first)
            made.append(f(*given, **{k: at(i, v) for k, v in kwargs.items()}))
        return made

    return call


def data_at_hand(values: Iterable[Any], writes: bool) -> list[Any] | None:
    """Arguments with the tensors' data, for a kernel that goes through lists of them and may write into the first;
    None where more than the kernel is needed: a tensor isn't at hand, or a gradient is to be recorded."""
    if changed and (not here.plain or here.casting):
        return None
    found: list[Any] = []
    recorded = here.grad
    for value in values:
        several = value if value.__class__ in (list, tuple) else (value,)
        data = []
        for t in several:
            if isinstance(t, Tensor):
                blob = t.blob
                if blob.now is None or (recorded and t._requires_grad):
                    return None
                if writes and not found and not (
                    (blob.access is None or writable(blob)) and not (recorded and guarded(t._view_of))
                ):  # fmt: skip
                    return None
                t = blob.now
            data.append(t)
        found.append(data if several is value else data[0])
    return found


def on_memory(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of torch's that writes into its arguments, over the memory of local tensors."""

    def data(t: Tensor) -> torch.Tensor:
        if t.is_global or t.value is not None:
            raise ArgumentError(
                f"torch.{kernel.__name__} writes the memory of local tensors. Give the optimizer fused=False"
            )
        return t.detach().to_torch()

    def call(*args: Any, **kwargs: Any) -> None:
        kernel(*tree_map_only(Tensor, data, args), **tree_map_only(Tensor, data, kwargs))

    return call


def assert_async(x: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Checked at once; a graph leaves the check out, as its launches know values when they are done."""
    if here.trace is None and not x:
        raise RuntimeError(message)


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """The branch that is taken; in a graph, of what is known while it is traced."""
    return (true_fn if pred else false_fn)(*operands)


def rows_to_ends(rows: Tensor, size: int, *, out_int32: bool = False) -> Any:
    """Of sorted rows of a sparse matrix, where each row begins; for graph networks."""
    starts: Any = arange(size + 1, dtype=rows.dtype, **device_of(rows))
    return searchsorted(rows, starts, out_int32=out_int32)


def geqrf(x: Tensor) -> tuple[Tensor, ...]:
    """Of a local tensor, as a value: what torch's parametrizations begin with."""
    return tuple(of_torch(y) for y in torch.geqrf(whole_data(x.detach(), "geqrf()")))


def convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any, groups: int
) -> Any:
    """`torch.ops.aten.convolution`, which has a number per dimension, or one for all."""
    dims = weight.ndim - 2
    stride, padding, dilation, extra = (tuple(v) * (dims // len(v)) for v in (stride, padding, dilation, extra))
    if transposed:
        return getattr(ops, f"conv_transpose{dims}d")(x, weight, bias, stride, padding, extra, groups, dilation)
    return getattr(ops, f"conv{dims}d")(x, weight, bias, stride, padding, dilation, groups)


def dropout_and_mask(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """`torch.ops.aten.native_dropout`."""
    kept = dropout(ops.ones_like(x), p, train is not False)
    return x * kept, kept != 0


def resized(mode: str) -> Callable[..., Any]:
    """`torch.ops.aten.upsample_bilinear2d.vec` and its like."""

    def call(x: Any, size: Any, *how: Any) -> Any:
        *align_corners, factors = how
        return interpolate(x, size, factors, mode, *align_corners)

    return call


_RECURRENT = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN_TANH", "rnn_relu": "RNN_RELU"}
RESIZING: Final = {
    "upsample_nearest": "nearest", "_upsample_nearest_exact": "nearest-exact", "upsample_linear": "linear",
    "upsample_bilinear": "bilinear", "upsample_bicubic": "bicubic", "upsample_trilinear": "trilinear",
}  # fmt: skip
COMPOSED: Final[dict[Any, Callable[..., Any]]] = {
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate), cat),
    "transformers.grouped_mm_fallback": _grouped_mm,
    "aten.slice": sliced,
    "aten.convolution": convolution,
    "aten.native_dropout": dropout_and_mask,
    "aten._to_copy": lambda x, *, non_blocking=False, **to: x.to(**to, copy=True),
    "aten.sym_size": lambda x, dim: x.shape[dim],
    "aten._assert_tensor_metadata": lambda *_, **__: None,
    "aten.alias": lambda x: x.view(x.shape),
    "aten.lift_fresh_copy": lambda x: x.clone(),
    "aten.dropout_": lambda x, p, train: dropout(x, p, train, True),
    **{
        f"aten.{kernel}{n}d": resized(mode)
        for kernel, mode in RESIZING.items()
        for n in (1, 2, 3)  # not each has all
    },
    **{getattr(torch, n): each(n.removeprefix("_foreach_")) for n in dir(torch) if n.startswith("_foreach_")},
    **{
        getattr(torch, f"_fused_{n}_"): on_memory(getattr(torch, f"_fused_{n}_"))
        for n in ("adagrad", "adam", "adamw", "sgd")
    },
    torch._C._nn.pad_sequence: pad_sequence,  # type: ignore[attr-defined]
    torch._nested_tensor_from_mask_left_aligned: lambda x, mask: False,  # so that an encoder computes with the mask
    torch._pack_padded_sequence: lambda *args: pack_padded_sequence(*args)[:2],
    torch._pad_packed_sequence: lambda data, sizes, *how: pad_packed_sequence(PackedSequence(data, sizes), *how),
    torch.geqrf: geqrf,
    **dict.fromkeys((torch.cond, "torch.ops.higher_order.cond"), cond),
    torch._assert_async: assert_async,
    torch._softmax_backward_data: lambda dy, y, dim, dtype: (y * (dy - (dy * y).sum(dim, keepdim=True))).to(dtype),
    torch._convert_indices_from_coo_to_csr: rows_to_ends,
    torch._shape_as_tensor: lambda x: tensor(tuple(x.shape)),
    "torch.Tensor._is_all_true": lambda x: x.all(),  # what torch._check_tensor_all asks
    "torch.Tensor._is_any_true": lambda x: x.any(),
    torch._grouped_mm: _grouped_mm,
    torch.sparse.mm: lambda a, b: ops.matmul(a, b),  # of a sparse matrix from outside, which the kernel takes
    **{getattr(torch, name): recurrent(mode) for name, mode in _RECURRENT.items()},
    **{getattr(torch, f"{name}_cell"): CELLS[mode] for name, mode in _RECURRENT.items()},
}
