# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.pipelining.microbatch."""

from typing import Any

class TensorChunkSpec:
    def __init__(self, split_dim: Any) -> None: ...
    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> Any: ...
    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> Any: ...

def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any: ...
def split_args_kwargs_into_chunks(
    args: tuple[Any, ...], kwargs: dict[str, Any] | None, chunks: int,
    args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
    kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None
) -> tuple[list[tuple], list[dict]]: ...
