"""Hooks around an optimizer's state, in the order of torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow


@pytest.mark.parametrize("lib", [flow, torch])
def test_they_see_and_replace_states(lib: Any) -> None:
    w = lib.nn.Parameter(lib.ones(2))
    optimizer = lib.optim.SGD([w], lr=0.1, momentum=0.9)
    log: list[str] = []
    optimizer.register_state_dict_pre_hook(lambda o: log.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: log.append("first"), prepend=True)
    handle = optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    state = optimizer.state_dict()
    assert log == ["first", "second"] and state["more"] == 1
    handle.remove()
    assert "more" not in optimizer.state_dict()

    def faster(o: Any, state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "param_groups": [{**g, "lr": 0.5} for g in state["param_groups"]]}

    optimizer.register_load_state_dict_pre_hook(faster)
    optimizer.register_load_state_dict_post_hook(lambda o: log.append(f"{o.param_groups[0]['lr']}"))
    optimizer.load_state_dict(state)
    assert log[-1] == "0.5" and state["param_groups"][0]["lr"] == 0.1


@pytest.mark.parametrize("lib", [flow, torch])
def test_a_module_is_told_before_its_state_is_taken(lib: Any) -> None:
    net = lib.nn.Sequential(lib.nn.Linear(1, 1))
    log: list[Any] = []
    net[0].register_state_dict_pre_hook(lambda module, prefix, keep: log.append((module is net[0], prefix, keep)))
    net.state_dict(prefix="net.")
    assert log == [(True, "net.0.", False)]
