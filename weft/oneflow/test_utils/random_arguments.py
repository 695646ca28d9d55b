"""Random arguments of a test: numbers, choices, devices and layouts, the same on every rank and in every run."""

from __future__ import annotations

import itertools
import operator
import sys
import threading
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.oneflow import WEFT
from weft.oneflow.test_utils.test_util import has_cuda

flow: Any = sys.modules[WEFT]  # all of it is what such tests are about


class _Run(threading.local):
    """What a rank's running test has made, and how it is compared."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.pairs: list[Any] = []
        self.is_global = self.in_graph = False


run = _Run()


# ---- random arguments --------------------------------------------------------------------------------


class Nothing:
    """The value of an argument that isn't given."""


class generator:
    """A value that is drawn when it is asked for, once."""

    def __init__(self, draw: Callable[[], Any], *children: generator) -> None:
        self.draw, self.children = draw, children
        self.annotation: Any = int

    def value(self) -> Any:
        if "drawn" not in vars(self):
            self.drawn = self.draw()
        return self.drawn

    def eval(self) -> Any:
        """The value, drawn again."""
        self.forget()
        return self.value()

    def forget(self) -> None:
        vars(self).pop("drawn", None)
        for child in self.children:
            child.forget()

    def to(self, annotation: Any) -> generator:
        """Draw a value of this type; the first type counts."""
        for child in self.children:
            child.to(annotation)
        return self

    def _with(self, other: Any, combine: Callable[[Any, Any], Any]) -> generator:
        other = pack(other)
        return generator(lambda: combine(self.value(), other.value()), self, other)

    def __or__(self, other: Any) -> generator:
        return oneof(self, other)

    __ror__ = __or__

    def __add__(self, other: Any) -> generator:
        return self._with(other, operator.add)

    def __radd__(self, other: Any) -> generator:
        return pack(other) + self

    def __sub__(self, other: Any) -> generator:
        return self._with(other, operator.sub)

    def __rsub__(self, other: Any) -> generator:
        return pack(other) - self

    def __mul__(self, other: Any) -> generator:
        return self._with(other, operator.mul)

    __rmul__ = __mul__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value()(*args, **kwargs)

    def __getitem__(self, i: Any) -> Any:
        return self.value()[i]

    def __len__(self) -> int:
        return len(self.value())

    def __bool__(self) -> bool:
        return bool(self.value())


def pack(x: Any) -> generator:
    return x if isinstance(x, generator) else generator(lambda: x)


constant = pack


def nothing() -> generator:
    return generator(Nothing)


def oneof(*choices: Any, possibility: Any = None) -> generator:
    packed = [pack(x) for x in choices]
    weights = [possibility, 1 - possibility] if isinstance(possibility, float) else possibility
    return generator(lambda: packed[run.rng.choice(len(packed), p=weights)].value(), *packed)


class random(generator):
    """A number, a bool or a tuple of numbers, by what the parameter's annotation says."""

    def __init__(self, low: Any = 1, high: Any = 6) -> None:
        self.low, self.high = pack(low), pack(high)
        super().__init__(lambda: self._of(self.annotation), self.low, self.high)
        self.annotation = None

    def to(self, annotation: Any) -> generator:
        if self.annotation is None:
            self.annotation = annotation
        return super().to(annotation)

    def _of(self, annotation: Any) -> Any:
        low, high = self.low.value(), self.high.value()
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            options = [a for a in typing.get_args(annotation) if a not in (str, Any)]
            return self._of(options[run.rng.integers(len(options))])
        if typing.get_origin(annotation) is tuple:
            return tuple(self._of(a) for a in typing.get_args(annotation) if a is not ...)
        if annotation is type(None):
            return None
        if annotation is bool:
            return bool(run.rng.integers(2))
        return float(run.rng.uniform(low, high)) if annotation is float else int(run.rng.integers(low, high))


def random_bool() -> generator:
    return random().to(bool)


def random_or_nothing(low: Any, high: Any) -> generator:
    return oneof(random(low, high), nothing(), possibility=2 / 3)


def cpu_device() -> generator:
    return pack("cpu")


def gpu_device() -> generator:
    return pack("cuda")


def random_device() -> generator:
    return oneof("cpu", "cuda") if has_cuda() else pack("cpu")


# ---- random layouts ----------------------------------------------------------------------------------


def _placements(types: Sequence[str]) -> list[Any]:
    ranks, nodes = np.arange(flow.env.get_world_size()), flow.env.get_node_size()
    return [flow.placement(t, r) for t in types for r in (ranks, ranks.reshape(nodes, -1))]


def all_placement() -> generator:
    return generator(lambda: _placements(["cuda", "cpu"] if has_cuda() else ["cpu"]))


def _one_of(choices: Sequence[Any]) -> Any:
    return choices[int(run.rng.integers(len(choices)))]


def random_placement() -> generator:
    every = all_placement()
    return generator(lambda: _one_of(every.eval()))


def all_cpu_placement() -> generator:
    return generator(lambda: _placements(["cpu"]))


def random_cpu_placement() -> generator:
    return generator(lambda: _one_of(_placements(["cpu"])))


def random_gpu_placement() -> generator:
    return generator(lambda: _one_of(_placements(["cuda"])))


def all_sbp(
    placement: Any = None, dim: int = 1, max_dim: int = 0, except_split: bool = False, except_broadcast: bool = False,
    except_partial_sum: bool = False, valid_split_axis: int | Sequence[int] | None = None,
) -> generator:  # fmt: skip
    """Every sbp of a tensor of `max_dim` dimensions."""
    if placement is not None:
        dim = pack(placement).value().ranks.ndim
    valid = range(max_dim) if valid_split_axis is None else np.atleast_1d(valid_split_axis).tolist()
    each = [
        *(flow.sbp.split(i) for i in range(max_dim) if i in valid and not except_split),
        *[flow.sbp.broadcast] * (max_dim == 0 or not except_broadcast),
        *[flow.sbp.partial_sum] * (max_dim > 0 and not except_partial_sum),
    ]
    return generator(lambda: list(itertools.product(each, repeat=dim)))


def random_sbp(*args: Any, **kwargs: Any) -> generator:
    return generator(lambda: _one_of(all_sbp(*args, **kwargs).value()))
