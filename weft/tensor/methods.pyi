# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Where Tensor's methods that are ops have their types: `methods.pyi`, written by `make stubs`."""

from builtins import bool as _bool, float as _float, int as _int
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload
from weft.core.placement import Placement
from weft.functional.linalg.decompositions import QR, SVDWithV, SignAndSize
from weft.functional.pointwise.powers import Parts
from weft.functional.reduce.histograms import Histogram
from weft.functional.reduce.sorting import Ranked
from weft.tensor.hook import RemovableHook
from weft.tensor.tensor import Tensor

class Methods:
    @property
    def H(self) -> Tensor:
        """The conjugate with its last two dimensions exchanged."""

    @property
    def T(self) -> Tensor:
        """x with its dimensions in the reverse order."""

    def __abs__(self) -> Tensor: ...

    def __add__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __and__(self, other: Tensor | _float | _int | _bool | complex) -> Tensor: ...

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One of numpy's functions, on arrays. By itself, numpy would call the tensor's method of its name, which may mean
        something else: torch's `repeat` and `nonzero` aren't numpy's.
        """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: _bool = False) -> Tensor:
        """What one of numpy's functions of arrays made of a tensor, as a tensor: `np.sqrt(x)`."""

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

    def _register_post_grad_accumulation_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHook:
        """OneFlow's: call the hook with x's gradient, once it is accumulated; what the hook gives is the gradient then."""

    @property
    def _site(self) -> Any: ...

    def _zero_grad_(self) -> None:
        """Overwrite the gradient with zeros."""

    def abs(self) -> Tensor:
        """The absolute value."""

    def abs_(self) -> Tensor:
        """`abs`, into the memory of its first operand."""

    def absolute(self) -> Tensor:
        """The absolute value."""

    def absolute_(self) -> Tensor:
        """`abs`, into the memory of its first operand."""

    def acos(self) -> Tensor:
        """The arc cosine."""

    def acos_(self) -> Tensor:
        """`acos`, into the memory of its first operand."""

    def acosh(self) -> Tensor:
        """The inverse of cosh."""

    def acosh_(self) -> Tensor:
        """`acosh`, into the memory of its first operand."""

    def add(self, other: Any = None, *, alpha: Any = 1) -> Tensor:
        """x + alpha * other, element by element; of a list of tensors alone, their sum."""

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """`add`, into x's memory."""

    def addbmm(self, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * x + alpha * the sum of the products of two batches of matrices."""

    def addbmm_(self, *args: Any, **options: Any) -> Tensor:
        """`addbmm`, into x's memory."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 / tensor2."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """`addcdiv`, into x's memory."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """x + value * tensor1 * tensor2."""

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """`addcmul`, into x's memory."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (mat1 @ mat2)."""

    def addmm_(self, *args: Any, **options: Any) -> Tensor:
        """`addmm`, into x's memory."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (mat @ vec)."""

    def addmv_(self, *args: Any, **options: Any) -> Tensor:
        """`addmv`, into x's memory."""

    def addr(self, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """beta * x + alpha * (vec1 outer vec2)."""

    def addr_(self, *args: Any, **options: Any) -> Tensor:
        """`addr`, into x's memory."""

    def adjoint(self) -> Tensor:
        """The conjugate with its last two dimensions exchanged."""

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

    def aminmax(self, *, dim: _int | None = None, keepdim: _bool = False) -> tuple[Tensor, Tensor]:
        """The smallest and the largest element, over a dimension or all."""

    def angle(self) -> Tensor:
        """The direction of a complex number, from -pi to pi; of a real one, 0 or pi."""

    def any(self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False) -> Tensor:
        """Whether any element is true, over some dimensions or all."""

    def apply_(self, f: Callable[[Any], Any]) -> Tensor:
        """Overwrite each element of a CPU tensor with what a Python function makes of it. Slow."""

    def arccos(self) -> Tensor:
        """The arc cosine."""

    def arccos_(self) -> Tensor:
        """`acos`, into the memory of its first operand."""

    def arccosh(self) -> Tensor:
        """The inverse of cosh."""

    def arccosh_(self) -> Tensor:
        """`acosh`, into the memory of its first operand."""

    def arcsin(self) -> Tensor:
        """The arc sine."""

    def arcsin_(self) -> Tensor:
        """`asin`, into the memory of its first operand."""

    def arcsinh(self) -> Tensor:
        """The inverse of sinh."""

    def arcsinh_(self) -> Tensor:
        """`asinh`, into the memory of its first operand."""

    def arctan(self) -> Tensor:
        """The arc tangent."""

    def arctan2(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The angle of the point (b, a), in its right quadrant."""

    def arctan2_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`atan2`, into the memory of its first operand."""

    def arctan_(self) -> Tensor:
        """`atan`, into the memory of its first operand."""

    def arctanh(self) -> Tensor:
        """The inverse of tanh."""

    def arctanh_(self) -> Tensor:
        """`atanh`, into the memory of its first operand."""

    def argmax(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the largest element, along a dimension or of all."""

    def argmin(self, dim: _int | None = None, keepdim: _bool = False) -> Tensor:
        """The index of the smallest element, along a dimension or of all."""

    def argsort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Tensor:
        """Where the elements in order along a dimension stood."""

    def argwhere(self) -> Tensor:
        """The positions of the elements that aren't zero, one per row."""

    def as_strided(
        self, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None
    ) -> Tensor:
        """A view of x's memory with these sizes and strides, from an offset; x must be contiguous."""

    def asin(self) -> Tensor:
        """The arc sine."""

    def asin_(self) -> Tensor:
        """`asin`, into the memory of its first operand."""

    def asinh(self) -> Tensor:
        """The inverse of sinh."""

    def asinh_(self) -> Tensor:
        """`asinh`, into the memory of its first operand."""

    def atan(self) -> Tensor:
        """The arc tangent."""

    def atan2(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The angle of the point (b, a), in its right quadrant."""

    def atan2_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`atan2`, into the memory of its first operand."""

    def atan_(self) -> Tensor:
        """`atan`, into the memory of its first operand."""

    def atanh(self) -> Tensor:
        """The inverse of tanh."""

    def atanh_(self) -> Tensor:
        """`atanh`, into the memory of its first operand."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """beta * x + alpha * (batch1 @ batch2)."""

    def baddbmm_(self, *args: Any, **options: Any) -> Tensor:
        """`baddbmm`, into x's memory."""

    def bernoulli(self, p: _float | None = None, *, generator: Any = None, dtype: Any = None) -> Tensor:
        """1 with probability x, else 0, element by element; or with probability p wherever x has an element."""

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Overwrite x with ones, each with probability p, and zeros; p may be a tensor."""

    def bfloat16(self) -> Tensor:
        """x as bfloat16."""

    def bincount(self, weights: Tensor | None = None, minlength: _int = 0) -> Tensor:
        """How often each number occurs, or the sum of its weights."""

    def bitwise_and(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a & b, bit by bit."""

    def bitwise_and_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_and`, into the memory of its first operand."""

    def bitwise_left_shift(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a << b."""

    def bitwise_left_shift_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_left_shift`, into the memory of its first operand."""

    def bitwise_not(self) -> Tensor:
        """~x, bit by bit; of truths, whether x is False."""

    def bitwise_not_(self) -> Tensor:
        """`bitwise_not`, into the memory of its first operand."""

    def bitwise_or(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a | b, bit by bit."""

    def bitwise_or_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_or`, into the memory of its first operand."""

    def bitwise_right_shift(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a >> b."""

    def bitwise_right_shift_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_right_shift`, into the memory of its first operand."""

    def bitwise_xor(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a ^ b, bit by bit."""

    def bitwise_xor_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`bitwise_xor`, into the memory of its first operand."""

    def bmm(
        self, mat2: Tensor, transpose_a: _bool = False, transpose_b: _bool = False, alpha: _float = 1.0
    ) -> Tensor:
        """The products of two batches of matrices. OneFlow's further arguments are those of `matmul`."""

    def bool(self) -> Tensor:
        """x as bool."""

    def broadcast_to(self, shape: Sequence[_int]) -> Tensor:
        """x seen as a larger shape, without copying."""

    def bucketize(self, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False) -> Tensor:
        """Between which boundaries, in rising order, each element lies."""

    def byte(self) -> Tensor:
        """x as uint8."""

    def cast(self, dtype: Any) -> Tensor:
        """x in another dtype; x itself if it has that dtype."""

    def cauchy_(self, median: _float = 0.0, sigma: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the Cauchy distribution."""

    def cdouble(self) -> Tensor:
        """x in complex128."""

    def ceil(self) -> Tensor:
        """The smallest whole number that is at least x."""

    def ceil_(self) -> Tensor:
        """`ceil`, into the memory of its first operand."""

    def celu_(self, alpha: _float = 1.0) -> Tensor:
        """`celu`, into the memory of its first operand."""

    def cfloat(self) -> Tensor:
        """x in complex64."""

    def char(self) -> Tensor:
        """x as int8."""

    def check_meta_consistency(self) -> None:
        """Nothing: a global tensor's shape and dtype are compared over all ranks when it is made."""

    def cholesky(self, upper: _bool = False) -> Tensor:
        """The lower triangular l of x = l @ l.T, for symmetric positive definite x; or its transpose, `upper`."""

    def cholesky_inverse(self, upper: _bool = False) -> Any:
        """The inverse of A, where L is A's Cholesky factor."""

    def cholesky_solve(self, L: Any, upper: _bool = False) -> Any:
        """The y of A @ y = x, where L is A's Cholesky factor."""

    def chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of at most so many parts along a dimension, all of one size but the last."""

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """x, held between min and max: numbers, tensors that broadcast, or None."""

    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """`clamp`, into x's memory."""

    def clamp_max(self, max: Any) -> Tensor:
        """x, but at most max."""

    def clamp_max_(self, max: Any) -> Tensor:
        """`clamp_max`, into x's memory."""

    def clamp_min(self, min: Any) -> Tensor:
        """x, but at least min."""

    def clamp_min_(self, min: Any) -> Tensor:
        """`clamp_min`, into x's memory."""

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """x, held between min and max: numbers, tensors that broadcast, or None."""

    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """`clamp`, into x's memory."""

    def clone(self, memory_format: Any = None) -> Tensor:
        """x in memory of its own. Memory formats are for kernels to choose."""

    def conj(self) -> Tensor:
        """The complex conjugate; x itself, if it is real."""

    def conj_physical(self) -> Tensor:
        """The complex conjugate."""

    def contiguous(self, memory_format: Any = None) -> Tensor:
        """x with its elements in order in memory: itself, or a copy. Memory formats are for kernels to choose."""

    def contiguous_(self) -> Tensor:
        """Let x's elements lie in order in memory."""

    def copy_(self, value: Any, non_blocking: _bool = False) -> Tensor:
        """Overwrite x with the value, which may have another dtype, device or layout, and broadcasts."""

    def copysign(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a with the sign of b."""

    def copysign_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`copysign`, into the memory of its first operand."""

    def corrcoef(self) -> Any:
        """How variables, a row each, go along with each other, from -1 to 1."""

    def cos(self) -> Tensor:
        """The cosine."""

    def cos_(self) -> Tensor:
        """`cos`, into the memory of its first operand."""

    def cosh(self) -> Tensor:
        """The hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """`cosh`, into the memory of its first operand."""

    def count_nonzero(self, dim: Any = None) -> Tensor:
        """How many elements aren't zero, over some dimensions or all."""

    def cov(self, *, correction: _int = 1, fweights: Any = None, aweights: Any = None) -> Any:
        """How variables, a row each, vary together; observations may be repeated (fweights) or weighed (aweights)."""

    def cpu(self) -> Tensor:
        """x in the CPU's memory."""

    def cross(self, other: Tensor, dim: _int | None = None) -> Tensor:
        """The cross product along a dimension; without one, the first dimension of size three."""

    def cuda(self, device: Any = None, non_blocking: _bool = False) -> Tensor:
        """x on a CUDA device, the current one if none is named."""

    def cummax(self, dim: _int) -> Ranked:
        """The largest of each element and all before it along a dimension, and where it stands."""

    def cummin(self, dim: _int) -> Ranked:
        """The smallest of each element and all before it along a dimension, and where it stands."""

    def cumprod(self, dim: _int, *, dtype: Any = None) -> Tensor:
        """The product of each element and all before it along a dimension."""

    def cumprod_(self, dim: _int) -> Tensor:
        """`cumprod`, into the memory of its first operand."""

    def cumsum(self, dim: _int, *, dtype: Any = None) -> Tensor:
        """The sum of each element and all before it along a dimension."""

    def cumsum_(self, dim: _int) -> Tensor:
        """`cumsum`, into the memory of its first operand."""

    def deg2rad(self) -> Tensor:
        """From degrees to radians."""

    def deg2rad_(self) -> Tensor:
        """`deg2rad`, into the memory of its first operand."""

    def det(self) -> Tensor:
        """The determinant of matrices."""

    def detach_(self) -> Tensor:
        """Leave the graph of gradients."""

    def diag(self, diagonal: _int = 0) -> Tensor:
        """The matrix with this diagonal, or the diagonal of a matrix."""

    def diag_embed(self, offset: _int = 0, dim1: _int = -2, dim2: _int = -1) -> Tensor:
        """Matrices, zero but for their diagonals, the last dimension of x."""

    def diagflat(self, offset: _int = 0) -> Tensor:
        """The matrix with all of x on a diagonal."""

    def diagonal(self, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """A diagonal of two dimensions, as the last one."""

    def diagonal_scatter(self, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> Tensor:
        """x with another diagonal of two dimensions."""

    def diff(
        self, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """Each element less the one before it along a dimension, n times over."""

    def digamma(self) -> Tensor:
        """The derivative of lgamma."""

    def digamma_(self) -> Tensor:
        """`digamma`, into the memory of its first operand."""

    def dim_order(self) -> tuple[_int, ...]:
        """The dimensions as they lie in memory, the one with the longest steps first."""

    def dist(self, other: Any, p: _float = 2) -> Any:
        """The p-norm of the difference."""

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, element by element; rounded down with "floor", towards zero with "trunc"."""

    def div_(self, other: Any, rounding_mode: str | None = None) -> Tensor:
        """`div`, into x's memory."""

    def divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, element by element; rounded down with "floor", towards zero with "trunc"."""

    def divide_(self, other: Any, rounding_mode: str | None = None) -> Tensor:
        """`div`, into x's memory."""

    def dot(self, other: Tensor) -> Tensor:
        """The inner product of two vectors."""

    def double(self) -> Tensor:
        """x as float64."""

    def dsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """Parts one behind the other, along the third dimension."""

    def eig(self) -> tuple[Tensor, Tensor]:
        """The eigenvalues of square matrices, complex ones, and their eigenvectors as columns; `eigvals` has a gradient."""

    def elu_(self, alpha: _float = 1.0) -> Tensor:
        """`elu`, into the memory of its first operand."""

    def eq(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a equals b, element by element."""

    def eq_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`eq`, into the memory of its first operand."""

    def equal(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape and elements."""

    def erf(self) -> Tensor:
        """The error function: the probability of a normal draw of variance 1/2 within x of its mean."""

    def erf_(self) -> Tensor:
        """`erf`, into the memory of its first operand."""

    def erfc(self) -> Tensor:
        """1 - erf(x)."""

    def erfc_(self) -> Tensor:
        """`erfc`, into the memory of its first operand."""

    def erfinv(self) -> Tensor:
        """The inverse of erf."""

    def erfinv_(self) -> Tensor:
        """`erfinv`, into the memory of its first operand."""

    def exp(self) -> Tensor:
        """e to the power x."""

    def exp2(self) -> Tensor:
        """2 to the power x."""

    def exp2_(self) -> Tensor:
        """`exp2`, into the memory of its first operand."""

    def exp_(self) -> Tensor:
        """`exp`, into the memory of its first operand."""

    def expand(self, *shape: _int | Sequence[_int]) -> Tensor:
        """x seen as a larger shape, without copying; -1 keeps a dimension."""

    def expand_as(self, other: Tensor) -> Tensor:
        """x seen as the other's shape, without copying."""

    def expm1(self) -> Tensor:
        """exp(x) - 1, exact near zero."""

    def expm1_(self) -> Tensor:
        """`expm1`, into the memory of its first operand."""

    def exponential_(self, lambd: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the exponential distribution."""

    def fill_(self, value: Any) -> Tensor:
        """Overwrite every element with one value."""

    def fill_diagonal_(self, fill_value: Any, wrap: _bool = False) -> Tensor:
        """Overwrite the diagonal with one value."""

    def fix(self) -> Tensor:
        """x without its fraction."""

    def fix_(self) -> Tensor:
        """`trunc`, into the memory of its first operand."""

    def flatten(self, start_dim: _int = 0, end_dim: _int = -1) -> Tensor:
        """x with a run of dimensions made one."""

    def flip(self, *dims: _int | Sequence[_int]) -> Tensor:
        """x with the order turned round along some dimensions."""

    def fliplr(self) -> Tensor:
        """x with its columns in the reverse order."""

    def flipud(self) -> Tensor:
        """x with its rows in the reverse order."""

    def float(self) -> Tensor:
        """x as float32."""

    def float_power(self, exponent: Any) -> Any:
        """x ** exponent, in float64, or of complex numbers in complex128."""

    def float_power_(self, *args: Any, **options: Any) -> Tensor:
        """`float_power`, into x's memory."""

    def floor(self) -> Tensor:
        """The largest whole number that is at most x."""

    def floor_(self) -> Tensor:
        """`floor`, into the memory of its first operand."""

    def floor_divide(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The whole number of times that b goes into a."""

    def floor_divide_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`floor_divide`, into the memory of its first operand."""

    def fmax(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The larger of a and b; the other, where one is no number."""

    def fmin(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The smaller of a and b; the other, where one is no number."""

    def fmod(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """What is left of a by b, with a's sign, as C's %."""

    def fmod_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`fmod`, into the memory of its first operand."""

    def frac(self) -> Tensor:
        """What is behind the point."""

    def frac_(self) -> Tensor:
        """`frac`, into the memory of its first operand."""

    def frexp(self) -> Parts:
        """The elements as mantissa * 2 ** exponent, with mantissas from 0.5 to 1."""

    def gather(self, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor:
        """The elements of x at the positions along a dimension that the index tells."""

    def gcd(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The largest number that divides both."""

    def gcd_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`gcd`, into the memory of its first operand."""

    def ge(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is at least b, element by element."""

    def ge_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`ge`, into the memory of its first operand."""

    def gelu(self, approximate: str = 'none') -> Tensor:
        """x times the probability that a normal draw is below x; approximate="tanh" for the usual fast formula."""

    def gelu_(self, approximate: str = 'none') -> Tensor:
        """`gelu`, into the memory of its first operand."""

    def geometric_(self, p: _float, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws of how many tries it takes until something of probability p comes true."""

    def ger(self, other: Tensor) -> Tensor:
        """Every product of an element of x and one of the other."""

    @property
    def global_id(self) -> _int:
        """A number that is this tensor's alone, the same on every rank that asks for numbers in the same order."""

    def global_to_global(
        self, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None, check_meta: _bool = False,
        copy: _bool = False
    ) -> Tensor:
        """The same logical tensor in another layout."""

    def greater(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is greater than b, element by element."""

    def greater_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`gt`, into the memory of its first operand."""

    def greater_equal(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is at least b, element by element."""

    def greater_equal_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`ge`, into the memory of its first operand."""

    def gt(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is greater than b, element by element."""

    def gt_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`gt`, into the memory of its first operand."""

    def half(self) -> Tensor:
        """x as float16."""

    def hardshrink(self, lambd: _float = 0.5) -> Tensor:
        """x where its absolute value is above lambd, zero elsewhere."""

    def hardsigmoid_(self) -> Tensor:
        """`hardsigmoid`, into the memory of its first operand."""

    def hardswish_(self) -> Tensor:
        """`hardswish`, into the memory of its first operand."""

    def hardtanh_(self, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor:
        """`hardtanh`, into the memory of its first operand."""

    def heaviside(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """0 below zero, 1 above, b at zero."""

    def heaviside_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`heaviside`, into the memory of its first operand."""

    def histc(self, bins: _int = 100, min: _float = 0, max: _float = 0) -> Any:
        """How many elements lie in each of so many equal parts of [min, max]; of their own range, if both are equal."""

    def histogram(
        self, bins: Any, *, range: Sequence[_float] | None = None, weight: Any = None, density: _bool = False
    ) -> Histogram:
        """How many elements lie between each two edges: of so many equal parts of a range, by default x's own, or of these.
        With weights, their sums; as a `density`, whose integral is 1.
        """

    def hsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """Parts side by side: along the second dimension, of a vector along its only one."""

    def hypot(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """sqrt(a * a + b * b), without overflow."""

    def hypot_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`hypot`, into the memory of its first operand."""

    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind, of order 0."""

    def i0_(self) -> Tensor:
        """`i0`, into the memory of its first operand."""

    def igamma(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The lower incomplete gamma function of order a at b, as a share of the whole."""

    def igamma_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`igamma`, into the memory of its first operand."""

    def igammac(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The upper incomplete gamma function of order a at b, likewise."""

    def igammac_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`igammac`, into the memory of its first operand."""

    @property
    def imag(self) -> Tensor:
        """The imaginary part, sharing memory."""

    def in_top_k(self, predictions: Tensor, k: _int) -> Tensor:
        """Whether each target is among the k largest predictions of its row."""

    def index(self, indices: Sequence[Tensor | None]) -> Tensor:
        """x[indices]: the elements at these positions; None keeps a dimension."""

    def index_add(
        self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float | _int | _bool | complex = 1
    ) -> Tensor:
        """x with alpha * source added to its slices along a dimension at these positions."""

    def index_add_(
        self, dim: _int, index: Tensor, source: Tensor, *, alpha: _float | _int | _bool | complex = 1
    ) -> Tensor:
        """`index_add`, into the memory of its first operand."""

    def index_copy(self, dim: _int, index: Tensor, source: Tensor) -> Tensor:
        """x with the slices along a dimension at these positions replaced."""

    def index_copy_(self, *args: Any, **options: Any) -> Tensor:
        """`index_copy`, into x's memory."""

    def index_fill(self, dim: _int, index: Tensor, value: Any) -> Tensor:
        """x with one value in the slices along a dimension at these positions."""

    def index_fill_(self, *args: Any, **options: Any) -> Tensor:
        """`index_fill`, into x's memory."""

    def index_put(self, indices: Sequence[Tensor | None], value: Tensor, accumulate: _bool = False) -> Tensor:
        """x with the value at these positions, or added to what is there."""

    def index_put_(self, indices: Sequence[Tensor | None], value: Tensor, accumulate: _bool = False) -> Tensor:
        """`index_put`, into the memory of its first operand."""

    def index_reduce(
        self, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True
    ) -> Tensor:
        """x with the source's slices put in along a dimension at these positions; where several meet, they are reduced:
        "prod", "mean", "amax" or "amin".
        """

    def index_reduce_(self, *args: Any, **options: Any) -> Tensor:
        """`index_reduce`, into x's memory."""

    def index_select(self, dim: _int, index: Tensor) -> Tensor:
        """The slices of x along a dimension at these positions."""

    def inner(self, other: Any) -> Any:
        """The sums of products along both last dimensions."""

    def int(self) -> Tensor:
        """x as int32."""

    def inverse(self) -> Tensor:
        """The inverse of matrices."""

    def is_complex(self) -> _bool:
        """Whether x holds complex numbers."""

    def is_conj(self) -> _bool:
        """False: conjugates are computed, not marked."""

    @property
    def is_consistent(self) -> Any: ...

    @property
    def is_cpu(self) -> Any: ...

    def is_inference(self) -> _bool:
        """False: tensors made in inference mode are tensors like others."""

    @property
    def is_meta(self) -> Any: ...

    @property
    def is_mkldnn(self) -> Any: ...

    @property
    def is_mps(self) -> Any: ...

    def is_neg(self) -> _bool:
        """False: what is negated is computed, not marked."""

    @property
    def is_nested(self) -> Any: ...

    def is_nonzero(self) -> _bool:
        """Whether the only element of x is not zero."""

    def is_pinned(self) -> _bool:
        """Whether x lies in page-locked memory."""

    @property
    def is_quantized(self) -> Any: ...

    def is_same_size(self, other: Tensor) -> _bool:
        """Whether two tensors have the same shape."""

    def is_set_to(self, other: Tensor) -> _bool:
        """Whether two tensors are the same memory, of one shape and one order."""

    def is_shared(self) -> _bool:
        """Whether x lies in memory that other processes see."""

    def is_signed(self) -> _bool:
        """Whether x's dtype has numbers below zero."""

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

    def isin(self, test_elements: Any, *, assume_unique: _bool = False, invert: _bool = False) -> Tensor:
        """Whether each element is among others."""

    def isinf(self) -> Tensor:
        """Whether x is infinite."""

    def isnan(self) -> Tensor:
        """Whether x is not a number."""

    def isneginf(self) -> Tensor:
        """Whether x is infinite and below zero."""

    def isposinf(self) -> Tensor:
        """Whether x is infinite and above zero."""

    def isreal(self) -> Tensor:
        """Whether the elements have no imaginary part."""

    def istft(
        self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Any = None,
        center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None,
        return_complex: _bool = False
    ) -> Any:
        """The signal that `stft` makes these windows of: each put back in its place, where they overlap their mean."""

    @property
    def itemsize(self) -> Any: ...

    def kaiming_normal_(
        self, a: _float = 0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', generator: Any = None, *,
        data_format: str = 'NCHW'
    ) -> Tensor:
        """Normally, so that variance passes through a layer and its nonlinearity."""

    def kaiming_uniform_(
        self, a: _float = 0, mode: str = 'fan_in', nonlinearity: str = 'leaky_relu', generator: Any = None, *,
        data_format: str = 'NCHW'
    ) -> Tensor:
        """Evenly, so that variance passes through a layer and its nonlinearity."""

    def kron(self, other: Any) -> Any:
        """Every element of x times the whole other."""

    def kthvalue(self, k: _int, dim: _int = -1, keepdim: _bool = False) -> Ranked:
        """The k-th smallest element along a dimension, and where it stands."""

    @property
    def layout(self) -> Any: ...

    def lcm(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The smallest number that both divide."""

    def lcm_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`lcm`, into the memory of its first operand."""

    def ldexp(self, other: Any) -> Any:
        """x * 2 ** other."""

    def ldexp_(self, *args: Any, **options: Any) -> Tensor:
        """`ldexp`, into x's memory."""

    def le(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is at most b, element by element."""

    def le_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`le`, into the memory of its first operand."""

    def leaky_relu_(self, alpha: _float = 0.01) -> Tensor:
        """`leaky_relu`, into the memory of its first operand."""

    def lerp(self, b: Tensor, weight: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a + weight * (b - a): a where the weight is 0, b where it is 1."""

    def lerp_(self, b: Tensor, weight: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`lerp`, into the memory of its first operand."""

    def less(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is less than b, element by element."""

    def less_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`lt`, into the memory of its first operand."""

    def less_equal(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is at most b, element by element."""

    def less_equal_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`le`, into the memory of its first operand."""

    def lgamma(self) -> Tensor:
        """The logarithm of the gamma function's absolute value."""

    def lgamma_(self) -> Tensor:
        """`lgamma`, into the memory of its first operand."""

    def local_to_global(
        self, placement: Placement | None = None, sbp: Any = None, *, check_meta: _bool = True, copy: _bool = False
    ) -> Tensor:
        """The global tensor whose parts are the ranks' local ones."""

    def log(self) -> Tensor:
        """The natural logarithm."""

    def log10(self) -> Tensor:
        """The logarithm to base 10."""

    def log10_(self) -> Tensor:
        """`log10`, into the memory of its first operand."""

    def log1p(self) -> Tensor:
        """log(1 + x), exact near zero."""

    def log1p_(self) -> Tensor:
        """`log1p`, into the memory of its first operand."""

    def log2(self) -> Tensor:
        """The logarithm to base 2."""

    def log2_(self) -> Tensor:
        """`log2`, into the memory of its first operand."""

    def log_(self) -> Tensor:
        """`log`, into the memory of its first operand."""

    def log_normal_(self, mean: _float = 1.0, std: _float = 2.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with numbers whose logarithms are draws from the normal distribution."""

    def log_softmax(self, dim: _int | None = None, dtype: Any = None) -> Tensor:
        """The logarithm of softmax, computed in one."""

    def logaddexp(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """log(exp(a) + exp(b)), without overflow."""

    def logaddexp2(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """log2(2 ** a + 2 ** b), without overflow."""

    def logcumsumexp(self, dim: _int) -> Tensor:
        """The logarithms of running sums of exp(x)."""

    def logdet(self) -> Any:
        """The logarithm of the determinant."""

    def logical_and(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a and b are both true, as non-zero is."""

    def logical_and_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`logical_and`, into the memory of its first operand."""

    def logical_not(self) -> Tensor:
        """True where x is zero or False."""

    def logical_not_(self) -> Tensor:
        """`logical_not`, into the memory of its first operand."""

    def logical_or(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a or b is true, as non-zero is."""

    def logical_or_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`logical_or`, into the memory of its first operand."""

    def logical_xor(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether one of a and b is true, and one isn't."""

    def logical_xor_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`logical_xor`, into the memory of its first operand."""

    def logit(self, eps: _float | None = None) -> Tensor:
        """log(x / (1 - x)), the inverse of sigmoid; x is held in [eps, 1 - eps] if that is given."""

    def logit_(self, eps: _float | None = None) -> Tensor:
        """`logit`, into the memory of its first operand."""

    def logsumexp(self, dim: _int | tuple[_int, ...] | list[_int], keepdim: _bool = False) -> Tensor:
        """log(sum(exp(x))) over some dimensions, without overflow."""

    def long(self) -> Tensor:
        """x as int64."""

    def lt(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a is less than b, element by element."""

    def lt_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`lt`, into the memory of its first operand."""

    def lu_solve(self, LU_data: Any, LU_pivots: Any) -> Any:
        """The x of A @ x = b, of what `lu_factor` made of A."""

    @property
    def mH(self) -> Tensor:
        """The conjugate with its last two dimensions exchanged."""

    @property
    def mT(self) -> Tensor:
        """x with its last two dimensions exchanged."""

    def map_(self, other: Tensor, f: Callable[[Any, Any], Any]) -> Tensor:
        """Overwrite each element of a CPU tensor with what a Python function makes of it and of the other's. Slow."""

    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """x with `value` where the mask holds."""

    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """`masked_fill`, into x's memory."""

    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """x with the first elements of the source, one after another, where the mask is True."""

    def masked_scatter_(self, *args: Any, **options: Any) -> Tensor:
        """`masked_scatter`, into x's memory."""

    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements of x where the mask holds, in a row; a mask of numbers holds where they aren't zero."""

    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product, over the last two dimensions; leading ones broadcast; a 1-d operand is a vector."""

    def matrix_exp(self) -> Any:
        """The exponential of matrices: the sum of their powers over factorials."""

    def matrix_power(self, n: _int) -> Any:
        """The product of n times the same matrix; of its inverse, if n is below zero."""

    @overload
    def max(self) -> Tensor:
        """The largest element; with `dim`, that of each slice and its index; of two tensors, the larger elements."""

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
        """The middle element; with `dim`, that of each slice and its index. Of two middle ones, the lower."""

    @overload
    def median(self, dim: _int, keepdim: _bool = False) -> Ranked: ...

    @overload
    def min(self) -> Tensor:
        """The smallest element; with `dim`, that of each slice and its index; of two tensors, the smaller elements."""

    @overload
    def min(self, dim: _int, keepdim: _bool = False) -> Ranked: ...

    @overload
    def min(self, other: Tensor) -> Tensor: ...

    def minimum(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The smaller of a and b, element by element."""

    def mish(self) -> Tensor:
        """x * tanh(softplus(x))."""

    def mish_(self) -> Tensor:
        """`mish`, into the memory of its first operand."""

    def mm(self, other: Tensor) -> Tensor:
        """The product of two matrices."""

    def mode(self, dim: _int = -1, keepdim: _bool = False) -> Ranked:
        """The most frequent element along a dimension, and where it stands."""

    def moveaxis(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """x with some dimensions moved elsewhere, the others in their order."""

    def movedim(self, source: _int | Sequence[_int], destination: _int | Sequence[_int]) -> Tensor:
        """x with some dimensions moved elsewhere, the others in their order."""

    def msort(self) -> Tensor:
        """x sorted along its first dimension."""

    def mul(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a * b, element by element."""

    def mul_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`mul`, into the memory of its first operand."""

    def multinomial(self, num_samples: _int, replacement: _bool = False, *, generator: Any = None) -> Tensor:
        """Draws of indices, with probabilities in proportion to x's last dimension."""

    def multiply(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a * b, element by element."""

    def multiply_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`mul`, into the memory of its first operand."""

    def mv(self, other: Tensor) -> Tensor:
        """The product of a matrix and a vector."""

    def mvlgamma(self, p: _int) -> Tensor:
        """The logarithm of the gamma function of p dimensions."""

    def mvlgamma_(self, p: _int) -> Tensor:
        """`mvlgamma`, into the memory of its first operand."""

    @property
    def names(self) -> Any: ...

    def nan_to_num(
        self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
    ) -> Tensor:
        """x with other numbers in the places of those that are none: 0, and the largest and least there are, unless told."""

    def nan_to_num_(
        self, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
    ) -> Tensor:
        """`nan_to_num`, into the memory of its first operand."""

    def nanmean(self, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None) -> Any:
        """The mean of the elements that are numbers."""

    def nanmedian(self, dim: _int | None = None, keepdim: _bool = False) -> Any:
        """The middle of the elements that are numbers: of all, or along a dimension, with where it stands."""

    def nanquantile(
        self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear'
    ) -> Tensor:
        """What a share q of the elements that are numbers lies below."""

    def nansum(self, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None) -> Tensor:
        """The sum of the elements that are numbers."""

    def narrow(self, dim: _int, start: _int, length: _int, step: _int = 1) -> Tensor:
        """The elements start, start + step, ... along a dimension, `length` of them."""

    @property
    def nbytes(self) -> Any: ...

    def ne(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a differs from b, element by element."""

    def ne_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`ne`, into the memory of its first operand."""

    def neg(self) -> Tensor:
        """-x."""

    def neg_(self) -> Tensor:
        """`neg`, into the memory of its first operand."""

    def negative(self) -> Tensor:
        """-x."""

    def negative_(self) -> Tensor:
        """`neg`, into the memory of its first operand."""

    def new(self, *data: Any) -> Tensor:
        """A tensor of x's dtype, where x lies: of data, or of a size."""

    def new_empty(
        self, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
        sbp: Any = None, requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size, in the form of x for the rest: see `flow.empty`."""

    def new_full(
        self, size: Any, fill_value: Any, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
        requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size and value, in the form of x for the rest."""

    def new_ones(
        self, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
        sbp: Any = None, requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size, in the form of x for the rest: see `flow.ones`."""

    def new_tensor(
        self, data: Any, dtype: Any = None, device: Any = None, requires_grad: _bool = False, placement: Any = None,
        sbp: Any = None
    ) -> Tensor:
        """A tensor of this data, in the form of x for the rest."""

    def new_zeros(
        self, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
        sbp: Any = None, requires_grad: _bool = False
    ) -> Tensor:
        """A tensor of this size, in the form of x for the rest: see `flow.zeros`."""

    def nextafter(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """The next number from a towards b."""

    def nextafter_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`nextafter`, into the memory of its first operand."""

    def nms(self, scores: Tensor, iou_threshold: _float) -> Tensor:
        """The boxes (x1, y1, x2, y2) that overlap no better one by more than the threshold, best first."""

    def nonzero(self, as_tuple: _bool = False) -> Any:
        """The positions of the elements that aren't zero, one per row; `as_tuple`: one tensor per dimension."""

    def norm(
        self, ord: Any = None, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False,
        dtype: Any = None, *, p: Any = None
    ) -> Tensor:
        """The norm of vectors, or with "fro" of matrices."""

    def normal_(self, mean: _float = 0.0, std: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the normal distribution."""

    def not_equal(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """Whether a differs from b, element by element."""

    def not_equal_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`ne`, into the memory of its first operand."""

    def orthogonal_(self, gain: _float = 1.0, generator: Any = None) -> Tensor:
        """Rows, or columns where they are fewer, at right angles and of length `gain`."""

    def outer(self, other: Tensor) -> Tensor:
        """Every product of an element of x and one of the other."""

    def permute(self, *dims: _int | Sequence[_int]) -> Tensor:
        """x with its dimensions in another order."""

    def pin_memory(self) -> Tensor:
        """x in page-locked memory, from which copies to a CUDA device overlap with compute."""

    def pinverse(self, rcond: _float = 1e-15) -> Any:
        """`linalg.pinv`, where singular values below `rcond` times the largest count as none."""

    def polygamma(self, n: _int) -> Tensor:
        """The derivative number n of digamma, which is that of lgamma."""

    def polygamma_(self, n: _int) -> Tensor:
        """`polygamma`, into the memory of its first operand."""

    def positive(self) -> Tensor:
        """x."""

    def pow(self, exponent: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a to the power b, element by element."""

    def pow_(self, exponent: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`pow`, into the memory of its first operand."""

    def prod(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None
    ) -> Tensor:
        """The product of the elements, over some dimensions or all."""

    def put(self, index: Tensor, source: Tensor, accumulate: _bool = False) -> Tensor:
        """x with other elements at these positions, as if it were one row; or with them added."""

    def put_(self, *args: Any, **options: Any) -> Tensor:
        """`put`, into x's memory."""

    def qr(self, mode: str = 'reduced') -> QR:
        """The decomposition x = q @ r into orthogonal columns and an upper triangle: thin, or with q square, "complete";
        of "r" alone q is empty. What makes q square has no gradient.
        """

    def quantile(
        self, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear'
    ) -> Tensor:
        """What a share q of the elements lies below; a vector of shares gives a new first dimension."""

    def rad2deg(self) -> Tensor:
        """From radians to degrees."""

    def rad2deg_(self) -> Tensor:
        """`rad2deg`, into the memory of its first operand."""

    def random_(self, from_: _int | None = None, to: _int | None = None, *, generator: Any = None) -> Tensor:
        """Overwrite x with integers from `from_` to `to` - 1; `random_(n)` draws from 0 to n - 1, and without bounds from
        all that the dtype counts.
        """

    def ravel(self) -> Tensor:
        """x as one row."""

    @property
    def real(self) -> Tensor:
        """The real part, sharing memory; x itself, if it is real."""

    def reciprocal(self) -> Tensor:
        """1 / x."""

    def reciprocal_(self) -> Tensor:
        """`reciprocal`, into the memory of its first operand."""

    def record_stream(self, stream: Any) -> None:
        """Nothing: memory is given back when the last who reads it is done."""

    def reduce_nansum(self, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None) -> Tensor:
        """The sum of the elements that are numbers."""

    def relu(self) -> Tensor:
        """max(x, 0), element by element."""

    def relu_(self) -> Tensor:
        """`relu`, into the memory of its first operand."""

    def remainder(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """What is left of a by b, with b's sign, as Python's %."""

    def remainder_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`remainder`, into the memory of its first operand."""

    def renorm(self, p: _float, dim: _int, maxnorm: _float) -> Any:
        """x with each slice along a dimension scaled down to a p-norm of at most maxnorm."""

    def renorm_(self, *args: Any, **options: Any) -> Tensor:
        """`renorm`, into x's memory."""

    def repeat(self, *sizes: _int | Sequence[_int]) -> Tensor:
        """Copies of x laid side by side, so many along each dimension."""

    def repeat_interleave(
        self, repeats: _int | Tensor, dim: _int | None = None, *, output_size: _int | None = None
    ) -> Tensor:
        """Every element, or slice along a dimension, so many times in a row."""

    def reshape(self, *shape: _int | Sequence[_int]) -> Tensor:
        """x in another shape, sharing memory where strides allow; -1 stands for what is left."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """x in the other's shape."""

    def resize(
        self, size: tuple[_int, ...] | list[_int], mode: str = 'nearest', align_corners: _bool = False,
        scales: Sequence[_float] | None = None
    ) -> Tensor:
        """(batch, channels, ...) at another size, values taken from the nearest or blended between neighbours."""

    def resize_(self, *size: _int | Sequence[_int]) -> Tensor:
        """Another shape; elements that there were stay in their order, new ones are whatever the memory held."""

    def resize_as_(self, other: Tensor) -> Tensor:
        """The other's shape, as `resize_`."""

    def resolve_conj(self) -> Tensor:
        """x: conjugates, and what is negated, are computed, not marked."""

    def resolve_neg(self) -> Tensor:
        """x: conjugates, and what is negated, are computed, not marked."""

    def roll(
        self, shifts: _int | tuple[_int, ...] | list[_int], dims: _int | tuple[_int, ...] | list[_int] = ...
    ) -> Tensor:
        """x shifted along some dimensions, what leaves at one end coming in at the other; all as one without dims."""

    def rot90(self, k: _int = 1, dims: Sequence[_int] = ...) -> Tensor:
        """x turned by k quarters in the plane of two dimensions."""

    def round(self, decimals: _int = 0) -> Tensor:
        """The nearest whole number, of two the even one; or the nearest with so many decimals."""

    def round_(self) -> Tensor:
        """`round`, into the memory of its first operand."""

    def rsqrt(self) -> Tensor:
        """One over the square root."""

    def rsqrt_(self) -> Tensor:
        """`rsqrt`, into the memory of its first operand."""

    def rsub(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """other - alpha * x."""

    def scatter(self, dim: _int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
        """x with src at the positions along a dimension that the index tells; or added to what is there, or multiplied."""

    def scatter_(self, dim: _int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
        """`scatter`, into x's memory."""

    def scatter_add(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """x with src added at the positions along a dimension that the index tells."""

    def scatter_add_(self, dim: _int, index: Tensor, src: Tensor) -> Tensor:
        """`scatter_add`, into the memory of its first operand."""

    def scatter_reduce(
        self, dim: _int, index: Tensor, src: Any, reduce: str, *, include_self: _bool = True
    ) -> Tensor:
        """x with src put in along a dimension at the places that the index tells; where several meet, they are reduced:
        "sum", "prod", "mean", "amax" or "amin". `include_self`: with what x held there.
        """

    def scatter_reduce_(self, *args: Any, **options: Any) -> Tensor:
        """`scatter_reduce`, into x's memory."""

    def select(self, dim: _int, index: _int) -> Tensor:
        """One slice along a dimension, which goes away."""

    def select_scatter(self, src: Tensor, dim: _int, index: _int) -> Tensor:
        """x with another slice in a place along a dimension."""

    def selu(self) -> Tensor:
        """elu, scaled so that a network's variance stays about one."""

    def selu_(self) -> Tensor:
        """`selu`, into the memory of its first operand."""

    def set_(self, source: Tensor) -> Tensor:
        """The source's memory, shape and all."""

    def sgn(self) -> Tensor:
        """-1, 0 or 1 by the sign of x; of a complex number, its direction."""

    def sgn_(self) -> Tensor:
        """`sgn`, into the memory of its first operand."""

    def share_memory_(self) -> Tensor:
        """Move a CPU tensor's data to memory that other processes see."""

    def short(self) -> Tensor:
        """x as int16."""

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""

    def sigmoid_(self) -> Tensor:
        """`sigmoid`, into the memory of its first operand."""

    def sign(self) -> Tensor:
        """-1, 0 or 1, by the sign of x."""

    def sign_(self) -> Tensor:
        """`sign`, into the memory of its first operand."""

    def signbit(self) -> Tensor:
        """Whether x has a minus sign."""

    def silu(self) -> Tensor:
        """x * sigmoid(x)."""

    def silu_(self) -> Tensor:
        """`silu`, into the memory of its first operand."""

    def sin(self) -> Tensor:
        """The sine."""

    def sin_(self) -> Tensor:
        """`sin`, into the memory of its first operand."""

    def sinc(self) -> Tensor:
        """sin(pi x) / (pi x), and 1 at zero."""

    def sinc_(self) -> Tensor:
        """`sinc`, into the memory of its first operand."""

    def sinh(self) -> Tensor:
        """The hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """`sinh`, into the memory of its first operand."""

    def slice_scatter(
        self, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1
    ) -> Tensor:
        """x with other elements from start to end along a dimension."""

    def slogdet(self) -> SignAndSize:
        """The sign of the determinant of matrices, and the logarithm of its absolute value."""

    def softmax(self, dim: _int | None = None, dtype: Any = None) -> Tensor:
        """exp(x), scaled to sum to one along a dimension."""

    def softplus(self, beta: _float = 1.0, threshold: _float = 20.0) -> Tensor:
        """log(1 + exp(beta x)) / beta: a smooth relu; x itself where beta x is above the threshold."""

    def softsign(self) -> Tensor:
        """x / (1 + |x|)."""

    def solve(self, b: Tensor) -> Tensor:
        """The x of a @ x = b, for matrices a and b."""

    def sort(self, dim: _int = -1, descending: _bool = False, stable: _bool = False) -> Ranked:
        """The elements in rising order along a dimension, and where each of them stood."""

    def split(self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: of this size, the last one smaller if need be; or of these sizes."""

    def split_with_sizes(self, split_sizes: Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts of these sizes along a dimension."""

    def sqrt(self) -> Tensor:
        """The square root."""

    def sqrt_(self) -> Tensor:
        """`sqrt`, into the memory of its first operand."""

    def square(self) -> Tensor:
        """x * x."""

    def square_(self) -> Tensor:
        """`square`, into the memory of its first operand."""

    def squeeze(self, dim: _int | tuple[_int, ...] | list[_int] | None = None) -> Tensor:
        """x without its dimensions of size one, or without those of them that are named."""

    def squeeze_(self, *args: Any, **options: Any) -> Tensor:
        """`squeeze`, of the tensor itself: it has another shape from now on."""

    def std(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, unbiased: _bool = True, keepdim: _bool = False,
        *, correction: _int | None = None
    ) -> Tensor:
        """The standard deviation of the elements, over some dimensions or all."""

    def stft(
        self, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Any = None,
        center: _bool = True, pad_mode: str = 'reflect', normalized: _bool = False, onesided: _bool | None = None,
        return_complex: _bool | None = None
    ) -> Any:
        """The Fourier transforms of windows of a signal, one every `hop_length` samples: (..., frequencies, windows)."""

    def storage(self) -> Any:
        """The memory that x looks at, of this rank's part of it: torch's own storage, with `data_ptr()` and `nbytes()`."""

    def sub(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """x - alpha * other, element by element."""

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """`sub`, into x's memory."""

    def subtract(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """x - alpha * other, element by element."""

    def subtract_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """`sub`, into x's memory."""

    def sum(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None
    ) -> Tensor:
        """The sum of the elements, over some dimensions or all."""

    def sum_to_size(self, *size: _int | Sequence[_int]) -> Tensor:
        """x summed over the dimensions that broadcasting from this size would have made."""

    def svd(self, some: _bool = True, compute_uv: _bool = True) -> SVDWithV:
        """The singular value decomposition: x = u @ diag(s) @ v.T, thin if only `some` of u and v. Gives u, s and v."""

    def swapaxes(self, dim0: _int, dim1: _int) -> Tensor:
        """x with two dimensions exchanged."""

    def swapaxes_(self, *args: Any, **options: Any) -> Tensor:
        """`swapaxes`, of the tensor itself: it has another shape from now on."""

    def swapdims(self, dim0: _int, dim1: _int) -> Tensor:
        """x with two dimensions exchanged."""

    def swapdims_(self, *args: Any, **options: Any) -> Tensor:
        """`swapdims`, of the tensor itself: it has another shape from now on."""

    def t(self) -> Tensor:
        """The transpose of a matrix; a vector is its own."""

    def t_(self, *args: Any, **options: Any) -> Tensor:
        """`t`, of the tensor itself: it has another shape from now on."""

    def take(self, index: Tensor) -> Tensor:
        """The elements at these positions of x, as if it were one row."""

    def take_along_dim(self, indices: Tensor, dim: _int | None = None) -> Tensor:
        """The elements of x at these positions along a dimension, the others broadcast; without one, of x in a row."""

    def tan(self) -> Tensor:
        """The tangent."""

    def tan_(self) -> Tensor:
        """`tan`, into the memory of its first operand."""

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """`tanh`, into the memory of its first operand."""

    def tensor_split(self, indices_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: so many balanced ones, or cut at these places."""

    def threshold_(self, threshold: _float, value: _float) -> Tensor:
        """`threshold`, into the memory of its first operand."""

    def tile(self, *dims: _int | Sequence[_int]) -> Tensor:
        """Like `repeat`, with ones in front where there are fewer counts than dimensions."""

    def to(
        self, *targets: Any, dtype: Any = None, device: Any = None, other: Tensor | None = None, copy: _bool = False,
        non_blocking: _bool = False, placement: Placement | None = None, sbp: Any = None, memory_format: Any = None
    ) -> Tensor:
        """x in another dtype, on another device, or as another tensor: `to(flow.half)`, `to("cuda", flow.half)`, `to(y)`"""

    def to_consistent(self, placement: Any = None, sbp: Any = None, **options: Any) -> Any:
        """`to_global`, by its older name."""

    def to_dense(self) -> Tensor:
        """x: every tensor is dense here."""

    def to_global(
        self, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None,
        check_meta: _bool | None = None, copy: _bool = False
    ) -> Any:
        """A global tensor of local parts, or a global tensor in another layout; of nested tensors, each of them."""

    def to_local(self, *, copy: _bool = False) -> Any:
        """This rank's part of a global tensor, sharing memory; of nested tensors, each of them."""

    def topk(self, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True) -> Ranked:
        """The k largest elements along a dimension, or the smallest, and where they stand."""

    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal."""

    def transpose(self, dim0: _int, dim1: _int) -> Tensor:
        """x with two dimensions exchanged."""

    def transpose_(self, *args: Any, **options: Any) -> Tensor:
        """`transpose`, of the tensor itself: it has another shape from now on."""

    def tril(self, diagonal: _int = 0) -> Tensor:
        """The lower triangle of every matrix, from a diagonal on; zeros elsewhere."""

    def tril_(self, diagonal: _int = 0) -> Tensor:
        """`tril`, into the memory of its first operand."""

    def triu(self, diagonal: _int = 0) -> Tensor:
        """The upper triangle of every matrix, from a diagonal on; zeros elsewhere."""

    def triu_(self, diagonal: _int = 0) -> Tensor:
        """`triu`, into the memory of its first operand."""

    def true_divide(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """x / other, element by element; rounded down with "floor", towards zero with "trunc"."""

    def true_divide_(self, other: Any, rounding_mode: str | None = None) -> Tensor:
        """`div`, into x's memory."""

    def trunc(self) -> Tensor:
        """x without its fraction."""

    def trunc_(self) -> Tensor:
        """`trunc`, into the memory of its first operand."""

    def trunc_normal_(
        self, mean: _float = 0.0, std: _float = 1.0, a: _float = -2.0, b: _float = 2.0, generator: Any = None
    ) -> Tensor:
        """Draw from a normal law of which only [a, b] remains."""

    def type(self, dtype: Any = None) -> Any:
        """x in another dtype, or as flow.FloatTensor, say, which names where it is, too; without one, the name of x's type,
        such as weft.FloatTensor.
        """

    def type_as(self, other: Tensor) -> Tensor:
        """x in the other's dtype, on its device."""

    def unbind(self, dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of every slice along a dimension, which goes away."""

    def unflatten(self, dim: _int, sizes: Sequence[_int]) -> Tensor:
        """x with a dimension divided into several; one of them may be -1."""

    def unfold(self, dimension: _int, size: _int, step: _int) -> Tensor:
        """Every window of this size along a dimension, as a view."""

    @overload
    def uniform_(self, from_: _float = 0.0, to: _float = 1.0, *, generator: Any = None) -> Tensor:
        """Overwrite x with draws from the uniform distribution over [from_, to)."""

    @overload
    def uniform_(self, a: _float = 0.0, b: _float = 1.0, *, generator: Any = None) -> Tensor: ...

    def unique(
        self, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False,
        dim: _int | None = None, *, dtype: Any = None
    ) -> Any:
        """The different elements in order; and if wanted which of them each one is, and how often each occurs."""

    def unique_consecutive(
        self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
    ) -> Any:
        """The elements, each run of equals once."""

    def unsafe_chunk(self, chunks: _int, dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of at most so many parts along a dimension, all of one size but the last."""

    def unsafe_split(self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: of this size, the last one smaller if need be; or of these sizes."""

    def unsafe_split_with_sizes(
        self, split_size_or_sections: _int | Sequence[_int], dim: _int = 0
    ) -> tuple[Tensor, ...]:
        """Views of parts along a dimension: of this size, the last one smaller if need be; or of these sizes."""

    def unsqueeze(self, dim: _int) -> Tensor:
        """x with a dimension of size one put in."""

    def unsqueeze_(self, *args: Any, **options: Any) -> Tensor:
        """`unsqueeze`, of the tensor itself: it has another shape from now on."""

    def untyped_storage(self) -> Any:
        """The memory that x looks at, of this rank's part of it: torch's own storage, with `data_ptr()` and `nbytes()`."""

    def var(
        self, dim: _int | tuple[_int, ...] | list[_int] | None = None, unbiased: _bool = True, keepdim: _bool = False,
        *, correction: _int | None = None
    ) -> Tensor:
        """The variance of the elements, over some dimensions or all; divided by one less than their number."""

    def vdot(self, other: Any) -> Any:
        """The inner product of two vectors, of which the first is conjugated."""

    def view(self, *shape: _int | Sequence[_int]) -> Tensor:
        """x in another shape, sharing memory; -1 stands for what is left. Given a dtype, x's memory read as that."""

    def view_as(self, other: Tensor) -> Tensor:
        """x in the other's shape, sharing memory."""

    def vsplit(self, indices_or_sections: _int | Sequence[_int]) -> tuple[Tensor, ...]:
        """Parts one below the other, along the first dimension."""

    def where(self, condition: Any, other: Any) -> Tensor:
        """x where the condition holds, the other elsewhere. OneFlow's order is another, and known by the mask's place:
        `condition.where(x, other)`.
        """

    def where_(
        self, a: Tensor | _float | _int | _bool | complex, b: Tensor | _float | _int | _bool | complex
    ) -> Tensor:
        """`where`, into the memory of its first operand."""

    def xavier_normal_(self, gain: _float = 1.0, generator: Any = None, *, data_format: str = 'NCHW') -> Tensor:
        """Normally, so that variance passes through a layer unchanged both ways."""

    def xavier_uniform_(self, gain: _float = 1.0, generator: Any = None, *, data_format: str = 'NCHW') -> Tensor:
        """Evenly, so that variance passes through a layer unchanged both ways."""

    def xlogy(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """a * log(b), and 0 where a is."""

    def xlogy_(self, other: Tensor | _float | _int | _bool | complex) -> Tensor:
        """`xlogy`, into the memory of its first operand."""

    def zero_(self) -> Tensor:
        """Overwrite every element with zero."""
