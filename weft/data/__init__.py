"""Datasets, samplers and the loader: torch's, with Weft's tensors in the batches. What `flow.utils.data` names."""

from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
    get_worker_info,
)

from weft.data.graph_loader import GraphLoader
from weft.data.loader import DataLoader, default_collate
from weft.data.sampling import DistributedSampler, TensorDataset, random_split

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "GraphLoader",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate", "get_worker_info",
    "random_split",
]  # fmt: skip
