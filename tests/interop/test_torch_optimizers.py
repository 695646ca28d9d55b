"""Torch's optimizers over Weft's parameters, and its functions of lists of tensors, which they call."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype

import weft as flow
from weft.core.derived import since
from weft.core.errors import ArgumentError, WeftError
from weft.interop.entering import Callback
from weft.interop.torch_compositions import each

OTHERS = ("LBFGS", "SparseAdam", "Muon", "Optimizer")  # they take a closure, sparse gradients, matrices alone
KINDS = [n for n, kind in vars(torch.optim).items() if isinstance(kind, type) and n not in OTHERS]
FUSED = ("Adagrad", "Adam", "AdamW", "SGD")


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def trained(m: Any, make: Callable[[Any], Any], resume: bool = True) -> list[list[float]]:
    optimizer = make(m.parameters())
    for i in range(4):
        if i == 2 and resume:
            kept = io.BytesIO()
            torch.save(optimizer.state_dict(), kept)
            kept.seek(0)
            optimizer = make(m.parameters())
            optimizer.load_state_dict(torch.load(kept))
        m(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=i > 0)
    return [p.detach().flatten().tolist() for p in m.parameters()]


@pytest.mark.parametrize("name", KINDS)
def test_torchs_optimizers_train_wefts_parameters(name: str) -> None:
    for options in ({"foreach": False}, {"foreach": True}, *([{"fused": True}] if name in FUSED else [])):
        kind: Any = getattr(torch.optim, name)
        if name == "Adafactor":
            options["foreach"] = False

        def make(params: Iterator[Any], kind: Any = kind, options: Any = options) -> Any:
            return kind(params, lr=0.01, **options)

        expected = trained(model(), make)
        assert expected != [p.detach().flatten().tolist() for p in model().parameters()]  # torch's own still train
        for got, want in zip(trained(flow.from_torch(model()), make), expected, strict=True):
            assert got == pytest.approx(want, abs=1e-6), options


def test_a_closure_is_the_programs_code_on_wefts_tensors() -> None:
    layer, theirs = flow.from_torch(torch.nn.Linear(3, 1)), torch.nn.Linear(3, 1)
    theirs.load_state_dict({name: t.to_torch() for name, t in layer.state_dict().items()})
    data = torch.arange(8.0).reshape(2, 4) / 8

    def run(m: Any, x: Any) -> list[float]:
        optimizer = torch.optim.LBFGS(m.parameters(), max_iter=3)

        def loss() -> Any:
            optimizer.zero_grad()
            y = torch.nn.functional.mse_loss(m(x[:, :3]), x[:, 3:])
            y.backward()
            assert type(y) is type(x)
            return y

        return [float(optimizer.step(loss)) for _ in range(2)]  # type: ignore[arg-type]

    assert run(layer, flow.from_torch(data)) == pytest.approx(run(theirs, data), rel=1e-4)


def test_schedulers_groups_and_closures() -> None:
    def run(m: Any) -> list[list[float]]:
        groups = [{"params": m[0].parameters(), "lr": 0.1}, {"params": [m[2].weight]}]
        optimizer = torch.optim.SGD(groups, lr=0.01, momentum=0.9)
        optimizer.add_param_group({"params": m[2].bias})
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        last = torch.optim.LBFGS(m.parameters(), max_iter=3)

        def loss() -> Any:
            optimizer.zero_grad()
            y = m(torch.ones(2, 3)).square().mean()
            y.backward()
            return y

        for _ in range(3):
            optimizer.step(loss)
            schedule.step()
        last.step(loss)
        return [p.detach().flatten().tolist() for p in m.parameters()]

    for got, want in zip(run(flow.from_torch(model())), run(model()), strict=True):
        assert got == pytest.approx(want, abs=1e-5)


def test_fused_kernels_are_for_local_tensors() -> None:
    m = flow.from_torch(model()).to_global(flow.placement("cpu", [0]), flow.sbp.broadcast)
    optimizer = torch.optim.AdamW(m.parameters(), fused=True)
    m(torch.ones(2, 3)).sum().backward()
    with pytest.raises(ArgumentError, match="fused=False"):
        optimizer.step()
    optimizer, before = torch.optim.AdamW(m.parameters(), fused=False), m[0].weight.tolist()
    optimizer.step()
    assert m[0].weight.tolist() != before


UNARY = [n for n in dir(torch) if n.startswith("_foreach_") and n.strip("_").removeprefix("foreach_") not in (
    "add", "addcdiv", "addcmul", "clamp_max", "clamp_min", "copy", "div", "lerp", "max", "maximum", "minimum", "mm",
    "mul", "norm", "pow", "powsum", "sub")]  # fmt: skip
LISTS: dict[str, Callable[[Any, Any], Any]] = {
    **{n: lambda x, y, n=n: getattr(torch, n)(x) for n in UNARY},
    **{f"{n}{end} {kind}": lambda x, y, f=f"_foreach_{n}{end}", kind=kind: getattr(torch, f)(
        x, {"number": 2, "numbers": [1.5, 2.5], "lists": y}[kind])
       for n in ("add", "sub", "mul", "div", "pow", "clamp_max", "clamp_min", "maximum", "minimum") for end in ("", "_")
       for kind in ("number", "numbers", "lists")},
    **{f"{n}{end} {v}": lambda x, y, f=f"_foreach_{n}{end}", v=v: getattr(torch, f)(x, y, y, v)
       for n in ("addcdiv", "addcmul") for end in ("", "_") for v in (0.5, (0.5, 2.0))},
    **{f"lerp{end}": lambda x, y, f=f"_foreach_lerp{end}": getattr(torch, f)(x, y, 0.25) for end in ("", "_")},
    "alpha": lambda x, y: torch._foreach_add(x, y, alpha=2), "power": lambda x, y: torch._foreach_pow(2.0, x),
    "norm": lambda x, y: torch._foreach_norm(x), "norm 1": lambda x, y: torch._foreach_norm(x, 1),
    "max": lambda x, y: torch._foreach_max(x), "copy": lambda x, y: torch._foreach_copy_(x, y),
    **since("2.13", {"mm": lambda x, y: torch._foreach_mm(x, y)}),
}  # fmt: skip


def test_lists_by_device_and_dtype() -> None:
    kinds = [torch.float32, torch.float64, torch.float32]
    lists = [[torch.full((1,), 3.0 * i + j, dtype=d) for j, d in enumerate(kinds)] for i in range(2)]
    both = [_group_tensors_by_device_and_dtype([[t(x) for x in xs] for xs in lists], with_indices=True)
            for t in (lambda x: x, flow.from_torch)]  # fmt: skip
    theirs, ours = ({k[1]: ([[x.item() for x in xs] for xs in a], i) for k, (a, i) in g.items()} for g in both)
    assert ours == {getattr(flow, str(k).partition(".")[2]): v for k, v in theirs.items()}


def _scaled(m: Any, sgd: Any) -> tuple[dict[str, Any], list[float]]:
    optimizer, scaler = sgd(m.parameters(), lr=0.1), torch.amp.GradScaler("cpu", growth_interval=2)
    for step, factor in enumerate((1.0, float("inf"), 1.0, 1.0)):
        optimizer.zero_grad()
        scaler.scale((m(torch.ones(2, 3)) * factor).square().mean()).backward()
        if step % 2:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
    return scaler.state_dict(), [p.sum().item() for p in m.parameters()]


@pytest.mark.parametrize("sgd", [torch.optim.SGD, flow.optim.SGD])
def test_torchs_scaler_of_gradients(sgd: Any) -> None:
    (expected, theirs), (got, ours) = _scaled(model(), torch.optim.SGD), _scaled(flow.from_torch(model()), sgd)
    assert got == expected and got["scale"] == 2.0**16 and ours == pytest.approx(theirs)


@pytest.mark.parametrize("name", LISTS)
def test_functions_of_lists(name: str) -> None:
    x, y = ([torch.rand(2, 2) * 0.4 + 0.3 for _ in range(2)] for _ in range(2))
    ours, theirs = copy.deepcopy(x), copy.deepcopy(x)
    expected = LISTS[name](theirs, y)
    got = Callback(LISTS[name])([flow.from_torch(t) for t in ours], [flow.from_torch(t) for t in y])
    for a, b in zip([*ours, *(got or [])], [*theirs, *(expected or [])], strict=True):
        torch.testing.assert_close(a.to_torch() if isinstance(a, flow.Tensor) else a, b)


def test_kernels_for_lists_run_once_unless_a_gradient_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = [flow.ones(2), flow.ones(3)], flow.ones(2, requires_grad=True)
    with monkeypatch.context() as alone:
        alone.setattr(flow.Tensor, "add_", None)
        alone.setattr(flow.Tensor, "mul", None)
        assert flow._foreach_add_(x, 1)[0] is x[0] and x[0]._version == 1
        assert [y.tolist() for y in flow._foreach_mul(x, [2.0, 3.0])] == [[4.0] * 2, [6.0] * 3]
        with flow.no_grad():
            flow._foreach_add_([w], x[:1])
    assert flow._foreach_mul([w], x[:1])[0].requires_grad
    for wrong in (lambda: flow._foreach_add_([w], 1), lambda: flow._foreach_add_([w[:1]], 1)):
        with pytest.raises(RuntimeError, match="leaf"):
            wrong()
    with pytest.raises(RuntimeError, match="size"):
        flow._foreach_mul(x, x[::-1])


def test_a_list_that_fails_half_way_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = flow.zeros(2), flow.zeros(3)
    with pytest.raises(WeftError, match="size"):
        each("add_")([first, second], [flow.ones(2), flow.ones(4)])
    assert first.tolist() == [1.0, 1.0]

    def interrupted(*_: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(torch, "_foreach_neg", interrupted)
    with pytest.raises(TimeoutError):
        each("neg")([first])
