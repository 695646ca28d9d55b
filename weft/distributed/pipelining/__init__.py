"""`flow.distributed.pipelining`: stages of a model on ranks of their own, and the schedules by which micro-batches pass
through them. They are torch's own code, over Weft's tensors and messages.

A model is cut by hand, into one module per stage.
"""

import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from weft.core.derived import Derived, lazily, since
from weft.core.errors import ArgumentError
from weft.distributed.objects import recv_object_list, send_object_list
from weft.functional.create.creation import empty
from weft.parallel.fsdp import FSDPModule, scatter_gradients

if TYPE_CHECKING:
    from weft.distributed.pipelining.schedules import *  # noqa: F403  (its stub lists them)
    from weft.distributed.pipelining.stage import PipelineStage

FILES: Final = {
    "schedules": (
        "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
        "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
    ),
    "stage": ("PipelineStage",), "microbatch": (), "_backward": (), "_utils": (),
    **since("2.15", {"_p2p": (), "_recv_buffers": ()}),
}  # fmt: skip


def _values(record: Any) -> list[Any]:
    return [getattr(record, f.name) for f in fields(record)]


def _send_meta(self: Any, meta: Any, dst_stage: int) -> None:
    """Tell another stage the forms of tensors, as plain data, where torch would pickle the records."""
    (told,) = _values(meta)
    if any(type(m).__name__ == "_DTensorMeta" for m in told):
        raise ArgumentError("PipelineStage: stages send each other local tensors; give the next one y.to_local()")
    plain = [m and _values(m) for m in told]
    send_object_list([[type(meta).__name__, plain]], self._resolve_peer_global_rank(dst_stage), self.group)


def _recv_meta(self: Any, src_stage: int) -> Any:
    objects: list[Any] = [None]
    recv_object_list(objects, self._resolve_peer_global_rank(src_stage), self.group)
    name, plain = objects[0]
    kinds = sys.modules[f"{__name__}._utils"]
    return getattr(kinds, name)(tuple(values and kinds._TensorMeta(*values) for values in plain))


def _together(stage_output: Any, output_grads: Any, input_values: Any, weights: Any) -> Any:
    """The gradients of a stage's inputs, and those of its weights, which torch computes later, from nodes of its tape:
    a zero-bubble schedule has its results here, but fills no bubble."""
    given = [None] * len(stage_output) if output_grads is None else output_grads  # the last stage's loss has none
    return sys.modules[f"{__name__}._backward"].stage_backward(stage_output, given, input_values), []


def _reduce_grad(self: Any, grad_scale_factor: int) -> None:
    """After the last micro-batch's backward."""
    if isinstance(self.submod, FSDPModule):
        scatter_gradients(self.submod)
    if grad_scale_factor != 1:
        self.scale_grads(grad_scale_factor)


TOLD: Final = {"PipelineStage._send_meta": lambda _: _send_meta, "PipelineStage._recv_meta": lambda _: _recv_meta}
MADE: Final = {"_make_tensor_from_meta": lambda _: lambda m, device: empty(m.shape, dtype=m.dtype, device=device)}
CHANGES: Final = {  # before 2.12, stages tell each other forms by tensors on meta
    "_backward": {"stage_backward_input": lambda _: _together},
    "stage": {**since("2.12", TOLD), **MADE, "_PipelineStageBase.perform_reduce_grad": lambda _: _reduce_grad},
    "_utils": since("2.12", MADE),
}
for _file in FILES:
    Derived(f"{__name__}.{_file}", f"torch.distributed.pipelining.{_file}", {"": CHANGES.get(_file, {})})
__getattr__ = lazily(__name__, FILES)

# ruff: noqa: F405
__all__ = [
    "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
]  # fmt: skip
