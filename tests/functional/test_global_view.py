"""Programs that make their own tensors, on global ones; trees of tensors, converted."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError, DeviceError, SbpError
from weft.functional.create.global_view import current_global_mode, global_mode, to_global, to_local
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast


class Positioned(nn.Module):
    """As people write it: positions and a mask, made in forward on x's device."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(11, 8), nn.Embedding(6, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, ids: flow.Tensor) -> flow.Tensor:
        t = ids.shape[1]
        x = self.token(ids) + self.position(flow.arange(t, device=ids.device))
        mask = flow.tril(flow.ones(t, t, device=ids.device)) == 0
        scores = (x @ x.transpose(1, 2)).masked_fill(mask, float("-inf"))
        half = flow.tensor(0.5).to(ids.device) * flow.Tensor(1).fill_(1.0) * flow.FloatTensor([1.0])
        return self.head(flow.softmax(scores, -1) @ x * half)


class Training(nn.Graph):
    def __init__(self, model: nn.Module, place: flow.placement) -> None:
        super().__init__()
        self.model, self.place = model, place
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, ids: flow.Tensor) -> flow.Tensor:
        with global_mode(True, placement=self.place, sbp=B):
            logits = self.model(ids)
        loss = nn.functional.cross_entropy(logits.view(-1, 11), ids.view(-1))
        loss.backward()
        return loss


def test_a_model_that_makes_masks_runs_on_global_tensors() -> None:
    ids = np.random.default_rng(0).integers(0, 11, (4, 6))

    def model() -> nn.Module:
        flow.manual_seed(0)
        return Positioned()

    alone = model()
    expected = alone(flow.tensor(ids)).detach().numpy()
    losses = []
    optimizer = flow.optim.SGD(alone.parameters(), lr=0.1)
    for _ in range(2):
        loss = nn.functional.cross_entropy(alone(flow.tensor(ids)).view(-1, 11), flow.tensor(ids).view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        mine = model().to_global(placement=place, sbp=B)
        batch = flow.tensor(ids, placement=place, sbp=S(0))
        with pytest.raises((DeviceError, SbpError)):
            mine(batch)
        with global_mode(True, placement=place, sbp=B):
            np.testing.assert_allclose(mine(batch).detach().numpy(), expected, atol=1e-5)
        graph = Training(mine, place)
        np.testing.assert_allclose([graph(batch).numpy() for _ in range(2)], losses, atol=1e-5)

    spawn_threads(2, run, deadline=60)


def test_what_is_computed_again_in_backward_is_in_the_mode_too() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        model = Positioned().to_global(placement=place, sbp=B)
        batch = flow.tensor(np.ones((4, 6), dtype=np.int64), placement=place, sbp=S(0))
        with global_mode(True, placement=place, sbp=B):
            y = flow.utils.checkpoint.checkpoint(model, batch, use_reentrant=False)
        y.sum().backward()
        grad: Any = model.head.weight.grad
        assert grad.is_global and not current_global_mode().is_enabled

    spawn_threads(2, run, deadline=60)


def test_new_tensors_are_split_as_far_as_their_own_sizes_allow() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        x = flow.ones(4, 6, placement=place, sbp=S(1))
        assert x.new_zeros(3, 4).sbp == (S(1),) and x.new_zeros(4, 6, sbp=S(0)).sbp == (S(0),)
        assert x.new_zeros(3, 1).sbp == x.new_ones(5).sbp == x.new_full((), 2.0).sbp == x.new_tensor([2.0]).sbp == (B,)
        with global_mode(True, placement=place, sbp=S(1)):
            assert flow.zeros(()).sbp == flow.tensor(3.0).sbp == flow.ones(2).sbp == (B,)
            assert flow.ones(2, 4).sbp == (S(1),)

    spawn_threads(2, run, deadline=60)


def test_what_the_mode_says() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        assert not current_global_mode().is_enabled
        with global_mode(True, placement=place, sbp=B):
            mode = current_global_mode()
            assert mode.is_enabled and mode.placement is place and mode.sbp == (B,)
            made: list[Any] = [
                flow.ones(2, 2), flow.zeros(2, device="cpu"), flow.full((2,), 3), flow.arange(4), flow.randn(2, 3),
                flow.rand(2), flow.randint(0, 5, (2,)), flow.randperm(4), flow.tensor([1.0]), flow.eye(2),
                flow.linspace(0, 1, 3), nn.Linear(2, 2).weight, flow.empty(2),
            ]  # fmt: skip
            assert all(t.is_global and t.sbp == (B,) and t.device.type == "cpu" for t in made)
            assert flow.ones(2, placement=place, sbp=S(0)).sbp == (S(0),)
            with global_mode(False):
                assert flow.ones(2).is_local and not current_global_mode().is_enabled
            assert flow.ones(2).is_global
        assert flow.ones(2).is_local
        with global_mode(True, placement=place, sbp=S(0)):
            assert flow.ones(4, 2).to_local().shape == (2, 2)

    spawn_threads(2, run, deadline=60)
    with pytest.raises(ArgumentError, match="takes both"):
        global_mode(True, placement=flow.placement("cpu", [0]))
    with pytest.raises(ArgumentError, match="neither"):
        global_mode(False, placement=flow.placement("cpu", [0]), sbp=B)
    with pytest.raises(ArgumentError, match="is off"):
        _ = current_global_mode().placement


def test_trees_go_there_and_back() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        state = {"w": flow.ones(2, 2), "more": [flow.zeros(2), (flow.ones(4),)]}
        there = to_global(state, place, lambda t: B if t.ndim > 1 else S(0))
        assert there["w"].sbp == (B,) and there["more"][0].shape == (4,) and isinstance(there["more"][1], tuple)
        back = to_local(there)
        assert back["w"].is_local and back["more"][1][0].tolist() == [1.0] * 4
        with pytest.warns(UserWarning, match="is not a tensor") as told:
            assert to_global({"step": 3, "of": 4}, place, B) == {"step": 3, "of": 4}
        assert len({str(w.message) for w in told}) == 1  # which Python shows once for a line
        grouped = defaultdict(list, a=[flow.ones(2)])
        assert to_global(grouped, place, B)["a"][0].is_global and to_global(grouped, place, B)["b"] == []

    spawn_threads(2, run, deadline=60)
