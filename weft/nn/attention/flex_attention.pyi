# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.nn.attention.flex_attention."""

from collections.abc import Callable
from typing import Any, Self
from weft.core.device import Device
from weft.tensor.tensor import Tensor

class AuxOutput:
    lse: Any
    max_scores: Any

class AuxRequest:
    lse: Any
    max_scores: Any

class BlockMask:
    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None, q_num_blocks: Tensor | None,
        q_indices: Tensor | None, full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = ..., mask_mod: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = ..., *,
        dq_write_order: Tensor | None = None, dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None, dq_kv_order_spt: bool | None = None
    ) -> None: ...
    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] | None = None,
        seq_lengths: tuple[int, int] | None = None, compute_q_blocks: bool = True, *,
        dq_write_order: Tensor | None = None, dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None
    ) -> Self: ...
    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, index: int | slice | Tensor | tuple[int | slice | Tensor, ...]) -> Self: ...
    def numel(self) -> int: ...
    def sparsity(self) -> float: ...
    def to_dense(self) -> Tensor: ...
    def to_string(self, grid_size: int | tuple[int, int] = ..., limit: int = 4) -> str: ...
    def to(self, device: Device | str) -> BlockMask: ...

class FlexKernelOptions: ...

def and_masks(
    *mask_mods: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]: ...
def create_block_mask(
    mask_mod: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None, BLOCK_SIZE: int | tuple[int, int] = 128, _compile: Any = False,
    separate_full_blocks: bool = True, compute_dq_write_order: bool = False, dq_kv_order: bool = True
) -> BlockMask: ...
def create_mask(
    mod_fn: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] | Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
    B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor: ...
def flex_attention(
    query: Tensor, key: Tensor, value: Tensor,
    score_mod: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None, *, return_aux: AuxRequest | None = None
) -> Tensor | tuple[Tensor, Tensor] | tuple[Tensor, AuxOutput]: ...
def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor: ...
def or_masks(
    *mask_mods: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]: ...
