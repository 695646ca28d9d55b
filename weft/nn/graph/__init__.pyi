# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""nn.Graph: trace a program once into a job, compile it, launch it through the virtual machine."""

__all__ = [
    "EndOfData", "Graph", "GraphBlock", "GraphConfig", "GraphModule", "GraphTensor", "Proxy", "ProxyModule"
]

from weft.core.errors import EndOfData as EndOfData
from weft.graph.blocks import (
    GraphBlock as GraphBlock, GraphModule as GraphModule, GraphTensor as GraphTensor, ProxyModule as ProxyModule
)
from weft.graph.config import GraphConfig as GraphConfig
from weft.graph.graph import Graph as Graph
from weft.nn.graph import graph_block as graph_block, proxy as proxy, util as util

Proxy = ProxyModule
