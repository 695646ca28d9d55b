# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Every op's entry by its name: `ops.mul(a, b)` calls the op, on tensors of any interpreter. What is declared of it is
`OPS["mul"]`'s.

The names are set once entries can be made; `ops.pyi`, written by `make stubs`, gives each one's file.
"""

from weft.ops.declaration import Op

from weft.ops.create.constructors import (
    arange as arange, empty as empty, empty_like as empty_like, full as full, full_like as full_like,
    keep_mask as keep_mask, ones_like as ones_like, rand as rand, randint as randint, randn as randn,
    randperm as randperm, zeros_like as zeros_like
)
from weft.ops.create.convert import from_local as from_local, to_global as to_global, to_local as to_local
from weft.ops.create.fill import fill as fill
from weft.ops.create.move import contiguous as contiguous, dense as dense, to_device as to_device
from weft.ops.index.indexing import (
    gather as gather, index as index, index_add as index_add, index_put as index_put,
    index_put_zeros as index_put_zeros, index_select as index_select, nonzero as nonzero, scatter as scatter,
    scatter_add as scatter_add, scatter_add_zeros as scatter_add_zeros
)
from weft.ops.index.pick import pick as pick, unpick as unpick
from weft.ops.index.scatters import scatter_reduced as scatter_reduced
from weft.ops.linalg.decompositions import (
    cholesky as cholesky, completion as completion, eig as eig, eigh as eigh, eigvals as eigvals,
    lu_factor as lu_factor, permutation_of as permutation_of, qr as qr, svd as svd
)
from weft.ops.linalg.determinants import cofactors as cofactors, det as det, slogdet as slogdet
from weft.ops.linalg.einsum import einsum as einsum
from weft.ops.linalg.matmul import (
    add_linear_weight_grad as add_linear_weight_grad, cross as cross, linear as linear,
    linear_weight_grad as linear_weight_grad, matmul as matmul, matrix_exponential as matrix_exponential
)
from weft.ops.linalg.solving import inv as inv, pinv as pinv, solve as solve, solve_triangle as solve_triangle
from weft.ops.linalg.unchecked import (
    cholesky_ex as cholesky_ex, inv_ex as inv_ex, lu_factor_ex as lu_factor_ex, solve_ex as solve_ex
)
from weft.ops.neural.activations import (
    clamp as clamp, clamp_grad as clamp_grad, elu as elu, gelu as gelu, gelu_grad as gelu_grad, glu as glu,
    glu_grad as glu_grad, hardsigmoid as hardsigmoid, hardswish as hardswish, hardswish_grad as hardswish_grad,
    leaky_relu as leaky_relu, logsigmoid as logsigmoid, mish as mish, mish_grad as mish_grad, relu as relu,
    relu_grad as relu_grad, sigmoid as sigmoid, sigmoid_backward as sigmoid_backward, silu as silu,
    silu_grad as silu_grad, softplus as softplus, softplus_grad as softplus_grad
)
from weft.ops.neural.attention import (
    attention_grad as attention_grad, scaled_dot_product_attention as scaled_dot_product_attention
)
from weft.ops.neural.binary_cross_entropy import (
    binary_cross_entropy_each as binary_cross_entropy_each,
    binary_cross_entropy_each_grad as binary_cross_entropy_each_grad,
    binary_cross_entropy_of_scores as binary_cross_entropy_of_scores
)
from weft.ops.neural.boxes import nms as nms
from weft.ops.neural.channel_norm import (
    batch_norm as batch_norm, batch_norm_grad as batch_norm_grad, blend as blend, group_norm as group_norm,
    group_norm_grad as group_norm_grad, store as store
)
from weft.ops.neural.columns import col2im as col2im, im2col as im2col
from weft.ops.neural.convolution import (
    conv1d as conv1d, conv2d as conv2d, conv3d as conv3d, conv_input_grad as conv_input_grad,
    conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d,
    conv_weight_grad as conv_weight_grad
)
from weft.ops.neural.cross_entropy import (
    cross_entropy as cross_entropy, cross_entropy_grad as cross_entropy_grad, nll_loss as nll_loss,
    nll_loss_grad as nll_loss_grad
)
from weft.ops.neural.ctc import ctc_nll as ctc_nll, ctc_nll_grad as ctc_nll_grad
from weft.ops.neural.dropout import dropout as dropout
from weft.ops.neural.embedding import (
    embedding as embedding, embedding_weight_grad as embedding_weight_grad, one_hot as one_hot
)
from weft.ops.neural.embedding_bags import (
    embedding_bags as embedding_bags, embedding_bags_factors_grad as embedding_bags_factors_grad,
    embedding_bags_grad as embedding_bags_grad
)
from weft.ops.neural.fractional_pooling import (
    fractional_max_pool2d_at as fractional_max_pool2d_at, fractional_max_pool3d_at as fractional_max_pool3d_at
)
from weft.ops.neural.grid_sample import grid_sample as grid_sample, grid_sample_grad as grid_sample_grad
from weft.ops.neural.layer_norm import (
    layer_norm as layer_norm, layer_norm_grad as layer_norm_grad, rms_norm as rms_norm, rms_norm_grad as rms_norm_grad
)
from weft.ops.neural.losses import (
    bent_error as bent_error, bent_error_grad as bent_error_grad, bent_errors as bent_errors,
    square_error as square_error, square_error_grad as square_error_grad
)
from weft.ops.neural.lstm_layer import lstm_layer as lstm_layer, lstm_layer_grad as lstm_layer_grad
from weft.ops.neural.padding import pad_edges as pad_edges, pad_edges_grad as pad_edges_grad, pad_with as pad_with
from weft.ops.neural.pooling import (
    adaptive_avg_pool_grad as adaptive_avg_pool_grad, avg_pool_grad as avg_pool_grad, gather_places as gather_places,
    scatter_places as scatter_places
)
from weft.ops.neural.recurrent import (
    gru_scan as gru_scan, gru_scan_grad as gru_scan_grad, lstm_scan as lstm_scan, lstm_scan_grad as lstm_scan_grad,
    rnn_scan as rnn_scan, rnn_scan_grad as rnn_scan_grad
)
from weft.ops.neural.resize import resize as resize, resize_grad as resize_grad
from weft.ops.neural.softmax import (
    log_softmax as log_softmax, log_softmax_grad as log_softmax_grad, safe_softmax as safe_softmax, softmax as softmax,
    softmax_grad as softmax_grad
)
from weft.ops.neural.thresholds import (
    bent as bent, bent_grad as bent_grad, celu as celu, hardshrink as hardshrink, hardtanh as hardtanh,
    quick_gelu as quick_gelu, selu as selu, softshrink as softshrink, softsign as softsign, threshold as threshold
)
from weft.ops.pointwise.arithmetic import (
    abs as abs, add as add, add_scaled as add_scaled, conj as conj, div as div, maximum as maximum, minimum as minimum,
    mul as mul, neg as neg, reciprocal as reciprocal, sgn as sgn, sign as sign, square as square, sub as sub
)
from weft.ops.pointwise.complex_numbers import (
    angle as angle, view_as_complex as view_as_complex, view_as_real as view_as_real
)
from weft.ops.pointwise.copies import (
    cast as cast, clone as clone, coalesce as coalesce, copy as copy, masked_fill as masked_fill,
    reinterpret as reinterpret, require as require, steady as steady, to_dense as to_dense, where as where
)
from weft.ops.pointwise.elementary import (
    acos as acos, acosh as acosh, asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh,
    cos as cos, cosh as cosh, erf as erf, erfc as erfc, erfinv as erfinv, exp as exp, exp2 as exp2, expm1 as expm1,
    lerp as lerp, log as log, log10 as log10, log1p as log1p, log2 as log2, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, pow as pow, root as root, rsqrt as rsqrt, sin as sin, sinc as sinc, sinh as sinh,
    sqrt as sqrt, tan as tan, tanh as tanh, tanh_backward as tanh_backward
)
from weft.ops.pointwise.gamma import digamma as digamma, lgamma as lgamma, mvlgamma as mvlgamma, polygamma as polygamma
from weft.ops.pointwise.integral_functions import (
    bessel_j0 as bessel_j0, bessel_j1 as bessel_j1, bessel_y0 as bessel_y0, bessel_y1 as bessel_y1, erfcx as erfcx,
    i0 as i0, i0e as i0e, i1 as i1, i1e as i1e, igamma as igamma, igammac as igammac, log_ndtr as log_ndtr,
    ndtri as ndtri
)
from weft.ops.pointwise.logic import (
    bitwise_and as bitwise_and, bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not,
    bitwise_or as bitwise_or, bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, eq as eq,
    ge as ge, gt as gt, isfinite as isfinite, isinf as isinf, isnan as isnan, isneginf as isneginf,
    isposinf as isposinf, le as le, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, lt as lt, ne as ne, signbit as signbit
)
from weft.ops.pointwise.numbers import (
    copysign as copysign, deg2rad as deg2rad, fmax as fmax, fmin as fmin, frexp as frexp, gcd as gcd,
    heaviside as heaviside, hypot as hypot, lcm as lcm, logit as logit, nan_to_num as nan_to_num,
    nextafter as nextafter, rad2deg as rad2deg, xlogy as xlogy
)
from weft.ops.pointwise.polynomials import (
    airy_ai as airy_ai, modified_bessel_i0 as modified_bessel_i0, modified_bessel_i1 as modified_bessel_i1,
    modified_bessel_k0 as modified_bessel_k0, modified_bessel_k1 as modified_bessel_k1,
    scaled_modified_bessel_k0 as scaled_modified_bessel_k0, scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
    spherical_bessel_j0 as spherical_bessel_j0, zeta as zeta
)
from weft.ops.pointwise.rounding import (
    ceil as ceil, floor as floor, floor_divide as floor_divide, fmod as fmod, frac as frac, remainder as remainder,
    round as round, trunc as trunc, trunc_divide as trunc_divide
)
from weft.ops.random.draws import (
    bernoulli as bernoulli, binomial as binomial, dirichlet_grad as dirichlet_grad, draw as draw,
    multinomial as multinomial, poisson as poisson, rrelu_slope as rrelu_slope, standard_gamma as standard_gamma,
    standard_gamma_grad as standard_gamma_grad
)
from weft.ops.reduce.counting import (
    bincount as bincount, repeat_places as repeat_places, repeat_places_in as repeat_places_in, roc_auc as roc_auc,
    unique_values as unique_values
)
from weft.ops.reduce.extremes import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin, max as max, min as min
)
from weft.ops.reduce.norms import (
    euclidean_distances as euclidean_distances, euclidean_distances_grad as euclidean_distances_grad,
    euclidean_norm as euclidean_norm, euclidean_norm_grad as euclidean_norm_grad, log_sum_exp as log_sum_exp
)
from weft.ops.reduce.ordering import (
    argsort as argsort, kthvalue as kthvalue, median as median, mode as mode, searchsorted as searchsorted,
    sort as sort, topk as topk
)
from weft.ops.reduce.products import prod as prod, prod_grad as prod_grad
from weft.ops.reduce.running import (
    cummax as cummax, cummin as cummin, cumprod as cumprod, cumprod_grad as cumprod_grad, cumsum as cumsum,
    logcumsumexp as logcumsumexp, logcumsumexp_grad as logcumsumexp_grad
)
from weft.ops.reduce.sums import mean as mean, sum as sum, variance as variance
from weft.ops.shape.broadcast import expand as expand, sum_to as sum_to
from weft.ops.shape.diagonal import (
    diagonal as diagonal, diagonal_put as diagonal_put, diagonal_zeros as diagonal_zeros
)
from weft.ops.shape.flips import flip as flip, roll as roll
from weft.ops.shape.joining import cat as cat, in_a_row as in_a_row, stack as stack
from weft.ops.shape.slicing import (
    basic_index as basic_index, basic_index_fill as basic_index_fill, basic_index_scatter as basic_index_scatter,
    basic_index_zeros as basic_index_zeros, narrow as narrow, narrow_scatter as narrow_scatter,
    narrow_scatter_zeros as narrow_scatter_zeros, select as select
)
from weft.ops.shape.strided import (
    as_strided as as_strided, as_strided_zeros as as_strided_zeros, fold_tensor as fold_tensor,
    unfold_tensor as unfold_tensor
)
from weft.ops.shape.triangle import hide_future as hide_future, tril as tril, triu as triu
from weft.ops.shape.views import (
    permute as permute, reshape as reshape, squeeze as squeeze, transpose as transpose, unsqueeze as unsqueeze,
    view as view
)
from weft.ops.signal.fourier import fourier as fourier
from weft.ops.update.optimizer import (
    adadelta_update as adadelta_update, adagrad_update as adagrad_update, adam_update as adam_update,
    adamw_update as adamw_update, greatest as greatest, power_sum as power_sum, rmsprop_update as rmsprop_update,
    scale_all as scale_all, sgd_update as sgd_update, take_from_row as take_from_row
)
from weft.ops.update.row_updates import sgd_rows_update as sgd_rows_update

adaptive_avg_pool1d: Op
adaptive_avg_pool2d: Op
adaptive_avg_pool3d: Op
adaptive_max_pool1d: Op
adaptive_max_pool2d: Op
adaptive_max_pool3d: Op
avg_pool1d: Op
avg_pool2d: Op
avg_pool3d: Op
celu_grad: Op
chebyshev_polynomial_t: Op
chebyshev_polynomial_u: Op
chebyshev_polynomial_v: Op
chebyshev_polynomial_w: Op
complex: Op
elu_grad: Op
hardshrink_grad: Op
hardsigmoid_grad: Op
hardtanh_grad: Op
hermite_polynomial_h: Op
hermite_polynomial_he: Op
laguerre_polynomial_l: Op
leaky_relu_grad: Op
legendre_polynomial_p: Op
logit_grad: Op
max_pool1d: Op
max_pool1d_with_indices: Op
max_pool2d: Op
max_pool2d_with_indices: Op
max_pool3d: Op
max_pool3d_with_indices: Op
selu_grad: Op
shifted_chebyshev_polynomial_t: Op
shifted_chebyshev_polynomial_u: Op
shifted_chebyshev_polynomial_v: Op
shifted_chebyshev_polynomial_w: Op
softshrink_grad: Op
threshold_grad: Op
