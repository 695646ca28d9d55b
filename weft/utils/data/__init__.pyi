# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.utils.data`: datasets, samplers and the loader; torch's, with Weft's tensors in the batches."""

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "GraphLoader",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler",
    "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert", "get_worker_info", "random_split"
]

from torch.utils.data._utils.worker import get_worker_info as get_worker_info
from torch.utils.data.dataset import (
    ChainDataset as ChainDataset, ConcatDataset as ConcatDataset, Dataset as Dataset,
    IterableDataset as IterableDataset, StackDataset as StackDataset, Subset as Subset
)
from torch.utils.data.sampler import BatchSampler as BatchSampler, SequentialSampler as SequentialSampler
from weft.data.graph_loader import GraphLoader as GraphLoader
from weft.data.loader import (
    DataLoader as DataLoader, default_collate as default_collate, default_convert as default_convert
)
from weft.data.samplers import (
    DistributedSampler as DistributedSampler, RandomSampler as RandomSampler, Sampler as Sampler,
    SubsetRandomSampler as SubsetRandomSampler, TensorDataset as TensorDataset,
    WeightedRandomSampler as WeightedRandomSampler, random_split as random_split
)
from weft.utils.data import _utils as _utils, distributed as distributed
