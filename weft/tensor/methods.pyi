# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""The types of Tensor's methods that are ops: `methods.pyi`, written by `make stubs`."""

from builtins import bool as _bool, float as _float, int as _int
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload
from weft.core.placement import Placement
from weft.distributed.mesh import DeviceMesh
from weft.distributed.tensor.placement_types import Placement
from weft.functional.results import Extremes, Histogram, Parts, QR, Ranked, SVDWithV, SignAndSize, SolvedTriangle
from weft.tensor.hook import RemovableHook
from weft.tensor.tensor import Tensor

class Methods:
    @property
    def H(self) -> Tensor:
        """The conjugate transpose."""

    @property
    def T(self) -> Tensor:
        """x with its dimensions reversed."""

    def __abs__(self) -> Tensor: ...

    def __add__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __and__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply a NumPy function to arrays. NumPy itself would call the tensor's method of that name, which may differ:
        torch's `repeat` and `nonzero` aren't NumPy's.
        """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: _bool = False) -> Tensor:
        """The result of a NumPy ufunc on a tensor, as a tensor: `np.sqrt(x)`."""

    def __complex__(self) -> complex: ...

    def __delitem__(self, key: Any) -> None: ...

    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]

    def __floordiv__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __ge__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __getitem__(self, key: Any) -> Tensor: ...

    def __gt__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __iadd__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __iand__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __ifloordiv__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __ilshift__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __imod__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __imul__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __invert__(self) -> Tensor: ...

    def __ior__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __ipow__(self, exponent: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __irshift__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __isub__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __iter__(self) -> Iterator[Tensor]: ...

    def __itruediv__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __ixor__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __le__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __lshift__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __lt__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __matmul__(self, other: Tensor) -> Tensor: ...

    def __mod__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __mul__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]

    def __neg__(self) -> Tensor: ...

    def __or__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __pos__(self) -> Any: ...

    def __pow__(self, exponent: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __radd__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rand__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rdiv__(self, input: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rfloordiv__(self, input: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rlshift__(self, other: Any) -> Any: ...

    def __rmatmul__(self, input: Tensor) -> Tensor: ...

    def __rmod__(self, input: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rmul__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __ror__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rpow__(self, input: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rrshift__(self, other: Any) -> Any: ...

    def __rshift__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rsub__(self, input: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rtruediv__(self, input: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __rxor__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def __setstate__(self, state: dict[str, Any]) -> None: ...

    def __sub__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __truediv__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __xor__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def _copy_from_numpy(self, array: Any) -> None:
        """Overwrite x with an array's elements."""

    def _copy_to_numpy(self, array: Any) -> None:
        """Overwrite an array with x's elements."""

    def _indices(self) -> Any:
        """The indices as they are."""

    @property
    def _memory(self) -> Any: ...

    def _meta_repr(self) -> str:
        """A tensor without its values."""

    def _nnz(self) -> Any:
        """How many indices there are."""

    def _register_post_grad_accumulation_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHook:
        """OneFlow's: call the hook with x's gradient once it is accumulated; its result replaces the gradient."""

    @property
    def _site(self) -> Any: ...

    def _values(self) -> Any:
        """The numbers as they are."""

    def _zero_grad_(self) -> None:
        """Overwrite the gradient with zeros."""

    def abs(self) -> Tensor:
        """The absolute value."""

    def abs_(self) -> Tensor:
        """`abs`, in place."""

    def acos(self) -> Tensor:
        """The arc cosine."""

    def acos_(self) -> Tensor:
        """`acos`, in place."""

    def acosh(self) -> Tensor:
        """The inverse of cosh."""

    def acosh_(self) -> Tensor:
        """`acosh`, in place."""

    def add(self, other: Any = None, *, alpha: Any = 1) -> Tensor:
        """x + alpha * other, element-wise; of a list of tensors alone, their sum."""

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """`add`, in place."""

    def addbmm(self, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * x + alpha * the sum of the products of two batches of matrices."""

    def addbmm_(self, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """`addbmm`, in place."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 / tensor2."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """In-place `addcdiv`."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 * tensor2."""

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """In-place `addcmul`."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (mat1 @ mat2)."""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addmm`, in place."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (mat @ vec)."""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addmv`, in place."""

    def addr(self, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * x + alpha * (vec1 outer vec2)."""

    def addr_(self, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """`addr`, in place."""

    def adjoint(self) -> Tensor:
        """The conjugate transpose."""

    def all(self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False) -> Tensor:
        """Whether every element is true, over some dimensions or all."""

    def allclose(
        self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> _bool:
        """Whether |x - other| <= atol + rtol * |other| for every element."""

    def amax(self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False) -> Tensor:
        """The largest of the elements, over some dimensions or all; ties share the gradient."""

    def amin(self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False) -> Tensor:
        """The smallest of the elements, over some dimensions or all; ties share the gradient."""

    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> Extremes:
        """The smallest and the largest element, over a dimension or all."""

    def angle(self) -> Tensor:
        """The angle of a complex number, from -pi to pi; of a real one, 0 or pi."""

    def any(self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False) -> Tensor:
        """Whether any element is true, over some dimensions or all."""

    def apply_(self, f: Callable[[Any], Any]) -> Tensor:
        """Overwrite each element of a CPU tensor with f(element). Slow."""

    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the largest element, along a dimension or of all."""

    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the smallest element, along a dimension or of all."""

    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """The indices that sort the elements along a dimension."""

    def argwhere(self, *, dtype: Any = None) -> Tensor:
        """The indices of the nonzero elements, one per row."""

    def as_strided(
        self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None
    ) -> Tensor:
        """A view of x's memory with these sizes and strides, from an offset; x must be dense."""

    def asin(self) -> Tensor:
        """The arc sine."""

    def asin_(self) -> Tensor:
        """`asin`, in place."""

    def asinh(self) -> Tensor:
        """The inverse of sinh."""

    def asinh_(self) -> Tensor:
        """`asinh`, in place."""

    def atan(self) -> Tensor:
        """The arc tangent."""

    def atan2(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The angle of the point (b, a), in the correct quadrant."""

    def atan2_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`atan2`, in place."""

    def atan_(self) -> Tensor:
        """`atan`, in place."""

    def atanh(self) -> Tensor:
        """The inverse of tanh."""

    def atanh_(self) -> Tensor:
        """`atanh`, in place."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (batch1 @ batch2)."""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`baddbmm`, in place."""

    def bernoulli(self, p: _float | None = None, *, generator: Any = None, dtype: Any = None) -> Tensor:
        """1 with probability x, else 0, element-wise; or with probability p everywhere, in x's shape."""

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Overwrite x with ones, each with probability p, and zeros; p may be a tensor."""

    def bfloat16(self, *, memory_format: Any = None) -> Tensor:
        """x as bfloat16."""

    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """How often each number occurs, or the sum of its weights."""

    def bitwise_and(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a & b, bit by bit."""

    def bitwise_and_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_and`, in place."""

    def bitwise_left_shift(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a << b."""

    def bitwise_left_shift_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_left_shift`, in place."""

    def bitwise_not(self) -> Tensor:
        """~x, bitwise; logical not of booleans."""

    def bitwise_not_(self) -> Tensor:
        """`bitwise_not`, in place."""

    def bitwise_or(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a | b, bit by bit."""

    def bitwise_or_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_or`, in place."""

    def bitwise_right_shift(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a >> b."""

    def bitwise_right_shift_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_right_shift`, in place."""

    def bitwise_xor(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a ^ b, bit by bit."""

    def bitwise_xor_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_xor`, in place."""

    def bmm(
        self, mat2: Tensor, transpose_a: _bool = False, transpose_b: _bool = False, alpha: _float = 1.0
    ) -> Tensor:
        """The products of two batches of matrices, with the extra arguments of `matmul`."""

    def bool(self, *, memory_format: Any = None) -> Tensor:
        """x as bool."""

    def broadcast_to(self, *shape: _int | Sequence[_int]) -> Tensor:
        """x broadcast to a larger shape, as a view."""

    def byte(self, *, memory_format: Any = None) -> Tensor:
        """x as uint8."""

    def cast(self, dtype: Any) -> Tensor:
        """x in another dtype; x itself if it has that dtype."""

    def cauchy_(self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the Cauchy distribution."""

    def cdouble(self, *, memory_format: Any = None) -> Tensor:
        """x as complex128."""

    def ceil(self) -> Tensor:
        """The smallest integer that is at least x."""

    def ceil_(self) -> Tensor:
        """`ceil`, in place."""

    def celu_(self, alpha: _float = 1.0) -> Tensor:
        """`celu`, in place."""

    def cfloat(self, *, memory_format: Any = None) -> Tensor:
        """x as complex64."""

    def char(self, *, memory_format: Any = None) -> Tensor:
        """x as int8."""

    def check_meta_consistency(self) -> None:
        """Does nothing: a global tensor's shape and dtype are compared across ranks when it is created."""

    def cholesky(self, upper: _bool = False) -> Tensor:
        """The lower triangular l of x = l @ l.T, for symmetric positive definite x; or its transpose, `upper`."""

    def cholesky_inverse(self, upper: _bool = False) -> Any:
        """The inverse of A, where L is A's Cholesky factor."""

    def cholesky_solve(self, L: Any, upper: _bool = False) -> Any:
        """The y of A @ y = x, where L is A's Cholesky factor."""

    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of at most `chunks` equal parts along a dimension, the last one smaller if need be."""

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """x limited to [min, max]: numbers, tensors that broadcast, or None."""

    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """In-place `clamp`."""

    def clamp_max(self, max: Any) -> Tensor:
        """x limited to at most max."""

    def clamp_max_(self, max: Any) -> Tensor:
        """In-place `clamp_max`."""

    def clamp_min(self, min: Any) -> Tensor:
        """x limited to at least min."""

    def clamp_min_(self, min: Any) -> Tensor:
        """In-place `clamp_min`."""

    def clone(self, memory_format: Any = None) -> Tensor:
        """A copy of x, which lies as x does unless a memory format is given."""

    def coalesce(self) -> Tensor:
        """A sparse tensor, each index once and in order; a dense one itself."""

    def conj(self) -> Tensor:
        """The complex conjugate; x itself, if it is real."""

    def conj_physical(self) -> Tensor:
        """The complex conjugate; x itself, if it is real."""

    def contiguous(self, memory_format: Any = None) -> Tensor:
        """x, or a contiguous copy of it: in the order of its dimensions, or with `channels_last` in that of NHWC."""

    def contiguous_(self) -> Tensor:
        """Make x contiguous, in place."""

    def copy_(self, value: Any, non_blocking: _bool = False) -> Tensor:
        """Overwrite x with the value, which may have another dtype, device or layout, and broadcasts."""

    def copysign(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a with the sign of b."""

    def copysign_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`copysign`, in place."""

    def corrcoef(self) -> Any:
        """The correlation coefficients of variables in rows."""

    def cos(self) -> Tensor:
        """The cosine."""

    def cos_(self) -> Tensor:
        """`cos`, in place."""

    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """`cosh`, in place."""

    def count_nonzero(self, dim: _int | Sequence[_int] | None = None) -> Tensor:
        """The number of nonzero elements, over some dimensions or all."""

    def cov(self, *, correction: _int = 1, fweights: Any = None, aweights: Any = None) -> Any:
        """The covariance matrix of variables in rows; observations may be repeated (fweights) or weighted (aweights)."""

    def cpu(self) -> Tensor:
        """x on the CPU."""

    def cross(self, other: Tensor, dim: _int | None = None) -> Tensor:
        """The cross product along a dimension, by default the first of size three."""

    def cuda(self, device: Any = None, non_blocking: _bool = False) -> Tensor:
        """x on a CUDA device, by default the current one."""

    def cummax(self, dim: _int) -> Ranked:
        """The cumulative largest element along a dimension, and its index."""

    def cummin(self, dim: _int) -> Ranked:
        """The cumulative smallest element along a dimension, and its index."""

    def cumprod(self, dim: _int, *, dtype: Any = None) -> Tensor:
        """The cumulative product along a dimension."""

    def cumprod_(self, *args: Any, **options: Any) -> Tensor:
        """`cumprod`, in place."""

    def cumsum(self, dim: _int, *, dtype: Any = None) -> Tensor:
        """The cumulative sum along a dimension."""

    def cumsum_(self, *args: Any, **options: Any) -> Tensor:
        """`cumsum`, in place."""

    def deg2rad(self) -> Tensor:
        """From degrees to radians."""

    def deg2rad_(self) -> Tensor:
        """`deg2rad`, in place."""

    def dense_dim(self) -> Any:
        """The number of dimensions of what each index has."""

    def det(self) -> Tensor:
        """The determinant of matrices."""

    def detach_(self) -> Tensor:
        """Detach the tensor from the autograd graph, in place."""

    @property
    def device_mesh(self) -> DeviceMesh: ...

    def diag(self, diagonal: _int = 0) -> Tensor:
        """A matrix with this diagonal, or the diagonal of a matrix."""

    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices with x's last dimension as their diagonals, zero elsewhere."""

    def diagflat(self, offset: _int = 0) -> Tensor:
        """A matrix with x, flattened, as a diagonal."""

    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A diagonal of two dimensions, as a new last dimension."""

    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """x with a diagonal of two dimensions replaced."""

    def diff(
        self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """The difference of neighboring elements along a dimension, n times over."""

    def digamma(self) -> Tensor:
        """The derivative of lgamma."""

    def digamma_(self) -> Tensor:
        """`digamma`, in place."""

    def dim_order(self) -> tuple[_int, ...]:
        """The dimensions in memory order: by stride, the largest first."""

    def dist(self, other: Any, p: _float = 2) -> Any:
        """The p-norm of the difference."""

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, element by element; rounded down with "floor", towards zero with "trunc"."""

    def div_(self, other: Any, rounding_mode: str | None = None) -> Tensor:
        """In-place `div`."""

    def dot(self, other: Tensor) -> Tensor:
        """The inner product of two vectors."""

    def double(self, *, memory_format: Any = None) -> Tensor:
        """x as float64."""

    def dsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """Views split along the third dimension."""

    def eig(self) -> tuple[Tensor, Tensor]:
        """The complex eigenvalues of square matrices, and their eigenvectors as columns, of length one."""

    def elu_(self, alpha: _float = 1.0) -> Tensor:
        """`elu`, in place."""

    def eq(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a equals b, element by element."""

    def eq_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`eq`, in place."""

    def equal(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape and elements."""

    def erf(self) -> Tensor:
        """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""

    def erf_(self) -> Tensor:
        """`erf`, in place."""

    def erfc(self) -> Tensor:
        """1 - erf(x)."""

    def erfc_(self) -> Tensor:
        """`erfc`, in place."""

    def erfinv(self) -> Tensor:
        """The inverse of erf."""

    def erfinv_(self) -> Tensor:
        """`erfinv`, in place."""

    def exp(self) -> Tensor:
        """e to the power x."""

    def exp2(self) -> Tensor:
        """2 to the power x."""

    def exp2_(self) -> Tensor:
        """`exp2`, in place."""

    def exp_(self) -> Tensor:
        """`exp`, in place."""

    def expand(self, *shape: _int | Sequence[_int]) -> Tensor:
        """x expanded to a larger shape, as a view; -1 keeps a dimension."""

    def expand_as(self, other: Tensor) -> Tensor:
        """x expanded to the other's shape, as a view."""

    def expm1(self) -> Tensor:
        """exp(x) - 1, exact near zero."""

    def expm1_(self) -> Tensor:
        """`expm1`, in place."""

    def exponential_(self, lambd: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the exponential distribution."""

    def fill_(self, value: Any) -> Tensor:
        """Overwrite every element with one value."""

    def fill_diagonal_(self, fill_value: Any, wrap: _bool = False) -> Tensor:
        """Overwrite the diagonal with one value."""

    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """x with a range of dimensions merged into one."""

    def flip(self, *dims: _int | Sequence[_int]) -> Tensor:
        """x with the order of elements reversed along some dimensions."""

    def fliplr(self) -> Tensor:
        """x with its columns reversed."""

    def flipud(self) -> Tensor:
        """x with its rows reversed."""

    def float(self, *, memory_format: Any = None) -> Tensor:
        """x as float32."""

    def float_power(self, exponent: Any) -> Any:
        """x ** exponent, in float64, or of complex numbers in complex128."""

    def float_power_(self, exponent: Any) -> Any:
        """`float_power`, in place."""

    def floor(self) -> Tensor:
        """The largest integer that is at most x."""

    def floor_(self) -> Tensor:
        """`floor`, in place."""

    def floor_divide(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a / b, rounded down."""

    def floor_divide_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`floor_divide`, in place."""

    def fmax(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The larger of a and b; the other one where one is NaN."""

    def fmin(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The smaller of a and b; the other one where one is NaN."""

    def fmod(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The remainder of a / b, with a's sign, as C's fmod."""

    def fmod_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`fmod`, in place."""

    def frac(self) -> Tensor:
        """The fractional part of x."""

    def frac_(self) -> Tensor:
        """`frac`, in place."""

    def frexp(self) -> Parts:
        """x as mantissa * 2 ** exponent, with mantissas from 0.5 to 1."""

    def full_tensor(self, *, grad_placements: Sequence[Any] | None = None) -> Tensor:
        """The whole as a local tensor, on each rank of the mesh."""

    def gather(self, dim: _int, index: Tensor, sparse_grad: _bool = False) -> Tensor:
        """The elements of x selected along a dimension by an index: y[i][j] = x[index[i][j]][j] for dim 0."""

    def gcd(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The greatest common divisor."""

    def gcd_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`gcd`, in place."""

    def ge(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is at least b, element by element."""

    def ge_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`ge`, in place."""

    def gelu(self, approximate: str = 'none') -> Tensor:
        """x * Phi(x), Phi being the normal distribution's CDF; approximate="tanh" for the usual fast formula."""

    def gelu_(self, approximate: str = 'none') -> Tensor:
        """`gelu`, in place."""

    def geometric_(self, p: _float, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the geometric distribution."""

    def global_id(self) -> _int:
        """A number that identifies this tensor, equal on all ranks that ask in the same order."""

    def global_to_global(
        self, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None, check_meta: _bool = False,
        copy: _bool = False
    ) -> Tensor:
        """The same logical tensor with another placement and sbp."""

    def gt(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is greater than b, element by element."""

    def gt_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`gt`, in place."""

    def half(self, *, memory_format: Any = None) -> Tensor:
        """x as float16."""

    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """x where its absolute value is above lambd, zero elsewhere."""

    def hardsigmoid_(self) -> Tensor:
        """`hardsigmoid`, in place."""

    def hardswish_(self) -> Tensor:
        """`hardswish`, in place."""

    def hardtanh_(self, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor:
        """`hardtanh`, in place."""

    def heaviside(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """0 below zero, 1 above, b at zero."""

    def heaviside_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`heaviside`, in place."""

    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Any:
        """A histogram with equal bins over [min, max], or over x's range if both are equal."""

    def histogram(
        self, bins: Any, *, range: Sequence[_float] | None = None, weight: Any = None, density: _bool = False
    ) -> Histogram:
        """A histogram by edges: a number of equal bins over a range, by default x's own, or the given edges. Optionally
        weighted, or as a `density`, whose integral is 1.
        """

    def hsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """Views split along the second dimension, of a vector along its only one."""

    def hypot(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """sqrt(a * a + b * b), without overflow."""

    def hypot_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`hypot`, in place."""

    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, of order 0."""

    def i0_(self) -> Tensor:
        """`i0`, in place."""

    def igamma(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The lower incomplete gamma function of order a at b, regularized."""

    def igamma_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`igamma`, in place."""

    def igammac(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The upper incomplete gamma function of order a at b, regularized."""

    def igammac_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`igammac`, in place."""

    @property
    def imag(self) -> Tensor:
        """The imaginary part, sharing memory."""

    def in_top_k(self, predictions: Tensor, k: _int) -> Tensor:
        """Whether each target is among the k largest predictions of its row."""

    def index(self, indices: Sequence[Tensor | None]) -> Tensor:
        """x[indices]: the elements at these indices; None keeps a dimension."""

    def index_add(
        self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float | _int | _bool | complex = 1
    ) -> Tensor:
        """x with alpha * source added to its slices along a dimension at these indices."""

    def index_add_(
        self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float | _int | _bool | complex = 1
    ) -> Tensor:
        """`index_add`, in place."""

    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """x with the slices at these indices along a dimension replaced."""

    def index_copy_(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """`index_copy`, in place."""

    def index_fill(self, dim: _int, index: Tensor, value: Any) -> Tensor:
        """x with the slices at these indices along a dimension filled with one value."""

    def index_fill_(self, dim: _int, index: Tensor, value: Any) -> Tensor:
        """`index_fill`, in place."""

    def index_put(self, indices: Sequence[Tensor | None], value: Tensor, accumulate: _bool = False) -> Tensor:
        """x with the value at these indices, or added there."""

    def index_put_(self, indices: Sequence[Tensor | None], value: Tensor, accumulate: _bool = False) -> Tensor:
        """`index_put`, in place."""

    def index_reduce(
        self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True
    ) -> Tensor:
        """x with the source's slices scattered along a dimension at the indices; duplicates are reduced: "prod", "mean",
        "amax" or "amin".
        """

    def index_reduce_(self, *args: Any, **options: Any) -> Tensor:
        """`index_reduce`, in place."""

    def index_select(self, dim: _int, index: Tensor) -> Tensor:
        """The slices of x along a dimension at these indices."""

    def indices(self) -> Any:
        """The indices of a coalesced sparse tensor, a row for each of its sparse dimensions."""

    def inner(self, other: Any) -> Any:
        """The inner product along the last dimension of both."""

    def int(self, *, memory_format: Any = None) -> Tensor:
        """x as int32."""

    def inverse(self) -> Tensor:
        """The inverse of matrices."""

    def is_coalesced(self) -> Any:
        """Whether each index is there once, in order."""

    def is_complex(self) -> _bool:
        """Whether x holds complex numbers."""

    def is_conj(self) -> _bool:
        """False: conjugation is never lazy."""

    @property
    def is_consistent(self) -> Any: ...

    @property
    def is_cpu(self) -> Any: ...

    def is_inference(self) -> _bool:
        """Whether x was made in torch's inference mode; in Weft's, tensors are ordinary ones."""

    @property
    def is_meta(self) -> Any: ...

    @property
    def is_mkldnn(self) -> Any: ...

    @property
    def is_mps(self) -> Any: ...

    def is_neg(self) -> _bool:
        """False: negation is never lazy here."""

    @property
    def is_nested(self) -> Any: ...

    def is_nonzero(self) -> _bool:
        """Whether the only element of x is nonzero."""

    def is_pinned(self) -> _bool:
        """Whether x is in page-locked memory."""

    @property
    def is_quantized(self) -> Any: ...

    def is_same_size(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape."""

    def is_set_to(self, other: Tensor) -> _bool:
        """Whether two tensors share memory, shape and strides."""

    def is_shared(self) -> _bool:
        """Whether x is in memory that other processes see."""

    def is_signed(self) -> _bool:
        """Whether x's dtype has negative numbers."""

    @property
    def is_sparse(self) -> Any: ...

    @property
    def is_sparse_csr(self) -> Any: ...

    @property
    def is_xpu(self) -> Any: ...

    def isclose(
        self, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
    ) -> Tensor:
        """Whether |x - other| <= atol + rtol * |other|, element by element."""

    def isfinite(self) -> Tensor:
        """Whether x is a finite number."""

    def isinf(self) -> Tensor:
        """Whether x is infinite."""

    def isnan(self) -> Tensor:
        """Whether x is not a number."""

    def isneginf(self) -> Tensor:
        """Whether x is negative infinity."""

    def isposinf(self) -> Tensor:
        """Whether x is positive infinity."""

    def isreal(self) -> Tensor:
        """Whether the elements have no imaginary part."""

    def istft(
        self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Any = None,
        center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None,
        return_complex: _bool = False
    ) -> Any:
        """The inverse of `stft`: overlapping windows are averaged."""

    @property
    def itemsize(self) -> Any: ...

    def kaiming_normal_(
        self, a: _float = 0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', generator: Any = None, *,
        data_format: str = 'NCHW'
    ) -> Tensor:
        """Kaiming (He) initialization, normal: keeps the variance through a nonlinearity."""

    def kaiming_uniform_(
        self, a: _float = 0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', generator: Any = None, *,
        data_format: str = 'NCHW'
    ) -> Tensor:
        """Kaiming (He) initialization, uniform: keeps the variance through a nonlinearity."""

    def kron(self, other: Any) -> Any:
        """The Kronecker product."""

    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> Ranked:
        """The k-th smallest element along a dimension, and its index."""

    @property
    def layout(self) -> Any: ...

    def lcm(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The least common multiple."""

    def lcm_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`lcm`, in place."""

    def ldexp(self, other: Any) -> Any:
        """x * 2 ** other."""

    def ldexp_(self, *args: Any, **options: Any) -> Tensor:
        """`ldexp`, in place."""

    def le(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is at most b, element by element."""

    def le_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`le`, in place."""

    def leaky_relu_(self, alpha: _float = 0.01) -> Tensor:
        """`leaky_relu`, in place."""

    def lerp(self, b: Tensor, weight: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a + weight * (b - a): a where the weight is 0, b where it is 1."""

    def lerp_(self, b: Tensor, weight: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`lerp`, in place."""

    def lgamma(self) -> Tensor:
        """The logarithm of the gamma function's absolute value."""

    def lgamma_(self) -> Tensor:
        """`lgamma`, in place."""

    def local_to_global(
        self, placement: Placement | None = None, sbp: Any = None, *, check_meta: _bool = True, copy: _bool = False
    ) -> Tensor:
        """The global tensor whose shards are the ranks' local tensors."""

    def log(self) -> Tensor:
        """The natural logarithm."""

    def log10(self) -> Tensor:
        """The logarithm to base 10."""

    def log10_(self) -> Tensor:
        """`log10`, in place."""

    def log1p(self) -> Tensor:
        """log(1 + x), exact near zero."""

    def log1p_(self) -> Tensor:
        """`log1p`, in place."""

    def log2(self) -> Tensor:
        """The logarithm to base 2."""

    def log2_(self) -> Tensor:
        """`log2`, in place."""

    def log_(self) -> Tensor:
        """`log`, in place."""

    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the log-normal distribution."""

    def log_softmax(self, dim: _int | None = None, dtype: Any = None) -> Tensor:
        """log(softmax(x)), computed without overflow."""

    def logaddexp(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """log(exp(a) + exp(b)), without overflow."""

    def logaddexp2(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """log2(2 ** a + 2 ** b), without overflow."""

    def logcumsumexp(self, dim: _int) -> Tensor:
        """The logarithm of the cumulative sum of exp(x), without overflow."""

    def logdet(self) -> Any:
        """The logarithm of the determinant."""

    def logical_and(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a and b are both true, as non-zero is."""

    def logical_and_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`logical_and`, in place."""

    def logical_not(self) -> Tensor:
        """True where x is zero or False."""

    def logical_not_(self) -> Tensor:
        """`logical_not`, in place."""

    def logical_or(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a or b is true, as non-zero is."""

    def logical_or_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`logical_or`, in place."""

    def logical_xor(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether one of a and b is true, and one isn't."""

    def logical_xor_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`logical_xor`, in place."""

    def logit(self, eps: _float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if eps is given."""

    def logit_(self, eps: _float | None = None) -> Tensor:
        """`logit`, in place."""

    def logsumexp(self, dim: _int | tuple[_int, ...] | list[_int], keepdim: _bool = False) -> Tensor:
        """log(sum(exp(x))) over some dimensions, without overflow."""

    def long(self, *, memory_format: Any = None) -> Tensor:
        """x as int64."""

    def lt(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is less than b, element by element."""

    def lt_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`lt`, in place."""

    def lu(self, pivot: _bool = True, get_infos: _bool = False) -> tuple[Any, ...]:
        """torch's older name of `linalg.lu_factor_ex`: the factors in one matrix, the pivots; with `get_infos` the error
        code, too.
        """

    def lu_solve(self, LU_data: Any, LU_pivots: Any) -> Any:
        """The x of A @ x = b, from `lu_factor`'s result."""

    @property
    def mH(self) -> Tensor:
        """The conjugate transpose."""

    @property
    def mT(self) -> Tensor:
        """x with its last two dimensions swapped."""

    def map_(self, other: Tensor, f: Callable[[Any, Any], Any]) -> Tensor:
        """Overwrite each element of a CPU tensor with f(element, the other's element). Slow."""

    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """x with `value` where the mask is true."""

    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """In-place `masked_fill`."""

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """x with the source's elements, in order, where the mask is true."""

    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """`masked_scatter`, in place."""

    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements of x where the mask is true, as a vector; a mask of numbers is true where nonzero."""

    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product over the last two dimensions; leading dimensions broadcast; a 1-d operand is a vector."""

    def matrix_exp(self) -> Any:
        """The matrix exponential."""

    def matrix_power(self, n: _int) -> Any:
        """The n-th power of a matrix; of its inverse, if n is negative."""

    @overload
    def max(self) -> Tensor:
        """The maximum; with `dim`, that of each slice and its index; of two tensors, the element-wise maximum."""

    @overload
    def max(self, dim: _int, keepdim: _bool = False) -> Ranked: ...

    @overload
    def max(self, other: Tensor) -> Tensor: ...

    def maximum(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The larger of a and b, element by element."""

    def mean(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None
    ) -> Tensor:
        """The mean of the elements, over some dimensions or all."""

    @overload
    def median(self) -> Tensor:
        """The median; with `dim`, that of each slice and its index. Of two middle elements, the lower one."""

    @overload
    def median(self, dim: _int, keepdim: _bool = False) -> Ranked: ...

    @overload
    def min(self) -> Tensor:
        """The minimum; with `dim`, that of each slice and its index; of two tensors, the element-wise minimum."""

    @overload
    def min(self, dim: _int, keepdim: _bool = False) -> Ranked: ...

    @overload
    def min(self, other: Tensor) -> Tensor: ...

    def minimum(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The smaller of a and b, element by element."""

    def mish(self) -> Tensor:
        """x * tanh(softplus(x))."""

    def mish_(self) -> Tensor:
        """`mish`, in place."""

    def mm(self, other: Tensor) -> Tensor:
        """The product of two matrices."""

    def mode(self, dim: _int = -1, keepdim: _bool = False) -> Ranked:
        """The most frequent element along a dimension, and its index."""

    def movedim(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """x with some dimensions moved, the others in order."""

    def msort(self) -> Tensor:
        """x sorted along its first dimension."""

    def mul(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a * b, element by element."""

    def mul_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`mul`, in place."""

    def multinomial(self, num_samples: _int, replacement: _bool = False, generator: Any = None) -> Tensor:
        """Draws of indices, with probabilities proportional to x along its last dimension."""

    def mv(self, other: Tensor) -> Tensor:
        """The product of a matrix and a vector."""

    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension p."""

    def mvlgamma_(self, p: _int) -> Tensor:
        """`mvlgamma`, in place."""

    @property
    def names(self) -> Any: ...

    def nan_to_num(
        self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
    ) -> Tensor:
        """x with NaN replaced by 0, and infinities by the largest and least finite numbers, unless given."""

    def nan_to_num_(
        self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
    ) -> Tensor:
        """`nan_to_num`, in place."""

    def nanmean(self, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None) -> Any:
        """The mean, ignoring NaN."""

    def nanmedian(self, dim: _int | None = None, keepdim: _bool = False) -> Any:
        """`median`, ignoring NaN."""

    def nanquantile(
        self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear'
    ) -> Tensor:
        """`quantile`, ignoring NaN."""

    def nansum(self, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None) -> Tensor:
        """The sum, ignoring NaN."""

    def narrow(self, dim: _int, start: _int, length: _int, step: _int = 1) -> Tensor:
        """`length` elements along a dimension: start, start + step, ..."""

    @property
    def nbytes(self) -> Any: ...

    def ne(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a differs from b, element by element."""

    def ne_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`ne`, in place."""

    def neg(self) -> Tensor:
        """-x."""

    def neg_(self) -> Tensor:
        """`neg`, in place."""

    def new(self, *data: Any) -> Tensor:
        """A tensor of x's dtype on x's device, from data or a size."""

    def new_empty(
        self, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
        sbp: Any = None, requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size, otherwise like x: see `flow.empty`."""

    def new_full(
        self, size: Any, fill_value: Any, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
        requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size and value, otherwise like x."""

    def new_ones(
        self, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
        sbp: Any = None, requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size, otherwise like x: see `flow.ones`."""

    def new_tensor(
        self, data: Any, dtype: Any = None, device: Any = None, requires_grad: _bool = False, placement: Any = None,
        sbp: Any = None
    ) -> Tensor:
        """A tensor of this data, otherwise like x."""

    def new_zeros(
        self, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
        sbp: Any = None, requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size, otherwise like x: see `flow.zeros`."""

    def nextafter(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The next floating-point number after a, towards b."""

    def nextafter_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`nextafter`, in place."""

    def nms(self, scores: Tensor, iou_threshold: _float) -> Tensor:
        """Non-maximum suppression: the indices of boxes (x1, y1, x2, y2) that overlap no better one by more than the
        threshold.
        """

    def nonzero(self, as_tuple: _bool = False) -> Any:
        """The indices of the nonzero elements, one per row; `as_tuple`: one tensor per dimension."""

    def norm(
        self, ord: Any = None, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False,
        dtype: Any = None, *, p: Any = None
    ) -> Tensor:
        """The norm of vectors, or with "fro" of matrices."""

    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the normal distribution."""

    def orthogonal_(self, gain: _float = 1.0, generator: Any = None) -> Tensor:
        """A (semi-)orthogonal matrix times `gain`."""

    def outer(self, other: Tensor) -> Tensor:
        """Every product of an element of x and one of the other."""

    def permute(self, *dims: _int | Sequence[_int]) -> Tensor:
        """x with its dimensions permuted."""

    def pin_memory(self) -> Tensor:
        """x in pinned memory, from which copies to a CUDA device overlap with compute."""

    def pinverse(self, rcond: _float = 1e-15) -> Any:
        """`linalg.pinv` with singular values below `rcond` times the largest taken as zero."""

    @property
    def placements(self) -> tuple[Placement, ...]: ...

    def polygamma(self, n: _int) -> Tensor:
        """The n-th derivative of digamma, which is the derivative of lgamma."""

    def polygamma_(self, n: _int) -> Tensor:
        """`polygamma`, in place."""

    def positive(self) -> Tensor:
        """x."""

    def pow(self, exponent: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a to the power b, element by element."""

    def pow_(self, exponent: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`pow`, in place."""

    def prod(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None
    ) -> Tensor:
        """The product of the elements, over some dimensions or all."""

    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """x with the elements at these indices of the flattened x replaced or added to."""

    def put_(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """`put`, in place."""

    def qr(self, mode: str = 'reduced') -> QR:
        """The QR decomposition, x = q @ r: "reduced", or "complete" with a square q; with "r", q is empty. The columns that
        complete q have no gradient.
        """

    def quantile(
        self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear'
    ) -> Tensor:
        """The q-th quantile of the elements, or NaN if one of them is; a vector q gives a new first dimension."""

    def rad2deg(self) -> Tensor:
        """From radians to degrees."""

    def rad2deg_(self) -> Tensor:
        """`rad2deg`, in place."""

    def random_(self, from_: _int | None = None, to: _int | None = None, *, generator: Any = None) -> Tensor:
        """Overwrite x with integers from `from_` to `to` - 1; `random_(n)` draws from 0 to n - 1, and without bounds over
        the dtype's range.
        """

    def ravel(self) -> Tensor:
        """x flattened; a copy, unless x is contiguous."""

    @property
    def real(self) -> Tensor:
        """The real part, sharing memory; x itself, if it is real."""

    def reciprocal(self) -> Tensor:
        """1 / x."""

    def reciprocal_(self) -> Tensor:
        """`reciprocal`, in place."""

    def record_stream(self, stream: Any) -> None:
        """Does nothing: memory is freed after its last reader."""

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Any] | None = None, *, async_op: _bool = False
    ) -> Tensor:
        """The same value in another layout."""

    def relu(self) -> Tensor:
        """max(x, 0), element by element."""

    def relu_(self) -> Tensor:
        """`relu`, in place."""

    def remainder(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The remainder of a / b, with b's sign, as Python's %."""

    def remainder_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`remainder`, in place."""

    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Any:
        """x with each slice along a dimension scaled down to a p-norm of at most maxnorm."""

    def renorm_(self, p: _float, dim: _int, maxnorm: _float) -> Any:
        """`renorm`, in place."""

    def repeat(self, *sizes: _int | Sequence[_int]) -> Tensor:
        """Copies of x, so many along each dimension."""

    def repeat_interleave(
        self, repeats: _int | Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None
    ) -> Tensor:
        """Every element, or slice along a dimension, repeated so many times; of repeats alone, their numbers: 0, 1, ..."""

    def reshape(self, *shape: _int | Sequence[_int]) -> Tensor:
        """x with another shape, sharing memory if strides allow; -1 is inferred."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """x with the other's shape."""

    def resize(
        self, size: tuple[_int, ...] | list[_int], mode: str = 'nearest', align_corners: _bool = False,
        scales: Sequence[_float] | None = None
    ) -> Tensor:
        """(batch, channels, ...) resized by nearest-neighbor or linear interpolation."""

    def resize_(self, *size: _int | Sequence[_int]) -> Tensor:
        """Change the shape in place; existing elements keep their order, new ones are uninitialized."""

    def resize_as_(self, other: Tensor) -> Tensor:
        """`resize_` to the other's shape."""

    def resolve_conj(self) -> Tensor:
        """x: conjugation and negation are never lazy here."""

    def resolve_neg(self) -> Tensor:
        """x: conjugation and negation are never lazy here."""

    def roll(
        self, shifts: _int | tuple[_int, ...] | list[_int], dims: _int | tuple[_int, ...] | list[_int] | None = ...
    ) -> Tensor:
        """x rotated along some dimensions; without dims, as if it were flat."""

    def rot90(self, k: _int = 1, dims: Sequence[_int] = ...) -> Tensor:
        """x rotated k times by 90 degrees in the plane of two dimensions."""

    def round(self, decimals: _int = 0) -> Tensor:
        """The nearest integer, ties to even; or the nearest number with so many decimals."""

    def round_(self, *, decimals: _int = 0) -> Tensor:
        """In-place `round`."""

    def rsqrt(self) -> Tensor:
        """One over the square root."""

    def rsqrt_(self) -> Tensor:
        """`rsqrt`, in place."""

    def scatter(self, dim: _int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
        """x with src written at an index along a dimension; or added (reduce="add"), or multiplied ("multiply")."""

    def scatter_(self, dim: _int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
        """In-place `scatter`."""

    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """x with src added along a dimension at the index."""

    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """`scatter_add`, in place."""

    def scatter_reduce(
        self, dim: _int, index: Tensor, src: Any, reduce: str, *, include_self: _bool = True
    ) -> Tensor:
        """x with src scattered along a dimension at the index; duplicates are reduced: "sum", "prod", "mean", "amax" or
        "amin". `include_self`: together with x's own elements.
        """

    def scatter_reduce_(
        self, dim: _int, index: Tensor, src: Any, reduce: str, *, include_self: _bool = True
    ) -> Tensor:
        """`scatter_reduce`, in place."""

    def select(self, dim: _int, index: _int) -> Tensor:
        """One slice along a dimension, which is removed."""

    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """x with one slice along a dimension replaced."""

    def selu(self) -> Tensor:
        """elu, scaled to keep a network's variance near one."""

    def selu_(self) -> Tensor:
        """`selu`, in place."""

    def set_(self, source: Tensor) -> Tensor:
        """Set x to the source's memory and shape."""

    def sgn(self) -> Tensor:
        """-1, 0 or 1 by the sign of x; of a complex number, x / abs(x)."""

    def sgn_(self) -> Tensor:
        """`sgn`, in place."""

    def share_memory_(self) -> Tensor:
        """Move a CPU tensor's data to memory that other processes see."""

    def short(self, *, memory_format: Any = None) -> Tensor:
        """x as int16."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""

    def sigmoid_(self) -> Tensor:
        """`sigmoid`, in place."""

    def sign(self) -> Tensor:
        """-1, 0 or 1, by the sign of x."""

    def sign_(self) -> Tensor:
        """`sign`, in place."""

    def signbit(self) -> Tensor:
        """Whether x has a minus sign."""

    def silu(self) -> Tensor:
        """x * sigmoid(x)."""

    def silu_(self) -> Tensor:
        """`silu`, in place."""

    def sin(self) -> Tensor:
        """The sine."""

    def sin_(self) -> Tensor:
        """`sin`, in place."""

    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), and 1 at zero."""

    def sinc_(self) -> Tensor:
        """`sinc`, in place."""

    def sinh(self) -> Tensor:
        """The hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """`sinh`, in place."""

    def slice_scatter(
        self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1
    ) -> Tensor:
        """x with the slice from start to end along a dimension replaced."""

    def slogdet(self) -> SignAndSize:
        """The sign of the determinant of matrices, and the logarithm of its absolute value."""

    def softmax(self, dim: _int | None = None, dtype: Any = None) -> Tensor:
        """exp(x) divided by its sum along a dimension."""

    def softplus(self, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """log(1 + exp(beta x)) / beta: a smooth relu; x itself where beta x is above the threshold."""

    def softsign(self) -> Tensor:
        """x / (1 + |x|)."""

    def solve(self, b: Tensor) -> Tensor:
        """The x of a @ x = b, for matrices a and b."""

    def sort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Ranked:
        """The elements sorted along a dimension, and their indices."""

    def sparse_dim(self) -> Any:
        """The number of dimensions that have indices."""

    def split(self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: of one size, the last one smaller if need be; or of these sizes."""

    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts of these sizes along a dimension."""

    def sqrt(self) -> Tensor:
        """The square root."""

    def sqrt_(self) -> Tensor:
        """`sqrt`, in place."""

    def square(self) -> Tensor:
        """x * x."""

    def square_(self) -> Tensor:
        """`square`, in place."""

    def squeeze(self, dim: _int | tuple[_int, ...] | list[_int] | None = None) -> Tensor:
        """x without its dimensions of size one, or without the given ones of them."""

    def squeeze_(self, *args: Any, **options: Any) -> Tensor:
        """`squeeze`, in place: the tensor's shape changes."""

    def std(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, unbiased: _bool = True, keepdim: _bool = False,
        *, correction: _int | None = None
    ) -> Tensor:
        """The standard deviation of the elements, over some dimensions or all."""

    def stft(
        self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Any = None,
        center: _bool = True, pad_mode: str = 'reflect', normalized: _bool = False, onesided: _bool | None = None,
        return_complex: _bool | None = None, align_to_window: _bool | None = None
    ) -> Any:
        """The short-time Fourier transform, one window every `hop_length` samples: (..., frequencies, windows)."""

    def storage(self) -> Any:
        """`untyped_storage()` as elements of x's dtype: `size()` counts them."""

    def sub(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """x - alpha * other, element by element."""

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """`sub`, in place."""

    def sum(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None
    ) -> Tensor:
        """The sum of the elements, over some dimensions or all."""

    def sum_to_size(self, *size: _int | Sequence[_int]) -> Tensor:
        """x summed to a size that broadcasts to x's."""

    def svd(self, some: _bool = True, compute_uv: _bool = True) -> SVDWithV:
        """The singular value decomposition, x = u @ diag(s) @ v.T, reduced with `some`. Returns u, s and v."""

    def swapaxes_(self, *args: Any, **options: Any) -> Tensor:
        """`swapaxes`, in place: the tensor's shape changes."""

    def swapdims_(self, *args: Any, **options: Any) -> Tensor:
        """`swapdims`, in place: the tensor's shape changes."""

    def t(self) -> Tensor:
        """The transpose of a matrix; a view of a vector."""

    def t_(self, *args: Any, **options: Any) -> Tensor:
        """`t`, in place: the tensor's shape changes."""

    def take(self, index: Tensor) -> Tensor:
        """The elements at these indices of the flattened x."""

    def take_along_dim(self, indices: Tensor, dim: _int | None = None) -> Tensor:
        """The elements of x at these indices along a dimension, the others broadcast; without `dim`, of x flattened."""

    def tan(self) -> Tensor:
        """The tangent."""

    def tan_(self) -> Tensor:
        """`tan`, in place."""

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """`tanh`, in place."""

    def tensor_split(self, indices_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: a number of balanced ones, or split at these indices."""

    def threshold_(self, threshold: _float, value: _float) -> Tensor:
        """`threshold`, in place."""

    def tile(self, *dims: _int | Sequence[_int]) -> Tensor:
        """`repeat`, with missing leading counts taken as one."""

    def to(
        self, *targets: Any, dtype: Any = None, device: Any = None, other: Tensor | None = None, copy: _bool = False,
        non_blocking: _bool = False, placement: Placement | None = None, sbp: Any = None, memory_format: Any = None
    ) -> Tensor:
        """x with another dtype, device, or both as of another tensor: `to(flow.half)`, `to("cuda", flow.half)`, `to(y)`"""

    def to_consistent(self, placement: Any = None, sbp: Any = None, **options: Any) -> Any:
        """`to_global`, under its deprecated name."""

    def to_dense(self) -> Tensor:
        """x itself, unless it is sparse."""

    def to_global(
        self, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None,
        check_meta: _bool | None = None, copy: _bool = False
    ) -> Any:
        """A global tensor from local shards, or with another layout; nested tensors are converted one by one."""

    def to_local(self, *, copy: _bool = False, grad_placements: Any = None) -> Any:
        """This rank's shard of a global tensor, sharing memory; nested tensors are converted one by one."""

    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ranked:
        """The k largest (or smallest) elements along a dimension, and their indices."""

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""

    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """x with two dimensions swapped."""

    def transpose_(self, *args: Any, **options: Any) -> Tensor:
        """`transpose`, in place: the tensor's shape changes."""

    def triangular_solve(
        self, A: Any, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False
    ) -> SolvedTriangle:
        """The y of A @ y = x for triangular A, and A; torch's older name of `linalg.solve_triangular`."""

    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of every matrix, from a diagonal on; zeros elsewhere."""

    def tril_(self, diagonal: _int = 0) -> Tensor:
        """`tril`, in place."""

    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of every matrix, from a diagonal on; zeros elsewhere."""

    def triu_(self, diagonal: _int = 0) -> Tensor:
        """`triu`, in place."""

    def trunc(self) -> Tensor:
        """x without its fractional part."""

    def trunc_(self) -> Tensor:
        """`trunc`, in place."""

    def trunc_normal_(
        self, mean: _float = 0.0, std: _float = 1.0, a: _float = -2.0, b: _float = 2.0, generator: Any = None
    ) -> Tensor:
        """Draw from the normal distribution truncated to [a, b]."""

    def type(self, dtype: Any = None, non_blocking: _bool = False) -> Any:
        """x with another dtype, or as a type such as flow.FloatTensor, which also determines the device; without one, the
        name of x's type, such as weft.FloatTensor.
        """

    def type_as(self, other: Tensor) -> Tensor:
        """x in the other's dtype, on its device."""

    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of every slice along a dimension, which is removed."""

    def unflatten(self, dim: _int, sizes: Sequence[_int]) -> Tensor:
        """x with a dimension split into several; one of their sizes may be -1."""

    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """The sliding windows of this size and step along a dimension, as a view."""

    @overload
    def uniform_(self, from_: _float = 0.0, to: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the uniform distribution over [from_, to)."""

    @overload
    def uniform_(self, a: _float = 0.0, b: _float = 1.0, *, generator: Any = None) -> Tensor: ...

    def unique(
        self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False,
        dim: _int | None = None, *, dtype: Any = None
    ) -> Any:
        """The unique elements, sorted; optionally the index of each element in them, and their counts."""

    def unique_consecutive(
        self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
    ) -> Any:
        """The elements with consecutive duplicates removed."""

    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of at most `chunks` equal parts along a dimension, the last one smaller if need be."""

    def unsafe_split(self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: of one size, the last one smaller if need be; or of these sizes."""

    def unsafe_split_with_sizes(
        self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0
    ) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: of one size, the last one smaller if need be; or of these sizes."""

    def unsqueeze(self, dim: _int) -> Tensor:
        """x with a new dimension of size one."""

    def unsqueeze_(self, *args: Any, **options: Any) -> Tensor:
        """`unsqueeze`, in place: the tensor's shape changes."""

    def untyped_storage(self) -> Any:
        """The memory of x, or of this rank's shard: torch's own storage, with `data_ptr()` and `nbytes()`."""

    def values(self) -> Any:
        """The numbers of a coalesced sparse tensor."""

    def var(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, unbiased: _bool = True, keepdim: _bool = False,
        *, correction: _int | None = None
    ) -> Tensor:
        """The variance of the elements, over some dimensions or all; unbiased by default."""

    def vdot(self, other: Any) -> Any:
        """The inner product of two vectors, the first one conjugated."""

    def view(self, *shape: _int | Sequence[_int]) -> Tensor:
        """x with another shape, sharing memory; -1 is inferred. Given a dtype, x's memory reinterpreted."""

    def view_as(self, other: Tensor) -> Tensor:
        """x with the other's shape, sharing memory."""

    def vsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """Views split along the first dimension."""

    def where(self, condition: Any, other: Any) -> Tensor:
        """x where the condition is true, the other elsewhere. In OneFlow's order, `condition.where(x, other)`, the mask
        is first.
        """

    def xavier_normal_(self, gain: _float = 1.0, generator: Any = None, *, data_format: str = 'NCHW') -> Tensor:
        """Xavier (Glorot) initialization, normal: keeps the variance forward and backward."""

    def xavier_uniform_(self, gain: _float = 1.0, generator: Any = None, *, data_format: str = 'NCHW') -> Tensor:
        """Xavier (Glorot) initialization, uniform: keeps the variance forward and backward."""

    def xlogy(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a * log(b), and 0 where a is 0."""

    def xlogy_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`xlogy`, in place."""

    def zero_(self) -> Tensor:
        """Overwrite every element with zero."""

    absolute = abs
    absolute_ = abs_
    arccos = acos
    arccos_ = acos_
    arccosh = acosh
    arccosh_ = acosh_
    arcsin = asin
    arcsin_ = asin_
    arcsinh = asinh
    arcsinh_ = asinh_
    arctan = atan
    arctan2 = atan2
    arctan2_ = atan2_
    arctan_ = atan_
    arctanh = atanh
    arctanh_ = atanh_
    clip = clamp
    clip_ = clamp_
    divide = div
    divide_ = div_
    fix = trunc
    fix_ = trunc_
    ger = outer
    greater = gt
    greater_ = gt_
    greater_equal = ge
    greater_equal_ = ge_
    less = lt
    less_ = lt_
    less_equal = le
    less_equal_ = le_
    moveaxis = movedim
    multiply = mul
    multiply_ = mul_
    negative = neg
    negative_ = neg_
    not_equal = ne
    not_equal_ = ne_
    subtract = sub
    subtract_ = sub_
    swapaxes = transpose
    swapdims = transpose
    true_divide = div
    true_divide_ = div_
