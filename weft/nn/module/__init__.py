"""`nn.Module`: its members, hooks and state dict, and its moves between devices and layouts."""
