# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.pipelining.schedules."""

from abc import ABC
from collections.abc import Callable
from typing import Any
from weft.distributed.pipelining.microbatch import TensorChunkSpec
from weft.tensor.tensor import Tensor

class _PipelineSchedule(ABC):
    def __init__(
        self, n_microbatches: int, loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, scale_grads: bool = True
    ) -> None: ...
    def step(
        self, *args: Any, target: Any = None, losses: list | None = None, return_outputs: Any = True,
        loss_kwargs: dict[str, Any] | None = None, **kwargs: Any
    ) -> Any: ...
    def eval(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any: ...

class PipelineScheduleMulti(_PipelineSchedule):
    def __init__(
        self, stages: list[Any], n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, use_full_backward: bool | None = None,
        scale_grads: bool = True, backward_requires_autograd: bool = True
    ) -> None: ...
    def step(
        self, *args: Any, target: Any = None, losses: list | None = None, return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None, **kwargs: Any
    ) -> Any: ...

class PipelineScheduleSingle(_PipelineSchedule):
    def __init__(
        self, stage: Any, n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, scale_grads: bool = True
    ) -> None: ...
    def step(
        self, *args: Any, target: Any = None, losses: list | None = None, return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None, **kwargs: Any
    ) -> Any: ...

class Schedule1F1B(PipelineScheduleSingle): ...

class _PipelineScheduleRuntime(PipelineScheduleMulti):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def register_custom_function(self, computation_type: Any, custom_function: Any) -> None: ...

class ScheduleDualPipeV(_PipelineScheduleRuntime):
    def __init__(
        self, stages: list[Any], n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, scale_grads: bool = True,
        backward_requires_autograd: bool = True, defer_pp_recv: bool = False
    ) -> None: ...

class ScheduleGPipe(PipelineScheduleSingle): ...

class ScheduleInterleaved1F1B(_PipelineScheduleRuntime):
    def __init__(
        self, stages: list[Any], n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, scale_grads: bool = True,
        backward_requires_autograd: bool = True, defer_pp_recv: bool = False
    ) -> None: ...

class ScheduleInterleavedZeroBubble(_PipelineScheduleRuntime):
    def __init__(
        self, stages: list[Any], n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, scale_grads: bool = True,
        backward_requires_autograd: bool = True, defer_pp_recv: bool = False
    ) -> None: ...

class ScheduleLoopedBFS(_PipelineScheduleRuntime):
    def __init__(
        self, stages: list[Any], n_microbatches: int, loss_fn: Callable | Any | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, scale_grads: bool = True,
        backward_requires_autograd: bool = True, defer_pp_recv: bool = False
    ) -> None: ...

class ScheduleZBVZeroBubble(_PipelineScheduleRuntime):
    def __init__(
        self, stages: list[Any], n_microbatches: int, loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None, scale_grads: bool = True,
        backward_requires_autograd: bool = True, defer_pp_recv: bool = False
    ) -> None: ...

def get_schedule_class(schedule_name: str) -> Any: ...
