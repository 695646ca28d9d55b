"""Which functions autocast runs in which dtype, by the type of device: torch's lists, under public names and ops' own.

A name that isn't here runs as it comes, and what it is composed of by its own rules. What is here is cast once, and
runs inside without autocast. `tests/amp/test_autocast.py` compares with torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from weft.core.dispatch import here, hooks
from weft.ops.declaration import OPS

# products: hardware has 16-bit units for them, which accumulate in float32
PRODUCTS: Final = """
    matmul linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention
    addmm addbmm baddbmm bmm mm prelu vecdot linalg_vecdot einsum lstm_layer lstm_scan gru_scan rnn_scan
"""
# losses, and what has no 16-bit kernel
LOSSES: Final = """
    mse_loss square_error l1_loss smooth_l1_loss huber_loss bent_error bent_errors kl_div nll_loss cosine_embedding_loss
    hinge_embedding_loss poisson_nll_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss
    triplet_margin_loss multi_margin_loss binary_cross_entropy binary_cross_entropy_with_logits cdist prod
    sparse_softmax_cross_entropy sparse_cross_entropy
"""
SOLVERS: Final = """
    cholesky cholesky_ex cholesky_inverse cholesky_solve eigh eig eigvals svd qr inv inv_ex solve solve_ex lu lu_solve
    lstsq geqrf orgqr ormqr triangular_solve pinverse fft fft2 fftn ifft ifft2 ifftn rfft rfft2 rfftn irfft irfft2
    irfftn hfft ihfft
"""
# long sums, exponentials and powers, which GPUs' 16-bit kernels take no better care of
GROWING: Final = """
    acos asin cosh sinh tan exp expm1 log log10 log2 log1p pow reciprocal rsqrt erfinv softplus softmax log_softmax
    layer_norm rms_norm group_norm sum cumsum cumprod logsumexp dist pdist renorm cosine_similarity power_sum norm
    vector_norm matrix_norm frobenius_norm nuclear_norm cross_entropy
"""
SHORT, FULL, OWN = "short", "full", "own"  # autocast's dtype, float32, each its own; or "widest", of those given


def _rules(**names: str) -> dict[str, str]:
    return {name: rule for rule, several in names.items() for name in several.split()}


RULES: Final = {
    "cpu": _rules(
        short=PRODUCTS,
        full=LOSSES + SOLVERS + """
            cross_entropy ctc_loss quantile nanquantile polar stft trace grid_sample pad_edges
            avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d view_as_complex
            max_unpool1d max_unpool2d max_unpool3d fractional_max_pool2d_at fractional_max_pool3d_at
        """,
        widest="cat stack index_copy",
        own="dot vdot bilinear mv addmv",
    ),
    "cuda": _rules(
        short=PRODUCTS + "mv addmv addr chain_matmul multi_dot",
        full=LOSSES + GROWING + "interpolate upsample",
        widest="addcdiv addcmul atan2 bilinear cross dot grid_sample index_put scatter_add tensordot vdot",
    ),
}  # fmt: skip
hooks.ruled = frozenset().union(*RULES.values())
# functions that are composed of ops, for some arguments at least; those of one op are cast by its rule
COMPOSED: Final = {"cross_entropy", "qr", "scaled_dot_product_attention"}  # ops for some arguments
WHOLE: Final = ({*RULES["cpu"], *RULES["cuda"]} - OPS.keys() - {"mm", "bmm"}) | COMPOSED


def whole(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function that autocast casts as a whole, though it is composed of ops; others as they are."""
    if name not in WHOLE:
        return f

    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        return hooks.cast(f, name, args, kwargs) if here.stack else f(*args, **kwargs)

    return run
