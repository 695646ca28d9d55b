"""Optimizers against torch's, step by step; the state they keep; what they refuse."""

from __future__ import annotations

import copy
import importlib
import itertools
from collections import OrderedDict
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import CheckpointError, OptionError, WeftError
from weft.launch.threads import spawn_threads
from weft.tensor.tensor import of_torch

SHAPES = [(3, 4), (5,), (), (2, 1, 3), (4, 0)]
ROWS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-6, "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"maximize": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.2, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"alpha": 0.9, "maximize": True}),
    ("Adadelta", {"rho": 0.8, "weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9)}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 4, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
]


def parameters(dtype: torch.dtype = torch.float32) -> tuple[list[torch.nn.Parameter], list[flow.nn.Parameter]]:
    torch.manual_seed(0)
    theirs = [torch.nn.Parameter(torch.randn(s, dtype=dtype)) for s in SHAPES]
    return theirs, [flow.nn.Parameter(of_torch(p.detach().clone())) for p in theirs]


def give(theirs: list[Any], ours: list[Any], skip: int | None = None) -> None:
    for i, (p, q) in enumerate(zip(theirs, ours, strict=True)):
        p.grad = None if i == skip else torch.randn_like(p)
        q.grad = None if i == skip else of_torch(p.grad.clone())


def same(theirs: list[Any], ours: list[Any]) -> None:
    for p, q in zip(theirs, ours, strict=True):
        torch.testing.assert_close(q.detach().to_torch(), p.detach(), rtol=1e-5, atol=1e-6)


def step_both(a: Any, b: Any, theirs: list[Any], ours: list[Any], skip: int | None = None) -> None:
    give(theirs, ours, skip)
    a.step()
    b.step()
    same(theirs, ours)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=["real", "complex"])
@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r[0]}-{list(r[1])}")
def test_ten_steps_are_torchs(row: tuple[str, dict[str, Any]], dtype: torch.dtype) -> None:
    name, options = row
    theirs, ours = parameters(dtype)
    a, b = getattr(torch.optim, name)(theirs, **options), getattr(flow.optim, name)(ours, **options)
    for step in range(10):
        # a parameter without a gradient keeps its own count
        step_both(a, b, theirs, ours, skip=1 if step in (0, 4) else None)


def test_the_state_of_one_complex_number_is_loaded_as_it_was() -> None:
    theirs = [torch.nn.Parameter(torch.tensor(1 + 2j))]
    ours = [flow.nn.Parameter(of_torch(p.detach().clone())) for p in theirs]
    a, b = torch.optim.SGD(theirs, lr=0.1, momentum=0.9), flow.optim.SGD(ours, lr=0.1, momentum=0.9)
    for _ in range(2):
        step_both(a, b, theirs, ours)
        saved = b.state_dict()
        b = flow.optim.SGD(ours, lr=0.1, momentum=0.9)
        b.load_state_dict(saved)


def test_momentum_may_begin_and_pause_between_steps() -> None:
    """As by OneCycleLR, which cycles it from the first step on."""
    theirs, ours = parameters()
    a, b = torch.optim.SGD(theirs, lr=0.1), flow.optim.SGD(ours, lr=0.1)
    for momentum in (0.0, 0.9, 0.8, 0.0, 0.7):
        a.param_groups[0]["momentum"] = b.param_groups[0]["momentum"] = momentum
        step_both(a, b, theirs, ours)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_graph_dampens_all_gradients_but_the_first_as_torch(resumed: bool) -> None:
    theirs, ours = torch.nn.Linear(3, 1), flow.nn.Linear(3, 1)
    ours.load_state_dict(theirs.state_dict())
    options: dict[str, Any] = {"lr": 0.01, "momentum": 0.9, "dampening": 0.4}
    a, b = torch.optim.SGD(theirs.parameters(), **options), flow.optim.SGD(ours.parameters(), **options)
    if resumed:  # torch saves no count
        theirs(torch.ones(2, 3)).sum().backward()
        a.step()
        b.load_state_dict(copy.deepcopy(a.state_dict()))
        ours.load_state_dict(theirs.state_dict())

    class Train(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = ours
            self.add_optimizer(b)
            self.set_grad_scaler(flow.amp.GradScaler(init_scale=2.0))

        def build(self, x: Any) -> Any:
            loss = self.model(x).square().sum()
            loss.backward()
            return loss

    train = Train()
    train(torch.full((2, 3), float("inf")))  # a step that the scaler leaves out is no first one
    for i in range(3):
        a.zero_grad()
        theirs(torch.full((2, 3), i + 1.0)).square().sum().backward()
        a.step()
        train(torch.full((2, 3), i + 1.0))
        same(list(theirs.parameters()), list(ours.parameters()))


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop", "NAdam"])
def test_complex_parameters_step_alike_in_a_graph(name: str) -> None:
    found, x = [], flow.complex(flow.ones(4), flow.full((4,), 0.5))
    for compiled in (False, True):
        w = flow.nn.Parameter(flow.complex(flow.arange(4.0), flow.ones(4)))
        optimizer = getattr(flow.optim, name)([w], lr=0.1)

        class Train(flow.nn.Graph):
            def __init__(self, optimizer: Any = optimizer) -> None:
                super().__init__()
                self.add_optimizer(optimizer)

            def build(self, x: Any, w: Any = w) -> Any:
                loss = (w * x).abs().square().sum()
                loss.backward()
                return loss

        train = Train()
        for _ in range(3):
            if compiled:
                train(x)
            else:
                optimizer.zero_grad()
                train.build(x)
                optimizer.step()
        found.append(w.detach().to_torch())
    torch.testing.assert_close(*found)


FLAG = (False, True)
GRIDS: dict[str, dict[str, Any]] = {  # every option of every optimizer with every other
    "SGD": {"momentum": (0, 0.9), "dampening": (0, 0.5), "weight_decay": (0, 0.1), "nesterov": FLAG, "maximize": FLAG},
    "Adam": {
        "betas": ((0.9, 0.999), (0.5, 0.0), (0.0, 0.9)), "eps": (1e-8, 1e-2), "weight_decay": (0, 0.1),
        "amsgrad": FLAG, "maximize": FLAG, "decoupled_weight_decay": FLAG,
    },
    "AdamW": {"betas": ((0.9, 0.999), (0.5, 0.0)), "weight_decay": (0, 0.1), "amsgrad": FLAG, "maximize": FLAG},
    "Adagrad": {
        "lr_decay": (0, 0.1), "weight_decay": (0, 0.1), "initial_accumulator_value": (0, 0.5), "eps": (1e-10, 0.1),
        "maximize": FLAG,
    },
    "RMSprop": {
        "alpha": (0.99, 0.5), "weight_decay": (0, 0.1), "momentum": (0, 0.9), "centered": FLAG, "maximize": FLAG,
    },
    "Adadelta": {"rho": (0.9, 0.5), "weight_decay": (0, 0.1), "maximize": FLAG},
    "NAdam": {
        "weight_decay": (0, 0.1), "momentum_decay": (4e-3, 0.1), "decoupled_weight_decay": FLAG, "maximize": FLAG,
    },
    "RAdam": {
        "betas": ((0.9, 0.999), (0.5, 0.6)), "weight_decay": (0, 0.1), "decoupled_weight_decay": FLAG,
        "maximize": FLAG,
    },
    "Adamax": {"weight_decay": (0, 0.1), "maximize": FLAG},
    "ASGD": {
        "lambd": (1e-4, 0.1), "alpha": (0.75, 0.5), "t0": (1e6, 2), "weight_decay": (0, 0.1), "maximize": FLAG,
    },
    "Rprop": {"etas": ((0.5, 1.2), (0.4, 1.1)), "maximize": FLAG},
    "Adafactor": {"beta2_decay": (-0.8, -0.5), "d": (1.0, 0.5), "weight_decay": (0, 0.1), "maximize": FLAG},
}  # fmt: skip


@pytest.mark.parametrize("name", GRIDS)
def test_options_go_together_as_torchs(name: str) -> None:
    for values in itertools.product(*GRIDS[name].values()):
        options = dict(zip(GRIDS[name], values, strict=True))
        torch.manual_seed(1)
        theirs = [torch.nn.Parameter(torch.randn(s)) for s in ((3, 4), (3,))]
        ours = [flow.nn.Parameter(of_torch(p.detach().clone())) for p in theirs]
        refused = []
        try:
            a = getattr(torch.optim, name)(theirs, lr=0.1, **options)
        except ValueError as error:
            refused.append(error)
        try:
            b = getattr(flow.optim, name)(ours, lr=0.1, **options)
        except OptionError as error:
            refused.append(error)
        assert len(refused) in (0, 2), (options, refused)
        for step in range(0 if refused else 3):
            give(theirs, ours)
            for p, q in zip(theirs, ours, strict=True):
                if step == 1:
                    p.grad, q.grad = torch.zeros_like(p), flow.zeros_like(q)
            a.step()
            b.step()
            same(theirs, ours)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r[0]}-{list(r[1])}")
def test_a_state_goes_on_elsewhere(row: tuple[str, dict[str, Any]]) -> None:
    name, options = row
    theirs, ours = parameters()
    a, b = getattr(torch.optim, name)(theirs, **options), getattr(flow.optim, name)(ours, **options)
    for _ in range(3):
        give(theirs, ours)
        a.step()
        b.step()
    copies = [flow.nn.Parameter(p.detach().clone()) for p in ours]
    c = getattr(flow.optim, name)(copies, lr=9.0)
    state = b.state_dict()
    c.load_state_dict(state)
    names = set(a.state_dict()["state"].get(0, {})) - ({"step"} if name in ("RMSprop", "Adadelta") else set())
    names = names - ({"momentum_buffer"} if not options.get("momentum") else set())
    assert set(state["state"].get(0, {})) == names | ({"step"} if "dampening" in options else set())
    for _ in range(3):
        give(theirs, ours)
        for p, q in zip(ours, copies, strict=True):
            q.grad = p.grad
        a.step()
        c.step()
        same(theirs, copies)


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "ASGD", "Rprop", "RMSprop", "Adadelta", "Adamax", "RAdam"])
def test_a_state_of_torchs_goes_on_here(name: str) -> None:
    theirs, ours = parameters()
    a = getattr(torch.optim, name)(theirs, lr=torch.tensor(0.1))
    b = getattr(flow.optim, name)(ours, lr=flow.tensor(0.1))
    for _ in range(2):
        step_both(a, b, theirs, ours)

    def converted(v: Any) -> Any:
        if isinstance(v, dict):
            return {k: int(x) if k == "step" and name == "NAdam" else converted(x) for k, x in v.items()}  # old files
        return of_torch(v.clone()) if isinstance(v, torch.Tensor) else v

    state = a.state_dict()
    b.load_state_dict({"state": converted(state["state"]), "param_groups": list(map(converted, state["param_groups"]))})
    for _ in range(2):
        step_both(a, b, theirs, ours)


def test_groups_have_options_of_their_own() -> None:
    theirs, ours = parameters()
    a = torch.optim.SGD([{"params": theirs[:2], "lr": 0.5}, {"params": theirs[2]}], lr=0.1, momentum=0.9)
    b = flow.optim.SGD([{"params": ours[:2], "lr": 0.5}, {"params": ours[2]}], lr=0.1, momentum=0.9)
    a.add_param_group({"params": theirs[3:], "momentum": 0.0})
    b.add_param_group({"params": ours[3:], "momentum": 0.0})
    for lr in (0.5, 0.2, 0.3):
        a.param_groups[0]["lr"] = b.param_groups[0]["lr"] = lr
        step_both(a, b, theirs, ours)
    assert "momentum: 0.9" in repr(b)


def test_gradients_and_parameters_of_any_strides() -> None:
    base = torch.randn(3, 4)
    theirs = [torch.nn.Parameter(base.clone().t())]
    ours = [flow.nn.Parameter(of_torch(base.clone()).t())]
    a, b = torch.optim.AdamW(theirs), flow.optim.AdamW(ours)
    for _ in range(3):
        g = torch.randn(3, 4)
        theirs[0].grad, ours[0].grad = g.t().clone(), of_torch(g).t()
        a.step()
        b.step()
    same(theirs, ours)


def test_a_step_is_noticed_by_the_tape() -> None:
    w = flow.nn.Parameter(flow.ones(2))
    optimizer = flow.optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(flow.errors.AutogradError, match="overwrote"):
        loss.backward()


def test_without_gradients_nothing_happens() -> None:
    _, ours = parameters()
    before = [p.tolist() for p in ours]
    optimizer = flow.optim.AdamW(ours)
    optimizer.step()
    assert [p.tolist() for p in ours] == before and not any(optimizer.state.values())


def test_closure_hooks_and_zero_grad() -> None:
    w = flow.nn.Parameter(flow.ones(2))
    optimizer = flow.optim.SGD([w], lr=0.5)
    log: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: log.append("before"))
    optimizer.register_step_post_hook(lambda *_: log.append("after"))

    def closure() -> flow.Tensor:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with flow.no_grad():
        assert optimizer.step(closure).item() == 2.0
    assert w.tolist() == [0.0, 0.0] and log == ["before", "after"]
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is not None and w.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert w.grad is None


@pytest.mark.parametrize("library", [torch, flow])
def test_hooks_of_a_step_of_ones_own(library: Any) -> None:
    """Also of one that wraps another optimizer, and makes the tables for itself."""

    class Own(library.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            log.append(("step", closure))

    class Wrapper(library.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = OrderedDict(), OrderedDict()
            self._patch_step_function()
            self.step_of = inner.step

        def step(self, closure: Any = None) -> None:
            self.step_of(closure)

    log: list[Any] = []
    own = Own([library.ones(1)], {})
    for optimizer in (own, Wrapper(own)):
        optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, len(args)), kwargs))
        optimizer.register_step_post_hook(lambda o, args, kwargs: log.append(args[1:]))
    of_all = importlib.import_module(f"{library.__name__}.optim.optimizer")
    hook = of_all.register_optimizer_step_post_hook(lambda o, args, kwargs: log.append(type(o)))
    optimizer.step()
    hook.remove()
    own.step(3)
    assert log == [("step", 2), (2,), Own, (1,), Wrapper, ("step", 2), (2,)]


def test_named_parameters_keep_their_names_in_the_group() -> None:
    libraries: list[Any] = [torch, flow]
    for lib in libraries:
        model = lib.nn.Linear(2, 1)
        optimizer = lib.optim.SGD([{"params": model.named_parameters(), "lr": 0.1}])
        state = optimizer.state_dict()
        (group,) = state["param_groups"]
        assert group["param_names"] == ["weight", "bias"] and group["params"] == [0, 1]
        lib.optim.SGD(model.named_parameters(), lr=0.2).load_state_dict(state)
        with pytest.raises(ValueError, match="with/without names"):
            optimizer.add_param_group({"params": [lib.nn.Parameter(lib.ones(2))]})


def test_clipping_is_torchs() -> None:
    for kind in (1.0, 2.0, 3.0, float("inf"), 0.0, -1.0, float("-inf")):
        theirs, ours = (every[:4] for every in parameters())  # torch knows no largest element of nothing
        give(theirs, ours, skip=2)
        expected = torch.nn.utils.clip_grad_norm_(theirs, 0.5, kind)
        got = flow.nn.utils.clip_grad_norm_(ours, 0.5, kind)
        assert got.item() == pytest.approx(expected.item(), rel=1e-5)
        for utils, params in ((flow.nn.utils, ours), (torch.nn.utils, theirs)):  # as one reads the norm before
            norm = utils.get_total_norm((p.grad for p in params if p.grad is not None), kind, foreach=False)
            utils.clip_grads_with_norm_(params, 0.3, norm, foreach=False)
            utils.clip_grad_value_(params, 0.05, foreach=False)
        for p, q in zip(theirs, ours, strict=True):
            if p.grad is not None:
                torch.testing.assert_close(q.grad.to_torch(), p.grad, rtol=1e-4, atol=1e-6)
    placed = flow.nn.Parameter(flow.ones(2, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast))
    placed.sum().backward()
    flow.nn.utils.clip_grads_with_norm_([placed], 1.0, flow.tensor(2.0))  # as full_tensor() or item() gives it
    torch.testing.assert_close(placed.grad.to_local().to_torch(), torch.full((2,), 0.5))
    w = flow.nn.Parameter(flow.ones(1))
    w.grad = flow.tensor([float("nan")])
    with pytest.raises(OptionError, match="non-finite"):
        flow.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    optimizer = flow.optim.SGD([{"params": [w], "clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0}], lr=0.1)
    w.grad = flow.tensor([10.0])
    optimizer.clip_grad()
    assert w.grad.item() == pytest.approx(1.0)


def test_updates_that_a_graph_would_issue() -> None:
    """The same ops, by gradients and rates handed in, as `step` issues."""
    theirs, ours = parameters()
    a, b = torch.optim.AdamW(theirs, lr=0.1), flow.optim.AdamW(ours, lr=9.0)
    b.prepare(set(ours))
    assert set(b.state[ours[0]]) == {"exp_avg", "exp_avg_sq", "step"}
    states = b.state[ours[0]]["exp_avg"]
    for _ in range(3):
        give(theirs, ours)
        a.step()
        b.apply_update({p: p.grad for p in ours}, [lambda placement: flow.tensor(0.1)])  # type: ignore[misc]
    same(theirs, ours)
    assert b.state[ours[0]]["exp_avg"] is states and b.state[ours[0]]["step"].item() == 3.0


@pytest.mark.parametrize("name", ["SGD", "AdamW", "Adagrad"])
def test_global_parameters_of_every_layout(name: str) -> None:
    theirs, _ = parameters()
    start = [p.detach().clone() for p in theirs]
    gradients = [torch.randn_like(p) for p in theirs]
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    a = getattr(torch.optim, name)(theirs, **options)
    for p, g in zip(theirs, gradients, strict=True):
        p.grad = g.clone()
    for _ in range(3):
        a.step()
    norm = torch.nn.utils.clip_grad_norm_(theirs, 1.0).item()

    def run() -> Any:
        placement, B = flow.placement("cpu", [0, 1]), flow.sbp.broadcast
        made = []
        for i, (p, g) in enumerate(zip(start, gradients, strict=True)):
            sbp = flow.sbp.split(0) if p.dim() and i % 2 == 0 else B
            q = flow.nn.Parameter(of_torch(p.clone()).to_global(placement, B).to_global(placement, sbp))
            q.grad = of_torch(g.clone()).to_global(placement, B).to_global(placement, sbp)
            made.append(q)
        b = getattr(flow.optim, name)(made, **options)
        for lr in (0.1, 0.1, 0.1):
            b.param_groups[0]["lr"] = lr
            b.step()
        state = next(iter(b.state.values()))
        kept = {k: v.sbp for k, v in state.items()}
        assert flow.nn.utils.get_total_norm([q.grad for q in made], 0.0).item() == len(made) - 1  # one has no elements
        got = flow.nn.utils.clip_grad_norm_(made, 1.0).item()
        return [q.detach().numpy() for q in made], kept, got

    for values, kept, got in spawn_threads(2, run):
        for p, q in zip(theirs, values, strict=True):
            torch.testing.assert_close(torch.from_numpy(q), p.detach(), rtol=1e-5, atol=1e-6)
        assert all(s == (flow.sbp.broadcast if k == "step" else flow.sbp.split(0),) for k, s in kept.items())
        assert got == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize(("name", "options"), [*ROWS, ("LAMB", {}), ("Adafactor", {}), ("Muon", {})])
def test_parameters_of_some_ranks_are_updated_by_a_call_of_all(name: str, options: dict[str, Any]) -> None:
    start = torch.rand(4, 3)

    def run(ranks: list[int]) -> Any:
        placement, B = flow.placement("cpu", ranks), flow.sbp.broadcast
        p = flow.nn.Parameter(flow.tensor(start, placement=placement, sbp=B))
        optimizer = getattr(flow.optim, name)([p], **options)
        for _ in range(2):
            p.grad = flow.tensor(start - 0.4, placement=placement, sbp=B)
            optimizer.step()
        return p.numpy()

    (alone,) = spawn_threads(1, run, [0])
    assert [(found == alone).all() for found in spawn_threads(2, run, [1])] == [True, True]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda w: flow.optim.SGD([], lr=0.1), "empty parameter list"),
        (lambda w: flow.optim.SGD(w, lr=0.1), "got one Tensor"),
        (lambda w: flow.optim.SGD({w}, lr=0.1), "have an order"),
        (lambda w: flow.optim.SGD([w, w], lr=0.1), "some parameters appear in more than one parameter group"),
        (lambda w: flow.optim.SGD([w * 2], lr=0.1), "non-leaf"),
        (lambda w: flow.optim.SGD([3], lr=0.1), "can only optimize Tensors"),
        (lambda w: flow.optim.SGD([w], lr=-0.1), "Invalid learning rate: -0.1"),
        (lambda w: flow.optim.SGD([w], nesterov=True), "Nesterov momentum requires"),
        (lambda w: flow.optim.Adam([w], betas=(0.9, 1.0)), "Invalid beta parameter at index 1"),
        (lambda w: flow.optim.Adamax([w], betas=(0.9, 1.0)), "Invalid beta parameter at index 1"),
        (lambda w: flow.optim.AdamW([w], eps=-1.0), "Invalid epsilon value"),
        (lambda w: flow.optim.Muon([flow.nn.Parameter(flow.ones(2, 2).cfloat())]), "doesn't support complex"),
        (
            lambda w: flow.optim.SGD([w]).load_state_dict({"state": {}, "param_groups": []}),
            "different number of parameter groups: 0",
        ),
    ],
)
def test_an_optimizer_refuses_what_it_cannot_train(make: Any, says: str) -> None:
    with pytest.raises(WeftError, match=says):
        make(flow.nn.Parameter(flow.ones(2)))


def test_a_state_of_other_shapes_is_refused_before_anything_changes() -> None:
    w, v = flow.nn.Parameter(flow.ones(2)), flow.nn.Parameter(flow.ones(3))
    a, b = flow.optim.Adam([w], lr=0.1), flow.optim.Adam([v], lr=0.2)
    w.grad = flow.ones(2)
    a.step()
    with pytest.raises(CheckpointError, match=r"has shape \[2\], but its parameter has \[3\]"):
        b.load_state_dict(a.state_dict())
    assert b.param_groups[0]["lr"] == 0.2 and not b.state.get(v)


def test_options_of_torchs_that_change_nothing_are_taken_and_others_refused() -> None:
    for name in ("SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "NAdam", "RAdam", "Adamax", "ASGD", "Rprop"):
        kind = getattr(flow.optim, name)
        made = kind([flow.nn.Parameter(flow.ones(2))], foreach=False, differentiable=False)
        theirs = getattr(torch.optim, name)([torch.nn.Parameter(torch.ones(2))], foreach=False)
        shown = [{k: group[k] for k in theirs.defaults} for group in (made.defaults, *made.param_groups)]
        assert shown == [theirs.defaults] * 2
        with pytest.raises(OptionError, match="functional_call"):
            kind([flow.nn.Parameter(flow.ones(2))], differentiable=True)


def test_adamw_is_adam_and_stays_decoupled_whatever_it_loads() -> None:
    w = [flow.nn.Parameter(flow.ones(2))]
    ours = flow.optim.AdamW(w)
    assert isinstance(ours, flow.optim.Adam)
    ours.load_state_dict(flow.optim.Adam(w).state_dict())
    assert ours.param_groups[0]["decoupled_weight_decay"] is True


@pytest.mark.parametrize("name", ["NAdam", "RAdam", "Adamax", "ASGD", "Adam"])
def test_steps_of_doubles_are_as_exact_as_torchs(name: str) -> None:
    ends = []
    for lib in (torch, flow):
        p: Any = lib.nn.Parameter(lib.tensor([1.0, -2.0, 0.5], dtype=lib.float64))
        optimizer = getattr(lib.optim, name)([p], lr=0.1)
        for _ in range(12):
            optimizer.zero_grad()
            (p**4 / 4 + p.sin()).sum().backward()
            optimizer.step()
        ends.append(p.tolist())
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_sparse_adam_moves_the_rows_that_were_looked_up(maximize: bool, traced: bool) -> None:
    weights, ids = torch.randn(6, 3), [torch.tensor(i) for i in ([1, 3, 3], [0, 1, 5], [3, 2, 1])]
    theirs, ours = (lib.nn.Embedding(6, 3, padding_idx=2, sparse=lib is torch) for lib in (torch, flow))
    theirs.load_state_dict({"weight": weights})
    ours.load_state_dict({"weight": weights})
    options: dict[str, Any] = {"lr": 0.1, "betas": (0.8, 0.9), "maximize": maximize}
    a, b = torch.optim.SparseAdam(theirs.parameters(), **options), flow.optim.SparseAdam(ours.parameters(), **options)

    class Train(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = ours
            self.add_optimizer(b)

        def build(self, x: Any) -> Any:
            loss = self.model(x).square().sum()
            loss.backward()
            return loss

    graph = Train()
    for x in ids:
        a.zero_grad()
        theirs(x).square().sum().backward()
        a.step()
        if traced:
            graph(of_torch(x))
        else:
            b.zero_grad()
            ours(of_torch(x)).square().sum().backward()
            b.step()
    torch.testing.assert_close(ours.weight.detach().to_torch(), theirs.weight.detach())
