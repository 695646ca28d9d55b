"""Utilities for parameters: gradient clipping, parameters as a vector, weight normalization."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from weft.api import surface
from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core.derived import GIVEN, Derived, lazily
from weft.core.errors import AssertedError, MissingFormulaError, OptionError, ShapeError
from weft.functional.create.creation import eye
from weft.functional.create.likeness import device_of
from weft.functional.neural.similarity import normalize
from weft.functional.training.clipping import clip_grad_norm
from weft.functional.training.clipping import clip_grad_norm as clip_grad_norm_
from weft.functional.training.clipping import clip_grad_value as clip_grad_value_
from weft.functional.training.clipping import clip_grads_with_norm as clip_grads_with_norm_
from weft.functional.training.clipping import total_norm as get_total_norm
from weft.nn.module.module import Module
from weft.nn.utils import rnn, stateless
from weft.ops import ops
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.nn.utils import parametrizations, parametrize, prune
    from weft.nn.utils.fusion import *  # noqa: F403  (its stub lists them)
    from weft.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
    from weft.nn.utils.weight_norm import remove_weight_norm, weight_norm

ERRORS: Final = {"AssertionError": AssertedError, "RuntimeError": OptionError}
FILES: Final = {"parametrizations": [], "parametrize": [], "prune": []} | surface.by_file("nn.utils", __name__)


def _norm_except_dim(v: Any, pow: int = 2, dim: int = 0) -> Any:
    """The norm of each slice along `dim`; of the whole, if that is -1."""
    others = tuple(d for d in range(v.ndim) if dim == -1 or d != dim % v.ndim)
    square = ops.mul(v, v)
    return ops.root(ops.sum(square, others, dim != -1) if others else square)


def _weight_norm(v: Any, g: Any, dim: int = 0) -> Any:
    return ops.mul(v, ops.div(g, _norm_except_dim(v, 2, dim)))


def _normalize(x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """F.normalize with `out` by assignment, in a third of the time of `out=`."""
    y = normalize(x, p, dim, eps)
    return y if out is None else assign(out, y)


def _householder_product(v: Any, tau: Any) -> Any:
    """The first columns of a product of Householder reflections, given by v's columns below the diagonal."""
    n, k = v.shape[-2:]
    units = eye(n, k, dtype=v.dtype, **device_of(v))
    below, made = ops.tril(v, -1) + units, units.expand((*v.shape[:-2], n, k))
    for i in reversed(range(k)):
        column, by = ops.narrow(below, -1, i, 1), ops.unsqueeze(ops.narrow(tau, -1, i, 1), -1)
        made = made - by * (column @ (column.mT @ made))
    return made


def _geqrf(x: Any) -> Any:
    raise MissingFormulaError("a weight that is a product of reflections can't be assigned: trivialize it")


def _orthogonalized(theirs: Any) -> Callable[[Any], Any]:
    """Torch's, by Weft's QR decomposition with a positive diagonal."""

    def make(x: Any) -> Any:
        q, r = ops.qr(x)
        return q * ops.unsqueeze(ops.diagonal(r, 0, -2, -1).sgn(), -2)

    return make


GIVEN.update(
    {
        "torch.nn.functional.normalize": _normalize,
        "torch.norm_except_dim": _norm_except_dim,
        "torch._weight_norm": _weight_norm,
        "torch.linalg.householder_product": _householder_product,
        "torch.geqrf": _geqrf,
    }
)
CHANGES: Final = {
    "parametrizations": {"_make_orthogonal": _orthogonalized},
    "weight_norm": {"WeightNorm.apply": lambda theirs: staticmethod(inspect.unwrap(theirs))},  # without its warning
}
for _file in FILES:
    Derived(f"{__name__}.{_file}", f"torch.nn.utils.{_file}", {"": CHANGES.get(_file, {})}, {"device": "_site"}, ERRORS)
__getattr__ = lazily(__name__, FILES)

# ruff: noqa: F405
__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm",
    "rnn", "skip_init", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip

M = TypeVar("M", bound=Module)


def skip_init(module_cls: Callable[..., M], *args: Any, **kwargs: Any) -> M:
    """A layer whose parameters are about to be overwritten: nothing is drawn for them."""
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened and concatenated."""
    return ops.cat([ops.reshape(p, (-1,)) for p in parameters], 0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Overwrite the parameters with slices of a vector: the inverse of `parameters_to_vector`."""
    everyone = list(parameters)
    wanted = sum(p.numel() for p in everyone)
    if vec.numel() != wanted:
        raise ShapeError(f"the vector has {vec.numel()} elements, the parameters have {wanted} together")
    at = 0
    with no_grad():
        for p in everyone:
            assign(p, ops.reshape(ops.narrow(vec.detach(), 0, at, p.numel()), tuple(p.shape)))
            at += p.numel()
