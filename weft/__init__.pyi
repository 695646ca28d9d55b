# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Write a model as if for one very large device, and run it on many: `import weft as flow`.

The folders lie in the order of the path of data, which docs/architecture.md draws.
"""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Sequence
import torch
from typing import Any, overload
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.placement import Placement
from weft.functional.random.generators import DefaultGenerator
from weft.functional.results import Extremes, Histogram, Parts, QR, Ranked, SVDWithV, SignAndSize, SolvedTriangle, Triangles

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "Generator",
    "GradScaler", "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "Parameter", "ShortTensor", "Size",
    "Tensor", "_C", "abs", "abs_", "absolute", "accelerator", "acos", "acos_", "acosh", "acosh_", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "add", "addbmm", "addcdiv", "addcmul", "addmm",
    "addmv", "addr", "adjoint", "all", "allclose", "alpha_dropout", "amax", "amin", "aminmax", "amp", "angle", "any",
    "arange", "arccos", "arccos_", "arccosh", "arccosh_", "arcsin", "arcsin_", "arcsinh", "arcsinh_", "arctan",
    "arctan2", "arctan_", "arctanh", "arctanh_", "are_deterministic_algorithms_enabled", "argmax", "argmin", "argsort",
    "argwhere", "as_strided", "as_tensor", "asarray", "asin", "asin_", "asinh", "asinh_", "asyncs", "atan", "atan2",
    "atan_", "atanh", "atanh_", "atleast_1d", "atleast_2d", "atleast_3d", "autocast", "autocast_decorator", "autograd",
    "avg_pool1d", "backends", "baddbmm", "bartlett_window", "batch_gather", "batch_norm", "bernoulli", "bfloat16",
    "bilinear", "binary_cross_entropy_with_logits", "bincount", "binomial", "bitwise_and", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman_window", "block_diag", "bmm", "bool",
    "boxing", "broadcast_like", "broadcast_shapes", "broadcast_tensors", "broadcast_to", "bucketize", "byte",
    "can_cast", "cartesian_prod", "cast", "cat", "cdist", "cdouble", "ceil", "ceil_", "celu", "celu_", "cfloat",
    "chain_matmul", "channel_shuffle", "channels_last", "channels_last_3d", "char", "checkpoint", "cholesky",
    "cholesky_inverse", "cholesky_solve", "chunk", "clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min",
    "clamp_min_", "clear_autocast_cache", "clip", "clip_", "clone", "column_stack", "combinations", "comm", "compile",
    "complex", "complex128", "complex64", "concat", "concatenate", "conj", "conj_physical", "constant_pad_nd",
    "contiguous", "contiguous_format", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "convert_oneflow_dtype_to_numpy_dtype", "copysign", "corrcoef", "cos", "cos_", "cosh", "cosh_",
    "cosine_embedding_loss", "cosine_similarity", "count_nonzero", "cov", "cpu", "cross", "ctc_loss", "cuda", "cummax",
    "cummin", "cumprod", "cumsum", "cumulative_trapezoid", "data", "default_generator", "deform_conv2d", "deg2rad",
    "deg2rad_", "det", "detach", "device", "diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "diff",
    "digamma", "dist", "distributed", "distributed_partial_fc_sample", "distributions", "div", "div_", "divide", "dot",
    "double", "dropout", "dsplit", "dstack", "dtype", "e", "eig", "einsum", "embedding", "embedding_bag", "empty",
    "empty_like", "enable_grad", "env", "eq", "equal", "erf", "erf_", "erfc", "erfc_", "erfinv", "erfinv_", "errors",
    "exp", "exp2", "exp2_", "exp_", "expand", "explain", "expm1", "expm1_", "eye", "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine", "feature_alpha_dropout", "feature_dropout", "fft", "fill", "fill_", "finfo",
    "fix", "fix_", "flatten", "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float8_e4m3fn",
    "float8_e5m2", "float_power", "floor", "floor_", "floor_divide", "fmax", "fmin", "fmod", "frac", "frac_", "frexp",
    "frobenius_norm", "from_dlpack", "from_numpy", "from_torch", "frombuffer", "full", "full_like", "func",
    "functional", "fused_moving_avg_obs_fake_quant", "gather", "gather_nd", "gcd", "gcd_", "ge", "gelu", "ger",
    "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "get_default_device", "get_default_dtype",
    "get_deterministic_debug_mode", "get_device", "get_float32_matmul_precision", "get_num_interop_threads",
    "get_num_threads", "get_rng_state", "global_to_global", "gradient", "graph", "greater", "greater_equal",
    "group_norm", "gru_cell", "gt", "half", "hamming_window", "hann_window", "hardshrink", "heaviside",
    "hinge_embedding_loss", "histc", "histogram", "hsplit", "hstack", "hub", "hypot", "i0", "i0_", "igamma", "igammac",
    "ignore", "iinfo", "imag", "in_top_k", "index_add", "index_add_", "index_copy", "index_fill", "index_put",
    "index_put_", "index_reduce", "index_select", "inf", "inference_mode", "initial_seed", "inner", "instance_norm",
    "int", "int16", "int32", "int64", "int8", "inverse", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
    "is_autocast_cache_enabled", "is_autocast_enabled", "is_complex", "is_conj",
    "is_deterministic_algorithms_warn_only_enabled", "is_floating_point", "is_grad_enabled", "is_inference",
    "is_inference_mode_enabled", "is_neg", "is_nonzero", "is_same_size", "is_signed", "is_tensor",
    "is_warn_always_enabled", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "istft", "jit", "kaiser_window", "kl_div", "kron", "kthvalue", "launch", "layer_norm", "layout", "lcm", "lcm_",
    "ldexp", "le", "lerp", "less", "less_equal", "lgamma", "linalg", "linspace", "load", "local_to_global", "log",
    "log10", "log10_", "log1p", "log1p_", "log2", "log2_", "log_", "log_softmax", "logaddexp", "logaddexp2",
    "logcumsumexp", "logdet", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logit_", "logspace",
    "logsumexp", "long", "lstm_cell", "lt", "lu", "lu_solve", "lu_unpack", "manual_seed", "margin_ranking_loss",
    "masked_fill", "masked_fill_", "masked_scatter", "masked_select", "matmul", "matrix_exp", "matrix_power", "max",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d", "maximum", "mean", "median", "memory_format",
    "meshgrid", "min", "minimum", "mish", "mm", "mock_torch", "mode", "moveaxis", "movedim", "mps", "msort", "mul",
    "multinomial", "multiply", "multiprocessing", "mv", "mvlgamma", "nan", "nan_to_num", "nan_to_num_", "nanmean",
    "nanmedian", "nanquantile", "nansum", "narrow", "ne", "neg", "neg_", "negative", "negative_", "new_empty",
    "new_full", "new_ones", "new_zeros", "newaxis", "nextafter", "nms", "nn", "no_grad", "nonzero", "norm", "normal",
    "not_equal", "nuclear_norm", "numel", "ones", "ones_like", "optim", "outer", "pad", "pairwise_distance", "parallel",
    "pca_lowrank", "pdist", "permute", "pi", "pinverse", "pixel_shuffle", "pixel_unshuffle", "placement", "poisson",
    "poisson_nll_loss", "polar", "polygamma", "positive", "pow", "prelu", "preserve_format", "prod", "profiler",
    "promote_types", "put", "qr", "quantile", "quick_gelu", "rad2deg", "rad2deg_", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "random", "randperm", "range", "ravel", "real", "reciprocal", "reciprocal_",
    "register", "relu", "relu_", "remainder", "renorm", "repeat", "repeat_interleave", "reshape", "resolve_conj",
    "resolve_neg", "result_type", "rms_norm", "rnn_relu_cell", "rnn_tanh_cell", "roc_auc_score", "roi_align", "roll",
    "rot90", "round", "round_", "row_stack", "rrelu", "rsqrt", "rsqrt_", "rsub", "save", "sbp", "scalar_tensor",
    "scatter", "scatter_add", "scatter_nd", "scatter_reduce", "script", "searchsorted", "seed", "select",
    "select_scatter", "selu", "selu_", "set_anomaly_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
    "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype", "set_default_device", "set_default_dtype",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_grad_enabled", "set_num_interop_threads", "set_num_threads", "set_printoptions", "set_rng_state",
    "set_warn_always", "sgn", "short", "show", "sigmoid", "sigmoid_", "sign", "signal", "signbit", "silu", "sin",
    "sin_", "sinc", "sinc_", "sinh", "sinh_", "slice", "slice_scatter", "slice_update", "slogdet", "softmax",
    "softplus", "softshrink", "softsign", "solve", "sort", "sparse_coo_tensor", "special", "split", "split_with_sizes",
    "sqrt", "sqrt_", "square", "square_", "squeeze", "stack", "std", "std_mean", "stft", "strided", "sub", "subtract",
    "sum", "svd", "svd_lowrank", "swapaxes", "swapdims", "t", "take", "take_along_dim", "tan", "tan_", "tanh", "tanh_",
    "tensor", "tensor_scatter_nd_update", "tensor_split", "tensordot", "testing", "threshold", "threshold_", "tile",
    "to_dlpack", "to_global", "to_local", "to_torch", "topk", "trace", "transpose", "trapezoid", "trapz",
    "triangular_solve", "tril", "tril_indices", "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc",
    "trunc_", "typename", "uint16", "uint32", "uint64", "uint8", "unbind", "unflatten", "unique", "unique_consecutive",
    "unravel_index", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze",
    "use_deterministic_algorithms", "utils", "vander", "var", "var_mean", "vdot", "version", "view", "view_as_complex",
    "view_as_real", "vm", "vmap", "vsplit", "vstack", "where", "xlogy", "xlogy_", "xpu", "zero_", "zeros", "zeros_like"
]

from torch import (
    Size as Size, backends as backends, layout as layout, memory_format as memory_format,
    multiprocessing as multiprocessing
)
from weft import (
    _C as _C, accelerator as accelerator, amp as amp, asyncs as asyncs, autograd as autograd, boxing as boxing,
    checkpoint as checkpoint, comm as comm, cpu as cpu, cuda as cuda, data as data, distributed as distributed,
    distributions as distributions, env as env, fft as fft, func as func, functional as functional, graph as graph,
    hub as hub, jit as jit, launch as launch, linalg as linalg, mock_torch as mock_torch, mps as mps, nn as nn,
    optim as optim, parallel as parallel, profiler as profiler, random as random, sbp as sbp, signal as signal,
    special as special, testing as testing, utils as utils, version as version, vm as vm, xpu as xpu
)
from weft.amp.autocast import (
    autocast as autocast, autocast_decorator as autocast_decorator, clear_autocast_cache as clear_autocast_cache,
    get_autocast_cpu_dtype as get_autocast_cpu_dtype, get_autocast_dtype as get_autocast_dtype,
    get_autocast_gpu_dtype as get_autocast_gpu_dtype, is_autocast_cache_enabled as is_autocast_cache_enabled,
    is_autocast_enabled as is_autocast_enabled, set_autocast_cache_enabled as set_autocast_cache_enabled,
    set_autocast_cpu_dtype as set_autocast_cpu_dtype, set_autocast_dtype as set_autocast_dtype,
    set_autocast_enabled as set_autocast_enabled, set_autocast_gpu_dtype as set_autocast_gpu_dtype
)
from weft.amp.scaler import GradScaler as GradScaler
from weft.api.bound import register as register
from weft.autograd.modes import (
    enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled,
    no_grad as no_grad, set_grad_enabled as set_grad_enabled
)
from weft.autograd.vmap import vmap as vmap
from weft.checkpoint.checkpoint import load as load, save as save
from weft.core import errors as errors
from weft.core.errors import OutOfMemoryError as OutOfMemoryError
from weft.functional.create.creation import (
    get_default_dtype as get_default_dtype, set_default_dtype as set_default_dtype
)
from weft.functional.random.generators import Generator as Generator
from weft.interop.torch_state import from_torch as from_torch, to_torch as to_torch
from weft.interpreter.explain_movements import explain as explain
from weft.tensor.parameter import Parameter as Parameter
from weft.tensor.printing import set_printoptions as set_printoptions, show as show
from weft.tensor.tensor import Tensor as Tensor

__version__: str
bfloat16: DType
bool: DType
byte: DType
cdouble: DType
cfloat: DType
channels_last: torch.memory_format
channels_last_3d: torch.memory_format
char: DType
complex128: DType
complex64: DType
contiguous_format: torch.memory_format
default_generator: DefaultGenerator
device = Device
double: DType
dtype = DType
e: _float
float: DType
float16: DType
float32: DType
float64: DType
float8_e4m3fn: DType
float8_e5m2: DType
half: DType
inf: _float
int: DType
int16: DType
int32: DType
int64: DType
int8: DType
long: DType
nan: _float
newaxis: None
pi: _float
placement = Placement
preserve_format: torch.memory_format
short: DType
strided: torch.layout
uint16: DType
uint32: DType
uint64: DType
uint8: DType

def BFloat16Tensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A bfloat16 tensor of data, or an uninitialized one of a size: BFloat16Tensor([1, 2]) or BFloat16Tensor(2, 3)."""

def BoolTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A bool tensor of data, or an uninitialized one of a size: BoolTensor([1, 2]) or BoolTensor(2, 3)."""

def ByteTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A uint8 tensor of data, or an uninitialized one of a size: ByteTensor([1, 2]) or ByteTensor(2, 3)."""

def CharTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A int8 tensor of data, or an uninitialized one of a size: CharTensor([1, 2]) or CharTensor(2, 3)."""

def DoubleTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A float64 tensor of data, or an uninitialized one of a size: DoubleTensor([1, 2]) or DoubleTensor(2, 3)."""

def FloatTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A float32 tensor of data, or an uninitialized one of a size: FloatTensor([1, 2]) or FloatTensor(2, 3)."""

def HalfTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A float16 tensor of data, or an uninitialized one of a size: HalfTensor([1, 2]) or HalfTensor(2, 3)."""

def IntTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A int32 tensor of data, or an uninitialized one of a size: IntTensor([1, 2]) or IntTensor(2, 3)."""

def LongTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A int64 tensor of data, or an uninitialized one of a size: LongTensor([1, 2]) or LongTensor(2, 3)."""

def ShortTensor(*data: Any, device: Any = None, placement: Any = None, sbp: Any = None) -> Tensor:
    """A int16 tensor of data, or an uninitialized one of a size: ShortTensor([1, 2]) or ShortTensor(2, 3)."""

def _assert(condition: Any, message: str = '') -> None:
    """`assert` as a function, as traced programs call it."""

def _fake_quantize_learnable_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int,
    grad_factor: _float = 1.0, *, out: Tensor | None = None
) -> Tensor:
    """The same with a scale and a zero point for every channel along an axis."""

def _fake_quantize_learnable_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: _int, quant_max: _int, grad_factor: _float = 1.0, *,
    out: Tensor | None = None
) -> Tensor:
    """`fake_quantize_per_tensor_affine` whose scale and zero point have gradients, times `grad_factor`: those of
    (q - zero_point) * scale, where q ignores the rounding.
    """

def abs(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value."""

def abs_(x: Tensor) -> Tensor:
    """`abs`, in place."""

def acos(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arc cosine."""

def acos_(x: Tensor) -> Tensor:
    """`acos`, in place."""

def acosh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of cosh."""

def acosh_(x: Tensor) -> Tensor:
    """`acosh`, in place."""

def adaptive_avg_pool1d(
    x: Tensor, output_size: _int | Sequence[_int | None], *, out: Tensor | None = None
) -> Tensor:
    """Adaptive average pooling to an output size, over 1 dimension."""

def adaptive_avg_pool2d(
    x: Tensor, output_size: _int | Sequence[_int | None], *, out: Tensor | None = None
) -> Tensor:
    """Adaptive average pooling to an output size, over 2 dimensions."""

def adaptive_avg_pool3d(
    x: Tensor, output_size: _int | Sequence[_int | None], *, out: Tensor | None = None
) -> Tensor:
    """Adaptive average pooling to an output size, over 3 dimensions."""

def adaptive_max_pool1d(
    x: Tensor, output_size: _int | Sequence[_int | None], *, out: Any = None
) -> tuple[Tensor, Tensor]:
    """Adaptive max pooling to an output size, over 1 dimension."""

def add(x: Any, other: Any = None, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """x + alpha * other, element-wise; of a list of tensors alone, their sum."""

def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * x + alpha * the sum of the products of two batches of matrices."""

def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 / tensor2."""

def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """x + value * tensor1 * tensor2."""

def addmm(
    x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """beta * x + alpha * (mat1 @ mat2)."""

def addmv(
    x: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """beta * x + alpha * (mat @ vec)."""

def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * x + alpha * (vec1 outer vec2)."""

def adjoint(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The conjugate transpose."""

def all(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether every element is true, over some dimensions or all."""

def allclose(
    x: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False
) -> _bool:
    """Whether |x - other| <= atol + rtol * |other| for every element."""

def alpha_dropout(
    input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Dropout that keeps the mean and variance of a SELU network."""

def amax(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *,
    out: Tensor | None = None
) -> Tensor:
    """The largest of the elements, over some dimensions or all; ties share the gradient."""

def amin(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *,
    out: Tensor | None = None
) -> Tensor:
    """The smallest of the elements, over some dimensions or all; ties share the gradient."""

def aminmax(x: Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: Any = None) -> Extremes:
    """The smallest and the largest element, over a dimension or all."""

def angle(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of a complex number, from -pi to pi; of a real one, 0 or pi."""

def any(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether any element is true, over some dimensions or all."""

def arange(
    start: Any = None, end: Any = None, step: Any = 1, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: _bool = False, *, out: Tensor | None = None,
    layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """start, start + step, ... below end."""

def are_deterministic_algorithms_enabled() -> _bool:
    """Whether kernels must be deterministic: a setting of the kernels, torch's and Weft's."""

def argmax(x: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The index of the largest element, along a dimension or of all."""

def argmin(x: Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The index of the smallest element, along a dimension or of all."""

def argsort(
    x: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The indices that sort the elements along a dimension."""

def argwhere(x: Tensor, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """The indices of the nonzero elements, one per row."""

def as_strided(
    x: Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None, *,
    out: Tensor | None = None
) -> Tensor:
    """A view of x's memory with these sizes and strides, from an offset; x must be dense."""

def as_tensor(
    data: Any, dtype: Any = None, device: Any = None, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """The data as a tensor, without a copy if possible."""

def asarray(
    data: Any, dtype: Any = None, device: Any = None, requires_grad: _bool | None = None, copy: Any = None, *,
    out: Tensor | None = None, layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """Data as a tensor, sharing memory if possible; of a tensor, part of its computation unless `requires_grad` says
    otherwise.
    """

def asin(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arc sine."""

def asin_(x: Tensor) -> Tensor:
    """`asin`, in place."""

def asinh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of sinh."""

def asinh_(x: Tensor) -> Tensor:
    """`asinh`, in place."""

def atan(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arc tangent."""

def atan2(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The angle of the point (b, a), in the correct quadrant."""

def atan_(x: Tensor) -> Tensor:
    """`atan`, in place."""

def atanh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of tanh."""

def atanh_(x: Tensor) -> Tensor:
    """`atanh`, in place."""

def atleast_1d(*tensors: Any) -> Any:
    """The tensors reshaped to at least 1 dimension."""

def atleast_2d(*tensors: Any) -> Any:
    """The tensors reshaped to at least 2 dimensions."""

def atleast_3d(*tensors: Any) -> Any:
    """The tensors reshaped to at least 3 dimensions."""

def avg_pool1d(
    x: Tensor, kernel_size: _int | tuple[_int, ...] | list[_int],
    stride: _int | tuple[_int, ...] | list[_int] | None = None, padding: _int | tuple[_int, ...] | list[_int] = 0,
    ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: _int | None = None, *,
    out: Tensor | None = None
) -> Tensor:
    """The mean of each window of 1 dimension."""

def baddbmm(
    x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None
) -> Tensor:
    """beta * x + alpha * (batch1 @ batch2)."""

def bartlett_window(window_length: _int, periodic: _bool = True, **options: Any) -> Tensor:
    """The triangular window of this length."""

def batch_gather(input: Tensor, indices: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Per leading index, the slices at the indices' last dimension."""

def batch_norm(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: _bool = False, momentum: _float = 0.1, eps: _float = 1e-05, *,
    out: Tensor | None = None
) -> Tensor:
    """(x - mean) / deviation per channel, times weight, plus bias. Training uses the batch's statistics and updates the
    running ones, which are used otherwise.
    """

def bernoulli(
    x: Tensor, p: _float | None = None, *, generator: Any = None, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """1 with probability x, else 0, element-wise; or with probability p everywhere, in x's shape."""

def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1 @ weight[k] @ input2 for every k, plus the bias."""

def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = 'mean',
    pos_weight: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """binary_cross_entropy(sigmoid(input), target), numerically stable."""

def bincount(x: Tensor, weights: Tensor | None = None, minlength: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """How often each number occurs, or the sum of its weights."""

def binomial(count: Tensor, prob: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Draws from the binomial distribution."""

def bitwise_and(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a & b, bit by bit."""

def bitwise_left_shift(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a << b."""

def bitwise_not(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """~x, bitwise; logical not of booleans."""

def bitwise_or(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a | b, bit by bit."""

def bitwise_right_shift(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a >> b."""

def bitwise_xor(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a ^ b, bit by bit."""

def blackman_window(window_length: _int, periodic: _bool = True, **options: Any) -> Tensor:
    """Blackman's window of this length."""

def block_diag(*tensors: Any) -> Any:
    """A block-diagonal matrix."""

def bmm(
    x: Tensor, mat2: Tensor, transpose_a: _bool = False, transpose_b: _bool = False, alpha: _float = 1.0, *,
    out: Tensor | None = None
) -> Tensor:
    """The products of two batches of matrices, with the extra arguments of `matmul`."""

def broadcast_like(
    x: Tensor, like_tensor: Tensor, broadcast_axes: Sequence[_int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """x broadcast to the other's shape; `broadcast_axes` are the other's dimensions that x lacks or has with size one."""

def broadcast_shapes(*shapes: Sequence[_int] | _int) -> torch.Size:
    """The shape that these shapes broadcast to."""

def broadcast_tensors(*tensors: Tensor, out: Any = None) -> list[Tensor]:
    """The tensors, broadcast to their common shape as views; those that have it, themselves."""

def broadcast_to(x: Tensor, *shape: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """x broadcast to a larger shape, as a view."""

def bucketize(
    x: Any, boundaries: Tensor, *, out_int32: _bool = False, right: _bool = False, out: Tensor | None = None
) -> Tensor:
    """The index of the bin of each element, for sorted boundaries."""

def can_cast(from_: Any, to: Any) -> _bool:
    """Whether casting from one dtype to the other is allowed."""

def cartesian_prod(*tensors: Tensor, out: Tensor | None = None) -> Tensor:
    """The Cartesian product of vectors, one combination per row."""

def cast(x: Tensor, dtype: Any, *, out: Tensor | None = None) -> Tensor:
    """x in another dtype; x itself if it has that dtype."""

def cat(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along a dimension."""

def cdist(x1: Any, x2: Any, p: _float = 2.0, compute_mode: Any = None) -> Any:
    """The distances between all pairs of rows of two matrices."""

def ceil(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest integer that is at least x."""

def ceil_(x: Tensor) -> Tensor:
    """`ceil`, in place."""

def celu(x: Tensor, alpha: _float = 1.0, *, out: Tensor | None = None) -> Tensor:
    """x where it is above zero, alpha * (exp(x / alpha) - 1) below."""

def celu_(x: Tensor, alpha: _float = 1.0) -> Tensor:
    """`celu`, in place."""

def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices."""

def channel_shuffle(input: Tensor, groups: _int, *, out: Tensor | None = None) -> Tensor:
    """Channels interleaved: the first of each group, then the second of each, and so on."""

def cholesky(x: Tensor, upper: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The lower triangular l of x = l @ l.T, for symmetric positive definite x; or its transpose, `upper`."""

def cholesky_inverse(L: Any, upper: _bool = False) -> Any:
    """The inverse of A, where L is A's Cholesky factor."""

def cholesky_solve(x: Any, L: Any, upper: _bool = False) -> Any:
    """The y of A @ y = x, where L is A's Cholesky factor."""

def chunk(x: Tensor, chunks: _int, dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """Views of at most `chunks` equal parts along a dimension, the last one smaller if need be."""

def clamp(x: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """x limited to [min, max]: numbers, tensors that broadcast, or None."""

def clamp_(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place `clamp`."""

def clamp_max(x: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """x limited to at most max."""

def clamp_max_(x: Tensor, max: Any) -> Tensor:
    """In-place `clamp_max`."""

def clamp_min(x: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """x limited to at least min."""

def clamp_min_(x: Tensor, min: Any) -> Tensor:
    """In-place `clamp_min`."""

def clone(x: Tensor, memory_format: Any = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of x, which lies as x does unless a memory format is given."""

def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along the second dimension, vectors as columns."""

def combinations(x: Tensor, r: _int = 2, with_replacement: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The combinations of r elements of a vector, one per row."""

def compile(model: Any = None, **_: Any) -> Any:
    """The function or module itself, or a decorator that changes nothing: `nn.Graph` compiles here."""

def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i * imag."""

def conj(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate; x itself, if it is real."""

def conj_physical(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The complex conjugate; x itself, if it is real."""

def constant_pad_nd(x: Tensor, pad: Sequence[_int], value: Any = 0, *, out: Tensor | None = None) -> Tensor:
    """Constant padding: (left, right) of the last dimension, then of the one before it, and so on."""

def contiguous(x: Tensor, memory_format: Any = None, *, out: Tensor | None = None) -> Tensor:
    """x, or a contiguous copy of it: in the order of its dimensions, or with `channels_last` in that of NHWC."""

def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: _int = 1, *, out: Tensor | None = None
) -> Tensor:
    """Convolution over 1 dimension: weight is (out, in / groups, ...). Padding may be "same"; the batch may be left out."""

def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: _int = 1, *, out: Tensor | None = None
) -> Tensor:
    """Convolution over 2 dimensions: weight is (out, in / groups, ...). Padding may be "same"; the batch may be left out."""

def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: _int = 1, *, out: Tensor | None = None
) -> Tensor:
    """Convolution over 3 dimensions: weight is (out, in / groups, ...). Padding may be "same"; the batch may be left out."""

def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: _int = 1, dilation: Any = 1, *, out: Tensor | None = None
) -> Tensor:
    """Transposed convolution over 1 dimension, the gradient of a convolution: weight is (in, out / groups, ...). The batch may be left out."""

def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: _int = 1, dilation: Any = 1, *, out: Tensor | None = None
) -> Tensor:
    """Transposed convolution over 2 dimensions, the gradient of a convolution: weight is (in, out / groups, ...). The batch may be left out."""

def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: _int = 1, dilation: Any = 1, *, out: Tensor | None = None
) -> Tensor:
    """Transposed convolution over 3 dimensions, the gradient of a convolution: weight is (in, out / groups, ...). The batch may be left out."""

def convert_oneflow_dtype_to_numpy_dtype(oneflow_dtype: Any) -> Any:
    """The numpy dtype of a dtype."""

def copysign(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a with the sign of b."""

def corrcoef(x: Any) -> Any:
    """The correlation coefficients of variables in rows."""

def cos(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine."""

def cos_(x: Tensor) -> Tensor:
    """`cos`, in place."""

def cosh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine."""

def cosh_(x: Tensor) -> Tensor:
    """`cosh`, in place."""

def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: _float = 0.0, reduction: str = 'mean', *, out: Tensor | None = None
) -> Tensor:
    """1 - cosine where the target is 1, the cosine above the margin where it is -1."""

def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: _int = 1, eps: _float = 1e-08, *, out: Tensor | None = None
) -> Tensor:
    """The cosine of the angle between two tensors, along `dim`."""

def count_nonzero(x: Tensor, dim: _int | Sequence[_int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """The number of nonzero elements, over some dimensions or all."""

def cov(x: Any, *, correction: _int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables in rows; observations may be repeated (fweights) or weighted (aweights)."""

def cross(x: Tensor, other: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The cross product along a dimension, by default the first of size three."""

def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: _int = 0,
    reduction: str = 'mean', zero_infinity: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The negative log probability of each target, over all alignments of its labels with blanks between."""

def cummax(x: Tensor, dim: _int, *, out: Any = None) -> Ranked:
    """The cumulative largest element along a dimension, and its index."""

def cummin(x: Tensor, dim: _int, *, out: Any = None) -> Ranked:
    """The cumulative smallest element along a dimension, and its index."""

def cumprod(x: Tensor, dim: _int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """The cumulative product along a dimension."""

def cumsum(x: Tensor, dim: _int, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """The cumulative sum along a dimension."""

def cumulative_trapezoid(
    y: Any, x: Any = None, *, dx: _float = 1.0, dim: _int = -1, out: Tensor | None = None
) -> Tensor:
    """The cumulative integral of y over x, or over steps of dx, by the trapezoidal rule."""

def deform_conv2d(
    input: Tensor, offset: Any, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, mask: Tensor | None = None
) -> Any:
    """Deformable convolution: each tap of the kernel reads at an offset, (y, x)."""

def deg2rad(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """From degrees to radians."""

def deg2rad_(x: Tensor) -> Tensor:
    """`deg2rad`, in place."""

def det(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of matrices."""

def detach(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A tensor over the same memory, detached from the autograd graph."""

def diag(x: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """A matrix with this diagonal, or the diagonal of a matrix."""

def diag_embed(
    x: Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *, out: Tensor | None = None
) -> Tensor:
    """Matrices with x's last dimension as their diagonals, zero elsewhere."""

def diagflat(x: Tensor, offset: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """A matrix with x, flattened, as a diagonal."""

def diagonal(x: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """A diagonal of two dimensions, as a new last dimension."""

def diagonal_scatter(
    x: Tensor, src: Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: Tensor | None = None
) -> Tensor:
    """x with a diagonal of two dimensions replaced."""

def diff(
    x: Tensor, n: _int = 1, dim: _int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *,
    out: Tensor | None = None
) -> Tensor:
    """The difference of neighboring elements along a dimension, n times over."""

def digamma(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of lgamma."""

def dist(x: Any, other: Any, p: _float = 2) -> Any:
    """The p-norm of the difference."""

def distributed_partial_fc_sample(
    weight: Tensor, label: Tensor, num_sample: _int, *, out: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The labels' classes and as many others as fit, drawn: each label's place among them, the classes, their rows."""

def div(x: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """x / other, element by element; rounded down with "floor", towards zero with "trunc"."""

def div_(x: Tensor, other: Any, rounding_mode: str | None = None) -> Tensor:
    """In-place `div`."""

def dot(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inner product of two vectors."""

def dropout(x: Tensor, p: _float = 0.5, train: _bool = True, *, out: Tensor | None = None) -> Tensor:
    """x with each element zeroed with probability p, and the others scaled by 1 / (1 - p); x itself if not training."""

def dsplit(x: Tensor, indices_or_sections: _int | Sequence[_int], *, out: Any = None) -> tuple[Tensor, ...]:
    """Views split along the third dimension."""

def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along the third dimension."""

def eig(x: Tensor, *, out: Any = None) -> tuple[Tensor, Tensor]:
    """The complex eigenvalues of square matrices, and their eigenvectors as columns, of length one."""

def einsum(equation: Any, *operands: Any, out: Tensor | None = None) -> Tensor:
    """The sum of products of an equation, such as "ij,jk->ik" for the matrix product. Or operands alternate with lists
    of axis numbers, and the result's list comes last: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """

def embedding(
    weight: Tensor, ids: Tensor, padding_idx: _int | None = None, by_frequency: _bool = False, sparse: _bool = False, *,
    out: Tensor | None = None
) -> Tensor:
    """The rows of weight at the ids. The row padding_idx gets no gradient; `by_frequency` divides each row's gradient
    by the count of its id; a `sparse` gradient of an eager local call has the rows that were looked up, and no others.
    """

def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: _float = 2.0,
    scale_grad_by_freq: _bool = False, mode: str = 'mean', sparse: _bool = False, per_sample_weights: Any = None,
    include_last_offset: _bool = False, padding_idx: _int | None = None
) -> Any:
    """The sums, means or maxima of bags of rows; bags are rows of the input, or start at the offsets."""

def empty(
    *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, requires_grad: _bool = False, pin_memory: _bool = False, memory_format: Any = None,
    out: Tensor | None = None, layout: Any = None
) -> Tensor:
    """An uninitialized tensor."""

def empty_like(
    x: Tensor, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
    requires_grad: _bool = False, memory_format: Any = None, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """An uninitialized tensor of x's shape and dtype."""

def eq(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether a equals b, element by element."""

def equal(x: Tensor, other: Tensor) -> _bool:
    """Whether two tensors have the same shape and elements."""

def erf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x."""

def erf_(x: Tensor) -> Tensor:
    """`erf`, in place."""

def erfc(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 - erf(x)."""

def erfc_(x: Tensor) -> Tensor:
    """`erfc`, in place."""

def erfinv(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of erf."""

def erfinv_(x: Tensor) -> Tensor:
    """`erfinv`, in place."""

def exp(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """e to the power x."""

def exp2(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power x."""

def exp2_(x: Tensor) -> Tensor:
    """`exp2`, in place."""

def exp_(x: Tensor) -> Tensor:
    """`exp`, in place."""

def expand(x: Tensor, *shape: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """x expanded to a larger shape, as a view; -1 keeps a dimension."""

def expm1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) - 1, exact near zero."""

def expm1_(x: Tensor) -> Tensor:
    """`expm1`, in place."""

def eye(
    n: _int, m: _int | None = None, dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, requires_grad: _bool = False, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""

def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: _int, quant_min: _int, quant_max: _int, *,
    out: Tensor | None = None
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for every channel along an axis; of a zero point
    that isn't a whole number, the sum is rounded.
    """

def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: _int, quant_max: _int, *, out: Tensor | None = None
) -> Tensor:
    """The input rounded to a multiple of `scale` and clamped to these bounds. The gradient ignores the rounding, and is
    zero beyond the bounds.
    """

def feature_alpha_dropout(
    input: Tensor, p: _float = 0.5, training: _bool = False, inplace: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Alpha dropout of channels of (batch, channels, ...)."""

def feature_dropout(
    input: Tensor, p: _float = 0.5, training: _bool = True, inplace: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Channels of (batch, channels, ...) zeroed with probability p, the others scaled by 1 / (1 - p)."""

def fill(x: Tensor, value: Tensor | _float | _int | _bool | _complex, *, out: Tensor | None = None) -> Tensor:
    """A tensor of x's form filled with the value, a number or a 0-d tensor: the result of `x.fill_(value)`."""

def fill_(x: Tensor, value: Tensor | _float | _int | _bool | _complex) -> Tensor:
    """`fill`, in place."""

def finfo(dtype: Any = None) -> torch.finfo:
    """The limits of a floating point dtype: eps, max, min, tiny, bits."""

def flatten(x: Tensor, start_dim: _int = 0, end_dim: _int = -1, *, out: Tensor | None = None) -> Tensor:
    """x with a range of dimensions merged into one."""

def flip(x: Tensor, *dims: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """x with the order of elements reversed along some dimensions."""

def fliplr(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with its columns reversed."""

def flipud(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with its rows reversed."""

def float_power(x: Any, exponent: Any) -> Any:
    """x ** exponent, in float64, or of complex numbers in complex128."""

def floor(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest integer that is at most x."""

def floor_(x: Tensor) -> Tensor:
    """`floor`, in place."""

def floor_divide(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a / b, rounded down."""

def fmax(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The larger of a and b; the other one where one is NaN."""

def fmin(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The smaller of a and b; the other one where one is NaN."""

def fmod(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The remainder of a / b, with a's sign, as C's fmod."""

def frac(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The fractional part of x."""

def frac_(x: Tensor) -> Tensor:
    """`frac`, in place."""

def frexp(x: Tensor, *, out: Any = None) -> Parts:
    """x as mantissa * 2 ** exponent, with mantissas from 0.5 to 1."""

def frobenius_norm(x: Tensor, dim: Any = None, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The root of the sum of squares, over some dimensions or all."""

def from_dlpack(exporter: Any, *, out: Tensor | None = None) -> Tensor:
    """A tensor that shares memory with any DLPack exporter: NumPy, torch, jax, cupy."""

def from_numpy(array: Any, *, out: Tensor | None = None) -> Tensor:
    """A tensor that shares memory with a numpy array."""

def frombuffer(
    buffer: Any, *, dtype: Any, count: _int = -1, offset: _int = 0, requires_grad: _bool = False,
    out: Tensor | None = None
) -> Tensor:
    """A vector that shares memory with a buffer."""

def full(
    size: Any, fill_value: Any, dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, requires_grad: _bool = False, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor of one value."""

def full_like(
    x: Tensor, fill_value: Any, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
    requires_grad: _bool = False, *, memory_format: Any = None, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor like x, filled with one value."""

def fused_moving_avg_obs_fake_quant(
    input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: _float, quant_min: _int, quant_max: _int, ch_axis: _int = -1,
    per_row_fake_quant: _bool = False, symmetric_quant: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The input, fake-quantized by the running extremes. The observer moves these towards the input's, by
    `averaging_const`; scale and zero point are written, too. With `per_row_fake_quant`, each channel has its own.
    """

def gather(x: Tensor, dim: _int, index: Tensor, sparse_grad: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The elements of x selected along a dimension by an index: y[i][j] = x[index[i][j]][j] for dim 0."""

def gather_nd(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements or slices at the index's last dimension."""

def gcd(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The greatest common divisor."""

def gcd_(input: Tensor, other: Tensor | _float | _int | _bool | _complex) -> Tensor:
    """`gcd`, in place."""

def ge(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether a is at least b, element by element."""

def gelu(x: Tensor, approximate: str = 'none', *, out: Tensor | None = None) -> Tensor:
    """x * Phi(x), Phi being the normal distribution's CDF; approximate="tanh" for the usual fast formula."""

def get_default_device() -> Device:
    """The default device of this thread's new tensors."""

def get_deterministic_debug_mode() -> _int:
    """What happens at nondeterministic kernels: a setting of the kernels, torch's and Weft's."""

def get_device(x: Tensor) -> _int:
    """The index of x's device; -1 for the CPU."""

def get_float32_matmul_precision() -> str:
    """The precision of float32 matrix products on CUDA devices: a setting of the kernels, torch's and Weft's."""

def get_num_interop_threads() -> Any:
    """The number of torch's inter-op threads: a setting of the kernels, torch's and Weft's."""

def get_num_threads() -> Any:
    """How many threads one op may use on the CPU: a setting of the kernels, torch's and Weft's."""

def get_rng_state(*, out: Tensor | None = None) -> Tensor:
    """The state of this rank's random numbers, for `set_rng_state`: seed, count of draws, and torch's own state."""

def global_to_global(
    x: Tensor, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None, check_meta: _bool = False,
    copy: _bool = False, out: Tensor | None = None
) -> Tensor:
    """The same logical tensor with another placement and sbp."""

def gradient(
    input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: _int = 1, out: Any = None
) -> tuple[Tensor, ...]:
    """Numerical derivatives along each dimension, by central differences, one-sided at the ends. `spacing` is one step,
    one for each dimension, or the coordinates along each.
    """

def group_norm(
    x: Tensor, num_groups: _int, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05, *,
    out: Tensor | None = None
) -> Tensor:
    """(x - mean) / deviation per sample and group of channels, times weight, plus bias, per channel."""

def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of gated recurrent units: returns the new state."""

def gt(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether a is greater than b, element by element."""

def hamming_window(
    window_length: _int, periodic: _bool = True, alpha: _float = 0.54, beta: _float = 0.46, **options: Any
) -> Tensor:
    """The Hamming window of this length: alpha - beta * cos."""

def hann_window(window_length: _int, periodic: _bool = True, **options: Any) -> Tensor:
    """The raised cosine window of this length."""

def hardshrink(x: Tensor, lambd: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x where its absolute value is above lambd, zero elsewhere."""

def heaviside(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """0 below zero, 1 above, b at zero."""

def hinge_embedding_loss(
    input: Any, target: Any, margin: _float = 1.0, reduction: str = 'mean', *, out: Tensor | None = None
) -> Tensor:
    """The input, a distance, where the target is 1; how far it is below the margin, where it is -1."""

def histc(x: Any, bins: _int = 100, min: _float = 0, max: _float = 0) -> Any:
    """A histogram with equal bins over [min, max], or over x's range if both are equal."""

def histogram(
    x: Any, bins: Any, *, range: Sequence[_float] | None = None, weight: Any = None, density: _bool = False,
    out: Any = None
) -> Histogram:
    """A histogram by edges: a number of equal bins over a range, by default x's own, or the given edges. Optionally
    weighted, or as a `density`, whose integral is 1.
    """

def hsplit(x: Tensor, indices_or_sections: _int | Sequence[_int], *, out: Any = None) -> tuple[Tensor, ...]:
    """Views split along the second dimension, of a vector along its only one."""

def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along the second dimension, vectors along their only one."""

def hypot(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """sqrt(a * a + b * b), without overflow."""

def i0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def i0_(x: Tensor) -> Tensor:
    """`i0`, in place."""

def igamma(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The lower incomplete gamma function of order a at b, regularized."""

def igammac(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The upper incomplete gamma function of order a at b, regularized."""

def ignore(drop: Any = False, **_: Any) -> Any:
    """Returns the function itself, as `ignore` does; so do the other markers."""

def iinfo(dtype: Any) -> torch.iinfo:
    """The limits of an integer dtype: max, min, bits."""

def imag(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The imaginary part, sharing memory."""

def in_top_k(targets: Tensor, predictions: Tensor, k: _int, *, out: Tensor | None = None) -> Tensor:
    """Whether each target is among the k largest predictions of its row."""

def index_add(
    x: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _float | _int | _bool | _complex = 1,
    out: Tensor | None = None
) -> Tensor:
    """x with alpha * source added to its slices along a dimension at these indices."""

def index_add_(
    x: Tensor, dim: _int, index: Tensor, source: Tensor, *, alpha: _float | _int | _bool | _complex = 1
) -> Tensor:
    """`index_add`, in place."""

def index_copy(x: Tensor, dim: _int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with the slices at these indices along a dimension replaced."""

def index_fill(x: Tensor, dim: _int, index: Tensor, value: Any, *, out: Tensor | None = None) -> Tensor:
    """x with the slices at these indices along a dimension filled with one value."""

def index_put(
    x: Tensor, indices: Sequence[Tensor | None], value: Tensor, accumulate: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """x with the value at these indices, or added there."""

def index_put_(x: Tensor, indices: Sequence[Tensor | None], value: Tensor, accumulate: _bool = False) -> Tensor:
    """`index_put`, in place."""

def index_reduce(
    x: Tensor, dim: _int, index: Tensor, source: Tensor, reduce: str, *, include_self: _bool = True,
    out: Tensor | None = None
) -> Tensor:
    """x with the source's slices scattered along a dimension at the indices; duplicates are reduced: "prod", "mean",
    "amax" or "amin".
    """

def index_select(x: Tensor, dim: _int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The slices of x along a dimension at these indices."""

def initial_seed() -> _int:
    """The seed of this rank's random numbers."""

def inner(x: Any, other: Any) -> Any:
    """The inner product along the last dimension of both."""

def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: _bool = True, momentum: _float = 0.1, eps: _float = 1e-05, *,
    out: Tensor | None = None
) -> Tensor:
    """Each channel of each sample normalized to mean zero and variance one, times weight, plus bias."""

def inverse(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of matrices."""

def is_anomaly_check_nan_enabled() -> _bool:
    """Whether a NaN gradient is an error in anomaly mode."""

def is_anomaly_enabled() -> _bool:
    """Whether anomaly mode is on: errors in backward then show the stack of the forward call."""

def is_complex(x: Tensor) -> _bool:
    """Whether x holds complex numbers."""

def is_conj(x: Tensor) -> _bool:
    """False: conjugation is never lazy."""

def is_deterministic_algorithms_warn_only_enabled() -> _bool:
    """Whether nondeterministic kernels only warn: a setting of the kernels, torch's and Weft's."""

def is_floating_point(x: Tensor) -> _bool:
    """Whether x holds floating point numbers."""

def is_inference(x: Tensor) -> _bool:
    """Whether x was made in torch's inference mode; in Weft's, tensors are ordinary ones."""

def is_inference_mode_enabled() -> _bool:
    """Whether gradients are off, which is all that inference mode does here."""

def is_neg(x: Tensor) -> _bool:
    """False: negation is never lazy here."""

def is_nonzero(x: Tensor) -> _bool:
    """Whether the only element of x is nonzero."""

def is_same_size(x: Tensor, other: Tensor) -> _bool:
    """Whether two tensors have the same shape."""

def is_signed(x: Tensor) -> _bool:
    """Whether x's dtype has negative numbers."""

def is_tensor(obj: Any) -> _bool:
    """Whether obj is a Weft tensor."""

def is_warn_always_enabled() -> _bool:
    """Whether warnings are repeated: a setting of the kernels, torch's and Weft's."""

def isclose(
    x: Tensor, other: Tensor, rtol: _float = 1e-05, atol: _float = 1e-08, equal_nan: _bool = False, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether |x - other| <= atol + rtol * |other|, element by element."""

def isfinite(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is a finite number."""

def isin(
    elements: Any, test_elements: Any, *, assume_unique: _bool = False, invert: _bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether each element is among the test elements."""

def isinf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is infinite."""

def isnan(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is not a number."""

def isneginf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is negative infinity."""

def isposinf(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x is positive infinity."""

def isreal(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether the elements have no imaginary part."""

def istft(
    input: Any, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Any = None,
    center: _bool = True, normalized: _bool = False, onesided: _bool | None = None, length: _int | None = None,
    return_complex: _bool = False
) -> Any:
    """The inverse of `stft`: overlapping windows are averaged."""

def kaiser_window(window_length: _int, periodic: _bool = True, beta: _float = 12.0, **options: Any) -> Tensor:
    """The Kaiser window of this length: narrower with higher `beta`."""

def kl_div(
    input: Tensor, target: Tensor, reduction: str = 'mean', log_target: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The Kullback-Leibler divergence from log probabilities `input` to `target`; "batchmean" divides by the batch
    size.
    """

def kron(x: Any, other: Any) -> Any:
    """The Kronecker product."""

def kthvalue(x: Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Any = None) -> Ranked:
    """The k-th smallest element along a dimension, and its index."""

def layer_norm(
    x: Tensor, normalized_shape: tuple[_int, ...] | list[_int], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: _float = 1e-05, *, out: Tensor | None = None
) -> Tensor:
    """(x - mean) / deviation over the last dimensions, times weight, plus bias."""

def lcm(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The least common multiple."""

def lcm_(input: Tensor, other: Tensor | _float | _int | _bool | _complex) -> Tensor:
    """`lcm`, in place."""

def ldexp(x: Any, other: Any) -> Any:
    """x * 2 ** other."""

def le(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether a is at most b, element by element."""

def lerp(
    a: Tensor, b: Tensor, weight: Tensor | _float | _int | _bool | _complex, *, out: Tensor | None = None
) -> Tensor:
    """a + weight * (b - a): a where the weight is 0, b where it is 1."""

def lgamma(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the gamma function's absolute value."""

def linspace(
    start: _float | Tensor, end: _float | Tensor, steps: _int, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: _bool = False, *, out: Tensor | None = None,
    layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """`steps` evenly spaced numbers from start to end, inclusive."""

def local_to_global(
    x: Tensor, placement: Placement | None = None, sbp: Any = None, *, check_meta: _bool = True, copy: _bool = False,
    out: Tensor | None = None
) -> Tensor:
    """The global tensor whose shards are the ranks' local tensors."""

def log(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm."""

def log10(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10."""

def log10_(x: Tensor) -> Tensor:
    """`log10`, in place."""

def log1p(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(1 + x), exact near zero."""

def log1p_(x: Tensor) -> Tensor:
    """`log1p`, in place."""

def log2(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2."""

def log2_(x: Tensor) -> Tensor:
    """`log2`, in place."""

def log_(x: Tensor) -> Tensor:
    """`log`, in place."""

def log_softmax(x: Tensor, dim: _int | None = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """log(softmax(x)), computed without overflow."""

def logaddexp(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """log(exp(a) + exp(b)), without overflow."""

def logaddexp2(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """log2(2 ** a + 2 ** b), without overflow."""

def logcumsumexp(x: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the cumulative sum of exp(x), without overflow."""

def logdet(x: Any) -> Any:
    """The logarithm of the determinant."""

def logical_and(
    input: Tensor, other: Tensor | _float | _int | _bool | _complex, *, out: Tensor | None = None
) -> Tensor:
    """Whether a and b are both true, as non-zero is."""

def logical_not(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True where x is zero or False."""

def logical_or(
    input: Tensor, other: Tensor | _float | _int | _bool | _complex, *, out: Tensor | None = None
) -> Tensor:
    """Whether a or b is true, as non-zero is."""

def logical_xor(
    input: Tensor, other: Tensor | _float | _int | _bool | _complex, *, out: Tensor | None = None
) -> Tensor:
    """Whether one of a and b is true, and one isn't."""

def logit(x: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if eps is given."""

def logit_(x: Tensor, eps: _float | None = None) -> Tensor:
    """`logit`, in place."""

def logspace(
    start: _float | Tensor, end: _float | Tensor, steps: _int, base: _float = 10.0, dtype: Any = None,
    device: Any = None, placement: Placement | None = None, sbp: Any = None, requires_grad: _bool = False, *,
    out: Tensor | None = None, layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """`steps` numbers from base ** start to base ** end, evenly spaced on a logarithmic scale."""

def logsumexp(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int], keepdim: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """log(sum(exp(x))) over some dimensions, without overflow."""

def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of LSTM: the new (hidden, cell) from the old."""

def lt(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether a is less than b, element by element."""

def lu(A: Any, pivot: _bool = True, get_infos: _bool = False) -> tuple[Any, ...]:
    """torch's older name of `linalg.lu_factor_ex`: the factors in one matrix, the pivots; with `get_infos` the error
    code, too.
    """

def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """The x of A @ x = b, from `lu_factor`'s result."""

def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: _bool = True, unpack_pivots: _bool = True, *, out: Any = None
) -> Triangles:
    """P, L and U from `lu_factor`'s result; empty if not unpacked."""

def manual_seed(seed: _int) -> DefaultGenerator:
    """Seed this rank's random numbers. Give every rank the same seed, so that global tensors agree."""

def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: _float = 0.0, reduction: str = 'mean', *,
    out: Tensor | None = None
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""

def masked_fill(x: Tensor, mask: Tensor, value: Any, *, out: Tensor | None = None) -> Tensor:
    """x with `value` where the mask is true."""

def masked_fill_(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place `masked_fill`."""

def masked_scatter(x: Tensor, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with the source's elements, in order, where the mask is true."""

def masked_select(x: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements of x where the mask is true, as a vector; a mask of numbers is true where nonzero."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product over the last two dimensions; leading dimensions broadcast; a 1-d operand is a vector."""

def matrix_exp(x: Any) -> Any:
    """The matrix exponential."""

def matrix_power(x: Any, n: _int) -> Any:
    """The n-th power of a matrix; of its inverse, if n is negative."""

@overload
def max(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The maximum; with `dim`, that of each slice and its index; of two tensors, the element-wise maximum."""

@overload
def max(x: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> Ranked: ...

@overload
def max(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...

def max_pool1d(
    x: Tensor, kernel_size: _int | tuple[_int, ...] | list[_int],
    stride: _int | tuple[_int, ...] | list[_int] | None = None, padding: _int | tuple[_int, ...] | list[_int] = 0,
    dilation: _int | tuple[_int, ...] | list[_int] = 1, ceil_mode: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The maximum of each window of 1 dimension."""

def max_pool1d_with_indices(
    x: Tensor, kernel_size: _int | tuple[_int, ...] | list[_int],
    stride: _int | tuple[_int, ...] | list[_int] | None = None, padding: _int | tuple[_int, ...] | list[_int] = 0,
    dilation: _int | tuple[_int, ...] | list[_int] = 1, ceil_mode: _bool = False, *, out: Any = None
) -> tuple[Tensor, Tensor]:
    """The maximum of each window of 1 dimension, and its flat index."""

def max_pool2d(
    x: Tensor, kernel_size: _int | tuple[_int, ...] | list[_int],
    stride: _int | tuple[_int, ...] | list[_int] | None = None, padding: _int | tuple[_int, ...] | list[_int] = 0,
    dilation: _int | tuple[_int, ...] | list[_int] = 1, ceil_mode: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The maximum of each window of 2 dimensions."""

def max_pool3d(
    x: Tensor, kernel_size: _int | tuple[_int, ...] | list[_int],
    stride: _int | tuple[_int, ...] | list[_int] | None = None, padding: _int | tuple[_int, ...] | list[_int] = 0,
    dilation: _int | tuple[_int, ...] | list[_int] = 1, ceil_mode: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The maximum of each window of 3 dimensions."""

def maximum(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The larger of a and b, element by element."""

def mean(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None,
    out: Tensor | None = None
) -> Tensor:
    """The mean of the elements, over some dimensions or all."""

@overload
def median(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The median; with `dim`, that of each slice and its index. Of two middle elements, the lower one."""

@overload
def median(x: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> Ranked: ...

def meshgrid(*tensors: Any, indexing: str = 'ij', out: Any = None) -> tuple[Tensor, ...]:
    """Coordinate grids: each vector, repeated along the others' dimensions."""

@overload
def min(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The minimum; with `dim`, that of each slice and its index; of two tensors, the element-wise minimum."""

@overload
def min(x: Tensor, dim: _int, keepdim: _bool = False, *, out: Any = None) -> Ranked: ...

@overload
def min(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor: ...

def minimum(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The smaller of a and b, element by element."""

def mish(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * tanh(softplus(x))."""

def mm(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""

def mode(x: Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Any = None) -> Ranked:
    """The most frequent element along a dimension, and its index."""

def movedim(
    x: Tensor, source: _int | Sequence[_int], destination: _int | Sequence[_int], *, out: Tensor | None = None
) -> Tensor:
    """x with some dimensions moved, the others in order."""

def msort(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x sorted along its first dimension."""

def mul(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a * b, element by element."""

def multinomial(
    x: Tensor, num_samples: _int, replacement: _bool = False, generator: Any = None, *, out: Tensor | None = None
) -> Tensor:
    """Draws of indices, with probabilities proportional to x along its last dimension."""

def mv(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector."""

def mvlgamma(x: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""

def nan_to_num(
    x: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None, *,
    out: Tensor | None = None
) -> Tensor:
    """x with NaN replaced by 0, and infinities by the largest and least finite numbers, unless given."""

def nan_to_num_(
    x: Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
) -> Tensor:
    """`nan_to_num`, in place."""

def nanmean(x: Any, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None) -> Any:
    """The mean, ignoring NaN."""

def nanmedian(x: Any, dim: _int | None = None, keepdim: _bool = False) -> Any:
    """`median`, ignoring NaN."""

def nanquantile(
    x: Tensor, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear',
    out: Tensor | None = None
) -> Tensor:
    """`quantile`, ignoring NaN."""

def nansum(
    x: Tensor, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """The sum, ignoring NaN."""

def narrow(x: Tensor, dim: _int, start: _int, length: _int, step: _int = 1, *, out: Tensor | None = None) -> Tensor:
    """`length` elements along a dimension: start, start + step, ..."""

def ne(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """Whether a differs from b, element by element."""

def neg(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x."""

def neg_(x: Tensor) -> Tensor:
    """`neg`, in place."""

def new_empty(
    x: Tensor, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
    sbp: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor of this size, otherwise like x: see `flow.empty`."""

def new_full(
    x: Tensor, size: Any, fill_value: Any, dtype: Any = None, device: Any = None, placement: Any = None,
    sbp: Any = None, requires_grad: _bool = False, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor of this size and value, otherwise like x."""

def new_ones(
    x: Tensor, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
    sbp: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor of this size, otherwise like x: see `flow.ones`."""

def new_zeros(
    x: Tensor, *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Any = None,
    sbp: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor of this size, otherwise like x: see `flow.zeros`."""

def nextafter(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The next floating-point number after a, towards b."""

def nms(boxes: Tensor, scores: Tensor, iou_threshold: _float, *, out: Tensor | None = None) -> Tensor:
    """Non-maximum suppression: the indices of boxes (x1, y1, x2, y2) that overlap no better one by more than the
    threshold.
    """

def nonzero(x: Tensor, as_tuple: _bool = False) -> Any:
    """The indices of the nonzero elements, one per row; `as_tuple`: one tensor per dimension."""

def norm(
    x: Tensor, ord: Any = None, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False,
    dtype: Any = None, *, p: Any = None, out: Tensor | None = None
) -> Tensor:
    """The norm of vectors, or with "fro" of matrices."""

def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, device: Any = None,
    placement: Any = None, sbp: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Draws from normal distributions: one mean and standard deviation for a size, or one for each element."""

def nuclear_norm(x: Tensor, dim: Any = ..., keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The sum of the singular values."""

def numel(x: Tensor) -> _int:
    """How many elements x has."""

def ones(
    *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor of ones."""

def ones_like(
    x: Tensor, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
    requires_grad: _bool = False, memory_format: Any = None, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Ones of x's shape and dtype."""

def outer(x: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every product of an element of x and one of the other."""

def pad(
    input: Tensor, pad: Sequence[_int], mode: str = 'constant', value: _float | None = None, *,
    out: Tensor | None = None
) -> Tensor:
    """x padded: (left, right) of the last dimension, then of the one before it, and so on."""

def pairwise_distance(
    x1: Tensor, x2: Tensor, p: _float = 2.0, eps: _float = 1e-06, keepdim: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The p-norm of the difference, along the last dimension."""

def pca_lowrank(A: Any, q: _int | None = None, center: _bool = True, niter: _int = 2) -> tuple[Any, Any, Any]:
    """About the first q principal components of A's rows, 6 if not given: u, s and v."""

def pdist(input: Any, p: _float = 2.0) -> Any:
    """The distances between all pairs of rows."""

def permute(x: Tensor, *dims: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """x with its dimensions permuted."""

def pinverse(x: Any, rcond: _float = 1e-15) -> Any:
    """`linalg.pinv` with singular values below `rcond` times the largest taken as zero."""

def pixel_shuffle(input: Tensor, upscale_factor: _int | tuple[_int, _int], *, out: Tensor | None = None) -> Tensor:
    """Rearranges channels to pixels: (..., c * r * s, h, w) to (..., c, h * r, w * s)."""

def pixel_unshuffle(input: Tensor, downscale_factor: _int, *, out: Tensor | None = None) -> Tensor:
    """Rearranges pixels to channels: (..., c, h * r, w * r) to (..., c * r * r, h, w)."""

def poisson(rate: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Draws from the Poisson distribution."""

def poisson_nll_loss(
    input: Any, target: Any, log_input: _bool = True, full: _bool = False, eps: _float = 1e-08, reduction: str = 'mean',
    *, out: Tensor | None = None
) -> Tensor:
    """The negative log likelihood of counts, with `input` the Poisson mean, or its logarithm."""

def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers from absolute values and angles."""

def polygamma(n: _int, input: Any) -> Any:
    """The n-th derivative of digamma; as a method, `x.polygamma(n)`."""

def positive(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x."""

def pow(
    input: Tensor | _float | _int | _bool | _complex, exponent: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a to the power b, element by element."""

def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x where positive, weight * x elsewhere; one weight in all or one per channel."""

def prod(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None,
    out: Tensor | None = None
) -> Tensor:
    """The product of the elements, over some dimensions or all."""

def promote_types(a: Any, b: Any) -> DType:
    """The smallest dtype that holds both."""

def put(
    x: Tensor, index: Tensor, source: Tensor, accumulate: _bool = False, *, out: Tensor | None = None
) -> Tensor:
    """x with the elements at these indices of the flattened x replaced or added to."""

def qr(x: Tensor, mode: str = 'reduced', *, out: Any = None) -> QR:
    """The QR decomposition, x = q @ r: "reduced", or "complete" with a square q; with "r", q is empty. The columns that
    complete q have no gradient.
    """

def quantile(
    x: Tensor, q: _float | Tensor, dim: _int | None = None, keepdim: _bool = False, *, interpolation: str = 'linear',
    out: Tensor | None = None
) -> Tensor:
    """The q-th quantile of the elements, or NaN if one of them is; a vector q gives a new first dimension."""

def quick_gelu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * sigmoid(1.702 x), an approximation of gelu."""

def rad2deg(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """From radians to degrees."""

def rad2deg_(x: Tensor) -> Tensor:
    """`rad2deg`, in place."""

def rand(
    *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, generator: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Draws from the uniform distribution over [0, 1)."""

def rand_like(
    x: Tensor, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None, generator: Any = None,
    requires_grad: _bool = False, memory_format: Any = None, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Draws from the uniform distribution over [0, 1). The result is like x."""

def randint(
    *bounds: Any, low: _int | None = None, high: _int | None = None, size: Any = None, dtype: Any = None,
    device: Any = None, placement: Placement | None = None, sbp: Any = None, generator: Any = None,
    requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """Draws integers from low (by default 0) to high - 1: randint(high, size), randint(low, high, size)."""

def randint_like(
    x: Tensor, low: _int = 0, high: _int | None = None, *, generator: Any = None, **options: Any
) -> Tensor:
    """Draws integers from low to high - 1, like x."""

def randn(
    *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, generator: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Draws from the normal distribution."""

def randn_like(
    x: Tensor, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None, generator: Any = None,
    requires_grad: _bool = False, memory_format: Any = None, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Draws from the normal distribution. The result is like x."""

def randperm(
    n: _int, dtype: Any = None, device: Any = None, placement: Placement | None = None, sbp: Any = None,
    generator: Any = None, requires_grad: _bool = False, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """The numbers below n in a random order."""

def range(
    start: _float = 0, end: _float | None = None, step: _float = 1, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: _bool = False, *, out: Tensor | None = None,
    layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """start, start + step, ... up to and including end."""

def ravel(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x flattened; a copy, unless x is contiguous."""

def real(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The real part, sharing memory; x itself, if it is real."""

def reciprocal(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / x."""

def reciprocal_(x: Tensor) -> Tensor:
    """`reciprocal`, in place."""

def relu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """max(x, 0), element by element."""

def relu_(x: Tensor) -> Tensor:
    """`relu`, in place."""

def remainder(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The remainder of a / b, with b's sign, as Python's %."""

def renorm(x: Any, p: _float, dim: _int, maxnorm: _float) -> Any:
    """x with each slice along a dimension scaled down to a p-norm of at most maxnorm."""

def repeat(x: Tensor, *sizes: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """Copies of x, so many along each dimension."""

def repeat_interleave(
    x: Tensor, repeats: _int | Tensor | None = None, dim: _int | None = None, *, output_size: _int | None = None,
    out: Tensor | None = None
) -> Tensor:
    """Every element, or slice along a dimension, repeated so many times; of repeats alone, their numbers: 0, 1, ..."""

def reshape(x: Tensor, *shape: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """x with another shape, sharing memory if strides allow; -1 is inferred."""

def resolve_conj(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x: conjugation and negation are never lazy here."""

def resolve_neg(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x: conjugation and negation are never lazy here."""

def result_type(a: Any, b: Any) -> DType:
    """The dtype of arithmetic between the two."""

def rms_norm(
    x: Tensor, normalized_shape: tuple[_int, ...] | list[_int], weight: Tensor | None = None, eps: _float | None = None,
    *, out: Tensor | None = None
) -> Tensor:
    """x divided by the root of its mean square over the last dimensions, times weight. The default eps is the machine
    epsilon.
    """

def rnn_relu_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of a recurrent layer with relu: returns the new state."""

def rnn_tanh_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of a recurrent layer with tanh: returns the new state."""

def roc_auc_score(label: Tensor, pred: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The area under the ROC curve: the probability that a 1 is predicted higher than a 0; ties count half."""

def roi_align(
    x: Tensor, rois: Any, spatial_scale: _float = 1.0, pooled_h: _int = 1, pooled_w: _int = 1,
    sampling_ratio: _int = -1, aligned: _bool = False
) -> Any:
    """RoI align: each box of an image pooled to one size; a cell averages `sampling_ratio` x `sampling_ratio` samples."""

def roll(
    x: Tensor, shifts: _int | tuple[_int, ...] | list[_int], dims: _int | tuple[_int, ...] | list[_int] | None = ..., *,
    out: Tensor | None = None
) -> Tensor:
    """x rotated along some dimensions; without dims, as if it were flat."""

def rot90(x: Tensor, k: _int = 1, dims: Sequence[_int] = ..., *, out: Tensor | None = None) -> Tensor:
    """x rotated k times by 90 degrees in the plane of two dimensions."""

def round(x: Tensor, decimals: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The nearest integer, ties to even; or the nearest number with so many decimals."""

def round_(x: Tensor, *, decimals: _int = 0) -> Tensor:
    """In-place `round`."""

def rrelu(
    input: Any, lower: _float = 0.125, upper: _float = 0.3333333333333333, training: _bool = False,
    inplace: _bool = False
) -> Any:
    """x where positive, elsewhere x times a slope: drawn from [lower, upper] while training, else their mean."""

def rsqrt(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """One over the square root."""

def rsqrt_(x: Tensor) -> Tensor:
    """`rsqrt`, in place."""

def rsub(x: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """other - alpha * x."""

def scalar_tensor(
    value: Any, dtype: Any = None, device: Any = None, requires_grad: _bool = False, placement: Placement | None = None,
    sbp: Any = None, *, out: Tensor | None = None, layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """A 0-d tensor."""

def scatter(
    x: Tensor, dim: _int, index: Tensor, src: Any, *, reduce: str | None = None, out: Tensor | None = None
) -> Tensor:
    """x with src written at an index along a dimension; or added (reduce="add"), or multiplied ("multiply")."""

def scatter_add(x: Tensor, dim: _int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x with src added along a dimension at the index."""

def scatter_nd(index: Tensor, update: Tensor, shape: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """Zeros of this shape with the update added at the index's last dimension."""

def scatter_reduce(
    x: Tensor, dim: _int, index: Tensor, src: Any, reduce: str, *, include_self: _bool = True, out: Tensor | None = None
) -> Tensor:
    """x with src scattered along a dimension at the index; duplicates are reduced: "sum", "prod", "mean", "amax" or
    "amin". `include_self`: together with x's own elements.
    """

def script(obj: Any, *_: Any, **__: Any) -> Any:
    """The function or module itself, as in OneFlow: programs that call it run unchanged."""

def searchsorted(
    sorted_sequence: Tensor, values: Any, out_int32: _bool = False, right: _bool = False, *, side: str | None = None,
    sorter: Tensor | None = None, out: Tensor | None = None
) -> Tensor:
    """The indices at which values would be inserted in a sorted sequence: before equal elements, or after with `right`."""

def seed() -> _int:
    """Seed this rank's random numbers from entropy; returns the seed."""

def select(x: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """One slice along a dimension, which is removed."""

def select_scatter(x: Tensor, src: Tensor, dim: _int, index: _int, *, out: Tensor | None = None) -> Tensor:
    """x with one slice along a dimension replaced."""

def selu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """elu, scaled to keep a network's variance near one."""

def selu_(x: Tensor) -> Tensor:
    """`selu`, in place."""

def set_anomaly_enabled(mode: _bool, check_nan: _bool = True) -> None:
    """Set anomaly mode."""

def set_default_device(device: Any) -> None:
    """Set the default device of this thread's new tensors and layers."""

def set_default_tensor_type(t: Any) -> None:
    """Set the default floating-point dtype by a type's name, such as "flow.DoubleTensor"."""

def set_deterministic_debug_mode(debug_mode: _int | str) -> None:
    """What happens at nondeterministic kernels: a setting of the kernels, torch's and Weft's."""

def set_float32_matmul_precision(precision: str) -> None:
    """The precision of float32 matrix products on CUDA devices: a setting of the kernels, torch's and Weft's."""

def set_flush_denormal(mode: Any) -> Any:
    """Whether denormal numbers are flushed to zero: a setting of the kernels, torch's and Weft's."""

def set_num_interop_threads(mode: Any) -> Any:
    """The number of torch's inter-op threads: a setting of the kernels, torch's and Weft's."""

def set_num_threads(num: _int) -> None:
    """Set how many threads one op may use on the CPU."""

def set_rng_state(state: Tensor) -> None:
    """Go on with random numbers where `get_rng_state` was taken."""

def set_warn_always(b: _bool) -> None:
    """Whether warnings are repeated: a setting of the kernels, torch's and Weft's."""

def sgn(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1 by the sign of x; of a complex number, x / abs(x)."""

def sigmoid(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""

def sigmoid_(x: Tensor) -> Tensor:
    """`sigmoid`, in place."""

def sign(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1, by the sign of x."""

def signbit(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Whether x has a minus sign."""

def silu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * sigmoid(x)."""

def sin(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine."""

def sin_(x: Tensor) -> Tensor:
    """`sin`, in place."""

def sinc(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(pi x) / (pi x), and 1 at zero."""

def sinc_(x: Tensor) -> Tensor:
    """`sinc`, in place."""

def sinh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine."""

def sinh_(x: Tensor) -> Tensor:
    """`sinh`, in place."""

def slice(x: Tensor, slice_tup_list: Sequence[Sequence[_int | None]], *, out: Tensor | None = None) -> Tensor:
    """x[start:stop:step, ...], from (start, stop, step) of each leading dimension."""

def slice_scatter(
    x: Tensor, src: Tensor, dim: _int = 0, start: _int | None = None, end: _int | None = None, step: _int = 1, *,
    out: Tensor | None = None
) -> Tensor:
    """x with the slice from start to end along a dimension replaced."""

def slice_update(
    x: Tensor, update: Tensor, slice_tup_list: Sequence[Sequence[_int | None]], *, out: Tensor | None = None
) -> Tensor:
    """Overwrite x[start:stop:step, ...] with the update; returns x."""

def slogdet(x: Tensor, *, out: Any = None) -> SignAndSize:
    """The sign of the determinant of matrices, and the logarithm of its absolute value."""

def softmax(x: Tensor, dim: _int | None = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """exp(x) divided by its sum along a dimension."""

def softplus(x: Tensor, beta: _float = 1.0, threshold: _float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """log(1 + exp(beta x)) / beta: a smooth relu; x itself where beta x is above the threshold."""

def softshrink(x: Tensor, alpha: _float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """x shrunk towards zero by alpha, and zero where |x| is at most alpha."""

def softsign(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x / (1 + |x|)."""

def solve(a: Tensor, b: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The x of a @ x = b, for matrices a and b."""

def sort(x: Tensor, dim: _int = -1, descending: _bool = False, stable: _bool = False, *, out: Any = None) -> Ranked:
    """The elements sorted along a dimension, and their indices."""

def sparse_coo_tensor(
    indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False,
    check_invariants: _bool | None = None, is_coalesced: _bool | None = None, out: Tensor | None = None,
    layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """A tensor of zeros and, at these indices (a column for each), the values. A global one, and one in a graph, is
    dense.
    """

def split(
    x: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0, *, out: Any = None
) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: of one size, the last one smaller if need be; or of these sizes."""

def split_with_sizes(
    x: Tensor, split_sizes: Sequence[_int], dim: _int = 0, *, out: Any = None
) -> tuple[Tensor, ...]:
    """Views of parts of these sizes along a dimension."""

def sqrt(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root."""

def sqrt_(x: Tensor) -> Tensor:
    """`sqrt`, in place."""

def square(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x * x."""

def square_(x: Tensor) -> Tensor:
    """`square`, in place."""

def squeeze(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """x without its dimensions of size one, or without the given ones of them."""

def stack(tensors: Sequence[Tensor], dim: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors stacked along a new dimension."""

def std(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, unbiased: _bool = True, keepdim: _bool = False,
    *, correction: _int | None = None, out: Tensor | None = None
) -> Tensor:
    """The standard deviation of the elements, over some dimensions or all."""

def std_mean(
    x: Tensor, dim: Any = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: Any = None
) -> Any:
    """The standard deviation and the mean."""

def stft(
    input: Any, n_fft: _int, hop_length: _int | None = None, win_length: _int | None = None, window: Any = None,
    center: _bool = True, pad_mode: str = 'reflect', normalized: _bool = False, onesided: _bool | None = None,
    return_complex: _bool | None = None, align_to_window: _bool | None = None
) -> Any:
    """The short-time Fourier transform, one window every `hop_length` samples: (..., frequencies, windows)."""

def sub(x: Any, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
    """x - alpha * other, element by element."""

def sum(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *, dtype: Any = None,
    out: Tensor | None = None
) -> Tensor:
    """The sum of the elements, over some dimensions or all."""

def svd(x: Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Any = None) -> SVDWithV:
    """The singular value decomposition, x = u @ diag(s) @ v.T, reduced with `some`. Returns u, s and v."""

def svd_lowrank(A: Any, q: _int | None = 6, niter: _int | None = 2, M: Any = None) -> tuple[Any, Any, Any]:
    """About the first q singular vectors and values of A, or of A - M, from q random directions that `niter` steps turn
    towards them: faster than `svd` of a large A.
    """

def t(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The transpose of a matrix; a view of a vector."""

def take(x: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements at these indices of the flattened x."""

def take_along_dim(x: Tensor, indices: Tensor, dim: _int | None = None, *, out: Tensor | None = None) -> Tensor:
    """The elements of x at these indices along a dimension, the others broadcast; without `dim`, of x flattened."""

def tan(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent."""

def tan_(x: Tensor) -> Tensor:
    """`tan`, in place."""

def tanh(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""

def tanh_(x: Tensor) -> Tensor:
    """`tanh`, in place."""

def tensor(
    data: Any, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False,
    placement: Placement | None = None, sbp: Any = None, *, out: Tensor | None = None, layout: Any = None
) -> Tensor:
    """A new tensor with a copy of the data: numbers, nested lists, numpy arrays, tensors."""

def tensor_scatter_nd_update(
    tensor: Tensor, indices: Tensor, updates: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """The tensor with the updates at the indices' last dimension."""

def tensor_split(
    x: Tensor, indices_or_sections: _int | Sequence[_int], dim: _int = 0, *, out: Any = None
) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: a number of balanced ones, or split at these indices."""

def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, out: Tensor | None = None) -> Tensor:
    """The product of a and b, summed over pairs of dimensions: the last and first `dims`, or those listed for each."""

def threshold(x: Tensor, threshold: _float, value: _float, *, out: Tensor | None = None) -> Tensor:
    """x where it is above the threshold, `value` elsewhere."""

def threshold_(x: Tensor, threshold: _float, value: _float) -> Tensor:
    """`threshold`, in place."""

def tile(x: Tensor, *dims: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """`repeat`, with missing leading counts taken as one."""

def to_dlpack(x: Tensor) -> Any:
    """A DLPack capsule over the tensor's memory."""

def to_global(
    x: Any, placement: Placement | None = None, sbp: Any = None, *, grad_sbp: Any = None,
    check_meta: _bool | None = None, copy: _bool = False
) -> Any:
    """A global tensor from local shards, or with another layout; nested tensors are converted one by one."""

def to_local(x: Any, *, copy: _bool = False, grad_placements: Any = None) -> Any:
    """This rank's shard of a global tensor, sharing memory; nested tensors are converted one by one."""

def topk(
    x: Tensor, k: _int, dim: _int = -1, largest: _bool = True, sorted: _bool = True, *, out: Any = None
) -> Ranked:
    """The k largest (or smallest) elements along a dimension, and their indices."""

def trace(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of a matrix's diagonal."""

def transpose(
    x: Tensor, dim0: Any = None, dim1: _int | None = None, *, perm: Sequence[_int] | None = None,
    out: Tensor | None = None
) -> Tensor:
    """A view of x with two dimensions swapped; or, as in OneFlow, with all of them permuted."""

def trapezoid(y: Any, x: Any = None, *, dx: _float = 1.0, dim: _int = -1) -> Any:
    """The integral of y over x, or over steps of dx, by the trapezoidal rule."""

def trapz(y: Any, x: Any = None, *, dx: _float = 1.0, dim: _int = -1) -> Any:
    """The integral of y over x, or over steps of dx, by the trapezoidal rule."""

def triangular_solve(
    x: Any, A: Any, upper: _bool = True, transpose: _bool = False, unitriangular: _bool = False, *, out: Any = None
) -> SolvedTriangle:
    """The y of A @ y = x for triangular A, and A; torch's older name of `linalg.solve_triangular`."""

def tril(x: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The lower triangle of every matrix, from a diagonal on; zeros elsewhere."""

def tril_indices(
    row: _int, col: _int, offset: _int = 0, *, dtype: Any = None, device: Any = None, out: Tensor | None = None,
    layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """The indices of a lower triangle: rows, then columns."""

def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: _float = 1.0, p: _float = 2.0, eps: _float = 1e-06,
    swap: _bool = False, reduction: str = 'mean', *, out: Tensor | None = None
) -> Tensor:
    """How much the distance to the positive, plus the margin, exceeds that to the negative."""

def triu(x: Tensor, diagonal: _int = 0, *, out: Tensor | None = None) -> Tensor:
    """The upper triangle of every matrix, from a diagonal on; zeros elsewhere."""

def triu_indices(
    row: _int, col: _int, offset: _int = 0, *, dtype: Any = None, device: Any = None, out: Tensor | None = None,
    layout: Any = None, pin_memory: _bool = False
) -> Tensor:
    """The indices of an upper triangle: rows, then columns."""

def trunc(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """x without its fractional part."""

def trunc_(x: Tensor) -> Tensor:
    """`trunc`, in place."""

def typename(x: Any) -> str:
    """The name of a tensor's type, such as weft.FloatTensor; of anything else, its class's."""

def unbind(x: Tensor, dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """Views of every slice along a dimension, which is removed."""

def unflatten(x: Tensor, dim: _int, sizes: Sequence[_int], *, out: Tensor | None = None) -> Tensor:
    """x with a dimension split into several; one of their sizes may be -1."""

def unique(
    x: Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False,
    dim: _int | None = None, *, dtype: Any = None
) -> Any:
    """The unique elements, sorted; optionally the index of each element in them, and their counts."""

def unique_consecutive(
    x: Any, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
) -> Any:
    """The elements with consecutive duplicates removed."""

def unravel_index(indices: Any, shape: Sequence[_int] | _int, *, out: Any = None) -> tuple[Tensor, ...]:
    """Coordinates in a shape, from flat indices."""

def unsafe_chunk(x: Tensor, chunks: _int, dim: _int = 0, *, out: Any = None) -> tuple[Tensor, ...]:
    """Views of at most `chunks` equal parts along a dimension, the last one smaller if need be."""

def unsafe_split(
    x: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0, *, out: Any = None
) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: of one size, the last one smaller if need be; or of these sizes."""

def unsafe_split_with_sizes(
    x: Tensor, split_size_or_sections: _int | Sequence[_int], dim: _int = 0, *, out: Any = None
) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: of one size, the last one smaller if need be; or of these sizes."""

def unsqueeze(x: Tensor, dim: _int, *, out: Tensor | None = None) -> Tensor:
    """x with a new dimension of size one."""

def use_deterministic_algorithms(mode: _bool, *, warn_only: _bool = False) -> None:
    """Require deterministic kernels, or raise: a setting of the kernels, torch's and Weft's."""

def vander(x: Any, N: _int | None = None, increasing: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """The Vandermonde matrix: the powers of x as columns."""

def var(
    x: Tensor, dim: _int | tuple[_int, ...] | list[_int] | None = None, unbiased: _bool = True, keepdim: _bool = False,
    *, correction: _int | None = None, out: Tensor | None = None
) -> Tensor:
    """The variance of the elements, over some dimensions or all; unbiased by default."""

def var_mean(
    x: Tensor, dim: Any = None, unbiased: _bool = True, keepdim: _bool = False, *, correction: Any = None
) -> Any:
    """The variance and the mean."""

def vdot(x: Any, other: Any) -> Any:
    """The inner product of two vectors, the first one conjugated."""

def view(x: Tensor, *shape: _int | Sequence[_int], out: Tensor | None = None) -> Tensor:
    """x with another shape, sharing memory; -1 is inferred. Given a dtype, x's memory reinterpreted."""

def view_as_complex(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Pairs along the last dimension as complex numbers, sharing memory."""

def view_as_real(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Complex numbers as pairs along a new last dimension, sharing memory."""

def vsplit(x: Tensor, indices_or_sections: _int | Sequence[_int], *, out: Any = None) -> tuple[Tensor, ...]:
    """Views split along the first dimension."""

def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The tensors concatenated along the first dimension, vectors as rows."""

def where(condition: Tensor, x: Any = None, y: Any = None) -> Any:
    """x where the condition is true, y elsewhere; of the condition alone, the indices where it is true."""

def xlogy(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex, *,
    out: Tensor | None = None
) -> Tensor:
    """a * log(b), and 0 where a is 0."""

def xlogy_(input: Tensor, other: Tensor | _float | _int | _bool | _complex) -> Tensor:
    """`xlogy`, in place."""

def zero_(x: Tensor) -> Tensor:
    """Overwrite every element with zero."""

def zeros(
    *size: _int | Sequence[_int], dtype: Any = None, device: Any = None, placement: Placement | None = None,
    sbp: Any = None, requires_grad: _bool = False, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """A tensor of zeros."""

def zeros_like(
    x: Tensor, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None,
    requires_grad: _bool = False, memory_format: Any = None, *, out: Tensor | None = None, layout: Any = None,
    pin_memory: _bool = False
) -> Tensor:
    """Zeros of x's shape and dtype."""

absolute = abs
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
arctan_ = atan_
arctanh = atanh
arctanh_ = atanh_
clip = clamp
clip_ = clamp_
concat = cat
concatenate = cat
divide = div
fix = trunc
fix_ = trunc_
ger = outer
greater = gt
greater_equal = ge
less = lt
less_equal = le
moveaxis = movedim
multiply = mul
negative = neg
negative_ = neg_
not_equal = ne
row_stack = vstack
subtract = sub
swapaxes = transpose
swapdims = transpose
true_divide = div
