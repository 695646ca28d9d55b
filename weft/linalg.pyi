# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.linalg: cholesky, eig, eigh, eigvals, eigvalsh, lu, lu_factor, qr, svd, svdvals, matrix_norm, norm, vector_norm, lstsq, lu_solve, pinv, solve, solve_triangular, tensorinv, tensorsolve, inv, cross, matrix_exp, matrix_power, multi_dot, vander, vecdot, matmul, cond, diagonal, matrix_rank, slogdet, det, cholesky_ex, inv_ex, lu_factor_ex, solve_ex"""

from typing import Any
from weft.core.errors import OpError
from weft.functional.results import Eigen, SignAndSize
from weft.tensor.tensor import Tensor

from weft import det as det, matmul as matmul
from weft.functional.linalg.decompositions import (
    cholesky as cholesky, eigh as eigh, eigvalsh as eigvalsh, lu as lu, lu_factor as lu_factor, qr as qr, svd as svd,
    svdvals as svdvals
)
from weft.functional.linalg.norms import matrix_norm as matrix_norm, norm as norm, vector_norm as vector_norm
from weft.functional.linalg.products import (
    cross as cross, matrix_exp as matrix_exp, matrix_power as matrix_power, multi_dot as multi_dot, vander as vander,
    vecdot as vecdot
)
from weft.functional.linalg.properties import cond as cond, diagonal as diagonal, matrix_rank as matrix_rank
from weft.functional.linalg.solving import (
    lstsq as lstsq, lu_solve as lu_solve, pinv as pinv, solve as solve, solve_triangular as solve_triangular,
    tensorinv as tensorinv, tensorsolve as tensorsolve
)
from weft.functional.linalg.unchecked import (
    cholesky_ex as cholesky_ex, inv_ex as inv_ex, lu_factor_ex as lu_factor_ex, solve_ex as solve_ex
)

LinAlgError = OpError

def eig(x: Tensor, *, out: Any = None) -> Eigen:
    """The complex eigenvalues of square matrices, and their eigenvectors as columns, of length one."""

def eigvals(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex eigenvalues of square matrices, in no order."""

def inv(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of matrices."""

def slogdet(x: Tensor, *, out: Any = None) -> SignAndSize:
    """The sign of the determinant of matrices, and the logarithm of its absolute value."""
