"""Trains one model in four ways, and says how far each is from torch."""

from __future__ import annotations

import contextlib
import copy
import functools
import time
from collections.abc import Callable
from typing import Any, Final

import torch

import weft as flow
from tests.zoo.models import Made, loss_of
from weft import nn
from weft.launch import spawn_threads

RATE, STEPS = 1e-3, 2
TIGHT, LOOSE = (
    1e-8,
    1e-4,
)  # what float64 allows, and what float32 does, which some models compute in whatever they are given
COLUMNS: Final = ("eager", "graph", "data", "tensor")
S, B = flow.sbp.split, flow.sbp.broadcast
Told = tuple[list[Any], dict[str, torch.Tensor], dict[str, torch.Tensor]]  # losses, gradients of the first step, state


def mapped(given: Any, convert: Callable[[torch.Tensor], Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments and keywords, with each tensor as another."""

    def one(v: Any) -> Any:
        return convert(v) if isinstance(v, torch.Tensor) else v

    if isinstance(given, dict):
        return [], {k: one(v) for k, v in given.items()}
    return [one(v) for v in given], {}


def whole(t: Any) -> torch.Tensor:
    return flow.to_torch(t.to_global(t.placement, B) if t.is_global else t) if isinstance(t, flow.Tensor) else t


def state_of(model: Any) -> dict[str, torch.Tensor]:
    return {
        n: whole(t.detach()).clone()
        for n, t in model.state_dict().items()
        if isinstance(t, (torch.Tensor, flow.Tensor))
    }


def trained(library: Any, model: Any, given: tuple[list[Any], dict[str, Any]]) -> Told:
    args, kwargs = given
    optimizer, losses, gradients = library.optim.SGD(model.parameters(), lr=RATE), [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(*args, **kwargs))
        loss.backward()
        if not step:
            gradients = {n: whole(p.grad.detach()).clone() for n, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
        losses.append(whole(loss.detach()))
    return losses, gradients, state_of(model)


class Train(nn.Graph):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=RATE))

    def build(self, *args: Any, **kwargs: Any) -> Any:
        loss = loss_of(self.model(*args, **kwargs))
        loss.backward()
        return loss


def in_graph(model: Any, given: tuple[list[Any], dict[str, Any]]) -> Told:
    graph = Train(model)
    losses = [whole(graph(*given[0], **given[1])) for _ in range(STEPS)]
    return losses, {}, state_of(model)


def by_rows(path: str, t: Any) -> Any:
    """Without a plan: weights split along their first dimension."""
    return S(0) if path.endswith("weight") and t.ndim > 1 and t.shape[0] % 2 == 0 else B


def on_two_ranks(column: str, model: torch.nn.Module, given: Any) -> Told:
    found: list[Told] = []

    def run() -> None:
        P = flow.placement("cpu", ranks=[0, 1])
        plan = getattr(getattr(model, "config", None), "base_model_tp_plan", None)
        ours = flow.from_torch(copy.deepcopy(model)).to_global(P, B if column == "data" else plan or by_rows)

        def spread(v: torch.Tensor) -> Any:
            t = flow.from_torch(v).to_global(P, B)
            return t.to_global(P, S(0)) if column == "data" and v.ndim else t

        flow.manual_seed(1)
        found.append(trained(flow, ours, mapped(given, spread)))

    spawn_threads(2, run, deadline=120)
    return found[0]


def apart(found: Told, expected: Told) -> tuple[float, str]:
    """How far two trainings are from each other, and where: the largest difference of a tensor, by its norm."""
    worst, where = 0.0, "loss"
    pairs = [("loss", a, b, 0.0) for a, b in zip(found[0], expected[0], strict=True)]
    for what, ours, theirs in (("gradient of ", found[1], expected[1]), ("", found[2], expected[2])):
        if ours and ours.keys() != theirs.keys():
            return float("inf"), f"{what}{sorted(ours.keys() ^ theirs.keys())[0]}, which only one has"
        # what is nothing but rounding is measured by the largest of its kind
        least = 1e-6 * max((float(t.double().norm()) for t in theirs.values()), default=0.0)
        pairs += [(what + name, ours[name], theirs[name], least) for name in ours]
    for name, a, b, least in pairs:
        a, b = a.double(), b.double()
        error = float((a - b).norm()) / (float(b.norm()) + least + 1e-30)
        if not error <= worst:
            worst, where = error, name
    return worst, where


def judged(column: str, made: Made, in_torch: Callable[[bool], Told]) -> str:
    model, given = made
    several = column in ("data", "tensor")
    try:
        if several:
            found = on_two_ranks(column, model, given)
        else:
            ours = flow.from_torch(copy.deepcopy(model))
            flow.manual_seed(1)
            found = (trained if column == "eager" else lambda _, *a: in_graph(*a))(
                flow, ours, mapped(given, flow.from_torch)
            )
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
    error, where = apart(found, in_torch(False))
    if several and error >= LOOSE:
        error, where = apart(found, in_torch(True))
    return "yes" if error < TIGHT else f"{error:.0e}" if error < LOOSE else f"differs: {where} by {error:.0e}"


class InRows(torch.overrides.TorchFunctionMode):
    """Dropout draws row by row, as for global tensors, and not in the order of memory."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.dropout:
            args = (args[0].contiguous(), *args[1:])
        return func(*args, **(kwargs or {}))


def reference(model: torch.nn.Module, given: Any) -> Callable[[bool], Told]:
    """What torch makes of a copy; of one whose dropout goes by rows, if asked."""

    @functools.cache
    def answer(rows: bool) -> Told:
        torch.manual_seed(1)
        with InRows() if rows else contextlib.nullcontext():
            return trained(torch, copy.deepcopy(model), mapped(given, torch.clone))

    return answer


def prepared(model: torch.nn.Module, given: Any, dtype: torch.dtype) -> tuple[Made, Callable[[bool], Told]]:
    """The model and its arguments in a dtype, and what torch makes of them."""
    args, kwargs = mapped(given, lambda v: v.to(dtype) if v.is_floating_point() else v)
    made = model.to(dtype), kwargs or tuple(args)
    in_torch = reference(*made)
    in_torch(False)
    return made, in_torch


def row(make: Callable[[], Made], columns: tuple[str, ...] = COLUMNS) -> tuple[dict[str, str], float]:
    """What became of a model in each column, and the seconds that took."""
    begun = time.monotonic()
    torch.manual_seed(0)
    model, given = make()
    model.train()
    try:
        made, in_torch = prepared(copy.deepcopy(model), given, torch.float64)
    except RuntimeError:  # a kernel that torch has in float32 alone
        made, in_torch = prepared(model, given, torch.float32)
    return {c: judged(c, made, in_torch) for c in columns}, time.monotonic() - begun
