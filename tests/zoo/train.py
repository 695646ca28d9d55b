"""One rank of the zoo: trains models in some of the columns, and prints what became of each as a line of JSON."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import math
import sys
from typing import Any

import torch

import weft as flow
from tests.zoo.models import MODELS, loss_of
from weft import nn

RATE, STEPS = 1e-3, 2
S, B = flow.sbp.split, flow.sbp.broadcast


def arguments(given: Any, convert: Any) -> tuple[list[Any], dict[str, Any]]:
    def one(v: Any) -> Any:
        return convert(v) if isinstance(v, torch.Tensor) else v

    if isinstance(given, dict):
        return [], {k: one(v) for k, v in given.items()}
    return [one(v) for v in given], {}


def steps(
    flow_or_torch: Any, model: Any, args: list[Any], kwargs: dict[str, Any]
) -> tuple[list[float], dict[str, Any]]:
    """The losses, and the gradients of the first step."""
    optimizer, losses, gradients = flow_or_torch.optim.SGD(model.parameters(), lr=RATE), [], {}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model(*args, **kwargs))
        loss.backward()
        if not step:
            gradients = {n: p.grad.detach().clone() for n, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
        losses.append(float(loss.detach().numpy()))
    return losses, gradients


class Train(nn.Graph):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=RATE))

    def build(self, *args: Any, **kwargs: Any) -> Any:
        loss = loss_of(self.model(*args, **kwargs))
        loss.backward()
        return loss


def by_rows(path: str, t: Any) -> Any:
    """Without a plan: weights split along their first dimension."""
    return S(0) if path.endswith("weight") and t.ndim > 1 and t.shape[0] % 2 == 0 else B


def losses_in(column: str, model: Any, given: Any, expected: dict[str, torch.Tensor]) -> list[float]:
    ours = flow.from_torch(model)
    flow.manual_seed(1)
    if column in ("eager", "graph"):
        args, kwargs = arguments(given, flow.from_torch)
        if column == "graph":
            graph = Train(ours)
            return [graph(*args, **kwargs).item() for _ in range(STEPS)]
        losses, gradients = steps(flow, ours, args, kwargs)
        for name, g in expected.items():
            error = (g - gradients[name].to_torch()).norm() / (g.norm() + 1e-2)
            if not error < 0.05:
                raise ArithmeticError(f"the gradient of {name} differs from torch's by {error:.1%}")
        return losses
    P = flow.placement("cpu", ranks=[0, 1])
    plan = getattr(getattr(model, "config", None), "base_model_tp_plan", None)
    ours.to_global(P, B if column == "data" else plan or by_rows)

    def spread(v: torch.Tensor) -> Any:
        return flow.from_torch(v).to_global(P, B).to_global(P, S(0) if column == "data" and v.ndim else B)

    return steps(flow, ours, *arguments(given, spread))[0]


def judged(column: str, make: Any) -> str:
    torch.manual_seed(0)
    model, given = make()
    model.train()
    state = {k: v.clone() for k, v in model.state_dict().items()}
    torch.manual_seed(1)
    expected, gradients = steps(torch, model, *arguments(given, lambda v: v))
    model.load_state_dict(state)
    try:
        losses = losses_in(column, model, given, gradients)
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
    alike = all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) for a, b in zip(losses, expected, strict=True))
    return "yes" if alike else f"losses {losses}, torch's {expected}"


def main(columns: str, names: list[str]) -> None:
    if columns == "--list":
        versions = {library: importlib.metadata.version(library) for library in MODELS}
        print(json.dumps([{library: list(models) for library, models in MODELS.items()}, versions]))
        return
    every = {name: make for models in MODELS.values() for name, make in models.items()}
    for name, column in itertools.product(names or every, columns.split(",")):
        result = judged(column, every[name])
        if flow.env.get_rank() == 0:
            print(json.dumps({"model": name, "column": column, "result": result}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
