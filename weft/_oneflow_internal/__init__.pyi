# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal: Size, Tensor, TensorTuple, device, dtype, placement"""

from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.placement import Placement

from torch import Size as Size
from weft._oneflow_internal import eager as eager, flags as flags, profiler as profiler
from weft.interop.oneflow import TensorTuple as TensorTuple
from weft.tensor.tensor import Tensor as Tensor

device = Device
dtype = DType
placement = Placement
