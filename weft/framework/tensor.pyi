# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework.tensor: Tensor, TensorTuple"""

from weft import Tensor as Tensor
from weft.interop.oneflow import TensorTuple as TensorTuple
