"""Names that only OneFlow's programs use, most of them in `flow._C`. No other file imports them."""
