"""Names: what is public beyond PyTorch's own lists, and which names are others' aliases."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# names that OneFlow has and PyTorch hasn't there
FLOW: Final = _words("""
    batch_gather broadcast_like cast concat expand gather_nd gelu global_to_global in_top_k local_to_global mish nms
    numel one_hot pad quick_gelu scatter_nd slice slice_update tensor_scatter_nd_update to_global to_local
    adaptive_avg_pool2d adaptive_avg_pool3d div_ erfinv_ index_add_ masked_fill_ silu softplus softshrink softsign
""")
TENSOR: Final = _words("""
    cast gelu in_top_k mish nms selu silu softplus softsign to_global to_local
""")
NEURAL: Final = _words("""
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d affine_grid avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
    binary_cross_entropy_with_logits celu celu_ conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    cosine_embedding_loss cosine_similarity cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d elu elu_
    embedding embedding_bag fold gelu glu grid_sample group_norm gumbel_softmax hardshrink hardsigmoid hardswish
    hardtanh hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss layer_norm leaky_relu leaky_relu_
    linear log_softmax logsigmoid margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss
    multi_margin_loss nll_loss normalize one_hot pad pairwise_distance pixel_shuffle pixel_unshuffle poisson_nll_loss
    prelu quick_gelu relu relu6 relu_ rms_norm rrelu scaled_dot_product_attention selu selu_ sigmoid silu smooth_l1_loss
    soft_margin_loss softmax softmin softplus softshrink softsign sparse_softmax_cross_entropy tanh tanhshrink threshold
    threshold_ triplet_margin_loss unfold upsample
""")
OVERWRITING: Final = _words("""
    atan2 bitwise_not clamp conj_physical copy copysign cumprod cumsum eq gcd ge gt heaviside hypot igamma igammac lcm
    le logical_and logical_not logical_or logical_xor lt mvlgamma ne nextafter polygamma where xlogy
""")  # in place without an in-place kernel of their own

ALIASES: Final = {
    "absolute": "abs", "absolute_": "abs_", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctanh": "atanh", "arctan2": "atan2", "clip": "clamp", "clip_": "clamp_", "concat": "cat",
    "concatenate": "cat", "divide": "div", "divide_": "div_", "true_divide": "div", 
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "multiply": "mul",
    "multiply_": "mul_", "negative": "neg", "negative_": "neg_", "subtract": "sub", "subtract_": "sub_",
    "swapaxes": "transpose", "swapdims": "transpose", "fix": "trunc", "moveaxis": "movedim", "row_stack": "vstack",
    "reduce_sum": "sum",
    "reduce_mean": "mean", "dim_gather": "gather", "arg_sort": "argsort", "expand_dims": "unsqueeze", "rint": "round",
    "reduce_max": "amax", "reduce_min": "amin", "reduce_prod": "prod", "reduce_any": "any", "reduce_all": "all",
    "matrix_vector_product": "matmul", "arccos_": "acos_", "arccosh_": "acosh_", "arcsin_": "asin_",
    "arcsinh_": "asinh_", "arctan_": "atan_", "arctanh_": "atanh_", "fix_": "trunc_", "true_divide_": "div_",
    "deconv1d": "conv_transpose1d", "deconv2d": "conv_transpose2d", "deconv3d": "conv_transpose3d",
    "arctan2_": "atan2_", "greater_": "gt_", "greater_equal_": "ge_", "less_": "lt_", "less_equal_": "le_",
    "not_equal_": "ne_", "ger": "outer",
    "identity": "clone", "batch_matmul": "bmm", "inverse": "inv",
}  # fmt: skip
