# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.nn.functional`: the functions behind layers."""

from collections.abc import Callable, Sequence
from typing import Any
from weft.tensor.tensor import Tensor

from weft import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, alpha_dropout as alpha_dropout, avg_pool1d as avg_pool1d,
    bilinear as bilinear, binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, celu_ as celu_,
    channel_shuffle as channel_shuffle, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
    conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d, conv_transpose3d as conv_transpose3d,
    cosine_embedding_loss as cosine_embedding_loss, cosine_similarity as cosine_similarity, ctc_loss as ctc_loss,
    deform_conv2d as deform_conv2d, embedding_bag as embedding_bag, feature_alpha_dropout as feature_alpha_dropout,
    hinge_embedding_loss as hinge_embedding_loss, instance_norm as instance_norm, kl_div as kl_div,
    layer_norm as layer_norm, log_softmax as log_softmax, margin_ranking_loss as margin_ranking_loss, pad as pad,
    pairwise_distance as pairwise_distance, pdist as pdist, pixel_shuffle as pixel_shuffle,
    pixel_unshuffle as pixel_unshuffle, poisson_nll_loss as poisson_nll_loss, prelu as prelu, quick_gelu as quick_gelu,
    relu_ as relu_, rms_norm as rms_norm, rrelu as rrelu, selu_ as selu_, softmax as softmax, softplus as softplus,
    softsign as softsign, threshold_ as threshold_, triplet_margin_loss as triplet_margin_loss
)

def adaptive_max_pool1d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Adaptive max pooling; with `return_indices`, the flat indices, too."""

def adaptive_max_pool1d_with_indices(x: Tensor, output_size: Any, return_indices: bool = True) -> Any:
    """Adaptive max pooling, and the flat indices."""

def adaptive_max_pool2d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Adaptive max pooling; with `return_indices`, the flat indices, too."""

def adaptive_max_pool2d_with_indices(x: Tensor, output_size: Any, return_indices: bool = True) -> Any:
    """Adaptive max pooling, and the flat indices."""

def adaptive_max_pool3d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Adaptive max pooling; with `return_indices`, the flat indices, too."""

def adaptive_max_pool3d_with_indices(x: Tensor, output_size: Any, return_indices: bool = True) -> Any:
    """Adaptive max pooling, and the flat indices."""

def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of positions of affine maps, for an image of this size, for `grid_sample`."""

def avg_pool2d(
    x: Tensor, kernel_size: int | tuple[int, ...] | list[int], stride: int | tuple[int, ...] | list[int] | None = None,
    padding: int | tuple[int, ...] | list[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None
) -> Tensor:
    """The mean of each window of 2 dimensions."""

def avg_pool3d(
    x: Tensor, kernel_size: int | tuple[int, ...] | list[int], stride: int | tuple[int, ...] | list[int] | None = None,
    padding: int | tuple[int, ...] | list[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None
) -> Tensor:
    """The mean of each window of 3 dimensions."""

def batch_norm(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05
) -> Tensor:
    """(x - mean) / deviation per channel, times weight, plus bias. Training uses the batch's statistics and updates the
    running ones, which are used otherwise.
    """

def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = 'mean'
) -> Tensor:
    """The negative log probability of the target, 0 or 1 or between, under probability `input`."""

def celu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is above zero, alpha * (exp(x / alpha) - 1) below."""

def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = 'mean',
    label_smoothing: float = 0.0
) -> Tensor:
    """The cross entropy of scores with labels, or with class probabilities. Dimension 1 holds the classes."""

def ctc_greedy_decoder(log_probs: Any, input_lengths: Any, merge_repeated: bool = True) -> tuple[Tensor, Tensor]:
    """Greedy decoding: the most likely class at each time, repetitions merged, blanks (the last class) removed. Returns
    the labels of each sequence, padded with zeros, and the negative log probability of the path.
    """

def dropout(
    x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Any = None,
    addend: Tensor | None = None
) -> Tensor:
    """x with each element zeroed with probability p and the others scaled by 1 / (1 - p), while training."""

def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of ([batch,] channels, length) zeroed with probability p, the others scaled by 1 / (1 - p)."""

def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (batch, channels, ...) zeroed, as in PyTorch also with other than two more dimensions."""

def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (batch, channels, depth, height, width) zeroed; other shapes are taken as without a batch."""

def elu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is above zero, alpha * (exp(x) - 1) below."""

def elu_(x: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu`, in place."""

def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of the weight at the input's indices. `scale_grad_by_freq` divides each row's gradient by the count of
    its index; a `sparse` gradient holds the rows that were looked up, for the optimizers that update those alone.
    """

def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """The inverse of `unfold`; overlapping windows are summed."""

def fractional_max_pool2d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None
) -> Any:
    """Max pooling by random windows to the given size, or fraction of the size."""

def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None
) -> Any:
    """Max pooling by random windows to the given size, or fraction of the size, and the flat indices."""

def fractional_max_pool3d(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None
) -> Any:
    """Max pooling by random windows to the given size, or fraction of the size."""

def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
    _random_samples: Tensor | None = None
) -> Any:
    """Max pooling by random windows to the given size, or fraction of the size, and the flat indices."""

def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = 'mean'
) -> Tensor:
    """The negative log likelihood of targets that are normal around `input` with these variances."""

def gelu(x: Tensor, approximate: str = 'none', inplace: bool = False) -> Tensor:
    """x * Phi(x), Phi being the normal distribution's CDF; approximate="tanh" for the usual fast formula."""

def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: the first half times the sigmoid of the second."""

def grid_sample(
    input: Tensor, grid: Tensor, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: bool | None = None
) -> Tensor:
    """The input sampled at the positions of a grid, from -1 to 1."""

def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05
) -> Tensor:
    """(x - mean) / deviation per sample and group of channels, times weight, plus bias, per channel."""

def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """The product of each group. Of two tensors with three dimensions these are the matrices; a matrix is cut into
    groups that end at `offs`: mat_a along its rows, mat_b along its columns, both along what is summed.
    """

def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1, *, generator: Any = None
) -> Tensor:
    """A sample of the Gumbel-softmax distribution, soft; or hard, one-hot, with the soft sample's gradient."""

def hardshrink(x: Tensor, lambd: float = 0.5, inplace: bool = False) -> Tensor:
    """x where its absolute value is above lambd, zero elsewhere."""

def hardsigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1/2, limited to [0, 1]."""

def hardswish(x: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""

def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]."""

def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place `hardtanh`."""

def huber_loss(
    input: Tensor, target: Tensor, reduction: str = 'mean', delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Quadratic below `delta`, linear above it, with a continuous derivative; each element times its weight."""

def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = 'nearest', align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False
) -> Tensor:
    """(batch, channels, ...) resized: nearest neighbor or interpolated; `antialias` averages all that a new element
    covers.
    """

def l1_loss(input: Tensor, target: Tensor, reduction: str = 'mean', weight: Tensor | None = None) -> Tensor:
    """The absolute difference; with a weight, the mean is weighted."""

def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, negative_slope * x elsewhere."""

def leaky_relu_(x: Tensor, alpha: float = 0.01) -> Tensor:
    """`leaky_relu`, in place."""

def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias."""

def local_response_norm(input: Any, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Any:
    """x divided by a power of the mean square of neighboring channels."""

def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)), exact for large negative x."""

def lp_pool1d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """Power-average pooling: the p-norm of every window."""

def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """Power-average pooling: the p-norm of every window."""

def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """Power-average pooling: the p-norm of every window."""

def max_pool1d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *unnamed: Any,
    ceil_mode: bool = False, return_indices: bool = False
) -> Any:
    """Max pooling; with `return_indices`, the flat indices, too."""

def max_pool1d_with_indices(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = True
) -> Any:
    """Max pooling, and the flat indices."""

def max_pool2d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *unnamed: Any,
    ceil_mode: bool = False, return_indices: bool = False
) -> Any:
    """Max pooling; with `return_indices`, the flat indices, too."""

def max_pool2d_with_indices(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = True
) -> Any:
    """Max pooling, and the flat indices."""

def max_pool3d(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, *unnamed: Any,
    ceil_mode: bool = False, return_indices: bool = False
) -> Any:
    """Max pooling; with `return_indices`, the flat indices, too."""

def max_pool3d_with_indices(
    x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = True
) -> Any:
    """Max pooling, and the flat indices."""

def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The partial inverse of max_pool1d: values at their indices, zero elsewhere."""

def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The partial inverse of max_pool2d: values at their indices, zero elsewhere."""

def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """The partial inverse of max_pool3d: values at their indices, zero elsewhere."""

def mish(x: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""

def mse_loss(input: Tensor, target: Tensor, reduction: str = 'mean', weight: Tensor | None = None) -> Tensor:
    """The squared difference; with a weight, the mean is weighted."""

def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False
) -> tuple[Tensor, Tensor | None]:
    """The computation of `MultiheadAttention` with explicit weights."""

def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = 'mean'
) -> Any:
    """How much other classes' scores exceed the target's minus the margin."""

def multilabel_margin_loss(input: Any, target: Any, reduction: str = 'mean') -> Any:
    """How much other classes' scores exceed each target's minus 1; a row's targets end with -1."""

def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = 'mean') -> Any:
    """Binary cross entropy of each class, averaged over classes."""

def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = 'mean'
) -> Tensor:
    """-input at the label, input being log probabilities. Dimension 1 holds the classes."""

def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x over its p-norm along `dim`."""

def one_hot(input: Tensor, num_classes: int = -1, on_value: Any = 1, off_value: Any = 0) -> Tensor:
    """`on_value` at the index given by each integer, along a new last dimension."""

def relu(x: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0), element by element."""

def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x limited to [0, 6]."""

def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value, in one kernel, or in steps with dropout."""

def selu(x: Tensor, inplace: bool = False) -> Tensor:
    """elu, scaled to keep a network's variance near one."""

def sigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    """1 / (1 + exp(-x))."""

def silu(x: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""

def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = 'mean', beta: float = 1.0) -> Tensor:
    """Quadratic below `beta`, linear above it."""

def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = 'mean') -> Tensor:
    """log(1 + exp(-target * input)), for targets 1 and -1."""

def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """softmax(-x)."""

def softshrink(x: Tensor, alpha: float = 0.5, inplace: bool = False) -> Tensor:
    """x shrunk towards zero by alpha, and zero where |x| is at most alpha."""

def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """The cross entropy of each row with its label."""

def tanh(x: Tensor, inplace: bool = False) -> Tensor:
    """The hyperbolic tangent."""

def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""

def threshold(x: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it is above the threshold, `value` elsewhere."""

def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = 'mean'
) -> Any:
    """How much the distance to the positive, plus the margin, exceeds that to the negative, for a custom distance."""

def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Each window of an image as a column: (batch, channels, h, w) to (batch, channels * window, windows)."""

def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = 'nearest', align_corners: bool | None = None
) -> Tensor:
    """interpolate, under its deprecated name."""

def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode "bilinear" and aligned corners, under its deprecated name."""

def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode "nearest", under its deprecated name."""
