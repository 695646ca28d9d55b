"""Every op with one argument wrong: a named error, whose class tells what is wrong, and which teaches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, DtypeError, IndexingError, OpError, OptionError, ShapeError, WeftError
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.layouts import replaced

PYTHONS = (
    "tuple index",
    "list index",
    "values to unpack",
    "zip()",
    "not in tuple",
    "'NoneType'",
    "subscriptable",
    "by zero",
)
DTYPES = (torch.bool, torch.int64, torch.float16, torch.complex64)
ATTRIBUTES: tuple[Any, ...] = (5, -7, 2.5, "x", None, (7,), (0, 0), (-9, -9, -9), True)
SAMPLED = [
    op for op in OPS.values() if op.sample_function and not op.writes and not op.conversion and registry.cases(op)
]
EMPTIED = ("multinomial",)  # as whole numbers, its shares are all zero, which is wrong in itself


def wrong(op: Op, args: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A call that works, with one argument after another changed; and what was changed."""
    held = registry.tensors(op, args)

    def given(i: int, t: torch.Tensor | None = None) -> tuple[Any, ...]:
        return replaced(
            op, args, [of_torch((t if j == i and t is not None else h).clone()) for j, h in enumerate(held)]
        )

    for i, t in enumerate(held):
        for dtype in DTYPES:
            if t.dtype is not dtype:
                yield "dtype", given(i, (t.real if t.is_complex() and not dtype.is_complex else t).to(dtype))
        yield "shape", given(i, t[None])
        if t.dim():
            yield "shape", given(i, t.sum(0).to(t.dtype))
        for d in range(t.dim()):
            yield "shape", given(i, torch.cat([t] * 3, d))
            yield "shape", given(i, t.narrow(d, 0, t.shape[d] // 2))
    for i, p in enumerate(op.params[: len(args)]):
        if p.kind == "attribute":
            whole = given(-1)
            for value in ATTRIBUTES:
                yield f"{p.name}={value!r}", (*whole[:i], value, *whole[i + 1 :])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(6))
def test_an_error_tells_which_argument_is_wrong(start: int) -> None:
    bad = []
    for at, op in enumerate(SAMPLED[start::6]):
        for n, (what, args) in enumerate(wrong(op, registry.cases(op)[0])):
            if (n + at) % 2:  # the other half is as good
                continue
            try:
                op(*args)
            except WeftError as error:
                text, cause = f"{error}\n", error.__cause__
                if any(words in text for words in PYTHONS):
                    bad.append(f"{op.name}, {what}: Python's words: {text}")
                if (
                    what == "dtype"
                    and type(error) in (ShapeError, OpError)
                    and isinstance(cause, RuntimeError)
                    and op.name not in EMPTIED
                ):
                    bad.append(f"{op.name}, {what}: {type(error).__name__}: {text}")
                if what == "shape" and isinstance(error, DtypeError):
                    bad.append(f"{op.name}, {what}: {type(error).__name__}: {text}")
            except Exception as raw:
                bad.append(f"{op.name}, {what}: {type(raw).__name__}: {raw}")
    assert not bad, f"{len(bad)}\n" + "\n".join(bad)


x = flow.ones(2, 3)


@pytest.mark.parametrize("name", ["softshrink", "leaky_relu", "elu", "hardshrink", "celu"])
def test_a_tensor_in_the_place_of_a_number(name: str) -> None:
    f = getattr(flow.nn.functional, name)
    assert f(flow.ones(4), flow.tensor(0.5)).tolist() == f(flow.ones(4), 0.5).tolist()  # one without dimensions is one
    words = r"argument '\w+' must be \w+, not Tensor"
    with pytest.raises(ArgumentError, match=words):
        f(flow.ones(4), flow.tensor([0.5]))
    with pytest.raises(ArgumentError, match=words + r"(.|\n)*\.item\(\) is the number"):
        f(flow.ones(4), flow.tensor(0.5, requires_grad=True))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: flow.ones(3).expand(4), ShapeError, r"\(4\) must match.*\[3\] to \[4\]. Only sizes of 1 grow"),
        (lambda: flow.nn.functional.glu(x, 5), IndexingError, r"range of \[-2, 1\], but got 5"),
        (lambda: x.chunk(2, -3), IndexingError, r"range of \[-2, 1\], but got -3"),
        (lambda: flow._C.split_like(x, [x], 2), IndexingError, r"range of \[-2, 1\], but got 2"),
        (lambda: flow._C.split_like(x, [flow.ones(1, 2), x]), ShapeError, r"parts of \[2, 3\].*got \[1, 2\]"),
        (lambda: flow.matmul(x, x.t().long()), DtypeError, r"takes other as float32: cast it, "
        r"other.to\(flow.float32\)"),
        (lambda: flow.gather(x, 0, x), DtypeError, "takes index as int64: cast it"),
        (lambda: flow.gather(x, 0, flow.tensor([[7]])), IndexingError, "index 7 is out of bounds"),
        (lambda: flow.mean(x.long()), DtypeError, "takes x as float32"),
        (lambda: flow.sort(x + 1j), DtypeError, "takes x as float32"),
        (lambda: flow.ones(300, 300) @ flow.ones(300, 300).double(), DtypeError, "takes input as float64"),
        (lambda: flow.ones(300, 300) @ flow.ones(200, 300), ShapeError, "The inner dimensions must agree"),
        (lambda: flow.nn.functional.conv2d(flow.ones(1, 1, 4, 4), flow.ones(1, 1, 2, 2), padding=-7), ShapeError,
         "padding=-7 is what doesn't fit here; padding=0 would"),
        (lambda: x.long().sqrt_(), DtypeError, "result type Float can't be cast"),
        (lambda: flow.softmax(x.long(), 0), NotImplementedError, "not implemented for 'Long'"),
        (lambda: flow.linalg.inv(flow.zeros(2, 2)), OpError, "singular"),
        (lambda: flow.linalg.lu_factor(flow.zeros(2, 2)), OpError, r"U\[1,1\] is zero and using it"),
        (lambda: flow.linalg.lu_factor(flow.zeros(2, 2) + 0j), OpError, r"U\[1,1\] is zero and using it"),
        (lambda: flow.nn.functional.l1_loss(x, x, x, x), OptionError,
         r"float32\[2,3\] is not a valid value for reduction.*weight=w"),
        (lambda: flow.div(x, 2, rounding_mode="up"), ArgumentError, "rounding_mode"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_a_class_is_chosen_by_what_would_work(call: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=f"(?s){words}"):
        call()


def test_what_is_tried_for_an_explanation_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(ShapeError):
        flow.ones(3, 4).copy_(flow.ones(3))
    assert not list(recwarn)
