"""New tensors, and the same ones elsewhere."""
