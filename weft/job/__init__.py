"""The job: the logical graph of one nn.Graph, as data and as text."""
