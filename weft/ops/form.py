"""Shape and dtype inference from declarations, without kernels.

Three ways, tried in this order: the declaration's function (`@name.form`); the axis notation, for `uniform` ops; and
for element-wise ops one run on a single element, which gives the dtype, while shapes broadcast. Otherwise, or if the
operands don't fit, the kernel runs on meta tensors (`ops/infer.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.ops import notation
from weft.ops.declaration import Op

WIDE = frozenset({dtypes.float32, dtypes.float64})
FLOATS = WIDE | {dtypes.bfloat16, dtypes.float16}


class Form(NamedTuple):
    """The shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: DType


def declared(op: Op, args: tuple[Any, ...]) -> tuple[Form, ...] | None:
    """The outputs' forms, from `args` with a Form in place of every tensor; None if the kernel must be run."""
    if op.form_function is not None:
        try:
            found = op.form_function(*args)
        except (TypeError, ValueError, IndexError, ArithmeticError):  # an invalid argument
            return None
        return (found,) if isinstance(found, Form) else found
    if op.uniform:
        return _of_one_kind(op, args)
    if op.elementwise and not op.random and not op.writes:
        return _of_one_element(op, args)
    return None


def _given(args: tuple[Any, ...]) -> Iterator[Form]:
    for a in args:
        if isinstance(a, Form):
            yield a
        elif isinstance(a, tuple):
            yield from (v for v in a if isinstance(v, Form))


def _of_one_kind(op: Op, args: tuple[Any, ...]) -> tuple[Form, ...] | None:
    """Operands of one floating dtype give outputs of that dtype."""
    given = list(_given(args))
    shapes = _shapes(op, args) if alike(*given) and all(0 not in f.shape for f in given) else None
    return None if shapes is None else tuple(Form(s, given[0].dtype) for s in shapes)


def _shapes(op: Op, args: tuple[Any, ...]) -> tuple[tuple[int, ...], ...] | None:
    """The outputs' shapes by the notation; None if it doesn't determine them."""
    try:
        text = op.described(tuple(map(_outline, args)))
    except Exception:  # no such dimension: the kernel raises
        return None
    return notation.shapes(text, tuple(f.shape for f in _given(args))) if isinstance(text, str) else None


def _outline(a: Any) -> Any:
    if isinstance(a, Form):
        return a.shape
    return tuple(map(_outline, a)) if isinstance(a, tuple) else a


def _of_one_element(op: Op, args: tuple[Any, ...]) -> tuple[Form, ...] | None:
    shapes = _shapes(op, args)
    if shapes is None:
        return None
    try:
        ones = [torch.ones((1,) * len(a.shape), dtype=a.dtype.torch) if isinstance(a, Form) else a for a in args]
        made = op.compute(ones)
    except Exception:  # a kernel that the CPU lacks, or operands that don't fit
        return None
    results = made if isinstance(made, tuple) else (made,)
    return tuple(Form(s, dtypes.of_torch(y.dtype)) for s, y in zip(shapes, results, strict=True))


# ---- helpers for declarations --------------------------------------------------------------------------


def alike(*forms: Form | None, among: frozenset[DType] = FLOATS) -> bool:
    """Whether these operands (None for absent ones) have one floating dtype. WIDE: not one of 16 bits, in which kernels
    are lacking, or keep statistics in a dtype that depends on the device."""
    kinds = {f.dtype for f in forms if f is not None}
    return len(kinds) == 1 and kinds <= among


def of_floats(x: Form, *others: Any) -> Form | None:
    """x's own form, if it is floating."""
    return x if alike(x) else None


def counts(form: Form) -> bool:
    """Whether the dtype is one of indices and labels."""
    return form.dtype in (dtypes.int32, dtypes.int64)
