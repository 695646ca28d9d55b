"""nn.Graph: trace a program once into a job, compile it, launch it through the virtual machine."""

from weft.core.errors import EndOfData
from weft.graph.blocks import GraphModule, ProxyModule
from weft.graph.config import GraphConfig
from weft.graph.graph import Graph

Proxy = ProxyModule

__all__ = ["EndOfData", "Graph", "GraphConfig", "GraphModule", "Proxy", "ProxyModule"]
