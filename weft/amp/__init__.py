"""Mixed precision: autocast chooses the dtype of each op, and GradScaler scales the loss."""

from weft.amp.autocast import (
    autocast,
    autocast_decorator,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)
from weft.amp.cuda import of_cuda
from weft.amp.custom import custom_bwd, custom_fwd
from weft.amp.scaler import GradScaler, StaticGradScaler

__all__ = [
    "GradScaler", "StaticGradScaler", "autocast", "autocast_decorator", "clear_autocast_cache", "custom_bwd",
    "custom_fwd", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_available",
    "is_autocast_cache_enabled", "is_autocast_enabled", "of_cuda", "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
]  # fmt: skip
