# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal: Size, Tensor, TensorTuple, device, dtype, placement, GetCUDAMemoryUsed, GetCPUMemoryUsed, float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, bool, complex64, complex128"""

from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.placement import Placement

bfloat16: DType
bool: DType
complex128: DType
complex64: DType
device = Device
dtype = DType
float16: DType
float32: DType
float64: DType
from torch import Size as Size
from weft._oneflow_internal import eager as eager
from weft._oneflow_internal import flags as flags
from weft._oneflow_internal import profiler as profiler
from weft.interop.oneflow import TensorTuple as TensorTuple
from weft.interop.oneflow import cuda_megabytes as GetCUDAMemoryUsed
from weft.interop.oneflow import host_megabytes as GetCPUMemoryUsed
from weft.tensor.tensor import Tensor as Tensor
int16: DType
int32: DType
int64: DType
int8: DType
placement = Placement
uint8: DType

