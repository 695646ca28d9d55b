# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.nn.parameter: Buffer, Parameter, UninitializedBuffer, UninitializedParameter, UninitializedTensorMixin, is_lazy"""


from weft.tensor.parameter import Buffer as Buffer
from weft.tensor.parameter import Parameter as Parameter
from weft.tensor.parameter import UninitializedBuffer as UninitializedBuffer
from weft.tensor.parameter import UninitializedParameter as UninitializedParameter
from weft.tensor.parameter import UninitializedTensorMixin as UninitializedTensorMixin
from weft.tensor.parameter import is_lazy as is_lazy

