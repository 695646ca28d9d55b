"""Which ops have an in-place form without an in-place kernel, and which names are aliases."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


OVERWRITING: Final = _words("""
    atan2 bitwise_not clamp conj_physical copy copysign eq gcd ge gt heaviside hypot igamma igammac lcm
    le logical_and logical_not logical_or logical_xor lt mvlgamma ne nextafter polygamma where xlogy
""")  # in place without an in-place kernel of their own

ALIASES: Final = {
    "absolute": "abs", "absolute_": "abs_", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctanh": "atanh", "arctan2": "atan2", "clip": "clamp", "clip_": "clamp_", "concat": "cat",
    "concatenate": "cat", "divide": "div", "divide_": "div_", "true_divide": "div", 
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "multiply": "mul",
    "multiply_": "mul_", "negative": "neg", "negative_": "neg_", "subtract": "sub", "subtract_": "sub_",
    "swapaxes": "transpose", "swapdims": "transpose", "fix": "trunc", "moveaxis": "movedim", "row_stack": "vstack",
    "reduce_sum": "sum", "reduce_mean": "mean", "expand_dims": "unsqueeze", "rint": "round",
    "reduce_max": "amax", "reduce_min": "amin", "reduce_prod": "prod", "reduce_any": "any", "reduce_all": "all",
    "matrix_vector_product": "matmul", "arccos_": "acos_", "arccosh_": "acosh_", "arcsin_": "asin_",
    "arcsinh_": "asinh_", "arctan_": "atan_", "arctanh_": "atanh_", "fix_": "trunc_", "true_divide_": "div_",
    "deconv1d": "conv_transpose1d", "deconv2d": "conv_transpose2d", "deconv3d": "conv_transpose3d",
    "arctan2_": "atan2_", "greater_": "gt_", "greater_equal_": "ge_", "less_": "lt_", "less_equal_": "le_",
    "not_equal_": "ne_", "ger": "outer",
    "identity": "clone", "batch_matmul": "bmm", "inverse": "inv",
}  # fmt: skip
