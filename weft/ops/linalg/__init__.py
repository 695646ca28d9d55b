"""Linear algebra: products, decompositions, solvers."""
