"""Jobs of real programs print and parse back, and `verify` notices what is broken."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as flow
from weft import nn, plan
from weft.core.errors import CompileError
from weft.job.job import Job
from weft.job.text import parse, show
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast


class Train(nn.Graph):
    def __init__(self, m: nn.Module, micro: int = 1, checkpoint: bool = False, adam: bool = False) -> None:
        super().__init__()
        self.m = m
        self.config.set_gradient_accumulation_steps(micro)
        self.m.to(nn.graph.GraphModule).activation_checkpointing = checkpoint
        self.add_optimizer((flow.optim.AdamW if adam else flow.optim.SGD)(m.parameters(), lr=0.1))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = (self.m(x) ** 2).mean()
        loss.backward()
        return loss


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.LayerNorm(8), nn.Linear(8, 2))


def local(**options: Any) -> str:
    graph = Train(net(), **options)
    graph.compile(flow.ones(8, 4))
    return show(graph.job)


def shared(sbp: Any, x_sbp: Any, ranks: Any, micro: int) -> str:
    place = flow.placement("cpu", ranks=ranks)
    graph = Train(net().to_global(placement=place, sbp=sbp), micro)
    graph.compile(flow.tensor(np.ones((8, 4), np.float32), placement=place, sbp=x_sbp))
    return show(graph.job)


JOBS: dict[str, Callable[[], str]] = {
    "plain": local,
    "adam": lambda: local(adam=True),
    "micro": lambda: local(micro=4),
    "checkpoint": lambda: local(checkpoint=True),
    "data": lambda: spawn_threads(2, shared, B, S(0), [0, 1], 1)[0],
    "data, micro": lambda: spawn_threads(2, shared, B, S(0), [0, 1], 2)[0],
    "2x2": lambda: spawn_threads(4, shared, [B, B], [S(0), B], [[0, 1], [2, 3]], 1)[0],
}


@pytest.fixture(scope="module", params=JOBS)
def text(request: pytest.FixtureRequest) -> str:
    return JOBS[request.param]()


def test_round_trip(text: str) -> None:
    job = parse(text)
    job.verify()
    assert show(job) == text
    assert show(parse(show(job))) == text


def test_what_was_traced_is_there(text: str) -> None:
    assert "%m.0.weight = variable()" in text
    assert "# m.0, test_text.py:" in text  # the module and the line
    assert ("@micro" in text) == ("micro-batches" in text)


def test_fused_all_reduces_print() -> None:
    text = JOBS["data"]()
    assert "boxing((" in text and "all_reduce" in text


SMALL = """job small
%x = input() : float32[2,2] cpu
%w = variable() : float32[2,2] cpu
%y = matmul(%x, %w) : float32[2,2] cpu
out: output(%y)
"""


def broken(change: Callable[[Job], Any]) -> Job:
    job = parse(SMALL)
    change(job)
    return job


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda job: job.nodes.reverse(), "nothing before it produces"),
        (lambda job: job.nodes.pop(1), "reads %w"),
        (lambda job: setattr(job.nodes[1], "name", "x"), "two nodes are called x"),
        (lambda job: setattr(job.nodes[0], "micro", True), "once a launch but reads %x"),
    ],
)
def test_verify_catches(change: Callable[[Job], Any], says: str) -> None:
    parse(SMALL).verify()
    with pytest.raises(CompileError, match=says):
        broken(change).verify()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "a job begins like"),
        ("job a\nnot a line", "line 2"),
        ("job a\n%y = relu(%x) : float32[2] cpu", "line 2.*x"),
        ("job a\n%x = input() : strange[2] cpu", "line 2"),
        ("job a\n%x = input() : float32", "line 2"),
        ("job a\n%x = input(open('f')) : float32[2] cpu", "line 2"),
    ],
)
def test_what_can_not_be_read_is_told_with_its_line(text: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        parse(text)


def test_arguments_of_every_kind() -> None:
    text = (
        "job kinds\n%x = input() : float32[2] cpu:0\n"
        "%y = f(%x, 1, -2.5, True, None, 'a, b', (1, 2), (%x,), dtype('int64'), float('-inf'), device('cpu:0'), "
        "placement('cpu:[0,1]'), sbp('S(0)'), (%x, None)) : float32[2] cpu:0\n"
    )
    assert show(parse(text)) == text


def test_print_folds_lists_and_states_and_show_tells_all() -> None:
    graph = Train(nn.Sequential(*[nn.Linear(4, 4) for _ in range(8)]), adam=True)
    graph(flow.ones(2, 4))
    text, whole = str(graph.job), show(graph.job)
    assert max(map(len, text.splitlines())) < 400 < max(map(len, whole.splitlines()))
    assert "\n%m.0.weight-exp_avg ... %m.0.weight-step: 33 variables, 1.3 KB\n" in text
    assert "%m.0.weight, %m.0.bias, ... 14 more" in text
    assert show(parse(whole)) == whole


def test_a_graph_tells_what_its_passes_took_and_did(capsys: pytest.CaptureFixture[str]) -> None:
    class Twice(nn.Graph):
        def build(self, x: flow.Tensor) -> flow.Tensor:
            return flow.relu(x) + flow.relu(x)

    graph = Twice()
    graph.debug(3)
    graph(flow.ones(2))
    lines = capsys.readouterr().out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("common_subexpressions: "))
    assert lines[first].endswith(" ms, 5 -> 4 nodes")
    assert [line[0] for line in lines[first + 1 : first + 4]] == ["-", "-", "+"]  # a relu goes, and add reads the other
    assert [line.partition(":")[0] for line in graph.passes().splitlines()] == [p.name for p in graph.job.passes]


def test_any_name_of_a_module_and_a_scaler_print_and_parse() -> None:
    names = ["a layer", "a=b", "(c", "%ü", "#d : e", "f    # g", "h, i", "a-layer", "a_layer"]
    graph = Train(nn.Sequential(OrderedDict((name, nn.Linear(4, 4)) for name in names)))
    graph.set_grad_scaler(flow.amp.GradScaler())
    graph(flow.ones(2, 4)).numpy()
    assert show(parse(show(graph.job))) == show(graph.job)
    assert plan.parse(str(graph.plan)) == graph.plan


@pytest.mark.parametrize("name", ["weiß", "w²", "new\nline", "a\u2028b", "a # b, c: d", "br[0](1)", "@micro", '"'])
def test_names_of_any_characters(name: str) -> None:
    class Adds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_parameter("ﬁ", nn.Parameter(flow.ones(2)))
            self.register_parameter("fi", nn.Parameter(flow.ones(2)))

        def forward(self, x: Any) -> Any:
            return math.prod(self.parameters(), start=1) + x

    class Once(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.m = nn.ModuleDict({name: Adds()})

        build = eval(compile("lambda self, x: self.m[name](x) * 2", f"{name}.py", "eval"), {"name": name})

    Once.__name__ = name
    graph = Once()
    assert graph(flow.ones(2)).tolist() == [4.0, 4.0]
    assert show(parse(show(graph.job))) == show(graph.job)
    assert plan.parse(str(graph.plan)) == graph.plan
    twin = type("Blank", (nn.Graph,), {})()
    twin.load_runtime_state_dict(graph.runtime_state_dict())
    assert twin(flow.ones(2)).tolist() == [4.0, 4.0]


def test_what_is_printed_for_readers_has_no_long_lines() -> None:
    graph = Train(nn.Sequential(*[nn.Linear(4, 4) for _ in range(40)]), adam=True)
    graph.compile(flow.ones(8, 4))
    for text in (str(graph), str(graph.job), *(t.text for t in graph.plan.tasks)):
        assert max(map(len, text.splitlines())) < 500
    assert "161 variables, 6.4 KB" in str(graph) and str(graph).count(".exp_avg") <= 2
