"""Torch's own samples of functions and modules, computed by Weft and by torch.

    python -m bench.samples [road ...] [--dtype NAME ...] [--only TEXT] [--every N] [--seed N]

Torch tests itself with them: `op_db` and `module_db`. The roads: `eager` compares values, dtypes, shapes and whose
memory a result has; `gradient` and `second` first and second derivatives; `ranks` values over two ranks in random
layouts; `graph` those of a compiled graph; `errors` runs what torch must refuse; `modules` compares a module's results,
gradients, state and text. Outcomes are those of bench/fuzz.py, and so are their reasons, with a few more below.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import types
import unittest
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import torch

import weft as flow
from bench import fuzz
from bench.fuzz import Function, alike, inside, shown
from weft.autograd.trees import mapped
from weft.core import dtype as dtypes
from weft.core.errors import WeftError
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

# a package that compares texts in tests, which these databases only import
sys.modules.setdefault("expecttest", types.ModuleType("expecttest")).__dict__.setdefault("TestCase", unittest.TestCase)
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402

PLACES: Final = {"": "flow", "nn.functional": "neural"}
WITHOUT: Final = {  # functions that aren't compared, and why
    **dict.fromkeys(["empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted",
                     "resize_", "resize_as_"], "what they return is uninitialized"),
    "max_pool2d_with_indices_backward": "torch's test calls ATen",
    "slice": "OneFlow's function of that name takes triples",
    **dict.fromkeys(["to_sparse", "chalf"], "Weft has no sparse tensors, and no complex32"),
}  # fmt: skip
REASONS: Final = [
    *fuzz.REASONS,
    *(fuzz.Reason(kind, frozenset(names.split()) if names else None, fuzz.re.compile(form), why)
      for kind, names, form, why in (
        ("other", "svd_lowrank pca_lowrank eigh", r"", "vectors of another sign"),
        ("other", "lstsq", r"", "one algorithm, which gives ranks and singular values, too"),
        ("other", "norm vector_norm matrix_norm", r"FOR .*nan", "a derivative that doesn't exist is zero"),
        ("other", "cholesky_inverse cholesky_solve", r"",
            "torch's gradient of the triangle that isn't read is not zero"),
        ("other", "cholesky cholesky_ex", r"complex",
            "a Hermitian gradient; torch's differs by what no Hermitian matrix has"),
        ("other", "sum_to_size", r"", "torch sums a bool over no dimensions to an integer"),
        ("memory", "sum_to_size dropout3d lstsq", r"", "x itself, or an empty part of it"),
        ("memory", "", r"memory_format=torch.channels_last", "tensors are contiguous"),
        ("memory", "H mH", r"complex", "torch conjugates lazily"),
        ("lax", "", r"derivative for|\bderivative of", "torch lacks the derivative"),
        ("lax", "", r"more than one element of the written-to tensor", "Weft copies what is expanded"),
        ("strict", "", r"complex.*has no kernel for Complex(Float|Double)", "torch has kernels of complex convolution"),
        ("strict", "", r"TraceError: ", "its result, or the shape of it, depends on data"),
        ("strict", "batch_norm", r"SbpError: .*no layout", "statistics that a rank has are moved by nobody"),
      )),
]  # fmt: skip


class Case(NamedTuple):
    """One sample of a function, as torch's tensors."""

    name: str
    ours: Function
    theirs: Function
    sample: Any

    def call(self) -> fuzz.Call:
        s = self.sample
        return fuzz.Call(self.name, mine((s.input, *s.args)), mine(s.kwargs))


def copied(value: Any, of: Callable[[Any], Any]) -> Any:
    """A sample's value with its tensors and dtypes replaced."""
    if isinstance(value, (torch.Tensor, torch.dtype, flow.Tensor)):
        return of(value)
    if isinstance(value, dict):
        return {k: copied(v, of) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(copied(v, of) for v in value)
    return value


def twin(x: Any) -> Any:
    return fuzz.lying_alike(x.detach()).requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x


def mine(value: Any) -> Any:
    """The same value as Weft's."""

    def of(x: Any) -> Any:
        if isinstance(x, torch.dtype):
            return dtypes.of_torch(x)
        y = of_torch(fuzz.lying_alike(x.detach()))
        return y.requires_grad_() if x.requires_grad else y

    return copied(value, of)


# ---- functions and their samples -------------------------------------------------------------------------


def rebound(f: Function, **names: Any) -> Function:
    """A function of torch's tests that doesn't seed its draws, and calls what these names mean."""
    if not isinstance(f, types.FunctionType) or not f.__module__.startswith("torch.testing"):
        return f
    cells = tuple(types.CellType(rebound(c.cell_contents, **names)) for c in f.__closure__ or ())
    known = {**f.__globals__, **names, "wrapper_set_seed": lambda op, *a, **k: op(*a, **k)}
    made = types.FunctionType(f.__code__, known, f.__name__, f.__defaults__, cells)
    made.__kwdefaults__ = f.__kwdefaults__
    return made


def functions(only: str = "") -> Iterator[tuple[str, Any, Function, Function]]:
    """Each function, method and in-place method: its name as bench/fuzz.py has it, what torch knows of it, and both."""
    for op in op_db:
        if only not in op.name or op.name in WITHOUT:
            continue
        place, _, last = op.name.rpartition(".")
        ours = rebound(op.op, torch=flow)
        if ours is op.op:
            home = flow
            for part in filter(None, place.split(".")):
                home = getattr(home, part, None)
            ours = getattr(home, last, None)
        if callable(ours) and not isinstance(ours, dtypes.DType):
            yield f"{PLACES.get(place, place)}.{last}", op, ours, rebound(op.op)
        for f in filter(None, (op.method_variant, op.inplace_variant)):
            name = getattr(f, "__name__", "")
            ours = rebound(f, torch=flow) if isinstance(f, types.FunctionType) else getattr(flow.Tensor, name, None)
            if ours is not None:
                yield f"tensor.{last if name == '<lambda>' else name}", op, ours, rebound(f)


def samples(op: Any, dtype: torch.dtype, grad: bool, wrong: bool) -> Iterator[Any]:
    seed = zlib.crc32(op.name.encode())
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)  # torch.manual_seed formats the stack three times
    if wrong:
        made = (e.sample_input for e in op.error_inputs_func(op, "cpu")) if op.error_inputs_func else ()
    else:
        fits = op.supports_dtype(dtype, "cpu") and not (grad and not op.supports_autograd)
        made = op.sample_inputs_func(op, "cpu", dtype, grad) if fits else ()
    for s in made:
        tensors = inside([s.input, *s.args, *s.kwargs.values()])
        if all(t.device.type == "cpu" and t.layout is torch.strided for t in tensors):
            yield s


def cases(
    dtype: torch.dtype, grad: bool = False, only: str = "", every: int = 1, seed: int = 0, most: int | None = None,
    wrong: bool = False,
) -> Iterator[Case]:  # fmt: skip
    """One of `every` samples of each function, of the first `most`."""
    chosen = random.Random(seed)
    for name, op, ours, theirs in functions(only):
        method, writes = name.startswith("tensor."), name.endswith("_")
        if method and not writes and (every > 1 or grad or wrong):
            continue  # the function again
        rows = list(itertools.islice(samples(op, dtype, grad and not writes, wrong), most))
        for s in rows if every == 1 else chosen.sample(rows, -(-len(rows) // every)):
            if not (writes and (s.broadcasts_input or grad)):
                yield Case(name, ours, theirs, s)


# ---- roads -----------------------------------------------------------------------------------------------


def seeded(f: Function) -> Function:
    def call(*args: Any, **kwargs: Any) -> Any:
        torch.default_generator.manual_seed(3)
        flow.manual_seed(3)
        return f(*args, **kwargs)

    return call


def eager(case: Case) -> tuple[str, str]:
    return fuzz.outcome((seeded(case.ours), seeded(case.theirs)), case.call())


def attempt(f: Function, *args: Any) -> Any:
    """What a call gives, or its error."""
    try:
        return f(*args)
    except Exception as error:
        return error


def compared(ours: Any, theirs: Any) -> tuple[str, str]:
    if isinstance(theirs, Exception):
        return ("refused" if isinstance(ours, WeftError) else "lax"), f"FOR {type(theirs).__name__}: {theirs}"
    if isinstance(ours, Exception):
        return ("strict" if isinstance(ours, WeftError) else "raw"), f"{type(ours).__name__}: {ours}"
    return ("same", "") if alike(ours, theirs) else ("other", f"{ours} FOR {theirs}")


def derivatives(library: Any, f: Function, args: Any, kwargs: Any, process: Function, second: bool) -> list[Any]:
    """The gradients of the operands, or of the first gradients weighted; zeros where there are none."""

    def weight(y: Any) -> Any:
        numbers = torch.randn(
            tuple(y.shape), dtype=dtypes.of(y.dtype).torch, generator=torch.Generator().manual_seed(1)
        )
        return numbers if library is torch else of_torch(numbers)

    xs = [x for x in inside((args, list(kwargs.values()))) if x.requires_grad]
    ys = [y for y in inside(process(seeded(f)(*args, **kwargs))) if y.requires_grad]
    if second and ys:
        dys = [weight(y).requires_grad_() for y in ys]
        first = library.autograd.grad(ys, xs, dys, create_graph=True, allow_unused=True)
        xs, ys = xs + dys, [g for g in first if g is not None and g.requires_grad]
    if not ys:
        return []
    found = library.autograd.grad(ys, xs, list(map(weight, ys)), allow_unused=True)
    return [library.zeros_like(x) if g is None else g for g, x in zip(found, xs, strict=True)]


def gradient(case: Case, second: bool = False) -> tuple[str, str]:
    s, call = case.sample, case.call()
    process = s.output_process_fn_grad
    given = copied((s.input, *s.args), twin), copied(s.kwargs, twin)
    theirs = attempt(derivatives, torch, case.theirs, *given, process, second)
    ours = attempt(derivatives, flow, case.ours, call.args, call.kwargs, rebound(process, torch=flow), second)
    if isinstance(ours, list) and isinstance(theirs, list) and [] in (ours, theirs):  # one finds no gradient to derive
        rest = ours or theirs
        return ("same", "") if not any(g.any() for g in rest) else ("other", f"{ours} FOR {theirs}")
    return compared(ours, theirs)


def second(case: Case) -> tuple[str, str]:
    return gradient(case, True)


def expected(case: Case) -> Any:
    s = case.sample
    return attempt(lambda: seeded(case.theirs)(*copied((s.input, *s.args), twin), **copied(s.kwargs, twin)))


def ranks(case: Case) -> tuple[str, str]:
    layouts: list[str] = []

    def each() -> Any:
        placement, chosen = flow.placement("cpu", ranks=[0, 1]), random.Random(str(case.call()))

        def spread(x: Any) -> Any:
            if not isinstance(x, flow.Tensor):
                return x
            sbps = [flow.sbp.broadcast, *map(flow.sbp.split, range(x.ndim))]
            y = flow.tensor(x.to_torch(), placement=placement, sbp=chosen.choice(sbps))
            return y.to_global(sbp=flow.sbp.partial_sum) if chosen.random() < 0.2 and x.dtype.differentiable else y

        call = copied(tuple(case.call())[1:], spread)
        layouts[:] = [str(x.sbp) for x in inside([call[0], *call[1].values()])]
        y = seeded(case.ours)(*call[0], **call[1])
        return mapped(
            y, lambda t: t.to_global(sbp=flow.sbp.broadcast).to_local() if getattr(t, "is_global", False) else t
        )

    theirs = expected(case)
    found = [compared(y, theirs) for y in spawn_threads(2, attempt, each, deadline=60)]
    kind, why = next((f for f in found if f[0] != "same"), found[0])
    return kind, f"{' '.join(layouts)}: {why}"


class Once(flow.nn.Graph):
    """A graph of one call, whose tensors are its inputs."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.f, self.call = case.ours, case.call()

    def build(self, *tensors: Any) -> Any:
        held = iter(tensors)
        args, kwargs = copied(tuple(self.call)[1:], lambda x: next(held) if isinstance(x, flow.Tensor) else x)
        return self.f(*args, **kwargs)


def graph(case: Case) -> tuple[str, str]:
    program = Once(case)

    def run() -> Any:
        y = seeded(program)(*inside([program.call.args, *program.call.kwargs.values()]))
        return mapped(y, lambda t: of_torch(t.to_torch()) if isinstance(t, flow.Tensor) else t)

    kind, why = compared(attempt(run), expected(case))
    program.close()
    return kind, why


ROADS: Final = {
    "eager": eager, "gradient": gradient, "second": second, "ranks": ranks, "graph": graph, "errors": eager,
}  # fmt: skip


# ---- modules ---------------------------------------------------------------------------------------------


def modules(dtype: torch.dtype, only: str = "") -> Iterator[tuple[str, str, str]]:
    """The outcome of each sample of a module: its name, the outcome, and its description."""
    for info, training in itertools.product(module_db, (True, False)):
        name = info.module_cls.__name__
        if only not in name or not hasattr(flow.nn, name):
            continue
        for s in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training):
            given = s.constructor_input, s.forward_input or type(s.constructor_input)()
            states: list[Any] = []

            def run(
                library: Any, of: Callable[[Any], Any], made: Any = name, given: Any = given, states: Any = states,
                training: bool = training,
            ) -> list[Any]:  # fmt: skip
                (made_of, made_with), (args, kwargs) = ((of(g.args), of(g.kwargs)) for g in given)
                module = getattr(library.nn, made)(*made_of, **made_with).to(getattr(library, str(dtype)[6:]))
                module.train(training)
                if states:
                    module.load_state_dict(mine(states[0]))
                else:
                    states.append({k: v.clone() for k, v in module.state_dict().items()})
                kwargs["_"] = list(module.parameters())  # gradients of these, too

                def forward(*args: Any, _: Any, **kwargs: Any) -> Any:
                    states.append(module(*args, **kwargs))
                    return states[-1]

                found = derivatives(library, forward, args, kwargs, lambda y: y, False)
                return [
                    states.pop(),
                    *found,
                    *module.state_dict().values(),
                    " ".join(module.state_dict()),
                    repr(module),
                ]

            if any(isinstance(x, torch.nn.Module) for x in s.constructor_input.args) or name.startswith("Lazy"):
                continue  # of torch's modules; without parameters yet
            theirs = attempt(run, torch, lambda v: copied(v, twin))
            kind, why = compared(attempt(run, flow, mine), theirs)
            yield name, kind, f"{name}({shown(list(given[0].args))}, {given[0].kwargs}): {why}"


# ---- all of them -----------------------------------------------------------------------------------------


def outcomes(road: str, dtype: torch.dtype, **which: Any) -> Iterator[tuple[str, str, str]]:
    """Of each case: its name, the outcome, and its description."""
    grad = road in ("gradient", "second")
    for case in cases(dtype, grad, wrong=road == "errors", **which):
        said = str(case.call())
        yield case.name, *(lambda kind, why: (kind, f"{said}: {why}"))(*ROADS[road](case))


def sweep(road: str, dtype: torch.dtype, **which: Any) -> tuple[Counter[str], list[str]]:
    """How many cases had each outcome, and those that need a reason and have none."""
    counted, told = Counter[str](), list[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = modules(dtype, which.get("only", "")) if road == "modules" else outcomes(road, dtype, **which)
        for name, kind, said in found:
            counted[kind] += 1
            if fuzz.unexplained(kind, fuzz.Call(name, (), {}), said, REASONS):
                told.append(f"{kind} {said}".replace("\n", " ")[:500])
    return counted, told


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("roads", nargs="*", default=[*ROADS, "modules"])
    options.add_argument("--dtype", nargs="+", default=["float64"])
    options.add_argument("--only", default="", help="functions whose name contains this")
    options.add_argument("--every", type=int, default=1, help="one of so many samples")
    options.add_argument("--seed", type=int, default=0, help="which of them")
    given = options.parse_args()
    for road, dtype in itertools.product(given.roads, given.dtype):
        counted, told = sweep(road, getattr(torch, dtype), only=given.only, every=given.every, seed=given.seed)
        print(
            *told, json.dumps({"road": road, "dtype": dtype, "unexplained": len(told), **counted}), sep="\n", flush=True
        )


if __name__ == "__main__":
    main()
