"""Keywords that every function takes: `out`, and for functions that create tensors `layout` and `pin_memory`. They cost
nothing unless given: only a call that doesn't fit gets here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import torch

from weft.core.errors import ArgumentError, DtypeError, OptionError, PlacementError, ShapeError
from weft.ops.declaration import OPS, Op
from weft.tensor.tensor import Tensor

PLACES: Final = ("layout", "pin_memory")  # for functions with a device argument

# ops that accept an out of another dtype, besides element-wise ones; others raise, as in torch
CASTING: Final = frozenset(("bernoulli", "cat", "logsumexp", "mean", "stack", "variance"))

# which compute in the out's dtype, unless one is named, and accept no out of another than that
BY_OUT: Final = frozenset(
    ("arange", "cumprod", "cumsum", "empty", "eye", "full", "linspace", "logspace", "normal", "ones", "prod", "rand",
     "randint", "randn", "randperm", "range", "sum", "zeros")
)  # fmt: skip

# of those, whose out has the result's own dtype, as in torch; and functions composed of ops for which that holds
EXACT: Final = frozenset(
    ("abs", "absolute", "addbmm", "addmm", "addmv", "aminmax", "baddbmm", "bitwise_not", "bmm", "bucketize", "ceil",
     "chain_matmul", "clamp", "clip", "complex", "conj_physical", "diag", "dot", "eigvalsh", "fix", "float_power",
     "floor", "frac", "frexp", "frobenius_norm", "gelu", "hardshrink", "heaviside", "histc", "index_copy", "inner",
     "isin", "isneginf", "isposinf", "logcumsumexp", "logsigmoid", "masked_select", "matrix_norm", "matrix_power", "mm",
     "msort", "multi_dot", "mv", "nan_to_num", "nanquantile", "neg", "negative", "norm", "nuclear_norm", "polar",
     "quantile", "renorm", "round", "sgn", "sign", "signbit", "slice_scatter", "softplus", "softshrink", "svdvals",
     "take", "take_along_dim", "tensordot", "trunc", "vdot", "vecdot", "vector_norm", "where")
)  # fmt: skip

Overwrite = Callable[[Op, tuple[Any, ...]], Any]


def taken(name: str, names: Collection[str], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keywords into those handled here and the rest. A function's own parameters come first; an op that writes
    into an operand takes no `out`."""
    kinds = {*(() if name.endswith("_") else ("out",)), *(PLACES if "device" in names else ())}.difference(names)
    given = {k: v for k, v in kwargs.items() if k in kinds}
    return given, {k: v for k, v in kwargs.items() if k not in given} if given else kwargs


def typed(name: str, names: Collection[str], given: dict[str, Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The keywords, with the dtype of the `out` that was given where the function computes in it and none is named."""
    out = given.get("out")
    if name not in BY_OUT or "dtype" not in names or kwargs.get("dtype") is not None or not isinstance(out, Tensor):
        return kwargs
    return {**kwargs, "dtype": out.dtype}


def applied(name: str, given: dict[str, Any], made: Any, overwrite: Overwrite) -> Any:
    """The result of a function, with these keywords applied."""
    layout, out = given.get("layout"), given.get("out")
    if layout is not None and layout is not torch.strided:
        raise OptionError(f"{name}(): all tensors are strided; got layout={layout}")
    if given.get("pin_memory"):
        made = made.pin_memory()
    return made if out is None else into(name, out, made, overwrite)


def into(name: str, out: Any, made: Any, overwrite: Overwrite) -> Any:
    """The result written into `out`, a tensor or several; returns `out`, several under the result's names."""
    if isinstance(made, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(made):
            raise ArgumentError(f"{name}(): out must be a tensor for each of {len(made)} results; got {out!r}")
        both = [into(name, o, m, overwrite) for o, m in zip(out, made, strict=True)]
        return getattr(torch.return_types, f"{type(made).__name__}_out", tuple)(both)
    if not isinstance(made, Tensor):
        raise ArgumentError(f"{name}(): got an unexpected argument 'out': its result is {made!r}, not a tensor")
    if not isinstance(out, Tensor):
        raise ArgumentError(f"{name}(): out must be a tensor; got {type(out).__name__}")
    if out.is_global is not made.is_global:
        kinds = "global, and the result local" if out.is_global else "local, and the result global"
        raise PlacementError(
            f"{name}(): out is {kinds}. Leave out away, and convert the result: .to_global(placement=..., sbp=...), or "
            ".to_local()"
        )
    op = OPS.get(name)
    exact = name in EXACT or name in BY_OUT or (op is not None and not op.elementwise and name not in CASTING)
    if exact and out.dtype is not made.dtype:
        raise DtypeError(
            f"{name}(): Expected out tensor to have dtype {made.dtype.scalar}, but got {out.dtype.scalar} instead; "
            f"leave out away, and cast the result: .to({out.dtype})"
        )
    if not torch.can_cast(made.dtype.torch, out.dtype.torch):
        raise DtypeError(
            f"{name}(): a result of {made.dtype} can't be written to an out of {out.dtype}; use a floating dtype"
        )
    if tuple(out.shape) == tuple(made.shape):
        return overwrite(OPS["copy"], (out, made))
    if out.numel():
        raise ShapeError(
            f"{name}(): out has shape {list(out.shape)}, the result {list(made.shape)}; an empty out takes any"
        )
    out.data = OPS["clone"](made.detach() if made.dtype is out.dtype else OPS["cast"](made.detach(), out.dtype))
    return out
