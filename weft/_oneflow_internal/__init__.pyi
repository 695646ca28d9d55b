# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal: Size, Tensor, TensorTuple, device, dtype, placement"""

from weft import Size as Size, Tensor as Tensor, device as device, dtype as dtype, placement as placement
from weft._oneflow_internal import eager as eager, flags as flags, profiler as profiler
from weft.interop.oneflow import TensorTuple as TensorTuple
