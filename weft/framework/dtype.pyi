# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework.dtype: get_default_dtype, set_default_dtype, set_default_tensor_type, is_floating_point, convert_oneflow_dtype_to_numpy_dtype, convert_numpy_dtype_to_oneflow_dtype"""

from typing import Any
from weft.tensor.tensor import Tensor

from weft.functional.create.creation import get_default_dtype as get_default_dtype
from weft.functional.create.creation import set_default_dtype as set_default_dtype
from weft.interop.oneflow import convert_numpy_dtype_to_oneflow_dtype as convert_numpy_dtype_to_oneflow_dtype

def convert_oneflow_dtype_to_numpy_dtype(dtype: Any) -> Any:
    """The numpy dtype of a dtype."""

def is_floating_point(x: Tensor) -> bool:
    """Whether x holds floating point numbers."""

def set_default_tensor_type(t: Any) -> None:
    """Set the default floating-point dtype by a type's name, such as "flow.DoubleTensor"."""
