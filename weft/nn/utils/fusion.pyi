# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.utils.fusion."""

from typing import Any
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any: ...
def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False
) -> tuple[Parameter, Parameter]: ...
def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any: ...
def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]: ...
