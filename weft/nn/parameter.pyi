# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.nn.parameter: Parameter"""


from weft.tensor.parameter import Parameter as Parameter

