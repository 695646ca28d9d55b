# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework.dtype: get_default_dtype, set_default_dtype, set_default_tensor_type, is_floating_point, convert_oneflow_dtype_to_numpy_dtype, convert_numpy_dtype_to_oneflow_dtype"""

from weft import (
    convert_oneflow_dtype_to_numpy_dtype as convert_oneflow_dtype_to_numpy_dtype,
    get_default_dtype as get_default_dtype, is_floating_point as is_floating_point,
    set_default_dtype as set_default_dtype, set_default_tensor_type as set_default_tensor_type
)
from weft.interop.oneflow import convert_numpy_dtype_to_oneflow_dtype as convert_numpy_dtype_to_oneflow_dtype
