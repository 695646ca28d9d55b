"""Forms without kernels: what a declaration tells of its outputs' shapes and dtypes.

Three ways, tried in this order: a function of the declaration (`@name.form`); the axis notation, for ops declared
`uniform`; and for element-wise ops one run on a single element, which tells the dtype, while shapes broadcast.
Where none applies, or the operands don't fit, the kernel is asked on meta tensors (`ops/infer.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.ops import notation
from weft.ops.declaration import Op

FLOATS = (dtypes.float32, dtypes.float64)


class Form(NamedTuple):
    """What is known of a tensor of which only the outside matters."""

    shape: tuple[int, ...]
    dtype: DType


def told(op: Op, args: tuple[Any, ...]) -> tuple[Form, ...] | None:
    """The outputs' forms, from `args` with a Form for every tensor; None where the kernel must be asked."""
    if op.form_function is not None:
        try:
            found = op.form_function(*args)
        except (TypeError, ValueError, IndexError, ArithmeticError):  # an argument that isn't what it should be
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
    """Operands of one floating dtype give outputs of it."""
    given = list(_given(args))
    shapes = _shapes(op, args) if alike(*given) and all(0 not in f.shape for f in given) else None
    return None if shapes is None else tuple(Form(s, given[0].dtype) for s in shapes)


def _shapes(op: Op, args: tuple[Any, ...]) -> tuple[tuple[int, ...], ...] | None:
    """The outputs' shapes, as far as the notation tells them."""
    try:
        text = op.described(tuple(map(_outline, args)))
    except Exception:  # no such dimension: the kernel knows how to say it
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
        n = len(ones) - len(op.keywords)
        made = op.kernel(*ones[:n], **dict(zip(op.keywords, ones[n:], strict=True)))
    except Exception:  # a kernel that the CPU lacks, or operands that don't fit
        return None
    results = made if isinstance(made, tuple) else (made,)
    return tuple(Form(s, dtypes.of_torch(y.dtype)) for s, y in zip(shapes, results, strict=True))


# ---- words for declarations --------------------------------------------------------------------------


def alike(*forms: Form | None) -> bool:
    """Whether these floating operands (None for those that are absent) have one dtype."""
    kinds = {f.dtype for f in forms if f is not None}
    return len(kinds) == 1 and kinds <= {*FLOATS}


def of_floats(x: Form, *others: Any) -> Form | None:
    """What is made in x's own form, if that is of floats."""
    return x if alike(x) else None


def counts(form: Form) -> bool:
    """Whether it holds what indices and labels are made of."""
    return form.dtype in (dtypes.int32, dtypes.int64)
