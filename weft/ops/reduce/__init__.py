"""Ops along dimensions: sums, extremes, order, counts."""
