"""A graph goes on where OneFlow's graph stopped: each name below is one that OneFlow 0.9 saved."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.core.errors import GraphError

OPTIMIZERS: dict[str, tuple[Any, dict[str, str]]] = {
    "SGD": ({"lr": 0.01, "momentum": 0.9}, {"momentum": "momentum_buffer"}),
    "Adam": ({"lr": 0.1, "amsgrad": True}, {"m": "exp_avg", "v": "exp_avg_sq", "max_v": "max_exp_avg_sq"}),
    "Adagrad": ({"lr": 0.1, "lr_decay": 0.1}, {"sum": "sum"}),
    "RMSprop": ({"lr": 0.1, "centered": True}, {"mean_square": "square_avg", "mean_gradient": "grad_avg"}),
    "LAMB": ({"lr": 0.1}, {"m": "exp_avg", "v": "exp_avg_sq"}),
    "Adadelta": ({"lr": 0.1}, {"square_avgs": "square_avg", "acc_deltas": "acc_delta"}),
}
X = flow.tensor([[1.0, 2.0, -1.0], [0.5, -0.5, 3.0]])


class Train(nn.Graph):
    def __init__(self, name: str, **options: Any) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        optimizer = getattr(flow.optim, name)(self.linear.parameters(), **(options or OPTIMIZERS[name][0]))
        self.add_optimizer(optimizer, lr_sch=flow.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.3))

    def build(self, x: Any) -> Any:
        loss = flow.square(self.linear(x)).sum()
        loss.backward()
        return loss


def saved_by_oneflow(graph: Train, slots: dict[str, str]) -> dict[str, Any]:
    """The graph's state as OneFlow lays it out."""
    state = graph.state_dict()
    of = dict(zip(("weight", "bias"), state.pop("-training")[0]["state"].values(), strict=True))
    return state | {f"linear.{n}-{theirs}": of[n][ours].clone() for n in of for theirs, ours in slots.items()}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on(name: str) -> None:
    first, second = Train(name), Train(name)
    for _ in range(3):
        first(X)
    state = saved_by_oneflow(first, OPTIMIZERS[name][1])
    second.load_state_dict(state)
    assert [second(X).item() for _ in range(3)] == [first(X).item() for _ in range(3)]
    assert second.state_dict()["System-Train-TrainStep"].tolist() == [6]
    with pytest.raises(GraphError, match="into a new graph"):
        second.load_state_dict(state)


def test_rates_go_on_without_states() -> None:
    first, second = Train("SGD", lr=0.01), Train("SGD", lr=0.01)
    for _ in range(3):
        first(X)
    state = first.state_dict()
    del state["-training"]
    second.load_state_dict(state)
    assert [second(X).item() for _ in range(3)] == [first(X).item() for _ in range(3)]


def test_states_of_another_optimizer_are_refused() -> None:
    graph = Train("Adam")
    state = {"linear.weight-momentum": flow.zeros(2, 3), "System-Train-TrainStep": flow.tensor([1])}
    with pytest.raises(GraphError, match=r"'linear\.weight-momentum' isn't a state of Adam"):
        graph.load_state_dict({"linear": graph.linear.state_dict(), **state})


def test_names_of_nothing_here_are_refused() -> None:
    graph = Train("SGD")
    for unknown in ("other.weight-momentum", "linear.weight-nothing"):
        with pytest.raises(GraphError, match=unknown):
            graph.load_state_dict(graph.state_dict() | {unknown: flow.zeros(2, 3)})
