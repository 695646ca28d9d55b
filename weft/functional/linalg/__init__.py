"""Linear algebra: products, norms, decompositions, equations."""
