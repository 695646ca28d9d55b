"""Whatever a public function is called with, it answers, or raises one of Weft's named errors: never a bare error of
Python's or torch's, never half done. What it doesn't overwrite stays as it was; what failed to be overwritten, too.
"""

from __future__ import annotations

import functools
import inspect
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as flow
from weft.api import table
from weft.core.errors import ArgumentError, DtypeError, IndexingError, OptionError, ShapeError, WeftError
from weft.functional.index import indexing
from weft.functional.linalg import decompositions, norms
from weft.functional.tensor import operators
from weft.nn import functional as F
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.system import comm
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.layouts import replaced

EXAMPLES = 10
ROOM = 1 << 30  # bytes that a call may ask for beyond what the process has: absurd requests fail here, not the machine
STATM = Path("/proc/self/statm")
LONG = 5.0  # seconds of one call's own time: it hangs
Function = Callable[..., Any]


def everything() -> Iterator[tuple[str, Function]]:
    """Every public function once, under the first of its names."""
    for place in ("flow", "tensor", "neural"):
        yield from ((f"{place}.{name}", f) for name, f in table.listed(place))
    yield from ((f"nn.functional.{name}", getattr(F, name)) for name in dir(F))
    yield from (
        (f"linalg.{name}", getattr(module, name)) for module in (decompositions, norms) for name in module.__all__
    )
    yield from ((f"_C.{name}", getattr(flow._C, name)) for name in dir(flow._C) if hasattr(flow._C, name))
    yield from ((f"tensor.{name}", f) for name, f in operators.operators().items())
    yield "tensor.__getitem__", indexing.getitem
    yield "tensor.__setitem__", indexing.setitem


FUNCTIONS: dict[str, Function] = {}
_listed: set[int] = set()
for _name, _function in everything():
    waits = inspect.unwrap(_function).__module__ == comm.__name__  # for another rank's message
    _last = _name.rpartition(".")[2]
    sets = _last.startswith(("set_", "use_")) and not _name.startswith("tensor.")  # how the whole program goes on
    asserts = _last == "_assert"  # fails as `assert` does: that is its work
    if not waits and not sets and not asserts and id(_function) not in _listed:
        FUNCTIONS[_name] = _function
        _listed.add(id(_function))


WRITERS = (*operators.OVERWRITING, "__setitem__", "slice_update", "assign_local_tensor", "_copy_from_numpy")


def overwritten(name: str, f: Function, given: list[flow.Tensor]) -> list[flow.Tensor]:
    """The tensors that a function may change if it succeeds."""
    last = name.rpartition(".")[2]
    if last == "_copy_to_numpy":
        return given  # into what comes second
    inplace = (last.endswith("_") and not last.endswith("__")) or "inplace" in inspect.signature(f).parameters
    return given[:1] if inplace or last in WRITERS else []


# ---- arguments -----------------------------------------------------------------------------------------

DTYPES = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bool, torch.int8, torch.int32, torch.int64)
SIZES = st.sampled_from((2, 3, 1, 0))
SOME_SHAPES = st.lists(SIZES, max_size=4)
SHAPES = st.one_of(*[st.shared(SOME_SHAPES, key="shape")] * 2, SOME_SHAPES)  # most tensors of a call have one shape
HUGE = (2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, 10**30)
INTS = st.one_of(st.integers(-5, 5), st.integers(0, 3), st.sampled_from(HUGE))
FLOATS = st.sampled_from((0.5, 1.0, 0.0, -1.5, 1e-45, 1e308, float("nan"), float("inf"), float("-inf")))
WORDS = st.sampled_from(("", "mean", "sum", "none", "float32", "cpu", "cuda:9", "zeros", "linear", "ij->ji", "é"))
KINDS = st.sampled_from((flow.float32, flow.int64, flow.float16, flow.bool, flow.complex64, torch.float32, float, "x"))
DEVICES = st.sampled_from((flow.device("cpu"), "cpu", "cuda", flow.device("meta"), torch.device("cpu")))


@st.composite
def tensors(draw: Any) -> flow.Tensor:
    """Small numbers in some shape, dtype and order of memory, maybe with a gradient wanted, maybe a view."""
    shape, dtype = draw(SHAPES), draw(st.sampled_from(DTYPES))
    start, wants = draw(st.integers(-2, 3)), draw(st.integers(0, 19))
    data = ((torch.arange(torch.Size(shape).numel()).reshape(shape) + start) % 5 + min(start, 0)).to(dtype)
    if dtype.is_floating_point and data.numel() and wants == 19:
        data.view(-1)[0] = float("nan")
    if data.dim() > 1 and wants % 4 == 1:
        data = data.transpose(0, -1)
    x = of_torch(data)
    if dtype.is_floating_point and wants % 2:
        x.requires_grad = True
        x = x * 1 if wants > 9 else x
        x = flow.unsqueeze(x, 0)[0] if wants > 14 else x
    return x


TENSORS = tensors()
PLAIN = st.one_of(
    st.none(), st.booleans(), INTS, FLOATS, WORDS, KINDS, DEVICES,
    st.sampled_from((object, b"b", slice(0, None, -1), ..., 1j)), st.builds(dict), st.builds(set, st.just("ab")),
)  # fmt: skip
LEAVES = st.one_of(PLAIN, TENSORS)
LISTS = st.lists(LEAVES, max_size=3)
JUNK = st.one_of(PLAIN, TENSORS, LISTS, LISTS.map(tuple), st.lists(LISTS, max_size=2))


@functools.cache
def fitting(text: str) -> Any:
    """Values of the kind that a parameter's annotation names."""
    some: list[Any] = []
    for kind in (k.strip() for k in text.split("|")):
        if kind in ("Tensor", "torch.Tensor"):
            some += [TENSORS] * 3
        elif "Tensor" in kind:
            some.append(st.lists(TENSORS, max_size=3))
        elif kind in ("Scalar", "float"):
            some += [FLOATS, st.sampled_from((0.5, 1, 2.0))]
        elif kind == "int":
            some += [st.integers(-2, 3), INTS]
        elif kind == "bool":
            some.append(st.booleans())
        elif kind == "str":
            some.append(WORDS)
        elif kind == "DType":
            some.append(KINDS)
        elif kind.startswith(("Size", "Sequence", "tuple", "list", "Dims")):
            some += [st.lists(st.integers(-2, 3), max_size=4), st.lists(INTS, max_size=4), st.integers(-2, 2)]
        elif kind == "None":
            some.append(st.none())
    return st.one_of(some or [st.integers(-2, 3), TENSORS, JUNK])


FEW = st.integers(0, 2)
OFTEN = st.integers(0, 4)
SLIPS = st.integers(0, 15)
ANY_NUMBER = st.lists(JUNK, max_size=3)
WRONG_NAMES = st.sampled_from(("dim", "dtype", "wrong", "input", "out", "x", "é"))


@st.composite
def calls(draw: Any, name: str, f: Function, rows: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for a function: as declared, or from a sample of its op, and then some of them exchanged."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    parameters = list(inspect.signature(f).parameters.values())
    if name.startswith("tensor.__"):  # of a tensor, by Python
        return [draw(TENSORS), *(draw(JUNK) for _ in parameters[1:])], {}
    if rows and draw(FEW):
        args = list(rows[draw(SLIPS) % len(rows)]())
        for _ in range(draw(FEW)):
            args[draw(SLIPS) % len(args)] = draw(JUNK)
    else:
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                args += draw(ANY_NUMBER)
            elif p.default is not p.empty and draw(FEW):
                args += [p.default] if p.kind is p.POSITIONAL_OR_KEYWORD else []
            elif p.kind is not p.VAR_KEYWORD:
                kind = "Any" if p.annotation is p.empty else str(p.annotation)
                value = draw(fitting(kind) if draw(OFTEN) else JUNK)
                if p.kind is p.KEYWORD_ONLY:
                    kwargs[p.name] = value
                else:
                    args.append(value)
    match draw(SLIPS):
        case 0:
            args = args[:-1]
        case 1:
            args.append(draw(JUNK))
        case 2:
            kwargs[draw(WRONG_NAMES)] = draw(JUNK)
        case 3 if args:
            kwargs["self"] = args.pop()
    return args, kwargs


def samples(name: str) -> list[Any]:
    """An op's samples with Weft's tensors, those of floats in single precision; each made anew."""
    op = OPS.get(name.rpartition(".")[2].removesuffix("_"))
    if op is None:
        return []

    def row(args: Any, op: Op = op) -> Callable[[], Any]:
        held = registry.tensors(op, args)
        return lambda: replaced(op, args, [of_torch(t.float() if t.is_floating_point() else t.clone()) for t in held])

    return [row(args) for args in registry.cases(op)]


# ---- the law ---------------------------------------------------------------------------------------------


def inside(value: Any) -> Iterator[flow.Tensor]:
    if isinstance(value, flow.Tensor):
        yield value
    elif isinstance(value, (list, tuple, set)):
        for v in value:
            yield from inside(v)
    elif isinstance(value, dict):
        yield from inside(list(value.values()))


def state(t: flow.Tensor) -> tuple[Any, ...]:
    """Everything of a tensor that a call might change."""
    data = t.to_torch()
    held = data.contiguous().flatten().view(torch.uint8).tolist() if data.numel() else []
    return held, tuple(data.shape), data.stride(), data.dtype, data._version, t.requires_grad, t.node, t.grad, t.blob


class Late(BaseException):
    """Not one that a function would answer for."""


def ring(*_: Any) -> None:
    raise Late


def obeys(name: str, f: Function, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Call it; an AssertionError tells which law it broke."""
    given = list(inside([args, kwargs]))
    before = [state(t) for t in given]

    def told() -> str:
        return f"{name}(*{args}, **{kwargs})"

    result, error = None, None
    signal.setitimer(signal.ITIMER_VIRTUAL, LONG)
    try:
        result = f(*args, **kwargs)
        for y in inside(result):
            if y.numel() < 1 << 20:  # a view may be as large as it likes
                y.to_torch().clone()
    except WeftError as named:
        error = named
        assert str(named), f"{told()}: an error that says nothing"
    except Exception as raw:
        twice = isinstance(raw, TypeError) and "multiple values for argument" in str(raw)
        if not twice or raw.__traceback__ is None or raw.__traceback__.tb_next is not None:
            raise AssertionError(f"{told()}: raised {type(raw).__name__}: {raw}") from raw
        error = raw  # Python's own, before anything of Weft's is called
    except Late as late:
        raise AssertionError(f"{told()}: took too long") from late
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    op = OPS.get(name.rpartition(".")[2])
    if op is not None and op.writes:  # an optimizer's, of lists that it writes one after another
        return
    changing = overwritten(name, f, given) if error is None else []
    for t, held in zip(given, before, strict=True):
        if not any(t is c for c in changing):
            assert state(t) == held, f"{told()}: changed {held}\nto {state(t)}, having {error or 'returned'}"
    if name.split(".")[0] in ("flow", "tensor", "neural") and not changing:
        for y in [y for y in inside(result) if y.node is not None and y.numel() < 1 << 20][:1]:
            try:
                y.backward(flow.ones_like(y))
            except WeftError:
                pass
            except Exception as raw:
                raise AssertionError(f"{told()}: backward raised {type(raw).__name__}: {raw}") from raw


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    """Settings of the whole program come back; memory is bounded meanwhile."""
    dtype, threads, limit = flow.get_default_dtype(), torch.get_num_threads(), resource.getrlimit(resource.RLIMIT_AS)
    if STATM.exists():
        held = int(STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, limit[1]))
    before = signal.signal(signal.SIGVTALRM, ring)
    yield
    signal.signal(signal.SIGVTALRM, before)
    resource.setrlimit(resource.RLIMIT_AS, limit)
    flow.set_default_dtype(dtype)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_call_is_answered_or_refused_by_name(name: str) -> None:
    f, rows = FUNCTIONS[name], samples(name)

    @settings(max_examples=EXAMPLES)
    @given(calls(name, f, rows))
    def check(call: tuple[list[Any], dict[str, Any]]) -> None:
        obeys(name, f, *call)

    check()


def test_an_error_of_a_function_that_is_called_back_is_its_own() -> None:
    def f(x: float) -> float:
        raise KeyError(x)

    with pytest.raises(KeyError, match=r"1\.0"):
        flow.ones(1).apply_(f)


def test_another_view_of_a_tensor_leaves_its_gradient_alone() -> None:
    x = flow.ones(2)
    y = flow.asarray(x, requires_grad=True)
    assert y.requires_grad and not x.requires_grad and y.data_ptr() == x.data_ptr()
    assert flow.asarray(y) is y and not flow.asarray(y, requires_grad=False).requires_grad and y.requires_grad


def test_what_joins_a_vector_of_nothing_has_a_gradient() -> None:
    x, nothing = flow.ones(2, 3, requires_grad=True), flow.ones(0, requires_grad=True)
    flow.cat([nothing, x, x], 1).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[2.0] * 3] * 2
    assert nothing.grad is not None and nothing.grad.shape == (0,)


SLIPS_FOUND: list[tuple[str, type[WeftError], str]] = [
    # more memory than there is
    ("flow.ones(2**40)", ShapeError, r"float32\[1099511627776\] takes 4096 GiB.*Split it over ranks"),
    ("flow.zeros(2**62, 2**62)", ShapeError, "GiB"),
    ("flow.arange(2**50)", ShapeError, "GiB"),
    ("flow.randperm(2**40)", ShapeError, "8192 GiB"),
    ("flow.rand(2**20, 2**20)", ShapeError, "4096 GiB"),
    ("flow.linspace(0, 1, 2**40)", ShapeError, "4096 GiB of memory"),
    ("flow.nn.functional.one_hot(flow.tensor([1]), 2**40)", ShapeError, "8192 GiB of memory"),
    ("flow.ones(2, 2).repeat(2**20, 2**20)", ShapeError, "GiB of memory"),
    # more parts than anybody means
    ("flow.ones(3).tensor_split(2**31)", ArgumentError, "2147483648 parts"),
    ("flow.ones(0).chunk(2**31)", ArgumentError, "2147483648 parts"),
    # kernels that would read what isn't theirs, or divide by zero
    ("flow.expand(flow.ones(0), (-1, 0, 0))", ShapeError, "not allowed for a new dimension"),
    (
        "flow._C.batch_norm_grad(X, X, W, W, None, E, E, False, 1e-5, (True,) * 3)",
        ShapeError,
        "one for each of its 5 channels",
    ),
    ("flow._C.log_softmax_grad(flow.ones(0), flow.ones(2, 2), 0)", ShapeError, "must have one shape"),
    ("flow.triu_indices(2**31, 2**31)", ShapeError, "."),
    ("flow.combinations(flow.ones(2**20), 3)", ShapeError, "192153034345676800 rows of 3"),
    # what adapters stumble over
    ("flow.round(flow.ones(1), 2**31)", OptionError, "accepted: round"),
    ("flow.flatten(3)", ArgumentError, r"'x' must be tensor, not int\n  given: flatten\(3\)\n  accepted: flatten\(x"),
    ("flow.stack(3)", ArgumentError, "'tensors' must be a sequence of tensors, not int"),
    ("flow.zeros_like(flow.ones(2), dtype=[])", DtypeError, r"\[\] is not a dtype"),
    ("flow.nn.functional.gelu(inplace=True)", ArgumentError, r"missing required argument 'x'.*accepted: gelu\(x"),
    ("flow.prod(None, [])", ArgumentError, "'x' must be tensor, not NoneType.*given: prod.*accepted: prod"),
    ("flow.transpose(flow.ones(2), None, perm=False)", ArgumentError, "'perm' must be Sequence"),
    ("F.embedding(None, None, None, 2.0)", ArgumentError, "'input' must be tensor, not NoneType"),
    ("flow._C.slice(flow.ones(2), 7)", ArgumentError, "'slice_tup_list' must be Sequence.*not int"),
    ("f'{flow.ones(2):.3f}'", ArgumentError, r"'\.3f' formats one number; this tensor has shape \[2\]"),
    ("flow.ones(2, dtype=flow.bfloat16).numpy()", DtypeError, r"NumPy has no weft.bfloat16; write x.float\(\)"),
    ("flow.hann_window(2.5, wrong=1)", ArgumentError, "wrong"),
]


@pytest.mark.parametrize(("expression", "kind", "words"), SLIPS_FOUND, ids=[row[0] for row in SLIPS_FOUND])
def test_slips_that_were_found(expression: str, kind: type[WeftError], words: str) -> None:
    names = {"X": flow.ones(4, 5, 3), "W": flow.ones(5), "E": flow.ones(0)}
    with pytest.raises(kind, match=f"(?s){words}"):
        eval(expression, {"flow": flow, "F": F, **names})


OUT_OF_RANGE: list[Callable[[Any, Any], Any]] = [
    lambda x, i: x.scatter_(0, i, flow.ones(3)),
    lambda x, i: x.scatter_(0, i, 2.0),
    lambda x, i: x.scatter_add_(0, i, flow.ones(3)),
    lambda x, i: x.index_add_(0, i, flow.ones(3)),
    lambda x, i: x.index_put_((i,), flow.ones(3)),
    lambda x, i: x.index_put_((i,), flow.ones(3), True),
    lambda x, i: x.__setitem__(i, flow.ones(3)),
    lambda x, i: x.index_fill_(0, i, 1.0),
]


@pytest.mark.parametrize("last", [4, -5])
@pytest.mark.parametrize("write", OUT_OF_RANGE)
def test_an_index_out_of_range_is_found_before_anything_is_written(write: Callable[..., Any], last: int) -> None:
    x = flow.zeros(4)
    with pytest.raises(IndexingError, match=f"{last} is out of"):
        write(x, flow.tensor([0, 1, last]))
    assert x.tolist() == [0.0] * 4
