"""A rank's part is neither taken for the whole nor for a part of something else."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from bench import fuzz
from tests.ranks import on
from weft import nn
from weft.api import table
from weft.core.errors import PlacementError, SbpError, WeftError
from weft.data.loader import each
from weft.launch import spawn_threads
from weft.tensor.blob import Blob
from weft.tensor.counters import counters

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
LAYOUTS = [B, S(0), S(1), P]
VALUES = np.arange(9, dtype=np.float32).reshape(3, 3)


def pair() -> Any:
    return flow.placement("cpu", ranks=[0, 1])


def laid(sbp: Any) -> Any:
    return flow.tensor(VALUES, placement=pair(), sbp=sbp)


def summed(*parts: Any) -> Any:
    """A sum of which each rank holds the part that is given."""
    return flow.tensor(parts[flow.env.get_rank()]).to_global(placement=pair(), sbp=P)


WHOLE: dict[str, Callable[[Any], Any]] = {
    "apply_": lambda x: x.clone().apply_(lambda v: v * v + 1).numpy(),
    "map_": lambda x: x.clone().map_(x * 2, lambda a, b: a * b + 1).numpy(),
    "map_ of another layout": lambda x: x.clone().map_(
        x.to_global(sbp=B) if x.is_global else x, lambda a, b: a * b + 1
    ).numpy(),
    "dlpack": lambda x: torch.from_dlpack(x).numpy(), "torch": lambda x: torch.as_tensor(x).numpy(),
}  # fmt: skip


@on(2)
def test_what_reads_all_of_a_tensor_reads_all_of_a_global_one() -> None:
    for name, read in WHOLE.items():
        for sbp in LAYOUTS:
            assert read(laid(sbp)).tolist() == read(flow.tensor(VALUES)).tolist(), (name, sbp)


@on(2)
def test_what_takes_local_tensors_refuses_global_ones() -> None:
    for sbp in LAYOUTS:
        for take in (lambda x: x.resize_(9), lambda x: x.resize_as_(x[0]), flow.utils.data.TensorDataset):
            with pytest.raises(SbpError, match="this rank has a part"):
                take(laid(sbp))
        assert flow.Tensor(laid(sbp)).tolist() == flow.tensor(laid(sbp)).tolist() == VALUES.tolist()
    assert flow.Tensor(flow.ones(4), placement=pair(), sbp=S(0)).to_local().shape == (2,)


@on(2)
def test_parts_of_a_sum_keep_its_dtype() -> None:
    half = flow.zeros(2, dtype=flow.float16, placement=pair(), sbp=P)
    assert half.copy_(summed([70000.0, 1.0], [-69999.0, 1.0])).tolist() == [1.0, 2.0]
    assert summed([0, 0], [1, 1]).copy_(summed([0.5, 1.0], [0.5, 2.6])).tolist() == [1, 3]
    whole = summed(*(np.array([n], np.int32) for n in (2**31 - 1, 1)))
    for of in (lambda x: x.sum(), lambda x: x * 1.0, lambda x: x / 2, lambda x: flow.cat([x, x.long()])[:1]):
        assert of(whole).item() == of(flow.tensor(np.array([-(2**31)], np.int32))).item()


COPIES: dict[str, Callable[[Any], Any]] = {
    "flatten": lambda x: x.t().flatten(), "reshape": lambda x: x.t().reshape(1, 9), "ravel": lambda x: x.t().ravel(),
    "of a view": lambda x: x[:, :2].t().reshape(-1), "contiguous": lambda x: x.t().contiguous(),
    "a view": lambda x: x.t().reshape(3, 3), "of one row": lambda x: x[:1].t().reshape(3),
}  # fmt: skip


@on(3)
def test_what_one_device_would_copy_is_a_copy_on_every_rank() -> None:
    """Over 3 ranks each part is one row or column, which could be viewed in any order."""
    place = flow.placement("cpu", ranks=[0, 1, 2])
    for name, made in COPIES.items():
        for sbp in LAYOUTS:
            x, alone = flow.tensor(VALUES, placement=place, sbp=sbp), flow.tensor(VALUES)
            for t in (y := made(x), z := made(alone)), (x, alone):
                for one in t:
                    one.mul_(3).add_(1)
            assert (y.tolist(), x.tolist()) == (z.tolist(), alone.tolist()), (name, sbp)


@on(2)
def test_views_tell_of_a_gradient_that_their_base_got() -> None:
    for sbp in LAYOUTS:
        learns, base = laid(sbp).requires_grad_(), laid(sbp) * 0
        row, deep, copy = base[0], base.t()[1:], base.t().reshape(-1)
        base[:, [0, 1]] = learns[:, [1, 0]]
        assert row.requires_grad and deep.requires_grad and not row.is_leaf and not copy.requires_grad
        (row.sum() + deep.sum()).backward()
        assert learns.grad.tolist() == [[2.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


@on(2)
def test_a_tensor_of_the_other_dtype_and_place_is_itself() -> None:
    x, other = laid(S(0)), laid(B)
    x.type_as(other).fill_diagonal_(9)
    x.to(other)[0, 1] = 7
    assert x.tolist() == [[9.0, 7.0, 2.0], [3.0, 9.0, 5.0], [6.0, 7.0, 9.0]]


@on(2)
def test_masks_where_values_are_put() -> None:
    for sbp in LAYOUTS:
        for mask in ([True, False, True], VALUES > 4):
            x, alone = laid(sbp), torch.tensor(VALUES)
            new = alone[torch.tensor(mask)] * 2
            x.index_put_((flow.tensor(mask, placement=pair(), sbp=S(0)),), flow.tensor(new, placement=pair(), sbp=B))
            assert x.tolist() == alone.index_put_((torch.tensor(mask),), new).tolist()


def test_a_first_write_is_told_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "overwritten", counters.overwritten)
    found = importlib.util.find_spec("weft.tensor.written")
    assert found is not None and found.loader is not None
    anew = importlib.util.module_from_spec(found)  # as in a process that starts
    found.loader.exec_module(anew)
    blob = Blob(torch.ones(1))
    anew.mark([blob])
    assert blob.written != 0


def guesses() -> list[tuple[Any, ...]]:
    """Arguments for in-place functions that aren't ops."""
    x, at = flow.tensor(VALUES / 9), flow.tensor([2, 0, 1])
    mask, row, one = x > 0.5, x[0], x[1, 1]
    return [(x, x), (x, x, x), (x, 0, at, x), (x, 0, at, 0.5), (x, 0, at, one), (x, mask, x), (x, mask, one), (x, mask),
            (x, at, row), (x, [at], row), (x, (at, at), one), (x, 0.5, x), (x, one, x)]  # fmt: skip


def calls(wanted: Callable[[str], bool]) -> Iterator[tuple[str, Any, list[Any]]]:
    """The public functions of these names, with arguments; `resize_as_` reads the shape alone."""
    made = fuzz.Maker(0)
    for place in ("flow", "tensor", "neural"):
        for name, f in table.listed(place):
            if wanted(name) and "random" not in (f.__module__ or ""):
                rows = [made._copied(*row) for row in made._rows(f"{place}.{name}")[:2]]
                for args in rows or (guesses() if name.endswith("_") else []):
                    yield f"{place}.{name}", f, list(args)


def tensors(value: Any) -> list[Any]:
    found: list[Any] = []
    each(value, flow.Tensor, lambda t: found.append(t) or t)
    return found


def whole(t: Any) -> Any:
    return t.to_global(placement=pair(), sbp=B)


def turned(value: Any, k: int | None = None, turn: Any = whole) -> Any:
    """A copy in which the k-th tensor is global, or all are."""
    at = iter(range(100))
    return each(value, flow.Tensor, lambda t: turn(t.clone()) if k in (None, next(at)) else t.clone())


@pytest.mark.filterwarnings("ignore")
def test_no_local_tensor_is_overwritten_with_parts_of_global_ones() -> None:
    given = []
    for name, f, args in calls(lambda name: name.endswith("_") and name[0] != "_" and name != "resize_as_"):
        with contextlib.suppress(WeftError, TypeError, AttributeError):
            f(*turned(args, -1))
            given += [(name, f, args, k) for k in range(1, len(tensors(args)))]
    assert len({name for name, *_ in given}) > 60

    def swept() -> None:
        for name, f, args, k in given:
            mixed = turned(args, k)
            with pytest.raises(PlacementError, match=r"to_local\(\)") as error:
                f(*mixed)
            assert mixed[0].tolist() == args[0].tolist(), f"{name}: {error.value}"

    spawn_threads(2, swept, deadline=120)


@pytest.mark.filterwarnings("ignore")
def test_an_out_is_global_where_the_result_is() -> None:
    given = []
    for name, f, args in calls(lambda name: not name.endswith("_")):
        with contextlib.suppress(Exception):  # that takes none
            f(*turned(args, -1), out=turned(made := f(*turned(args, -1)), -1))
            given += [(name, f, args, made)] if tensors(args) and tensors(made) else []
    assert len({name for name, *_ in given}) > 200

    def swept() -> None:
        for name, f, args, made in given:
            for operands, outs in ((turned(args), made), (args, turned(made))):
                try:
                    f(*operands, out=outs)
                except PlacementError as error:
                    assert "to_global(" in str(error) and "to_local()" in str(error), name
                else:
                    raise AssertionError(f"{name}: out {outs} of {operands}")

    spawn_threads(2, swept, deadline=120)


def _key(i: Any) -> Callable[[Any, Any], Any]:
    return lambda x, g: x.__setitem__(i, g[i])


def _attribute(name: str) -> Callable[[Any, Any], Any]:
    return lambda x, g: setattr(x, name, g)


ASSIGNED: dict[str, Callable[[Any, Any], Any]] = {
    "ellipsis": _key(...), "slice": _key(slice(0, 2)), "int": _key(0), "list": _key([2, 0]), "tuple": _key((0, 1)),
    "mask": lambda x, g: x.__setitem__(x > 3, g[g > 3]), "global mask": lambda x, g: x.__setitem__(g > 3, 0.0),
    "a row": lambda x, g: x[0].copy_(g[0]), "data": _attribute("data"), "grad": _attribute("grad"),
    "+=": lambda x, g: x.__iadd__(g), "set_": lambda x, g: x.set_(g),
    "a parameter": lambda x, g: setattr(nn.Parameter(x), "data", g),
}  # fmt: skip


@on(2)
def test_no_assignment_takes_a_part() -> None:
    for name, assign in ASSIGNED.items():
        for sbp in LAYOUTS:
            x = flow.tensor(VALUES)
            with pytest.raises((PlacementError, SbpError), match=r"to_local\(\)"):
                assign(x, laid(sbp))
            assert x.is_local and x.tolist() == VALUES.tolist(), name
    with pytest.raises(PlacementError, match=r"to_global\("):
        laid(B).data = flow.tensor(VALUES)


def _through(backward: Callable[..., Any]) -> Callable[..., Any]:
    """The call of a custom function with this backward."""
    made = type("Made", (flow.autograd.Function,), {
        "forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(backward),
    })  # fmt: skip
    return made.apply


def _hooked(x: Any, hook: Any) -> None:
    x.register_hook(hook)
    (x * 2).sum().backward()


def _node_hooked(x: Any, register: str, hook: Any) -> None:
    y = x * 2
    getattr(y.grad_fn, register)(hook)
    y.sum().backward()


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "backward": lambda x, g: (x * 2).backward(g), "of a leaf": lambda x, g: x.backward(g),
    "autograd.backward": lambda x, g: flow.autograd.backward([x.sum(), x * 2], [None, g]),
    "grad": lambda x, g: flow.autograd.grad(x * 2, x, g),
    "of itself": lambda x, g: flow.autograd.grad(x, x, g),
    "a batch": lambda x, g: flow.autograd.grad(x * 2, x, flow.stack([g, g]), is_grads_batched=True),
    "vjp": lambda x, g: flow.autograd.functional.vjp(lambda t: t * 2, x, g),
    "a leaf's hook": lambda x, g: _hooked(x, lambda _: g),
    "a hook": lambda x, g: _hooked(x * 1, lambda _: g),
    "a node's hook": lambda x, g: _node_hooked(x, "register_hook", lambda made, of: (g, *made[1:])),
    "a node's hook before": lambda x, g: _node_hooked(x, "register_prehook", lambda of: (g,)),
    "a custom function": lambda x, g: _through(lambda ctx, dy: g)(x).sum().backward(),
    "a custom function within": lambda x, g: _through(lambda ctx, dy: g)(x * 1).sum().backward(),
    "one that sums": lambda x, g: _through(lambda ctx, dy: flow.stack([g, g]))(x).sum().backward(),
    "to grad()": lambda x, g: flow.autograd.grad(_through(lambda ctx, dy: g)(x).sum(), x),
    "after": lambda x, g: (x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", g)), x.sum().backward()),
    "a module's hook": lambda x, g: _module_hooked(x, g),
}  # fmt: skip


def _module_hooked(x: Any, g: Any) -> None:
    module = nn.Identity()
    module.register_full_backward_hook(lambda m, made, of: (g,))
    (module(x * 1) * 2).sum().backward()


@on(2)
def test_a_gradient_is_global_where_its_tensor_is() -> None:
    for name, flows in GRADIENTS.items():
        for sbp in (B, S(0)):
            for x, g in ((flow.tensor(VALUES), laid(sbp)), (laid(sbp), flow.tensor(VALUES))):
                x.requires_grad_()
                with pytest.raises(SbpError, match=r"local, and the gradient is|global, and the gradient is"):
                    flows(x, g)
                if name != "after":
                    assert x.grad is None, name
