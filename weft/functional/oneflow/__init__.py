"""`flow._C` names that only OneFlow's programs use. Nothing else imports them."""
