# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.nn.parameter: Buffer, Parameter, UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin, is_lazy"""

from weft.nn import (
    Buffer as Buffer, Parameter as Parameter, UninitializedBuffer as UninitializedBuffer,
    UninitializedParameter as UninitializedParameter
)
from weft.tensor.parameter import UninitializedTensorMixin as UninitializedTensorMixin, is_lazy as is_lazy
