# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.utils.data`: datasets, samplers and the loader; torch's, with Weft's tensors in the batches."""


__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "GraphLoader",
    "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler",
    "TensorDataset", "WeightedRandomSampler", "default_collate", "default_convert", "get_worker_info", "random_split"
]

from torch.utils.data._utils.worker import get_worker_info as get_worker_info
from torch.utils.data.dataset import ChainDataset as ChainDataset
from torch.utils.data.dataset import ConcatDataset as ConcatDataset
from torch.utils.data.dataset import Dataset as Dataset
from torch.utils.data.dataset import IterableDataset as IterableDataset
from torch.utils.data.dataset import StackDataset as StackDataset
from torch.utils.data.dataset import Subset as Subset
from torch.utils.data.sampler import BatchSampler as BatchSampler
from torch.utils.data.sampler import Sampler as Sampler
from torch.utils.data.sampler import SequentialSampler as SequentialSampler
from weft.data.graph_loader import GraphLoader as GraphLoader
from weft.data.loader import DataLoader as DataLoader
from weft.data.loader import default_collate as default_collate
from weft.data.loader import default_convert as default_convert
from weft.data.samplers import DistributedSampler as DistributedSampler
from weft.data.samplers import RandomSampler as RandomSampler
from weft.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from weft.data.samplers import TensorDataset as TensorDataset
from weft.data.samplers import WeightedRandomSampler as WeightedRandomSampler
from weft.data.samplers import random_split as random_split
from weft.utils.data import _utils as _utils
from weft.utils.data import distributed as distributed

