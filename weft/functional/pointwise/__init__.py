"""Element-wise functions: arithmetic, comparison, clamping, complex numbers, special functions."""
