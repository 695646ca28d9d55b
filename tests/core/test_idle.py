"""Options that do nothing: each warns once, by name; what stays quiet is a hint, and this file says why."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.core import idle
from weft.core.errors import ArgumentError
from weft.core.idle import IDLE
from weft.distributed.elastic.multiprocessing.errors import record
from weft.graph.config import HINTS, PROTO, GraphConfig
from weft.graph.hints import setters

dist: Any = flow.distributed
nccl: Any = flow.boxing.nccl  # type: ignore[attr-defined]
SOON = timedelta(seconds=9)


@pytest.fixture(autouse=True)
def unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_said", set())


def graph() -> nn.Graph:
    return type("Some", (nn.Graph,), {})()


def compiled(option: str, *values: Any) -> None:
    one = type("One", (nn.Graph,), {"build": lambda _, x: x + 1})()
    getattr(one.config, option)(*values)
    one.compile(flow.zeros(1))


def optimizer() -> Any:
    return flow.optim.SGD([flow.zeros(1, requires_grad=True)], 0.1)


def x() -> Any:
    return flow.zeros(1, 1, 1, 1)


def messages(**of: Any) -> None:
    y = flow.zeros(1)
    works = [dist.isend(x().flatten(), 0, **of), dist.irecv(y, 0)]
    for work in works:
        work.wait()


def received(**of: Any) -> None:
    y = flow.zeros(1)
    sent, got = dist.isend(x().flatten(), 0), dist.irecv(y, 0, **of)
    sent.wait(), got.wait()


def looked_up() -> flow.Tensor:
    where = {"placement": flow.placement("cpu", [0]), "sbp": flow.sbp.broadcast}
    table, ids = flow.ones(2, 1, requires_grad=True, **where), flow.zeros(1, dtype=flow.int64, **where)
    return nn.functional.embedding(ids, table, sparse=True).sum()


GIVEN: dict[str, Callable[[], Any]] = {
    **{f"config.{name}": lambda name=name: getattr(GraphConfig(), name)(True) for name in HINTS},
    **{f"config.proto.{name}": lambda name=name: getattr(GraphConfig().proto, name)(True) for name in PROTO},
    **{f"boxing.nccl.{n.removeprefix('boxing.nccl.')}": lambda n=n: getattr(nccl, n.rpartition(".")[2])(16)
       for n in IDLE if n.startswith("boxing.nccl.")},
    **{f"boxing.{n}": lambda f=f: f(True) for n, f in setters("boxing.").items()},
    **{f"backends.cudnn.{n}": lambda f=f: f(True) for n, f in setters("backends.cudnn.").items()},
    "config.enable_auto_parallel()": lambda: compiled("enable_auto_parallel"),
    "config.set_outputs_buffer_size(value)": lambda: compiled("set_outputs_buffer_size", 3),
    "config.enable_zero(shard_restore_level)": lambda: GraphConfig().enable_zero(shard_restore_level=2),
    "Graph.add_optimizer(is_sparse)":
        lambda: graph().add_optimizer(flow.optim.Adam(nn.Linear(1, 1).parameters()), is_sparse=True),
    "Graph.debug(max_py_stack_depth)": lambda: graph().debug(0, max_py_stack_depth=7),
    "Graph.debug(only_user_py_stack)": lambda: graph().debug(0, only_user_py_stack=False),
    "Graph.debug(op_repr_with_py_stack)": lambda: graph().debug(0, op_repr_with_py_stack=True),
    "with_dynamic_input_shape(enable_shared)": lambda: nn.Graph.with_dynamic_input_shape(enable_shared=False),
    "vmap(chunk_size)": lambda: flow.vmap(flow.sin, chunk_size=2),
    "jacrev(chunk_size)": lambda: flow.func.jacrev(flow.sin, chunk_size=2),
    "jacfwd(randomness)": lambda: flow.func.jacfwd(flow.sin, randomness="different"),
    "jvp(strict)": lambda: flow.func.jvp(flow.sin, (flow.zeros(1),), (flow.ones(1),), strict=True),
    "checkpoint(debug)": lambda: flow.utils.checkpoint.checkpoint(flow.sin, flow.zeros(1), debug=True),
    "checkpoint(determinism_check)":
        lambda: flow.utils.checkpoint.checkpoint(flow.sin, flow.zeros(1), determinism_check="none"),
    "fork_rng(devices)": lambda: flow.random.fork_rng(devices=[0]).__enter__(),
    "embedding(sparse)": lambda: looked_up().backward(),
    "gather(sparse_grad)": lambda: flow.gather(flow.ones(2), 0, flow.tensor([1]), sparse_grad=True),
    "distributed.barrier(timeout)": lambda: dist.barrier(timeout=SOON),
    "distributed.monitored_barrier(timeout)": lambda: dist.monitored_barrier(timeout=SOON),
    "distributed.monitored_barrier(wait_all_ranks)": lambda: dist.monitored_barrier(wait_all_ranks=True),
    "distributed.new_group(timeout)": lambda: dist.new_group([0], timeout=SOON),
    "distributed.new_subgroups(timeout)": lambda: dist.new_subgroups(1, timeout=SOON),
    "distributed.new_subgroups_by_enumeration(timeout)":
        lambda: dist.new_subgroups_by_enumeration([[0]], timeout=SOON),
    "distributed.Work.wait(timeout)": lambda: dist.all_reduce(flow.zeros(1), async_op=True).wait(SOON),
    "distributed.isend(tag)": lambda: messages(tag=3),
    "distributed.irecv(tag)": lambda: received(tag=3),
    "distributed.P2POp(tag)": lambda: dist.P2POp(dist.isend, flow.zeros(1), 0, tag=3),
    "distributed.elastic record(error_handler)": lambda: record(print, error_handler=print),
    **{n: lambda n=n: flow.profiler.profile(**{n[8:-1]: True}) for n in IDLE if n.startswith("profile(")},
    "DistributedDataParallel(gradient_as_bucket_view)":
        lambda: nn.parallel.DistributedDataParallel(nn.Linear(1, 1), gradient_as_bucket_view=True),
    "LAMB(amsgrad)": lambda: flow.optim.LAMB([flow.zeros(1, requires_grad=True)], amsgrad=True),
}  # fmt: skip


def test_every_option_of_the_table_warns_once_by_its_name(tmp_path: Path) -> None:
    flow.save({"x": flow.zeros(1)}, tmp_path / "file")
    given = {**GIVEN, "load(map_location)": lambda: flow.load(tmp_path / "file", map_location={"cuda:0": "cpu"})}
    assert given.keys() == IDLE.keys()
    for name, call in given.items():
        for expected in ([f"{name} has no effect here: {IDLE[name]}"], []):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                call()
            assert [str(w.message) for w in said] == expected


def test_the_table_has_every_option_that_a_call_names() -> None:
    texts = (path.read_text() for path in Path(flow.__file__).parent.rglob("*.py"))
    named = {name for text in texts for name in re.findall(r'\bidle\("([^"]+)"', text)}
    assert len(named) > 20 and named <= IDLE.keys()


def test_what_means_off_is_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in HINTS:
            getattr(GraphConfig(), name)(False)
        GraphConfig().enable_zero()
        graph().debug(0, max_py_stack_depth=2)
        nccl.enable_use_compute_stream(False)
        messages(tag=0)


CHANGES: dict[str, Callable[[Any], Any]] = {  # what each option of a graph that does something changes
    "enable_amp": lambda c: c.enable_amp(),
    "enable_auto_parallel": lambda c: c.enable_auto_parallel(),
    "enable_inductor": lambda c: c.enable_inductor(),
    "enable_zero": lambda c: c.enable_zero(),
    "enable_zero_bubble": lambda c: c.enable_zero_bubble(),
    "set_outputs_buffer_size": lambda c: c.set_outputs_buffer_size(3),
    "set_memory_budget": lambda c: c.set_memory_budget(1000),
    "set_gradient_accumulation_steps": lambda c: c.set_gradient_accumulation_steps(2),
    "set_zero_redundancy_optimizer_mode": lambda c: c.set_zero_redundancy_optimizer_mode("distributed_split"),
}


def test_every_other_option_of_a_graph_changes_something() -> None:
    asks = ("enable_", "set_", "allow_", "disable_")
    assert {n for n, _ in inspect.getmembers(GraphConfig, inspect.isfunction) if n.startswith(asks)} == CHANGES.keys()
    for change in CHANGES.values():
        config = GraphConfig()
        change(config)
        assert repr(config) != repr(GraphConfig())


# What is taken without a look, and without a word: the same results, memory and waits, with it or without.
QUIET = {
    "the kernels' and the updates' speed": "fused foreach capturable contiguous_params non_blocking early_stop driver "
    "compute_mode assume_unique hermitian output_size vectorize strategy outer_jacobian_strategy niter "
    "enable_nested_tensor mask_check by_frequency use_l2_norm_kernel async_op",
    "checked or done in any case": "device_type activities record_shapes max_try_correction weights_only sorted "
    "check_meta check_available check_invariants enable_get_runtime_state_dict",
    "a module stays on its device, and every gradient counts": "output_device dim find_unused_parameters "
    "check_reduction static_graph",
    "an array is given in any case": "force",
    "shards are contiguous, on the CPU, and of the first rank's values": "stride offload_policy cpu_offload "
    "offload_to_cpu sync_module_states use_orig_params limit_all_gathers backward_prefetch forward_prefetch",
    "every rank has whole values, and optimizers are asked": "rank0_only optim_input optim_state_dict "
    "is_named_optimizer",
    "nothing is pickled": "pickle_protocol _use_new_zipfile_serialization encoding support_pytorch_format",
    "files hold whole values, which every rank reads": "process_group use_collectives no_dist flatten_state_dict "
    "flatten_sharded_tensors",
    "which connection carries it": "backend pg_options device_id device_ids group_name group_desc device group "
    "use_local_synchronization fallback_rank family tag use_batch send_meta",
    "no effect in PyTorch or OneFlow either": "eps enable_view_slice begin_params_axis drop the_type return_indices",
    "part of a protocol that others need more of": "_instance context types return_scalar protocol name owner stream "
    "default_mask output t lr launch ctx inputs step args kwargs x y q volatile rank epoch ndim",
}


def unread(path: Path) -> Iterator[tuple[str, str]]:
    """The parameters of public functions whose names don't occur in their bodies."""
    for f in ast.walk(ast.parse(path.read_text())):
        if not isinstance(f, ast.FunctionDef) or (f.name.startswith("_") and f.name not in ("__init__", "__new__")):
            continue
        a = f.args
        names = {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p is not None}
        read = {n.id for line in f.body for n in ast.walk(line) if isinstance(n, ast.Name)}
        read |= names if "locals" in read else set()  # all of them are handed on
        says_nothing = len(f.body) == 1 and isinstance(f.body[0], ast.Expr)
        if not says_nothing and not isinstance(f.body[-1], ast.Raise):
            yield from ((f"{path.name}:{f.name}", n) for n in names - read - {"self", "cls"} if n.strip("_"))


def test_no_parameter_is_taken_without_a_look() -> None:
    known = {name for names in QUIET.values() for name in names.split()}
    found = {}
    for folder in (
        "api",
        "system",
        "functional",
        "nn",
        "optim",
        "data",
        "checkpoint",
        "distributed",
        "parallel",
        "amp",
        "graph",
        "profiler",
        "tensor",
        "launch",
    ):
        for path in sorted((Path(flow.__file__).parent / folder).rglob("*.py")):
            found.update({f"{where}({n})": n for where, n in unread(path)})
    for name in ("recompute", "transforms", "vmap", "variable"):
        path = Path(flow.__file__).parent / "autograd" / f"{name}.py"
        found.update({f"{where}({n})": n for where, n in unread(path)})
    assert not [where for where, n in found.items() if n not in known], "read it, warn of it (core/idle.py), or say why"


def test_what_is_no_memory_format_is_refused() -> None:
    for call in (lambda: x().half(memory_format=1), lambda: x().to(flow.half, memory_format="x")):
        with pytest.raises(ArgumentError, match=r"must be torch\.memory_format, not"):
            call()
