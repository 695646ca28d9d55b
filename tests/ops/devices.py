"""Run by test_devices.py in a process of its own: every op, its gradients, and modules on a device that isn't the CPU.

The device is imitated: its tensors have shapes and no values, and what meets tensors of two devices fails, as on a GPU.
Prints what failed, by the error at its root, and ends with how many calls came through.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch._subclasses import FakeTensorMode, fake_tensor
from torch.utils import backend_registration

import weft as flow
from weft import nn
from weft.core import device
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_torch
from weft.testing.cases import cases
from weft.testing.layouts import replaced, tensors
from weft.testing.registry import UNDERIVED

NAME = "elsewhere"
UNKNOWN = (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException)  # without values
RANDOM = ("generator is not supported", "implement `getNewGenerator`")  # the imitation draws no numbers
WITHOUT = ("_fused_sgd_", "aten::empty_strided")  # kernels that the imitation lacks


def on_it(*shape: int) -> Tensor:
    return of_torch(torch.empty(shape, device=NAME))


def places(*shape: int) -> Tensor:
    return of_torch(torch.zeros(shape, dtype=torch.int64, device=NAME))


MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Iterable[Tensor]]]] = {
    "Bilinear": (lambda: nn.Bilinear(4, 4, 3), lambda: (on_it(2, 4), on_it(2, 4))),
    "Conv1d": (lambda: nn.Conv1d(3, 4, 3, padding=1, padding_mode="reflect"), lambda: [on_it(2, 3, 8)]),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3), lambda: [on_it(2, 3, 8, 8)]),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), lambda: [on_it(2, 3, 8, 8)]),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3, affine=True), lambda: [on_it(2, 3, 8, 8)]),
    "GroupNorm": (lambda: nn.GroupNorm(1, 3), lambda: [on_it(2, 3, 8)]),
    "RMSNorm": (lambda: nn.RMSNorm(8), lambda: [on_it(2, 3, 8)]),
    "RNN": (lambda: nn.RNN(8, 4, 2, bidirectional=True), lambda: [on_it(2, 3, 8)]),
    "LSTM": (lambda: nn.LSTM(8, 4, 2, bidirectional=True), lambda: [on_it(2, 3, 8)]),
    "GRU": (lambda: nn.GRU(8, 4, 2), lambda: [on_it(2, 3, 8)]),
    "LSTMCell": (lambda: nn.LSTMCell(8, 4), lambda: [on_it(3, 8)]),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2), lambda: [on_it(5, 3, 8)] * 3),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0), lambda: (on_it(5, 3, 8), on_it(4, 3, 8))),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(8, 2, mode="sum"), lambda: [places(5, 3)]),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d(3), lambda: [on_it(2, 3, 8, 8)]),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), lambda: [on_it(2, 3, 8, 8)]),
    "Fold": (lambda: nn.Fold((4, 4), 2), lambda: [on_it(2, 16, 9)]),
    "CrossEntropyLoss": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), lambda: (on_it(2, 4), on_it(2, 4))),
    "TripletMarginLoss": (lambda: nn.TripletMarginLoss(), lambda: (on_it(2, 4), on_it(2, 4), on_it(2, 4))),
    "GaussianNLLLoss": (lambda: nn.GaussianNLLLoss(), lambda: (on_it(2, 4), on_it(2, 4), on_it(2, 4))),
}


def imitate() -> None:
    backend_registration._setup_privateuseone_for_python_backend(NAME)
    logging.disable(logging.ERROR)  # it reports each draw that it refuses
    make, one = device._make, device._one
    there = one.__wrapped__("cuda", 0)
    there.type, there.torch = NAME, torch.device(NAME, 0)
    device._make = lambda text, index: there if text.startswith(NAME) else make(text, index)  # type: ignore[assignment]
    device._one = lambda kind, index: there if kind == NAME else one(kind, index)  # type: ignore[assignment]
    device.Device.check = lambda self: self  # type: ignore[method-assign]


def backward(outputs: Iterable[Any], inputs: list[Tensor]) -> None:
    """Gradients of gradients: each must lie where its tensor does."""
    for order in (1, 2):
        sums = [(y.abs() if y.dtype.is_complex else y).sum() for y in outputs if y is not None and y.requires_grad]
        if not sums or not inputs:
            return
        outputs = flow.autograd.grad(sums, inputs, create_graph=order == 1, allow_unused=True)
        assert all(g is None or g.device.type == NAME for g in outputs), "a gradient on another device"


def call_op(name: str, args: tuple[Any, ...]) -> None:
    op = OPS[name]
    given = tensors(op, args)
    mine = [of_torch(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=NAME)) for t in given]
    inputs = [t for t in mine if t.dtype.is_floating_point and not op.writes]
    for t in inputs:
        t.requires_grad = True
    made = replaced(op, args, mine)  # type: ignore[arg-type]
    keywords = {k: made[op.names.index(k)] for k in op.keywords}
    found = op(*made[: len(made) - len(keywords)], **keywords)
    outputs = [y for y in (found if isinstance(found, tuple) else (found,)) if isinstance(y, Tensor)]
    assert not given or all(y.device.type == NAME for y in outputs), "a result on another device"
    if op.vjp is not None and name not in (*UNDERIVED, "grid_sample"):  # whose gradient has none
        backward(outputs, inputs)


def call_module(name: str) -> None:
    make, inputs = MODULES[name]
    module = make().to(NAME)
    given = list(inputs())
    for t in given:
        t.requires_grad = t.dtype.is_floating_point
    found = module(*given)
    while isinstance(found, tuple):
        found = found[0]
    found.sum().backward()
    assert all(p.grad is None or p.grad.device.type == NAME for p in module.parameters())


def main() -> int:
    imitate()
    moves = ("to_device",)
    calls = [
        (name, partial(call_op, name, args)) for name, op in OPS.items() if name not in moves for args in cases(op)
    ]
    calls += [(name, partial(call_module, name)) for name in MODULES]
    came_through = failed = 0
    for name, call in calls:
        try:
            with FakeTensorMode():
                call()
            came_through += 1
        except Exception as error:
            root: BaseException = error
            while root.__cause__ is not None:
                root = root.__cause__
            if not isinstance(root, UNKNOWN) and not any(text in str(root) for text in (*RANDOM, *WITHOUT)):
                failed += 1
                print(f"{name}: {type(root).__name__}: {str(root)[:200]}")
    print(came_through)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
