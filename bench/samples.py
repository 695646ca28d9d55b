"""Torch's own samples of functions, modules and optimizers, computed by Weft and by torch.

    python -m bench.samples [road ...] [--dtype NAME ...] [--only TEXT] [--every N] [--seed N]

Torch tests itself with them: `op_db`, `module_db` and `optim_db`. The roads: `eager` compares values, dtypes, shapes
and whose memory a result has; `gradient` and `second` first and second derivatives; `ranks` values over two ranks in
random layouts; `graph` those of a compiled graph; `errors` runs what torch must refuse; `modules` compares a module's
results, gradients, state and text; `optimizers` compares parameters, states and rates after steps. Outcomes are those
of bench/fuzz.py, and so are their reasons, with a few more below.
"""

from __future__ import annotations

import argparse
import functools
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
from torch.testing._internal.common_methods_invocations import op_db, wrapper_set_seed  # noqa: E402
from torch.testing._internal.common_modules import module_db  # noqa: E402
from torch.testing._internal.common_optimizers import optim_db  # noqa: E402

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
        ("other", "svd_lowrank pca_lowrank", r"M=(float|complex)", "torch's vectors are approximate, ours exact"),
        ("other", "norm vector_norm matrix_norm", r"FOR .*nan", "a derivative that doesn't exist is zero"),
        ("memory", "dropout3d", r"itself FOR (new|a view)", "nothing is dropped"),
        ("other", "svd_lowrank", r"nan.* FOR", "second derivatives at a singular value of zero; torch leaves it out"),
        ("strict", "grid_sample", r"has no second derivative", "torch's backward of it has one"),
        ("lax", "", r"lr as a Tensor is not supported for capturable=False", "a rate may always be a tensor"),
        ("strict", "", r"doesn't support complex numbers", "torch says so at the first step, if there is a gradient"),
        ("memory", "", r"memory_format=torch.channels_last", "tensors are contiguous"),
        ("memory", "H mH", r"complex", "torch conjugates lazily"),
        ("wide", "__radd__ __rmul__ __rand__ __ror__ __rxor__", r"descriptor", "as functions they take two numbers"),
        ("strict", "__rmod__ __rpow__", r"got \(int, int\)", "torch answers NotImplemented to two numbers"),
        ("other", "__rsub__", r"FOR NotImplemented", "as functions they take two numbers"),
        ("lax", "__rdiv__", r"'int' object has no attribute", "as functions they take two numbers"),
        ("lax", "max_pool3d avg_pool3d", r"positive length", "a rank's part may be empty"),
        ("class", "multilabel_margin_loss", r"abc is not a valid value", "targets' dtype is wrong, too"),
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
    if not isinstance(f, types.FunctionType) or not (f.__module__ or "").startswith("torch.testing"):
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
            ours = rebound(f, torch=flow)
            ours = getattr(flow.Tensor, name, None) if ours is f else ours
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
                yield Case(name, *settled(op, ours, theirs, grad), s)


def settled(op: Any, ours: Function, theirs: Function, grad: bool) -> Iterator[Function]:
    """Both functions, of operands of the kind that derivatives are declared for; of values what is determined."""
    for library, f in ((flow, ours), (torch, theirs)):
        if grad and op.gradcheck_wrapper is not wrapper_set_seed:
            yield functools.partial(rebound(op.gradcheck_wrapper, torch=library), f)
        elif not grad and op.name.rpartition(".")[2] in COMPARED:
            yield lambda *args, f=f, **kwargs: COMPARED[op.name.rpartition(".")[2]](*f(*args, **kwargs))
        else:
            yield f


# ---- roads -----------------------------------------------------------------------------------------------


def whole(u: Any, s: Any, vh: Any) -> Any:
    """What vectors and values decompose: it doesn't depend on the vectors' signs, or phases."""
    return (u * s.to(u.dtype).unsqueeze(-2)) @ vh, s


COMPARED: Final[dict[str, Callable[..., Any]]] = {
    "eigh": lambda w, v: whole(v, w, v.mH), "svd_lowrank": lambda u, s, v: whole(u, s, v.mH),
    "pca_lowrank": lambda u, s, v: whole(u, s, v.mH),
}  # fmt: skip


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
    ys = [y for y in inside(process(seeded(f)(*args, **kwargs))) if y.requires_grad and y.numel()]
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


ROADS: Final = {"eager": eager, "gradient": gradient, "second": second, "ranks": ranks, "graph": graph, "errors": eager}


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


# ---- optimizers ------------------------------------------------------------------------------------------


APIECE: Final = frozenset(["eta", "mu", "mu_product"])  # states that torch has once, Weft for each element


def optimizers(dtype: torch.dtype, only: str = "") -> Iterator[tuple[str, str, str]]:
    """The outcome of a few steps of each configuration of an optimizer, of its schedules, and of what it refuses."""
    for info in optim_db:
        name = info.optim_cls.__name__
        if only not in name or info.only_supports_sparse_grads or (dtype.is_complex and not info.supports_complex):
            continue
        plain = [(s, ()) for s in info.optim_inputs_func("cpu", dtype)]
        planned = [(plain[0][0], schedules) for schedules in info.scheduler_inputs]
        wrong = [(e.optimizer_error_input, ()) for e in info.optim_error_inputs_func("cpu", dtype)]
        for s, schedules in plain + planned + wrong:
            theirs = attempt(stepped, torch, name, dtype, s, schedules, twin)
            kind, why = compared(attempt(stepped, flow, name, dtype, s, schedules, mine), theirs)
            yield name, kind, f"{name}({s.desc}, {s.kwargs}, {len(schedules)} schedules): {why}"


def stepped(library: Any, name: str, dtype: torch.dtype, s: Any, schedules: Any, of: Callable[[Any], Any]) -> list[Any]:
    """The parameters, states and rates after each step; what a schedule does is its own library's."""
    at = library.optim.lr_scheduler
    rates = {known: getattr(at, known) for known in torch.optim.lr_scheduler.__all__ if hasattr(at, known)}
    first = torch.linspace(-1, 2, 12, dtype=dtype).reshape(3, 4).requires_grad_()
    params = [copied(x, of) for x in (first, first.detach()[:2, :2].clone().requires_grad_())]
    given = params if s.params is None else copied(s.params, of)
    optimizer = getattr(library.optim, name)(given, **copied(s.kwargs, of))
    plans = [rebound(schedule, **rates)(optimizer) for schedule in schedules]
    told: list[Any] = []

    def loss() -> Any:
        optimizer.zero_grad()
        y = sum(((x - 0.3 * n) * (x - 0.3 * n).conj()).abs().sum() * (n + 1) for n, x in enumerate(params))
        y.backward()
        return y

    for _ in range(4):
        y = optimizer.step(loss)
        for plan in plans:
            plan.step(*[y.item()] * isinstance(plan, at.ReduceLROnPlateau))
        states = optimizer.state_dict()["state"]
        held = (
            [states[n][key] for n in sorted(states) for key in sorted({*states[n]} - APIECE)]
            if s.params is None
            else []
        )
        told += [*params, *(x for x in held if isinstance(x, library.Tensor) and x.ndim), y]
        told = [x.detach().clone() if isinstance(x, library.Tensor) else x for x in told]
        told += [float(group["lr"]) for group in optimizer.param_groups]
    return told


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
        whole = {"modules": modules, "optimizers": optimizers}.get(road)
        found = whole(dtype, which.get("only", "")) if whole else outcomes(road, dtype, **which)
        for name, kind, said in found:
            counted[kind] += 1
            if fuzz.unexplained(kind, fuzz.Call(name, (), {}), said, REASONS):
                told.append(f"{kind} {said}".replace("\n", " ")[:500])
    return counted, told


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("roads", nargs="*", default=[*ROADS, "modules", "optimizers"])
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
