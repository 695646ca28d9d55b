"""Along dimensions: sums, extremes, variances, quantiles, counts, order, running sums."""
