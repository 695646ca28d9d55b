"""Ops that move elements around or look at them in another shape."""
