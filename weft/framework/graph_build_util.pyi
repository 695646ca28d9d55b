# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.framework.graph_build_util: lazy_mode"""

from weft.interop.oneflow import lazy_mode as lazy_mode
