"""`flow.env`: this rank's number, and the size of the world."""

from __future__ import annotations

from weft.core.placement import Placement
from weft.core.rank import current


def get_rank() -> int:
    """This rank's number in the world."""
    return current().index


def get_world_size() -> int:
    """How many ranks the world has."""
    return current().world_size


def get_local_rank() -> int:
    """This rank's number on its host."""
    return current().local_index


def get_node_size() -> int:
    """The number of hosts of the world, each with as many ranks as this one."""
    rank = current()
    return -(-rank.world_size // max(rank.local_size, 1))


def is_multi_client() -> bool:
    """True: every rank runs the program (OneFlow's name)."""
    return True


def all_device_placement(device_type: str = "cpu") -> Placement:
    """A placement of every rank of the world, with one axis."""
    return Placement.all(device_type)
