# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal: Size, Tensor, TensorTuple, device, dtype, placement, GetCUDAMemoryUsed, GetCPUMemoryUsed, lazy_mode, float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, bool, complex64, complex128"""

from weft.core.dtype import DType

from weft import Size as Size, Tensor as Tensor, device as device, dtype as dtype, placement as placement
from weft._oneflow_internal import (
    eager as eager, exception as exception, flags as flags, profiler as profiler, sbp as sbp
)
from weft.interop.oneflow import (
    host_megabytes as GetCPUMemoryUsed, cuda_megabytes as GetCUDAMemoryUsed, TensorTuple as TensorTuple,
    lazy_mode as lazy_mode
)

bfloat16: DType
bool: DType
complex128: DType
complex64: DType
float16: DType
float32: DType
float64: DType
int16: DType
int32: DType
int64: DType
int8: DType
uint8: DType
