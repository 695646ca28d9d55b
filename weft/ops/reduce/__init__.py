"""Reductions and other ops along dimensions: sums, extremes, sorting, counting."""
