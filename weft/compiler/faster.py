"""Measure whether a fused call is faster than its calls one by one, on this machine, once for each form."""

from __future__ import annotations

import bisect
import functools
import hashlib
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from time import perf_counter
from typing import Any, Final

import torch
from msgspec.structs import replace
from torch.utils._python_dispatch import _disable_current_modes

from weft.boxing.links import COMPUTE
from weft.boxing.part import device_of
from weft.compiler import fusion, inductor
from weft.compiler.arena import aligned
from weft.compiler.calls.bind import Binder
from weft.compiler.calls.source import Memory
from weft.compiler.fusion import Forms
from weft.compiler.local_node import SMALL
from weft.compiler.options import Options
from weft.compiler.passes.layouts import multiplications
from weft.compiler.threads import one_is_enough
from weft.core import dtype as dtypes
from weft.core.device import capturing
from weft.core.one_thread import alone
from weft.core.program_line import warn
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.ops.linalg import onednn
from weft.plan.calls import Call, Place, Result, Step
from weft.plan.scratch import peak

GAIN: Final = 0.95  # a fused call must take less than so much of the time of the calls within it
SAMPLE: Final = 5e-4  # seconds of one sample of all: on a busy machine only a short one may run undisturbed
REPLAYED: Final = 10  # calls in a CUDA graph that is timed: launching the graph takes time, too
SAMPLES: Final = range(28, 70)  # at least, and at most, where the shortest don't agree
SIDE: Final = 128  # of matrices
AGREE: Final = 1.02  # the third shortest sample takes at most so much of the time of the shortest

CPU: Final = torch.device("cpu")

measured: dict[Any, bool] = {}
allocated: dict[Any, int] = {}  # bytes by a call of a kernel on the CPU, results that are copied into place included


def prepared(nodes: list[Node], leaving: Container[Value], rank: int, options: Options) -> tuple[list[Node], bool]:
    """A chain's nodes, fused where that is faster, if the options ask for it; and whether one thread is enough."""
    threads, device = torch.get_num_threads(), _device(nodes)
    on_cpu = device.type == "cpu"
    measured_here = on_cpu and inductor.asked(options) and threads > 1 and not _alike(nodes)
    one = one_is_enough(nodes, threads, *_sharing(threads) if measured_here else ())
    if on_cpu and onednn.AVX512 and any(multiplications(n) >= onednn.LEAST for n in _forms(nodes)):
        onednn.share(1 if one else threads)  # now, not in a launch, whose memory is told
    if inductor.asked(options):
        if why := inductor.missing(device.type):
            warn_once(
                f"config.enable_inductor() has no effect: it needs a C++ compiler (g++), on CUDA Triton, and {why}"
            )
        else:
            biased = {n for n in nodes if _biased(n, rank, roomy=not options.limited)}
            measure = functools.partial(faster, one_thread=one, device=device)
            nodes = fusion.fused(nodes, leaving, rank, measure, biased)
    return nodes, one


def _forms(nodes: Sequence[Node]) -> Collection[Node]:
    """One node for each op and shapes of operands."""
    return {(n.op, *[v.shape for v in n.operands()]): n for n in nodes if n.op in OPS}.values()


def _device(nodes: Sequence[Node]) -> torch.device:
    """The device of a chain."""
    for v in (v for n in nodes for v in (n.outputs or n.operands())):
        return v.device.torch if v.spec is None else device_of(v.spec.placement).torch
    return CPU


def _alike(nodes: Sequence[Node]) -> bool:
    """Whether several ranks may compute the same, and must agree to the last bit."""
    return any(v.spec is not None and v.spec.placement.size > 1 for n in nodes for v in n.outputs)


@functools.cache
def _sharing(threads: int) -> tuple[float, float]:
    """The seconds for which so many threads wait for each other in a product, and how fast one of them multiplies, as a
    multiple of what is estimated: measured once in a process."""
    a, out = torch.ones(2, SIDE, SIDE, dtype=torch.float32, device="cpu").unbind()

    def product() -> None:
        torch.mm(a, a, out=out)

    with _disable_current_modes():
        shared, one = least([product, alone(product)])
    return shared - one / threads, SIDE**3 / COMPUTE["cpu"] / one


@functools.cache
def warn_once(what: str) -> None:
    warn(what)


def _biased(n: Node, rank: int, roomy: bool) -> bool:
    """Whether it is a product whose kernel adds the bias in a pass of its own: MKL's, not oneDNN's nor CUDA's."""
    if n.op != "linear" or n.args[2] is None or any(v.spec and rank not in v.spec.placement for v in n.operands()):
        return False
    y = n.outputs[0]
    whole = y.spec is None or not any(sbp.is_partial for sbp in y.spec.nd_sbp)
    x, weight, bias = (torch.empty(v.local_shape(rank), dtype=v.dtype.torch, device="meta") for v in n.operands())
    if not whole or y.device_type != "cpu" or y.dtype.torch is not torch.float32 or min(x.dim(), weight.dim()) < 2:
        return False
    return not (onednn.AVX512 and onednn.writes(x.flatten(0, -2), weight.t(), bias, roomy))


def faster(call: Call, forms: Forms, biases: int, one_thread: bool, device: torch.device = CPU) -> int | None:
    """The bytes that the fused call allocates, if it is faster than its calls one by one, on this machine. The first
    ones add so many biases."""
    threads = 1 if one_thread else torch.get_num_threads()
    key = inductor.key_of(call, [forms[a.name] for a in call.args], threads, device), biases
    with inductor.lock:
        if key not in measured:
            try:
                measured[key], allocated[key] = _wins(call, forms, biases, one_thread, device)
            except Exception as why:
                measured[key] = False
                warn(f"a run of calls stays as it is, {inductor.ops_of(call)}: {why!s:.200}")
        return allocated.get(key, 0) if measured[key] else None


def votes() -> dict[str, bool]:
    """This rank's measurements so far, under keys that are the same on every rank."""
    with inductor.lock:
        return {_text(key): found for key, found in measured.items()}


def _text(key: Any) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()


def outvoted(every: Sequence[Mapping[str, bool]]) -> bool:
    """Don't fuse what was slower on a rank: those that compute the same must agree to the last bit. `every` rank's
    votes, from which all see alike whether they differ; if so, others may be measured in its place."""
    against = {text for found in every for text, fast in found.items() if not fast}
    with inductor.lock:
        measured.update((key, False) for key in [*measured] if _text(key) in against)  # other threads add some
    return any(fast and text in against for found in every for text, fast in found.items())


def _wins(call: Call, forms: Forms, biases: int, one_thread: bool, device: torch.device) -> tuple[bool, int]:
    """Time both, over memory of the same forms; and the bytes that the first allocates."""
    heads = tuple(Call("variable", (), (forms[a.name],), name=a.name) for a in call.args)
    together, size = _placed([call], 0, forms)
    apart, end = _placed(call.calls, size, forms)
    arena = torch.zeros(end, dtype=torch.uint8, device=device)
    variables = {name: _numbers(r).to(device) for name, r in forms.items()}
    for c in apart[:biases]:  # in place, which takes about as long as within the product's kernel
        product, bias = (variables[a.name] for a in c.args)
        variables[c.args[0].name] = Memory(arena).placed(c.results[0]).copy_(product)
        bias.zero_()  # what is added again and again stays as it is
    draws: Any = None
    steps = [Step((*heads, *calls), end, one_thread) for calls in (together, apart)]
    functions = [Binder(f"measured{i}", s, 0, arena, variables, None, draws).bind({}, 0) for i, s in enumerate(steps)]
    size = 0
    if device.type == "cpu":
        one, each = least(functions)
        size = peak(functions[0])
    else:
        one, each = least([_captured(f, device) for f in functions], torch.cuda.current_stream(device).synchronize)
    return one < GAIN * each, size


def _captured(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Several calls as a CUDA graph, as chains run them: without the time that launching their kernels takes."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.no_grad(), capturing, torch.cuda.stream(stream):
        function()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            for _ in range(REPLAYED):
                function()
    return graph.replay


def _placed(calls: Sequence[Call], at: int, forms: Forms) -> tuple[list[Call], int]:
    """The calls with their results placed in an arena, as in a chain, and the end of that memory."""
    found, known = [], {name: _meta(r) for name, r in forms.items()}
    for c in calls:
        op, results = OPS.get(c.op), []
        known.update((r.name, _meta(r)) for r in c.results)
        view = op is not None and op.view and _viewed(op, c, known)
        kept = op is None or op.view or op.out_kernel is not None or all(r.bytes <= SMALL for r in c.results)
        for r in c.results:
            if view:
                results.append(replace(r, place=Place("view", of=c.args[0].name)))
            elif kept:
                results.append(replace(r, place=Place("arena", at)))
                at += aligned(r.bytes)
            else:
                results.append(replace(r, place=Place("made")))
        found.append(replace(c, results=tuple(results)))
    return found, at


def _viewed(op: Op, c: Call, known: dict[str, torch.Tensor]) -> bool:
    """Whether its results are views of its operand; a reshape may have to copy. Adds those to `known`."""
    base, *others = c.args
    made = op.compute([known[base.name], *others])
    made = made if isinstance(made, (tuple, list)) else (made,)
    shared = all(t.untyped_storage()._cdata == known[base.name].untyped_storage()._cdata for t in made)
    known.update((r.name, t) for r, t in zip(c.results, made, strict=True) if shared)
    return shared


def _meta(r: Result) -> torch.Tensor:
    return torch.empty(r.shape, dtype=dtypes.named(r.dtype).torch, device="meta")


def _numbers(r: Result) -> torch.Tensor:
    dtype = dtypes.named(r.dtype).torch
    if dtype.is_floating_point or dtype.is_complex:
        return torch.rand(r.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return torch.ones(r.shape, dtype=dtype)


def least(functions: Sequence[Callable[[], None]], end: Callable[[], object] | None = None) -> list[float]:
    """The seconds of a call of each, by samples in turn, until the shortest ones agree. `end` waits for the device."""
    took: list[list[float]] = [[] for _ in functions]
    with torch.no_grad():
        for f in functions:
            f()
        start = perf_counter()
        for f in functions:
            f()
        if end is not None:
            end()
        n = max(1, int(SAMPLE * len(functions) / max(perf_counter() - start, 1e-9)))
        for number in range(SAMPLES.stop):
            for f, samples in zip(functions, took, strict=True):
                start = perf_counter()
                for _ in range(n):
                    f()
                if end is not None:
                    end()
                bisect.insort(samples, (perf_counter() - start) / n)
            if number >= SAMPLES.start and all(s[2] < AGREE * s[0] for s in took):
                break
    return [s[0] for s in took]
