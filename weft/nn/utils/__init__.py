"""Helpers around parameters: clipping of gradients, many parameters as one vector, a weight as length and direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from weft.autograd import assign, no_grad
from weft.core.errors import ShapeError
from weft.functional.clipping import clip_grad_norm
from weft.functional.clipping import clip_grad_norm as clip_grad_norm_
from weft.functional.clipping import clip_grad_value as clip_grad_value_
from weft.functional.clipping import total_norm as get_total_norm
from weft.nn.utils import parametrizations, parametrize, prune, rnn, stateless
from weft.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from weft.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from weft.nn.utils.weight_norm import remove_weight_norm, weight_norm
from weft.ops import OPS
from weft.tensor.tensor import Tensor

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "fuse_conv_bn_eval", "fuse_conv_bn_weights",
    "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector", "parametrizations",
    "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm",
    "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip

M = TypeVar("M")


def skip_init(module_cls: Callable[..., M], *args: Any, **kwargs: Any) -> M:
    """A layer whose parameters are about to be overwritten: made like any other."""
    return module_cls(*args, **kwargs)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flat, one after another."""
    return OPS["cat"]([OPS["reshape"](p, (-1,)) for p in parameters], 0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Overwrite the parameters with the parts of a vector that `parameters_to_vector` makes of them."""
    everyone = list(parameters)
    wanted = sum(p.numel() for p in everyone)
    if vec.numel() != wanted:
        raise ShapeError(f"the vector has {vec.numel()} elements, the parameters have {wanted} together")
    at = 0
    with no_grad():
        for p in everyone:
            assign(p, OPS["reshape"](OPS["narrow"](vec.detach(), 0, at, p.numel()), tuple(p.shape)))
            at += p.numel()
