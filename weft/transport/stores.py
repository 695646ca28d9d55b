"""c10d's stores, for programs that bring one of their own: values by name, for whoever can reach it."""

from torch.distributed import FileStore, HashStore, PrefixStore, Store, TCPStore

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
