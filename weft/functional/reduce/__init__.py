"""Reductions and other functions along dimensions: sums, extremes, variance, quantiles, counts, sorting."""
