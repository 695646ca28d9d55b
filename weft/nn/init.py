"""Initialization of parameters, in place and without autograd, with torch's distributions.

A global tensor gets the same logical values in any layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.core.sbp import broadcast
from weft.functional.create.creation import drawing
from weft.functional.create.likeness import device_of
from weft.functional.random import draws_in_place
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_shard, of_torch


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain of a nonlinearity: the factor by which initial weights compensate it.

    >>> flow.nn.init.calculate_gain("leaky_relu", 0.2)
    1.3867504905630728
    """
    return _of_torch(torch.nn.init.calculate_gain, nonlinearity, param, refusal=OptionError)


def calc_fan(shape: Sequence[int], mode: str = "fan_in", data_format: str = "NCHW") -> int:
    """The fan of a weight: inputs per output ("fan_in"), outputs per input ("fan_out"), or their sum ("fan_sum")."""
    if len(shape) < 2:
        raise ShapeError(
            f"Fan in and fan out can not be computed for tensor with fewer than 2 dimensions; this has "
            f"shape {list(shape)}"
        )
    field = math.prod(shape[2:]) if data_format == "NCHW" else math.prod(shape[1:-1])
    fans = {"fan_in": (shape[1] if data_format == "NCHW" else shape[-1]) * field, "fan_out": shape[0] * field}
    fans["fan_sum"] = fans["fan_in"] + fans["fan_out"]
    fans["fan_avg"] = fans["fan_sum"] // 2
    if mode.lower() not in fans:
        raise OptionError(f"Mode {mode!r} not supported; there are {', '.join(fans)}")
    return fans[mode.lower()]


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    return calc_fan(tensor.shape, "fan_in"), calc_fan(tensor.shape, "fan_out")


def get_data_format(data_format: str) -> str:
    """ "NCHW" for channels first ("NCL" and "NCDHW", too), "NHWC" for channels last."""
    if data_format not in ("NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"):
        raise OptionError(f"data_format must be NCHW or NHWC; got {data_format!r}")
    return "NCHW" if data_format[1] == "C" else "NHWC"


# ---- constants ---------------------------------------------------------------------------------------


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    with no_grad():
        assign(tensor, ops.full_like(tensor.detach(), val, None))
    return tensor


def ones_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    return _give(tensor, _of_torch(torch.nn.init.eye_, torch.empty(tuple(tensor.shape))))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Initialize a convolution's weight as the identity on as many channels as possible."""
    return _give(tensor, _of_torch(torch.nn.init.dirac_, torch.empty(tuple(tensor.shape)), groups))


# ---- random ------------------------------------------------------------------------------------------


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from the uniform distribution over [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draw from the normal distribution truncated to [a, b]."""
    return _draw(tensor, "trunc_normal", mean, std, a, b, generator=generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None, *, data_format: str = "NCHW") -> Tensor:
    """Xavier (Glorot) initialization, uniform: keeps the variance forward and backward."""
    bound = gain * math.sqrt(6.0 / calc_fan(tensor.shape, "fan_sum", get_data_format(data_format)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None, *, data_format: str = "NCHW") -> Tensor:
    """Xavier (Glorot) initialization, normal: keeps the variance forward and backward."""
    std = gain * math.sqrt(2.0 / calc_fan(tensor.shape, "fan_sum", get_data_format(data_format)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None, *,
    data_format: str = "NCHW",
) -> Tensor:  # fmt: skip
    """Kaiming (He) initialization, uniform: keeps the variance through a nonlinearity."""
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity, data_format)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None, *,
    data_format: str = "NCHW",
) -> Tensor:  # fmt: skip
    """Kaiming (He) initialization, normal: keeps the variance through a nonlinearity."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity, data_format), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str, data_format: str) -> float:
    if 0 in tensor.shape:
        return 0.0
    return calculate_gain(nonlinearity, a) / math.sqrt(calc_fan(tensor.shape, mode, get_data_format(data_format)))


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix times `gain`."""
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_ needs at least 2 dimensions; got {list(tensor.shape)}")
    rows, cols = tensor.shape[0], math.prod(tensor.shape[1:])
    with no_grad(), drawing(generator):
        normal: Tensor = ops.randn((rows, cols), tensor.dtype, **device_of(tensor))
    square = local_data(normal, "orthogonal_")
    if not square.numel():
        return tensor
    q, r = torch.linalg.qr(square.t() if rows < cols else square)
    q = q * r.diagonal().sign()
    return _give(tensor, (q.t() if rows < cols else q).mul(gain).reshape(tuple(tensor.shape)))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draw from the normal distribution, with a fraction of each column zero."""
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_ takes a matrix; got shape {list(tensor.shape)}")
    rows, cols = tensor.shape
    normal_(tensor, 0.0, std, generator)
    away = math.ceil(sparsity * rows)
    whole = torch.ones(rows, cols)
    for column in range(cols):
        with no_grad():
            order: Tensor = ops.randperm(rows, dtypes.int64)
        whole[local_data(order, "sparse_")[:away], column] = 0
    with no_grad():
        return assign(tensor, ops.mul(tensor.detach(), _like(whole, tensor)))


def _of_torch(f: Callable[..., Any], *args: Any, refusal: type[Exception] = ShapeError) -> Any:
    try:
        return f(*args)
    except ValueError as error:
        raise refusal(str(error)) from error


def _draw(tensor: Tensor, distribution: str, *parameters: float, generator: Any) -> Tensor:
    with no_grad():
        return draws_in_place.drawn(tensor, distribution, parameters, generator)


def _give(tensor: Tensor, whole: torch.Tensor) -> Tensor:
    """Overwrite with a value that is equal on every rank."""
    with no_grad():
        return assign(tensor, _like(whole, tensor))


def _like(whole: torch.Tensor, tensor: Tensor) -> Tensor:
    """A value that is equal on every rank, in the tensor's layout."""
    whole = whole.to(tensor.dtype.torch)
    if tensor.spec is None:
        return of_torch(whole.to(tensor.device.torch))
    flat = (broadcast,) * tensor.placement.ndim
    value = of_shard(whole.to(tensor._meta.device), tensor.spec.replace(nd_sbp=flat))
    return ops.to_global(value, tensor.placement, tensor.sbp)


# deprecated names without the underscore
uniform, normal, constant, eye, dirac, sparse = uniform_, normal_, constant_, eye_, dirac_, sparse_
xavier_uniform, xavier_normal, orthogonal = xavier_uniform_, xavier_normal_, orthogonal_
kaiming_uniform, kaiming_normal = kaiming_uniform_, kaiming_normal_

for _f in (kaiming_normal_, kaiming_uniform_, orthogonal_, trunc_normal_, xavier_normal_, xavier_uniform_):
    setattr(Tensor, _f.__name__, _f)  # methods too, as OneFlow has them
