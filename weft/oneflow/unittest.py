"""`oneflow.unittest`: test cases that say how many machines and devices they are for."""

from __future__ import annotations

import os
import unittest
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from weft.system import env as _world

TestCase = unittest.TestCase


def node_size() -> int:
    return int(os.getenv("ONEFLOW_TEST_NODE_NUM") or _world.get_node_size())


def device_num() -> int:
    """How many devices a machine has: as many as ranks run on it."""
    return int(os.getenv("ONEFLOW_TEST_DEVICE_NUM") or _world.get_world_size() // node_size())


def skip_unless(nodes: int, devices: int) -> Callable[[Any], Any]:
    """Skip a test, or a class of tests, unless this many machines run with this many ranks each."""
    have = (node_size(), device_num())
    return unittest.skipUnless(have == (nodes, devices), f"for {nodes} nodes of {devices} devices; these are {have}")


def _skip(nodes: int, devices: int) -> Callable[[], Callable[[Any], Any]]:
    return lambda: skip_unless(nodes, devices)


skip_unless_1n1d, skip_unless_1n2d, skip_unless_1n4d = _skip(1, 1), _skip(1, 2), _skip(1, 4)
skip_unless_2n1d, skip_unless_2n2d, skip_unless_2n4d = _skip(2, 1), _skip(2, 2), _skip(2, 4)


def num_nodes_required(nodes: int) -> Callable[[Any], Any]:
    return unittest.skipUnless(node_size() == nodes, f"for {nodes} nodes")


env = SimpleNamespace(node_size=node_size, device_num=device_num, world_size=_world.get_world_size)
