"""What a parameter group may say, and what becomes of what no optimizer reads."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError
from weft.optim.keys import NOTES

KINDS = [n for n in flow.optim.__all__ if n not in ("Optimizer", "lr_scheduler", "LBFGS")]


def made(kind: str, **options: Any) -> Any:
    w = flow.nn.Parameter(flow.ones(2, 2))
    w.grad = flow.ones(2, 2)
    return getattr(flow.optim, kind)([{"params": [w], **options}], lr=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_options_and_known_notes_pass_without_a_word(kind: str) -> None:
    options = made(kind).defaults
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(kind, **options)
        assert made(kind, **dict.fromkeys(NOTES, 1.0)).param_groups[0]["name"] == 1.0
        made(kind).load_state_dict(made(kind, name="head").state_dict())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", ["weigth_decay", "learning_rate_", "leraning"])
def test_a_mistake_is_noticed(kind: str, key: str) -> None:
    if key == "weigth_decay" and "weight_decay" in made(kind).defaults:
        with pytest.raises(OptionError, match="did you mean 'weight_decay'"):
            made(kind, **{key: 0.1})
    else:
        with pytest.warns(UserWarning, match=f"ignores '{key}'"):
            made(kind, **{key: 0.1})


@pytest.mark.parametrize(
    ("kind", "key"), [("SGD", "betas"), ("Adam", "momentum"), ("LAMB", "rho"), ("Adagrad", "amsgrad"), ("SGD", "eps")]
)
def test_an_option_of_another_optimizer_is_refused(kind: str, key: str) -> None:
    with pytest.raises(OptionError, match=f"{kind} has no option '{key}'.*It has .*lr"):
        made(kind, **{key: 0.1})


def test_ones_own_optimizer_has_the_options_that_it_takes() -> None:
    class Own(flow.optim.SGD):
        def __init__(self, params: Any, lr: float = 0.1, warmth: float = 1.0) -> None:
            super().__init__(params, lr)

    w = flow.nn.Parameter(flow.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Own([{"params": [w], "warmth": 2.0, "momentum": 0.9}])
    with pytest.warns(UserWarning, match="is_muon"):
        Own([{"params": [w], "is_muon": True}])


def test_ones_own_step_reads_options_of_its_own() -> None:
    class Own(flow.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.data -= group["momentum"] * group["is_muon"]

    w = flow.nn.Parameter(flow.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Own([{"params": [w], "momentum": 0.5, "is_muon": True}], {}).step()
    assert w.item() == 0.5


def test_a_scale_of_the_rate_is_a_graphs_and_told_in_eager_steps() -> None:
    optimizer = made("SGD", lr_scale=0.1)
    with pytest.warns(UserWarning, match=r"lr_scale=0\.1 .* in a graph only.*group\['lr'\] \*="):
        optimizer.step()
    assert optimizer.param_groups[0]["params"][0].detach().tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_an_optimizer_around_another_shares_its_groups() -> None:
    class Around(flow.optim.Optimizer):  # as sharpness-aware minimization and the like are written
        def __init__(self, params: Any, base: Any, rho: float, **options: Any) -> None:
            super().__init__(params, {"rho": rho, **options})
            self.base = base(self.param_groups, **options)
            self.param_groups = self.base.param_groups

    w = flow.nn.Parameter(flow.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer = Around([w], flow.optim.SGD, rho=0.05, lr=0.5)
    w.sum().backward()
    optimizer.base.step()
    assert w.item() == 0.5 and optimizer.param_groups[0]["rho"] == 0.05


def test_a_group_has_oneflows_names_for_its_parts() -> None:
    optimizer = made("SGD", momentum=0.9)
    group = optimizer.param_groups[0]
    assert group.parameters is group["params"]
    assert group.options == {k: v for k, v in group.items() if k != "params"} and "params" not in group.options
    group.options["lr"] = 0.25
    optimizer.step()
    assert group["lr"] == 0.25 and len(group.options) == len(dict(group.options))
    assert group.parameters[0].tolist() == [[0.75, 0.75]] * 2


def test_options_are_torchs() -> None:
    for kind in KINDS:
        theirs = getattr(torch.optim, kind, None)
        if theirs is not None:
            wanted = theirs([torch.ones(2, 2, requires_grad=True)], lr=0.5).defaults
            extra = set(made(kind).defaults) - set(wanted)
            assert not extra & {"weight_decay", "momentum", "eps", "betas"}, (kind, extra)
    with pytest.raises(OptionError, match="Rprop has no option 'weight_decay'"):
        made("Rprop", weight_decay=0.1)
