"""Modules: attributes and their roles, walking, state, hooks, conversions; against torch's where it has the same."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError, CheckpointError, SbpError
from weft.launch.threads import spawn_threads


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(flow.ones(2))
        self.inner = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))
        self.register_buffer("seen", flow.zeros(1))
        self.register_buffer("scratch", flow.zeros(1), persistent=False)
        self.plain = flow.ones(1)
        self.nothing: Any = None

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.inner(x) * self.scale


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(2))
        self.inner = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2, bias=False))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)


def test_names_and_order_are_torchs() -> None:
    ours, theirs = Net(), TorchNet()
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert repr(ours) == repr(theirs).replace("TorchNet", "Net")
    assert [n for n, _ in ours.named_children()] == ["inner"]


def test_attributes_keep_their_roles() -> None:
    net = Net()
    net.scale = None  # type: ignore[assignment]
    assert "scale" in net._parameters and len(list(net.parameters())) == 3
    net.scale = nn.Parameter(flow.zeros(2))
    assert len(list(net.parameters())) == 4
    with pytest.raises(ArgumentError, match="cannot assign 'Tensor' as parameter 'scale'"):
        net.scale = flow.ones(2)  # type: ignore[assignment]
    with pytest.raises(ArgumentError, match="cannot assign 'int' as module 'inner'"):
        net.inner = 3  # type: ignore[assignment]
    net.seen = flow.ones(2)
    assert net.get_buffer("seen").tolist() == [1.0, 1.0]
    del net.inner
    assert [n for n, _ in net.named_parameters()] == ["scale"] and not hasattr(net, "inner")
    net.nothing = nn.Linear(1, 1)
    assert [n for n, _ in net.named_children()] == ["nothing"]
    net._parameters["late"] = nn.Parameter(flow.ones(1))
    assert net.late is net.get_parameter("late")
    with pytest.raises(AttributeError, match="no module `x`"):
        net.get_submodule("nothing.x")
    with pytest.raises(KeyError, match="already exists"):
        net.register_buffer("forward", flow.ones(1))


def test_an_init_that_was_forgotten_is_named() -> None:
    class Forgetful(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Forgetful()
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(1)


def test_tied_parameters_count_once() -> None:
    net = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    net["b"].weight = net["a"].weight
    assert len(list(net.parameters())) == 3 and len(list(net.named_parameters(remove_duplicate=False))) == 4
    net.double()
    assert net["b"].weight is net["a"].weight and net["a"].weight.dtype is flow.float64


def test_containers() -> None:
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.ReLU()).extend([nn.Tanh()])
    layers.insert(1, nn.Identity())
    assert [type(m).__name__ for m in layers] == ["Linear", "Identity", "ReLU", "Tanh"]
    assert layers[-1] is layers[3] and len(layers[1:3]) == 2
    del layers[1]
    assert [n for n, _ in layers.named_children()] == ["0", "1", "2"]
    with pytest.raises(IndexError, match="out of range: this ModuleList has 3"):
        layers[3]
    chain = nn.Sequential({"up": nn.Linear(1, 2), "act": nn.ReLU()})
    assert chain.up is chain[0] and [n for n, _ in chain.named_children()] == ["up", "act"]
    assert nn.Sequential(*chain)(flow.ones(3, 1)).shape == (3, 2)
    numbers = nn.ParameterList([flow.ones(1), flow.zeros(2)])
    assert isinstance(numbers[1], nn.Parameter) and len(list(numbers.parameters())) == 2
    named = nn.ParameterDict({"x": flow.ones(1)})
    named["y"] = flow.ones(3)
    assert list(named.state_dict()) == ["x", "y"] and named.pop("x").shape == (1,) and "x" not in named


# ---- state -------------------------------------------------------------------------------------------


def test_a_state_goes_from_one_module_to_another() -> None:
    a, b = Net(), Net()
    state = a.state_dict()
    assert not state["scale"].requires_grad and a.state_dict(keep_vars=True)["scale"] is a.scale
    assert repr(b.load_state_dict(state_dict=state)) == "<All keys matched successfully>"
    x = flow.ones(1, 2)
    assert b(x).tolist() == a(x).tolist()
    b.load_state_dict({k: v.double() for k, v in state.items()})
    b.load_state_dict({k: v.numpy() for k, v in state.items()})
    assert b.scale.dtype is flow.float32


def test_what_does_not_fit_is_listed_and_changes_nothing() -> None:
    net = Net()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    state = {k: v + 1 for k, v in before.items()}
    del state["inner.0.bias"]
    state["inner.2.weight"] = flow.ones(9, 9)
    state["inner.7.weight"] = flow.ones(1)
    with pytest.raises(CheckpointError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Net:\n"
        '\tMissing key(s) in state_dict: "inner.0.bias". \n'
        '\tUnexpected key(s) in state_dict: "inner.7.weight". \n'
        "\tsize mismatch for inner.2.weight: copying a param with shape torch.Size([9, 9]) from checkpoint, "
        "the shape in current model is torch.Size([2, 3]).\n"
        "The module was left as it was."
    )
    assert all(net.state_dict()[k].tolist() == v.tolist() for k, v in before.items())
    del state["inner.2.weight"]
    found = net.load_state_dict(state, strict=False)
    assert found.missing_keys == ["inner.0.bias", "inner.2.weight"] and found.unexpected_keys == ["inner.7.weight"]
    assert net.scale.tolist() == [2.0, 2.0]


def test_what_is_missing_since_it_is_tied_is_told() -> None:
    """As files of other libraries have tied weights under one name."""
    tied = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 3, bias=False))
    tied[1].weight = tied[0].weight
    state = {"0.weight": flow.ones(3, 2)}
    with pytest.raises(CheckpointError, match=r"are tied to what is there, 1\.weight to 0\.weight: strict=False"):
        tied.load_state_dict(state)
    tied.load_state_dict(state, strict=False)
    assert tied[1].weight.sum().item() == 6
    with pytest.raises(CheckpointError) as told:
        tied.load_state_dict({})
    assert "tied" not in str(told.value)


def test_assign_takes_the_tensors_themselves() -> None:
    net = nn.Linear(2, 2, bias=False)
    value = flow.ones(2, 2, dtype=flow.float64)
    net.load_state_dict({"weight": value}, assign=True)
    assert net.weight.dtype is flow.float64 and net.weight.requires_grad and net.weight.data_ptr() == value.data_ptr()


def test_state_of_ones_own() -> None:
    class Counting(nn.Module):
        count = 0

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    a, b = Counting(), Counting()
    a.count = 3
    b.load_state_dict(a.state_dict())
    assert b.count == 3
    with pytest.raises(CheckpointError, match="_extra_state"):
        b.load_state_dict({})


def test_state_hooks() -> None:
    net = nn.Linear(1, 1, bias=False)
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: {"old": state[prefix + "weight"]})
    net.register_load_state_dict_pre_hook(lambda m, state, *rest: state.__setitem__("weight", state.pop("old")))
    seen = []
    net.register_load_state_dict_post_hook(lambda m, keys: seen.append(keys.missing_keys))
    net.load_state_dict(net.state_dict())
    assert seen == [[]]


# ---- hooks -------------------------------------------------------------------------------------------


def test_forward_hooks_see_and_replace() -> None:
    net, log = nn.Identity(), []
    first = net.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    net.register_forward_hook(lambda m, args, y: log.append((args[0].item(), y.item())))
    net.register_forward_hook(lambda m, args, y: y * 10)
    assert net(flow.tensor(1.0)).item() == 20.0 and log == [(2.0, 2.0)]
    first.remove()
    assert net(flow.tensor(1.0)).item() == 10.0

    class Scaled(nn.Module):
        def forward(self, x: Any, by: int = 1) -> Any:
            return x * by

    scaled = Scaled()
    scaled.register_forward_pre_hook(lambda m, args, kwargs: (args, {"by": 3}), with_kwargs=True)
    scaled.register_forward_hook(lambda m, args, kwargs, y: y + kwargs["by"], with_kwargs=True)
    scaled.register_forward_pre_hook(lambda m, args, kwargs: log.append(kwargs), with_kwargs=True, prepend=True)
    assert scaled(flow.tensor(2.0), by=5).item() == 9.0 and log[-1] == {"by": 5}


def test_backward_hooks_are_torchs() -> None:
    def run(module: Any, make: Any) -> list[Any]:
        log: list[Any] = []
        x = make([1.0, 2.0])
        x.requires_grad = True
        module.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
        module.register_full_backward_hook(lambda m, gi, go: log.append((gi[0].tolist(), go[0].tolist())))
        module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
        module(x).sum().backward()
        return [*log, x.grad.tolist()]

    assert run(nn.ReLU(), flow.tensor) == run(torch.nn.ReLU(), torch.tensor)
    net, log = nn.ReLU(), []
    net.register_full_backward_hook(lambda m, gi, go: log.append((gi, go)))
    net(flow.ones(2))
    assert log == []


# ---- conversions -------------------------------------------------------------------------------------


def test_dtype_mode_and_gradient_switches() -> None:
    net = Net()
    net(flow.ones(1, 2)).sum().backward()
    scale = net.scale
    net.to(flow.float64)
    assert net.scale is scale and scale.dtype is flow.float64 and scale.grad.dtype is flow.float64  # type: ignore[union-attr]
    net.half().float()
    net.register_buffer("count", flow.tensor(1))
    assert net.to("cpu", flow.bfloat16).count.dtype is flow.int64
    net.eval()
    assert not net.inner.training and net.train().inner.training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.zero_grad()
    assert scale.grad is None
    with pytest.raises(flow.errors.DtypeError, match="floating point"):
        net.to(flow.int32)
    with pytest.raises(ArgumentError, match="takes a bool"):
        net.train("yes")  # type: ignore[arg-type]


def test_a_copy_is_another_module() -> None:
    a = Net()
    b = copy.deepcopy(a)
    with flow.no_grad():
        b.scale.fill_(7)
    assert a.scale.tolist() == [1.0, 1.0] and b.scale.tolist() == [7.0, 7.0]
    assert [n for n, _ in b.named_parameters()] == [n for n, _ in a.named_parameters()]


def test_apply_goes_inside_out() -> None:
    seen: list[str] = []
    Net().apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_the_same_model_in_any_layout() -> None:
    """A module laid out over ranks computes what it did, and its optimizer goes on with its parameters."""
    x, S, B = torch.randn(4, 2).tolist(), flow.sbp.split, flow.sbp.broadcast
    flow.manual_seed(0)
    start = {k: v.tolist() for k, v in Net().state_dict().items()}

    def train(layout: Any) -> Any:
        placement = flow.placement("cpu", list(range(flow.env.get_world_size())))
        net = Net()
        net.load_state_dict({k: flow.tensor(v) for k, v in start.items()})
        optimizer = flow.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        batch = flow.tensor(x)
        if layout is not None:
            net.to_global(placement, layout)
            batch = flow.tensor(x, placement=placement, sbp=S(0))
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = (net(batch) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        parts = [tuple(p.to_local().shape) if p.is_global else tuple(p.shape) for p in net.parameters()]
        return losses, parts

    alone, whole = train(None)
    for layout in (B, lambda path, p: S(0) if path.endswith("weight") else B):
        for losses, _ in spawn_threads(2, train, layout):
            assert losses == pytest.approx(alone, rel=1e-5)
    assert spawn_threads(2, train, B)[1][1] == whole
    assert spawn_threads(2, train, S(0))[1][1] == [(1,), (1, 2), (1,), (1, 3)]


def test_to_global_asks_for_what_it_lacks() -> None:
    placement = flow.placement("cpu", [0])
    with pytest.raises(SbpError, match="`weight` is local, so both are needed"):
        nn.Linear(2, 2).to_global(sbp=flow.sbp.broadcast)
    net = nn.Linear(2, 2).to_global(placement, flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
    assert net.weight.sbp == (flow.sbp.split(0),)
    assert net.to_local().weight.is_local
    with pytest.raises(SbpError, match="splits dimension 1"):
        nn.Linear(2, 2).to_global(placement, flow.sbp.split(1))


def test_states_know_the_version_of_their_form(tmp_path: Path) -> None:
    class Third(nn.Linear):
        _version = 3

        def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
            if local_metadata.get("version", 1) < 3:  # once it held half of the weight
                state_dict[prefix + "weight"] = state_dict[prefix + "weight"] * 2
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    model = nn.Sequential(Third(2, 2), nn.ReLU())
    state, before = model.state_dict(), model[0].weight.clone()
    assert dict(state._metadata) == {"": {"version": 1}, "0": {"version": 3}, "1": {"version": 1}}
    model.load_state_dict(state)
    assert flow.equal(model[0].weight, before)
    flow.save({"epoch": 1, "model": state}, path := tmp_path / "versions")
    model.load_state_dict(flow.load(path)["model"])
    assert flow.equal(model[0].weight, before)
    model.load_state_dict(dict(state))  # of which nobody knows
    assert flow.equal(model[0].weight, before * 2)


def test_hooks_after_loading_may_do_without_what_is_missing() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(CheckpointError, match="left as it was"):
        layer.load_state_dict({"bias": flow.ones(2)})
    layer.register_load_state_dict_post_hook(lambda m, found: found.missing_keys.clear())
    assert not layer.load_state_dict({"bias": flow.ones(2)}).missing_keys and layer.bias.tolist() == [1.0, 1.0]
    with pytest.raises(CheckpointError, match=r'Unexpected key.*"more"'):
        layer.load_state_dict({"bias": flow.ones(2), "more": flow.ones(1)})


def test_a_prefix_is_taken_from_a_state() -> None:
    state = {f"module.{k}": v for k, v in nn.Linear(2, 2).state_dict().items()}
    nn.modules.consume_prefix_in_state_dict_if_present(state, "module.")
    nn.Linear(2, 2).load_state_dict(state)


def test_all_members_of_a_role_can_be_exchanged() -> None:
    """As torch's containers do it; other roles keep theirs."""
    layers = flow.nn.ModuleList([flow.nn.ReLU(), flow.nn.Tanh()])
    layers.scale = flow.nn.Parameter(flow.ones(1))
    first, second = layers
    layers._modules = {"0": second, "1": first}
    assert list(layers) == [second, first] and list(layers._parameters) == ["scale"]


def test_hooks_of_every_module_are_torchs() -> None:
    found = []
    for lib in (torch, flow):
        where, seen = lib.nn.modules.module, []
        told = lambda kind, seen=seen: lambda module, *rest: seen.append((kind, type(module).__name__, len(rest)))  # noqa: E731
        handles = [
            where.register_module_forward_pre_hook(told("before")),
            where.register_module_forward_hook(
                lambda module, args, y: y * 2 if type(module).__name__ == "ReLU" else None
            ),
            where.register_module_full_backward_pre_hook(told("before backward")),
            where.register_module_full_backward_hook(told("backward")),
            where.register_module_module_registration_hook(told("module")),
            where.register_module_parameter_registration_hook(told("parameter")),
            where.register_module_buffer_registration_hook(told("buffer")),
        ]
        net = lib.nn.Sequential(lib.nn.ReLU(), lib.nn.BatchNorm1d(2, affine=False), lib.nn.PReLU())
        net[2].register_forward_hook(told("own"))
        x = lib.ones(3, 2, requires_grad=True)
        y = net[0](x)
        net(x).sum().backward()
        for handle in handles:
            handle.remove()
        kept = len(seen)
        lib.nn.ReLU()(x)
        assert len(seen) == kept
        found.append((seen, y.tolist()))
    assert found[0][1] == found[1][1]
    assert found[0][0] == found[1][0]


class Around(nn.Module):
    """Forwards what it hasn't to another module."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "inner":
                raise
            return getattr(self.inner, name)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.__getattr__("inner")(x)


class Kept(nn.Linear):
    _version = 3

    def get_extra_state(self) -> Any:
        return {"seen": 1}

    def set_extra_state(self, state: Any) -> None:
        self.seen = state["seen"]


def test_getattr_is_called_by_its_name() -> None:
    layer = nn.Linear(2, 3)
    assert layer.__getattr__("weight") is layer.weight and layer.__getattr__("in_features") == 2
    with pytest.raises(AttributeError, match=r"^'Linear' object has no attribute 'nothing'$"):
        layer.__getattr__("nothing")
    around = Around(layer)
    x = flow.ones(1, 2)
    assert around.out_features == 3 and around(x).tolist() == layer(x).tolist()
    assert copy.deepcopy(around).out_features == 3
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
        _ = around.nothing


def test_a_property_tells_its_own_error() -> None:
    class Broken(nn.Module):
        @property
        def size(self) -> int:
            raise AttributeError("what lacks inside")

    with pytest.raises(AttributeError, match="what lacks inside"):
        _ = Broken().size


def test_what_is_forwarded_is_not_saved_twice() -> None:
    around = Around(Kept(2, 2))
    state: Any = around.state_dict()
    assert list(state) == ["inner.weight", "inner.bias", "inner._extra_state"]
    assert [state._metadata[path]["version"] for path in ("", "inner")] == [1, 3]
    assert not any(around.load_state_dict(state)) and around.inner.seen == 1


def test_handles_of_hooks_have_ids() -> None:
    layer = nn.Linear(2, 2)
    first, second = (layer.register_forward_hook(lambda *_: None) for _ in range(2))
    assert first.id != second.id and list(layer._forward_hooks) == [first.id, second.id]
    first.remove()
    assert list(layer._forward_hooks) == [second.id]
    third = layer.register_full_backward_hook(lambda *_: None)
    assert list(layer._backward_hooks) == [third.id] and not layer._backward_pre_hooks
