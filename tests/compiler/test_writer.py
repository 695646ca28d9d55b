"""A chain's text: what a call needs beforehand is made when the chain is written, and not at every launch."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.ops import OPS


def test_calls_are_prepared_once_for_all_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []
    for name in ("gelu", "layer_norm"):
        op = OPS[name]
        assert op.prepare is not None

        def watched(*args: Any, name: str = name, plain: Any = op.prepare) -> Any:
            prepared.append(name)
            return plain(*args)

        monkeypatch.setitem(vars(op), "prepare", watched)  # a declared op refuses an assignment

    class Net(nn.Graph):
        def build(self, x: flow.Tensor) -> flow.Tensor:
            return nn.functional.gelu(nn.functional.layer_norm(x, (4,)))

    net, x = Net(), flow.arange(8).float().view(2, 4)
    expected = nn.functional.gelu(nn.functional.layer_norm(x, (4,)))
    assert net(x).allclose(expected, atol=1e-6)
    once = list(prepared)
    assert {*once} == {"gelu", "layer_norm"}
    for factor in (2.0, 3.0, 4.0):
        assert net(x * factor).allclose(expected, atol=1e-3)  # layer_norm undoes the factor
    assert prepared == once
    net.close()
