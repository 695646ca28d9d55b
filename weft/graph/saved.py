"""Save and load compiled graphs: the plan of this rank as text, and the values of its variables.

Loading needs neither the model's class nor `build`: ops are looked up in the registry by name, and nothing in the file
is executed.
"""

from __future__ import annotations

import contextlib
import itertools
import platform
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch

from weft.autograd.trees import mapped
from weft.boxing.part import device_of
from weft.compiler.calls.rows import lists_of
from weft.compiler.ends import value_of
from weft.compiler.lower import Lowered
from weft.compiler.options import Options
from weft.core import dtype as dtypes
from weft.core import literal, random
from weft.core.device import Device
from weft.core.errors import CompileError, DeviceError, GraphError
from weft.core.program_line import warn
from weft.core.rank import Rank, current
from weft.core.reading import MALFORMED
from weft.core.substitution import substituted
from weft.graph import tree
from weft.graph.agree import agree, agree_on_messages
from weft.graph.compiled import Compiled, Output, Program
from weft.graph.draws import steps_of
from weft.graph.lines import lines
from weft.graph.run import Running, close_dropped
from weft.graph.zero import Split, split_elsewhere, split_like, undone_if_it_fails
from weft.job.job import Job
from weft.job.text import parse as parse_job
from weft.job.text import show
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.explain import accepts, wrong
from weft.ops.form import Form
from weft.ops.infer import check, infer
from weft.plan.calls import Call, Ref, shown
from weft.plan.plan import Plan, parse
from weft.plan.spans import contiguous
from weft.plan.verify import verify
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor, of_shard, of_torch

FORMAT: Final = 2
KEYS: Final = {
    "format": int, "machine": str, "rank": int, "world_size": int, "plan": str, "checksums": (str, type(None)),
    "draws": str, "arguments": str, "outputs": str, "numbers": dict, "written": list, "variables": dict,
}  # fmt: skip


def machine() -> str:
    """What a plan depends on: architecture, byte order and torch's version."""
    return f"{platform.machine()} {sys.byteorder}, torch {'.'.join(torch.__version__.split('.')[:2])}"


def state_of(graph: Program, with_eager: bool = True) -> dict[str, Any]:
    """The state that `load` takes; `flow.save` writes it. Without `with_eager`, values of modules are left out."""
    compiled = graph._need()
    running, plan = compiled.running, compiled.lowered.plan
    _refuse(graph, compiled)
    running.vm.sync()
    named = {v.name: t for v, t in compiled.lowered.job.variables.items()}
    left = {} if with_eager else _of_modules(graph)
    wanted = [r.name for c in _calls(plan, "variable") for r in c.results if r.name not in left]
    places = iter(range(len(compiled.examples)))
    given = mapped(compiled.arguments, lambda leaf: Ref(str(next(places))) if isinstance(leaf, Output) else leaf)
    gives = mapped(compiled.outputs, lambda leaf: Ref("") if isinstance(leaf, Output) else leaf)
    return {
        "format": FORMAT, "machine": machine(), "rank": plan.rank, "world_size": plan.world_size,
        "plan": str(plan), "checksums": " ".join(_checksums(str(plan))),
        "draws": show(_draws_of(compiled.lowered.job)),
        "arguments": _text(given, "an argument"), "outputs": _text(gives, "an output"),
        "numbers": {name: f() for name, f in zip(running.numbers, compiled.numbers, strict=True)},
        "written": list(running.written),
        "variables": {name: of_torch(_data(named[name]).detach()) for name in dict.fromkeys(wanted)},
    }  # fmt: skip


def load(graph: Program, state: Mapping[str, Any], shared: dict[Tensor, Tensor] | None = None) -> Compiled:
    """Load a compiled graph's state into a graph. Parameters and buffers of its modules with the same names get the
    values, or keep theirs if the state has none, and are trained; variables that the graph it shares from has stay as
    they are; for other names the graph makes its own tensors, one for each of the state. `shared` has those that were
    made for other states."""
    if graph._compiled is not None:
        raise GraphError(f"{graph.name} is compiled already; load into one that was never called")
    close_dropped()
    with undone_if_it_fails() as split_up:
        return _loaded(graph, state, {} if shared is None else shared, split_up)


def _loaded(graph: Program, state: Mapping[str, Any], shared: dict[Tensor, Tensor], split_up: Split) -> Compiled:
    plan = _plan(state)
    job = _draws(state["draws"], plan)
    mine = variables_of(graph)
    theirs = {} if graph._shares is None else variables_of(graph._shares)
    parted, held = list[str](), dict[str, Tensor]()
    for call in _calls(plan, "variable"):
        r, v = call.results[0], _end(call)
        if v.name not in held:
            given = state["variables"].get(v.name)
            if v.name in mine and v.spec is not None and split_like(mine[v.name], v.spec, split_up):
                parted.append(v.name)
            with _within(call):
                if v.name in theirs and v.name not in mine:
                    made = _alike(v, theirs[v.name])
                elif given is None and v.name in mine:
                    made = _alike(v, mine[v.name])
                else:
                    known = mine.get(v.name) if given is None else mine.get(v.name, shared.get(given))
                    made = _variable(v, r.strides, given, known)
            held[v.name] = job.variables[v] = made
            if given is not None:
                shared[given] = made
    if graph._shares is not None and held and theirs.keys().isdisjoint(held):
        raise GraphError(
            f"{graph.name} shares from {graph._shares.name}, which has none of {', '.join([*held][:3])}, ...: it has "
            f"{', '.join([*theirs][:3]) or 'nothing yet'}. Load that one first, of the same modules"
        )
    lowered = Lowered(plan, job, Options(micro_batches=job.micro_batches))
    inputs = {c.args[0]: _example(c) for c in _calls(plan, "graph.input")}
    outputs = [_end(c) for c in _calls(plan, "graph.output")]
    names = [c.args[0] for c in _calls(plan, "graph.number")]
    given, gives = (_tree(state[key], key) for key in ("arguments", "outputs"))
    asked, answers = ([leaf.name for _, leaf in tree.leaves(t) if isinstance(leaf, Ref)] for t in (given, gives))
    written, own = state["written"], len(outputs) - len(state["written"])
    if (
        [*map(str, range(len(inputs)))] != asked or [*inputs] != [*range(len(inputs))] or len(answers) != own
        or not set(written) <= set(inputs) or not set(names) <= set(state["numbers"])
    ):  # fmt: skip
        raise CompileError(
            f"this is no state of a graph: it names {len(asked)} arguments, {len(answers)} outputs, {len(written)} "
            f"arguments to be overwritten and the numbers {[*state['numbers']]}, and its plan {len(inputs)} inputs, "
            f"{len(outputs)} outputs and the numbers {names}"
        )
    examples = [(v.name, example) for v, example in inputs.values()]
    arguments = mapped(given, lambda leaf: examples[int(leaf.name)][1] if isinstance(leaf, Ref) else leaf)
    marked, blank = (
        mapped(found, lambda leaf: Output() if isinstance(leaf, Ref) else leaf) for found in (gives, given)
    )
    graph.numbers.update(state["numbers"])
    free = agree(lowered)
    agree_on_messages(plan)
    split_elsewhere(mine, parted, split_up)
    running = Running(lowered, names, [*written], lines().take(free))
    running.ends_with(graph)
    numbers: list[Callable[[], float]] = [lambda name=name: float(graph.numbers[name]) for name in names]
    form = tree.form(arguments)
    return Compiled(lowered, running, form, marked, examples, [], numbers, outputs[:own], None, [], blank)


def _refuse(graph: Program, compiled: Compiled) -> None:
    draws, why = compiled.running.draws, ""
    if compiled.lowered.loaders:
        why = "it reads from a loader of the program's"
    elif compiled.expected:
        why = f"build() read a value that follows from its arguments ({compiled.expected[0].line})"
    elif graph._scaler is not None and graph._scaler.is_enabled():
        why = "its loss is scaled by a scaler of the program's"
    elif any(n.op == "steer" for n in draws.steps) or any(s is not random.of(current()) for s in draws.sources):
        why = "it seeds random numbers, or draws from a generator of the program's"
    if why:
        raise GraphError(f"{graph.name} can't be saved compiled: {why}. Save its state_dict(), and compile it anew")
    if any(schedule is not None for _, schedule in graph._optimizers):
        warn(
            f"{graph.name} is saved with the rates that it has now; its schedule is not. Once it is loaded, set "
            "graph.numbers['lr.0.0'] before each launch"
        )


def _plan(state: Mapping[str, Any]) -> Plan:
    """Check a state, and parse its plan."""
    state = state if isinstance(state, Mapping) else {}
    for key, kind in KEYS.items():
        if state.get("format", FORMAT) == FORMAT and not isinstance(state.get(key, ...), kind):
            raise CompileError(
                f"this is no state of a compiled graph: it has no {key!r} of that kind; runtime_state_dict() gives one"
            )
    rank = current()
    here = {"format": FORMAT, "machine": machine(), "world_size": rank.world_size, "rank": rank.index}
    for key, mine in here.items():
        if state.get(key) != mine:
            raise CompileError(
                f"a compiled graph of {key.replace('_', ' ')} {state.get(key)!r} can't run here, where it is {mine!r}. "
                "Save and load its state_dict(), and compile it here"
            )
    sums = itertools.zip_longest(_checksums(state["plan"]), (state["checksums"] or "").split())
    at = next((n for n, (a, b) in enumerate(sums, 1) if a != b), 0) if state["checksums"] else 0
    changed = f"line {at} of the plan isn't what was saved" if at else ""
    try:
        plan = _verified(state["plan"], rank)
    except CompileError as cause:
        raise CompileError(f"{cause}; {changed}" if changed else str(cause)) from None
    if changed:
        raise CompileError(
            f"{changed}. It can run, but may compute something else; if that is what you want, set the state's "
            "'checksums' to None"
        )
    return plan


def _verified(text: str, rank: Rank) -> Plan:
    plan = parse(text)
    if (plan.rank, plan.world_size) != (rank.index, rank.world_size):
        raise CompileError(
            f"the plan is of rank {plan.rank} of {plan.world_size}; this is {rank.index} of {rank.world_size}"
        )
    verify(plan)
    for part in (*plan.registers, *plan.tasks):
        with _within(part.name):
            Device(part.device or "cpu").check()
    for t in plan.tasks:
        _check_forms(t.step.calls)
    return plan


def _checksums(text: str) -> Iterator[str]:
    return (f"{zlib.crc32(line.encode()):08x}" for line in text.split("\n"))


def _check_forms(calls: tuple[Call, ...], outside: Mapping[str, Form] | None = None) -> None:
    """Check that every result has the form that its op infers from the operands."""
    forms = {**(outside or {}), **{r.name: Form(r.shape, dtypes.named(r.dtype)) for c in calls for r in c.results}}

    for call in calls:
        if call.calls:
            _check_forms(call.calls, forms)
        if call.op in ("variable", "graph.input", "graph.output"):
            with _within(call):
                _check_end(call, forms)
        if len({tuple(forms[v.name].shape for v in values) for values in lists_of(call)}) > 1:
            raise CompileError(f"{shown(call)}: its lists don't go together, pair by pair")
        op = OPS.get(call.op)
        if op is None:
            continue
        with _within(call):
            for p, a in zip(op.params, call.args, strict=False):  # an update's call leaves defaults out
                if p.kind == "attribute" and not isinstance(a, Ref) and not accepts(p, a):
                    raise ValueError(wrong(p, a))
            if call.option("where") is not None or call.option("part") is not None:
                continue
            given = substituted(call.args, Ref, lambda r: forms[r.name])
            for device in (a for a in call.args if isinstance(a, Device)):
                device.check()
            for r, f in zip(call.results, infer(op, given), strict=True):
                if (r.shape, dtypes.named(r.dtype)) != (tuple(f.shape), f.dtype):
                    raise ValueError(f"%{r.name} is {f.dtype.name}{list(f.shape)}, not as it says")
            check(op, given)


def _draws_of(job: Job) -> Job:
    """The draws of a job alone, in program order, and what they read: also those of other ranks, past which this one
    advances its generators."""
    found, known = Job(job.name), set[Value]()
    found.micro_batches = job.micro_batches
    for n in steps_of(job):
        reads = [v for v in dict.fromkeys(n.operands()) if v not in known]
        found.nodes += [*(Node(v.name, "input", (), (v,)) for v in reads), n]
        known.update(reads, n.outputs)
    return found


def _draws(text: str, plan: Plan) -> Job:
    """The inverse, for a plan, whose calls draw what its nodes of these names do."""
    job = parse_job(text)
    mine = {c.name: c for t in plan.tasks for c in t.step.calls if c.op in OPS and OPS[c.op].random}
    told = [n for n in job.nodes if n.op != "input"]
    drawing = {n.name: n for n in told}
    for n in told:
        shapes = [v.shape for v in n.operands()]
        strides = (mine[n.name].option("strides") if n.name in mine else None) or (None,) * len(shapes)
        if [*map(len, shapes)] != [len(s or shape) for s, shape in zip(strides, shapes, strict=False)]:
            raise CompileError(f"the plan draws {n.name} over strides {strides}, and the state tells of {shapes}")
        n.extra = {"source": random.of(current()), "strides": list(strides)}
        for v in n.outputs:
            if v.spec is not None:
                v.spec.placement.check(current().world_size)
    apart = len(drawing) == len(told) and all(n.draws for n in told)
    if not apart or any(name not in drawing or drawing[name].op != c.op for name, c in mine.items()):
        raise CompileError(
            f"the plan draws {', '.join(mine) or 'nothing'}, and the state tells of {', '.join(n.name for n in told)}"
        )
    return job


def _calls(plan: Plan, op: str) -> Iterator[Call]:
    return (c for t in plan.tasks for c in t.step.calls if c.op == op)


@contextlib.contextmanager
def _within(part: Call | str) -> Iterator[None]:
    """Name the call, task or register in errors about it."""
    try:
        yield
    except (*MALFORMED, AssertionError, AttributeError, DeviceError, RuntimeError) as cause:
        raise CompileError(f"{f'in {part}' if isinstance(part, str) else shown(part)}: {cause}") from None


def _end(call: Call) -> Value:
    """The value of a variable, an input or an output, by its global form."""
    if not call.results:
        return value_of(call.name, call.option("form"))
    r = call.results[0]
    return value_of(r.name, call.option("form") or (r.dtype, r.shape, Device("cpu")))


def _check_end(call: Call, forms: Mapping[str, Form]) -> None:
    """Check that a value has on this rank what its global form says."""
    if strange := {key for key, _ in call.options} - {"form"}:
        raise ValueError(f"{call.op} has no option {min(strange)}")
    v, here = _end(call), [*(r.name for r in call.results), *call.operands()]
    rank = current()
    if v.spec is not None:
        v.spec.placement.check(rank.world_size)
    (v.device if v.spec is None else device_of(v.spec.placement)).check()
    found = [(tuple(forms[name].shape), forms[name].dtype) for name in here]
    elsewhere = v.spec is not None and rank.index not in v.spec.placement
    shape = v.local_shape(rank.index)
    if found not in ([(shape, v.dtype)], [] if elsewhere or call.op == "graph.input" else None):
        raise CompileError(f"{v.name} is {v.form}, so that this rank has {v.dtype.name}{list(shape)} of it")


def _states(module: Any) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _variable(v: Value, strides: tuple[int, ...] | None, held: Any, known: Tensor | None) -> Tensor:
    shape = v.local_shape(current().index)
    if not isinstance(held, Tensor) or held.is_global or (held.shape, held.dtype) != (shape, v.dtype):
        raise CompileError(
            f"the plan wants {v.name} as {v.form}, {list(shape)} of it on this rank, and the state has "
            + ("another" if held is not None else "none. Saved with_eager=False, it needs a graph with the modules")
        )
    given = _data(held)
    if known is None:  # memory of its own: what is given may be that of the graph which was saved
        at = (v.device if v.spec is None else device_of(v.spec.placement)).torch
        data = torch.empty_strided(shape, strides or contiguous(shape), dtype=given.dtype, device=at).copy_(given)
        return of_torch(data) if v.spec is None else of_shard(data, v.spec)
    _data(_alike(v, known)).copy_(given)
    return known


def _alike(v: Value, known: Tensor) -> Tensor:
    if (known.spec, known.shape, known.dtype) != (v.spec, v.shape, v.dtype):
        raise CompileError(f"the plan wants {v.name} as {v.form}, and the graph's own is {known.spec or known.shape}")
    return known


def variables_of(graph: Program) -> dict[str, Tensor]:
    """What a graph's variables are called in plans: the parameters and buffers of its modules, and what was loaded."""
    compiled = {} if graph._compiled is None else graph._compiled.lowered.job.variables
    return {**{v.name: t for v, t in compiled.items()}, **_of_modules(graph)}


def _of_modules(graph: Program) -> dict[str, Tensor]:
    return {f"{name}.{path}": t for name, block in graph._blocks.items() for path, t in _states(block._origin)}


def _data(t: Tensor) -> torch.Tensor:
    data = blob_of(t).data
    assert data is not None
    return data


def _example(call: Call) -> tuple[Value, Tensor]:
    """An input, and a tensor of its form, which takes no memory."""
    v = _end(call)
    with _within(call):
        one = torch.zeros((), dtype=v.dtype.torch, device=v.device.torch)
        data = one.expand(v.local_shape(current().index))
    return v, of_torch(data) if v.spec is None else of_shard(data, v.spec)


# ---- trees -------------------------------------------------------------------------------------------


def _text(value: Any, what: str) -> str:
    """A tree as text: tensors by their index; lists, dicts and tuples are distinguished."""
    if isinstance(value, Ref):
        return f"%{value.name or 'out'}"
    if type(value) in (tuple, list):
        inside = "".join(f", {_text(v, what)}" for v in value)
        return f"({type(value).__name__!r}{inside})"
    if type(value) is dict and all(isinstance(k, str) for k in value):
        inside = "".join(f", ({k!r}, {_text(v, what)})" for k, v in value.items())
        return f"('dict'{inside})" if inside else "('dict',)"
    try:
        return f"('is', {literal.show(value, lambda a: None)})"
    except TypeError:
        raise GraphError(
            f"{what} is a {type(value).__name__}, which can't be written down: a graph that is saved compiled takes "
            "and gives tensors, numbers and text, in tuples, lists and dicts"
        ) from None


def _tree(text: str, what: str) -> Any:
    try:
        (read,), _ = literal.read(text, Ref)
        return _of(read)
    except (SyntaxError, TypeError, ValueError, IndexError, KeyError, RecursionError, MemoryError) as cause:
        raise CompileError(f"the {what} of this state can't be read: {cause}") from None


def _of(value: Any) -> Any:
    if isinstance(value, Ref):
        return value
    kind, *inside = value
    if kind == "is":
        return inside[0]
    if kind == "dict":
        return {k: _of(v) for k, v in inside}
    made = {"tuple": tuple, "list": list}[kind]
    return made(map(_of, inside))
