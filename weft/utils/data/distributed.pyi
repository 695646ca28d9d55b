# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.data.distributed: Dataset, DistributedSampler, Sampler"""

from torch.utils.data.dataset import Dataset as Dataset
from torch.utils.data.sampler import Sampler as Sampler
from weft.data.samplers import DistributedSampler as DistributedSampler
