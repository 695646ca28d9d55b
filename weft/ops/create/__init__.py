"""Ops that create tensors, and that copy them elsewhere."""
