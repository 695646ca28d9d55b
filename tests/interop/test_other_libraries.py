"""Others' functions on Weft's values: torch's own, its transforms, what writes files and logs."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.nn.attention.flex_attention as flex

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError
from weft.interop import other_libraries, replaced_classes

F = torch.nn.functional
X, Y = torch.randn(3, 4), torch.randn(3, 4)
P = flow.placement("cpu", ranks=[0])

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda x, y: torch.relu(x), "add": lambda x, y: torch.add(x, y, alpha=2),
    "cat": lambda x, y: torch.cat([x, y]),
    "softmax": lambda x, y: F.softmax(x, -1), "layer_norm": lambda x, y: F.layer_norm(x, (4,)),
    "mse_loss": lambda x, y: F.mse_loss(torch.sigmoid(x), y), "einsum": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "where": lambda x, y: torch.where(x > 0, x, y), "stack": lambda x, y: torch.stack((x, y), 1),
    "attention": lambda x, y: F.scaled_dot_product_attention(x[None], y[None], y[None]),
    "vector": lambda x, y: torch.nn.utils.parameters_to_vector([x, y]), "norm": lambda x, y: torch.linalg.norm(x),
    "multi_head": lambda x, y: F.multi_head_attention_forward(
        x[:, None], y[:, None], y[:, None], 4, 2, torch.eye(12, 4), None, None, None, False, 0.0, torch.eye(4), None,
        need_weights=False)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_torchs_functions_compute_with_wefts_ops(name: str) -> None:
    theirs = [t.clone().requires_grad_() for t in (X, Y)]
    ours = [flow.from_torch(t).requires_grad_() for t in (X, Y)]
    expected, got = CALLS[name](*theirs), CALLS[name](*ours)
    assert isinstance(got, flow.Tensor)
    torch.testing.assert_close(got.detach().to_torch(), expected.detach())
    expected.sum().backward()
    got.sum().backward()
    for t, o in zip(theirs, ours, strict=True):
        assert (t.grad is None) == (o.grad is None)
        if t.grad is not None:
            torch.testing.assert_close(o.grad.to_torch(), t.grad)


def test_with_torchs_tensors_beside_them() -> None:
    x, t = flow.from_torch(X), Y.clone()
    for got, expected in (
        (t + x, Y + X),
        (x + t, Y + X),
        (t @ x.T, Y @ X.T),
        (torch.minimum(t, x), torch.minimum(X, Y)),
    ):
        assert isinstance(got, flow.Tensor) and torch.equal(got.to_torch(), expected)
    t[0] = x[0]
    assert torch.equal(t[0], X[0]) and isinstance(t == x, flow.Tensor)
    layer, global_x = torch.nn.Linear(4, 2), x.to_global(P, flow.sbp.split(0))
    assert torch.relu(global_x).sbp == (flow.sbp.split(0),)
    for call in (lambda: layer(x), lambda: t.clone().requires_grad_() + x):
        with pytest.raises(ArgumentError, match=r"torch would not see.*flow\.from_torch\(module\)"):
            call()
    made = flow.from_torch(layer)(X)  # its memory is torch's own, and no stand-in for it
    assert type(made.detach().to_torch()) is torch.Tensor and torch.equal(made.detach().to_torch(), layer(X))
    with torch.no_grad():
        assert torch.equal(layer(x).to_torch(), layer(X))


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: f.grad(lambda a: (a.sin() * a).sum())(x),
    "grad_and_value": lambda f, x: f.grad_and_value(lambda a: (a.sin() * a).sum())(x)[1],
    "vjp": lambda f, x: f.vjp(torch.sin, x)[1](x)[0], "jvp": lambda f, x: f.jvp(torch.sin, (x,), (x,))[1],
    "vmap": lambda f, x: f.vmap(lambda a: a * a.sum())(x), "jacrev": lambda f, x: f.jacrev(torch.sin)(x[0]),
    "jacfwd": lambda f, x: f.jacfwd(torch.sin)(x[0]), "hessian": lambda f, x: f.hessian(lambda a: (a**3).sum())(x[0]),
    "linearize": lambda f, x: f.linearize(lambda a, b: a.sin() * b, x, x)[1](x, x * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_torchs_transforms_are_wefts(name: str) -> None:
    got = TRANSFORMS[name](torch.func, flow.from_torch(X))
    assert isinstance(got, flow.Tensor)
    torch.testing.assert_close(got.to_torch(), TRANSFORMS[name](torch.func, X))


def _sampled(x: Any) -> Any:
    torch.manual_seed(0)
    flow.manual_seed(0)
    p = torch.distributions.Normal(x, x.exp())
    q = torch.distributions.TransformedDistribution(p, [torch.distributions.transforms.AffineTransform(x, 2.0)])
    return torch.distributions.kl_divergence(p, torch.distributions.Normal(x * 0, x.exp())) + q.rsample()


def _packed(x: Any) -> Any:
    packed = torch.nn.utils.rnn.pack_padded_sequence(x[None], [len(x) - 1], batch_first=True)
    return torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0]


ANSWERED: dict[str, Callable[[Any], Any]] = {
    "jacobian": lambda x: torch.autograd.functional.jacobian(lambda a: a.sin().sum(1), x),
    "hessian": lambda x: torch.autograd.functional.hessian(lambda a: (a**3).sum(), x),
    "distributions": _sampled, "packed": _packed,
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERED)
def test_torchs_functions_that_check_for_its_tensors(name: str) -> None:
    found = ANSWERED[name](flow.from_torch(X))
    assert isinstance(found, flow.Tensor)
    torch.testing.assert_close(found, flow.from_torch(ANSWERED[name](X)))


@pytest.mark.parametrize("change", ["weight_norm", "orthogonal", "spectral_norm"])
def test_parametrizations_of_torchs_on_wefts_layers(change: str) -> None:
    torch.manual_seed(0)
    theirs, ours = torch.nn.Linear(4, 2), nn.Linear(4, 2)
    ours.load_state_dict(theirs.state_dict())  # type: ignore[arg-type]
    change_of = getattr(torch.nn.utils.parametrizations, change)
    theirs, ours = (change_of(layer) for layer in (theirs, ours))
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours.eval()(flow.from_torch(X)).detach().to_torch(), theirs.eval()(X).detach())
    torch.nn.utils.parametrize.remove_parametrizations(ours, "weight")
    assert [name for name, _ in ours.named_parameters()] == ["bias", "weight"]


@pytest.mark.parametrize("workers", [0, 1])
def test_torchs_loaders_of_wefts_tensors(workers: int) -> None:
    x, y = torch.arange(12.0).reshape(6, 2), torch.arange(6)
    samples = [{"x": a, "y": (b, "name")} for a, b in zip(flow.from_torch(x), flow.from_torch(y), strict=True)]
    for dataset in (torch.utils.data.TensorDataset(flow.from_torch(x), flow.from_torch(y)), samples):
        loader: Any = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=workers)
        got = [(b["x"], b["y"][0]) if isinstance(b, dict) else b for b in loader]
        assert all(isinstance(t, flow.Tensor) for batch in got for t in batch)
        assert torch.equal(flow.cat([a for a, _ in got]).to_torch(), x)
        assert torch.equal(flow.cat([b for _, b in got]).to_torch(), y)


def test_transforms_that_weft_lacks_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"torch\.func\.functionalize was given Weft's tensors"):
        torch.func.functionalize(torch.sin)(flow.from_torch(X))


def test_a_replaced_function_is_one_under_all_its_names_and_can_be_pickled() -> None:
    assert torch.func.vmap is torch.vmap and torch.nn.utils.clip_grad.clip_grad_norm_ is torch.nn.utils.clip_grad_norm_
    assert torch.save is torch.serialization.save and torch.fx.symbolic_trace is torch.fx._symbolic_trace.symbolic_trace
    for path, names in other_libraries.REPLACED.items():
        for name in names if path.partition(".")[0] == "torch" and "tensorboard" not in path else ():
            f = getattr(importlib.import_module(path), name)
            c = isinstance(getattr(f, "__wrapped__", None), BuiltinFunctionType)
            compiled = hasattr(f, "_torchdynamo_disable")  # the first torch.compile of a process wraps some anew
            if f.__name__ == name and not c and not compiled:  # others had another name once, or are C's
                assert pickle.loads(pickle.dumps(f)) is f


def test_packages_imported_before_have_the_replacement_too(monkeypatch: pytest.MonkeyPatch) -> None:
    package, inner = ModuleType("package"), ModuleType("package.inner")
    vars(package).update(same=min, other=max)
    vars(inner).update(same=min, other=sum)
    for module in (package, inner):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    replace = dict.fromkeys(("same", "other"), lambda theirs, name: name)
    monkeypatch.setitem(other_libraries.REPLACED, "package.inner", replace)
    other_libraries._replace(inner)
    assert vars(package)["same"] == vars(inner)["same"] == "same" and vars(inner)["other"] == "other"
    assert vars(package)["other"] is max


def test_functions_of_parameters() -> None:
    layer, theirs = nn.Linear(4, 2), torch.nn.Linear(4, 2)
    layer.load_state_dict(theirs.state_dict())
    called = torch.func.functional_call(layer, dict(layer.named_parameters()), (flow.from_torch(X),))  # type: ignore
    torch.testing.assert_close(called.detach().to_torch(), theirs(X).detach())
    for each, x in ((layer, flow.from_torch(X)), (theirs, X)):
        (each(x) ** 2).sum().backward()
    norms = [torch.nn.utils.clip_grad_norm_(each.parameters(), 0.1).item() for each in (layer, theirs)]  # type: ignore
    assert norms[0] == pytest.approx(norms[1])
    torch.testing.assert_close(layer.weight.grad.to_torch(), theirs.weight.grad)
    torch.nn.init.constant_(layer.weight, 3.0)  # type: ignore[arg-type]
    assert layer.weight.tolist() == [[3.0] * 4] * 2


def test_compiling_is_for_graphs() -> None:
    layer = nn.Linear(4, 2)
    with pytest.warns(UserWarning, match=r"torch\.compile\(Linear\): it stays as it is.*nn\.Graph"):
        assert torch.compile(layer) is layer


@pytest.mark.parametrize("compile", [torch.compile, torch.compile(), torch.compile(fullgraph=True)])
def test_compiled_functions_run_as_they_are_on_wefts_tensors(compile: Any) -> None:
    traced = []

    def probabilities(x: Any, *, scale: float) -> Any:
        traced.append(torch.compiler.is_compiling())
        return torch.nn.functional.softmax(x @ x.mT * scale, -1)

    compiled = compile(probabilities)
    found = compiled(flow.from_torch(X), scale=2.0)
    assert isinstance(found, flow.Tensor) and traced == [False]
    torch.testing.assert_close(found.to_torch(), probabilities(X, scale=2.0))
    assert compiled.__name__ == "probabilities"


class Attending(torch.nn.Module):
    """Attention of one head by flex_attention, compiled or not."""

    def __init__(self, attend: Any) -> None:
        super().__init__()
        self.attend, self.slope = attend, torch.nn.Parameter(torch.tensor([0.5]))
        self.register_buffer("document", torch.arange(8) // 3)

    def forward(self, x: Any) -> Any:
        slope, document = self.slope, self.document
        seen = flex.create_block_mask(
            lambda b, h, i, j: (i >= j) & (document[i] == document[j]), None, None, 8, 8, x.device, BLOCK_SIZE=4
        )
        return self.attend(x, x, x, lambda s, b, h, i, j: s + slope[h] * (j - i), seen)

    def formula(self, x: Any) -> Any:
        at, document = torch.arange(8), self.document
        scores = x @ x.mT / x.shape[-1] ** 0.5 + self.slope * (at - at[:, None])
        seen = (at[:, None] >= at) & (document[:, None] == document)
        return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ x


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("compiled", [False, True])
def test_flex_attention_in_modules_of_torchs(compiled: bool) -> None:
    attend = torch.compile(flex.flex_attention, fullgraph=True) if compiled else flex.flex_attention
    theirs = Attending(attend)
    ours, x = flow.from_torch(theirs), torch.randn(2, 1, 8, 4)

    class Graph(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.m = ours

        def build(self, x: Any) -> Any:
            return self.m(x)

    expected, got = theirs.formula(x), ours(flow.from_torch(x))
    expected.square().sum().backward()
    got.square().sum().backward()
    torch.testing.assert_close(got.detach().to_torch(), expected.detach())
    torch.testing.assert_close(ours.slope.grad.to_torch(), theirs.slope.grad)
    torch.testing.assert_close(Graph()(flow.from_torch(x)).to_torch(), expected.detach())


def test_what_writes_safetensors(tmp_path: Path) -> None:
    model = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False), "c": nn.Linear(2, 1)})
    model["b"].weight = model["a"].weight
    safetensors.torch.save_model(model, str(tmp_path / "m"))  # type: ignore[arg-type]
    assert safetensors.torch.load_file(tmp_path / "m").keys() == {"a.weight", "c.weight", "c.bias"}
    assert torch.equal(flow.load(tmp_path / "m")["b.weight"].to_torch(), model["a"].weight.detach().to_torch())
    other = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False), "c": nn.Linear(2, 1)})
    other["b"].weight = other["a"].weight
    safetensors.torch.load_model(other, tmp_path / "m")  # type: ignore[arg-type]
    assert other["c"].weight.tolist() == model["c"].weight.tolist()
    state = nn.Linear(2, 2).state_dict()
    safetensors.torch.save_file(state, tmp_path / "s")  # type: ignore[arg-type]
    assert safetensors.torch.save(state) == (tmp_path / "s").read_bytes()  # type: ignore[arg-type]
    assert flow.load(tmp_path / "s")["weight"].tolist() == state["weight"].tolist()
    spread = {k: v.to_global(P, flow.sbp.split(0)) for k, v in state.items()}
    with pytest.raises(ArgumentError, match=r"weight is global: flow\.save.*max_shard_size"):
        safetensors.torch.save_file(spread, tmp_path / "s")  # type: ignore[arg-type]


def test_a_module_is_met_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a log's writer asks for arrays; the package itself may not be there."""
    (tmp_path / "tensorboardX").mkdir()
    (tmp_path / "tensorboardX" / "__init__.py").write_text("from tensorboardX.x2num import make_np\n")
    (tmp_path / "tensorboardX" / "x2num.py").write_text(
        "import numpy as np\ndef make_np(x):\n    assert isinstance(x, np.ndarray), type(x)\n    return x\n"
    )
    _only(tmp_path, "tensorboardX", monkeypatch)
    logs = importlib.import_module("tensorboardX")
    assert logs.make_np(flow.ones(2, requires_grad=True)).tolist() == [1.0, 1.0] and logs.make_np(np.ones(1)) == 1.0
    assert logs.make_np.__module__ == "tensorboardX.x2num" and logs.x2num.__spec__.loader is logs.x2num.__loader__
    _only(tmp_path, "tensorboardX", monkeypatch)


def _only(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a package be imported anew, from a folder."""
    monkeypatch.syspath_prepend(str(folder))
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)


def test_functions_of_others_run_as_code_of_torchs_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as einops, which asks for torch's tensors, and torchvision's transforms, which pass on all others."""
    (tmp_path / "einops").mkdir()
    (tmp_path / "einops" / "__init__.py").write_text("from einops.einops import rearrange\n")
    (tmp_path / "einops" / "einops.py").write_text(
        "import torch\ndef reduce(x):\n    assert isinstance(x, torch.Tensor), type(x)\n    return x.T\n"
        "def rearrange(x):\n    return reduce(x)\n"
    )
    _only(tmp_path, "einops", monkeypatch)
    rearrange = importlib.import_module("einops").rearrange
    x = flow.from_torch(X).requires_grad_()
    turned = rearrange(x)
    turned[0].sum().backward()
    assert isinstance(turned, flow.Tensor) and turned.shape == (4, 3) and x.grad.sum().item() == 3
    assert type(rearrange(X)) is torch.Tensor
    _only(tmp_path, "einops", monkeypatch)

    class Transform(torch.nn.Module):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x)

        def forward(self, x: Any) -> Any:
            return 1 - x if isinstance(x, torch.Tensor) else x

    Invert = type("Invert", (other_libraries._wrap_calls(Transform, ""),), {})
    for invert in (Invert(), flow.from_torch(Invert())):
        assert torch.equal(invert(flow.from_torch(X)).to_torch(), 1 - X)
    assert torch.equal(Invert()(X), 1 - X)

    def norm(xs: list[torch.Tensor], device: torch.device) -> torch.Tensor:
        assert all(isinstance(x, torch.Tensor) for x in xs) and isinstance(device, torch.device)
        return torch.stack([x.norm() for x in xs])

    given = flow.from_torch(norm)([flow.from_torch(X), flow.from_torch(Y)], flow.device("cpu"))
    torch.testing.assert_close(given.to_torch(), norm([X, Y], X.device))


def test_torchs_files_of_wefts_tensors(tmp_path: Path) -> None:
    """What torch wrote and reads is torch's: outside of its modules, and inside, where its functions are Weft's."""
    layer = flow.from_torch(torch.nn.Linear(4, 2))
    seen: dict[str, Any] = {"model": layer.state_dict(), "step": 3, "also": [layer.weight]}

    def written(seen: Any) -> Any:
        torch.save(seen, tmp_path / "s")
        found = torch.load(tmp_path / "s")
        assert type(found["model"]["weight"]) is torch.Tensor and found["step"] == 3
        assert found["also"][0].data_ptr() == found["model"]["weight"].data_ptr()  # memory that is shared stays so
        return found["model"]["weight"]

    for each in (written, flow.from_torch(written)):
        assert torch.equal(torch.as_tensor(each(seen)), layer.weight.detach().to_torch())
    torch.save(layer, tmp_path / "m")
    assert type(torch.load(tmp_path / "m", weights_only=False)) is torch.nn.Linear
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X), 2, num_workers=1)
    read = flow.from_torch(lambda: torch.cat([x for (x,) in loader]))
    assert torch.equal(read().to_torch(), X)
    with pytest.raises(ArgumentError, match="weight is global"):
        torch.save({"weight": flow.ones(2, placement=P, sbp=flow.sbp.broadcast)}, tmp_path / "s")


@pytest.mark.parametrize("path", ["accelerate.accelerator.Accelerator", "skorch.net.NeuralNet"])
def test_programs_that_train(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the trainers of transformers and Lightning: their methods see torch's tensors, all the way in; so do
    those of a family of classes, as diffusers' schedulers are."""
    package, module, name = path.split(".")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / f"{module}.py").write_text(
        f"import torch\nclass {name}:\n    def __init__(self, model):\n        self.model = model\n"
        "    def train(self, x):\n        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)\n"
        "        for p in self.model.parameters():\n            assert isinstance(p, torch.nn.Parameter)\n"
        "        loss = self.model(x).sum()\n        assert isinstance(loss, torch.Tensor)\n"
        "        assert loss.device == torch.device('cpu') and loss.dtype == torch.float32\n"
        "        assert next(self.rows(i for i in (3,))) == 3\n"
        "        loss.backward()\n        def closure():\n            with torch.no_grad():\n"
        "                assert isinstance(self.model(x), torch.Tensor)\n            return loss\n"
        "        assert optimizer.step(closure) is loss\n        return loss, torch.zeros(2) + loss.detach()\n"
        "    def rows(self, them):\n        return them\n"
    )
    _only(tmp_path, package, monkeypatch)
    kind = getattr(importlib.import_module(f"{package}.{module}"), name)
    torch.manual_seed(0)
    theirs = torch.nn.Linear(4, 2)
    ours = flow.from_torch(copy.deepcopy(theirs))
    (expected, _), (got, also) = kind(theirs).train(X), kind(ours).train(X)
    assert isinstance(also, flow.Tensor) and got.item() == pytest.approx(expected.item())
    assert type(kind(theirs).train(X)[0]) is torch.Tensor
    assert next(kind(ours).rows(i for i in (3,))) == 3  # what is read as it goes stays so
    kind(ours).train(X)
    torch.testing.assert_close(ours.weight.detach().to_torch(), theirs.weight.detach())
    with pytest.raises(ArgumentError, match=rf"{name} gives each rank other rows.*global"):
        kind(ours.to_global(P, flow.sbp.broadcast))
    _only(tmp_path, package, monkeypatch)

    class Scheduler:
        pass

    replaced_classes.wrap_subclasses(Scheduler, "")

    class Euler(Scheduler):
        def step(self, x: Any) -> Any:
            assert isinstance(x, torch.Tensor), type(x)
            self.kept = [x]
            return x + torch.ones(x.shape, dtype=x.dtype, device=x.device)

        def last(self) -> Any:
            return self.kept[0] * 1

    euler = Euler()
    euler.step(flow.from_torch(X))
    assert type(euler.last()) is flow.Tensor
    assert torch.equal(Euler().step(flow.from_torch(X)).to_torch(), X + 1)  # type: ignore[arg-type]
    assert type(Euler().step(X)) is torch.Tensor


def test_gradients_are_clipped_by_the_parameters_of_an_optimizer_of_torchs() -> None:
    """Which are stand-ins, as Lightning's Fabric reads them from it."""

    def clipped(lib: Any, layer: Any) -> list[Any]:
        layer(lib.ones(3, 4)).square().sum().backward()
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        given = [p for group in optimizer.param_groups for p in group["params"]]
        norm = torch.nn.utils.clip_grad_norm_(given, 0.5)
        torch.nn.utils.clip_grad_value_(given, 0.2)
        return [norm.item(), *(p.grad.tolist() for p in layer.parameters())]

    theirs = torch.nn.Linear(4, 2)
    assert clipped(flow, flow.from_torch(copy.deepcopy(theirs))) == clipped(torch, theirs)


@pytest.mark.parametrize("fused", [False, True])
def test_torchs_casts_and_scaler_around_a_module(fused: bool) -> None:
    """A program's own loop in mixed precision: its context was torch's alone, and backward mixed dtypes."""

    class Exact(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", enabled=False):  # as rotary embeddings are computed
                scale = self.weight @ self.weight.T
                assert scale.dtype == torch.float32
            return super().forward(x) * scale.diagonal()

    def trained(layer: Any, place: Any) -> list[Any]:
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
        seen: list[Any] = []
        for x in (1.0, 2.0, float("inf"), 3.0):
            with torch.autocast("cpu", dtype=torch.float16):
                y = layer(place(torch.full((2, 4), x)))
                assert y.dtype == torch.float32
                loss = y.float().square().mean()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            assert not torch.is_autocast_enabled("cpu")
            seen += [loss.item(), scaler.get_scale()]
        return seen

    theirs = Exact(4, 2)
    ours = trained(flow.from_torch(copy.deepcopy(theirs)), flow.from_torch)
    assert ours == pytest.approx(trained(theirs, lambda x: x), rel=1e-3, nan_ok=True)


def test_custom_functions_outside_of_modules() -> None:
    """Their gradient is their own, not that of what `forward` calls."""

    class Tenfold(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            assert isinstance(x, torch.Tensor)
            return x * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:  # type: ignore[override]
            return dy * 10

    for x in (X.clone().requires_grad_(), flow.from_torch(X).requires_grad_()):
        y = Tenfold.apply(x)
        assert type(y) is type(x.detach())
        y.sum().backward()
        assert x.grad is not None and x.grad.tolist() == [[10.0] * 4] * 3


def test_torchs_modules_move_to_the_dtype_of_a_tensor() -> None:
    for like in (torch.zeros(1, dtype=torch.float64), flow.zeros(1, dtype=flow.float64)):
        assert torch.nn.Linear(2, 2).to(like).weight.dtype == torch.float64  # type: ignore[call-overload]
        assert flow.from_torch(torch.nn.Linear(2, 2)).to(like).weight.dtype == flow.float64


def test_torchs_modes_of_gradients_are_wefts() -> None:
    x = flow.ones(2, requires_grad=True)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert not (x * 2).requires_grad and not flow.is_grad_enabled()
            with torch.enable_grad() if mode is torch.no_grad else flow.enable_grad():
                assert (x * 2).requires_grad
        assert (x * 2).requires_grad and not mode()(lambda: x * 2)().requires_grad
    with flow.no_grad(), torch.no_grad():
        pass
    ours, theirs = flow.no_grad(), torch.no_grad()  # out of step, as generators may
    ours.__enter__()
    theirs.__enter__()
    ours.__exit__(None, None, None)
    theirs.__exit__(None, None, None)
    assert flow.is_grad_enabled()
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 2.0]


def test_torchs_set_grad_enabled_is_wefts_as_a_context() -> None:
    x = flow.ones(2, requires_grad=True)

    @torch.set_grad_enabled(False)
    def without() -> bool:
        return (x * 2).requires_grad

    assert (x * 2).requires_grad and not without() and (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    with flow.no_grad():
        with torch.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_what_writes_a_model_down_takes_those_of_from_torch() -> None:
    layer = flow.from_torch(torch.nn.Linear(4, 2))
    for written in (torch.jit.trace(layer, flow.from_torch(X)), torch.jit.script(layer)):
        torch.testing.assert_close(written(X).detach(), layer(X).detach().to_torch())
    exported = torch.export.export(layer, (flow.from_torch(X),))
    torch.testing.assert_close(exported.module()(X).detach(), layer(X).detach().to_torch())
    with pytest.raises(ArgumentError, match="Linear was written for Weft"):
        torch.jit.trace(nn.Linear(4, 2), flow.from_torch(X))
    with pytest.raises(ArgumentError, match="Linear was written for Weft"):
        torch.jit.script(nn.Linear(4, 2))


def test_every_name_of_the_table_is_there() -> None:
    for path, names in other_libraries.REPLACED.items():
        if path.partition(".")[0] in ("torch", "safetensors") and "tensorboard" not in path:
            module = importlib.import_module(path)
            replaced = {n: getattr(module, n, None) for n in names}
            parts = {n: [*vars(f).values()] if isinstance(f, type) else [f] for n, f in replaced.items()}
            assert not [n for n, fs in parts.items() if not any(hasattr(f, "__wrapped__") for f in fs)], path


def test_what_knows_torchs_layers_alone_says_so() -> None:
    model = nn.Sequential(nn.Linear(2, 1))
    with flow.mock_torch.enable():
        from torch.ao.quantization import prepare_qat, quantize_dynamic
        from torch.autograd import forward_ad
        from torch.fx import symbolic_trace
    for call in (prepare_qat, quantize_dynamic, symbolic_trace):
        with pytest.raises(ArgumentError, match=rf"{call.__name__}\(\) knows torch's layers alone.*flow\.to_torch"):
            call(model)
    with forward_ad.dual_level(), pytest.raises(ArgumentError, match=r"flow\.func\.jvp"):
        forward_ad.make_dual(flow.ones(2), flow.ones(2))
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 1))
    assert symbolic_trace(theirs)(torch.ones(1, 2)).shape == (1, 1)
