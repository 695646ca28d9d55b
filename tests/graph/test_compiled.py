"""A compiled graph's quick look at its arguments accepts those of its form, and no others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import weft as flow
from weft.core.errors import GraphError
from weft.graph import tree
from weft.launch import spawn_threads


class Adds(flow.nn.Graph):
    def build(self, x: Any, y: Any) -> Any:
        return x + y


def arguments() -> list[Any]:
    """Arguments of all kinds; the first one is what the graph is compiled for."""
    x = flow.ones(2, 3)
    return [
        x, x.t().contiguous().t(), flow.ones(3, 2).t(), x.clone().requires_grad_(), flow.nn.Parameter(x), flow.ones(3),
        flow.ones(2, 3, 1), flow.ones(2, 3, dtype=flow.float64), flow.ones(2, 3, device="meta"), torch.ones(2, 3),
        torch.ones(3), 1.0, 1, True, None, [x], (x,), {"x": x},
    ]  # fmt: skip


def check(compiled: Any, args: tuple[Any, ...]) -> bool:
    """Whether the arguments are of its form: the quick look may pass some on, which are then compared."""
    fits = tree.form(tree.ours((args, {}))) == compiled.form
    quick = compiled._inputs(args)
    assert quick is None or fits, args
    assert quick is not None or not fits or not all(type(a) is flow.Tensor for a in args), args
    return fits


def test_the_quick_look_takes_what_the_comparison_takes() -> None:
    graph = Adds()
    every = arguments()
    graph(every[0], every[0])
    fits = [check(graph._need(), pair) for a in every for b in every for pair in ((a, b), (a,), (a, b, b))]
    assert 16 <= sum(fits) < len(fits) / 4
    with pytest.raises(GraphError, match="compiled for other arguments"):
        graph(every[0], every[5])


def test_layouts_are_part_of_the_form() -> None:
    def body() -> None:
        both = flow.placement("cpu", [0, 1])
        split, whole = (flow.ones(2, 4, placement=both, sbp=s) for s in (flow.sbp.split(0), flow.sbp.broadcast))
        other = flow.ones(2, 4, placement=both, sbp=flow.sbp.split(1))
        graph = Adds()
        graph(split, whole)
        pairs = [(a, b) for a in (split, whole, other, flow.ones(2, 4)) for b in (split, whole, other)]
        assert [check(graph._need(), pair) for pair in pairs] == [
            pair[0] is split and pair[1] is whole for pair in pairs
        ]

    spawn_threads(2, body)


def test_a_graph_runs_inside_torchs_modes() -> None:
    """Which call Python from torch's kernels."""
    graph, x = Adds(), flow.ones(2, 3)
    with FlopCounterMode(display=False):
        assert [graph(x, x).tolist() for _ in range(3)] == [[[2.0] * 3] * 2] * 3
