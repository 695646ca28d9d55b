"""Public names and Tensor methods, bound from the registry of ops; signatures and overloads."""
