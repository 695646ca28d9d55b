"""Copies through bytes and `copy`, which the user asks for; Weft itself never loads any."""

from __future__ import annotations

import copy
import pickle

import weft as flow
from weft.launch import spawn_threads


def again(x):
    return pickle.loads(pickle.dumps(x))


def test_tensors_and_parameters() -> None:
    x = flow.tensor([[1.0, 2.0]], dtype=flow.float64, requires_grad=True)
    x.note = "kept"  # type: ignore[attr-defined]
    for y in (again(x), copy.deepcopy(x)):
        assert y.tolist() == [[1.0, 2.0]] and y.dtype is flow.float64 and y.requires_grad and y is not x
        assert y.note == "kept" and y.data_ptr() != x.data_ptr()
    p = again(flow.nn.Parameter(flow.ones(2), requires_grad=False))
    assert isinstance(p, flow.nn.Parameter) and not p.requires_grad
    assert again([x, x])[0] is not again(x) and len({id(v) for v in again([x, x])}) == 1
    assert copy.copy(x).data_ptr() == x.data_ptr()


def test_modules_optimizers_and_values() -> None:
    model = flow.nn.Sequential(flow.nn.Linear(3, 2), flow.nn.BatchNorm1d(2), flow.nn.ReLU())
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)
    model(flow.randn(4, 3)).sum().backward()
    optimizer.step()
    for other in (again(model), copy.deepcopy(model)):
        assert [n for n, _ in other.named_parameters()] == [n for n, _ in model.named_parameters()]
        for a, b in zip(other.state_dict().values(), model.state_dict().values(), strict=True):
            assert a.tolist() == b.tolist()
        other.eval()(flow.randn(4, 3)).sum().backward()
    state = again(optimizer.state_dict())
    flow.optim.Adam(model.parameters(), lr=0.2).load_state_dict(state)
    for value in (flow.float32, flow.device("cpu"), flow.sbp.split(0), flow.placement("cpu", [0]), flow.Size((2, 3))):
        assert again(value) == value and repr(again(value)) == repr(value)


def test_each_rank_copies_its_part_of_a_global_tensor() -> None:
    def copied() -> tuple[bool, list[float]]:
        placement = flow.placement("cpu", ranks=[0, 1])
        x = flow.tensor([1.0, 2.0, 3.0], placement=placement, sbp=flow.sbp.split(0))
        y = again(x)
        same = y.placement is x.placement and y.sbp == x.sbp and y.global_id() != x.global_id()
        return same, y.numpy().tolist()

    assert spawn_threads(2, copied) == [(True, [1.0, 2.0, 3.0])] * 2


def test_a_module_that_holds_functions_is_pickled() -> None:
    functions = [flow.nn.functional.relu, flow.nn.functional.gelu, flow.nn.functional.softmax, flow.tanh, flow.matmul]
    assert all(a is b for a, b in zip(pickle.loads(pickle.dumps(functions)), functions, strict=True))
    layer = flow.nn.TransformerEncoderLayer(4, 2, 8)
    assert pickle.loads(pickle.dumps(layer)).activation is layer.activation is flow.nn.functional.relu
