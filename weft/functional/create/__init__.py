"""New tensors: from sizes, from values, like another tensor."""
