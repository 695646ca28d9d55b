"""What a graph's `config` asks of the compiler."""

from __future__ import annotations

import msgspec


class Options(msgspec.Struct, frozen=True):
    """Every option is read by the pass it belongs to."""

    micro_batches: int = 1
    fuse_bytes: int = 32 << 20  # how much one fused all-reduce may hold
    auto_parallel: bool = False
    zero_bubble: bool = False
    verify: bool = True
