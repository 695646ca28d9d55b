"""Linear algebra: products, norms, decompositions, solvers."""
