"""Ways in which programs written for OneFlow 0.9 differ from those for PyTorch: what OneFlow 0.9 itself answered."""

from __future__ import annotations

import copy
import gc
import inspect
import signal
import time
from collections import UserList
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.ranks import on
from weft.core.errors import DeviceError, DtypeError, OptionError, PlacementError, SbpError
from weft.core.rank import Rank, enter

nn, schedulers = flow.nn, flow.optim.lr_scheduler


@pytest.fixture
def leaf() -> Any:
    return flow.tensor([1.0, 2.0], requires_grad=True)


def test_numpy_gives_the_values_of_what_requires_a_gradient(leaf: Any) -> None:
    assert leaf.numpy().tolist() == [1.0, 2.0] == leaf.to_numpy().tolist() == leaf.numpy(force=True).tolist()
    assert (leaf * 2).numpy().tolist() == [2.0, 4.0]
    leaf.numpy()[0] = 7.0  # the memory is shared
    assert leaf.tolist() == [7.0, 2.0] and np.asarray(leaf).tolist() == [7.0, 2.0]
    (leaf * leaf).sum().backward()
    assert leaf.grad.numpy().tolist() == [14.0, 4.0]
    assert flow.nn.Linear(2, 3).weight.numpy().shape == (3, 2)


def test_a_graphs_argument_requires_a_gradient_where_build_says_so(leaf: Any) -> None:
    class Slope(nn.Graph):
        def build(self, x: Any) -> Any:
            assert not x.requires_grad  # OneFlow's does, as the argument
            x.requires_grad_()
            (x * x).sum().backward()
            return x.grad

    assert Slope()(leaf).tolist() == [2.0, 4.0] and leaf.grad is None


def test_what_was_computed_is_copied_as_a_value(leaf: Any) -> None:
    y = (leaf * 2)[:1]
    y.retain_grad()
    copied = copy.deepcopy(y)
    assert copied.is_leaf and not copied.requires_grad and copied.tolist() == [2.0]
    copied.add_(1)
    assert y.tolist() == [2.0] and copied.tolist() == [3.0]
    twice = copy.deepcopy([y, y])
    assert twice[0] is twice[1]
    assert copy.deepcopy(leaf).requires_grad  # as in PyTorch; a copied model goes on training


def test_the_copy_of_a_view_is_no_view() -> None:
    base = flow.zeros(4)
    copied = copy.deepcopy(base[:2])
    base.fill_(1)
    assert (copied + 0).tolist() == [0.0, 0.0] == copied.tolist()


EVERY_OPTIMIZER = [
    kind for kind in (getattr(flow.optim, name) for name in dir(flow.optim))
    if isinstance(kind, type) and issubclass(kind, flow.optim.Optimizer) and kind is not flow.optim.Optimizer
]  # fmt: skip


@pytest.mark.parametrize("kind", EVERY_OPTIMIZER)
def test_a_model_without_parameters_trains_nothing(kind: Any) -> None:
    with pytest.warns(UserWarning, match="will train nothing.*used up before"):
        optimizer = kind(flow.nn.ReLU().parameters(), lr=0.1)
    optimizer.zero_grad()
    assert optimizer.step(lambda: 3.0) == 3.0
    assert optimizer.param_groups[0]["params"] == [] and optimizer.state_dict()["state"] == {}
    with pytest.raises(OptionError, match="empty parameter list"):
        kind([], lr=0.1)
    if kind is flow.optim.LBFGS:  # it has but one group
        return
    weight = flow.nn.Parameter(flow.ones(1, 2))
    optimizer.add_param_group({"params": weight})
    weight.sum().backward()
    optimizer.step()
    assert weight.tolist() != [[1.0, 1.0]]


def test_sbp_and_placements_as_they_print() -> None:
    sbp, P = flow.sbp, flow.placement("cpu", ranks=[0])
    for s in (sbp.split(0), sbp.split(3), sbp.broadcast, sbp.partial_sum, sbp.partial_max):
        assert s() is s is sbp.parse(str(s)) is sbp.parse(repr(s))
        assert sbp.nd(str(s), 1) == sbp.nd([repr(s)], 1) == (s,)
    assert sbp.split(axis=1) is sbp.split(dim=1) is sbp.parse("oneflow.sbp.split(axis=1)")
    assert flow.ones(2, placement=P, sbp="S(0)").sbp == (sbp.split(0),)
    assert flow.ones(2).to_global(placement="cpu:[0]", sbp=["B"]).sbp == (sbp.broadcast,)
    assert flow.nn.Linear(2, 2).to_global(str(P), "S(0)").weight.sbp == (sbp.split(0),)
    for p in (P, flow.placement("cuda", [[0, 1], [2, 3]]), flow.placement("cpu", list(range(9)))):
        assert flow.placement(str(p)) is p is flow.placement(repr(p))
    for wrong in ("S(-1)", "split", "SB", "B,", "S()", ""):
        with pytest.raises(SbpError, match="is not an sbp"):
            flow.ones(2, placement=P, sbp=wrong)
    for wrong in ("cpu", "cpu:", "placement(type='cpu')", "cpu:[0"):
        for take in (flow.placement, lambda p: nn.Linear(2, 2).to_global(p, {"weight": sbp.split(0)})):
            with pytest.raises(PlacementError):
                take(wrong)


def test_the_older_way_to_write_a_placement() -> None:
    placement = flow.placement
    with enter(Rank(0, 8, local_index=0, local_size=4)):
        made = (
            placement(device_type="cpu", device_ids={0: [0, 1]}, hierarchy=(2,)),
            placement("cpu", {0: range(4)}, (2, 2)),
            placement("cpu", {0: [0, 1], 1: [0, 1]}),  # the second machine's ranks follow those of the first
            placement("cpu", {0: 0}),
        )
    assert [p.ranks.tolist() for p in made] == [[0, 1], [[0, 1], [2, 3]], [0, 1, 4, 5], [0]]  # as OneFlow answered
    with pytest.raises(PlacementError, match=r"\(3, 2\) doesn.t fit"):
        flow.placement("cpu", {0: range(4)}, (3, 2))


def test_tensors_by_their_class_on_a_placement() -> None:
    P, S = flow.placement("cpu", ranks=[0]), flow.sbp.split(0)
    made = flow.Tensor(2, 3, placement=P, sbp=S)
    assert made.is_global and made.shape == (2, 3) and made.sbp == (S,) and made.dtype is flow.float32
    assert flow.Tensor(flow.Size([2, 3]), placement=P, sbp=[S]).shape == (2, 3)
    assert flow.Tensor([2, 3], placement=P, sbp=S).tolist() == [2.0, 3.0]
    with pytest.raises(SbpError, match="needs an sbp"):
        flow.Tensor(2, placement=P)


@on(2)
def test_a_rank_that_read_no_checkpoint_passes_none() -> None:
    main, all_ranks = (flow.placement("cpu", ranks=ranks) for ranks in ([0], [0, 1]))
    read = [1.0, 2.0] if flow.env.get_rank() == 0 else None
    sent = flow.to_global(flow.Tensor(read), sbp=flow.sbp.broadcast, placement=main)
    assert flow.to_global(sent, sbp=flow.sbp.split(0), placement=all_ranks).numpy().tolist() == [1.0, 2.0]
    unknown = flow.Tensor(None)  # as OneFlow answered
    assert unknown.shape == () and unknown.dtype is flow.float32 and unknown.isnan().item()


def test_the_size_of_a_dtype() -> None:
    assert [d.bytes for d in (flow.float16, flow.int32, flow.float64, flow.bool)] == [2, 4, 8, 1]  # as OneFlow answered


def test_a_device_by_its_kind_and_number() -> None:
    assert flow.device("cpu", 0) is flow.device("cpu:0") is flow.device("cpu")


def test_a_mask_of_floats_holds_where_it_is_not_zero() -> None:
    x, mask = flow.tensor([1.0, 2.0, 3.0]), flow.tensor([-1.0, 0.0, float("nan")])
    assert x.masked_select(mask).tolist() == [1.0, 3.0]
    assert flow.masked_select(flow.ones(2, 3), mask).tolist() == [1.0] * 4


def test_a_functions_instance_is_called_too() -> None:
    class Double(flow.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy * 2

    x = flow.ones(2, requires_grad=True)
    Double()(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0]


def test_what_placements_and_global_tensors_say_of_themselves() -> None:
    x = flow.ones(2, placement=flow.placement("cpu", [0]), sbp="B")
    assert x.placement.device_type == "cpu" and x.global_id() == x.global_id() != (x + 1).global_id()


@pytest.mark.parametrize("f", [flow.std, flow.var, flow.std_mean, flow.var_mean])
def test_integers_have_no_deviation(f: Any) -> None:
    """OneFlow answers with integers."""
    with pytest.raises(DtypeError, match=r"only support floating point and complex dtypes; got weft\.int64"):
        f(flow.tensor([1, 3]))


def test_indices_of_another_dtype() -> None:
    assert flow.argwhere(flow.tensor([0, 3]), dtype=flow.int32).dtype is flow.int32


def test_a_generator_for_any_device() -> None:
    first, second = (flow.Generator(device="auto").manual_seed(3) for _ in range(2))
    assert flow.rand(3, generator=first).tolist() == flow.rand(3, generator=second).tolist()
    with pytest.raises(DeviceError, match="cuda:99 was asked for, but torch sees"):
        flow.Generator(device="cuda:99")


def test_arrays_of_no_dimension_among_lists() -> None:
    assert flow.tensor([np.array(1), np.array(2)]).tolist() == [1, 2]
    nested = flow.tensor([[np.array(1.5)], [2]])
    assert nested.tolist() == [[1.5], [2.0]] and nested.dtype is flow.float32


@pytest.mark.parametrize("ratio", [-1, 2])
def test_no_boxes_are_pooled_to_nothing(ratio: int) -> None:
    x = flow.ones(1, 2, 4, 4, dtype=flow.float64)
    for boxes in (flow.ones(0, 5, dtype=flow.float64), [], [flow.ones(0, 4, dtype=flow.float64)]):
        made = flow.roi_align(x, boxes, 1.0, 3, 2, ratio, False)
        assert made.shape == (0, 2, 3, 2) and made.dtype is flow.float64
    x.requires_grad_()
    flow.roi_align(x, [], 1.0, 3, 2, ratio, False).sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape and not x.grad.any()


X = flow.ones(1, 2, 4, 4)
SEQUENCES: dict[str, Any] = {
    "kernel": lambda s: nn.Conv2d(2, 1, s([3, 3]), padding=s([1, 1]))(X).shape,
    "pool": lambda s: nn.AvgPool2d(s([2, 2]), stride=s([1, 1]))(X).shape,
    "powers": lambda s: nn.LPPool2d(2, s([2, 2]))(X).shape,
    "shape": lambda s: nn.LayerNorm(s([4, 4]))(X).shape,
    "scale": lambda s: nn.Upsample(scale_factor=s([2.0, 2.0]))(X).shape,
    "interpolate": lambda s: nn.functional.interpolate(X, size=s([2, 2])).shape,
    "unfold": lambda s: nn.Unfold(s([2, 2]))(X).shape,
    "share": lambda s: nn.FractionalMaxPool2d(s([2, 2]), output_ratio=s([0.5, 0.5]))(X).shape,
    "size": lambda s: [flow.ones(s([1, 2])).shape, X.reshape(s([2, 16])).shape, X.expand(s([2, 2, 4, 4])).shape],
    "dims": lambda s: [X.sum(s([1, 2])).shape, X.permute(s([0, 1, 3, 2])).shape, flow.flip(X, s([2, 3])).shape],
    "shifts": lambda s: flow.roll(X, s([1, 1]), s([2, 3])).shape,
    "tensors": lambda s: [flow.cat(s([X, X])).shape, flow.stack(s([X, X])).shape],
    "spacing": lambda s: flow.gradient(flow.arange(4.0), spacing=s([2.0]))[0].tolist(),
    "lambdas": lambda s: schedulers.LambdaLR(sgd(), s([lambda epoch: 0.1])).get_last_lr(),
    "averaged": lambda s: flow.optim.swa_utils.SWALR(sgd(), s([0.1])).get_last_lr(),
    "least": lambda s: schedulers.ReduceLROnPlateau(sgd(), min_lr=s([0.1])).min_lrs,
}


def sgd() -> Any:
    return flow.optim.SGD([nn.Parameter(flow.ones(2))], lr=0.1)


@pytest.mark.parametrize("name", SEQUENCES)
def test_options_are_sequences_of_any_kind(name: str) -> None:
    """As those of libraries that keep configurations, which are no lists."""
    assert SEQUENCES[name](UserList) == SEQUENCES[name](list)


@pytest.mark.parametrize("kind", EVERY_OPTIMIZER)
def test_options_of_optimizers_are_sequences_of_any_kind(kind: Any) -> None:
    several = {p.name: p.default for p in inspect.signature(kind).parameters.values() if isinstance(p.default, tuple)}
    w = nn.Parameter(flow.ones(2, 2))
    optimizer = kind([w], lr=0.1, **{name: UserList(value) for name, value in several.items()})
    w.sum().backward()
    optimizer.step(lambda: 3.0)
    group = optimizer.state_dict()["param_groups"][0]
    assert {name: group[name] for name in several} == several  # plain ones, which can be saved


class Late(Exception):
    pass


def interrupted(kind: Any, f: Any) -> None:
    def raising(*_: Any) -> None:
        raise kind("now")

    before = signal.signal(signal.SIGALRM, raising)
    gc.disable()  # what is raised amid a collection's callbacks is lost, in any program
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            f()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


@pytest.mark.parametrize("kind", [Late, ValueError, TypeError, RuntimeError, TimeoutError])
def test_what_a_signals_handler_raises_amid_an_op_stays_what_it_is(kind: Any) -> None:
    P, x, w = flow.placement("cpu", ranks=[0]), flow.ones(60, 60), flow.ones(60, 60, requires_grad=True)
    spread, layer = flow.ones(60, 60, placement=P, sbp=flow.sbp.broadcast), nn.Linear(60, 60)
    for f in (
        lambda: x @ x, lambda: x.masked_select(x > 0), lambda: flow.ones(2, 3), lambda: layer(x),
        lambda: (w @ w).sum().backward(), lambda: spread @ spread, lambda: x[0, 1:],
    ):  # fmt: skip
        with pytest.raises(kind) as found:
            interrupted(kind, f)
        assert found.type is kind and found.value.args == ("now",)
