"""Weights held in a form by what they are computed from: of norm one, of length and direction, orthogonal."""

from __future__ import annotations

from typing import Any, TypeVar

from weft.autograd import assign, no_grad
from weft.core.errors import OptionError
from weft.functional.creation import eye, randn
from weft.functional.likeness import beside
from weft.nn.losses import normalize
from weft.nn.making import filled
from weft.nn.module import Module
from weft.nn.utils.parametrize import register_parametrization
from weft.ops import OPS
from weft.tensor.tensor import Tensor

M = TypeVar("M", bound=Module)

matmul, transpose, reshape = OPS["matmul"], OPS["transpose"], OPS["reshape"]


def _weight(name: str, module: Module, tensor: str) -> Any:
    weight = getattr(module, tensor, None)
    if not isinstance(weight, Tensor):
        raise OptionError(f"{name}: {type(module).__name__} has no parameter or buffer {tensor!r}")
    return weight


# ---- length and direction ----------------------------------------------------------------------------


class _WeightNorm(Module):
    """A direction times a length along `dim`; along everything, if that is None or -1."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = None if dim == -1 else dim

    def length(self, v: Any) -> Tensor:
        others = tuple(d for d in range(v.ndim) if self.dim is None or d != self.dim % v.ndim)
        square = OPS["mul"](v, v)
        return OPS["sqrt"](OPS["sum"](square, others, self.dim is not None) if others else square)

    def forward(self, length: Tensor, direction: Tensor) -> Tensor:
        return OPS["mul"](direction, OPS["div"](length, self.length(direction)))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self.length(weight), OPS["clone"](weight)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train a parameter as its length along `dim` (`original0`) and its direction (`original1`). Gives the module.

    States of `nn.utils.weight_norm` are understood.

    >>> m = flow.nn.utils.parametrizations.weight_norm(flow.nn.Linear(3, 2))
    >>> [(name, tuple(p.shape)) for name, p in m.named_parameters()][1:]
    [('parametrizations.weight.original0', (2, 1)), ('parametrizations.weight.original1', (2, 3))]
    """
    _weight("weight_norm", module, name)
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def older(_: Any, state: Any, prefix: str, *__: Any) -> None:
        keys = [f"{prefix}{name}_{part}" for part in "gv"]
        if all(key in state for key in keys):
            for i, key in enumerate(keys):
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)

    module.register_load_state_dict_pre_hook(older)
    return module


# ---- the largest singular value ----------------------------------------------------------------------


class _SpectralNorm(Module):
    """A weight over its largest singular value, which a few products per forward follow while training."""

    def __init__(self, weight: Any, steps: int, dim: int, eps: float) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise OptionError(f"spectral_norm: dim is one of the {weight.ndim} dimensions of the weight; got {dim}")
        if steps < 1:
            raise OptionError(f"spectral_norm: n_power_iterations is at least 1; got {steps}")
        self.dim, self.steps, self.eps = dim % weight.ndim, steps, eps
        if weight.ndim > 1:
            rows = self._rows(weight.detach())
            for name, size in zip(("_u", "_v"), rows.shape, strict=True):
                drawn: Any = filled((size,), 0.0, dtype=weight.dtype)
                self.register_buffer(name, normalize(drawn.normal_(), dim=0, eps=eps))
            self._follow(rows, 15)

    def _rows(self, weight: Any) -> Any:
        order = (self.dim, *(d for d in range(weight.ndim) if d != self.dim))
        return reshape(weight if self.dim == 0 else OPS["permute"](weight, order), (weight.shape[self.dim], -1))

    def _follow(self, rows: Any, steps: int) -> None:
        with no_grad():
            for _ in range(steps):
                assign(self._u, normalize(matmul(rows, self._v), dim=0, eps=self.eps))
                assign(self._v, normalize(matmul(transpose(rows, 0, 1), self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        rows = self._rows(weight)
        if self.training:
            self._follow(rows.detach(), self.steps)
        u, v = OPS["clone"](self._u), OPS["clone"](self._v)  # the next step overwrites them, and backward reads them
        return weight / OPS["sum"](u * matmul(rows, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a parameter by its largest singular value wherever it is read. Gives the module.

    >>> m = flow.nn.utils.parametrizations.spectral_norm(flow.nn.Linear(3, 2)).eval()
    >>> round(flow.linalg.matrix_norm(m.weight, 2).item(), 3)
    1.0
    """
    weight = _weight("spectral_norm", module, name)
    if dim is None:  # where transposed convolutions have their outputs
        dim = 1 if type(module).__name__.startswith("ConvTranspose") else 0
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


# ---- orthogonal --------------------------------------------------------------------------------------

MAPS = ("matrix_exp", "cayley", "householder")


def _sign(x: Any) -> Any:
    """1 or -1, and on the unit circle for complex numbers: 0 counts as 1."""
    size = OPS["abs"](x)
    return OPS["where"](OPS["eq"](size, 0), OPS["ones_like"](x, None), x / OPS["where"](OPS["eq"](size, 0), 1, size))


def _orthogonalized(x: Any) -> Any:
    """The orthogonal factor of a tall matrix, of those the one whose triangular factor has a diagonal above zero."""
    q, r = OPS["qr"](x)
    return q * OPS["unsqueeze"](_sign(OPS["diagonal"](r, 0, -2, -1)), -2)


class _Orthogonal(Module):
    """An orthogonal matrix from any: by a map from skew-symmetric matrices, or by a chain of reflections.

    `base`, if there is one, is the orthogonal matrix that what is computed is multiplied with.
    """

    def __init__(self, weight: Any, kind: str, with_base: bool) -> None:
        super().__init__()
        if weight.dtype.is_complex and kind == "householder":
            raise OptionError("orthogonal: 'householder' is for real matrices; take 'matrix_exp' or 'cayley'")
        self.shape, self.kind, self.with_base = tuple(weight.shape), kind, with_base
        if with_base:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        wide = x.shape[-2] < x.shape[-1]
        x = transpose(x, -2, -1) if wide else x
        made = self._reflections(x) if self.kind == "householder" else self._rotation(x)
        if self.with_base and self.base is not None:
            made = matmul(self.base, made)
        return transpose(made, -2, -1) if wide else made

    def _rotation(self, x: Any) -> Any:
        n, k = x.shape[-2:]
        x = OPS["pad_with"](OPS["tril"](x, 0), (0, n - k), 0.0) if n != k else OPS["tril"](x, 0)
        skew = x - OPS["conj"](transpose(x, -2, -1)) if x.dtype.is_complex else x - transpose(x, -2, -1)
        if self.kind == "matrix_exp":
            made = OPS["matrix_exponential"](skew)
        else:
            one = eye(n, dtype=skew.dtype, **beside(skew)).expand(skew.shape)
            made = OPS["solve"](one - skew * 0.5, one + skew * 0.5)
        return OPS["narrow"](made, -1, 0, k) if n != k else made

    def _reflections(self, x: Any) -> Any:
        n, k = x.shape[-2:]
        below = OPS["tril"](x, -1)
        scale = 2.0 / (1.0 + OPS["sum"](below * below, -2))
        made = eye(n, k, dtype=x.dtype, **beside(x)).expand((*x.shape[:-2], n, k))
        units = eye(n, k, dtype=x.dtype, **beside(x))
        for i in reversed(range(k)):
            v = OPS["narrow"](below, -1, i, 1) + OPS["narrow"](units, -1, i, 1)
            by = OPS["unsqueeze"](OPS["narrow"](scale, -1, i, 1), -1)
            made = made - by * matmul(v, matmul(transpose(v, -2, -1), made))
        signs = OPS["sign"](OPS["trunc"](OPS["diagonal"](x, 0, -2, -1).detach()))
        return made * OPS["unsqueeze"](signs, -2)

    def right_inverse(self, value: Any) -> Any:
        if tuple(value.shape) != self.shape:
            raise OptionError(f"orthogonal: a value has the weight's shape {list(self.shape)}; got {list(value.shape)}")
        if not self.with_base:
            raise NotImplementedError("only with use_trivialization=True can an orthogonal weight be given a value")
        with no_grad():
            wide = value.shape[-2] < value.shape[-1]
            tall = transpose(value, -2, -1) if wide else value
            n, k = tall.shape[-2:]
            if n != k:  # completed to a square
                drawn = randn(*tall.shape[:-2], n, n - k, dtype=tall.dtype, **beside(tall))
                tall = OPS["cat"]([tall, drawn], -1)
            self.base = tall.clone() if n == k and _is_orthogonal(tall) else _orthogonalized(tall)
            minus = OPS["zeros_like"](value, None)
            return minus - eye(*value.shape[-2:], dtype=value.dtype, **beside(value))


def _is_orthogonal(q: Any) -> bool:
    n, k = q.shape[-2:]
    eps = 10 * n * {"float64": 2.2e-16, "complex128": 2.2e-16}.get(q.dtype.name, 1.2e-7)
    square = matmul(OPS["conj"](transpose(q, -2, -1)) if q.dtype.is_complex else transpose(q, -2, -1), q)
    away: Any = square - eye(k, dtype=q.dtype, **beside(q))
    return OPS["abs"](away).max().item() <= eps


def orthogonal(
    module: M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> M:
    """Keep a matrix, or a batch of them, orthogonal: rows or columns, whichever are fewer, of length one and at right
    angles. Gives the module.

    `orthogonal_map` says how: "matrix_exp" (what squares are given), "cayley", or "householder". With
    `use_trivialization`, the weight begins as it is, made orthogonal, and can be assigned.

    >>> m = flow.nn.utils.parametrizations.orthogonal(flow.nn.Linear(4, 2))
    >>> (m.weight @ m.weight.T - flow.eye(2)).abs().max().item() < 1e-5
    True
    """
    weight = _weight("orthogonal", module, name)
    if weight.ndim < 2:
        raise OptionError(f"orthogonal: a matrix, or a batch of them, can be orthogonal; {name!r} has {weight.ndim}-d")
    square = weight.shape[-2] == weight.shape[-1] or weight.dtype.is_complex
    kind = orthogonal_map or ("matrix_exp" if square else "householder")
    if kind not in MAPS:
        raise OptionError(f"orthogonal: orthogonal_map is one of {', '.join(map(repr, MAPS))}; got {kind!r}")
    register_parametrization(module, name, _Orthogonal(weight, kind, use_trivialization), unsafe=True)
    return module


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
