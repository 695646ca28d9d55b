"""New tensors: from sizes, from values, in another one's form."""
