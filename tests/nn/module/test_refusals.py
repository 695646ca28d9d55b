"""Layers that are made, or called, with what they can't take: a named error says what they take. The user's own errors
stay as they are.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError, OptionError, WeftError

NONSENSE: list[Any] = [None, "abc", [1], (1, 2, 3, 4), -1, 2.5, {}, flow.ones(2), np.ones(2), object()]
INPUTS: list[Any] = [
    None, "abc", [flow.ones(2)], 3, np.ones(2), flow.tensor(1.0), flow.ones(4), flow.ones(2, 4), flow.ones(2, 4, 8),
    flow.ones(2, 4, 8, 8), flow.ones(0, 4), flow.zeros(2, 4, dtype=flow.int64), flow.ones(2, 4) > 0,
    flow.ones(2, 4, dtype=flow.complex64),
]  # fmt: skip
USUAL = {"kernel_size": 2, "num_heads": 2, "nhead": 2, "num_groups": 2, "normalized_shape": (4,), "dim": 1,
         "unflattened_size": (2, 2)}  # fmt: skip
SLOW = {"d_model": 8, "dim_feedforward": 8, "num_encoder_layers": 1, "num_decoder_layers": 1}
LAYERS = {n: c for n in nn.__all__ if inspect.isclass(c := getattr(nn, n)) and issubclass(c, nn.Module)}


def usual(layer: type) -> tuple[dict[str, Any], list[str]]:
    """Arguments that a layer needs, and the names of all."""
    parameters = [p for p in inspect.signature(layer).parameters.values() if p.kind not in (2, 4)]
    needed = [p.name for p in parameters if p.default is p.empty or p.name in SLOW]
    inner = {n: nn.ReLU() for n in needed if n.endswith("_layer")}
    return {n: (USUAL | SLOW).get(n, 4) for n in needed} | inner, [p.name for p in parameters]


def answers(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call gives, or None where it is refused by name; anything else that is raised fails the test."""
    try:
        return call(*args, **kwargs)
    except (WeftError, NotImplementedError):
        return None


def constructions(layer: type) -> Iterator[dict[str, Any]]:
    given, names = usual(layer)
    yield {}
    yield {**given, "wrong": 1}
    for name in names:
        yield from ({**given, name: value} for value in NONSENSE)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_made_or_says_what_it_takes(name: str) -> None:
    for given in constructions(LAYERS[name]):
        answers(LAYERS[name], **given)
    answers(LAYERS[name], *range(20))


@pytest.mark.parametrize("name", LAYERS)
def test_types_are_shown_as_they_are_written(name: str) -> None:
    try:
        LAYERS[name](an_option_that_no_layer_has=1)
    except ArgumentError as refused:
        assert not re.search(r"typing\.|torch\.|weft\.|NoneType|<\w+ ", str(refused)), refused


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_answers_or_says_what_it_takes(name: str) -> None:
    for given in (usual(LAYERS[name])[0], {}):
        layer = answers(LAYERS[name], **given)
        if layer is None:
            continue
        needed = [p for p in inspect.signature(layer.forward).parameters.values() if p.default is p.empty]
        for first in INPUTS:
            for second in INPUTS if len(needed) > 1 else (None,):
                answers(layer, *(first, *[second] * (len(needed) - 1))[: len(needed)])
        answers(layer)
        answers(layer, *[flow.ones(2, 4)] * 9)
        answers(layer, flow.ones(2, 4), wrong=1)


def test_what_the_errors_say() -> None:
    layers: Any = nn
    for call, words in (
        (
            lambda: layers.Linear(),
            r"Linear\(\): missing required argument 'in_features'.*accepted: Linear\(in_features: int",
        ),
        (lambda: layers.Conv1d(None, 2, 3), r"Conv1d\(\): argument 'in_channels' must be int, not NoneType"),
        (lambda: layers.Tanh(3), r"Tanh\(\): takes 0 positional arguments"),
        (lambda: layers.AdaptiveAvgPool1d(), r"AdaptiveAvgPool1d\(\): missing required argument 'output_size'"),
        (lambda: nn.Linear(2, 2)(flow.ones(2, 2), 1), r"Linear\(\): takes 1 positional argument but 2"),
        (lambda: nn.GRU(2, 2)(None), r"argument 'x' must be|accepted: GRU"),
    ):
        with pytest.raises(ArgumentError, match=f"(?s){words}"):
            call()

    class Mine(nn.Linear):
        def __init__(self, size: Any) -> None:
            super().__init__(size, size)

    with pytest.raises(OptionError, match="nonnegative integers"):
        Mine("a")


class Failing(nn.Module):
    """A user's layer that stumbles over what is its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def forward(self, x: Any) -> Any:
        raise self.error


def test_errors_of_a_users_own_stay_as_they_are() -> None:
    for error in (KeyError("a"), TypeError("mine"), AttributeError("mine")):
        with pytest.raises(type(error)) as caught:
            nn.Sequential(nn.ReLU(), Failing(error))(flow.ones(2))
        assert caught.value is error
    layer = nn.Linear(2, 2)

    def hook(*_: Any) -> None:
        raise ZeroDivisionError

    layer.register_forward_hook(hook)
    with pytest.raises(ZeroDivisionError):
        layer(flow.ones(2, 2))
    with pytest.raises(TypeError) as bare:
        Failing(KeyError())()
    assert not isinstance(bare.value, WeftError)  # the signature is the user's, and Python tells it
    with pytest.raises(TypeError, match="missing 1 required"):
        Failing()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="mine"):
        flow.vmap(Failing(ValueError("mine")))(flow.ones(2))


def test_a_lazy_layer_that_was_refused_stays_lazy() -> None:
    with pytest.raises(OptionError, match="nonnegative integers"):
        nn.LazyLinear("a")  # type: ignore[arg-type]
    odd = nn.LazyConv1d(2, 1, groups=2)
    with pytest.raises(OptionError, match="divisible by groups"):
        odd(flow.ones(2, 3, 5))
    assert odd(flow.ones(2, 4, 5)).shape == (2, 2, 5)
    good = nn.LazyConv1d(2, 1).eval()
    with pytest.raises(WeftError, match="infers its size"):
        good(flow.ones(3))
    assert good(flow.ones(1, 3, 5)).shape == (1, 2, 5) and type(good) is nn.Conv1d and not good.training


NAMED = sorted(set(vars(torch.nn)) & set(LAYERS))


@pytest.mark.parametrize("name", NAMED)
def test_a_layer_is_called_by_torchs_names(name: str) -> None:
    """What comes of it is the layer's affair: only that the names are its own is asked."""
    layer = answers(LAYERS[name], **usual(LAYERS[name])[0])
    taken = list(inspect.signature(getattr(torch.nn, name).forward).parameters.values())[1:]
    if layer is None or any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in taken):
        return
    try:
        layer(**{p.name: flow.ones(2, 4) for p in taken if p.default is p.empty})
    except (WeftError, NotImplementedError) as error:
        assert "unexpected argument" not in str(error)
        assert "several values" not in str(error)


def test_names_of_the_call_are_torchs() -> None:
    x, y = flow.tensor([[0.5, -1.0]]), flow.tensor([[1.0, 2.0]])
    layers: Any = nn
    assert layers.MSELoss()(input=x, target=y).item() == layers.MSELoss()(x, y).item()
    assert layers.PoissonNLLLoss()(log_input=x, target=y).item() == layers.PoissonNLLLoss()(x, y).item()
    layer = layers.Sequential(nn.Linear(2, 2), nn.ReLU())
    assert layer(input=x).tolist() == layer(x).tolist()


def test_hooks_run_once_where_arguments_are_fitted() -> None:
    layer, seen = nn.Linear(2, 2), list[str]()
    layer.register_forward_pre_hook(lambda m, args: seen.append("before"))
    layer.register_forward_hook(lambda m, args, y: seen.append("after"))
    given: Any = torch.ones(1, 2)
    assert layer(given).tolist() == layer(input=flow.ones(1, 2)).tolist()
    assert seen == ["before", "after"] * 2
