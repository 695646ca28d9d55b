"""Ops that rearrange elements or view them in another shape."""
