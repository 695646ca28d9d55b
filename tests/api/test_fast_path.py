"""A function that takes the short way itself does what the function does that it was written for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
from weft.api.table import ADAPTERS
from weft.core.errors import WeftError
from weft.functional.index import indexing
from weft.functional.shape import views
from weft.tensor.tensor import Tensor

SHORT: dict[str, Callable[..., Any]] = {
    "getitem": indexing.getitem,
    "T": views.transposed,
    **{f"{place}.{n}": f for place in ADAPTERS for n, f in ADAPTERS[place].items() if hasattr(f, "otherwise")},
}

SHAPES: list[tuple[Any, ...]] = [(4, 6), ((4, 6),), ([3, 8],), (-1,), (-1, 6), (2, -1, 3), (), (5, 5), (4.0, 6), ("4",)]
SIZES: list[tuple[Any, ...]] = [(2, 3), ((2, 3),), ([2],), (), (0, 3), (-1,), (2.0,), ("2",), (1 << 50,)]
EDGE: list[Any] = [0, -1, 4, slice(1, 3), slice(None, None, 2), slice(None, None, -1), None, ..., (), (1, 2), (0, 0, 0)]
KEYS: list[Any] = [*EDGE, (..., 0), (..., 0, ...), (None, slice(1, 9), None, 2), True, [0, 1], "a", 1.5]
CALLS: dict[str, list[tuple[Any, ...]]] = {  # arguments behind x, where there is one
    "getitem": [(key,) for key in KEYS],
    "T": [()],
    "t": [(), (1,)],
    **dict.fromkeys(("view", "reshape"), SHAPES),
    "expand": [(4, 6), (2, 4, 6), ((2, -1, 6),), (4, 7), (-1, 4, 6), ()],
    "permute": [(1, 0), ((0, 1),), (-1, 0), (0, 0), (0,), (0, 2)],
    "flatten": [(), (0,), (1,), (0, 1), (1, 0), (5,), ("a",)],
    **{name: [(2,), (4, 1), (3, -1), (9,), (0,), (2, 5), (1.5,)] for name in ("chunk", "unsafe_chunk")},
    "unbind": [(), (1,), (-1,), (2,)],
    **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), SIZES),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), SIZES),
    "full": [((2, 3), 2), ((2,), 1.5), ((), True), (3, 1), ((2,), "a"), ((-1,), 0)],
    "arange": [(5,), (1, 5), (1, 7, 2), (5, 1, -2), (1.5,), (0, 1, 0), (), ("a",), (5, 1)],
    "randint": [(5, (2, 2)), (1, 5, (2,)), (5, 1, (2,)), ((2,),), (5,), (2, 3, 4)],
    "randperm": [(5,), (0,), (-1,), ("a",)],
    **{n: [(), (flow.float64,)] for n in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")},
    "full_like": [(2.0,), (2,), ("a",)],
    "stack": [],  # below
}
OPTIONS: list[dict[str, Any]] = [
    {}, {"dtype": flow.float64}, {"dtype": "float64"}, {"device": "cpu"}, {"device": flow.device("meta")},
    {"requires_grad": True}, {"no such": 1},
]  # fmt: skip


def told(f: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """All that a call gives: values or error, form, gradients of what it was made of, and what it looks at."""
    flow.manual_seed(3)
    try:
        found = f(*args, **options)
    except (WeftError, TypeError) as error:
        return type(error), str(error)
    parts = found if isinstance(found, tuple) else (found,)
    empty = "empty" in getattr(f, "__name__", "") or any(y.device.type == "meta" for y in parts)
    for y in parts:
        if y.requires_grad and y.node is not None and y.numel():
            flow.autograd.backward([y], [flow.ones_like(y)], retain_graph=True)
    return [
        (
            list(y.shape), y.dtype, y.stride(), y.storage_offset(), str(y.device), y.requires_grad,
            base_of(y) is args[0] if args else None, empty or y.tolist(),
            [a.grad.tolist() for a in args if isinstance(a, Tensor) and a.grad is not None],
        )
        for y in parts
    ]  # fmt: skip


def base_of(y: Tensor) -> Tensor:
    return y if y._view_of is None else base_of(y._view_of[0])


def of(name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls of a function, each with new tensors."""
    bare, behind_x = name.rpartition(".")[2], not name.endswith((".zeros", ".ones", ".empty", ".full", ".arange"))
    behind_x = behind_x and not (name.startswith("flow.rand") and not name.endswith("like"))
    tensors = [
        lambda: flow.arange(24.0).view(4, 6).clone().requires_grad_(), lambda: flow.arange(24.0).view(4, 6),
        lambda: flow.arange(24).view(6, 4).t(), lambda: flow.tensor(2.0),
    ] if behind_x else [lambda: None]  # fmt: skip
    making = not behind_x or "new_" in bare or "like" in bare
    return [
        ((() if x is None else (x,)) + args, options)
        for make in tensors for i, args in enumerate(CALLS[bare])
        for options in (OPTIONS if making and not i else OPTIONS[:1]) for x in (make(),)
    ]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in SHORT if not name.endswith("stack")])
def test_the_fast_path_is_the_function_it_was_written_for(name: str) -> None:
    f: Any = SHORT[name]
    short, long = ([told(way, *each) for each in of(name)] for way in (f, f.otherwise))
    for each, ours, theirs in zip(of(name), short, long, strict=True):
        if not (
            isinstance(ours, tuple) and isinstance(theirs, tuple)
        ):  # of two errors, texts may show a call otherwise
            assert ours == theirs, each
        else:
            assert ours[0] is theirs[0] and ours[1].partition("\n")[0] == theirs[1].partition("\n")[0], each


def test_stack_takes_the_fast_path_and_says_what_is_wrong() -> None:
    x = flow.ones(2, requires_grad=True)
    flow.stack([x, x * 2], 1).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(WeftError, match="non-empty"):
        flow.stack([])
    with pytest.raises(WeftError, match="equal size"):
        flow.stack([flow.ones(2), flow.ones(3)])


def test_a_view_that_was_made_on_the_fast_path_follows_its_base() -> None:
    x = flow.ones(4, 6, requires_grad=True)
    y = x * 1
    part, first = y[:, 2:4], y.chunk(2)[0]
    y.mul_(3.0)
    part.mul_(2.0)
    (y.sum() + first.sum()).backward()
    assert (
        x.grad is not None
        and x.grad.tolist() == [[6.0, 6.0, 12.0, 12.0, 6.0, 6.0]] * 2 + [[3.0, 3.0, 6.0, 6.0, 3.0, 3.0]] * 2
    )
