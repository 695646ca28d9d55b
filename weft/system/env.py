"""`flow.env`: who runs this, and beside whom."""

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
    """How many hosts the world spans, each with as many ranks as this one."""
    rank = current()
    return -(-rank.world_size // max(rank.local_size, 1))


def is_multi_client() -> bool:
    """True: every rank runs the program. OneFlow's old name for it."""
    return True


def all_device_placement(type: str = "cpu") -> Placement:
    """Every rank of the world, in one axis."""
    return Placement.all(type)
