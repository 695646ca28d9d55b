"""What a graph's `config` asks of the compiler."""

from __future__ import annotations

import msgspec

from weft.boxing.links import ONE_HOST, Links


class Options(msgspec.Struct, frozen=True):
    """Each option is read by exactly one file, named in docs/graph.md, except those that describe the network."""

    micro_batches: int = 1
    fuse_bytes: int = 32 << 20  # the limit of one fused all-reduce
    auto_parallel: bool = False
    zero_bubble: bool = False
    links: Links = ONE_HOST  # the network, by which routes and sizes are chosen
    backend: str = "local"  # of the transport
    zero: int = 0  # the stage; 0 keeps everything whole
    inductor: bool = False  # whether to fuse runs of calls where that is faster
    memory_budget: int = 0  # bytes of a rank; 0: whatever it takes
    slices_budget: int = 0  # what is to be reached by slices; 0: nothing is computed in slices
    ahead: int = 2  # copies of the registers for inputs and outputs: how far launches may run ahead of their readers
    verify: bool = True

    @property
    def limited(self) -> bool:
        """Whether memory has a limit, and isn't to be given for speed."""
        return self.memory_budget > 0

    @property
    def tight(self) -> bool:
        """Whether less memory is worth copies, and more time to plan it."""
        return self.slices_budget > 0
