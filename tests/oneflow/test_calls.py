"""Calls as OneFlow's programs make them, each seen to stop one, and the values that OneFlow 0.9 gives."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch

import weft as flow
from tests.ranks import on
from weft.core.errors import ArgumentError, DtypeError, OptionError, RankError
from weft.launch import spawn_threads
from weft.ops import op

B, S = flow.sbp.broadcast, flow.sbp.split


@on(2)
def test_a_value_is_read_on_every_rank_of_the_world_by_whichever_call() -> None:
    x = flow.ones(1, placement=flow.placement("cpu", [1]), sbp=B, requires_grad=True) * 3
    assert x.numpy().tolist() == x.tolist() == [3.0] and x.item() == float(x) == 3.0 and bool(x > 2)
    assert flow.show(x).startswith("tensor([3.]") and x.to_local().numel() == flow.env.get_rank()


@on(2)
def test_a_view_is_read_as_it_is_after_its_base_was_written() -> None:
    x = flow.zeros(4, placement=flow.placement("cpu", [0]), sbp=B)
    view = x.view(2, 2)
    x.add_(1)
    assert view.numpy().tolist() == view.tolist() == [[1.0, 1.0], [1.0, 1.0]]


@on(2)
def test_a_tensor_is_made_of_a_global_one() -> None:
    place = flow.placement("cpu", [0, 1])
    x = flow.tensor([[1.0], [2.0]], placement=place, sbp=S(0))
    y, local = flow.Tensor(x, placement=place, sbp=B), flow.Tensor(x, device="cpu")
    assert y.sbp == (B,) and local.is_local and y.tolist() == local.tolist() == [[1.0], [2.0]]


@on(2)
def test_an_array_beside_a_global_tensor_is_the_same_on_every_rank() -> None:
    grid, array = flow.placement("cpu", [[0, 1]]), np.array([[1.0], [2.0], [3.0], [4.0]], dtype=np.float32)
    x = flow.ones(4, 2, placement=grid, sbp=[B, S(0)])
    for y in (x * array, flow.add(x, array), x**array, x - array, x / array, x // array, x % array):
        assert y.is_global and y.sbp == x.sbp
    assert (x * array).tolist() == [[i, i] for i in (1, 2, 3, 4)]
    x[:, 0] = array[:, 0]
    assert x.tolist() == [[i, 1] for i in (1, 2, 3, 4)]


def test_who_reads_alone_is_told_that_all_ranks_read() -> None:
    def each() -> None:
        x = flow.ones(3, placement=flow.placement("cpu", [0]), sbp=B)
        if flow.env.get_rank() == 1:
            x.numpy()

    with pytest.raises(RankError) as told:
        spawn_threads(2, each, deadline=0.3)
    assert any("numpy()" in n and "every rank of the world" in n and "to_local()" in n for n in told.value.__notes__)


@on(2)
def test_a_rank_that_the_placement_lacks_gives_none() -> None:
    x = flow.ones(2) if flow.env.get_rank() == 0 else None
    y = flow.utils.global_view.to_global(x, placement=flow.placement("cpu", [0]), sbp=B)
    assert y.shape == (2,) and y.tolist() == [1.0, 1.0]
    state = {"weight": flow.ones(2), "more": [flow.zeros(1), (3, float("inf"), None)], 0: {}}
    z = flow.utils.global_view.to_global(None if x is None else state, y.placement, B, False)
    assert z["weight"].placement == y.placement and z["weight"].tolist() == [1.0, 1.0]
    assert z["more"][1] == (3, float("inf"), None) and z["more"][0].tolist() == [0.0]
    assert list(z) == ["weight", "more", 0]
    everywhere = flow.placement.all("cpu")
    assert flow.utils.global_view.to_global(z, everywhere, B, False)["weight"].placement == everywhere


def test_an_sbp_may_be_told_from_all_that_is_given() -> None:
    state = {"weight": flow.ones(2, 2), "bias": flow.ones(2)}
    rule = lambda state, t: S(1) if t is state["weight"] else B  # noqa: E731
    found = flow.utils.global_view.to_global(state, placement=flow.placement("cpu", [0]), sbp=rule)
    assert found["weight"].sbp == (S(1),) and found["bias"].sbp == (B,)


def test_a_state_tells_how_many_steps_a_graph_has_trained() -> None:
    class Step(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = flow.nn.Linear(2, 1)
            self.add_optimizer(flow.optim.SGD(self.layer.parameters(), lr=0.1))

        def build(self, x: Any) -> Any:
            loss = self.layer(x).sum()
            loss.backward()
            return loss

    step, x = Step(), flow.ones(1, 2)
    step(x)
    step(x)
    state: dict[str, Any] = {}
    assert step.state_dict(state) is state
    assert state["System-Train-TrainStep"].tolist() == [2]
    after = Step()
    after.load_state_dict(state)
    after(x)
    assert after.state_dict()["System-Train-TrainStep"].item() == 3


def test_repeats_that_are_known_in_build() -> None:
    class Repeats(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            return flow.repeat_interleave(x, flow.tensor([1, 2]), dim=0)

    assert Repeats()(flow.tensor([3.0, 4.0])).tolist() == [3.0, 4.0, 4.0]


def test_inplace_by_place() -> None:
    x, relu = flow.tensor([-1.0, 1.0]), cast(Any, flow.relu)  # a call that its type does not tell
    assert relu(x, False) is not x and relu(x, True) is x and x.tolist() == [0.0, 1.0]
    with pytest.raises(ArgumentError, match="takes 2 positional arguments but 3 were given\n  accepted: relu"):
        relu(x, True, 1)


def test_padding_by_zeros_that_nobody_named() -> None:
    for n in (1, 2, 3):
        layer, x = getattr(flow.nn, f"ConstantPad{n}d"), flow.ones(*[1] * (n + 2))
        assert layer(1)(x).sum().item() == 1 and layer(1, 2.0)(x).sum().item() == 1 + 2 * (3**n - 1)


def test_betas_of_anything_that_holds_two() -> None:
    class Pair:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, i: int) -> float:
            return (0.9, 0.99)[i]

    weight, pair = flow.nn.Parameter(flow.ones(1)), cast(Any, Pair())
    for kind in (flow.optim.Adam, flow.optim.AdamW, flow.optim.LAMB):
        assert tuple(kind([weight], betas=pair).param_groups[0]["betas"][i] for i in range(2)) == (0.9, 0.99)
        for wrong in ("ab", {0: 0.9, 1: 0.99}, (0.9,), 0.9, None):
            with pytest.raises(OptionError, match="betas must be two numbers, such as"):
                kind([weight], betas=cast(Any, wrong))
        with pytest.raises(ArgumentError, match=r"index 1 must be a number; got the text '0\.99', write float"):
            kind([weight], betas=cast(Any, (0.9, "0.99")))


def test_a_dtype_without_a_kernel_is_told_in_the_ops_name_with_one_that_has_it() -> None:
    b = flow.ones(2, 2) > 0
    for call in (lambda: flow.matmul(b, b), lambda: flow.softmax(flow.tensor([1, 2]), 0)):
        with pytest.raises(DtypeError, match=r"^\w+ has no kernel for (bool|int64): not implemented for ") as told:
            call()
        assert "It takes " in str(told.value) and "float32" in str(told.value)


def test_an_ops_parameter_needs_a_type() -> None:
    def doubled(x, by: int = 2) -> torch.Tensor:  # type: ignore[no-untyped-def]
        return x * by

    with pytest.raises(ArgumentError, match=r"parameter 'x' needs a type, .* x: Tensor is an operand"):
        op("_ -> _")(doubled)


def test_bytes_with_a_sign_are_masks_as_well() -> None:
    """OneFlow's comparisons once gave them, and its programs cast to them."""
    x, chosen = flow.arange(6.0).reshape(2, 3), flow.tensor([[True, False, True], [False, True, False]])
    mask = chosen.to(flow.int8)
    assert x[mask].tolist() == x[chosen].tolist() == [0.0, 2.0, 4.0] and x[:, mask[0]].shape == (2, 2)
    x[mask] = 9
    assert x.tolist() == [[9.0, 1.0, 9.0], [3.0, 9.0, 5.0]]


@pytest.mark.parametrize(("layer", "name", "shape"), [
    (flow.nn.Linear(2, 3), "x", (1, 2)), (flow.nn.Conv2d(1, 1, 1), "x", (1, 1, 2, 2)), (flow.nn.ReLU(), "x", (2,)),
    (flow.nn.LayerNorm(2), "x", (2,)), (flow.nn.MaxPool1d(1), "x", (1, 1, 2)),
    (flow.nn.Embedding(2, 3), "indices", (2,)),
])  # fmt: skip
def test_operands_of_layers_have_oneflows_names(layer: Any, name: str, shape: tuple[int, ...]) -> None:
    operand = flow.zeros(shape, dtype=flow.int64 if name == "indices" else None)
    assert flow.equal(layer(**{name: operand}), layer(operand))
    with pytest.raises(ArgumentError, match="unexpected"):
        layer(y=1, **{name: operand})


def test_arguments_have_oneflows_names() -> None:
    layer = flow.nn.Linear(1, 1)
    assert [*layer.state_dict(None, "a.", True)] == [
        "a.weight",
        "a.bias",
    ]  # as wrappers of Megatron's kind pass them on
    assert flow.env.all_device_placement(device_type="cpu") == flow.placement.all("cpu")
    assert flow.utils.data.default_collate(batch=[flow.ones(1)]).shape == (1, 1) and flow.is_tensor(obj=layer.weight)
    tensor = flow.utils.tensor.from_torch(torch_tensor=torch.ones(2))
    assert torch.equal(flow.utils.tensor.to_torch(flow_tensor=tensor), torch.ones(2))
    assert flow.convert_oneflow_dtype_to_numpy_dtype(oneflow_dtype=tensor.dtype) == np.float32
    assert len(cast(Any, flow.nn.ParameterList)(parameters=[layer.weight])) == 1
    flow.profiler.range_push(range_name="a")
    flow.profiler.range_pop()
    with pytest.warns(UserWarning, match="record_bandwidth_for_cuda"):
        flow.profiler.profile(record_bandwidth_for_cuda=True)


X, W = flow.full((3, 3), 2.0), [flow.nn.Parameter(flow.ones(1))]
ADAM: Any = (W, 0.1, (0.9, 0.99), 1e-8, 0.0, False)  # up to amsgrad


@pytest.mark.parametrize(("made", "expected"), [
    (lambda m: m.addmm(X, X, X, 2, 3).tolist(), [[30.0] * 3] * 3),  # alpha, then beta
    (lambda m: X.addmm(X, X, 2).tolist(), [[26.0] * 3] * 3),
    (lambda m: m.addmm(3, X, 2, X, X).tolist(), [[30.0] * 3] * 3),
    (lambda m: m.optim.SGD(W, 0.1, 0.9, 0.0, 0.0, False, True, True).defaults["maximize"], True),
    (lambda m: m.optim.Adam(*ADAM, False, True).defaults["do_bias_correction"], False),
    (lambda m: m.optim.AdamW(*ADAM, False, True).defaults["do_bias_correction"], False),
    (lambda m: m.nn.TripletMarginLoss(1.0, 2.0, 1e-6, False, None, None, "sum").reduction, "sum"),
    (lambda m: m.nn.Softsign(True)(X).numpy(), pytest.approx(flow.full((3, 3), 2 / 3).numpy())),
    (lambda m: m.nn.functional.dropout(X, 0.5, True, False, m.Generator()).shape, (3, 3)),
    (lambda m: m.multinomial(X, 1, True, m.Generator()).shape, (3, 1)),
    (lambda m: m.gather(X, 0, m.zeros(1, 3, dtype=m.int64), False).tolist(), [[2.0] * 3]),
    (lambda m: X.type(m.float64, False).dtype, flow.float64),
])  # fmt: skip
def test_arguments_stand_in_oneflows_places(made: Any, expected: Any) -> None:
    assert made(flow) == expected


def test_the_grad_mode_by_oneflows_name() -> None:
    with flow.set_grad_enabled(is_train=False):
        assert not flow.is_grad_enabled()
        with flow.set_grad_enabled():
            assert flow.is_grad_enabled()
