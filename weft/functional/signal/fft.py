"""`flow.fft`: Fourier transforms along dimensions, of complex and of real numbers; `stft` and `istft`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.signature import door
from weft.api.table import public
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.ops import ops
from weft.ops.shape.views import dim_of

SCALES = {None: (0, 2), "backward": (0, 2), "ortho": (1, 1), "forward": (2, 0)}  # `scale` forward and inverse


def _scale(norm: str | None, forward: bool) -> int:
    if norm not in SCALES:
        raise ArgumentError(f'fft: norm is "backward", "ortho" or "forward"; got {norm!r}')
    return SCALES[norm][0 if forward else 1]


def _complex(x: Any) -> Any:
    if x.dtype.is_complex:
        return x
    x = x if x.dtype.is_floating_point else ops.cast(x, creation.get_default_dtype())
    return ops.complex(x, ops.zeros_like(x.detach()))


def _sized(x: Any, sizes: Sequence[int | None], dims: Sequence[int]) -> Any:
    """x cropped, or padded with zeros, to these sizes along these dimensions."""
    for n, d in zip(sizes, dims, strict=True):
        have = x.shape[d]
        if (have if n is None or n == -1 else n) < 1:
            raise ShapeError(
                f"fft: Invalid number of data points ({have if n is None else n}) specified in dimension {d}"
            )
        if n is None or n == -1 or n == have:
            continue
        if n < have:
            x = ops.narrow(x, d, 0, n)
        else:
            blank = creation.zeros((*x.shape[:d], n - have, *x.shape[d + 1 :]), dtype=x.dtype, **device_of(x))
            x = ops.cat([x, blank], d)
    return x


def _dims(x: Any, s: Any, dim: Any, usual: Sequence[int] | None) -> tuple[list[Any], list[int]]:
    if dim is None:
        dim = usual if usual is not None else range(-len(s), 0) if s is not None else range(x.ndim)
    dims = [dim_of(d, x.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    if len({*dims}) < len(dims):
        raise ShapeError(f"fft: FFT dims must be unique; got {dims}")
    sizes = [None] * len(dims) if s is None else [s] if isinstance(s, int) else list(s)
    if len(sizes) != len(dims):
        raise ShapeError(f"fft: {len(sizes)} sizes for {len(dims)} dimensions")
    return sizes, dims


def _of_complex(name: str, forward: bool, usual: Sequence[int] | None, doc: str) -> Callable[..., Any]:
    def transform(x: Any, s: Any, dim: Any, norm: str | None) -> Any:
        sizes, dims = _dims(x, s, dim, usual)
        return ops.fourier(_sized(_complex(x), sizes, dims), tuple(dims), _scale(norm, forward), forward)

    return _named(transform, name, usual, doc)


def _to_half(name: str, usual: Sequence[int] | None, doc: str) -> Callable[..., Any]:
    """Transforms of real numbers: the non-redundant half along the last dimension."""

    def transform(x: Any, s: Any, dim: Any, norm: str | None) -> Any:
        if x.dtype.is_complex:
            raise ArgumentError(f"{name}(): takes real numbers; for complex ones, {name.replace('r', '', 1)}()")
        sizes, dims = _dims(x, s, dim, usual)
        y = ops.fourier(_sized(_complex(x), sizes, dims), tuple(dims), _scale(norm, True), True)
        return ops.narrow(y, dims[-1], 0, y.shape[dims[-1]] // 2 + 1)

    return _named(transform, name, usual, doc)


def _from_half(name: str, usual: Sequence[int] | None, doc: str) -> Callable[..., Any]:
    """The inverses, from the non-redundant half to real numbers."""

    def transform(x: Any, s: Any, dim: Any, norm: str | None) -> Any:
        sizes, dims = _dims(x, s, dim, usual)
        last, scale = dims[-1], _scale(norm, False)
        n = 2 * (x.shape[last] - 1) if sizes[-1] in (None, -1) else sizes[-1]
        if n < 1:
            raise ShapeError(f"{name}(): Invalid number of data points ({n}) specified in dimension {last}")
        x = _sized(_complex(x), [*sizes[:-1], n // 2 + 1], dims)
        if len(dims) > 1:
            x = ops.fourier(x, tuple(dims[:-1]), scale, False)
        rest = ops.conj(ops.flip(ops.narrow(x, last, 1, (n - 1) // 2), (last,)))
        whole = ops.cat([x, rest], last)
        return ops.select(ops.view_as_real(ops.fourier(whole, (last,), scale, False)), -1, 0)

    return _named(transform, name, usual, doc)


def _named(transform: Callable[..., Any], name: str, usual: Sequence[int] | None, doc: str) -> Callable[..., Any]:
    def over(input: Any, s: Any = None, dim: Any = usual, norm: str | None = None) -> Any:
        return transform(input, s, dim, norm)

    def along(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        if n == -1:  # allowed among several sizes only
            raise ShapeError(f"{name}(): Invalid number of data points (-1) specified")
        return transform(input, n, dim, norm)

    made = along if usual == (-1,) else over
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    call = f"d_input, {'n' if usual == (-1,) else 's'}, dim, norm"
    return in_one(getattr(torch.fft, name), call, derived="rfft" in name)(made)


_LAYOUTS: dict[str, Sequence[int] | None] = {"": (-1,), "2": (-2, -1), "n": None}
_OVER = {"": "along a dimension", "2": "over two dimensions", "n": "over several dimensions"}


def _family(make: Callable[..., Any], stem: str, doc: str, *rest: Any) -> list[Callable[..., Any]]:
    return [make(f"{stem}{k}", *rest, usual, f"{doc} {_OVER[k]}.") for k, usual in _LAYOUTS.items()]


fft, fft2, fftn = _family(_of_complex, "fft", "The Fourier transform", True)
ifft, ifft2, ifftn = _family(_of_complex, "ifft", "The inverse Fourier transform", False)
rfft, rfft2, rfftn = _family(_to_half, "rfft", "The non-redundant half of the Fourier transform of real numbers")
irfft, irfft2, irfftn = _family(_from_half, "irfft", "The real inverse of rfft")

OTHER_WAY = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}  # by norm


def hfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The Fourier transform, which is real, of a Hermitian-symmetric signal given by its first half.

    >>> flow.fft.hfft(flow.tensor([1.0, 1.0])).tolist()
    [2.0, 0.0]
    """
    _scale(norm, True)
    return irfft(ops.conj(_complex(input)), n, dim, OTHER_WAY[norm])


def ihfft(input: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`."""
    _scale(norm, True)
    return ops.conj(rfft(input, n, dim, OTHER_WAY[norm]))


def fftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """The frequencies of a transform of n samples that are d apart.

    >>> flow.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _over("fftfreq", n, n * float(d), [*range((n + 1) // 2), *range(-(n // 2), 0)], options)


def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Any:
    """The frequencies of `rfft` of n real samples."""
    count = int(n / 2) + 1
    return _over("rfftfreq", count, n * float(d), range(count), options)


def _over(name: str, count: int, length: float, places: Iterable[int], options: dict[str, Any]) -> Any:
    if count < 0:
        raise ShapeError(f"{name}(): Trying to create tensor with negative dimension {count}: [{count}]")
    options["dtype"] = options.get("dtype") or creation.get_default_dtype()
    return creation.tensor([p / length if length else p * math.inf for p in places], **options)


def _shift(x: Any, dim: Any, by: Callable[[int], int]) -> Any:
    dims = _dims(x, None, dim, None)[1]
    return ops.roll(x, tuple(by(x.shape[d]) for d in dims), tuple(dims))


def fftshift(input: Any, dim: Any = None) -> Any:
    """The zero frequency moved to the center."""
    return _shift(input, dim, lambda n: n // 2)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _shift(input, dim, lambda n: -(n // 2))


# ---- short-time -------------------------------------------------------------------------------------


def _window(window: Any, length: int, n_fft: int, like: Any) -> Any:
    kind = like.dtype if not like.dtype.is_complex else ops.view_as_real(like).dtype
    w = creation.ones(length, dtype=kind, **device_of(like)) if window is None else window
    if tuple(w.shape) != (length,):
        raise ShapeError(f"stft: the window has win_length elements, {length}; got shape {list(w.shape)}")
    before = (n_fft - length) // 2
    return ops.pad_with(w, (before, n_fft - length - before), 0.0)


@public("flow tensor")
def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """The short-time Fourier transform, one window every `hop_length` samples: (..., frequencies, windows).

    With `return_complex=False` complex numbers are pairs in a last dimension. Uncentred windows that are shorter than
    `n_fft` begin and end with the signal under `align_to_window`.

    >>> flow.stft(flow.ones(8), 4, window=flow.ones(4), center=False, return_complex=True).shape
    torch.Size([3, 5])
    """
    if input.ndim not in (1, 2):
        raise ShapeError(f"stft(): takes a signal, or a batch of them; got shape {list(input.shape)}")
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    x = ops.unsqueeze(input, 0) if input.ndim == 1 else input
    if center and align_to_window is not None:
        raise OptionError("stft: align_to_window should only be set when center = False")
    if align_to_window:
        x = ops.pad_with(x, ((n_fft - length) // 2, n_fft - length - (n_fft - length) // 2), 0.0)
    if center:
        around = (n_fft // 2, n_fft // 2)
        x = ops.pad_with(x, around, 0.0) if pad_mode == "constant" else ops.pad_edges(x, around, pad_mode)
    if not 0 < n_fft <= x.shape[-1] or hop < 1 or not 0 < length <= n_fft:
        raise ArgumentError(
            f"stft: takes n_fft from 1 to the signal's {x.shape[-1]} samples, hop_length from 1, win_length from 1 to "
            f"n_fft; got {n_fft}, {hop} and {length}"
        )
    frames = ops.unfold_tensor(x, x.ndim - 1, n_fft, hop) * _window(window, length, n_fft, x)
    half = not input.dtype.is_complex if onesided is None else onesided
    norm = "ortho" if normalized else None
    y = ops.transpose(rfft(frames, norm=norm) if half else fft(frames, norm=norm), -2, -1)
    y = ops.squeeze(y, 0) if input.ndim == 1 else y
    return y if return_complex or (return_complex is None and input.dtype.is_complex) else ops.view_as_real(y)


@public("flow tensor")
def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """The inverse of `stft`: overlapping windows are averaged."""
    x = input if input.dtype.is_complex else ops.view_as_complex(input)
    hop, wide = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    alone = x.ndim == 2
    frames = ops.transpose(ops.unsqueeze(x, 0) if alone else x, -2, -1)
    half = x.shape[-2] != n_fft if onesided is None else onesided
    norm = "ortho" if normalized else None
    if half or not return_complex:  # the second half of what gives real waves says nothing new
        waves = irfft(frames if half else ops.narrow(frames, 2, 0, n_fft // 2 + 1), n_fft, norm=norm)
    else:
        waves = ifft(frames, norm=norm)
    w = _window(window, wide, n_fft, x)
    total = n_fft + hop * (waves.shape[-2] - 1)
    put = ops.fold_tensor(waves * w, (waves.shape[0], total), 1, n_fft, hop)
    shares = ops.expand(w * w, (1, waves.shape[-2], n_fft))
    share = ops.fold_tensor(shares, (1, total), 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    kept = min(end, total) - start
    share = ops.narrow(share, 1, start, kept)
    y = ops.narrow(put, 1, start, kept) / ops.where(ops.lt(ops.abs(share), 1e-11), 1.0, share)
    if end > total:
        y = ops.pad_with(y, (0, end - total), 0.0)
    return ops.squeeze(y, 0) if alone else y


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

globals().update({name: door(globals()[name]) for name in __all__})
