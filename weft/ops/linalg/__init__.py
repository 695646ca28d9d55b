"""Products of matrices, decompositions, equations."""
