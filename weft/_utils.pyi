# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._utils: ExceptionWrapper, _flatten_dense_tensors, _unflatten_dense_tensors"""

from torch._utils import ExceptionWrapper as ExceptionWrapper
