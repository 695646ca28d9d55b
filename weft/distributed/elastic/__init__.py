"""`torch.distributed.elastic`: the few names that programs use."""
