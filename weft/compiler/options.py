"""What a graph's `config` asks of the compiler."""

from __future__ import annotations

import msgspec

from weft.boxing.links import ONE_HOST, Links


class Options(msgspec.Struct, frozen=True):
    """Each is read by exactly one file, named in docs/graph.md, but for what tells of the network."""

    micro_batches: int = 1
    fuse_bytes: int = 32 << 20  # how much one fused all-reduce may hold
    auto_parallel: bool = False
    zero_bubble: bool = False
    links: Links = ONE_HOST  # the network, by which routes and sizes are chosen
    backend: str = "local"  # of the transport
    zero: int = 0  # the stage; 0 keeps everything whole
    inductor: bool = False  # whether runs of calls are fused, where that is faster
    memory_budget: int = 0  # bytes of a rank; 0: whatever it takes
    ahead: int = 2  # copies of the registers at both ends of a launch: so far launches run ahead of who reads them
    verify: bool = True
