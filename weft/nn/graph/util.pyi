# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.nn.graph.util: ArgsTree, NamedArg"""

from weft.interop.args_tree import ArgsTree as ArgsTree, NamedArg as NamedArg
