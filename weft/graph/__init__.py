"""nn.Graph: trace a program once into a job, compile it, launch it through the virtual machine."""

from weft.core.errors import EndOfData
from weft.graph.blocks import GraphBlock, GraphModule, GraphTensor, Proxy, ProxyModule
from weft.graph.config import GraphConfig
from weft.graph.graph import Graph

__all__ = ["EndOfData", "Graph", "GraphBlock", "GraphConfig", "GraphModule", "GraphTensor", "Proxy", "ProxyModule"]
