# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow._oneflow_internal: TensorTuple"""


from weft._oneflow_internal import eager as eager
from weft.interop.oneflow import TensorTuple as TensorTuple

