"""Compiling a graph: trace it, rewrite the job, lower it, agree with the other ranks, start the runtime."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from weft.autograd.call import version
from weft.autograd.freshness import fresh
from weft.autograd.trees import mapped
from weft.boxing.network import links_of
from weft.compiler import passes
from weft.core import dispatch
from weft.core.errors import GraphError
from weft.core.rank import current
from weft.graph import budget, scaling, tree
from weft.graph.agree import agree
from weft.graph.blocks import BlockSettings
from weft.graph.compiled import Compiled, Holder, Output, Program
from weft.graph.lines import lines, own_line
from weft.graph.overlap import refuse_overlaps, refuse_what_was_read
from weft.graph.run import Running, close_dropped
from weft.graph.update import update
from weft.graph.zero import partition
from weft.job.builder import Builder
from weft.job.job import Job
from weft.job.python_state import watched
from weft.job.value import Value
from weft.nn.module.module import Module
from weft.ops import ops
from weft.plan.verify import verify
from weft.tensor.tensor import Tensor, of_value
from weft.transport import transport_of


def compile_graph(graph: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
    """Trace, rewrite, lower, agree with the other ranks, start the runtime."""
    if dispatch.here.trace is not None:
        raise GraphError(
            f"{graph.name}.compile() inside of another graph's build(): call the graph there, and it becomes a part of "
            "the other"
        )
    close_dropped()
    args, kwargs = tree.ours((args, kwargs))
    form = tree.form((args, kwargs))
    if current().world_size > 1:
        transport_of().note(f"tracing graph {graph.name}")
    options = msgspec.structs.replace(graph.config.options(), links=links_of(current()), backend=transport_of().backend)
    job = Job(graph.name)
    job.micro_batches = options.micro_batches
    builder = Builder(job, settings_of(graph))
    builder.guarded = int(graph._of_values)
    examples: list[tuple[str, Tensor]] = []
    fed: list[tuple[Tensor, Value]] = []
    numbers: dict[str, Callable[[], float]] = {}
    scaling.begin(graph._scaler, builder, numbers)
    finite = None
    with partition([o for o, _ in graph._optimizers], graph.config.shard_min_size, builder):
        with dispatch.tracing(builder):
            holders = _name_parameters(graph, builder)
            symbols = mapped((args, kwargs), _feeder(builder, graph.name, examples, fed))
            try:
                with graph.config.casting(), watched(graph):
                    result = graph.build(*symbols[0], **symbols[1])
                outputs, made = _outputs(result, builder, graph.name)
                written = _written(fed)
                builder.settle()
                if builder.losses or graph._optimizers:
                    finite = update(graph, builder, numbers)
                    if finite is not None:
                        made.append(builder.output(finite, f"{graph.name}.finite"))
                    builder.settle()
                for place, value in written.items():
                    builder.output(of_value(value, value.spec), f"{examples[place][0]}.written")
            finally:
                builder.settle(keep=False)
        refuse_overlaps(job)
        refuse_what_was_read(job, builder.fixed_tensors)
        lowered = budget.compiled(
            job, options, passes.show_changes(job) if graph._debug_level >= TELLS_PASSES else None
        )
        job = lowered.job
        verify(lowered.plan)
        for optimizer, _ in graph._optimizers:
            optimizer.agreement.announce(type(optimizer).__name__, optimizer.param_groups)
        alone = all(v.spec is None for n in job.nodes for v in n.outputs)  # local tensors: others may compile no graph
        line = own_line() if alone else lines().take(agree(lowered))
    hosts = [n for n in job.nodes if n.op == "host"]
    running = Running(lowered, [n.args[0] for n in hosts], list(written), line)
    running.ends_with(graph)
    return Compiled(
        lowered, running, form, outputs, examples, graph._optimizers,
        [numbers[n.args[0]] for n in hosts], made, graph._scaler if finite is not None else None, holders,
        mapped((args, kwargs), lambda leaf: Output() if isinstance(leaf, Tensor) else leaf),
        [(t, version(t)) for t, _ in builder.fixed_tensors.values()], builder.expected,
    )  # fmt: skip


TELLS_PASSES = 3  # the level of `Graph.debug` from which on


def settings_of(graph: Program) -> dict[int, BlockSettings]:
    """The settings of each module, by identity."""
    found: dict[int, BlockSettings] = {}
    for block in graph._blocks.values():
        for inner in block.modules():
            found.setdefault(id(inner._origin), BlockSettings()).blocks.append(inner)
    return found


def _name_parameters(graph: Program, builder: Builder) -> list[Holder]:
    """Name the graph's parameters; return where each is held."""
    holders = []
    for name, block in graph._blocks.items():
        module = block.to(Module)
        for path, t in itertools.chain(module.named_parameters(), module.named_buffers()):
            builder.name_of(t, f"{name}.{path}")
        held = module.named_parameters(remove_duplicate=False)
        holders += [Holder(module, path, p, f"{name}.{path}") for path, p in held]
    return holders


def _feeder(
    builder: Builder, name: str, examples: list[tuple[str, Tensor]], fed: list[tuple[Tensor, Value]]
) -> Callable[[Any], Any]:
    def feed(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        symbol = builder.input(leaf, f"{name}.input.{len(examples)}")
        examples.append((symbol.value.name, symbol))
        given = builder.unpack(symbol) if builder.job.micro_batches > 1 else of_value(symbol.value, symbol.spec)
        fed.append((given, given.value))
        return given

    return feed


def _written(fed: list[tuple[Tensor, Value]]) -> dict[int, Value]:
    """The values that the program wrote into its arguments, by index: they are copied to the caller's tensors."""
    found: dict[int, Value] = {}
    for place, (t, before) in enumerate(fed):
        if t.value is not before and t.value.shape == before.shape:  # else it was reshaped in place, not written
            if before.spec is not None and t.spec is not before.spec:
                t = ops.to_global(t, before.spec.placement, before.spec.nd_sbp)
            found[place] = t.value
    return found


def _outputs(result: Any, builder: Builder, name: str) -> tuple[Any, list[Value]]:
    made: list[Value] = []

    def out(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            tree.check_result(leaf)
            return leaf
        made.append(builder.output(fresh(leaf), f"{name}.output.{len(made)}"))
        return Output()

    return mapped(tree.ours(result), out), made
