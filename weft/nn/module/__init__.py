"""`nn.Module`: its members, hooks, state dict, and how it moves between devices and layouts."""
