"""`flow.utils.data`: datasets, samplers and the loader; torch's, with Weft's tensors in the batches."""

from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    SequentialSampler,
    StackDataset,
    Subset,
    get_worker_info,
)

from weft.data.graph_loader import GraphLoader
from weft.data.loader import DataLoader, default_collate, default_convert
from weft.data.samplers import (
    DistributedSampler,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "GraphLoader",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset",
    "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert",
    "get_worker_info", "random_split",
]  # fmt: skip
