"""Zero bubble: split backward in two. Gradients of weights, which no other stage waits for, are deferred."""

from __future__ import annotations

from weft.compiler.chains import placement_of
from weft.compiler.options import Options
from weft.compiler.passes.dead_code import written
from weft.core.errors import CompileError
from weft.job.job import Job
from weft.job.value import Node


def run(job: Job, options: Options) -> None:
    if not options.zero_bubble:
        return
    begins = next((i for i, n in enumerate(job.nodes) if n.extra.get("backward")), len(job.nodes))
    if why := _impossible(job, begins):
        raise CompileError(f"graph {job.name}: config.enable_zero_bubble() can't fill a pipeline's pauses: {why}")
    readers = job.readers()
    for n in reversed(job.nodes[begins:]):
        if n.op == "accumulate":
            n.late = True
        elif n.micro and not _crosses(n) and not written(n):
            after = [r for v in n.outputs for r in readers[v]]
            n.late = bool(after) and all(r.late for r in after)
    for n in job.nodes:
        n.late = n.late and (n.op != "accumulate" or job.producer[n.args[0]].late)


def _impossible(job: Job, begins: int) -> str | None:
    if job.micro_batches == 1:
        return (
            "there is one micro-batch, which every stage waits for. "
            "Write self.config.set_gradient_accumulation_steps(2 * stages)"
        )
    if begins == len(job.nodes):
        return "build() calls no backward(), so that there are no gradients of weights to fill them with"
    if not any(_crosses(n) for n in job.nodes if n.micro):
        return (
            "all of the model lies on the same ranks, so that there are none. Put its parts on several, "
            "self.m.part.to(nn.graph.GraphModule).set_stage(1, flow.placement('cpu', ranks=[1]))"
        )
    return None


def _crosses(n: Node) -> bool:
    """Whether a node moves data between placements."""
    operands = n.operands()
    return bool(operands and n.outputs) and placement_of(operands[0]) is not placement_of(n.outputs[0])
