"""Kernels of fused calls, by torch's Inductor: it generates C++, which g++ compiles, and on CUDA kernels for Triton.

Inductor gets the calls' kernels, op by op, looked up by name; nothing of a plan's text is executed.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import threading
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, Final

import torch
from msgspec.structs import replace

from weft.compiler.local_node import SMALL
from weft.compiler.options import Options
from weft.core.program_line import warn
from weft.core.substitution import substituted
from weft.job.memory_order import lies
from weft.ops import OPS
from weft.ops.kernels import format_of
from weft.plan.calls import Call, Ref, Result

Kernel = Callable[[list[torch.Tensor]], object]  # of a fused call's operands, then its results

ALIGNED: Final = 16  # bytes: Triton's kernels read so many at once
SHARED: Final = 1 << 14  # elements for each thread that loops are shared among: fewer take no longer than threads wait
kernels: dict[Any, Kernel | None] = {}  # None: it can't be compiled
lock: Final = threading.RLock()  # the compiler isn't made for several threads


def asked(options: Options) -> bool:
    """Whether the program asks for it: ranks then agree on what is fused, and speed counts more than memory."""
    return options.inductor


@functools.cache
def missing(kind: str = "cpu") -> str:
    """Why Inductor isn't available here for this type of device; empty if it is."""
    try:
        importlib.import_module("torch._inductor.cpp_builder").get_cpp_compiler()
        if kind == "cuda":
            importlib.import_module("triton")
    except Exception as why:
        return f"{type(why).__name__}: {why}".partition("\n")[0]
    return ""


def kernel(call: Call, given: Sequence[torch.Tensor], outs: Sequence[torch.Tensor]) -> Kernel:
    """The kernel of a fused call: compiled, or, if that fails, running its calls one by one."""
    tensors = [*given, *outs]
    forms = [(tuple(t.shape), t.stride(), t.dtype) for t in tensors]
    key = key_of(call, forms, torch.get_num_threads(), tensors[0].device)
    if any(t.is_cuda and t.data_ptr() % ALIGNED for t in tensors):
        return one_by_one(call)
    with lock:
        if key not in kernels:
            try:
                kernels[key] = compiled(call, tensors)
            except Exception as why:
                kernels[key] = None
                warn(f"calls run one by one, {ops_of(call)}: {missing() or why!s:.200}")
        return kernels[key] or one_by_one(call)


def ops_of(call: Call) -> str:
    return ", ".join(c.op for c in call.calls)


def key_of(call: Call, forms: Sequence[Any], threads: int, device: torch.device) -> Any:
    """A cache key: the same for calls that differ in names only."""
    number: dict[str, str] = {}

    def of(name: str) -> str:
        return number.setdefault(name, str(len(number)))

    def numbered(args: Any) -> Any:
        return substituted(args, Ref, lambda r: Ref(of(r.name)))

    def plain(c: Call) -> Call:
        args = numbered(c.args)
        return replace(c, args=args, results=tuple(replace(r, name=of(r.name)) for r in c.results), name="", at="")

    args = numbered(call.args)
    text = "\n".join(str(plain(c)) for c in call.calls)
    kept = tuple(of(r.name) for r in call.results)
    plain_forms = tuple((f.shape, f.dtype) if isinstance(f, Result) else f for f in forms)
    return args, text, kept, plain_forms, threads if device.type == "cpu" else str(device)


def one_by_one(call: Call) -> Kernel:
    """A kernel that runs the calls one after another."""
    return Copying(functools.partial(_results, call), len(call.args))


class Copying:
    """A kernel of a function that returns its results."""

    def __init__(self, function: Callable[[list[torch.Tensor]], Sequence[torch.Tensor]], given: int) -> None:
        self.function, self.given = function, given

    def __call__(self, tensors: list[torch.Tensor]) -> None:
        for out, made in zip(tensors[self.given :], self.function(tensors[: self.given]), strict=True):
            out.copy_(made)


def _results(call: Call, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    values = dict(zip(call.operands(), given, strict=True))
    for c in call.calls:
        op = OPS[c.op]
        made = op.compute(substituted(c.args, Ref, lambda r: values[r.name]))
        made = made if isinstance(made, (tuple, list)) else (made,)
        values.update((r.name, t) for r, t in zip(c.results, made, strict=True))
    return [values[r.name] for r in call.results]


def compiled(call: Call, tensors: Sequence[torch.Tensor]) -> Kernel:
    fake = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode()  # importing these takes seconds
    compile_fx = importlib.import_module("torch._inductor.compile_fx")
    table = importlib.import_module("torch._inductor.decomposition").select_decomp_table()
    trace = importlib.import_module("torch.fx.experimental.proxy_tensor").make_fx
    config = importlib.import_module("torch._inductor.config")
    n = len(call.args)
    with torch.no_grad(), fake:
        forms = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device) for t in tensors[:n]]
        kept = [format_of(t) for t in tensors[n:]]
        laid = torch.func.functionalize(
            lambda *given: [t.contiguous(memory_format=k) for t, k in zip(_results(call, given), kept, strict=True)]
        )
        graph = trace(laid, decomposition_table=table)(*forms)
    options: dict[str, Any] = {
        "size_asserts": False, "alignment_asserts": False, "compile_threads": 1, "cpp.min_chunk_size": SHARED,
    }  # fmt: skip
    with torch.no_grad(), config.patch(options):
        found = compile_fx.compile_fx_inner(graph, forms, is_inference=True, static_input_idxs=range(n))
    return Copying(getattr(found, "current_callable", None) or found, n)  # without the bookkeeping around it


PLAIN: Final = {"clear", "empty_strided_cpu", "reinterpret_tensor", "torch"}  # names in Python that only calls loops


def loops(kernel: Kernel, given: list[torch.Tensor], outs: list[torch.Tensor]) -> list[tuple[Any, list[Any]]]:
    """The calls, with their arguments, that compute a kernel's results in this memory. Inductor's Python would allocate
    them each time: it is run once, without memory, noting its loops, and they are called with the given memory instead.
    """
    function = kernel.function if isinstance(kernel, Copying) else None
    if not isinstance(function, MethodType):
        return [(kernel, [[*given, *outs]])]
    if given[0].is_cuda:
        return [(_into(function, given, outs) or kernel, [[*given, *outs]])]
    found: list[tuple[Any, list[Any]]] = []
    memory: dict[int, torch.Tensor] = {}  # by the storage that it asks for

    def empty(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        t = torch.empty_strided(shape, strides, dtype=dtype, device="meta")
        memory[_storage(t)] = t
        return t

    code, space = function.__func__.__code__, {**function.__func__.__globals__, "empty_strided_cpu": empty}
    names = [n for n in code.co_names if n not in PLAIN and not isinstance(getattr(torch, n, None), torch.dtype)]
    for n in names:
        space[n] = lambda *args, loop=space.get(n): found.append((loop, list(args)))
    if all(n.startswith("cpp_fused") for n in names):
        made = FunctionType(code, space)(function.__self__, given.copy())
        keys = [_storage(t) for t in made]
        alike = all(lies(o, t.stride()) for o, t in zip(outs, made, strict=True))
        apart = len(memory.keys() & {*keys}) == len(outs) and alike
        whole = all(t.nbytes == t.untyped_storage().nbytes() for t in made)
        used = {id(a): a for _, args in found for a in args if isinstance(a, torch.Tensor)}
        for t in given:
            used.pop(id(t), None)
        whole = whole and all(_storage(t) in memory and not t.storage_offset() for t in used.values())
        between = {key: t for key, t in memory.items() if key not in keys}  # stays allocated
        if apart and whole and sum(t.nbytes for t in between.values()) <= SMALL:
            memory.update({key: torch.empty_like(t, device="cpu") for key, t in between.items()})
            memory.update(zip(keys, outs, strict=True))
            return [(f, [memory.get(_storage(a), a) for a in args]) for f, args in found]
    return [(kernel, [[*given, *outs]])]


def _into(function: MethodType, given: list[torch.Tensor], outs: list[torch.Tensor]) -> Kernel | None:
    """A kernel that gives the memory of the results where Inductor's Python would allocate it; None if it doesn't
    allocate each by itself."""
    code, space, n = function.__func__.__code__, function.__func__.__globals__, len(given)
    allocated: list[torch.Tensor] = []

    def noted(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        allocated.append(torch.empty_strided(shape, strides, dtype=dtype, device=given[0].device))
        return allocated[-1]

    made = FunctionType(code, {**space, "empty_strided_cuda": noted})(function.__self__, given.copy())
    at, places = {_storage(t): i for i, t in enumerate(allocated)}, dict[int, int]()
    for i, (t, out) in enumerate(zip(made, outs, strict=True)):
        whole = allocated[at[_storage(t)]] if _storage(t) in at else None
        if whole is None or whole.dtype != out.dtype or whole.numel() != out.numel() or at[_storage(t)] in places:
            return None
        if not (lies(out, t.stride()) and t.nbytes == whole.untyped_storage().nbytes()):
            return None
        places[at[_storage(t)]] = i

    def run(tensors: list[torch.Tensor]) -> None:
        number = itertools.count()

        def empty(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
            place = places.get(next(number))
            if place is None:
                return torch.empty_strided(shape, strides, dtype=dtype, device=tensors[0].device)
            return tensors[n + place].as_strided(shape, strides)

        FunctionType(code, {**space, "empty_strided_cuda": empty})(function.__self__, tensors[:n])

    return run


def _storage(a: Any) -> int:
    return a.untyped_storage()._cdata if isinstance(a, torch.Tensor) else 0
