# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.nn.parameter: Parameter, Buffer"""


from weft.tensor.parameter import Buffer as Buffer
from weft.tensor.parameter import Parameter as Parameter

