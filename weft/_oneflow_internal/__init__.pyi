# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal: Size, Tensor, TensorTuple, device, dtype, placement"""

from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.placement import Placement

device = Device
dtype = DType
from torch import Size as Size
from weft._oneflow_internal import eager as eager
from weft._oneflow_internal import flags as flags
from weft._oneflow_internal import profiler as profiler
from weft.interop.oneflow import TensorTuple as TensorTuple
from weft.tensor.tensor import Tensor as Tensor
placement = Placement

