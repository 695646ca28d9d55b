"""`flow.cuda.amp`: PyTorch's deprecated names, for CUDA devices alone."""

from __future__ import annotations

from typing import Any

from weft.amp.autocast import autocast as any_autocast
from weft.amp.custom import custom_bwd, custom_fwd
from weft.amp.scaler import GradScaler


class autocast(any_autocast):
    """`flow.autocast("cuda")`."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = None) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


def of_cuda() -> dict[str, Any]:
    """The names of `flow.cuda.amp`."""
    return {"GradScaler": GradScaler, "autocast": autocast, "custom_bwd": custom_bwd, "custom_fwd": custom_fwd}
