"""`flow._C` names that only OneFlow's programs use. No other file imports them."""
