"""What a graph's config asks for, and gradients that are clipped in a graph as outside of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft as flow
from weft import nn
from weft.compiler.options import Options
from weft.core.errors import GraphError, OptionError
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast


class Train(nn.Graph):
    def __init__(self, model: nn.Module, optimizer: Any, **amp: Any) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
        self.config.allow_fuse_model_update_ops(True)  # as programs written for OneFlow have it
        if amp:
            self.config.enable_amp(**amp)

    def build(self, x: Any) -> Any:
        loss = self.model(x).float().square().mean()
        loss.backward()
        return loss


def net() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    for i, p in enumerate(model.parameters()):
        p.data = flow.tensor(np.random.default_rng(i).normal(size=tuple(p.shape)).astype(np.float32) * 2)
    return model


def batch(i: int) -> Any:
    return flow.tensor(np.random.default_rng(50 + i).normal(size=(4, 4)).astype(np.float32) * 3)


def optimizer_of(model: nn.Module, norm: float, kind: float) -> Any:
    first, *others = model.parameters()
    clipped = {"clip_grad_max_norm": norm, "clip_grad_norm_type": kind}
    groups = [{"params": [first], "lr": 0.05}, {"params": others, **clipped}]
    return flow.optim.SGD(groups, lr=0.1, momentum=0.9)


def losses(model: nn.Module, optimizer: Any, graph: bool, place: Any = None) -> list[float]:
    def laid(x: Any) -> Any:
        return x if place is None else x.to_global(placement=place, sbp=B).to_global(sbp=S(0))

    if graph:
        train = Train(model, optimizer)
        found = [train(laid(batch(i))).item() for i in range(4)]
        train.close()
        return found
    found = []
    for i in range(4):
        loss = model(laid(batch(i))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.clip_grad()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("norm, kind", [(0.5, 2.0), (1e9, 2.0), (0.3, 1.0), (0.2, float("inf"))])
def test_gradients_are_clipped_as_eagerly(norm: float, kind: float) -> None:
    found = []
    for graph in (False, True):
        model = net()
        found.append(losses(model, optimizer_of(model, norm, kind), graph))
    np.testing.assert_allclose(*found, rtol=1e-5)


def test_clipping_takes_the_norm_over_all_ranks() -> None:
    model = net()
    alone = losses(model, optimizer_of(model, 0.5, 2.0), graph=False)

    def run() -> list[float]:
        place = flow.placement("cpu", ranks=[0, 1])
        model = net()
        model[0].to_global(placement=place, sbp=S(0))
        model[2].to_global(placement=place, sbp=B)
        return losses(model, optimizer_of(model, 0.5, 2.0), True, place)

    for found in spawn_threads(2, run):
        np.testing.assert_allclose(found, alone, rtol=1e-5)


def test_mixed_precision_by_config_is_autocast() -> None:
    model = net()
    graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.0), mode=True)
    with flow.autocast("cpu"):
        eager = model(batch(0)).float().square().mean()
    assert graph(batch(0)).item() == pytest.approx(eager.item(), rel=1e-6)
    assert "bfloat16" in str(graph.job) and "amp=True" in repr(graph.config)
    off = Train(model, flow.optim.SGD(model.parameters(), lr=0.0), mode=False)
    off(batch(0))
    assert "bfloat16" not in str(off.job)


def test_what_a_config_refuses() -> None:
    model = net()
    graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(OptionError, match="16-bit dtype"):
        graph.config.enable_amp(dtype=flow.float64)
    with pytest.raises(AttributeError, match=r"no 'enable_magic'.*enable_amp"):
        graph.config.enable_magic()
    with pytest.raises(AttributeError, match=r"no 'enable_ampp'\. Did you mean 'enable_amp'"):
        graph.config.enable_ampp(True)
    with pytest.raises(GraphError, match=r"called, not set: self\.config\.enable_amp\(True\)"):
        graph.config.enable_amp = True
    with pytest.raises(AttributeError, match="Did you mean 'allow_fuse_cast_scale'"):
        graph.config.alow_fuse_cast_scale = True
    with pytest.raises(AttributeError, match="Did you mean 'add_optimizer'"):
        graph.add_optimiser(None)
    with pytest.raises(GraphError, match=r"config\.training = 'no': it is True or False"):
        graph.config.training = "no"
    with pytest.raises(AttributeError, match=r"config\.proto is text here, without 'enable_magic'"):
        graph.config.proto.enable_magic = True
    with pytest.raises(GraphError, match=r"called, not set to \{\}"):
        graph.config = {}  # type: ignore[assignment]
    graph(batch(0))
    with pytest.raises(GraphError, match="compiled already"):
        graph.config.enable_amp(True)


def test_a_view_of_a_transposed_value_made_contiguous() -> None:
    class Turns(nn.Graph):
        def build(self, x: Any) -> Any:
            y = (x * 2).transpose(1, 2)
            return y.contiguous().view(x.shape[0], -1), y.contiguous().view(-1).sum()

    x = flow.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    flat, total = Turns()(x)
    assert flat.tolist() == (x * 2).transpose(1, 2).contiguous().view(2, -1).tolist()
    assert total.item() == (x * 2).sum().item()


@pytest.mark.parametrize("level, says, says_not", [
    (0, ["compiled in", "(GRAPH:"], ["\njob ", "\nplan "]), (1, ["compiled in", "\njob "], ["\nplan "]),
    (2, ["\njob ", "\nplan "], []), (-1, [], ["compiled"]),
    (True, ["compiled in", "\njob "], ["\nplan "]),
])  # fmt: skip
def test_a_graph_tells_of_its_compilation(
    level: int, says: list[str], says_not: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    model = net()
    graph = Train(model, flow.optim.SGD(model.parameters(), lr=0.1))
    graph.debug(level, max_py_stack_depth=8)
    graph(batch(0))
    output = capsys.readouterr().out
    assert all(s in output for s in says) and not any(s in output for s in says_not)
    graph(batch(1))
    graph.debug(2, ranks=[3])
    assert capsys.readouterr().out == ""


ROOT = Path(weft.__file__).parent


def readers() -> dict[str, set[str]]:
    """By option, the files below weft that look at it."""
    found: dict[str, set[str]] = {name: set() for name in Options.__struct_fields__}
    for file in (f for folder in ("compiler", "graph") for f in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in found:
                of = node.value
                if {"options", "tried"} & {getattr(of, "id", ""), getattr(of, "attr", "")}:
                    found[node.attr].add(file.relative_to(ROOT).as_posix())
    return found


def test_each_option_is_read_by_the_one_file_that_the_page_names() -> None:
    page = (ROOT.parent / "docs" / "graph.md").read_text()
    named = {option: {file} for option, file in re.findall(r"^\|[^|]*\| `(\w+)` \| `([\w/.]+)` \|$", page, re.M)}
    found = readers()
    for fact in ("links", "backend"):  # of the network, which more than one has to know
        assert found.pop(fact)
    assert found == named


def test_each_option_can_be_asked_for_in_its_config() -> None:
    page = (ROOT.parent / "docs" / "graph.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `[\w/.]+` \|$", page, re.M)
    assert len(rows) > 5
    for method, option in rows:
        config = nn.Graph().config
        before = getattr(config.options(), option)
        config = nn.Graph().config
        getattr(config, method)(
            *{"set_gradient_accumulation_steps": (2,), "set_memory_budget": (10,), "set_outputs_buffer_size": (3,)}.get(
                method, ()
            )
        )
        assert getattr(config.options(), option) != before


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.enable_zero(3),
        lambda c: c.enable_zero(stage=True),
        lambda c: c.enable_zero(stage=2.0),
        lambda c: c.enable_zero(shard_min_size="many"),
        lambda c: c.enable_zero(shard_min_size=float("nan")),
        lambda c: c.enable_amp(flow.float16),
        lambda c: c.enable_auto_parallel("no"),
        lambda c: c.enable_inductor(None),
        lambda c: c.enable_zero_bubble(0.5),
        lambda c: c.set_memory_budget("1GB"),
        lambda c: c.set_outputs_buffer_size(True),
        lambda c: c.set_gradient_accumulation_steps(2.0),
    ],
)
def test_an_option_takes_what_it_is_for(call: Any) -> None:
    config = nn.Graph().config
    before = repr(config)
    with pytest.raises(GraphError):
        call(config)
    assert repr(config) == before


def test_what_is_not_for_graphs_is_refused() -> None:
    with pytest.raises(GraphError, match="a level is an int"):
        nn.Graph().debug("all")  # type: ignore[arg-type]
    for ranks in ("x", [0, "1"]):
        with pytest.raises(GraphError, match="a rank, several, or -1 for all"):
            nn.Graph().debug(1, ranks=ranks)  # type: ignore[arg-type]
    for other in (3, nn.Linear):
        with pytest.raises(GraphError, match="decorates a class of graphs"):
            nn.Graph.with_dynamic_input_shape()(other)  # type: ignore[arg-type]
