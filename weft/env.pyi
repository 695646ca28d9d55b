# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.env`: this rank's number, and the size of the world."""


from weft.system.env import all_device_placement as all_device_placement
from weft.system.env import get_local_rank as get_local_rank
from weft.system.env import get_node_size as get_node_size
from weft.system.env import get_rank as get_rank
from weft.system.env import get_world_size as get_world_size
from weft.system.env import is_multi_client as is_multi_client

