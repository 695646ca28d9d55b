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
    **{
        f"{place}.{n}": f
        for place in ADAPTERS
        for n, f in ADAPTERS[place].items()
        if hasattr(f, "otherwise") and not hasattr(f, "in_one")
    },
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
    **{name: [(), (1,), (0, True), (3,), ("a",)] for name in ("max", "min")},
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
        # of two errors, texts may show a call otherwise
        if not (isinstance(ours, tuple) and isinstance(theirs, tuple)):
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


A, B, C, V, I = (flow.randn(*s, dtype=flow.float64) for s in ((4, 4), (4, 4), (2, 4, 4), (4,), (1,)))
IDS, HOLES = flow.tensor([3, 0, 3, 1]), flow.where(A > 0.5, float("nan"), A)
# (arguments, options) by name: functions that torch has as one kernel
FAR = flow.tensor([1, 9])
SQUARE = flow.eye(3) * 2 + 0.1
ROWS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "addcmul addcdiv addcmul_ addcdiv_": [
        ((A, B, V + 5), {}),
        ((A, B, V + 5), {"value": 2}),
        ((A, IDS + 1, B), {}),
        ((A, V, C), {}),
    ],
    "addmm addmm_": [((A, A, B), {}), ((A, A, B), {"beta": 0, "alpha": 2}), ((A, A, C), {})],
    "addmv addmv_": [((V, A, V), {}), ((V, A, V), {"beta": 0.5})],
    "baddbmm baddbmm_": [((C, C, C), {}), ((C, C, C), {"alpha": 3})],
    "addr addr_": [((A, V, V), {}), ((A, V, V), {"beta": 2})],
    "addbmm addbmm_": [((A, C, C), {}), ((A, C, C), {"alpha": 0})],
    "renorm renorm_": [((A, 2, 0, 1.0), {}), ((A, 1, 5, 1.0), {})],
    "float_power float_power_": [((A * A, 2), {}), ((A * A, B), {}), ((A.float(), 2), {})],
    "uniform_ normal_": [((V,), {}), ((V, 0.0, 2.0), {}), ((V,), {"generator": None})],
    "exponential_ bernoulli_": [((V,), {}), ((V, 0.5), {}), ((V, -1), {}), ((V, I.abs() % 1), {})],
    "hstack vstack dstack column_stack": [(([A, B],), {}), (([],), {}), (([A, V[:2]],), {})],
    "histc": [((A, 4), {}), ((A,), {"min": -1, "max": 1}), ((A, 0), {})],
    "count_nonzero": [((IDS,), {}), ((A, 0), {}), ((A, 3), {})],
    "pixel_shuffle": [((C.view(1, 4, 4, 2), 2), {}), ((A, 2), {})],
    "pixel_unshuffle": [((C.view(1, 2, 4, 4), 2), {}), ((A, 2), {})],
    "channel_shuffle": [((C.view(1, 4, 4, 2), 2), {}), ((C.view(1, 4, 4, 2), 3), {})],
    "linalg_cross": [((A[:, :3], B[:, :3]), {}), ((A[:3], B[:3]), {"dim": 0}), ((A, B), {})],
    "kron": [((A, B), {}), ((V, A), {})],
    "inner vdot": [((V, V), {}), ((A, V), {}), ((V, I), {})],
    "outer": [((V, I), {}), ((A, V), {})],
    "trace": [((A,), {}), ((IDS,), {}), ((IDS.view(2, 2),), {})],
    "isin": [
        ((IDS, flow.tensor([3])), {}),
        ((IDS, flow.tensor([3])), {"invert": True}),
        ((IDS, 3), {}),
        ((3, IDS), {}),
    ],
    "equal": [((A, A), {}), ((A, B), {}), ((A, V), {}), ((A, A.float()), {}), ((A, 1), {})],
    "diagflat": [((V,), {}), ((A, 1), {})],
    "take": [((A, IDS), {}), ((A, IDS + 99), {})],
    "matrix_norm": [((A,), {}), ((A, "nuc"), {}), ((A, 1, (0, 1), True), {}), ((V,), {})],
    "vector_norm": [((A,), {}), ((A, 3, 1), {}), ((A, 0), {}), ((A.half(), 2), {}), ((A, "fro"), {})],
    "nansum reduce_nansum": [((HOLES,), {}), ((HOLES, 1, True), {}), ((HOLES,), {"dtype": flow.float32})],
    "nanmean": [((HOLES,), {}), ((HOLES, (0, 1)), {})],
    "logsumexp": [((A, 1), {}), ((A, (0, 1), True), {}), ((IDS, 0), {}), ((A.half(), 0), {}), ((A, 5), {})],
    "dist": [((A, B), {}), ((A, B, 1), {}), ((A, V), {})],
    "cdist": [((A, B), {}), ((A, B, 1.0), {}), ((A, V), {}), ((A, B), {"compute_mode": "no"})],
    "tensordot": [((A, B), {}), ((A, B, 1), {}), ((A, C), {"dims": ([0], [1])}), ((A, V, 2), {})],
    "pdist": [((A,), {}), ((A, 1.0), {})],
    "combinations": [((V,), {}), ((V, 3, True), {}), ((A,), {})],
    "cholesky_inverse": [((SQUARE,), {}), ((SQUARE, True), {}), ((V,), {})],
    "multi_margin_loss": [((A, flow.tensor([0, 1, 2, 3])), {"reduction": r}) for r in ("mean", "none", "most")],
    "multilabel_margin_loss": [((A, flow.tensor([[0, 2, -1, 0]] * 4)), {"reduction": r}) for r in ("sum", "none")],
    "cosine_similarity": [((A, B), {}), ((A, V), {"dim": 0}), ((IDS, IDS, 0), {})],
    "pairwise_distance": [((A, B), {}), ((A, B, 1.0), {"keepdim": True})],
    "glu": [((A,), {}), ((A, 0), {}), ((A[:, :3],), {})],
    "prelu": [((A, V), {}), ((A, I), {}), ((A, V[:3]), {})],
    "select_scatter": [((A, V, 1, 2), {}), ((A, I, 1, 2), {}), ((A, V, 1, 9), {})],
    "aminmax": [((A,), {}), ((A,), {"dim": 1, "keepdim": True})],
    "norm": [
        ((A,), {}),
        ((A, 1), {}),
        ((A, "fro"), {}),
        ((A,), {"p": 2, "dim": 1}),
        ((A, 2, 0, True), {}),
        ((IDS,), {}),
    ],
    "index_copy index_copy_": [
        ((A, 0, IDS[:2], B[:2]), {}),
        ((A.t(), 1, IDS[:2], B[:, :2]), {}),
        ((A, 0, IDS, V), {}),
        ((A, 0, FAR, B[:2]), {}),
    ],
    "index_fill index_fill_": [
        ((A, 0, IDS, 2.0), {}),
        ((A.t(), 1, IDS.int(), 2), {}),
        ((A, 0, IDS, V), {}),
        ((A, 1, FAR, 2.0), {}),
        ((A, 5, IDS, 2.0), {}),
    ],
    "scatter_reduce scatter_reduce_": [
        ((A, 0, IDS.expand(4, 4), B, reduce), {"include_self": own})
        for reduce in ("sum", "mean", "prod", "amax", "most")
        for own in (True, False)
    ],
    "put put_": [((A, IDS, V), {}), ((A, IDS, V, True), {}), ((A, IDS, V[:2]), {}), ((A, FAR * 2, V[:2]), {})],
    "masked_scatter masked_scatter_": [
        ((A, B > 0, C), {}),
        ((A.t(), V > 0, B), {}),
        ((A, B, C), {}),
        ((A, A > 0, A[:0]), {}),
    ],
    "one_hot": [((IDS, 5), {}), ((IDS,), {}), ((IDS, 2), {}), ((IDS, 5, 2, 1), {}), ((V, 5), {})],
}
IN_ONE = {name: rows for names, rows in ROWS.items() for name in names.split()}


@pytest.mark.parametrize("place, name", [
    (place, n) for place in ADAPTERS for n, f in ADAPTERS[place].items() if hasattr(f, "in_one")
])  # fmt: skip
def test_one_kernel_does_what_the_composition_does(place: str, name: str) -> None:
    f: Any = ADAPTERS[place][name]

    def told(way: Any, args: Any, options: Any, wants: bool) -> Any:
        flow.manual_seed(3)
        first, *rest = ([t.clone() for t in a] if isinstance(a, list) else a.clone() if isinstance(a, Tensor) else a
                        for a in args)  # fmt: skip
        if wants and isinstance(first, Tensor) and first.dtype.is_floating_point:
            first.requires_grad = True
            first = first * 1 if name.endswith("_") else first
        before = first.detach().clone() if isinstance(first, Tensor) else None
        try:
            made = way(first, *rest, **options)
        except WeftError as error:
            assert before is None or flow.allclose(first, before, equal_nan=True)  # nothing was written
            return type(error)
        assert (made is first) == name.endswith("_")
        return [
            y if isinstance(y, bool) else (y.dtype, y.requires_grad, y.stride(), y.double().numpy().round(6).tolist())
            for y in (made if isinstance(made, tuple) else (made,))
        ]

    for args, options in IN_ONE[name]:
        for wants in (False, True):
            ours, theirs = (told(way, args, options, wants) for way in (f, f.otherwise))
            assert ours == theirs, (args, options, wants)
