"""`torch.distributed.algorithms`: `Join`, and the wrapper that recomputes a module's activations."""
