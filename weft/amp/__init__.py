"""Mixed precision: autocast chooses the dtype of each op, and GradScaler scales the loss."""

from weft.amp.autocast import autocast, autocast_decorator, is_autocast_available
from weft.amp.custom import custom_bwd, custom_fwd
from weft.amp.scaler import GradScaler, StaticGradScaler

__all__ = [
    "GradScaler", "StaticGradScaler", "autocast", "autocast_decorator", "custom_bwd", "custom_fwd",
    "is_autocast_available",
]  # fmt: skip
