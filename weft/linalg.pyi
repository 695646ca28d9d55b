# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.linalg: cholesky, eig, eigh, eigvals, eigvalsh, lu, lu_factor, qr, svd, svdvals, matrix_norm, norm, vector_norm, lstsq, lu_solve, pinv, solve, solve_triangular, tensorinv, tensorsolve, inv, cross, matrix_exp, matrix_power, multi_dot, vander, vecdot, matmul, cond, diagonal, matrix_rank, slogdet, det, cholesky_ex, inv_ex, lu_factor_ex, solve_ex"""

from typing import Any
from weft.core.errors import OpError
from weft.functional.results import Eigen, SignAndSize
from weft.tensor.tensor import Tensor

LinAlgError = OpError
from weft.functional.linalg.decompositions import cholesky as cholesky
from weft.functional.linalg.decompositions import eigh as eigh
from weft.functional.linalg.decompositions import eigvalsh as eigvalsh
from weft.functional.linalg.decompositions import lu as lu
from weft.functional.linalg.decompositions import lu_factor as lu_factor
from weft.functional.linalg.decompositions import qr as qr
from weft.functional.linalg.decompositions import svd as svd
from weft.functional.linalg.decompositions import svdvals as svdvals
from weft.functional.linalg.norms import matrix_norm as matrix_norm
from weft.functional.linalg.norms import norm as norm
from weft.functional.linalg.norms import vector_norm as vector_norm
from weft.functional.linalg.products import cross as cross
from weft.functional.linalg.products import matrix_exp as matrix_exp
from weft.functional.linalg.products import matrix_power as matrix_power
from weft.functional.linalg.products import multi_dot as multi_dot
from weft.functional.linalg.products import vander as vander
from weft.functional.linalg.products import vecdot as vecdot
from weft.functional.linalg.properties import cond as cond
from weft.functional.linalg.properties import diagonal as diagonal
from weft.functional.linalg.properties import matrix_rank as matrix_rank
from weft.functional.linalg.solving import lstsq as lstsq
from weft.functional.linalg.solving import lu_solve as lu_solve
from weft.functional.linalg.solving import pinv as pinv
from weft.functional.linalg.solving import solve as solve
from weft.functional.linalg.solving import solve_triangular as solve_triangular
from weft.functional.linalg.solving import tensorinv as tensorinv
from weft.functional.linalg.solving import tensorsolve as tensorsolve
from weft.functional.linalg.unchecked import cholesky_ex as cholesky_ex
from weft.functional.linalg.unchecked import inv_ex as inv_ex
from weft.functional.linalg.unchecked import lu_factor_ex as lu_factor_ex
from weft.functional.linalg.unchecked import solve_ex as solve_ex

def det(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of matrices.

    >>> flow.linalg.det(flow.tensor([[2., 0.], [0., 4.]])).item()
    8.0
    """

def eig(x: Tensor, *, out: Any = None) -> Eigen:
    """The complex eigenvalues of square matrices, and their eigenvectors as columns, of length one.

    >>> flow.linalg.eig(flow.tensor([[0., 1.], [-1., 0.]])).eigenvalues.tolist()
    [1j, -1j]
    """

def eigvals(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex eigenvalues of square matrices, in no order.

    >>> flow.linalg.eigvals(flow.tensor([[2., 0.], [0., 3.]])).tolist()
    [(2+0j), (3+0j)]
    """

def inv(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of matrices.

    >>> flow.linalg.inv(flow.tensor([[2., 0.], [0., 4.]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product over the last two dimensions; leading dimensions broadcast; a 1-d operand is a vector.

    >>> flow.matmul(flow.ones(2, 3), flow.ones(3, 4)).tolist()
    [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
    """

def slogdet(x: Tensor, *, out: Any = None) -> SignAndSize:
    """The sign of the determinant of matrices, and the logarithm of its absolute value.

    >>> flow.linalg.slogdet(flow.eye(2)).logabsdet.item()
    0.0
    """
