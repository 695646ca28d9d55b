"""Torch's settings of its kernels, which Weft's use, too: threads, determinism, precision."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from weft.api.table import named, public
from weft.core.errors import ArgumentError


@public("flow")
def set_num_threads(num: int) -> None:
    """Set how many threads one op may use on the CPU."""
    if not isinstance(num, int) or num < 1:
        raise ArgumentError(f"set_num_threads(): takes at least 1; got {num!r}")
    torch.set_num_threads(num)


def _signature(name: str, setting: Any) -> inspect.Signature:
    try:
        return inspect.signature(setting)
    except ValueError:  # compiled, without a text signature
        mode = inspect.Parameter("mode", inspect.Parameter.POSITIONAL_ONLY)
        return inspect.Signature([mode] if name.startswith("set_") else [])


def _bind(name: str, says: str) -> None:
    setting = getattr(torch, name)

    @named(name, f"{says}: a setting of the kernels, torch's and Weft's.")
    def change(*args: Any, **options: Any) -> Any:
        return setting(*args, **options)

    change.__signature__ = _signature(name, setting)
    public("flow")(change)


for _name, _says in {
    "get_num_threads": "How many threads one op may use on the CPU",
    "use_deterministic_algorithms": "Require deterministic kernels, or raise",
    "are_deterministic_algorithms_enabled": "Whether kernels must be deterministic",
    "set_float32_matmul_precision": "The precision of float32 matrix products on CUDA devices",
    "get_float32_matmul_precision": "The precision of float32 matrix products on CUDA devices",
    "get_deterministic_debug_mode": "What happens at nondeterministic kernels",
    "set_deterministic_debug_mode": "What happens at nondeterministic kernels",
    "is_deterministic_algorithms_warn_only_enabled": "Whether nondeterministic kernels only warn",
    "is_warn_always_enabled": "Whether warnings are repeated",
    "set_warn_always": "Whether warnings are repeated",
    "set_flush_denormal": "Whether denormal numbers are flushed to zero",
    "set_num_interop_threads": "The number of torch's inter-op threads",
    "get_num_interop_threads": "The number of torch's inter-op threads",
}.items():
    _bind(_name, _says)
