"""What programs tell OneFlow of collectives. Here the compiler decides: it is taken, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

OF_NCCL: Final = (
    "allow_fuse_all_gather", "allow_fuse_all_reduce", "allow_fuse_broadcast", "allow_fuse_mixed_ops",
    "allow_fuse_reduce", "allow_fuse_reduce_scatter", "disable_group_boxing_by_dst_parallel", "enable_all_to_all",
    "enable_use_buffer_to_fuse_all_reduce", "enable_use_compute_stream", "set_fusion_max_ops_num",
    "set_fusion_threshold_mbytes", "set_stream_num",
)  # fmt: skip


def taken(*args: Any, **options: Any) -> None:
    """Nothing has to be said here for what this asks for."""


def of_nccl() -> dict[str, Callable[..., None]]:
    """The names of `flow.boxing.nccl`."""
    return dict.fromkeys(OF_NCCL, taken)
