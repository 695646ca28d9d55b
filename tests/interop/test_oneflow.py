"""OneFlow's modules that its programs import by their paths, with what OneFlow 0.9 answered."""

from __future__ import annotations

import importlib
import unittest
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import ArgumentError, OptionError, TraceError
from weft.framework.balanced_splitter import BalancedRanges
from weft.framework.graph_build_util import lazy_mode
from weft.framework.tensor import Tensor, TensorTuple
from weft.nn.graph.util import ArgsTree
from weft.utils.tensor import from_torch, to_torch

PATHS = [
    "framework.dtype", "framework.check_point_v2", "nn.common_types", "nn.graph.proxy", "nn.graph.graph_block",
    "sysconfig", "one_embedding", "utils.data._utils.worker", "_utils",
    "framework.args_tree", "unittest",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_modules_are_imported_and_reached(path: str) -> None:
    found: Any = flow
    for name in path.split("."):
        found = getattr(found, name)
    assert importlib.import_module(f"weft.{path}") is found


def test_tests_are_skipped_in_other_worlds() -> None:
    class Alone(flow.unittest.TestCase):
        @flow.unittest.skip_unless_1n1d()
        def test_one(self) -> None:
            assert ArgsTree((1, [2])).map_tuple_leaf(lambda n: -n) == (-1, [-2])

        @flow.unittest.skip_unless_1n2d()
        def test_two(self) -> None:
            raise AssertionError

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Alone).run(result)
    assert (result.testsRun, len(result.skipped), result.wasSuccessful()) == (2, 1, True)


def test_parts_and_ranges() -> None:
    assert BalancedRanges(10, 4) == [(0, 3), (3, 6), (6, 8), (8, 10)] and BalancedRanges(1, 2) == [(0, 1), (1, 1)]
    tensors = [flow.ones(2, 1), flow.zeros(3), flow.zeros(0, 4)]
    row = flow._utils._flatten_dense_tensors(tensors)
    assert row.tolist() == [1, 1, 0, 0, 0] and flow._utils._flatten_dense_tensors(tensors[:1]).shape == (2,)
    again = flow._utils._unflatten_dense_tensors(flow.arange(5), tensors)
    assert [t.shape for t in again] == [(2, 1), (3,), (0, 4)] and again[1].tolist() == [2, 3, 4]


def test_tensors_together() -> None:
    both = TensorTuple([flow.ones(1)])
    both.merge_from(TensorTuple([flow.zeros(2)]))
    assert Tensor is flow.Tensor and [t.numel() for t in both] == [1, 2] and both[-1].tolist() == [0.0, 0.0]
    with pytest.raises(ArgumentError, match="tensors, not int"):
        both.append(1)


def test_tensors_of_torch_and_back() -> None:
    theirs = torch.ones(2)
    ours = from_torch(theirs)
    ours[0] = 5.0
    assert theirs.tolist() == [5.0, 1.0] and to_torch(ours).data_ptr() == theirs.data_ptr()
    spread = flow.ones(2, placement=flow.placement("cpu", ranks=[0]), sbp=flow.sbp.split(0))
    assert to_torch(spread).tolist() == [1.0, 1.0]


def test_what_a_program_asks_of_a_value() -> None:
    inside, x = flow._oneflow_internal, flow.ones(2, placement=flow.placement("cpu", ranks=[0]), sbp=flow.sbp.broadcast)
    assert isinstance(x, inside.Tensor) and isinstance(x.placement, inside.placement)
    assert isinstance(x.dtype, inside.dtype) and isinstance(flow.ones(1).device, inside.device)
    assert inside.sbp.sbp is flow.sbp.sbp and inside.lazy_mode is lazy_mode


def test_dtypes_and_numpys() -> None:
    of_numpy = flow.framework.dtype.convert_numpy_dtype_to_oneflow_dtype
    to_numpy = flow.framework.dtype.convert_oneflow_dtype_to_numpy_dtype
    for kind in (flow.float32, flow.int64, flow.bool):
        assert of_numpy(to_numpy(kind)) is kind
    assert flow.framework.dtype.is_floating_point(flow.ones(1)) and flow.framework.dtype.get_default_dtype()


def test_what_runs_now_in_build() -> None:
    seen: list[Any] = []

    class Asks(nn.Graph):
        def build(self, x: Any) -> Any:
            seen.append(lazy_mode.is_enabled())
            with lazy_mode.guard(False):
                seen.extend([lazy_mode.is_enabled(), flow.ones(2).sum().item()])
            with lazy_mode.guard(True):
                return x + 1

    assert Asks()(flow.ones(1)).item() == 2.0 and seen == [True, False, 2.0] and not lazy_mode.is_enabled()
    with lazy_mode.guard(False):
        assert flow.ones(1).item() == 1.0
    with pytest.raises(TraceError, match="outside of build"):
        lazy_mode.guard(True)


def test_its_internal_classes_are_the_public_ones() -> None:
    for name in ("Size", "device", "dtype", "placement", "float32", "bool"):
        assert getattr(flow._oneflow_internal, name) is getattr(flow, name)


def test_memory_in_use_is_in_megabytes() -> None:
    before = flow._oneflow_internal.GetCPUMemoryUsed()
    held = flow.ones(64 << 18)
    assert 40 < flow._oneflow_internal.GetCPUMemoryUsed() - before < 200 and held.numel() == 64 << 18
    assert (flow._oneflow_internal.GetCUDAMemoryUsed() > 0) == flow.cuda.is_available()


def test_how_it_was_built() -> None:
    from_build = flow.sysconfig
    assert flow.framework.sysconfig.with_cuda() == flow._oneflow_internal.flags.with_cuda() == from_build.with_cuda()
    with flow.profiler.profile() as profile:
        flow._oneflow_internal.profiler.RangePush("forward")
        flow._oneflow_internal.profiler.RangePop()
    assert [e.key for e in profile.key_averages()] == ["forward"]
    assert from_build.with_cuda() == (torch.version.cuda is not None) == bool(from_build.get_cuda_version())
    assert not from_build.with_rdma()
    with pytest.raises(OptionError, match=r"sysconfig\.get_include.*no library.*adding-an-op"):
        from_build.get_include()


def test_there_is_no_rdma() -> None:
    with pytest.warns(UserWarning, match="no RDMA here"):
        flow.env.init_rdma()
    assert not flow.env.rdma_is_initialized() and flow.env.destory_rdma() is None


def test_an_error_of_a_worker_is_raised_again() -> None:
    wrapper = flow.utils.data._utils.worker.ExceptionWrapper
    try:
        raise KeyError("lost")
    except KeyError:
        kept = wrapper(where="in a worker")
    with pytest.raises(KeyError, match="Caught KeyError in a worker"):
        kept.reraise()


@on(2)
def test_an_object_of_one_rank_is_on_all() -> None:
    rank = flow.env.get_rank()
    assert flow.framework.check_point_v2._broadcast_py_object({"rank": rank}, 1) == {"rank": 1}


class Pair(NamedTuple):
    a: int
    b: int


def test_arguments_as_trees_with_names() -> None:
    tree = ArgsTree((1, OrderedDict(k=[3]), Pair(1, 2)), True)
    assert [f"{name} {node}" for name, node in tree.iter_named_nodes()] == [
        "_0 (name: 0, idx: 0, type: TUPLE)",
        "0_1 (name: 1, idx: 1, type: OPAQUE, value: 1)",
        "1_2 (name: 2, idx: 2, type: DICT)",
        "1.0_k (name: k, idx: 3, type: LIST)",
        "1.0.0_4 (name: 4, idx: 4, type: OPAQUE, value: 3)",
        "2_5 (name: 5, idx: 5, type: OPAQUE, value: Pair(a=1, b=2))",
    ]
    assert tree.map_leaf(lambda node: node.value()) == (1, OrderedDict(k=[3]), Pair(1, 2))
    rooted = ArgsTree(([flow.ones(1)], {"k": None}), True, "p", "r")
    assert [name for name, _ in rooted.iter_named_nodes()] == ["p_r", "p.0_1", "p.0.0_2", "p.1_3", "p.1.0_k"]
    assert "type: TENSOR, value: tensor(..., size=(1,)" in repr(list(rooted.iter_nodes())[2])


def test_arguments_as_trees_without_names() -> None:
    tree = ArgsTree([1, (2,), {"a": None}])
    assert list(tree.iter_nodes()) == [[1, (2,), {"a": None}], 1, (2,), 2, {"a": None}, None]
    assert tree.map_leaf(lambda x: (x, 0)) == [(1, 0), ((2, 0),), {"a": (None, 0)}]
    with pytest.raises(ArgumentError, match="gen_name=True"):
        tree.iter_named_nodes()


def test_errors_are_caught_by_their_names_inside_oneflow() -> None:
    kinds, x = flow._oneflow_internal.exception, flow.ones(2)
    for kind, mistake in (
        (kinds.Exception, lambda: flow.Generator(device="nonsense")), (kinds.IndexError, lambda: x[2]),
        (kinds.RuntimeError, lambda: x.sbp), (kinds.NotImplementedError, lambda: flow.rand(2, dtype=flow.int32)),
        (kinds.TypeError, lambda: flow.relu("x")),
    ):  # fmt: skip
        with pytest.raises(kind):
            mistake()
    with pytest.raises(IndexError, match="out of range"):  # as OneFlow says it
        x[-3]
    with pytest.raises(AssertionError, match="within num_embeddings"):
        flow.nn.Embedding(10, 3, padding_idx=25)
    assert flow._C.__name__ == "weft._C"
