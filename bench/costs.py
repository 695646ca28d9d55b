"""The overhead of the runtime and the compiler."""

from __future__ import annotations

import os
import subprocess
import sys

import weft as flow
from bench.actors import act_cost
from bench.measure import Row, least
from bench.models import GPTS
from bench.steps import Training, mlp_pair, ours
from weft.boxing.links import ONE_HOST
from weft.compiler import passes
from weft.compiler.lower import Lowered, lower
from weft.compiler.options import Options
from weft.core import dispatch
from weft.core.rank import Rank, enter
from weft.core.spec import Spec
from weft.interop import from_torch
from weft.job.builder import Builder
from weft.job.job import Job
from weft.tensor.tensor import ABSENT, Tensor, of_shard

S, B = flow.sbp.split, flow.sbp.broadcast

IMPORT = """
import time, torch
start = time.perf_counter()
import weft
print(time.perf_counter() - start)
"""
FIRST_CALL = """
import time
import weft as flow
from bench.steps import Training, mlp_pair
_, model, x = mlp_pair("batch 8, width 16")
x = flow.from_torch(x)
graph = Training(model, lambda m, x: m(x).pow(2).mean(), flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9))
start = time.perf_counter()
graph(x).item()
print(time.perf_counter() - start)
"""


MANY = """
import time
import torch
import weft as flow
from bench.models import models
from bench.steps import Training
torch.set_num_threads(1)
model = models(flow).GPT(8, 64, 8)
graph = Training(model, lambda m, x, y: m(x, y), flow.optim.AdamW(model.parameters(), lr=1e-3))
graph.config.set_gradient_accumulation_steps(16)
ids = flow.randint(0, 128, (32, 8))
start = time.process_time()
for _ in range(2):
    graph(ids, ids).numpy()
print(time.process_time() - start)
"""


def actors(quick: bool) -> list[Row]:
    return [Row("message and act of an actor", "-", None, act_cost(), most=2e-6), launch()]


def launch() -> Row:
    """The overhead of a launch: from the call of a graph to its result, without its chain's time."""
    _, b, x = mlp_pair("batch 8, width 16")
    graph = Training(b, lambda m, x: m(x).pow(2).mean(), flow.optim.SGD(b.parameters(), lr=0.01, momentum=0.9))
    inputs = from_torch(x)
    for _ in range(3):
        graph(inputs).item()
    chain = next(f for functions in graph.running.chains for f in functions.values())
    alone, called = least([chain, lambda: graph(inputs).item()], 300, 15)
    graph.close()
    return Row("call to result, over the chain alone", "-", None, max(called - alone, 0.0), most=30e-6)


def worlds(quick: bool) -> list[Row]:
    """Tracing and lowering a data-parallel GPT on one rank of a small and of a large simulated world."""
    size = "2 layers, d 64, 2x32 tokens"
    few, many = least([lambda: compile_in(2, size), lambda: compile_in(1024, size)], 1, 5)
    return [Row("compile time, a world of 1,024 ranks", "2 ranks", few, many, 1.5)]


def compile_in(world: int, size: str) -> Lowered:
    layers, width, batch, tokens = GPTS[size]
    with enter(Rank(0, world)) as rank:
        rank.resources["links"] = ONE_HOST  # a simulated world has no transport
        place = flow.placement("cpu", ranks=list(range(world)))
        model = ours.GPT(layers, width, tokens)
        for p in model.parameters():  # to_global would communicate with ranks that don't exist
            p.spec, p.shard, p.blob = Spec(tuple(p.shape), p.dtype, place, (B,)), p.blob, ABSENT
        job = Job(f"imagined_{world}")
        builder = Builder(job, {})
        shape = (batch * world // 2, tokens)
        spec = Spec(shape, flow.int64, place, (S(0),))
        shard = flow.zeros(spec.local_shape(0), dtype=flow.int64)
        example: Tensor = of_shard(shard.blob, spec)
        with dispatch.tracing(builder):
            x = builder.input(example, "x")
            loss = model(x, x)
            loss.backward()
            builder.output(loss, "loss")
            for p, _ in builder.gradients.leaves.values():
                builder.output(flow.to_global(p.grad, placement=p.placement, sbp=p.sbp), "gradient")
        passes.apply(job, Options())
        return lower(job, 0, world, Options())


def imports(quick: bool) -> list[Row]:
    """Import times, in new processes, with Python's caches warm."""
    return [
        Row("import weft, beyond import torch", "-", None, _in_new_processes(IMPORT), most=0.25),
        Row("first call of a graph that trains an MLP, in a new process", "-", None, _in_new_processes(FIRST_CALL)),
        Row(
            "first 2 of a GPT of 8 layers and 16 micro-batches, CPU time", "-", None, _in_new_processes(MANY), most=0.4
        ),
    ]


def _in_new_processes(code: str) -> float:
    """The minimum that a program printed over some runs, after one to warm the caches."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def once() -> float:
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout)

    once()
    return min(once() for _ in range(15))
