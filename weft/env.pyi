# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.env`: this rank's number, and the size of the world."""

from weft.system.env import (
    all_device_placement as all_device_placement, get_local_rank as get_local_rank, get_node_size as get_node_size,
    get_rank as get_rank, get_world_size as get_world_size, is_multi_client as is_multi_client
)
