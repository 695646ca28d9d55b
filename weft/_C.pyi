# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow._C`: every declared op under its own name, public or not, and the custom ops that users register."""

from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Callable, Sequence
from typing import Any, overload
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.placement import Placement
from weft.core.sbp import Sbp
from weft.nn.utils.rnn import PackedSequence
from weft.tensor.hook import RemovableHook
from weft.tensor.tensor import Tensor

from weft import (
    BFloat16Tensor as BFloat16Tensor, BoolTensor as BoolTensor, ByteTensor as ByteTensor, CharTensor as CharTensor,
    DoubleTensor as DoubleTensor, FloatTensor as FloatTensor, HalfTensor as HalfTensor, IntTensor as IntTensor,
    LongTensor as LongTensor, ShortTensor as ShortTensor, _assert as _assert,
    _fake_quantize_learnable_per_channel_affine as _fake_quantize_learnable_per_channel_affine,
    _fake_quantize_learnable_per_tensor_affine as _fake_quantize_learnable_per_tensor_affine, abs as abs, acos as acos,
    acosh as acosh, adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d, add as add,
    addbmm as addbmm, addcdiv as addcdiv, addcmul as addcmul, addmm as addmm, addmv as addmv, addr as addr,
    adjoint as adjoint, all as all, allclose as allclose, alpha_dropout as alpha_dropout, amax as amax, amin as amin,
    aminmax as aminmax, angle as angle, any as any, arange as arange,
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled, argmax as argmax, argmin as argmin,
    argsort as argsort, argwhere as argwhere, as_strided as as_strided, as_tensor as as_tensor, asarray as asarray,
    asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh, atleast_1d as atleast_1d,
    atleast_2d as atleast_2d, atleast_3d as atleast_3d, avg_pool1d as avg_pool1d, baddbmm as baddbmm,
    bartlett_window as bartlett_window, batch_gather as batch_gather, batch_norm as batch_norm, bernoulli as bernoulli,
    bilinear as bilinear, binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, bincount as bincount,
    binomial as binomial, bitwise_and as bitwise_and, bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor, blackman_window as blackman_window, block_diag as block_diag, bmm as bmm,
    broadcast_like as broadcast_like, broadcast_shapes as broadcast_shapes, broadcast_tensors as broadcast_tensors,
    broadcast_to as broadcast_to, bucketize as bucketize, can_cast as can_cast, cartesian_prod as cartesian_prod,
    cast as cast, cat as cat, cdist as cdist, ceil as ceil, celu as celu, chain_matmul as chain_matmul,
    channel_shuffle as channel_shuffle, cholesky as cholesky, cholesky_inverse as cholesky_inverse,
    cholesky_solve as cholesky_solve, chunk as chunk, clamp as clamp, clamp_ as clamp_, clamp_max as clamp_max,
    clamp_max_ as clamp_max_, clamp_min as clamp_min, clamp_min_ as clamp_min_, clip as clip, clip_ as clip_,
    clone as clone, column_stack as column_stack, combinations as combinations, compile as compile, complex as complex,
    conj as conj, conj_physical as conj_physical, constant_pad_nd as constant_pad_nd, contiguous as contiguous,
    conv1d as conv1d, conv2d as conv2d, conv3d as conv3d, conv_transpose1d as conv_transpose1d,
    conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d,
    convert_oneflow_dtype_to_numpy_dtype as convert_oneflow_dtype_to_numpy_dtype, copysign as copysign,
    corrcoef as corrcoef, cos as cos, cosh as cosh, cosine_embedding_loss as cosine_embedding_loss,
    cosine_similarity as cosine_similarity, count_nonzero as count_nonzero, cov as cov, cross as cross,
    cummax as cummax, cummin as cummin, cumprod as cumprod, cumsum as cumsum,
    cumulative_trapezoid as cumulative_trapezoid, deform_conv2d as deform_conv2d, deg2rad as deg2rad, det as det,
    detach as detach, diag as diag, diag_embed as diag_embed, diagflat as diagflat, diagonal as diagonal,
    diagonal_scatter as diagonal_scatter, diff as diff, digamma as digamma, dist as dist,
    distributed_partial_fc_sample as distributed_partial_fc_sample, div as div, div_ as div_, dot as dot,
    dsplit as dsplit, dstack as dstack, eig as eig, einsum as einsum, embedding as embedding,
    embedding_bag as embedding_bag, empty as empty, empty_like as empty_like, eq as eq, equal as equal, erf as erf,
    erfc as erfc, erfinv as erfinv, exp as exp, exp2 as exp2, expand as expand, expm1 as expm1, eye as eye,
    fake_quantize_per_channel_affine as fake_quantize_per_channel_affine,
    fake_quantize_per_tensor_affine as fake_quantize_per_tensor_affine, feature_alpha_dropout as feature_alpha_dropout,
    feature_dropout as feature_dropout, fill as fill, fill_ as fill_, finfo as finfo, flatten as flatten, flip as flip,
    fliplr as fliplr, flipud as flipud, float_power as float_power, floor as floor, floor_divide as floor_divide,
    fmax as fmax, fmin as fmin, fmod as fmod, frac as frac, frexp as frexp, frobenius_norm as frobenius_norm,
    from_dlpack as from_dlpack, from_numpy as from_numpy, frombuffer as frombuffer, full as full,
    full_like as full_like, fused_moving_avg_obs_fake_quant as fused_moving_avg_obs_fake_quant, gather_nd as gather_nd,
    gcd as gcd, ge as ge, gelu as gelu, get_default_device as get_default_device,
    get_deterministic_debug_mode as get_deterministic_debug_mode, get_device as get_device,
    get_float32_matmul_precision as get_float32_matmul_precision, get_num_interop_threads as get_num_interop_threads,
    get_num_threads as get_num_threads, get_rng_state as get_rng_state, global_to_global as global_to_global,
    gradient as gradient, group_norm as group_norm, gru_cell as gru_cell, gt as gt, hamming_window as hamming_window,
    hann_window as hann_window, hardshrink as hardshrink, heaviside as heaviside,
    hinge_embedding_loss as hinge_embedding_loss, histc as histc, histogram as histogram, hsplit as hsplit,
    hstack as hstack, hypot as hypot, i0 as i0, igamma as igamma, igammac as igammac, ignore as ignore, iinfo as iinfo,
    imag as imag, in_top_k as in_top_k, index_add as index_add, index_copy as index_copy, index_fill as index_fill,
    index_put as index_put, index_reduce as index_reduce, index_select as index_select, initial_seed as initial_seed,
    inner as inner, instance_norm as instance_norm, is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled,
    is_anomaly_enabled as is_anomaly_enabled, is_complex as is_complex, is_conj as is_conj,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    is_floating_point as is_floating_point, is_inference as is_inference,
    is_inference_mode_enabled as is_inference_mode_enabled, is_neg as is_neg, is_nonzero as is_nonzero,
    is_same_size as is_same_size, is_signed as is_signed, is_tensor as is_tensor,
    is_warn_always_enabled as is_warn_always_enabled, isclose as isclose, isfinite as isfinite, isin as isin,
    isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf, isreal as isreal, istft as istft,
    kaiser_window as kaiser_window, kl_div as kl_div, kron as kron, kthvalue as kthvalue, lcm as lcm, ldexp as ldexp,
    le as le, lerp as lerp, lgamma as lgamma, linspace as linspace, local_to_global as local_to_global, log as log,
    log10 as log10, log1p as log1p, log2 as log2, log_softmax as log_softmax, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logcumsumexp as logcumsumexp, logdet as logdet, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, logit as logit,
    logspace as logspace, logsumexp as logsumexp, lstm_cell as lstm_cell, lt as lt, lu_solve as lu_solve,
    lu_unpack as lu_unpack, manual_seed as manual_seed, margin_ranking_loss as margin_ranking_loss,
    masked_fill as masked_fill, masked_fill_ as masked_fill_, masked_scatter as masked_scatter,
    masked_select as masked_select, matmul as matmul, matrix_exp as matrix_exp, matrix_power as matrix_power,
    max as max, max_pool1d as max_pool1d, max_pool1d_with_indices as max_pool1d_with_indices, max_pool2d as max_pool2d,
    max_pool3d as max_pool3d, maximum as maximum, mean as mean, median as median, meshgrid as meshgrid, min as min,
    minimum as minimum, mish as mish, mm as mm, mode as mode, movedim as movedim, msort as msort, mul as mul,
    multinomial as multinomial, mv as mv, mvlgamma as mvlgamma, nan_to_num as nan_to_num, nanmean as nanmean,
    nanmedian as nanmedian, nanquantile as nanquantile, nansum as nansum, narrow as narrow, ne as ne, neg as neg,
    new_empty as new_empty, new_full as new_full, new_ones as new_ones, new_zeros as new_zeros, nextafter as nextafter,
    nms as nms, nonzero as nonzero, norm as norm, normal as normal, nuclear_norm as nuclear_norm, numel as numel,
    ones as ones, ones_like as ones_like, outer as outer, pad as pad, pairwise_distance as pairwise_distance,
    pca_lowrank as pca_lowrank, pdist as pdist, permute as permute, pinverse as pinverse,
    pixel_unshuffle as pixel_unshuffle, poisson as poisson, poisson_nll_loss as poisson_nll_loss, polar as polar,
    polygamma as polygamma, positive as positive, pow as pow, prelu as prelu, prod as prod,
    promote_types as promote_types, put as put, qr as qr, quantile as quantile, quick_gelu as quick_gelu,
    rad2deg as rad2deg, rand as rand, rand_like as rand_like, randint as randint, randint_like as randint_like,
    randn as randn, randn_like as randn_like, randperm as randperm, range as range, ravel as ravel, real as real,
    reciprocal as reciprocal, relu as relu, remainder as remainder, renorm as renorm, repeat as repeat,
    repeat_interleave as repeat_interleave, reshape as reshape, resolve_conj as resolve_conj,
    resolve_neg as resolve_neg, result_type as result_type, rnn_relu_cell as rnn_relu_cell,
    rnn_tanh_cell as rnn_tanh_cell, roc_auc_score as roc_auc_score, roi_align as roi_align, roll as roll,
    rot90 as rot90, round as round, round_ as round_, rrelu as rrelu, rsqrt as rsqrt, rsub as rsub,
    scalar_tensor as scalar_tensor, scatter as scatter, scatter_add as scatter_add, scatter_nd as scatter_nd,
    scatter_reduce as scatter_reduce, script as script, searchsorted as searchsorted, seed as seed, select as select,
    select_scatter as select_scatter, selu as selu, set_anomaly_enabled as set_anomaly_enabled,
    set_default_device as set_default_device, set_default_tensor_type as set_default_tensor_type,
    set_deterministic_debug_mode as set_deterministic_debug_mode,
    set_float32_matmul_precision as set_float32_matmul_precision, set_flush_denormal as set_flush_denormal,
    set_num_interop_threads as set_num_interop_threads, set_num_threads as set_num_threads,
    set_rng_state as set_rng_state, set_warn_always as set_warn_always, sgn as sgn, sigmoid as sigmoid, sign as sign,
    signbit as signbit, silu as silu, sin as sin, sinc as sinc, sinh as sinh, slice_scatter as slice_scatter,
    slogdet as slogdet, softmax as softmax, softplus as softplus, softshrink as softshrink, softsign as softsign,
    solve as solve, sort as sort, split as split, split_with_sizes as split_with_sizes, sqrt as sqrt, square as square,
    squeeze as squeeze, stack as stack, std as std, std_mean as std_mean, stft as stft, sub as sub, sum as sum,
    svd as svd, svd_lowrank as svd_lowrank, t as t, take as take, take_along_dim as take_along_dim, tan as tan,
    tanh as tanh, tensor as tensor, tensor_scatter_nd_update as tensor_scatter_nd_update, tensor_split as tensor_split,
    tensordot as tensordot, threshold as threshold, tile as tile, to_dlpack as to_dlpack, to_global as to_global,
    to_local as to_local, topk as topk, trace as trace, transpose as transpose, trapezoid as trapezoid, trapz as trapz,
    tril as tril, tril_indices as tril_indices, triplet_margin_loss as triplet_margin_loss, triu as triu,
    triu_indices as triu_indices, trunc as trunc, typename as typename, unbind as unbind, unflatten as unflatten,
    unique as unique, unique_consecutive as unique_consecutive, unravel_index as unravel_index,
    unsafe_chunk as unsafe_chunk, unsafe_split as unsafe_split, unsafe_split_with_sizes as unsafe_split_with_sizes,
    unsqueeze as unsqueeze, use_deterministic_algorithms as use_deterministic_algorithms, vander as vander, var as var,
    var_mean as var_mean, vdot as vdot, view as view, view_as_complex as view_as_complex, view_as_real as view_as_real,
    vsplit as vsplit, vstack as vstack, where as where, xlogy as xlogy, zero_ as zero_, zeros as zeros,
    zeros_like as zeros_like
)
from weft.nn.functional import (
    adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices, affine_grid as affine_grid,
    avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, binary_cross_entropy as binary_cross_entropy,
    ctc_greedy_decoder as ctc_greedy_decoder, dropout as dropout, dropout1d as dropout1d, dropout2d as dropout2d,
    dropout3d as dropout3d, elu as elu, fold as fold, fractional_max_pool2d as fractional_max_pool2d,
    fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices,
    fractional_max_pool3d as fractional_max_pool3d,
    fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices, gaussian_nll_loss as gaussian_nll_loss,
    glu as glu, grouped_mm as grouped_mm, gumbel_softmax as gumbel_softmax, hardsigmoid as hardsigmoid,
    hardswish as hardswish, huber_loss as huber_loss, interpolate as interpolate, l1_loss as l1_loss, linear as linear,
    local_response_norm as local_response_norm, logsigmoid as logsigmoid, lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d, max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d,
    max_unpool3d as max_unpool3d, mse_loss as mse_loss, multi_head_attention_forward as multi_head_attention_forward,
    multi_margin_loss as multi_margin_loss, multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss, relu6 as relu6, smooth_l1_loss as smooth_l1_loss,
    soft_margin_loss as soft_margin_loss, softmin as softmin, tanhshrink as tanhshrink,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss, unfold as unfold, upsample as upsample,
    upsample_bilinear as upsample_bilinear, upsample_nearest as upsample_nearest
)
from weft.special import (
    airy_ai as airy_ai, bessel_j0 as bessel_j0, bessel_j1 as bessel_j1, bessel_y0 as bessel_y0, bessel_y1 as bessel_y1,
    chebyshev_polynomial_t as chebyshev_polynomial_t, chebyshev_polynomial_u as chebyshev_polynomial_u,
    chebyshev_polynomial_v as chebyshev_polynomial_v, chebyshev_polynomial_w as chebyshev_polynomial_w, erfcx as erfcx,
    hermite_polynomial_h as hermite_polynomial_h, hermite_polynomial_he as hermite_polynomial_he, i0e as i0e, i1 as i1,
    i1e as i1e, laguerre_polynomial_l as laguerre_polynomial_l, legendre_polynomial_p as legendre_polynomial_p,
    log_ndtr as log_ndtr, modified_bessel_i0 as modified_bessel_i0, modified_bessel_i1 as modified_bessel_i1,
    modified_bessel_k0 as modified_bessel_k0, modified_bessel_k1 as modified_bessel_k1, ndtri as ndtri,
    scaled_modified_bessel_k0 as scaled_modified_bessel_k0, scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w, spherical_bessel_j0 as spherical_bessel_j0,
    zeta as zeta
)

def __getattr__(name: str) -> Callable[..., Any]: ...  # ops declared later

def T(x: Tensor) -> Tensor: ...

def _copy_from_numpy(x: Tensor, array: Any) -> None: ...

def _copy_to_numpy(x: Tensor, array: Any) -> None: ...

def _register_post_grad_accumulation_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHook: ...

def _zero_grad_(x: Tensor) -> None: ...

def adadelta_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], squares: Sequence[Tensor], deltas: Sequence[Tensor],
    lr: Tensor | _float | _int | _bool | _complex, rho: _float = 0.9, eps: _float = 1e-06, weight_decay: _float = 0.0,
    maximize: _bool = False
) -> None: ...

def adagrad_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], sums: Sequence[Tensor], step: Tensor,
    lr: Tensor | _float | _int | _bool | _complex, lr_decay: _float = 0.0, weight_decay: _float = 0.0,
    eps: _float = 1e-10, maximize: _bool = False, counted: _bool = False
) -> None: ...

def adam_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], means: Sequence[Tensor], squares: Sequence[Tensor],
    most: Sequence[Tensor], step: Tensor, lr: Tensor | _float | _int | _bool | _complex, beta1: _float = 0.9,
    beta2: _float = 0.999, eps: _float = 1e-08, weight_decay: _float = 0.0, maximize: _bool = False,
    bias_correction: _bool = True, counted: _bool = False
) -> None: ...

def adamw_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], means: Sequence[Tensor], squares: Sequence[Tensor],
    most: Sequence[Tensor], step: Tensor, lr: Tensor | _float | _int | _bool | _complex, beta1: _float = 0.9,
    beta2: _float = 0.999, eps: _float = 1e-08, weight_decay: _float = 0.0, maximize: _bool = False,
    bias_correction: _bool = True, counted: _bool = False
) -> None: ...

def adaptive_avg_pool_grad(dy: Tensor, shape: tuple[_int, ...] | list[_int], dims: _int) -> Tensor: ...

def adaptive_max_pool2d(x: Tensor, output_size: _int | Sequence[_int | None]) -> tuple[Tensor, Tensor]: ...

def adaptive_max_pool3d(x: Tensor, output_size: _int | Sequence[_int | None]) -> tuple[Tensor, Tensor]: ...

def add_(input: Tensor, other: Tensor | _float | _int | _bool | _complex) -> Tensor: ...

def add_linear_weight_grad(total: Tensor, dy: Tensor, x: Tensor) -> Tensor: ...

def add_scaled(
    input: Tensor | _float | _int | _bool | _complex, other: Tensor | _float | _int | _bool | _complex,
    alpha: _float | _int | _bool | _complex
) -> Tensor: ...

def addbmm_(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any: ...

def addcdiv_(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor: ...

def addcmul_(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor: ...

def addmm_(x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor: ...

def addmv_(x: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor: ...

def addr_(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any: ...

def amp_black_identity(x: Any) -> Any: ...

def amp_white_identity(x: Any) -> Any: ...

def apply_(x: Tensor, f: Callable[[Any], Any]) -> Tensor: ...

def arg_sort(input: Tensor, direction: str) -> Tensor: ...

def as_strided_zeros(
    part: Tensor, shape: tuple[_int, ...] | list[_int], size: tuple[_int, ...] | list[_int],
    stride: tuple[_int, ...] | list[_int], storage_offset: _int
) -> Tensor: ...

def assign_local_tensor(ref: Any, value: Any) -> None: ...

def attention_grad(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, attn_mask: Tensor | None,
    is_causal: _bool, scale: _float | None
) -> tuple[Tensor, Tensor, Tensor]: ...

def avg_pool2d_nhwc(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: _bool = False,
    count_include_pad: _bool = True, divisor_override: Any = None
) -> Any: ...

def avg_pool_grad(
    dy: Tensor, shape: tuple[_int, ...] | list[_int], kernel_size: tuple[_int, ...] | list[_int],
    stride: tuple[_int, ...] | list[_int], padding: tuple[_int, ...] | list[_int], ceil_mode: _bool,
    count_include_pad: _bool, divisor_override: _int | None
) -> Tensor: ...

def baddbmm_(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor: ...

def basic_index(x: Tensor, key: Any) -> Tensor: ...

def basic_index_scatter(base: Tensor, part: Tensor, key: Any) -> Tensor: ...

def basic_index_zeros(x: Tensor, shape: tuple[_int, ...] | list[_int], key: Any) -> Tensor: ...

def batch_norm_grad(
    dy: Tensor, x: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    save_mean: Tensor, save_rstd: Tensor, training: _bool, eps: _float, wanted: tuple[_bool, ...]
) -> tuple[Tensor, Tensor, Tensor]: ...

def bent(x: Tensor, slope: Tensor) -> Tensor: ...

def bent_error(x: Tensor, target: Tensor, bend: _float = 1.0, slope: _float = 1.0, mean: _bool = True) -> Tensor: ...

def bent_error_grad(dy: Tensor, x: Tensor, target: Tensor, bend: _float, factor: _float) -> Tensor: ...

def bent_grad(dy: Tensor, x: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]: ...

def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor: ...

def bfloat16(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def bias_add(x: Tensor, bias: Tensor, axis: _int = 1) -> Tensor: ...

def binary_cross_entropy_each(x: Tensor, target: Tensor) -> Tensor: ...

def binary_cross_entropy_loss(input: Any, target: Any, weight: Any = None, reduction: str = 'mean') -> Any: ...

def binary_cross_entropy_with_logits_loss(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = 'mean'
) -> Any: ...

def blend(running: Tensor, value: Tensor, weight: _float) -> None: ...

def bool(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def broadcast_equal(x: Tensor, other: Tensor) -> Tensor: ...

def byte(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def cauchy_(x: Tensor, median: _float = 0.0, sigma: _float = 1.0, *, generator: Any = None) -> Tensor: ...

def cdouble(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def celu_grad(dy: Tensor, x: Tensor, alpha: _float) -> Tensor: ...

def cfloat(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def char(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def check_meta_consistency(x: Tensor) -> None: ...

def cholesky_ex(x: Tensor) -> tuple[Tensor, Tensor]: ...

def clamp_grad(
    dy: Tensor, x: Tensor, min: _float | _int | _bool | _complex | None, max: _float | _int | _bool | _complex | None
) -> Tensor: ...

def cofactors(x: Tensor) -> Tensor: ...

def col2im(
    x: Tensor, output_size: tuple[_int, ...] | list[_int], kernel_size: tuple[_int, ...] | list[_int],
    dilation: tuple[_int, ...] | list[_int], padding: tuple[_int, ...] | list[_int],
    stride: tuple[_int, ...] | list[_int]
) -> Tensor: ...

def combined_margin_loss(x: Any, label: Any, m1: _float = 1.0, m2: _float = 0.0, m3: _float = 0.0) -> Any: ...

def comm_broadcast(x: Any, src_rank: _int = 0, inplace: _bool = False) -> Any: ...

def completion(x: Tensor) -> Tensor: ...

def constant(
    shape: Sequence[_int], value: Any, *, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None
) -> Tensor: ...

def contiguous_(x: Tensor) -> Tensor: ...

def conv_input_grad(
    dy: Tensor, weight: Tensor, shape: tuple[_int, ...] | list[_int], stride: tuple[_int, ...] | list[_int],
    padding: tuple[_int, ...] | list[_int], dilation: tuple[_int, ...] | list[_int], transposed: _bool,
    output_padding: tuple[_int, ...] | list[_int], groups: _int
) -> Tensor: ...

def conv_weight_grad(
    dy: Tensor, x: Tensor, shape: tuple[_int, ...] | list[_int], stride: tuple[_int, ...] | list[_int],
    padding: tuple[_int, ...] | list[_int], dilation: tuple[_int, ...] | list[_int], transposed: _bool,
    output_padding: tuple[_int, ...] | list[_int], groups: _int
) -> Tensor: ...

def copy(x: Tensor, value: Tensor) -> Tensor: ...

def copy_(x: Tensor, value: Tensor) -> Tensor: ...

def cosh_grad(x: Any, dy: Any) -> Any: ...

def cpu(x: Tensor) -> Tensor: ...

def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: _int = -100, reduction: str = 'mean',
    label_smoothing: _float = 0.0
) -> Tensor: ...

def cross_entropy_grad(
    dy: Tensor, logp: Tensor, target: Tensor, weight: Tensor | None, count: Tensor, ignore_index: _int, reduction: str,
    label_smoothing: _float
) -> Tensor: ...

@overload
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, max_target_length: _int,
    blank: _int = 0, zero_infinity: _bool = False, reduction: str = 'mean'
) -> Tensor: ...

@overload
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: _int = 0,
    reduction: str = 'mean', zero_infinity: _bool = False
) -> Tensor: ...

def ctc_nll(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: _int = 0,
    zero_infinity: _bool = False
) -> Tensor: ...

def ctc_nll_grad(
    dloss: Tensor, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: _int,
    zero_infinity: _bool
) -> Tensor: ...

def cuda(x: Tensor, device: Any = None, non_blocking: _bool = False) -> Tensor: ...

def cumprod_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def cumprod_grad(dy: Tensor, x: Tensor, y: Tensor, dim: _int) -> Tensor: ...

def cumsum_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def detach_(x: Tensor) -> Tensor: ...

def diagonal_put(base: Tensor, part: Tensor, offset: _int, dim1: _int, dim2: _int) -> Tensor: ...

def diagonal_zeros(x: Tensor, shape: tuple[_int, ...] | list[_int], offset: _int, dim1: _int, dim2: _int) -> Tensor: ...

def dim_gather(input: Tensor, dim: _int, index: Tensor, sparse_grad: _bool = False) -> Tensor: ...

def dim_order(x: Tensor) -> tuple[_int, ...]: ...

def dirichlet_grad(y: Tensor, concentration: Tensor, total: Tensor) -> Tensor: ...

def distributed_sparse_cross_entropy(prediction: Any, label: Any, depth: _int) -> Any: ...

def divide_(x: Tensor, other: Any, rounding_mode: str | None = None) -> Tensor: ...

def double(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def draw(
    size: tuple[_int, ...] | list[_int], distribution: str, parameters: Sequence[_float | _int | _bool | _complex],
    dtype: DType, device: Device | None = None, placement: Placement | None = None, sbp: tuple[Sbp, ...] | None = None,
    strides: tuple[_int, ...] | list[_int] | None = None
) -> Tensor: ...

def eigh(x: Tensor) -> tuple[Tensor, Tensor]: ...

def eigvals(x: Tensor) -> Tensor: ...

def elu_grad(dy: Tensor, x: Tensor, alpha: _float) -> Tensor: ...

def embedding_renorm_(weight: Any, indices: Any, max_norm: _float, norm_type: _float = 2.0) -> Any: ...

def embedding_weight_grad(dy: Tensor, ids: Tensor, rows: _int, padding_idx: _int | None = None) -> Tensor: ...

def expand_as(x: Tensor, other: Tensor) -> Tensor: ...

def exponential_(x: Tensor, lambd: _float = 1.0, *, generator: Any = None) -> Tensor: ...

def eye_(x: Any) -> Tensor: ...

def fake_quantization(
    x: Any, scale: Any, zero_point: Any, quantization_formula: str = 'google', quantization_bit: _int = 8,
    quantization_scheme: str = 'symmetric'
) -> Any: ...

def fast_gelu(x: Tensor) -> Tensor: ...

def fill_diagonal_(x: Tensor, fill_value: Any, wrap: _bool = False) -> Tensor: ...

def float(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def float_power_(x: Any, exponent: Any) -> Any: ...

def fold_tensor(y: Tensor, shape: tuple[_int, ...] | list[_int], dimension: _int, size: _int, step: _int) -> Tensor: ...

def fourier(x: Tensor, dims: tuple[_int, ...] | list[_int], scale: _int, forward: _bool) -> Tensor: ...

def fractional_max_pool2d_at(
    x: Tensor, samples: Tensor, kernel_size: tuple[_int, ...] | list[_int], output_size: tuple[_int, ...] | list[_int]
) -> tuple[Tensor, Tensor]: ...

def fractional_max_pool3d_at(
    x: Tensor, samples: Tensor, kernel_size: tuple[_int, ...] | list[_int], output_size: tuple[_int, ...] | list[_int]
) -> tuple[Tensor, Tensor]: ...

def fused_apply_rotary_emb(
    x: Tensor, *, cos: Tensor | None = None, sin: Tensor | None = None, position_ids: Tensor | None = None,
    x_layout: str = 'BHMK', output_layout: str | None = None, mode: str = 'plane', tensor_index: _int | None = None,
    k_size: _int | None = None, base: _float = 10000.0, rotary_size: _int | None = None
) -> Tensor: ...

def fused_attention_concat_past_key_value(
    past_key: Tensor | None = None, past_key_layout: str = 'BM(HK)', past_value: Tensor | None = None,
    past_value_layout: str = 'BM(HK)', key: Tensor | None = None, key_layout: str = 'BM(HK)',
    value: Tensor | None = None, value_layout: str = 'BM(HK)', key_head_size: _int | None = None
) -> tuple[Tensor, Tensor]: ...

def fused_bias_add_dropout(
    x: Tensor, bias: Tensor, p: _float = 0.5, axis: _int = 1, training: _bool = True
) -> Tensor: ...

def fused_bias_add_gelu(x: Tensor, bias: Tensor, axis: _int = 1) -> Tensor: ...

def fused_bias_add_scale_mask_softmax_dropout(
    x: Tensor, bias: Tensor, mask: Tensor, fill_value: _float = 0.0, scale: _float = 1.0, p: _float = 0.5,
    train: _bool = True
) -> tuple[Tensor, Tensor]: ...

def fused_cross_feature_interaction(
    x: Tensor, weight: Tensor, x0: Tensor, bias: Tensor, interaction_mode: str = 'vector'
) -> Tensor: ...

def fused_dot_feature_interaction(
    features: Sequence[Tensor], output_concat: Tensor | None = None, self_interaction: _bool = False,
    output_padding: _int = 0, pooling: str = 'none'
) -> Tensor: ...

def fused_fast_gelu_mul(x: Tensor, multiplier: Tensor) -> Tensor: ...

def fused_get_boundding_boxes_coord(
    x1: Tensor, y1: Tensor, w1: Tensor, h1: Tensor, x2: Tensor, y2: Tensor, w2: Tensor, h2: Tensor
) -> tuple[Tensor, ...]: ...

def fused_get_center_dist(
    b1_x1: Tensor, b1_x2: Tensor, b2_x1: Tensor, b2_x2: Tensor, b1_y1: Tensor, b1_y2: Tensor, b2_y1: Tensor,
    b2_y2: Tensor
) -> Tensor: ...

def fused_get_ciou_diagonal_angle(w1: Tensor, h1: Tensor, w2: Tensor, h2: Tensor, eps: _float) -> Tensor: ...

def fused_get_ciou_result(v: Tensor, iou: Tensor, rho2: Tensor, c2: Tensor, eps: _float) -> tuple[Tensor, Tensor]: ...

def fused_get_convex_diagonal_squared(
    b1_x1: Tensor, b1_x2: Tensor, b2_x1: Tensor, b2_x2: Tensor, b1_y1: Tensor, b1_y2: Tensor, b2_y1: Tensor,
    b2_y2: Tensor, eps: _float
) -> Tensor: ...

def fused_get_intersection_area(
    b1_x1: Tensor, b1_x2: Tensor, b2_x1: Tensor, b2_x2: Tensor, b1_y1: Tensor, b1_y2: Tensor, b2_y1: Tensor,
    b2_y2: Tensor
) -> Tensor: ...

def fused_get_iou(w1: Tensor, h1: Tensor, w2: Tensor, h2: Tensor, inter: Tensor, eps: _float) -> Tensor: ...

def fused_glu(
    x: Tensor, w: Tensor, b: Tensor | None = None, v: Tensor | None = None, c: Tensor | None = None,
    activation: str = 'none'
) -> Tensor: ...

def fused_matmul_bias(x: Tensor, weight: Tensor, bias: Tensor, _add_to_output: Tensor | None = None) -> Tensor: ...

def fused_matmul_bias_add_relu_dropout(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], skip_final_activation: _bool,
    dropout_rate_list: Sequence[_float]
) -> Tensor: ...

def fused_mlp(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], skip_final_activation: _bool
) -> Tensor: ...

def fused_multi_head_attention_inference(
    query: Tensor, key: Tensor, value: Tensor, num_heads: _int, causal: _bool = False,
    query_hidden_slice_start: _int = 0, query_hidden_slice_end: _int = -1, key_hidden_slice_start: _int = 0,
    key_hidden_slice_end: _int = -1, value_hidden_slice_start: _int = 0, value_hidden_slice_end: _int = -1,
    attn_bias: Tensor | None = None, causal_diagonal_offset: _int = 0
) -> Tensor: ...

def fused_multi_head_attention_inference_v2(
    query: Tensor, query_layout: str = 'BM(HK)', query_head_size: _int | None = None, *, key: Tensor | None = None,
    key_layout: str | None = None, value: Tensor | None = None, value_layout: str | None = None,
    attn_bias: Tensor | None = None, output_layout: str = 'BM(HK)', scale: _float | None = None,
    causal: _bool | None = None, attn_mask_type: str | None = None, causal_diagonal_offset: _int = 0
) -> Tensor: ...

def fused_scale_mask_softmax(x: Tensor, mask: Tensor, fill_value: _float = 0.0, scale: _float = 1.0) -> Tensor: ...

def fused_scale_mask_softmax_dropout(
    x: Tensor, mask: Tensor, fill_value: _float = 0.0, scale: _float = 1.0, p: _float = 0.5, train: _bool = True
) -> tuple[Tensor, Tensor]: ...

def fused_scale_tril(x: Tensor, diagonal: _int = 0, fill_value: _float = 0.0, scale: _float = 1.0) -> Tensor: ...

def fused_scale_tril_softmax_mask_scale(
    a: Tensor, p: _float = 0.5, *, diagonal: _int, tril_scale_value: _float, tril_fill_value: _float = 0.0,
    generator: Any = None
) -> tuple[Tensor, Tensor]: ...

def fused_self_attention(hidden_states: Tensor, head_size: _int, alpha: _float = 1.0) -> tuple[Tensor, Tensor]: ...

def fused_weighted_sum(tensors: Sequence[Tensor], weights: Sequence[_float], alpha: _float = 1.0) -> Tensor: ...

@overload
def gather(x: Tensor, indices: Tensor, axis: _int = 0) -> Tensor: ...

@overload
def gather(x: Tensor, dim: _int, index: Tensor, *, sparse_grad: _bool = False) -> Tensor: ...

def gather_places(x: Tensor, indices: Tensor, dims: _int) -> Tensor: ...

def gelu_grad(dy: Tensor, x: Tensor, approximate: str = 'none') -> Tensor: ...

def gelu_with_approximate(x: Tensor, approximate: str = 'none') -> Tensor: ...

def geometric_(x: Tensor, p: _float, *, generator: Any = None) -> Tensor: ...

def global_arange(
    start: Any = None, end: Any = None, step: Any = 1, dtype: Any = None, device: Any = None,
    placement: Placement | None = None, sbp: Any = None, requires_grad: _bool = False
) -> Tensor: ...

def global_constant(
    shape: Sequence[_int], value: Any, *, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None
) -> Tensor: ...

def global_empty(shape: Sequence[_int], *, dtype: Any = None, placement: Any, sbp: Any) -> Tensor: ...

def global_id(x: Tensor) -> _int: ...

def global_tensor_constant(
    shape: Sequence[_int], value: Any, *, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None
) -> Tensor: ...

def greatest(tensors: Sequence[Tensor]) -> Tensor: ...

def grid_sample(
    x: Tensor, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: _bool = False
) -> Tensor: ...

def grid_sample_grad(
    dy: Tensor, x: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: _bool
) -> tuple[Tensor, Tensor]: ...

def group_norm_grad(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, num_groups: _int,
    wanted: tuple[_bool, ...]
) -> tuple[Tensor, Tensor, Tensor]: ...

def grouped_matmul(xs: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]: ...

def grouped_matmul_bias(xs: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]: ...

def gru(input: Any, second: Any, third: Any, *more: Any) -> Any: ...

def gru_scan(
    gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None, backwards: _bool = False
) -> Tensor: ...

def gru_scan_grad(
    dy: Tensor, gated: Tensor, before: Tensor, weight: Tensor, backwards: _bool = False
) -> tuple[Tensor, Tensor, Tensor]: ...

def half(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def hardshrink_grad(dy: Tensor, x: Tensor, lambd: _float) -> Tensor: ...

def hardsigmoid_grad(dy: Tensor, x: Tensor) -> Tensor: ...

def hardswish_grad(dy: Tensor, x: Tensor) -> Tensor: ...

def hardtanh(x: Tensor, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor: ...

def hardtanh_(x: Tensor, min_val: _float = -1.0, max_val: _float = 1.0) -> Tensor: ...

def hardtanh_grad(dy: Tensor, x: Tensor, min_val: _float, max_val: _float) -> Tensor: ...

def hide_future(scores: Tensor) -> Tensor: ...

def im2col(
    x: Tensor, kernel_size: tuple[_int, ...] | list[_int], dilation: tuple[_int, ...] | list[_int],
    padding: tuple[_int, ...] | list[_int], stride: tuple[_int, ...] | list[_int]
) -> Tensor: ...

def in_a_row(tensors: Sequence[Tensor]) -> Tensor: ...

def index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor: ...

def index_copy_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def index_fill_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def index_put_zeros(
    value: Tensor, indices: Sequence[Tensor | None], shape: tuple[_int, ...] | list[_int]
) -> Tensor: ...

def index_reduce_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def int(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def inv(x: Tensor) -> Tensor: ...

def inv_ex(x: Tensor) -> tuple[Tensor, Tensor]: ...

def is_pinned(x: Tensor) -> _bool: ...

def is_set_to(x: Tensor, other: Tensor) -> _bool: ...

def is_shared(x: Tensor) -> _bool: ...

def keep_mask(
    size: tuple[_int, ...] | list[_int], p: _float, dtype: DType, device: Device | None = None,
    placement: Placement | None = None, sbp: tuple[Sbp, ...] | None = None
) -> Tensor: ...

def kl_div_loss(input: Any, target: Any, log_target: _bool = False, reduction: str = 'mean') -> Any: ...

@overload
def layer_norm(x: Tensor, begin_norm_axis: _int, begin_params_axis: _int = -1, epsilon: _float = 1e-05) -> Tensor: ...

@overload
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: _float = 1e-05
) -> Tensor: ...

def layer_norm_affine(
    x: Any, gamma: Any, beta: Any, begin_norm_axis: _int = 1, begin_params_axis: _int = -1, epsilon: _float = 1e-05
) -> Any: ...

def layer_norm_grad(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None,
    normalized_shape: tuple[_int, ...] | list[_int], wanted: tuple[_bool, ...]
) -> tuple[Tensor, Tensor, Tensor]: ...

def ldexp_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def leaky_relu(x: Tensor, alpha: _float = 0.01) -> Tensor: ...

def leaky_relu_grad(dy: Tensor, x: Tensor, alpha: _float) -> Tensor: ...

def linalg_cross(x: Tensor, other: Tensor, *, dim: _int = -1) -> Tensor: ...

def linear_weight_grad(dy: Tensor, x: Tensor) -> Tensor: ...

def local_all_gather(output: Any, x: Any) -> Any: ...

def local_all_reduce(x: Any, inplace: _bool = False) -> Any: ...

def local_reduce(x: Any, dst: _int = 0, inplace: _bool = False) -> Any: ...

def local_reduce_scatter(output: Any, x: Any) -> Any: ...

def log_normal_(x: Tensor, mean: _float = 1.0, std: _float = 2.0, *, generator: Any = None) -> Tensor: ...

def log_softmax_grad(dy: Tensor, y: Tensor, dim: _int) -> Tensor: ...

def long(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def lstm(input: Any, second: Any, third: Any, *more: Any) -> Any: ...

def lstm_scan(
    gates: Tensor, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor | None = None, backwards: _bool = False
) -> tuple[Tensor, Tensor]: ...

def lstm_scan_grad(
    dy: Tensor, dcells: Tensor, gated: Tensor, cells: Tensor, c: Tensor, weight: Tensor, backwards: _bool = False
) -> tuple[Tensor, Tensor, Tensor]: ...

def lu_factor(x: Tensor) -> tuple[Tensor, Tensor]: ...

def lu_factor_ex(x: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...

def map_(x: Tensor, other: Tensor, f: Callable[[Any, Any], Any]) -> Tensor: ...

def masked_scatter_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def matrix_exponential(x: Tensor) -> Tensor: ...

def matrix_norm(
    x: Tensor, ord: Any = 'fro', dim: tuple[_int, ...] | list[_int] = ..., keepdim: _bool = False, *, dtype: Any = None
) -> Tensor: ...

def max_pool2d_with_indices(
    x: Tensor, kernel_size: _int | tuple[_int, ...] | list[_int],
    stride: _int | tuple[_int, ...] | list[_int] | None = None, padding: _int | tuple[_int, ...] | list[_int] = 0,
    dilation: _int | tuple[_int, ...] | list[_int] = 1, ceil_mode: _bool = False
) -> tuple[Tensor, Tensor]: ...

def max_pool3d_with_indices(
    x: Tensor, kernel_size: _int | tuple[_int, ...] | list[_int],
    stride: _int | tuple[_int, ...] | list[_int] | None = None, padding: _int | tuple[_int, ...] | list[_int] = 0,
    dilation: _int | tuple[_int, ...] | list[_int] = 1, ceil_mode: _bool = False
) -> tuple[Tensor, Tensor]: ...

def min_max_observer(
    x: Any, quantization_formula: str = 'google', quantization_bit: _int = 8, quantization_scheme: str = 'symmetric',
    per_layer_quantization: _bool = True
) -> tuple[Any, Any]: ...

def mish_grad(dy: Tensor, x: Tensor) -> Tensor: ...

def moving_average_min_max_observer(
    x: Any, current_train_step: Any, moving_max: Any, moving_min: Any, training: _bool = True,
    stop_update_after_iters: _int = 1, quantization_formula: str = 'google', quantization_bit: _int = 8,
    quantization_scheme: str = 'symmetric', momentum: _float = 0.95
) -> tuple[Any, Any]: ...

def narrow_scatter(base: Tensor, part: Tensor, dim: _int, start: _int, length: _int, step: _int = 1) -> Tensor: ...

def narrow_scatter_zeros(
    x: Tensor, shape: tuple[_int, ...] | list[_int], dim: _int, start: _int, length: _int, step: _int = 1
) -> Tensor: ...

def new(x: Tensor, *data: Any) -> Tensor: ...

def new_tensor(
    x: Tensor, data: Any, dtype: Any = None, device: Any = None, requires_grad: _bool = False, placement: Any = None,
    sbp: Any = None
) -> Tensor: ...

def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: _int = -100, reduction: str = 'mean'
) -> Tensor: ...

def normal_(x: Tensor, mean: _float = 0.0, std: _float = 1.0, *, generator: Any = None) -> Tensor: ...

def normalization(
    x: Any, moving_mean: Any = None, moving_variance: Any = None, gamma: Any = None, beta: Any = None, axis: _int = 1,
    epsilon: _float = 1e-05, momentum: _float = 0.9, is_training: _bool = False
) -> Any: ...

def normalization_add_relu(
    x: Any, addend: Any = None, moving_mean: Any = None, moving_variance: Any = None, gamma: Any = None,
    beta: Any = None, axis: _int = 1, epsilon: _float = 1e-05, momentum: _float = 0.9, is_training: _bool = False
) -> Any: ...

def normalize(
    input: Tensor, p: _float = 2.0, dim: _int = 1, eps: _float = 1e-12, use_l2_norm_kernel: _bool = False
) -> Tensor: ...

def one_hot(input: Tensor, num_classes: _int = -1, on_value: Any = 1, off_value: Any = 0) -> Tensor: ...

def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: _bool = False, enforce_sorted: _bool = True
) -> PackedSequence: ...

def pad_edges(x: Tensor, pad: tuple[_int, ...] | list[_int], mode: str) -> Tensor: ...

def pad_edges_grad(
    dy: Tensor, shape: tuple[_int, ...] | list[_int], pad: tuple[_int, ...] | list[_int], mode: str
) -> Tensor: ...

def pad_with(
    x: Tensor, pad: tuple[_int, ...] | list[_int], value: _float | _int | _bool | _complex = 0.0
) -> Tensor: ...

def permutation_of(pivots: Tensor, rows: _int, dtype: DType) -> Tensor: ...

def pick(x: Tensor, target: Tensor) -> Tensor: ...

def pin_memory(x: Tensor) -> Tensor: ...

def pinv(x: Tensor, atol: _float | None = None, rtol: _float | None = None, hermitian: _bool = False) -> Tensor: ...

def pixel_shuffle(input: Tensor, h_upscale_factor: _int, w_upscale_factor: _int | None = None) -> Tensor: ...

def power_sum(tensors: Sequence[Tensor], exponent: _float = 2.0) -> Tensor: ...

def prod_grad(dy: Tensor, x: Tensor, dim: _int | None) -> Tensor: ...

def put_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def quantization(
    x: Any, scale: Any, zero_point: Any, quantization_formula: str = 'google', quantization_bit: _int = 8,
    quantization_scheme: str = 'symmetric'
) -> Any: ...

def random_(x: Tensor, from_: _int | None = None, to: _int | None = None, *, generator: Any = None) -> Tensor: ...

def reciprocal_no_nan(x: Tensor) -> Tensor: ...

def record_stream(x: Tensor, stream: Any) -> None: ...

def recv(
    src: _int, shape: Any = None, dtype: Any = None, device: Any = None, *, out: Tensor | None = None
) -> Tensor: ...

def reduce_nansum(x: Tensor, dim: Any = None, keepdim: _bool = False, *, dtype: Any = None) -> Tensor: ...

def reduce_sum_like(x: Tensor, like: Tensor, axis: Sequence[_int] = ...) -> Tensor: ...

def reinterpret(x: Tensor, dtype: DType) -> Tensor: ...

def relu_grad(dy: Tensor, y: Tensor) -> Tensor: ...

def renorm_(x: Any, p: _float, dim: _int, maxnorm: _float) -> Any: ...

def repeat_places(repeats: Tensor) -> Tensor: ...

def repeat_places_in(repeats: Tensor, size: _int) -> Tensor: ...

def require(x: Tensor, valid: Tensor, message: str) -> Tensor: ...

def reshape_as(x: Tensor, other: Tensor) -> Tensor: ...

def reshape_like(x: Tensor, like: Tensor) -> Tensor: ...

def resize(
    x: Tensor, size: tuple[_int, ...] | list[_int], mode: str = 'nearest', align_corners: _bool = False,
    scales: Sequence[_float] | None = None
) -> Tensor: ...

def resize_(x: Tensor, *size: _int | Sequence[_int]) -> Tensor: ...

def resize_as_(x: Tensor, other: Tensor) -> Tensor: ...

def resize_grad(
    dy: Tensor, shape: tuple[_int, ...] | list[_int], mode: str = 'nearest', align_corners: _bool = False,
    scales: Sequence[_float] | None = None
) -> Tensor: ...

def rms_layer_norm(x: Tensor, weight: Tensor, eps: _float = 1e-06) -> Tensor: ...

@overload
def rms_norm(
    input: Tensor, normalized_shape: Sequence[_int], weight: Tensor | None = None, eps: _float = 1e-06
) -> Tensor: ...

@overload
def rms_norm(x: Tensor, weight: Tensor | None, normalized_shape: Sequence[_int], epsilon: _float = 1e-06) -> Tensor: ...

def rms_norm_grad(
    dy: Tensor, x: Tensor, weight: Tensor | None, normalized_shape: tuple[_int, ...] | list[_int], eps: _float,
    wanted: tuple[_bool, ...]
) -> tuple[Tensor, Tensor]: ...

def rmsprop_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], squares: Sequence[Tensor], means: Sequence[Tensor],
    momenta: Sequence[Tensor], lr: Tensor | _float | _int | _bool | _complex, alpha: _float = 0.99, eps: _float = 1e-08,
    weight_decay: _float = 0.0, momentum: _float = 0.0, maximize: _bool = False
) -> None: ...

def rnn_relu(input: Any, second: Any, third: Any, *more: Any) -> Any: ...

def rnn_scan(
    gates: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None, relu: _bool = False, backwards: _bool = False
) -> Tensor: ...

def rnn_scan_grad(
    dy: Tensor, y: Tensor, weight: Tensor, relu: _bool = False, backwards: _bool = False
) -> tuple[Tensor, Tensor]: ...

def rnn_tanh(input: Any, second: Any, third: Any, *more: Any) -> Any: ...

def roc_auc(label: Tensor, pred: Tensor) -> Tensor: ...

def root(x: Tensor, degree: _float = 2.0) -> Tensor: ...

def rrelu_slope(x: Tensor, lower: _float, upper: _float) -> Tensor: ...

def safe_softmax(x: Tensor, dim: _int) -> Tensor: ...

def scale_all(tensors: Sequence[Tensor], factor: Tensor | _float | _int | _bool | _complex) -> None: ...

def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, is_causal: _bool = False,
    scale: _float | None = None
) -> Tensor: ...

def scatter_(x: Tensor, dim: _int, index: Tensor, src: Tensor | _float | _int | _bool | _complex) -> Tensor: ...

def scatter_add_zeros(src: Tensor, dim: _int, index: Tensor, shape: tuple[_int, ...] | list[_int]) -> Tensor: ...

def scatter_places(dy: Tensor, indices: Tensor, shape: tuple[_int, ...] | list[_int], dims: _int) -> Tensor: ...

def scatter_reduce_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def scatter_reduced(
    x: Tensor, dim: _int, index: Tensor, src: Tensor, reduce: str, include_self: _bool = True
) -> Tensor: ...

def scatternd(index: Tensor, update: Tensor, shape: Sequence[_int]) -> Tensor: ...

def scatterndlike(like: Any, indices: Any, updates: Any) -> Any: ...

def select_top_n(inputs: Sequence[Any], n: _int) -> tuple[Any, ...]: ...

def selu_grad(dy: Tensor, x: Tensor) -> Tensor: ...

def send(input: Tensor, dst: _int, send_meta: _bool = True) -> None: ...

def set_(x: Tensor, source: Tensor) -> Tensor: ...

def sgd_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], momenta: Sequence[Tensor],
    lr: Tensor | _float | _int | _bool | _complex, momentum: _float = 0.0,
    dampening: Tensor | _float | _int | _bool | _complex = 0.0, weight_decay: _float = 0.0, nesterov: _bool = False,
    maximize: _bool = False
) -> None: ...

def share_memory_(x: Tensor) -> Tensor: ...

def short(x: Tensor, *, memory_format: Any = None) -> Tensor: ...

def sigmoid_backward(dy: Tensor, y: Tensor) -> Tensor: ...

def sigmoid_grad(y: Any, dy: Any) -> Any: ...

def silu_grad(dy: Tensor, x: Tensor) -> Tensor: ...

@overload
def slice(x: Tensor, slice_tup_list: Sequence[Sequence[_int | None]]) -> Tensor: ...

@overload
def slice(x: Tensor, start: Sequence[_int], stop: Sequence[_int], step: Sequence[_int]) -> Tensor: ...

@overload
def slice_update(x: Tensor, update: Tensor, slice_tup_list: Sequence[Sequence[_int | None]]) -> Tensor: ...

@overload
def slice_update(
    ref: Tensor, value: Tensor, start: Sequence[_int], stop: Sequence[_int], step: Sequence[_int],
    enable_view_slice: _bool = False
) -> Tensor: ...

def slice_view_1d_contiguous(x: Any, start: _int, end: _int) -> Any: ...

def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor: ...

def softmax_cross_entropy_grad(dy: Any, label: Any, prob: Any) -> Any: ...

def softmax_grad(dy: Tensor, y: Tensor, dim: _int) -> Tensor: ...

def softplus_grad(dy: Tensor, x: Tensor, beta: _float, threshold: _float) -> Tensor: ...

def softshrink_grad(dy: Tensor, x: Tensor, alpha: _float) -> Tensor: ...

def solve_ex(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]: ...

def solve_triangle(a: Tensor, b: Tensor, upper: _bool = False, unit: _bool = False) -> Tensor: ...

def sparse_cross_entropy(prediction: Any, label: Any, depth: _int) -> Any: ...

def sparse_softmax_cross_entropy(logits: Tensor, label: Tensor) -> Tensor: ...

def split_like(x: Any, like: Sequence[Any], axis: _int = 0) -> tuple[Any, ...]: ...

def sqrt_square_sum(x: Tensor) -> Tensor: ...

def square_error(x: Tensor, target: Tensor, mean: _bool = True) -> Tensor: ...

def square_error_grad(dy: Tensor, x: Tensor, target: Tensor, factor: _float) -> Tensor: ...

def squeeze_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def standard_gamma(concentration: Tensor) -> Tensor: ...

def standard_gamma_grad(concentration: Tensor, y: Tensor) -> Tensor: ...

def steady(value: Tensor, x: Tensor) -> Tensor: ...

def storage(x: Tensor) -> Any: ...

def store(x: Tensor, value: Tensor) -> None: ...

def stream_touch(x: Any) -> Any: ...

def sub_(input: Tensor, other: Tensor | _float | _int | _bool | _complex) -> Tensor: ...

def sum_to(x: Tensor, shape: tuple[_int, ...] | list[_int]) -> Tensor: ...

def sum_to_size(x: Tensor, *size: _int | Sequence[_int]) -> Tensor: ...

def swapaxes_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def swapdims_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def t_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def take_from_row(tensors: Sequence[Tensor], row: Tensor) -> None: ...

def tan_grad(x: Any, dy: Any) -> Any: ...

def tanh_backward(dy: Tensor, y: Tensor) -> Tensor: ...

def tanh_grad(x: Any, dy: Any) -> Any: ...

def tensor_constant(
    shape: Sequence[_int], value: Any, *, dtype: Any = None, device: Any = None, placement: Any = None, sbp: Any = None
) -> Tensor: ...

def tensor_setitem(x: Any, index: Any, value: Any) -> None: ...

def threshold_grad(dy: Tensor, x: Tensor, threshold: _float, value: _float) -> Tensor: ...

def throw_error(x: Any) -> Any: ...

def to(
    x: Tensor, *targets: Any, dtype: Any = None, device: Any = None, other: Tensor | None = None, copy: _bool = False,
    non_blocking: _bool = False, placement: Placement | None = None, sbp: Any = None, memory_format: Any = None
) -> Tensor: ...

def to_consistent(x: Tensor, placement: Any = None, sbp: Any = None, **options: Any) -> Any: ...

def to_dense(x: Tensor) -> Tensor: ...

def to_device(x: Tensor, device: Device, source: Device, wait: _bool = True) -> Tensor: ...

def transpose_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def true_divide_(x: Tensor, other: Any, rounding_mode: str | None = None) -> Tensor: ...

def trunc_divide(input: Any, other: Any) -> Tensor: ...

def type(x: Tensor, dtype: Any = None) -> Any: ...

def type_as(x: Tensor, other: Tensor) -> Tensor: ...

def unfold_tensor(x: Tensor, dimension: _int, size: _int, step: _int) -> Tensor: ...

@overload
def uniform_(x: Tensor, from_: _float = 0.0, to: _float = 1.0, *, generator: Any = None) -> Tensor: ...

@overload
def uniform_(x: Tensor, a: _float = 0.0, b: _float = 1.0, *, generator: Any = None) -> Tensor: ...

def unique_values(x: Tensor, dim: _int | None = None) -> tuple[Tensor, Tensor, Tensor]: ...

def unpick(dy: Tensor, target: Tensor, classes: _int) -> Tensor: ...

def unsorted_segment_sum(x: Tensor, segment_ids: Tensor, axis: _int, num_segments: _int) -> Tensor: ...

def unsqueeze_(x: Tensor, *args: Any, **options: Any) -> Tensor: ...

def untyped_storage(x: Tensor) -> Any: ...

def upsample_bicubic_2d(
    x: Any, height_scale: _float = 1.0, width_scale: _float = 1.0, align_corners: _bool = False,
    output_size: Any = None, data_format: str = 'channels_first'
) -> Any: ...

def upsample_bilinear_2d(
    x: Any, height_scale: _float = 1.0, width_scale: _float = 1.0, align_corners: _bool = False,
    output_size: Any = None, data_format: str = 'channels_first'
) -> Any: ...

def upsample_linear_1d(
    x: Any, scale_factor: _float = 1.0, align_corners: _bool = False, output_size: Any = None,
    data_format: str = 'channels_first'
) -> Any: ...

def upsample_nearest_1d(
    x: Any, scale_factor: _float = 1.0, output_size: Any = None, data_format: str = 'channels_first'
) -> Any: ...

def upsample_nearest_2d(
    x: Any, height_scale: _float = 1.0, width_scale: _float = 1.0, output_size: Any = None,
    data_format: str = 'channels_first'
) -> Any: ...

def upsample_nearest_3d(
    x: Any, depth_scale: _float = 1.0, height_scale: _float = 1.0, width_scale: _float = 1.0, output_size: Any = None,
    data_format: str = 'channels_first'
) -> Any: ...

def upsample_trilinear_3d(
    x: Any, depth_scale: _float = 1.0, height_scale: _float = 1.0, width_scale: _float = 1.0,
    align_corners: _bool = False, output_size: Any = None, data_format: str = 'channels_first'
) -> Any: ...

def variance(x: Tensor, dim: tuple[_int, ...] | list[_int], less: _float, keepdim: _bool = False) -> Tensor: ...

def vector_norm(
    x: Tensor, ord: _float = 2, dim: _int | tuple[_int, ...] | list[_int] | None = None, keepdim: _bool = False, *,
    dtype: Any = None
) -> Tensor: ...

def view_as(x: Tensor, other: Tensor) -> Tensor: ...
