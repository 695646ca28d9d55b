"""`nn.functional` beyond ops: losses, pooling, padding, attention, embedding."""
