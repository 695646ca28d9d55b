"""The same calls in a graph: what torch gives, but for shapes that depend on data."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from tests.functional.test_values import CALLS, called, listed

BY_DATA = ("unique", "bincount")


def by_data(name: str, args: tuple[Any, ...]) -> bool:
    return name in BY_DATA or (name == "repeat_interleave" and isinstance(args[1], torch.Tensor))


@pytest.mark.parametrize(("name", "args", "options"), CALLS, ids=lambda v: v if isinstance(v, str) else "")
def test_functions_in_a_graph(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    class Calling(flow.graph.Graph):
        def build(self, *tensors: Any) -> Any:
            given = iter(tensors)
            full = tuple(next(given) if isinstance(a, torch.Tensor) else a for a in args)
            return tuple(listed(called(flow, name, full, options)))

    graph, tensors = Calling(), [flow.tensor(a) for a in args if isinstance(a, torch.Tensor)]
    if by_data(name, args):
        with pytest.raises(flow.errors.TraceError, match="depends on data"):
            graph(*tensors)
        return
    got = graph(*tensors)
    for g, e in zip(got, listed(called(torch, name, args, options)), strict=True):
        torch.testing.assert_close(torch.as_tensor(g.numpy()), e, equal_nan=True)
    graph.close()


def test_repeats_of_a_given_total() -> None:
    class Repeating(flow.graph.Graph):
        def build(self, x: Any, repeats: Any) -> Any:
            return flow.repeat_interleave(x, repeats, 0, output_size=4), x.repeat_interleave(repeats[:1], output_size=6)

    graph, x = Repeating(), torch.arange(6).view(3, 2)
    for counts in ([1, 3, 0], [1, 0, 3]):
        repeats = torch.tensor(counts)
        rows, numbers = graph(flow.tensor(x), flow.tensor(repeats))
        assert rows.tolist() == torch.repeat_interleave(x, repeats, 0).tolist()
        assert numbers.tolist() == x.flatten().tolist()
