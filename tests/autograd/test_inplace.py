"""Ops in place: versions, leaves, views of what is between; each program runs in torch as well."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft.autograd import freshness
from weft.core.errors import AutogradError, ShapeError

Program = Callable[[Any, Any], Any]  # (module, leaf) to a tensor


def relu_chain(m: Any, x: Any) -> Any:
    return (x * 2).add_(x).mul_(3.0).sub_(x * x).relu_()


def add_after_read(m: Any, x: Any) -> Any:
    h = x * 2
    y = h + 1
    h.add_(1.0)
    return y * h


def scalar_and_tensor(m: Any, x: Any) -> Any:
    h = x * 1
    h += 2
    h -= x
    h *= x
    h /= 4.0
    return h


def row_of_a_value(m: Any, x: Any) -> Any:
    h = x * 2
    h[1].mul_(5.0)
    return h * h


def slice_of_a_slice(m: Any, x: Any) -> Any:
    h = x * 2
    h[1:][:, 1:3].add_(x[1:, 1:3])
    return h * x


def through_a_transpose(m: Any, x: Any) -> Any:
    h = x * 2
    h.transpose(0, 1)[0].mul_(x[:, 0])
    return h * h


def through_a_reshape(m: Any, x: Any) -> Any:
    h = x * 2
    h.view(-1)[2:5].mul_(3.0)
    return h * h


def view_made_before_the_base_changes(m: Any, x: Any) -> Any:
    h = x * 2
    row = h[0]
    h.mul_(3.0)
    return h + row


def set_item(m: Any, x: Any) -> Any:
    h = x * 2
    h[0] = x[1] * 7
    h[:, 2] = 5.0
    return h * h


def copy_into_a_view(m: Any, x: Any) -> Any:
    h = x * 2
    h[1].copy_(x[0] * 3)
    return h * h


def fill_and_zero(m: Any, x: Any) -> Any:
    h = x * 2
    h[0].zero_()
    h[1].fill_(4.0)
    return h * h


def into_a_plain_buffer(m: Any, x: Any) -> Any:
    buffer = m.zeros(3, 4)
    buffer[0] = x[0]
    buffer[1:].copy_(x[1:] * 2)
    return buffer * buffer


def twice_into_the_same_view(m: Any, x: Any) -> Any:
    h = x * 2
    row = h[1]
    row.mul_(3.0)
    row.add_(x[0])
    return h * h + row


def data_written_after_it_is_saved(m: Any, x: Any) -> Any:
    h = x * 2
    y = h * h
    h.data.mul_(3.0)
    h.data[0] = 1.0
    x.detach().data.copy_(m.ones(3, 4))
    return y + h.data + h._version


def through_a_split(m: Any, x: Any) -> Any:
    h = x * 2
    part = h.narrow(1, 1, 2)
    part.mul_(2.0)
    return h.sum(1) * h.sum(1)


def through_unsqueeze_and_expand(m: Any, x: Any) -> Any:
    h = x * 2
    h.unsqueeze(0).squeeze(0)[2].add_(1.0)
    return h * h


def copy_that_reshape_had_to_make(m: Any, x: Any) -> Any:
    h = x * 2
    part = h.transpose(0, 1).reshape(-1)
    part.mul_(3.0)
    return h * h + part.sum()


def old_copy_that_reshape_had_to_make(m: Any, x: Any) -> Any:
    h = x * 2
    part = h.transpose(0, 1).reshape(-1)
    h.mul_(3.0)
    return h * h + part.sum()


def old_view_of_a_view(m: Any, x: Any) -> Any:
    h = x * 2
    row = h[1:]
    cell = row[0, :2]
    h.mul_(x)
    row.add_(1.0)
    return h * h + cell.sum() + row.sum()


def old_view_written(m: Any, x: Any) -> Any:
    h = x * 2
    a, b = h[0], h[0]
    a.mul_(3.0)
    b.mul_(x[1])
    return h * h + a * b


def old_parts(m: Any, x: Any) -> Any:
    h = x * 2
    a = h.narrow(0, 0, 1)
    h.mul_(3.0)
    return a * h


def composed_of_what_was_there(m: Any, x: Any) -> Any:
    places = m.tensor([[0, 1, 0, 2], [1, 1, 2, 0], [0, 0, 0, 1]])
    h = (x * 2).scatter_reduce_(0, places, x, "amax") + (x * 2).index_reduce_(0, places[1], x[[0, 1, 2, 0]], "amin")
    k = (x * 2).scatter_reduce_(0, places, x, "prod", include_self=False) + (x * 2).xlogy_(x.abs())
    return h + k + (x * 2).atan2_(x) + (x * 2).hypot_(x) + (x * 2).cumprod_(1) + (x * 2).clamp_(x - 1, x * x)


def functions_kept_by_what_goes_in_alone(m: Any, x: Any) -> Any:
    return (x * 0.1).erf_().mul_(2.0).atan_().add_(x).sinc_().add_(m.sinc(x * 0))


PROGRAMS = [v for v in list(globals().values()) if callable(v) and getattr(v, "__module__", "") == __name__]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program: Program) -> None:
    data = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))
    x, tx = flow.tensor(data.numpy(), requires_grad=True), data.clone().requires_grad_()
    y, ty = program(flow, x), program(torch, tx)
    torch.testing.assert_close(torch.from_numpy(y.detach().numpy()), ty.detach())
    y.sum().backward()
    ty.sum().backward()
    torch.testing.assert_close(torch.from_numpy(x.grad.numpy()), tx.grad)


@pytest.mark.parametrize("name", ["add_", "relu_", "mul_", "zero_", "fill_", "copy_"])
def test_leaves_are_refused(name: str) -> None:
    x = flow.ones(2, requires_grad=True)
    args = {"relu_": (), "zero_": (), "copy_": (flow.ones(2),)}.get(name, (1.0,))
    with pytest.raises(AutogradError, match="leaf"):
        getattr(x, name)(*args)
    with pytest.raises(AutogradError, match="leaf"):
        getattr(x[:1], name)(*[a[:1] if isinstance(a, flow.Tensor) else a for a in args])
    with flow.no_grad():
        getattr(x, name)(*args)
    assert x.requires_grad and x.is_leaf


@pytest.mark.parametrize(
    ("op", "save"),
    [("exp", "exp"), ("mul", lambda h: h * h), ("sigmoid", "sigmoid"), ("tanh", "tanh"), ("matmul", lambda h: h @ h)],
)
def test_a_saved_value_that_was_overwritten_names_the_op(op: str, save: Any) -> None:
    x = flow.ones(2, 2, requires_grad=True)
    h = x * 2
    y = save(h) if callable(save) else getattr(h, save)()
    target = h if callable(save) else y
    with flow.no_grad():
        target.add_(1.0)
    with pytest.raises(AutogradError, match=f"`{op}` needs a tensor of shape"):
        y.sum().backward()


def test_overwriting_what_is_not_needed_is_no_error() -> None:
    x = flow.ones(2, requires_grad=True)
    h = x * 2
    y = h + 1.0
    h.mul_(5.0)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_optimizers_write_is_seen_by_backward() -> None:
    w = flow.ones(2, requires_grad=True)
    y = (w * w).sum()
    with flow.no_grad():
        w.add_(1.0)
    with pytest.raises(AutogradError, match="overwrote"):
        y.backward()


def test_a_result_of_another_shape_does_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"shape \[2\].*\[2, 2\]"):
        flow.ones(2).add_(flow.ones(2, 2))


def test_detached_memory_is_shared_and_versions_with_it() -> None:
    x = flow.ones(2, requires_grad=True)
    h = x * 2
    y = (h * h).sum()
    h.detach().zero_()
    with pytest.raises(AutogradError, match="overwrote"):
        y.backward()


def test_requires_grad_follows_into_a_buffer() -> None:
    buffer = flow.zeros(2)
    x = flow.ones(2, requires_grad=True)
    buffer.add_(x)
    assert buffer.requires_grad and not buffer.is_leaf
    buffer.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_operands_in_a_list_are_looked_at_too() -> None:
    x = flow.ones(2, 2).requires_grad_()
    a = x * 1
    y = flow.einsum("ij,jk->ik", a, a)
    a.mul_(2)
    with pytest.raises(AutogradError, match=r"einsum.*overwrote"):
        y.sum().backward()


VIEWS = {
    "slice": lambda t: t[:1],
    "view": lambda t: t.view(2),
    "nested": lambda t: t[:2][:1],
    "detached": lambda t: t.detach(),
    "copy": lambda t: t[None].expand(2, 2).reshape(4)[:2],
    "turned": lambda t: t.detach().unsqueeze_(0),
    "parts": lambda t: t.split(1)[1],
}
WRITES = {
    "number": lambda t, w: t.add_(1),
    "tensor": lambda t, w: t.mul_(w),
    "element": lambda t, w: t.__setitem__(0, w[0]),
}


@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode", "enable_grad"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_that_was_not_recorded_is_written_as_in_torch(view: str, mode: str) -> None:
    if (view, mode) in (("copy", "inference_mode"), ("parts", "enable_grad")):
        pytest.skip("torch refuses to write inference tensors, and views that were made several at once")

    def facts(lib: Any, base: str, write: str, wants: bool, again: bool) -> Any:
        x = lib.tensor([2.0, 3.0], requires_grad=base != "plain")
        w = lib.tensor([5.0], requires_grad=wants)
        y = x * 2 if base == "computed" else x
        with getattr(lib, mode)():
            v = VIEWS[view](y)
        try:
            v = v[:1] if again else v
            WRITES[write](v, w)
        except RuntimeError as error:
            return "no_grad mode" in str(error) or "inference mode" in str(error) or "leaf" in str(error)
        out = (y * lib.tensor([1.0, 10.0])).sum() + v.sum() * 100
        if out.requires_grad:
            out.backward()
        return [None if t.grad is None else t.grad.tolist() for t in (x, w)], y.tolist(), v.tolist()

    for base, write, *rest in itertools.product(("computed", "leaf", "plain"), WRITES, (False, True), (False, True)):
        assert facts(flow, base, write, *rest) == facts(torch, base, write, *rest), (base, write, *rest)


@pytest.mark.parametrize("where", ["local", "global", "graph"])
def test_a_view_that_was_not_recorded_stays_out_of_gradients(where: str) -> None:
    def run(w: flow.Tensor) -> flow.Tensor:
        base = flow.zeros(3) if where != "global" else flow.zeros(3, placement=P, sbp=flow.sbp.broadcast)
        with flow.no_grad():
            view = base[:2]
        with flow.no_grad():
            view.add_(1)
        assert where == "graph" or view.tolist() == [1, 1]
        with pytest.raises(AutogradError, match="A view was created in no_grad mode and is being modified inplace"):
            view.mul_(w)
        base.mul_(w)
        assert where == "graph" or view.detach().tolist() == [2, 2]
        with pytest.raises(AutogradError, match="its base or another view of its base has been modified"):
            view * 1
        return base.sum()

    P = flow.placement("cpu", ranks=[0])
    w = flow.full((1,), 2.0) if where != "global" else flow.full((1,), 2.0, placement=P, sbp=flow.sbp.broadcast)
    if where != "graph":
        run(w.requires_grad_())
        return

    class Graph(flow.nn.Graph):
        def build(self, w: flow.Tensor) -> flow.Tensor:
            return run(w.requires_grad_())

    assert Graph()(w).item() == 4.0


def test_the_time_to_follow_a_write_grows_with_the_number_of_views(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(freshness, "_made_here", lambda t, made=freshness._made_here: asked.append(t) or made(t))
    x = flow.ones(2, requires_grad=True)
    base = view = x * 1
    for _ in range(100):
        view = view[:]
    base.mul_(3)
    view.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0] and len(asked) < 300
