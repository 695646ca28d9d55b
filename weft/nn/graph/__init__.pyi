# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""nn.Graph: trace a program once into a job, compile it, launch it through the virtual machine."""


__all__ = [
    "EndOfData", "Graph", "GraphBlock", "GraphConfig", "GraphModule", "GraphTensor", "Proxy", "ProxyModule"
]

from weft.core.errors import EndOfData as EndOfData
from weft.graph.blocks import GraphBlock as GraphBlock
from weft.graph.blocks import GraphModule as GraphModule
from weft.graph.blocks import GraphTensor as GraphTensor
from weft.graph.blocks import Proxy as Proxy
from weft.graph.blocks import ProxyModule as ProxyModule
from weft.graph.config import GraphConfig as GraphConfig
from weft.graph.graph import Graph as Graph
from weft.nn.graph import graph_block as graph_block
from weft.nn.graph import proxy as proxy
from weft.nn.graph import util as util

