# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.unittest.env: node_size, device_num, has_world_size, world_size, eager_execution_enabled, typing_check_enabled, has_node_list"""

from typing import Any

from weft.interop.oneflow import _no as has_node_list, _no as typing_check_enabled

def device_num() -> Any: ...

def eager_execution_enabled() -> Any: ...

def has_world_size() -> Any: ...

def node_size() -> Any: ...

def world_size() -> Any: ...
