"""Operands on different devices are refused by every op, also where torch's kernel computes with them."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft.core.errors import DeviceError, WeftError
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_torch
from weft.testing.cases import cases
from weft.testing.layouts import replaced, tensors

MOVES = ("to_device",)


def test_no_op_computes_with_an_operand_on_meta() -> None:
    """Its memory would be anybody's. What comes of shapes alone is on meta."""
    refused = 0
    for name, op in OPS.items():
        args = next(iter(cases(op)), None)
        given = tensors(op, args) if args is not None and name not in MOVES else []
        for i in range(len(given) if len(given) > 1 else 0):
            mine = [of_torch(t.to("meta") if i == j else t.clone()) for j, t in enumerate(given)]
            made = replaced(op, args, mine)  # type: ignore[arg-type]
            keywords = {k: made[op.names.index(k)] for k in op.keywords}
            try:
                found = op(*made[: len(made) - len(keywords)], **keywords)
            except WeftError as error:
                refused += isinstance(error, DeviceError)
                continue
            outputs = [y for y in (found if isinstance(found, tuple) else (found,)) if isinstance(y, Tensor)]
            written = [t for k in op.writes for t in (made[k] if isinstance(made[k], list) else [made[k]])]
            assert all(t.device.type == "meta" for t in (*outputs, *written)), f"{name} with operand {i} on meta"
    assert refused > 100


def test_the_error_names_both_devices() -> None:
    with pytest.raises(DeviceError, match=r"(?s)operands are on cpu and meta.*in matmul.*x\.to"):
        flow.ones(2, 2) @ flow.ones(2, 2, device="meta")


def test_meta_tensors_have_shapes_and_gradients() -> None:
    m = flow.ones(2, 2, device="meta", requires_grad=True)
    y = (m @ m)[0].relu().unsqueeze(0)
    y.sum().backward()
    assert y.shape == (1, 2) and m.grad is not None and m.grad.device.type == "meta"
    assert (m.detach().add_(1) * flow.tensor(2.0)).device.type == "meta" and "meta" in repr(m)


def test_what_writes_refuses_meta_before_it_writes() -> None:
    x, other = flow.ones(3), flow.zeros(3, device="meta")
    writes: list[Any] = [
        lambda: x.add_(other), lambda: x.mul_(other), lambda: x.copy_(other), lambda: x.lerp_(other, 0.5),
        lambda: x.addcmul_(other, other), lambda: x.masked_fill_(other.bool(), 1.0),
        lambda: flow._C.store(x, other),
    ]  # fmt: skip
    for write in writes:
        with pytest.raises(WeftError):
            write()
        assert x.tolist() == [1.0] * 3 and x._version == 0
