# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.nn.graph.graph_block: GraphBlock, GraphModule, GraphTensor"""

from weft.nn.graph import GraphBlock as GraphBlock, GraphModule as GraphModule, GraphTensor as GraphTensor
