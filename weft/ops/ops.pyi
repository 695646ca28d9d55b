# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Every op's entry by its name: `ops.mul(a, b)` calls the op, on tensors of any interpreter. What is declared of it is
`OPS["mul"]`'s.

The names are set once entries can be made; `ops.pyi`, written by `make stubs`, gives each one's file.
"""

from weft.ops.declaration import Op

from weft.ops.pointwise.arithmetic import abs as abs
from weft.ops.pointwise.elementary import acos as acos
from weft.ops.pointwise.elementary import acosh as acosh
from weft.ops.update.optimizer import adadelta_update as adadelta_update
from weft.ops.update.optimizer import adagrad_update as adagrad_update
from weft.ops.update.optimizer import adam_update as adam_update
from weft.ops.update.optimizer import adamw_update as adamw_update
from weft.ops.neural.pooling import adaptive_avg_pool_grad as adaptive_avg_pool_grad
from weft.ops.pointwise.arithmetic import add as add
from weft.ops.linalg.matmul import add_linear_weight_grad as add_linear_weight_grad
from weft.ops.pointwise.arithmetic import add_scaled as add_scaled
from weft.ops.pointwise.polynomials import airy_ai as airy_ai
from weft.ops.reduce.extremes import all as all
from weft.ops.reduce.extremes import amax as amax
from weft.ops.reduce.extremes import amin as amin
from weft.ops.pointwise.complex_numbers import angle as angle
from weft.ops.reduce.extremes import any as any
from weft.ops.create.constructors import arange as arange
from weft.ops.reduce.extremes import argmax as argmax
from weft.ops.reduce.extremes import argmin as argmin
from weft.ops.reduce.ordering import argsort as argsort
from weft.ops.shape.strided import as_strided as as_strided
from weft.ops.shape.strided import as_strided_zeros as as_strided_zeros
from weft.ops.pointwise.elementary import asin as asin
from weft.ops.pointwise.elementary import asinh as asinh
from weft.ops.pointwise.elementary import atan as atan
from weft.ops.pointwise.elementary import atan2 as atan2
from weft.ops.pointwise.elementary import atanh as atanh
from weft.ops.neural.attention import attention_grad as attention_grad
from weft.ops.neural.pooling import avg_pool_grad as avg_pool_grad
from weft.ops.shape.slicing import basic_index as basic_index
from weft.ops.shape.slicing import basic_index_scatter as basic_index_scatter
from weft.ops.shape.slicing import basic_index_zeros as basic_index_zeros
from weft.ops.neural.channel_norm import batch_norm as batch_norm
from weft.ops.neural.channel_norm import batch_norm_grad as batch_norm_grad
from weft.ops.neural.thresholds import bent as bent
from weft.ops.neural.losses import bent_error as bent_error
from weft.ops.neural.losses import bent_error_grad as bent_error_grad
from weft.ops.random.draws import bernoulli as bernoulli
from weft.ops.pointwise.integral_functions import bessel_j0 as bessel_j0
from weft.ops.pointwise.integral_functions import bessel_j1 as bessel_j1
from weft.ops.pointwise.integral_functions import bessel_y0 as bessel_y0
from weft.ops.pointwise.integral_functions import bessel_y1 as bessel_y1
from weft.ops.neural.binary_cross_entropy import binary_cross_entropy_each as binary_cross_entropy_each
from weft.ops.reduce.counting import bincount as bincount
from weft.ops.random.draws import binomial as binomial
from weft.ops.pointwise.logic import bitwise_and as bitwise_and
from weft.ops.pointwise.logic import bitwise_left_shift as bitwise_left_shift
from weft.ops.pointwise.logic import bitwise_not as bitwise_not
from weft.ops.pointwise.logic import bitwise_or as bitwise_or
from weft.ops.pointwise.logic import bitwise_right_shift as bitwise_right_shift
from weft.ops.pointwise.logic import bitwise_xor as bitwise_xor
from weft.ops.neural.channel_norm import blend as blend
from weft.ops.pointwise.copies import cast as cast
from weft.ops.shape.joining import cat as cat
from weft.ops.pointwise.rounding import ceil as ceil
from weft.ops.neural.thresholds import celu as celu
from weft.ops.linalg.decompositions import cholesky as cholesky
from weft.ops.linalg.unchecked import cholesky_ex as cholesky_ex
from weft.ops.neural.activations import clamp as clamp
from weft.ops.neural.activations import clamp_grad as clamp_grad
from weft.ops.pointwise.copies import clone as clone
from weft.ops.linalg.determinants import cofactors as cofactors
from weft.ops.neural.columns import col2im as col2im
from weft.ops.linalg.decompositions import completion as completion
from weft.ops.pointwise.arithmetic import conj as conj
from weft.ops.create.move import contiguous as contiguous
from weft.ops.neural.convolution import conv1d as conv1d
from weft.ops.neural.convolution import conv2d as conv2d
from weft.ops.neural.convolution import conv3d as conv3d
from weft.ops.neural.convolution import conv_input_grad as conv_input_grad
from weft.ops.neural.convolution import conv_transpose1d as conv_transpose1d
from weft.ops.neural.convolution import conv_transpose2d as conv_transpose2d
from weft.ops.neural.convolution import conv_transpose3d as conv_transpose3d
from weft.ops.neural.convolution import conv_weight_grad as conv_weight_grad
from weft.ops.pointwise.copies import copy as copy
from weft.ops.pointwise.numbers import copysign as copysign
from weft.ops.pointwise.elementary import cos as cos
from weft.ops.pointwise.elementary import cosh as cosh
from weft.ops.linalg.matmul import cross as cross
from weft.ops.neural.cross_entropy import cross_entropy as cross_entropy
from weft.ops.neural.cross_entropy import cross_entropy_grad as cross_entropy_grad
from weft.ops.neural.ctc import ctc_nll as ctc_nll
from weft.ops.neural.ctc import ctc_nll_grad as ctc_nll_grad
from weft.ops.reduce.running import cummax as cummax
from weft.ops.reduce.running import cummin as cummin
from weft.ops.reduce.running import cumprod as cumprod
from weft.ops.reduce.running import cumprod_grad as cumprod_grad
from weft.ops.reduce.running import cumsum as cumsum
from weft.ops.pointwise.numbers import deg2rad as deg2rad
from weft.ops.linalg.determinants import det as det
from weft.ops.shape.diagonal import diagonal as diagonal
from weft.ops.shape.diagonal import diagonal_put as diagonal_put
from weft.ops.shape.diagonal import diagonal_zeros as diagonal_zeros
from weft.ops.pointwise.gamma import digamma as digamma
from weft.ops.random.draws import dirichlet_grad as dirichlet_grad
from weft.ops.pointwise.arithmetic import div as div
from weft.ops.random.draws import draw as draw
from weft.ops.neural.dropout import dropout as dropout
from weft.ops.linalg.decompositions import eig as eig
from weft.ops.linalg.decompositions import eigh as eigh
from weft.ops.linalg.decompositions import eigvals as eigvals
from weft.ops.linalg.einsum import einsum as einsum
from weft.ops.neural.activations import elu as elu
from weft.ops.neural.embedding import embedding as embedding
from weft.ops.neural.embedding import embedding_weight_grad as embedding_weight_grad
from weft.ops.create.constructors import empty as empty
from weft.ops.create.constructors import empty_like as empty_like
from weft.ops.pointwise.logic import eq as eq
from weft.ops.pointwise.elementary import erf as erf
from weft.ops.pointwise.elementary import erfc as erfc
from weft.ops.pointwise.integral_functions import erfcx as erfcx
from weft.ops.pointwise.elementary import erfinv as erfinv
from weft.ops.pointwise.elementary import exp as exp
from weft.ops.pointwise.elementary import exp2 as exp2
from weft.ops.shape.broadcast import expand as expand
from weft.ops.pointwise.elementary import expm1 as expm1
from weft.ops.create.fill import fill as fill
from weft.ops.shape.flips import flip as flip
from weft.ops.pointwise.rounding import floor as floor
from weft.ops.pointwise.rounding import floor_divide as floor_divide
from weft.ops.pointwise.numbers import fmax as fmax
from weft.ops.pointwise.numbers import fmin as fmin
from weft.ops.pointwise.rounding import fmod as fmod
from weft.ops.shape.strided import fold_tensor as fold_tensor
from weft.ops.signal.fourier import fourier as fourier
from weft.ops.pointwise.rounding import frac as frac
from weft.ops.neural.fractional_pooling import fractional_max_pool2d_at as fractional_max_pool2d_at
from weft.ops.neural.fractional_pooling import fractional_max_pool3d_at as fractional_max_pool3d_at
from weft.ops.pointwise.numbers import frexp as frexp
from weft.ops.create.convert import from_local as from_local
from weft.ops.create.constructors import full as full
from weft.ops.create.constructors import full_like as full_like
from weft.ops.index.indexing import gather as gather
from weft.ops.neural.pooling import gather_places as gather_places
from weft.ops.pointwise.numbers import gcd as gcd
from weft.ops.pointwise.logic import ge as ge
from weft.ops.neural.activations import gelu as gelu
from weft.ops.neural.activations import gelu_grad as gelu_grad
from weft.ops.update.optimizer import greatest as greatest
from weft.ops.neural.grid_sample import grid_sample as grid_sample
from weft.ops.neural.grid_sample import grid_sample_grad as grid_sample_grad
from weft.ops.neural.channel_norm import group_norm as group_norm
from weft.ops.neural.channel_norm import group_norm_grad as group_norm_grad
from weft.ops.neural.recurrent import gru_scan as gru_scan
from weft.ops.neural.recurrent import gru_scan_grad as gru_scan_grad
from weft.ops.pointwise.logic import gt as gt
from weft.ops.neural.thresholds import hardshrink as hardshrink
from weft.ops.neural.activations import hardsigmoid as hardsigmoid
from weft.ops.neural.activations import hardswish as hardswish
from weft.ops.neural.thresholds import hardtanh as hardtanh
from weft.ops.pointwise.numbers import heaviside as heaviside
from weft.ops.shape.triangle import hide_future as hide_future
from weft.ops.pointwise.numbers import hypot as hypot
from weft.ops.pointwise.integral_functions import i0 as i0
from weft.ops.pointwise.integral_functions import i0e as i0e
from weft.ops.pointwise.integral_functions import i1 as i1
from weft.ops.pointwise.integral_functions import i1e as i1e
from weft.ops.pointwise.integral_functions import igamma as igamma
from weft.ops.pointwise.integral_functions import igammac as igammac
from weft.ops.neural.columns import im2col as im2col
from weft.ops.shape.joining import in_a_row as in_a_row
from weft.ops.index.indexing import index as index
from weft.ops.index.indexing import index_add as index_add
from weft.ops.index.indexing import index_put as index_put
from weft.ops.index.indexing import index_put_zeros as index_put_zeros
from weft.ops.index.indexing import index_select as index_select
from weft.ops.linalg.solving import inv as inv
from weft.ops.linalg.unchecked import inv_ex as inv_ex
from weft.ops.pointwise.logic import isfinite as isfinite
from weft.ops.pointwise.logic import isinf as isinf
from weft.ops.pointwise.logic import isnan as isnan
from weft.ops.pointwise.logic import isneginf as isneginf
from weft.ops.pointwise.logic import isposinf as isposinf
from weft.ops.create.constructors import keep_mask as keep_mask
from weft.ops.reduce.ordering import kthvalue as kthvalue
from weft.ops.neural.layer_norm import layer_norm as layer_norm
from weft.ops.neural.layer_norm import layer_norm_grad as layer_norm_grad
from weft.ops.pointwise.numbers import lcm as lcm
from weft.ops.pointwise.logic import le as le
from weft.ops.neural.activations import leaky_relu as leaky_relu
from weft.ops.neural.activations import leaky_relu_grad as leaky_relu_grad
from weft.ops.pointwise.elementary import lerp as lerp
from weft.ops.pointwise.gamma import lgamma as lgamma
from weft.ops.linalg.matmul import linear as linear
from weft.ops.linalg.matmul import linear_weight_grad as linear_weight_grad
from weft.ops.pointwise.elementary import log as log
from weft.ops.pointwise.elementary import log10 as log10
from weft.ops.pointwise.elementary import log1p as log1p
from weft.ops.pointwise.elementary import log2 as log2
from weft.ops.pointwise.integral_functions import log_ndtr as log_ndtr
from weft.ops.neural.softmax import log_softmax as log_softmax
from weft.ops.neural.softmax import log_softmax_grad as log_softmax_grad
from weft.ops.pointwise.elementary import logaddexp as logaddexp
from weft.ops.pointwise.elementary import logaddexp2 as logaddexp2
from weft.ops.pointwise.logic import logical_and as logical_and
from weft.ops.pointwise.logic import logical_not as logical_not
from weft.ops.pointwise.logic import logical_or as logical_or
from weft.ops.pointwise.logic import logical_xor as logical_xor
from weft.ops.pointwise.numbers import logit as logit
from weft.ops.neural.activations import logsigmoid as logsigmoid
from weft.ops.neural.recurrent import lstm_scan as lstm_scan
from weft.ops.neural.recurrent import lstm_scan_grad as lstm_scan_grad
from weft.ops.pointwise.logic import lt as lt
from weft.ops.linalg.decompositions import lu_factor as lu_factor
from weft.ops.linalg.unchecked import lu_factor_ex as lu_factor_ex
from weft.ops.pointwise.copies import masked_fill as masked_fill
from weft.ops.linalg.matmul import matmul as matmul
from weft.ops.linalg.matmul import matrix_exponential as matrix_exponential
from weft.ops.reduce.extremes import max as max
from weft.ops.pointwise.arithmetic import maximum as maximum
from weft.ops.reduce.sums import mean as mean
from weft.ops.reduce.ordering import median as median
from weft.ops.reduce.extremes import min as min
from weft.ops.pointwise.arithmetic import minimum as minimum
from weft.ops.neural.activations import mish as mish
from weft.ops.reduce.ordering import mode as mode
from weft.ops.pointwise.polynomials import modified_bessel_i0 as modified_bessel_i0
from weft.ops.pointwise.polynomials import modified_bessel_i1 as modified_bessel_i1
from weft.ops.pointwise.polynomials import modified_bessel_k0 as modified_bessel_k0
from weft.ops.pointwise.polynomials import modified_bessel_k1 as modified_bessel_k1
from weft.ops.pointwise.arithmetic import mul as mul
from weft.ops.random.draws import multinomial as multinomial
from weft.ops.pointwise.gamma import mvlgamma as mvlgamma
from weft.ops.pointwise.numbers import nan_to_num as nan_to_num
from weft.ops.shape.slicing import narrow as narrow
from weft.ops.shape.slicing import narrow_scatter as narrow_scatter
from weft.ops.shape.slicing import narrow_scatter_zeros as narrow_scatter_zeros
from weft.ops.pointwise.logic import ne as ne
from weft.ops.pointwise.arithmetic import neg as neg
from weft.ops.pointwise.numbers import nextafter as nextafter
from weft.ops.neural.cross_entropy import nll_loss as nll_loss
from weft.ops.neural.boxes import nms as nms
from weft.ops.index.indexing import nonzero as nonzero
from weft.ops.neural.embedding import one_hot as one_hot
from weft.ops.create.constructors import ones_like as ones_like
from weft.ops.neural.padding import pad_edges as pad_edges
from weft.ops.neural.padding import pad_edges_grad as pad_edges_grad
from weft.ops.neural.padding import pad_with as pad_with
from weft.ops.linalg.decompositions import permutation_of as permutation_of
from weft.ops.shape.views import permute as permute
from weft.ops.index.pick import pick as pick
from weft.ops.linalg.solving import pinv as pinv
from weft.ops.random.draws import poisson as poisson
from weft.ops.pointwise.gamma import polygamma as polygamma
from weft.ops.pointwise.elementary import pow as pow
from weft.ops.update.optimizer import power_sum as power_sum
from weft.ops.reduce.products import prod as prod
from weft.ops.reduce.products import prod_grad as prod_grad
from weft.ops.linalg.decompositions import qr as qr
from weft.ops.neural.thresholds import quick_gelu as quick_gelu
from weft.ops.pointwise.numbers import rad2deg as rad2deg
from weft.ops.create.constructors import rand as rand
from weft.ops.create.constructors import randint as randint
from weft.ops.create.constructors import randn as randn
from weft.ops.create.constructors import randperm as randperm
from weft.ops.pointwise.arithmetic import reciprocal as reciprocal
from weft.ops.pointwise.copies import reinterpret as reinterpret
from weft.ops.neural.activations import relu as relu
from weft.ops.neural.activations import relu_grad as relu_grad
from weft.ops.pointwise.rounding import remainder as remainder
from weft.ops.reduce.counting import repeat_places as repeat_places
from weft.ops.reduce.counting import repeat_places_in as repeat_places_in
from weft.ops.pointwise.copies import require as require
from weft.ops.shape.views import reshape as reshape
from weft.ops.neural.resize import resize as resize
from weft.ops.neural.resize import resize_grad as resize_grad
from weft.ops.neural.layer_norm import rms_norm as rms_norm
from weft.ops.neural.layer_norm import rms_norm_grad as rms_norm_grad
from weft.ops.update.optimizer import rmsprop_update as rmsprop_update
from weft.ops.neural.recurrent import rnn_scan as rnn_scan
from weft.ops.neural.recurrent import rnn_scan_grad as rnn_scan_grad
from weft.ops.reduce.counting import roc_auc as roc_auc
from weft.ops.shape.flips import roll as roll
from weft.ops.pointwise.elementary import root as root
from weft.ops.pointwise.rounding import round as round
from weft.ops.random.draws import rrelu_slope as rrelu_slope
from weft.ops.pointwise.elementary import rsqrt as rsqrt
from weft.ops.neural.softmax import safe_softmax as safe_softmax
from weft.ops.update.optimizer import scale_all as scale_all
from weft.ops.neural.attention import scaled_dot_product_attention as scaled_dot_product_attention
from weft.ops.pointwise.polynomials import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from weft.ops.pointwise.polynomials import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from weft.ops.index.indexing import scatter as scatter
from weft.ops.index.indexing import scatter_add as scatter_add
from weft.ops.index.indexing import scatter_add_zeros as scatter_add_zeros
from weft.ops.neural.pooling import scatter_places as scatter_places
from weft.ops.index.scatters import scatter_reduced as scatter_reduced
from weft.ops.reduce.ordering import searchsorted as searchsorted
from weft.ops.shape.slicing import select as select
from weft.ops.neural.thresholds import selu as selu
from weft.ops.update.optimizer import sgd_update as sgd_update
from weft.ops.pointwise.arithmetic import sgn as sgn
from weft.ops.neural.activations import sigmoid as sigmoid
from weft.ops.neural.activations import sigmoid_backward as sigmoid_backward
from weft.ops.pointwise.arithmetic import sign as sign
from weft.ops.pointwise.logic import signbit as signbit
from weft.ops.neural.activations import silu as silu
from weft.ops.neural.activations import silu_grad as silu_grad
from weft.ops.pointwise.elementary import sin as sin
from weft.ops.pointwise.elementary import sinc as sinc
from weft.ops.pointwise.elementary import sinh as sinh
from weft.ops.linalg.determinants import slogdet as slogdet
from weft.ops.neural.softmax import softmax as softmax
from weft.ops.neural.softmax import softmax_grad as softmax_grad
from weft.ops.neural.activations import softplus as softplus
from weft.ops.neural.thresholds import softshrink as softshrink
from weft.ops.neural.thresholds import softsign as softsign
from weft.ops.linalg.solving import solve as solve
from weft.ops.linalg.unchecked import solve_ex as solve_ex
from weft.ops.linalg.solving import solve_triangle as solve_triangle
from weft.ops.reduce.ordering import sort as sort
from weft.ops.pointwise.polynomials import spherical_bessel_j0 as spherical_bessel_j0
from weft.ops.pointwise.elementary import sqrt as sqrt
from weft.ops.pointwise.arithmetic import square as square
from weft.ops.neural.losses import square_error as square_error
from weft.ops.neural.losses import square_error_grad as square_error_grad
from weft.ops.shape.views import squeeze as squeeze
from weft.ops.shape.joining import stack as stack
from weft.ops.random.draws import standard_gamma as standard_gamma
from weft.ops.random.draws import standard_gamma_grad as standard_gamma_grad
from weft.ops.pointwise.copies import steady as steady
from weft.ops.neural.channel_norm import store as store
from weft.ops.pointwise.arithmetic import sub as sub
from weft.ops.reduce.sums import sum as sum
from weft.ops.shape.broadcast import sum_to as sum_to
from weft.ops.linalg.decompositions import svd as svd
from weft.ops.update.optimizer import take_from_row as take_from_row
from weft.ops.pointwise.elementary import tan as tan
from weft.ops.pointwise.elementary import tanh as tanh
from weft.ops.pointwise.elementary import tanh_backward as tanh_backward
from weft.ops.neural.thresholds import threshold as threshold
from weft.ops.create.move import to_device as to_device
from weft.ops.create.convert import to_global as to_global
from weft.ops.create.convert import to_local as to_local
from weft.ops.reduce.ordering import topk as topk
from weft.ops.shape.views import transpose as transpose
from weft.ops.shape.triangle import tril as tril
from weft.ops.shape.triangle import triu as triu
from weft.ops.pointwise.rounding import trunc as trunc
from weft.ops.pointwise.rounding import trunc_divide as trunc_divide
from weft.ops.shape.strided import unfold_tensor as unfold_tensor
from weft.ops.reduce.counting import unique_values as unique_values
from weft.ops.index.pick import unpick as unpick
from weft.ops.shape.views import unsqueeze as unsqueeze
from weft.ops.reduce.sums import variance as variance
from weft.ops.shape.views import view as view
from weft.ops.pointwise.complex_numbers import view_as_complex as view_as_complex
from weft.ops.pointwise.complex_numbers import view_as_real as view_as_real
from weft.ops.pointwise.copies import where as where
from weft.ops.pointwise.numbers import xlogy as xlogy
from weft.ops.create.constructors import zeros_like as zeros_like
from weft.ops.pointwise.polynomials import zeta as zeta

adaptive_avg_pool1d: Op
adaptive_avg_pool2d: Op
adaptive_avg_pool3d: Op
adaptive_max_pool1d: Op
adaptive_max_pool2d: Op
adaptive_max_pool3d: Op
avg_pool1d: Op
avg_pool2d: Op
avg_pool3d: Op
chebyshev_polynomial_t: Op
chebyshev_polynomial_u: Op
chebyshev_polynomial_v: Op
chebyshev_polynomial_w: Op
complex: Op
hermite_polynomial_h: Op
hermite_polynomial_he: Op
laguerre_polynomial_l: Op
legendre_polynomial_p: Op
max_pool1d: Op
max_pool1d_with_indices: Op
max_pool2d: Op
max_pool2d_with_indices: Op
max_pool3d: Op
max_pool3d_with_indices: Op
shifted_chebyshev_polynomial_t: Op
shifted_chebyshev_polynomial_u: Op
shifted_chebyshev_polynomial_v: Op
shifted_chebyshev_polynomial_w: Op
