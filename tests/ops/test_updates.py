"""Updates over lists: what doesn't fit is refused before anything is written, whatever road the call takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import weft as flow
from tests.graphs import Calls, Trains
from tests.ranks import on
from weft.core.errors import DtypeError, ShapeError, WeftError
from weft.ops import OPS

UPDATES = ("sgd_update", "adam_update", "adamw_update", "adagrad_update", "rmsprop_update", "adadelta_update")
LACKING = {"momenta", "most", ("rmsprop_update", "means")}  # lists that may be empty
PLACE = flow.placement("cpu", [0])


def lists_of(name: str) -> list[str]:
    return [p.name for p in OPS[name].params if p.kind == "tensors"]


def arguments(name: str, change: Callable[[str, list[Any]], list[Any]], **options: Any) -> dict[str, Any]:
    made = {n: change(n, [flow.ones(4, 6, **options), flow.ones(6, **options)]) for n in lists_of(name)}
    step = {"step": flow.ones((), **options)} if "step" in OPS[name].names else {}
    return made | step | {"lr": 0.1}


def changed(which: str, tensors: list[Any]) -> Callable[[str, list[Any]], list[Any]]:
    return lambda name, given: tensors if name == which else given


@pytest.mark.parametrize("name", UPDATES)
def test_lists_that_do_not_fit_are_refused_by_name(name: str) -> None:
    update = getattr(flow._C, name)
    for which in lists_of(name)[1:]:
        short, small = [flow.ones(4, 6)], [flow.ones(4, 6), flow.ones(3)]
        wide = [flow.ones(4, 6), flow.ones(6, dtype=flow.float64)]
        for tensors, kind, words in (
            (short, ShapeError, f"{which} must be as many as params, 2; got 1"),
            (small, ShapeError, rf"{which}\[1\] must have the shape of params\[1\], \[6\]; got \[3\]"),
            (wide, DtypeError, rf"{which}\[1\] must have the dtype of params\[0\], float32; got float64"),
        ):
            given = arguments(name, changed(which, tensors))
            with pytest.raises(kind, match=words):
                update(**given)
            assert all(bool((p == 1).all()) for p in given["params"])  # nothing was written
        if not LACKING & {which, (name, which)}:
            with pytest.raises(ShapeError, match=f"{which} must be as many as params, 2; got 0"):
                update(**arguments(name, changed(which, [])))
    if "step" in OPS[name].names:
        with pytest.raises(ShapeError, match="step must have one element"):
            update(**arguments(name, changed("", [])) | {"step": flow.ones(0)})


@pytest.mark.parametrize("name", UPDATES)
def test_they_are_refused_in_graphs_and_of_global_tensors(name: str) -> None:
    everywhere: dict[str, Any] = {"placement": PLACE, "sbp": flow.sbp.broadcast}
    update, step = getattr(flow._C, name), [flow.ones(())] * ("step" in OPS[name].names)
    names = lists_of(name)

    def call(params: Any, grads: Any, state: Any, *step: Any) -> Any:
        update([params], [grads], *([state] for _ in names[2:]), *step, 0.1)
        return params * 1

    with pytest.raises(WeftError, match=r"grads\[0\] must have the shape of params\[0\]"):
        Calls(call)(flow.ones(300, 200), flow.ones(4, 6), flow.ones(300, 200), *step)
    with pytest.raises(WeftError, match=r"grads\[1\] must have the shape of params\[1\]"):
        update(
            **arguments(
                name, changed("grads", [flow.ones(4, 6, **everywhere), flow.ones(3, **everywhere)]), **everywhere
            )
        )


def test_the_kernels_that_optimizers_call_are_the_same() -> None:
    for name in UPDATES:
        assert inspect.unwrap(OPS[name].kernel) is inspect.unwrap(OPS[name].trusted)


class Copies(TorchDispatchMode):
    """Counts the kernels that copy images' weights."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in (torch.ops.aten.copy_.default, torch.ops.aten.clone.default) and args[0].dim() == 4
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_weights_with_channels_innermost_are_updated_in_their_order(kind: str, graph: bool) -> None:
    torch.manual_seed(0)
    layer: Any = torch.nn.Conv2d(8, 16, 3)
    theirs = layer.to(memory_format=torch.channels_last)
    mine: Any = flow.from_torch(theirs)
    options = {"lr": 0.1, "momentum": 0.9} if kind == "SGD" else {"lr": 0.1}
    x = torch.rand(2, 8, 6, 6).contiguous(memory_format=torch.channels_last)
    optimizers = [getattr(lib.optim, kind)(m.parameters(), **options) for lib, m in ((torch, theirs), (flow, mine))]

    def step(model: Any, batch: Any, optimizer: Any) -> Any:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    trained = Trains(mine, optimizers[1])
    run: Callable[[], Any] = (lambda: trained(flow.from_torch(x)).item()) if graph else (
        lambda: step(mine, flow.from_torch(x), optimizers[1])
    )  # fmt: skip
    for _ in range(3):
        step(theirs, x, optimizers[0])
        run()
    assert mine.weight.stride() == theirs.weight.stride()
    assert torch.allclose(mine.weight.to_torch(), theirs.weight, atol=1e-5)
    if not graph:
        with Copies() as copies:
            run()
        assert not copies.count


@on(2)
def test_what_moves_between_ranks_and_files_keeps_channels_innermost() -> None:
    P, (S, B) = flow.placement("cpu", ranks=[0, 1]), (flow.sbp.split, flow.sbp.broadcast)
    model: Any = flow.nn.Conv2d(3, 4, 3).to(memory_format=flow.channels_last).to_global(placement=P, sbp=B)
    optimizer = flow.optim.Adam(model.parameters())
    x = flow.rand(4, 3, 6, 6).contiguous(memory_format=flow.channels_last).to_global(placement=P, sbp=B)
    model(x.to_global(sbp=S(0))).sum().backward()
    optimizer.step()
    for t in (model.weight, model.weight.grad, x.to_global(sbp=S(1))):
        assert t.to_local().is_contiguous(memory_format=flow.channels_last)
    saved = {k: v.contiguous() if v.ndim == 4 else v for k, v in optimizer.state_dict()["state"][0].items()}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": {0: saved}})
    assert optimizer.state[model.weight]["exp_avg"].to_local().stride() == (27, 1, 9, 3)
    optimizer.zero_grad()
    other = flow.rand(4, 3, 3, 3, placement=P, sbp=B)
    flow.where(other > 0.5, model.weight, other).mul(other).sum().backward()
    assert model.weight.grad.to_local().stride() == (27, 1, 9, 3)


@on(4)
def test_sgd_trains_a_parameter_that_lies_in_summands_as_one_that_is_whole() -> None:
    P, B = flow.placement("cpu", [[0, 1], [2, 3]]), (flow.sbp.broadcast,) * 2
    start = flow.arange(24.0).reshape(4, 6).to_global(placement=P, sbp=B)
    x = flow.linspace(-1, 1, 8).reshape(2, 4).to_global(placement=P, sbp=B)

    class Layer(flow.nn.Module):
        def __init__(self, layout: Any) -> None:
            super().__init__()
            self.weight = flow.nn.Parameter(start.to_global(sbp=layout).clone())

        def forward(self, x: Any) -> Any:
            return x @ self.weight

    def trained(layout: Any, graph: bool) -> Any:
        layer = Layer(layout)
        optimizer = flow.optim.SGD(layer.parameters(), 0.1, momentum=0.9, weight_decay=0.01, nesterov=True)
        step = Trains(layer, optimizer)
        for _ in range(3):
            if graph:
                step(x)
            else:
                layer(x).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        assert layer.weight.sbp == layout
        return layer.weight.numpy()

    whole = trained(B, False)
    assert not np.allclose(whole, start.numpy(), atol=0.01)
    for graph in (False, True):
        assert np.allclose(trained((flow.sbp.split(0), flow.sbp.partial_sum), graph), whole, rtol=1e-5)
