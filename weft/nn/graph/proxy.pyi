# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.nn.graph.proxy: Proxy, ProxyModule"""

from weft.nn.graph import Proxy as Proxy, ProxyModule as ProxyModule
