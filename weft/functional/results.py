"""Torch's named tuples, `torch.return_types.max` and the like, which functions with several results return; and for
type checkers their fields, which are Weft's tensors."""

# ruff: noqa: UP014  # a row each

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import return_types

from weft.api.table import named
from weft.ops import OPS
from weft.ops.declaration import positional
from weft.tensor.tensor import Tensor

Eigen = NamedTuple("Eigen", [("eigenvalues", Tensor), ("eigenvectors", Tensor)])
Extremes = NamedTuple("Extremes", [("min", Tensor), ("max", Tensor)])
Histogram = NamedTuple("Histogram", [("hist", Tensor), ("bin_edges", Tensor)])
Inverse = NamedTuple("Inverse", [("inverse", Tensor), ("info", Tensor)])
Packed = NamedTuple("Packed", [("LU", Tensor), ("pivots", Tensor)])
PackedInfo = NamedTuple("PackedInfo", [("LU", Tensor), ("pivots", Tensor), ("info", Tensor)])
Parts = NamedTuple("Parts", [("mantissa", Tensor), ("exponent", Tensor)])
QR = NamedTuple("QR", [("Q", Tensor), ("R", Tensor)])
Ranked = NamedTuple("Ranked", [("values", Tensor), ("indices", Tensor)])
Root = NamedTuple("Root", [("L", Tensor), ("info", Tensor)])
SignAndSize = NamedTuple("SignAndSize", [("sign", Tensor), ("logabsdet", Tensor)])
Solution = NamedTuple(
    "Solution", [("solution", Tensor), ("residuals", Tensor), ("rank", Tensor), ("singular_values", Tensor)]
)
Solved = NamedTuple("Solved", [("result", Tensor), ("info", Tensor)])
SolvedTriangle = NamedTuple("SolvedTriangle", [("solution", Tensor), ("cloned_coefficient", Tensor)])
SVD = NamedTuple("SVD", [("U", Tensor), ("S", Tensor), ("Vh", Tensor)])
SVDWithV = NamedTuple("SVDWithV", [("U", Tensor), ("S", Tensor), ("V", Tensor)])
Triangles = NamedTuple("Triangles", [("P", Tensor), ("L", Tensor), ("U", Tensor)])


def result(name: str, *parts: Any) -> Any:
    """The parts under the names that torch's function of this name gives them."""
    return getattr(return_types, name)(parts)


def returning(kind: type, name: str, folder: str = "") -> Callable[..., Any]:
    """The op of this name, whose results have names; "linalg_" is a folder of torch's."""
    op, made = OPS[name], getattr(return_types, folder + name)
    run = op.entry

    @named(name, op.__doc__)
    def call(*args: Any, **kwargs: Any) -> Any:
        return made(run(*args, **kwargs))

    call.__module__ = op.__module__
    rows = ((p.name, p.type, p.default) for p in op.params)
    call.__signature__ = positional(*rows, gives=kind.__name__)
    return call
