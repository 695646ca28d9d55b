"""`assert_close`: comparison of tensors in tests."""

from __future__ import annotations

from typing import Any

import torch

from weft.autograd.trees import mapped
from weft.tensor.data import whole_data
from weft.tensor.tensor import Tensor


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: Any = None,
) -> None:  # fmt: skip
    """Raise an AssertionError that shows where two tensors, or lists and dicts of them, differ by more than rounding.

    A global tensor is compared by its logical value; every rank of its placement takes part.

    >>> flow.testing.assert_close(flow.ones(2), flow.ones(2) + 1e-9)
    """
    torch.testing.assert_close(
        _plain(actual), _plain(expected), allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan,
        check_device=check_device, check_dtype=check_dtype, check_layout=check_layout, check_stride=check_stride,
        msg=msg,
    )  # fmt: skip


def _plain(tree: Any) -> Any:
    """The same structure with torch's tensors."""
    return mapped(tree, lambda x: whole_data(x, "assert_close()").detach() if isinstance(x, Tensor) else x)
