"""Layers folded into the one before them, for when nothing is trained any more."""

from __future__ import annotations

import copy
from typing import Any

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.nn.linear import Linear
from weft.nn.normalization import _BatchNorm
from weft.ops import OPS
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

Folded = tuple[Parameter, Parameter]


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> Folded:
    """The weight and the bias of a convolution that also does what a normalisation behind it did."""
    with no_grad():
        zero: Any = OPS["zeros_like"](bn_rm, None)
        scale: Any = OPS["rsqrt"](bn_rv + bn_eps) * (zero + 1 if bn_w is None else bn_w)
        along = 1 if transpose else 0
        weight = conv_w * scale.reshape([-1 if d == along else 1 for d in range(conv_w.ndim)])
        bias = ((zero if conv_b is None else conv_b) - bn_rm) * scale + (zero if bn_b is None else bn_b)
    wanted = conv_w.requires_grad
    return Parameter(OPS["cast"](weight, conv_w.dtype), wanted), Parameter(OPS["cast"](bias, conv_w.dtype), wanted)


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that gives what this one and the normalisation behind it give in evaluation.

    >>> conv, norm = flow.nn.Conv2d(1, 2, 3).eval(), flow.nn.BatchNorm2d(2).eval()
    >>> flow.nn.utils.fuse_conv_bn_eval(conv, norm)
    Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> Folded:
    """Likewise of a linear layer."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def fuse_linear_bn_eval(linear: Linear, bn: Any) -> Any:
    """A linear layer that gives what this one and the normalisation behind it give in evaluation."""
    return _fused("fuse_linear_bn_eval", linear, bn, False)


def _fused(name: str, layer: Any, bn: Any, transpose: bool) -> Any:
    if not isinstance(bn, _BatchNorm) or not isinstance(bn.running_mean, Tensor) or layer.training or bn.training:
        raise OptionError(f"{name}(): takes a layer and a batch normalisation with statistics, both in eval()")
    made = copy.deepcopy(layer)
    made.weight, made.bias = fuse_conv_bn_weights(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return made


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
