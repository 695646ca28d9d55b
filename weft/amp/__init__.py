"""Mixed precision: operands are cast before an op sees them, gradients are scaled on their way."""

from weft.amp.autocast import (
    autocast,
    autocast_decorator,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from weft.amp.scaler import GradScaler, StaticGradScaler

__all__ = [
    "GradScaler", "StaticGradScaler", "autocast", "autocast_decorator", "clear_autocast_cache",
    "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "is_autocast_cache_enabled", "is_autocast_enabled",
]  # fmt: skip
