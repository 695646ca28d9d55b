"""Element by element: arithmetic, comparing, clamping, complex numbers, special functions."""
