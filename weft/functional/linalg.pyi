# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.linalg`: norms, composed of ops, so that they have gradients and layouts; and the ops of matrices."""

from typing import Any
from weft.tensor.tensor import Tensor

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "inv", "matmul", "matrix_norm", "norm", "qr", "slogdet", "solve",
    "svd", "svdvals", "vector_norm"
]

def cholesky(x: Tensor) -> Tensor:
    """The lower triangular l of x = l @ l.T, for symmetric positive definite x.

    >>> flow.linalg.cholesky(flow.tensor([[4., 0.], [0., 9.]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """

def cross(x: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along a dimension.

    >>> flow.linalg.cross(flow.tensor([1., 0., 0.]), flow.tensor([0., 1., 0.])).tolist()
    [0.0, 0.0, 1.0]
    """

def det(x: Tensor) -> Tensor:
    """The determinant of matrices.

    >>> flow.linalg.det(flow.tensor([[2., 0.], [0., 4.]])).item()
    8.0
    """

def diagonal(x: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of two dimensions, the last ones unless told, as the last one."""

def eigh(x: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues of symmetric matrices, in rising order, and their eigenvectors as columns.

    >>> flow.linalg.eigh(flow.tensor([[2., 0.], [0., 1.]]))[0].tolist()
    [1.0, 2.0]
    """

def inv(x: Tensor) -> Tensor:
    """The inverse of matrices.

    >>> flow.linalg.inv(flow.tensor([[2., 0.], [0., 4.]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """

def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product, over the last two dimensions; leading ones broadcast; a 1-d operand is a vector.

    >>> flow.matmul(flow.ones(2, 3), flow.ones(3, 4)).tolist()
    [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
    """

def matrix_norm(
    x: Tensor, ord: Any = 'fro', dim: tuple[int, ...] | list[int] = ..., keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The norm of matrices: "fro", 1, -1, inf or -inf."""

def norm(
    x: Tensor, ord: Any = None, dim: int | tuple[int, ...] | list[int] | None = None, keepdim: bool = False,
    dtype: Any = None, *, p: Any = None
) -> Tensor:
    """The norm of vectors, or with "fro" of matrices.

    >>> flow.norm(flow.tensor([3., 4.])).item()
    5.0
    """

def qr(x: Tensor) -> tuple[Tensor, Tensor]:
    """The thin decomposition x = q @ r into orthogonal columns and an upper triangle; at least as many rows as columns.

    >>> flow.linalg.qr(flow.eye(2))[1].abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant of matrices, and the logarithm of its absolute value.

    >>> flow.linalg.slogdet(flow.eye(2))[1].item()
    0.0
    """

def solve(a: Tensor, b: Tensor) -> Tensor:
    """The x of a @ x = b.

    >>> flow.linalg.solve(flow.tensor([[2., 0.], [0., 4.]]), flow.tensor([2., 4.])).tolist()
    [1.0, 1.0]
    """

def svd(x: Tensor, full_matrices: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """The singular value decomposition: x = u @ diag(s) @ vh. Thin only."""

def svdvals(x: Tensor) -> Tensor:
    """The singular values of matrices, in falling order."""

def vector_norm(
    x: Tensor, ord: float = 2, dim: int | tuple[int, ...] | list[int] | None = None, keepdim: bool = False, *,
    dtype: Any = None
) -> Tensor:
    """The norm of x's elements as one vector, over some dimensions or all.

    >>> flow.linalg.vector_norm(flow.tensor([3., 4.])).item()
    5.0
    """
