# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.utils.data.distributed: Dataset, DistributedSampler, Sampler"""

from weft.utils.data import Dataset as Dataset, DistributedSampler as DistributedSampler, Sampler as Sampler
