"""The user's line: what a warning points at."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.boxing import signature
from weft.core import idle
from weft.core.program_line import warn

HOME = Path(flow.__file__).parent
P = flow.placement("cpu", ranks=[0])


class Calls(nn.Graph):
    """Calls what it was given, which is no block of its own."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = [call]

    def build(self, x: Any) -> Any:
        return self.call[0](x)


WARNS: list[Callable[[], Any]] = [
    lambda: flow.gather(flow.ones(1), 0, flow.tensor([0]), sparse_grad=True),
    lambda: flow.optim.SGD((p for p in ()), lr=0.1),
    lambda: flow.ones(2, 2)[[slice(None), 0]],
    lambda: nn.functional.mse_loss(flow.ones(2), flow.ones(1)),
    lambda: Calls(nn.Linear(2, 2))(flow.ones(1, 2)),
    lambda: flow.linalg.cholesky(flow.eye(2, placement=P, sbp=flow.sbp.split(0))),
]


@pytest.mark.parametrize("call", WARNS)
def test_warnings_point_at_the_users_line(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_said", set())
    monkeypatch.setattr(signature, "_UNKNOWN", set())
    with pytest.warns(UserWarning) as said:
        call()
    assert [Path(w.filename).name for w in said] == [Path(__file__).name]


def test_every_warning_is_given_that_way() -> None:
    by_hand = [
        str(path)
        for path in HOME.rglob("*.py")
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Attribute)
        and n.attr == "warn"
        and isinstance(n.value, ast.Name)
        and n.value.id == "warnings"
    ]
    assert by_hand == [str(Path(warn.__code__.co_filename))]


def test_a_node_tells_the_line_of_the_program_not_of_a_layer_derived_from_torchs() -> None:
    graph = Calls(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.LayerNorm(2)).eval().requires_grad_(False))
    graph(flow.ones(1, 2)).numpy()
    found = {n.op: n.at for n in graph.job.nodes if n.op in ("linear", "relu", "layer_norm")}
    assert len(found) == 3 and {line.partition(":")[0] for line in found.values()} == {Path(__file__).name}
