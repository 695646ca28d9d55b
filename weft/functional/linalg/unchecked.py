"""`flow.linalg`'s `_ex` functions: they return an error code, and raise only with `check_errors=True`."""

from __future__ import annotations

from typing import Any

from weft.api.signature import door
from weft.api.table import public
from weft.core.errors import OpError
from weft.functional.linalg.decompositions import check_pivot
from weft.functional.linalg.solving import is_vector
from weft.functional.results import Inverse, PackedInfo, Root, Solved, result
from weft.ops import ops


def _checked(name: str, wanted: bool, info: Any, why: str) -> None:
    if wanted and bool((info != 0).any()):
        raise OpError(f"{name}(): {why}; info is {info.tolist()}")


def cholesky_ex(x: Any, *, upper: bool = False, check_errors: bool = False) -> Root:
    """The Cholesky factor, upper or lower; and an error code: 0, or the order of the first leading minor that isn't
    positive definite.

    >>> flow.linalg.cholesky_ex(flow.tensor([[4.0]]))
    torch.return_types.linalg_cholesky_ex(
    L=tensor([[2.]]),
    info=tensor(0, dtype=weft.int32))
    """
    root, info = ops.cholesky_ex(x)
    _checked("cholesky_ex", check_errors, info, "a matrix isn't positive definite")
    return result("linalg_cholesky_ex", root.mH if upper else root, info)


def inv_ex(x: Any, *, check_errors: bool = False) -> Inverse:
    """The inverse; and an error code: 0, or the index (from 1) of a zero pivot."""
    inverse, info = ops.inv_ex(x)
    _checked("inv_ex", check_errors, info, "a matrix has no inverse")
    return result("linalg_inv_ex", inverse, info)


def solve_ex(a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Solved:
    """The x of a @ x = b, or of x @ a = b; and an error code: 0, or the index (from 1) of a zero pivot."""
    vector = left and is_vector(a, b)
    if left:
        x, info = ops.solve_ex(a, ops.unsqueeze(b, -1) if vector else b)
    else:
        x, info = ops.solve_ex(a.mT, b.mT)
    _checked("solve_ex", check_errors, info, "a matrix has no inverse")
    return result("linalg_solve_ex", ops.squeeze(x, -1) if vector else x if left else x.mT, info)


def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> PackedInfo:
    """The LU factors in one matrix, the pivots; and an error code: 0, or the index (from 1) of a zero pivot."""
    check_pivot(pivot)
    lu, pivots, info = ops.lu_factor_ex(A)
    _checked("lu_factor_ex", check_errors, info, "a matrix has no inverse")
    return result("linalg_lu_factor_ex", lu, pivots, info)


@public("flow tensor", "lu")
def lu_with_infos(A: Any, pivot: bool = True, get_infos: bool = False) -> tuple[Any, ...]:
    """torch's older name of `linalg.lu_factor_ex`: the factors in one matrix, the pivots; with `get_infos` the error
    code, too.

    >>> flow.lu(flow.tensor([[0., 2.], [4., 0.]]))[0].tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    return tuple(lu_factor_ex(A, pivot=pivot))[: 3 if get_infos else 2]


__all__ = ["cholesky_ex", "inv_ex", "lu_factor_ex", "solve_ex"]

globals().update({name: door(globals()[name]) for name in __all__})
