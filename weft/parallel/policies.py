"""Policies of `fully_shard`: in which dtypes a sharded module computes, and where its shards lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.core.errors import ArgumentError


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which a module computes, gradients are summed, and outputs are returned; `cast_forward_inputs`
    casts its inputs to `param_dtype`. Shards and their gradients keep the parameter's dtype."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True

    @staticmethod
    def of(given: Any) -> MixedPrecisionPolicy:
        """A policy from one of ours, or torch's, or None."""
        names = ("param_dtype", "reduce_dtype", "output_dtype")
        if given is not None and not all(hasattr(given, name) for name in (*names, "cast_forward_inputs")):
            raise ArgumentError(f"fully_shard(mp_policy=...) takes a MixedPrecisionPolicy; got {given!r}")
        found = {name: getattr(given, name, None) for name in names}
        kinds: dict[str, Any] = {name: None if d is None else dtypes.of(d) for name, d in found.items()}
        return MixedPrecisionPolicy(**kinds, cast_forward_inputs=getattr(given, "cast_forward_inputs", True))


@dataclass(frozen=True)
class OffloadPolicy:
    """Shards stay where they are: on the CPU."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Shards are on the CPU, as always."""

    pin_memory: bool = True
