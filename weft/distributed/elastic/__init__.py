"""Where `torch.distributed` has the names of its elastic launcher; of these, what programs say."""
