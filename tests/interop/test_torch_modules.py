"""Modules of torch's on Weft's tensors, with torch as the oracle: eagerly, in graphs, in layouts, and back."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import pickle
import warnings
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.utils.prune
import torch.nn.utils.stateless
from torch.autograd import Variable
from torch.nn.utils import parametrizations, parametrize

import weft as flow
from tests.graphs import Calls
from tests.ranks import on
from weft import nn
from weft.core.errors import ArgumentError, CheckpointError, SbpError, TraceError
from weft.interop.functions import counterpart

S, B = flow.sbp.split, flow.sbp.broadcast


class Block(torch.nn.Module):
    """What layers of models do: makes a mask, asks what its tensors are, keeps a buffer, ties a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(10, 8)
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.norm, self.drop = torch.nn.LayerNorm(8), torch.nn.Dropout(0.2)
        self.head = torch.nn.Linear(8, 10, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.places, self.again = [torch.arange(6)], self.norm

    def mixed(self, x: torch.Tensor) -> torch.Tensor:
        t = x.shape[1]
        mask = torch.full((t, t), torch.finfo(x.dtype).min, dtype=x.dtype, device=x.device).triu(1)
        scores = (x @ x.transpose(-1, -2) + mask).softmax(-1, dtype=torch.float32).to(x.dtype)
        return scores @ x

    def forward(self, ids: torch.Tensor, scale: float = 1.0) -> dict[str, torch.Tensor]:
        assert isinstance(ids, torch.Tensor) and isinstance(self.embed.weight, torch.nn.Parameter)
        assert next(self.parameters()).dtype == torch.float32
        self.steps += 1
        x = self.embed(ids) + self.places[0][: ids.shape[1], None] * scale
        with torch.no_grad():
            bias = x.mean()
        x = self.norm(x + self.again(self.mixed(x)) - bias)
        return {"logits": self.head(x + self.drop(self.down(torch.nn.functional.gelu(self.up(x)))))}


class Joined(torch.nn.Module):
    """What a layer sets on its input, the next one reads, as fastai's do."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), Sum()])

    def forward(self, x: Any) -> Any:
        y = x
        for layer in self.layers:
            y.orig = x
            y = layer(y)
        return y


class Sum(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.relu() + x.orig


class Grouped(torch.nn.Conv2d):
    """A convolution of 1x1 kernels in groups over a sequence, in float64."""

    def __init__(self) -> None:
        super().__init__(8, 8, 1, groups=2, bias=False, dtype=torch.float64)

    def forward(self, x: Any) -> Any:
        return super().forward(x.transpose(1, 2).unsqueeze(-1)).squeeze(-1).transpose(1, 2) @ x.transpose(1, 2)


class Windows(torch.nn.Linear):
    """Overlapping windows of what lies transposed, by its strides, with dropout on them."""

    def forward(self, x: Any) -> Any:
        y = super().forward(x).transpose(0, 1)
        windows = y.as_strided((4, 2, 4, 4), (y.stride(0), *y.stride()))
        return torch.nn.functional.dropout(windows.reshape(-1, 4), 0.2, self.training)


MODULES: dict[str, tuple[Any, Any]] = {
    "attributes of tensors": (Joined, lambda: torch.randn(4, 4)),
    "block": (Block, lambda: torch.randint(0, 10, (4, 6))),
    "convolutions": (
        lambda: torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.SiLU(inplace=True),
            torch.nn.MaxPool2d(2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 5),
        ),
        lambda: torch.randn(4, 3, 8, 8),
    ),
    "encoder": (
        lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda: torch.randn(4, 5, 8),
    ),
    "grouped": (Grouped, lambda: torch.randn(4, 5, 8, dtype=torch.float64)),
    "lstm": (lambda: torch.nn.LSTM(4, 6, batch_first=True), lambda: torch.randn(4, 5, 4)),
    "weight norm": (
        lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(4, 6)),
        lambda: torch.randn(4, 4),
    ),
    "windows": (lambda: Windows(4, 4), lambda: torch.randn(4, 5, 4)),
}  # fmt: skip


def loss_of(y: Any) -> Any:
    y = y["logits"] if isinstance(y, dict) else y[0] if isinstance(y, tuple) else y
    return (y * y).mean()


def trained(library: Any, m: Any, x: Any) -> tuple[list[float], dict[str, Any]]:
    library.manual_seed(3)
    optimizer, losses = library.optim.SGD(m.parameters(), lr=0.1), []
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(m(x))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach().numpy()))
    return losses, {name: t.detach().numpy() for name, t in m.state_dict().items()}


def compare(found: tuple[list[float], dict[str, Any]], expected: tuple[list[float], dict[str, Any]]) -> None:
    assert found[0] == pytest.approx(expected[0], rel=1e-4)
    assert list(found[1]) == list(expected[1])
    for name, value in expected[1].items():
        assert found[1][name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


@pytest.mark.parametrize("name", MODULES)
def test_a_module_trains_as_it_does_in_torch(name: str):
    torch.manual_seed(0)
    make, data = MODULES[name]
    theirs, x = make(), data()
    ours = flow.from_torch(copy.deepcopy(theirs))
    compare(trained(flow, ours, flow.from_torch(x)), trained(torch, theirs, x))
    ours.eval(), theirs.eval()
    assert loss_of(ours(flow.from_torch(x))).item() == pytest.approx(loss_of(theirs(x)).item(), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "everywhere"), [*((n, False) for n in MODULES), *((n, True) for n in ("convolutions", "lstm"))]
)
def test_a_graph_trains_it_too(name: str, everywhere: bool):
    torch.manual_seed(0)
    make, data = MODULES[name]
    theirs, x = make(), data()
    ours, P = flow.from_torch(copy.deepcopy(theirs)), flow.placement("cpu", [0])
    if everywhere:
        ours.to_global(P, B)
    expected, state = trained(torch, theirs, x)

    class Train(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.m = ours
            self.add_optimizer(flow.optim.SGD(ours.parameters(), lr=0.1))

        def build(self, x: Any) -> Any:
            loss = loss_of(self.m(x))
            loss.backward()
            return loss

    graph = Train()
    flow.manual_seed(3)
    given = flow.from_torch(x).to_global(P, B) if everywhere else flow.from_torch(x)
    losses = [graph(given).item() for _ in range(3)]
    compare((losses, {n: t.detach().numpy() for n, t in ours.state_dict().items()}), (expected, state))


def test_two_ranks_train_it_in_any_layout():
    torch.manual_seed(0)
    theirs, x = Block(), torch.randint(0, 10, (4, 6))
    expected = trained(torch, copy.deepcopy(theirs), x)
    plans: list[tuple[Any, Any]] = [
        (B, S(0)),
        ({"*up.*": S(0), "down.weight": S(1)}, B),
        ({"up": "colwise", "down": "rowwise", "embed": "embedding_rowwise"}, B),
    ]

    @on(2)
    def run() -> None:
        P = flow.placement("cpu", ranks=[0, 1])
        for plan, batch in plans:
            ours = flow.from_torch(copy.deepcopy(theirs)).to_global(P, plan)
            if isinstance(plan, dict):
                assert ours.up.weight.sbp == (S(0),) and ours.down.weight.sbp == (S(1),)
            given = flow.from_torch(x).to_global(placement=P, sbp=B).to_global(sbp=batch)
            compare(trained(flow, ours, given), expected)

    run()


def test_ranks_with_batches_of_their_own_average_its_gradients():
    torch.manual_seed(0)
    theirs, x = torch.nn.Linear(4, 2), torch.randn(4, 4)
    expected = trained(torch, copy.deepcopy(theirs), x)

    @on(2)
    def run() -> None:
        ours = nn.parallel.DistributedDataParallel(flow.from_torch(copy.deepcopy(theirs)))
        rank = flow.env.get_rank()
        _, state = trained(flow, ours, flow.from_torch(x[2 * rank : 2 * rank + 2]))
        assert state["weight"] == pytest.approx(expected[1]["weight"], rel=1e-4)

    run()


def test_memory_is_shared_and_the_module_given_stays_torchs():
    theirs = torch.nn.BatchNorm1d(3)
    ours = flow.from_torch(theirs)
    assert isinstance(ours, torch.nn.BatchNorm1d) and isinstance(ours, nn.Module)
    assert type(theirs) is torch.nn.BatchNorm1d and type(theirs.weight) is torch.nn.Parameter
    ours(flow.randn(4, 3))
    assert theirs.num_batches_tracked.item() == 1
    assert isinstance(ours.weight, nn.Parameter)
    assert repr(ours) == repr(theirs)


def test_back_to_torch():
    theirs = Block()
    back = flow.to_torch(flow.from_torch(theirs))
    assert type(back) is Block and back.head.weight is back.embed.weight
    assert back.up.weight.data_ptr() == theirs.up.weight.data_ptr()
    back.eval(), theirs.eval()
    x = torch.randint(0, 10, (2, 6))
    assert torch.equal(back(x)["logits"], theirs(x)["logits"])
    with pytest.raises(ArgumentError, match="written for Weft"):
        flow.to_torch(nn.Linear(2, 3))


@pytest.mark.filterwarnings("ignore")
def test_what_comes_back_is_exported_by_torchs_own_ways():
    ours = flow.from_torch(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)))
    optimizer = flow.optim.SGD(ours.parameters(), lr=0.1)
    ours(flow.ones(2, 3)).sum().backward()
    optimizer.step()
    back, x = flow.to_torch(ours).eval(), torch.randn(2, 3)
    expected = ours(flow.from_torch(x)).detach().to_torch()
    for way in (torch.jit.script, torch.fx.symbolic_trace):
        torch.testing.assert_close(way(back)(x), expected)
    of_eight_bits = torch.ao.quantization.quantize_dynamic(back, dtype=torch.qint8)
    torch.testing.assert_close(of_eight_bits(x), expected, rtol=0.1, atol=0.05)


def test_a_plain_module_may_hold_the_parts_of_another() -> None:
    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mid = torch.nn.Module()
            self.mid.block, self.mid.scale = torch.nn.Linear(3, 3), torch.nn.Parameter(torch.ones(3))
            self.mid.register_buffer("shift", torch.ones(3))
            self.down = torch.nn.ModuleList([torch.nn.Module()])
            self.down[0].block = torch.nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.down[0].block(self.mid.block(x)) * self.mid.scale + self.mid.shift

    theirs, x = Encoder(), torch.randn(2, 3)
    ours = flow.from_torch(copy.deepcopy(theirs))
    theirs(x).sum().backward()
    ours(flow.from_torch(x)).sum().backward()
    torch.testing.assert_close(ours.mid.scale.grad.to_torch(), theirs.mid.scale.grad)
    torch.testing.assert_close(Calls(ours)(flow.from_torch(x)).to_torch(), theirs(x).detach())
    back = flow.to_torch(ours)
    assert type(back.mid) is torch.nn.Module and list(back.state_dict()) == list(theirs.state_dict())
    assert [*ours.state_dict()] == [*theirs.state_dict()] and repr(ours) == repr(theirs)
    torch.testing.assert_close(back(x), theirs(x))


def test_torchs_old_variables_are_tensors() -> None:
    class Older(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> Any:
            still, trained = Variable(x), Variable(torch.ones(3), requires_grad=True)
            assert isinstance(still, Variable) and not still.requires_grad and trained.requires_grad
            return super().forward(still) + trained

    theirs, x = Older(3, 3), torch.randn(2, 3)
    ours = flow.from_torch(copy.deepcopy(theirs))
    torch.testing.assert_close(ours(flow.from_torch(x)).detach().to_torch(), theirs(x).detach())
    torch.testing.assert_close(Calls(ours)(flow.from_torch(x)).to_torch(), theirs(x).detach())
    made: Any = Variable(data=flow.ones(2), requires_grad=True)
    assert type(made) is flow.Tensor and made.requires_grad and type(Variable(x)) is torch.Tensor
    with pytest.raises(TypeError, match="has to be a tensor"):
        Variable(3)


def halved(x: torch.Tensor, times: int = 1) -> torch.Tensor:
    for _ in range(times):
        x = x / 2 + 1
    return x


@pytest.mark.filterwarnings("ignore")
def test_functions_that_torch_compiled_to_scripts_run_as_python() -> None:
    """Their C++ would compute on what a stand-in is to it."""
    for compiled in (torch.jit.script(halved), torch.jit.trace(halved, torch.ones(2))):

        class Uses(torch.nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return compiled(super().forward(x)) + compiled(x)  # noqa: B023

        theirs, x = Uses(3, 3), torch.randn(2, 3)
        ours = flow.from_torch(copy.deepcopy(theirs))
        theirs(x).sum().backward()
        ours(flow.from_torch(x)).sum().backward()
        torch.testing.assert_close(ours.weight.grad.to_torch(), theirs.weight.grad)
        torch.testing.assert_close(Calls(ours)(flow.from_torch(x)).to_torch(), theirs(x).detach())
        torch.testing.assert_close(compiled(flow.from_torch(x)).to_torch(), halved(x))
        torch.testing.assert_close(compiled(x), halved(x))
    with pytest.raises(ArgumentError, match=r"Linear is compiled by TorchScript.*Give the module that"):
        flow.from_torch(torch.nn.Sequential(torch.jit.script(torch.nn.Linear(2, 2))))


def test_a_copy_computes_with_its_own_tensors():
    ours, x = flow.from_torch(torch.nn.BatchNorm1d(2, momentum=1.0)), flow.tensor([[1.0, 2.0], [3.0, 8.0]])
    ours(x)
    copied = copy.deepcopy(ours)
    with flow.no_grad():
        copied.weight.zero_()
        copied.bias.fill_(7.0)
    copied(x * 2)
    assert copied(x).tolist() == [[7.0, 7.0]] * 2 and ours.running_mean.tolist() == [2.0, 5.0]
    assert ours(x).std().item() > 0


def test_dropout_of_a_transposed_tensor_goes_through_a_global_one_row_by_row():
    """Torch goes in the order of memory, which a global tensor has not: attention's output, transposed, is the usual
    case. Where torch's is made contiguous, every number is the same."""

    def in_rows(m: Any, args: Any, y: Any) -> Any:
        return y[0].contiguous(), y[1]

    torch.manual_seed(0)
    theirs, x = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True), torch.randn(4, 5, 8)
    ours, P = flow.from_torch(copy.deepcopy(theirs)), flow.placement("cpu", [0])
    theirs.self_attn.register_forward_hook(in_rows)
    compare(trained(flow, ours.to_global(P, B), flow.from_torch(x).to_global(P, B)), trained(torch, theirs, x))


def bare(v: Any) -> bool:
    """Whether code of torch's, which has this, has a tensor of Weft's in its hands."""
    if isinstance(v, (list, tuple, dict)) or hasattr(v, "__next__"):
        return any(map(bare, v.values() if isinstance(v, dict) else v))
    return isinstance(v, flow.Tensor)


def test_whatever_a_tensor_is_asked_inside_it_answers_in_torchs_words():
    class Asking(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            for name in dir(x):  # Python's own protocols: what else there is goes through one wrapper
                if not name.startswith("__") or name in ("__reduce_ex__", "__getstate__"):
                    continue
                try:
                    found = getattr(x, name)
                    found = found() if callable(found) and not isinstance(found, type) else found
                except Exception:  # it takes arguments
                    continue
                assert not bare(found), name
            assert [type(row) for row in x] == [type(x)] * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flow.from_torch(Asking())(flow.ones(2, 2))


class Observing(torch.nn.Module):
    """Counts the calls of its layer by a hook, whose handle it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.count = torch.nn.Linear(2, 2), 0
        self.handle = self.layer.register_forward_hook(self.seen, with_kwargs=True)

    def seen(self, layer: Any, args: Any, kwargs: Any, y: Any) -> None:
        self.count += 1

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def test_a_handle_that_a_module_keeps_removes_its_hook_in_every_copy():
    theirs, x = Observing(), torch.ones(1, 2)
    ours = flow.from_torch(theirs)
    copied = copy.deepcopy(ours)
    back = flow.to_torch(ours)
    for module, given in ((theirs, x), (ours, flow.ones(1, 2)), (copied, flow.ones(1, 2)), (back, x)):
        module(given)
        module.handle.remove()
        module(given)
        assert module.count == 1
    copy.deepcopy(back)


def test_hooks_go_with_it():
    theirs, seen = torch.nn.Linear(2, 2), []
    theirs.register_forward_hook(lambda m, args, y: seen.append(tuple(y.shape)))
    ours = flow.from_torch(theirs)
    ours(flow.ones(3, 2))
    assert seen == [(3, 2)]


class Mixed(torch.nn.Module):
    """A module of torch's with a layer of Weft's."""

    def __init__(self) -> None:
        super().__init__()
        self.theirs, self.ours = torch.nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.ours(self.theirs(x))


def test_a_layer_of_wefts_in_a_module_of_torchs_is_trained_with_it() -> None:
    model = flow.from_torch(Mixed())
    assert [name for name, _ in model.named_parameters()] == [
        "theirs.weight", "theirs.bias", "ours.weight", "ours.bias",
    ]  # fmt: skip
    model(flow.ones(1, 2)).sum().backward()
    assert model.ours.weight.grad is not None and not model.eval().ours.training


class Checked(torch.nn.Module):
    """A module whose class calls `forward` itself, and which knows the one that holds it."""

    def __init__(self, holder: torch.nn.Module) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(2))
        object.__setattr__(self, "holder", holder)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = self.forward(x)
        assert isinstance(y, torch.Tensor)
        return y

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + self.holder.shift


class Holding(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = torch.nn.Parameter(torch.ones(2))
        self.checked = Checked(self)


def test_a_module_may_call_itself_and_know_its_holder() -> None:
    model = flow.from_torch(Holding())
    assert [name for name, _ in model.named_parameters()] == ["shift", "checked.scale"]
    assert list(model.checked.children()) == [] and model.checked.holder is model
    y = model.checked(flow.ones(2))
    y.sum().backward()
    assert isinstance(y, flow.Tensor) and y.tolist() == [2.0, 2.0] and model.shift.grad.tolist() == [1.0, 1.0]


def test_a_pattern_takes_an_sbp_as_text() -> None:
    P = flow.placement("cpu", [0])
    layer = flow.from_torch(torch.nn.Linear(2, 2)).to_global(P, {"weight": "S(1)"})
    assert layer.weight.sbp == (S(1),) and layer.bias.sbp == (B,)
    with pytest.raises(SbpError, match="splits dimension 9"):
        layer.to_global(P, {"weight": "S(9)"})


def test_a_pattern_that_fits_nothing_is_a_mistake():
    with pytest.raises(SbpError, match=r"matches \['\*\.q_proj\.weight'\]; its parameters are called weight, bias"):
        flow.from_torch(torch.nn.Linear(2, 2)).to_global(flow.placement("cpu", [0]), {"*.q_proj.weight": S(0)})
    layer = flow.from_torch(torch.nn.Linear(2, 2))
    with pytest.warns(UserWarning, match=r"\['weigth'\] fit no tensor of this Linear"):
        layer.to_global(flow.placement("cpu", [0]), {"weigth": S(0), "bias": S(0)})
    for wrong, hint in (("colwize", "mean 'colwise'"), ("S0", "neither an sbp"), ("split", r"mean 'split\(0\)'"),
                        (3, "goes to 3"), (lambda *_: S(0), "goes to <function"), (None, "goes to None")):  # fmt: skip
        with pytest.raises(SbpError, match=hint):
            layer.to_global(flow.placement("cpu", [0]), {"weight": wrong})
    layer.to_global(flow.placement("cpu", [0]), {"weight": "replicated_with_grad_allreduce", "q": "colwise"})
    assert layer.weight.sbp == (B,)


def test_what_has_no_counterpart_is_named():
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)

    with pytest.raises(ArgumentError, match=r"torch\.quantize_per_tensor: .* Weft has no function of this name"):
        flow.from_torch(Odd())(flow.ones(2))


def test_most_of_torchs_functions_have_a_counterpart():
    """What the table derives from names: it covers what models are made of."""
    names = {str(n) for f in torch.overrides.get_overridable_functions().get(torch.nn.functional, [])
             if (n := torch.overrides.resolve_name(f))}  # fmt: skip
    lacking = {n for n in names if counterpart(n) is None}
    assert len(lacking) < len(names) / 4, sorted(lacking)


class Writer:
    """What stands behind torch's Module in the order of classes, as the `generate` of transformers does."""

    def generate(self: Any, ids: torch.Tensor, n: int) -> torch.Tensor:
        assert isinstance(ids, torch.Tensor)
        for _ in range(n):
            ids = torch.cat([ids, self(ids)[:, -1:].argmax(-1)], 1)
        return torch.full_like(ids, ids[0, 0]) + ids + torch.tensor(0, device=ids.device)


class Written(torch.nn.Module, Writer):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(ids))


def test_methods_of_every_class_run_on_wefts_tensors() -> None:
    theirs, ids = Written(), torch.tensor([[1, 2], [3, 4]])
    got = flow.from_torch(theirs).generate(flow.from_torch(ids), 3)
    assert isinstance(got, flow.Tensor) and torch.equal(got.to_torch(), theirs.generate(ids, 3))


class Sampling(torch.nn.Module):
    """A variational layer, as programs write one."""

    def __init__(self) -> None:
        super().__init__()
        self.both = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, spread = self.both(x).chunk(2, -1)
        q, p = torch.distributions.Normal(mean, spread.exp()), torch.distributions.Normal(0.0, torch.ones_like(mean))
        gamma = torch.distributions.Dirichlet(spread.exp()).rsample()
        return (q.rsample() * gamma).sum() + torch.distributions.kl_divergence(q, p).mean()


def test_distributions_inside() -> None:
    theirs, x = Sampling(), torch.randn(3, 4)
    ours = flow.from_torch(theirs)

    torch.manual_seed(1)
    expected = theirs(x)
    expected.backward()
    for run in (ours, Calls(ours)):
        flow.manual_seed(1)
        got = run(flow.from_torch(x))
        torch.testing.assert_close(got.detach().to_torch(), expected.detach())
        if run is ours:
            got.backward()
    torch.testing.assert_close(ours.both.weight.grad.to_torch(), theirs.both.weight.grad)


def test_records_keep_their_fields() -> None:
    class Solving(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.linalg.lstsq(a, b, driver="gels").solution.to(torch.float32)

    a, b = torch.randn(4, 3), torch.randn(4, 1)
    got = flow.from_torch(Solving())(flow.from_torch(a), flow.from_torch(b))
    torch.testing.assert_close(got.to_torch(), Solving()(a, b), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_sequences_are_packed_inside(kind: str) -> None:
    rnn = torch.nn.utils.rnn

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = getattr(torch.nn, kind)(4, 3, 2, bidirectional=True)

        def forward(self, x: torch.Tensor, lengths: Any) -> tuple[torch.Tensor, torch.Tensor]:
            packed, _ = self.layer(rnn.pack_padded_sequence(x, lengths, enforce_sorted=False))
            return rnn.pad_packed_sequence(packed, padding_value=0.5, total_length=6)

    theirs, x = Encoder(), torch.randn(5, 3, 4)
    ours = flow.from_torch(copy.deepcopy(theirs))
    for lengths in ([2, 5, 3], torch.tensor([5, 1, 1])):
        expected, counts = theirs(x, lengths)
        got, ends = ours(flow.from_torch(x), lengths)
        torch.testing.assert_close(got.detach().to_torch(), expected.detach())
        assert ends.tolist() == counts.tolist()
        expected.square().sum().backward()
        got.square().sum().backward()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p.grad.to_torch(), q.grad, rtol=1e-4, atol=1e-5)

    @on(2)
    def run() -> None:
        P = flow.placement("cpu", ranks=[0, 1])
        ours, whole = flow.from_torch(copy.deepcopy(theirs)), flow.from_torch(copy.deepcopy(theirs)).to_global(P, B)
        for model, given in ((ours, flow.from_torch(x)), (whole, flow.from_torch(x).to_global(P, B))):
            model.zero_grad()
            model(given, [5, 1, 2])[0].square().sum().backward()
        for p, q in zip(whole.parameters(), ours.parameters(), strict=True):
            torch.testing.assert_close(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5)

    run()


def test_what_torchs_layers_call_within() -> None:
    class Pooling(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y, places = torch.nn.MaxPool2d(2, return_indices=True)(x)
            rows = torch.nn.utils.rnn.pad_sequence([y[0, 0], y[0, 0, :1]], batch_first=True)
            _, largest = torch.nn.AdaptiveMaxPool2d(2, return_indices=True)(x)
            return torch.nn.MaxUnpool2d(2)(y, places).sum() + rows.square().sum() + largest.sum()

    x, hidden = torch.randn(1, 2, 4, 4), torch.tensor([[False, True, True], [False, False, True]])
    torch.testing.assert_close(flow.from_torch(Pooling())(flow.from_torch(x)).to_torch(), Pooling()(x))

    class Chooses(torch.nn.Module):
        def forward(self, x: torch.Tensor, at: float) -> Any:
            return torch.cond(x.sum() > at, lambda y: y * 2, torch.neg, (x,))

    for at, expected in ((-1e9, x * 2), (1e9, -x)):
        torch.testing.assert_close(flow.from_torch(Chooses())(flow.from_torch(x), at).to_torch(), expected)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    theirs = torch.nn.TransformerEncoder(layer, 2).eval()
    ours, tokens = flow.from_torch(copy.deepcopy(theirs)), torch.randn(2, 3, 4)
    with torch.no_grad(), flow.no_grad():
        expected = theirs(tokens, src_key_padding_mask=hidden)
        got = ours(flow.from_torch(tokens), src_key_padding_mask=flow.from_torch(hidden))
    torch.testing.assert_close(got.to_torch()[~hidden], expected[~hidden])


# ---- modules that are changed after they were taken ----


class Adapter(torch.nn.Module):
    """As libraries of adapters have it."""

    def __init__(self, base: Any, rank: int = 2) -> None:
        super().__init__()
        self.base_layer = base
        self.down = torch.nn.ModuleDict({"default": torch.nn.Linear(base.in_features, rank, bias=False)})
        self.up = torch.nn.ModuleDict({"default": torch.nn.Linear(rank, base.out_features, bias=False)})
        self.scales = {"default": torch.tensor(2.0)}

    def forward(self, x: Any) -> Any:
        more = self.up["default"](self.down["default"](x.to(self.down["default"].weight.dtype)))
        return self.base_layer(x) + more * self.scales["default"]


def adapted(model: Any) -> Any:
    torch.manual_seed(1)
    for p in model.parameters():
        p.requires_grad = False
    for name, m in list(model.named_modules()):
        if isinstance(m, torch.nn.Linear):
            setattr(model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], Adapter(m))
    return model


def test_adapters_are_put_into_a_module_that_was_taken() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    pair = adapted(copy.deepcopy(theirs)), adapted(flow.from_torch(theirs))
    x, losses = torch.randn(4, 6), []
    for model in pair:
        trained = [p for p in model.parameters() if p.requires_grad]
        assert len(trained) == 4
        optimizer = torch.optim.AdamW(trained, lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    torch.testing.assert_close(losses[:3], losses[3:])
    assert [*pair[0].state_dict()] == [*pair[1].state_dict()]
    assert type(flow.to_torch(pair[1])[0].down["default"].weight) is torch.nn.Parameter


def test_what_a_taken_module_is_given_becomes_wefts() -> None:
    ours = flow.from_torch(torch.nn.Sequential(torch.nn.Linear(2, 3)))
    late = torch.nn.Linear(3, 2)
    weight = late.weight.data_ptr()
    ours.append(late)
    ours.register_module("other", torch.nn.ModuleList([torch.nn.Linear(2, 2)]))
    ours.scale = torch.nn.Parameter(torch.ones(3))
    ours.register_parameter("shift", torch.nn.Parameter(torch.zeros(3)))
    assert ours[1] is late and isinstance(late, nn.Module)  # itself: others may hold it
    assert late.weight.to_torch().data_ptr() == weight  # type: ignore[operator]
    assert all(isinstance(p, nn.Parameter) for p in ours.parameters()) and len([*ours.parameters()]) == 8

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = late, torch.nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.inner(x))

    outer = flow.from_torch(Outer())  # around a module that is Weft's already, which stays the same
    assert outer.inner is late
    outer(flow.ones(1, 3)).sum().backward()
    assert late.weight.grad is not None and outer.head.weight.grad is not None


class Symmetric(torch.nn.Module):
    def forward(self, w: Any) -> Any:
        return w.triu() + w.triu(1).transpose(-1, -2)

    def right_inverse(self, w: Any) -> Any:
        return w.triu()


PARAMETRIZED: dict[str, Any] = {
    "register_parametrization": lambda m: parametrize.register_parametrization(m, "weight", Symmetric()),
    "weight_norm": parametrizations.weight_norm,
    "spectral_norm": parametrizations.spectral_norm,
    "orthogonal": parametrizations.orthogonal,
    "older weight_norm": torch.nn.utils.weight_norm,
    "older spectral_norm": torch.nn.utils.spectral_norm,
    "prune": lambda m: torch.nn.utils.prune.l1_unstructured(m, "weight", 0.5),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("how", PARAMETRIZED)
def test_torch_parametrizes_a_module_that_was_taken(how: str) -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    ours = flow.from_torch(copy.deepcopy(theirs))
    x, outputs, grads = torch.randn(3, 4), [], []
    for model in (theirs, ours):
        torch.manual_seed(0)
        flow.manual_seed(0)
        PARAMETRIZED[how](model[0])
        y = model(x)
        y.square().sum().backward()
        outputs.append(y.detach() if model is theirs else y.detach().to_torch())
        grads.append({n: p.grad.tolist() for n, p in model.named_parameters()})
    torch.testing.assert_close(outputs[0], outputs[1])
    assert [*grads[0]] == [*grads[1]]
    for name, grad in grads[0].items():
        torch.testing.assert_close(torch.tensor(grads[1][name]), torch.tensor(grad), rtol=1e-4, atol=1e-5)
    if how == "register_parametrization":
        parametrize.remove_parametrizations(ours[0], "weight")
        assert isinstance(ours[0].weight, nn.Parameter)
        torch.testing.assert_close(ours(x).to_torch(), outputs[0])


@pytest.mark.filterwarnings("ignore:.*stateless:FutureWarning")
def test_torchs_functional_calls_take_modules_that_were_taken() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
    ours, x = flow.from_torch(theirs), torch.randn(5, 4)
    found = []
    for model, x_ in ((theirs, x), (ours, flow.from_torch(x))):
        params = {n: p.detach() * 2 for n, p in model.named_parameters()}

        def loss(params: Any, x: Any, model: Any = model) -> Any:
            return torch.func.functional_call(model, params, (x,)).square().mean()

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(params, x_)
        stacked, _ = torch.func.stack_module_state([model, model])
        found.append(({n: g.tolist() for n, g in each.items()}, {n: tuple(t.shape) for n, t in stacked.items()}))
        assert torch.nn.utils.stateless.functional_call(model, params, (x_,)).shape == (5, 3)
    torch.testing.assert_close(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


class Stepper(torch.nn.Module):
    """What a solver of equations does: it reads and writes `data`."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.t = torch.nn.Linear(2, 2), torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, y: Any) -> Any:
        before = y.data.clone()
        y = y + self.t.data * self.f(y)
        self.f.bias.data.add_(0.5)
        self.f.weight.data = self.f.weight.data * 2
        self.t.data.copy_(torch.tensor(2.0))
        step = torch.tensor(3.0)
        step.data = torch.tensor(4.0)
        return y * step + before.data.sum()


def test_data_is_read_and_written() -> None:
    theirs = Stepper()
    ours, x = flow.from_torch(copy.deepcopy(theirs)), torch.randn(3, 2)
    for _ in range(2):
        torch.testing.assert_close(ours(x).detach().to_torch(), theirs(x).detach())
    torch.testing.assert_close(ours.f.weight.detach().to_torch(), theirs.f.weight.detach())


class Momentum(torch.nn.Module):
    """A network that follows another's averages, as contrastive learning has it."""

    def __init__(self) -> None:
        super().__init__()
        self.trained, self.following = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).requires_grad_(False)

    def forward(self, x: Any) -> Any:
        for p, q in zip(self.trained.parameters(), self.following.parameters(), strict=True):
            q.data = q.data * 0.5 + p.data * 0.5
            q.data.mul_(0.9)
        return (self.trained(x) - self.following(x)).square().mean()


def test_data_is_read_and_written_in_a_graph() -> None:
    theirs, x = Momentum(), torch.randn(3, 2)
    ours = flow.from_torch(copy.deepcopy(theirs))

    class Train(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = ours
            self.add_optimizer(flow.optim.SGD(ours.trained.parameters(), lr=0.1))

        def build(self, x: Any) -> Any:
            loss = self.model(x)
            loss.backward()
            return loss

    graph, optimizer = Train(), torch.optim.SGD(theirs.trained.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = theirs(x)
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(graph(x).to_torch(), loss.detach())
    torch.testing.assert_close(ours.following.weight.to_torch(), theirs.following.weight)


class Looking(torch.nn.Module):
    """What reads and writes its members by their tables and its state."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.register_buffer("scale", torch.ones(3))

    @property
    def device(self) -> torch.device:
        return self.layer.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    @property
    def total(self) -> torch.Tensor:
        return self.layer.weight.sum()

    def forward(self, x: Any) -> Any:
        state = self.state_dict()
        y = torch.mm(self._buffers["scale"] * x, self.layer._parameters["weight"])  # type: ignore[operator, arg-type]
        self._buffers["scale"] = self.get_buffer("scale") + state["scale"] * 2
        for p in self.layer._parameters.values():
            y = y + torch.nn.functional.silu(p * state["layer.bias"]) * x
        old = self.layer._parameters.pop("weight")
        assert isinstance(old, torch.nn.Parameter)
        self.layer._parameters["weight"] = torch.nn.Parameter(old * 2)
        return y.sum() * self.layer.get_parameter("bias").sum() + self.total


def test_members_and_states_are_read_by_the_modules_code_as_stand_ins() -> None:
    theirs, x = Looking(), torch.randn(3, 3)
    ours, inside = flow.from_torch(copy.deepcopy(theirs)), flow.from_torch(x)
    for _ in range(2):
        a, b = theirs(x), ours(inside)
        a.backward()
        b.backward()
        torch.testing.assert_close(b.detach().to_torch(), a.detach())
    torch.testing.assert_close(ours.layer.bias.grad.to_torch(), theirs.layer.bias.grad)
    assert type(ours.scale) is flow.Tensor and ours.scale.tolist() == theirs.scale.tolist()
    assert type(ours.layer._parameters["weight"]) is nn.Parameter
    assert type(ours.state_dict()["scale"]) is flow.Tensor and type(ours.get_buffer("scale")) is flow.Tensor


OUTSIDE = flow.tensor([1.0, 2.0, 3.0])


class Reaching(torch.nn.Module):
    """What finds tensors of Weft's that it doesn't hold as members."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.kept = torch.nn.Linear(3, 3), [torch.ones(3)]

    def forward(self, x: Any) -> Any:
        y = OUTSIDE * self.layer(x) + self.kept[0] @ self.kept[0]  # type: ignore[operator]
        y = torch.relu(y) - OUTSIDE.exp() * torch.nn.functional.softplus(y)  # type: ignore[operator]
        wave = flow.stft(OUTSIDE, 2, 1, window=flow.ones(2), return_complex=True).abs().sum()
        return y * OUTSIDE.view(1, 3).expand(3, 3).sum(0) * wave  # type: ignore[operator]


@pytest.mark.parametrize("traced", [False, True])
def test_tensors_from_outside_compute_in_the_modules_code(traced: bool) -> None:
    ours = flow.from_torch(Reaching())
    ours.kept = [flow.tensor([2.0, 1.0, 1.0])]
    x = flow.randn(2, 3)

    got = (Calls(ours) if traced else ours)(x)
    y = (OUTSIDE * (x @ ours.layer.weight.T + ours.layer.bias) + 6).detach().to_torch()
    o = OUTSIDE.to_torch()
    wave = torch.stft(o, 2, 1, window=torch.ones(2), return_complex=True).abs().sum()
    expected = (torch.relu(y) - o.exp() * torch.nn.functional.softplus(y)) * (3 * o) * wave
    torch.testing.assert_close(got.detach().to_torch(), expected)
    if not traced:
        got.sum().backward()
        assert ours.layer.weight.grad is not None


def test_a_modules_properties_are_read_as_its_methods() -> None:
    ours = flow.from_torch(Looking())
    assert type(ours.device) is torch.device and ours.dtype is torch.float32 and type(ours.total) is flow.Tensor
    assert torch.ones(2).to(ours.device).sum() == flow.ones(2).to(ours.device, ours.dtype).sum().item() == 2


class Checking(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._check_tensor_all(x > 0, lambda: "x must be positive")
        torch._assert_async(x.sum() < 9, "x must be small")
        return x + (x > 2)._is_any_true()


def test_checks_of_all_elements_see_their_values() -> None:
    checking = flow.from_torch(Checking())
    assert checking(flow.tensor([1.0, 3.0])).tolist() == Checking()(torch.tensor([1.0, 3.0])).tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="x must be positive"):
        checking(flow.tensor([1.0, -3.0]))
    with pytest.raises(RuntimeError, match="x must be small"):
        checking(flow.tensor([9.0]))


class Registered(torch.nn.Module):
    known: dict[str, type] = {}

    def __init_subclass__(cls, name: str) -> None:
        cls.known[name] = cls

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = torch._shape_as_tensor(x)[0] if torch.jit.is_tracing() else x.shape[0]
        return x.expand(n, 3)


class Known(Registered, name="known"): ...


class Halving(torch.nn.Module):
    """Of sizes, which are tensors in torch's own trace."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = len(x) / 2
        both = (torch.floor(half), torch.ceil(half)) if torch.jit.is_tracing() else (math.floor(half), math.ceil(half))  # type: ignore[arg-type]
        return x[int(both[0]) : int(both[1])] + torch.ceil(x) - torch.floor(x)


class OfItsOwn(torch.autograd.Function):
    """A softmax whose gradient is what torch's own calls."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> torch.Tensor:
        return torch._softmax_backward_data(dy, *ctx.saved_tensors, -1, dy.dtype)  # type: ignore[attr-defined]


def test_the_gradient_of_softmax_as_a_function() -> None:
    class Softmax(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return OfItsOwn.apply(x).square()

    x, given = flow.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 2.0], requires_grad=True)
    flow.from_torch(Softmax())(x).sum().backward()
    Softmax()(given).sum().backward()
    assert x.grad is not None and given.grad is not None and torch.allclose(x.grad.to_torch(), given.grad)


def test_a_library_that_registers_its_subclasses_knows_its_own_alone() -> None:
    assert Calls(flow.from_torch(Known()))(flow.ones(2, 1)).shape == (2, 3) and Registered.known == {"known": Known}


def test_what_torch_traces_as_a_tensor_is_a_number() -> None:
    halving, x = flow.from_torch(Halving()), flow.tensor([0.5, 1.0, 2.5])
    assert Calls(halving)(x).tolist() == halving(x).tolist() == [2.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        torch.ceil(1.5)  # type: ignore[arg-type]


def test_data_has_a_count_of_versions_of_its_own() -> None:
    class Put(torch.autograd.Function):
        """Writes a row behind the tape's back, as adaptive solvers do."""

        @staticmethod
        def forward(ctx: Any, rows: Any, value: Any, at: int) -> Any:  # type: ignore[override]
            ctx.at = at
            rows.data[at] = value
            return rows

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:  # type: ignore[override]
            return dy, dy[ctx.at], None

    class Steps(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            rows = torch.zeros(3, *x.shape)
            rows = Put.apply(rows, x, 0)
            for at in (1, 2):
                rows = Put.apply(rows, (rows[:at] * x).sum(0), at)
            return rows.sum(0)

    given = torch.tensor([1.0, 2.0], requires_grad=True)
    Steps()(given).square().sum().backward()
    x = flow.from_torch(given.detach()).requires_grad_()
    flow.from_torch(Steps())(x).square().sum().backward()
    assert x.grad.tolist() == given.grad.tolist()  # type: ignore[union-attr]


def test_an_adapter_goes_around_a_converted_layer_and_loads_its_state() -> None:
    class Adapter(torch.nn.Module):
        def __init__(self, base: Any) -> None:
            super().__init__()
            self.base, self.down = base, torch.nn.Linear(3, 2, bias=False)
            self.down.to(base.weight.device, dtype=base.weight.dtype)

    class Held(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

    base = flow.from_torch(torch.nn.Linear(3, 2, dtype=torch.float64))
    loaded: list[Any] = []
    base.register_load_state_dict_post_hook(lambda module, keys: loaded.append(module))
    held = Held(Adapter(base))
    assert held.inner.down.weight.dtype == torch.float64
    state = {name: torch.ones(tuple(t.shape), dtype=torch.float64) for name, t in held.state_dict().items()}
    assert sorted(state) == ["inner.base.bias", "inner.base.weight", "inner.down.weight"]
    held.load_state_dict(state)
    assert loaded == [base] and base.weight.tolist() == [[1.0] * 3] * 2


def test_types_have_torchs_names_in_torchs_modules() -> None:
    class Typed(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            assert x.type() == torch.typename(x) == "torch.LongTensor"
            return x.type(torch.DoubleTensor).type("torch.FloatTensor")

    assert flow.from_torch(Typed())(flow.tensor([1, 2])).dtype is flow.float32


class Mixin:
    """A plain class, whose `__dict__` comes before a module's."""


class Metric(Mixin, torch.nn.Module):
    """Writes its own `_apply` and `__getstate__`, as metrics and Lightning's modules do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.total, self.trainer = torch.nn.Linear(2, 2), torch.zeros(2), object()

    def __getstate__(self) -> dict[str, Any]:
        return {**dict(self.__dict__), "trainer": None}

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        this = super()._apply(fn, *args, **kwargs)
        this.total, this.dtype = fn(self.total), fn(torch.zeros(1)).dtype
        assert isinstance(this.total, torch.Tensor)
        return this


@pytest.mark.parametrize("around", [False, True])
def test_modules_that_move_and_copy_themselves(around: bool) -> None:
    made = torch.nn.Sequential(Metric()) if around else Metric()
    moved = copy.deepcopy(flow.from_torch(made).double())
    metric = moved[0] if around else moved
    assert metric.dtype == metric.total.dtype == metric.inner.weight.dtype == flow.float64 and metric.trainer is None
    assert isinstance(metric.total, flow.Tensor) and list(metric._modules) == ["inner"]


class Held:
    def __init__(self, mean: Any) -> None:
        self.mean = mean


class Layer(torch.nn.Module):
    """Keeps in a list of its caller's what it was given last, as layers of causal convolutions do."""

    def forward(self, x: torch.Tensor, kept: list[Any], place: list[int]) -> torch.Tensor:
        before, kept[place[0]] = kept[place[0]], x
        place[0] += 1
        return x * 2 if before is None else x * 2 + before


class Saved(torch.nn.Linear):
    """Saves its state by itself, as layers of graph networks do."""

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, p in self._parameters.items():
            destination[prefix + name] = p if keep_vars else p.detach()


def test_a_state_that_modules_write_themselves_has_wefts_tensors() -> None:
    theirs = torch.nn.Sequential(Saved(2, 2), torch.nn.Linear(2, 2), Saved(2, 2))
    state = flow.from_torch(theirs).state_dict()
    assert list(state) == list(theirs.state_dict()) and {type(v) for v in state.values()} == {flow.Tensor}


class Decoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(), Layer()])

    def forward(self, x: torch.Tensor, state: dict[str, Any]) -> Held:
        kept: list[Any] = [None, None]
        for _ in range(2):
            place = [0]
            for layer in self.layers:
                x = layer(x, kept, place=place)
        state["steps"] = state.get("steps", 0) + 1
        state["inner"]["seen"].append(x)
        return Held(x + sum(state["inner"]["seen"]))


def test_lists_and_dicts_that_a_module_changes_are_changed_for_its_caller() -> None:
    """Caches and incremental states, eagerly and in a graph, where each layer had a copy; and what a graph returns out
    of an object is its output."""

    def steps(decoder: Any, x: Any) -> tuple[Any, Any, Any]:
        seen: list[Any] = []
        state: dict[str, Any] = {"inner": {"seen": seen}}
        first, second = decoder(x, state).mean, decoder(x, state).mean
        assert state["inner"]["seen"] is seen and len(seen) == 2
        return first + second, seen[1], state["steps"]

    class Graph(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = ours

        def build(self, x: Any) -> Any:
            return steps(self.decoder, x)

    ours = flow.from_torch(Decoder())
    expected = [v.tolist() for v in steps(Decoder(), torch.ones(2))[:2]]
    for found in (steps(ours, flow.ones(2)), Graph()(flow.ones(2))):
        assert [v.tolist() for v in found[:2]] == expected and found[2] == 2
        assert isinstance(found[1], flow.Tensor)


class Late(torch.nn.Module):
    """Makes a layer in its first call, perhaps of weights that were there before, as BigBird does for short texts."""

    def __init__(self, tied: bool) -> None:
        super().__init__()
        self.first, self.late, self.tied = torch.nn.Linear(2, 2), None, tied

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.late is None:
            made = torch.nn.Linear(2, 2)
            if self.tied:
                made.weight, made.bias = self.first.weight, self.first.bias
            self.late = made
        return self.late(self.first(x))


class Called(nn.Graph):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def build(self, *given: Any) -> Any:
        return self.model(*given)


def test_a_layer_made_in_the_first_call_keeps_its_weights() -> None:
    x = torch.ones(1, 2)
    tied = Late(True)
    with pytest.warns(UserWarning, match="is made in build"):
        assert Called(flow.from_torch(tied))(flow.from_torch(x)).tolist() == tied(x).tolist()
    drawn = flow.from_torch(Late(False))
    with pytest.warns(UserWarning, match="is made in build"), pytest.raises(TraceError, match="call the module once"):
        Called(drawn)(flow.from_torch(x))
    expected, graph = drawn(flow.from_torch(x)).tolist(), Called(drawn)
    assert graph(flow.from_torch(x)).tolist() == graph(flow.from_torch(x)).tolist() == expected


class Spread(torch.nn.Module):
    """Sends the features of nodes along the edges of a graph, as LightGCN."""

    def __init__(self, edges: torch.Tensor) -> None:
        super().__init__()
        self.nodes, self.edges = torch.nn.Embedding(4, 3), edges

    def forward(self) -> torch.Tensor:
        x = torch.sparse.mm(self.edges, self.nodes.weight)
        return (self.edges @ x + torch.spmm(self.edges, x)).square().sum()


def test_a_sparse_matrix_that_a_module_was_given_is_multiplied_as_such(tmp_path: Path) -> None:
    places = torch.tensor([[0, 1, 1, 3], [2, 0, 3, 1]])
    theirs = Spread(torch.sparse_coo_tensor(places, torch.rand(4), (4, 4)).coalesce())
    mine = flow.from_torch(theirs)
    theirs().backward()
    loss = mine()
    loss.backward()
    assert loss.item() == pytest.approx(theirs().item())
    torch.testing.assert_close(mine.nodes.weight.grad.to_torch(), theirs.nodes.weight.grad)
    with pytest.raises(TraceError, match=r"give x.to_dense\(\)"):
        Called(mine)()
    with pytest.raises(CheckpointError, match=r"edges has layout torch\.sparse_coo.*torch\.save, which keeps"):
        flow.save({"edges": mine.edges}, tmp_path / "edges")
    assert torch.equal(mine.edges.to_dense().to_torch(), theirs.edges.to_dense())
    with pytest.raises(ArgumentError, match=r"global tensors are dense.*x\.to_dense\(\)"):
        mine.edges.to_global(flow.placement("cpu", [0]), flow.sbp.broadcast)


class Adapted(torch.nn.Module):
    """Trains some elements of a weight alone, as PEFT's SHiRA."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.some = torch.nn.Parameter(torch.rand(3, 4), False), torch.nn.Parameter(torch.rand(2))
        self.places = torch.tensor([[0, 2], [3, 1]], dtype=torch.int)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.weight.clone()
        weight += torch.sparse_coo_tensor(self.places, self.some * 2, (3, 4))
        return torch.nn.functional.linear(x, weight).square().sum()


def test_a_sparse_tensor_that_a_module_makes_is_one() -> None:
    theirs, x = Adapted(), torch.rand(2, 4)
    mine = flow.from_torch(theirs)
    theirs(x).backward()
    mine(flow.from_torch(x)).backward()
    torch.testing.assert_close(mine.some.grad.to_torch(), theirs.some.grad)
    assert Called(mine)(flow.from_torch(x)).item() == pytest.approx(theirs(x).item())


class Closed(torch.nn.Module):
    """Functions in attributes refer to its layers, as in minGPT's blocks."""

    def __init__(self) -> None:
        super().__init__()
        layers = self.layers = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 4), "b": torch.nn.Linear(4, 3)})
        weight = layers["a"].weight
        self.mlp = lambda x: layers["b"](layers["a"](x))
        self.others = {"own": [lambda x: self.mlp(x)], "default": lambda x, b=layers["b"]: b(x @ weight.T)}
        self.held = functools.partial(lambda layer, x: layer()(x), weakref.ref(layers["a"]))  # as fairscale wraps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mlp(x) + self.others["own"][0](x) + self.others["default"](x) + self.held(x)[:, 1:]


def test_functions_that_a_module_holds_refer_to_what_was_converted() -> None:
    theirs, x = Closed(), torch.randn(2, 3)
    mine = flow.from_torch(theirs)
    back = flow.to_torch(mine)
    theirs(x).square().sum().backward()
    mine(flow.from_torch(x)).square().sum().backward()
    back(x).square().sum().backward()
    for a, b, c in zip(theirs.parameters(), mine.parameters(), back.parameters(), strict=True):
        torch.testing.assert_close(b.grad.to_torch(), a.grad)
        torch.testing.assert_close(c.grad, a.grad)


def test_a_parameter_that_was_not_converted_is_refused_where_it_would_be_trained() -> None:
    class Borrows(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return BORROWED(x)

    model, x = flow.from_torch(Borrows()), flow.ones(2, 3)
    with pytest.raises(ArgumentError, match=r"shape \[2, 3\], outside of the module.*requires_grad_\(False\)"):
        model(x)
    with flow.no_grad():
        assert model(x).shape == (2, 2)


BORROWED = torch.nn.Linear(3, 2)


class Marked(torch.nn.Module):
    """It marks its weight before it is converted and in its calls, and returns an object of a class of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight: Any = torch.nn.Parameter(torch.ones(3))
        self.weight.calls, self.weight.decays = 0, False
        self.gone = weakref.ref(torch.nn.Linear(1, 1))

    def forward(self, x: torch.Tensor) -> Any:
        self.weight.calls += 1
        return Result(x * self.weight + self.weight.offset)


class Result:
    def __init__(self, value: Any) -> None:
        self.value = value


def test_what_is_set_on_a_parameter_is_set_on_its_stand_in() -> None:
    ours: Any = flow.from_torch(Marked())
    ours.weight.offset = 2.0
    for _ in range(2):
        result = ours(flow.ones(2, 3))
    assert ours.weight.calls == 2 and ours.weight.decays is False
    value = flow.from_torch(result.value)
    assert type(value) is flow.Tensor and value.tolist() == [[3.0] * 3] * 2
    assert type(flow.to_torch(result.value)) is torch.Tensor
    (result.value * value).sum().backward()
    assert ours.weight.grad.tolist() == [6.0] * 3


class Rows(torch.nn.Module):
    """As graph networks find where the edges of each node begin."""

    def forward(self, rows: torch.Tensor) -> Any:
        return torch._convert_indices_from_coo_to_csr(rows, 6, out_int32=True)


def test_where_each_row_of_a_sparse_matrix_begins() -> None:
    rows = torch.tensor([0, 0, 2, 2, 3, 5])
    found, expected = flow.from_torch(Rows())(flow.from_torch(rows)), Rows()(rows)
    assert found.tolist() == expected.tolist() and found.dtype == expected.dtype


class Noisy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generators = [torch.Generator().manual_seed(3)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(2, generator=self.generators[0])


def test_a_module_may_hold_a_generator() -> None:
    theirs = Noisy()
    ours, x = flow.from_torch(theirs), torch.zeros(2)
    first = theirs(x)
    assert torch.equal(ours(x).to_torch(), first)
    assert torch.equal(flow.to_torch(ours)(x), theirs(x))


class Wrapping(torch.nn.Module):
    """Trains a part of itself, yields what it samples, and holds what Python can't copy."""

    def __init__(self) -> None:
        super().__init__()
        self.trained, self.kept = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.doubled = staticmethod(lambda x: x * 2)
        self.called: list[torch.Size] = []
        self.trained.register_backward_hook(lambda m, into, out: self.called.append(out[0].shape))

    def parameters(self, recurse: bool = True) -> Any:
        return self.trained.parameters(recurse)

    @torch.no_grad()
    def samples(self, x: torch.Tensor) -> Any:
        for _ in range(3):
            x = torch.tanh(self.trained(self.doubled(x))) + torch.zeros(2)
            yield x


def test_what_a_method_yields() -> None:
    theirs, x = Wrapping(), torch.ones(3, 2)
    ours = flow.from_torch(theirs)
    got = [*ours.samples(flow.from_torch(x))]
    assert all(isinstance(y, flow.Tensor) and not y.requires_grad for y in got)
    assert torch.equal(torch.stack([y.to_torch() for y in got]), torch.stack([*theirs.samples(x)]))
    optimizer = flow.optim.SGD(ours.parameters(), lr=0.1)
    ours.trained(flow.from_torch(x)).sum().backward()
    optimizer.step()
    assert ours.called == [(3, 2)] and ours.trained.weight.grad is not None and ours.kept.weight.grad is None


@dataclasses.dataclass
class Guarded:
    """A configuration that refuses to tell what varies by layer, as transformers has."""

    heads: int
    scale: torch.Tensor

    def __getattribute__(self, name: str) -> object:
        if name == "heads":
            raise ValueError("ask a layer's")
        return super().__getattribute__(name)


def test_a_record_that_a_module_holds_may_refuse_to_be_read():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.config = Guarded(2, torch.full((2,), 3.0))

        def forward(self, x):
            return x * self.config.scale

    theirs, x = Scaled(), torch.ones(2, 2)
    torch.testing.assert_close(flow.from_torch(theirs)(flow.from_torch(x)).to_torch(), theirs(x))


def test_parts_that_a_module_makes_when_it_is_copied_are_wefts_too():
    class Pickled(torch.nn.Module):
        """Copies its layer by its bytes, as generated code is kept by libraries for equivariant networks."""

        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def __deepcopy__(self, memo):
            return Pickled(pickle.loads(pickle.dumps(self.layer)))

        def forward(self, x):
            return self.layer(x)

    theirs, x = Pickled(torch.nn.BatchNorm1d(3)), torch.randn(4, 3)
    ours = flow.from_torch(theirs)
    assert all(isinstance(t, flow.Tensor) for t in (*ours.parameters(), *ours.buffers()))
    ours(flow.from_torch(x)).square().sum().backward()
    theirs(x).square().sum().backward()
    torch.testing.assert_close(ours.layer.weight.grad.to_torch(), theirs.layer.weight.grad)
    torch.testing.assert_close(ours.layer.running_mean.to_torch(), theirs.layer.running_mean)


def test_cat_into_a_given_tensor():
    class Filled(torch.nn.Module):
        def forward(self, x):
            made = x.new_empty(4, 2)
            torch.cat([x, x * 2], dim=0, out=made)
            return made

    x = torch.randn(2, 2)
    torch.testing.assert_close(flow.from_torch(Filled())(flow.from_torch(x)).to_torch(), Filled()(x))
