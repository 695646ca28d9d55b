"""What `nn.functional` has beyond ops: losses, pooling, padding, attention, embedding."""
