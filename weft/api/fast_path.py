"""Generated wrappers of public functions: a fast path for the usual call, like the entries of ops.

The fast path costs little more than the kernel. Every other call, wrong ones included, falls back to the function
that the wrapper was generated for.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch

from weft.autograd.entry import CASTABLE, PLAIN, any_wanting, blob_of, data_of, space_of, wrapped
from weft.autograd.overwrite import guarded, taped_base, unused
from weft.autograd.torch_node import TorchsCall, taped
from weft.core import random
from weft.core.device import Device
from weft.core.dispatch import changed, here, hooks
from weft.core.errors import ours
from weft.core.late import written_late
from weft.ops import OPS
from weft.ops.create.constructors import LARGE
from weft.ops.declaration import Op
from weft.ops.explain import ABSENT
from weft.tensor.blob import Blob
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor, of_torch
from weft.vm.dependency import writable

F = TypeVar("F", bound=Callable[..., Any])


class Short(NamedTuple):
    """The fast path of an adapter: the op that its call comes down to.

    kernel   text of the kernel's call, if it isn't the op's: with x's data as `d0`, and the op's attribute where the
             adapter takes `*sizes`, else the adapter's parameters; a result of None falls back
    settled  text that then sets the op's attributes, where they aren't the shape of the output
    """

    op: str
    kernel: str = ""
    settled: str = ""
    names: Mapping[str, Any] = {}  # that the texts use


class Parts(NamedTuple):
    """The fast path of a function that returns several views of x: text of the kernel's call, with x's data as `d0`,
    and the function that makes tensors of x and the parts, or returns None to fall back."""

    kernel: str
    views: Callable[..., Any]


class Making(NamedTuple):
    """The fast path of a function that creates a local tensor, on the CPU or on x's device, by one of torch's kernels.

    call     text of the kernel's arguments, without the dtype, which is added if one is asked for
    size     text of its size: large tensors fall back, so that they are checked for memory
    """

    kernel: Callable[..., Any]
    call: str
    size: str = "()"


class InOne(NamedTuple):
    """The fast path of a function composed of ops that torch has as one kernel: where no gradient is recorded.

    call     text of the kernel's arguments, with x's data as `d_x`; by default all of them, without the dtype
    writes   the kernel overwrites its first operand, which is returned; otherwise it returns a new tensor, or a bool
    derived  the path is taken where gradients are recorded, too, and torch's autograd gives them: it pays for
             compositions that take far longer
    over     the kernel of the function's `name_`, by default torch's
    """

    kernel: Callable[..., Any]
    call: str = ""
    writes: bool = False
    derived: bool = False
    over: Callable[..., Any] | None = None


def in_one(
    kernel: Callable[..., Any], call: str = "", writes: bool = False, derived: bool = False,
    over: Callable[..., Any] | None = None,
) -> Callable[[F], F]:  # fmt: skip
    """Give a function composed of ops the fast path by torch's kernel; its door takes it."""

    def mark(f: F) -> F:
        f.in_one = InOne(kernel, call, writes, derived, over)  # type: ignore[attr-defined]
        return f

    return mark


Way = Short | Parts | Making | InOne


def shortened(f: F, otherwise: Callable[..., Any], given: Way | None = None) -> F:
    """`f` with its fast path, by default by one kernel; what that can't take goes to `otherwise`."""
    way: Way = given or f.in_one  # type: ignore[attr-defined]
    space: dict[str, Any] = {"otherwise": otherwise, "longer": longer, "only_one": _only_one, "ours": ours}
    if isinstance(way, Short):
        space |= space_of(OPS[way.op]) | dict(way.names)
    elif isinstance(way, Parts):
        space |= {"here": here, "changed": changed, "absent": ABSENT, "views": way.views}
    else:
        space |= {
            "here": here, "new": object.__new__, "Tensor": Tensor, "Blob": Blob, "absent": ABSENT, "kernel": way.kernel,
            "made": torch.Tensor, "changed": changed, "cpus": CPUS, "prod": math.prod, "LARGE": LARGE,
            "drawn": random.on_cpu, "tensors": TENSORS, "told": _told, "writable": writable, "guarded": guarded,
            "data_of": data_of, "any_wanting": any_wanting, "taped": taped, "tape": TorchsCall(f, otherwise),
        }  # fmt: skip
    defaults = {p.name: p.default for p in inspect.signature(f).parameters.values()}
    space |= {f"default_{n}": v for n, v in defaults.items()} | {"defaults": defaults}
    name = f.__name__
    written: Any = written_late(name, lambda: source_of(f, way), space, f"<weft entry of {name}>", otherwise)
    functools.update_wrapper(written, otherwise)
    written.otherwise = otherwise
    return written


IDENTIFIER = re.compile(r"[a-z_]\w*\b(?!=)")  # but not a keyword argument
TAKEN = ("dtype", "device", "requires_grad")  # with other keywords, a call falls back
TENSORS = frozenset({Tensor, Parameter})
CPUS = {"cpu", Device("cpu"), torch.device("cpu")}


def source_of(f: Callable[..., Any], way: Way) -> str:
    """The function as Python text."""
    parameters = list(inspect.signature(f).parameters.values())
    plain = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    several = "_sizes" if any(p.kind is p.VAR_POSITIONAL for p in parameters) else "_rest"
    if isinstance(way, InOne) and not way.call:
        way = way._replace(call=_usual_call(parameters))
    others = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and (isinstance(way, InOne) or p.name in TAKEN)]
    required = {p.name for p in parameters if p.default is p.empty}
    header = [f"{n}={'absent' if n in required else f'default_{n}'}" for n in (*plain, *others)]
    header.insert(len(plain), f"*{several}")
    spread = several == "_sizes"
    if isinstance(way, Short):
        body = _of_op(OPS[way.op], way, plain, spread)
    elif isinstance(way, InOne):
        asked = {*re.findall(r"\b(?:d_)?([a-zA-Z]\w*)\b(?!=)", way.call)}
        unasked = [n for n in (*plain, *others) if n not in asked]
        options = [n for n in (*plain, *others) if n in asked]
        body = _of_one(way, unasked, options, {p.name: p.annotation for p in parameters}, [*plain, *others])
    else:
        body = _of_parts(way) if isinstance(way, Parts) else _of_making(way, plain, spread)
    usual = CASTABLE if not isinstance(way, Short) or OPS[way.op].view else PLAIN
    usual = "(not changed or here.local)" if isinstance(way, Making) and "x.blob" not in way.call else usual
    if isinstance(way, InOne) or (isinstance(way, Short) and way.op in hooks.ruled):
        usual = "(not changed or here.plain and not here.casting)"
    usual = " and ".join(["not _more", *(["not _rest"] if several == "_rest" else []), usual])
    given = "{" + ", ".join(f"{n!r}: {n}" for n in (*plain, *others)) + "}"
    handed = ", ".join([*plain, *(f"{n}={n}" for n in others)])
    unfit = " or ".join(["_more", "_rest", *(f"{n} is absent" for n in (*plain, *others) if n in required)])
    again = (
        []
        if spread or len(required) < len(parameters)
        else [f"    if not ({unfit}):", f"        return otherwise({handed})"]
    )
    return "\n".join([
        f"def {f.__name__}({', '.join(header)}, **_more):",
        f"    if {usual}{body[0]}:",
        *body[1:],
        *again,
        f"    return longer(otherwise, {plain}, defaults, {given}, {several}, _more)",
    ]) + "\n"  # fmt: skip


REFUSED = (
    "        except Exception as cause:",
    "            if not ours(cause):",  # raised by a signal handler
    "                raise",
)
MADE = (
    "            y0 = new(Tensor)",
    "            y0.blob = b0 = new(Blob)",
    "            b0.now = b0.data = r0",
    "            b0.access = None",
    "            return y0",
)
ONE = "_sizes if _sizes[0].__class__ is int else only_one(*_sizes)"


def _of_op(op: Op, way: Short, plain: Sequence[str], spread: bool) -> list[str]:
    """The condition and the lines of the fast path, for a call that comes down to an op's."""
    assert op.operands == (0,), f"{op.name}: the fast path is for ops of one operand"
    x, taken = op.names[0], 1 if way.kernel else len(op.params)
    asked = IDENTIFIER.findall(way.kernel)
    unasked = [n for n in plain[taken:] if n not in asked]
    renamed = [f"{own} = {n}" for own, n in zip(op.names[:taken], plain, strict=False) if own != n]
    settled = way.settled
    if not (settled or spread or {*op.names[1:]} <= {*plain}):
        assert op.shape_of == op.names[1], f"{op.name}: the fast path needs to know its attributes"
        settled = f"{op.shape_of} = r0.shape"
    kernel = way.kernel or f"kernel({', '.join(['d0', *op.names[1:]])})"
    return [
        "".join(f" and {n} is default_{n}" for n in unasked),
        *(f"        {line}" for line in renamed),
        "        try:",
        f"            d0 = {f'data_of({x})' if op.lists else f'{blob_of(op, 0)}.now'}",
        *([f"            {op.names[1]} = {ONE}"] if spread else []),
        f"            r0 = None if d0 is None else {kernel}",
        *REFUSED,
        "            r0 = None",
        "        if r0 is not None:",
        *([f"            {settled}"] if settled else []),
        *wrapped(op),
    ]


def _of_parts(way: Parts) -> list[str]:
    return [
        "",
        "        try:",
        "            d0 = x.blob.now",
        f"            parts = None if d0 is None else views(x, {way.kernel}, dim)",
        *REFUSED,
        "            parts = None",
        "        if parts is not None:",
        "            return parts",
    ]


def _of_making(way: Making, plain: Sequence[str], spread: bool) -> list[str]:
    """Likewise, for a function that creates a tensor from attributes alone."""
    size = way.size
    seen = {*TAKEN, *IDENTIFIER.findall(f"{way.call} {way.size}")}
    usual = [f"{n} is default_{n}" for n in plain if n not in seen]
    there = "device in cpus and x.blob.now.is_cpu" if "x.blob" in way.call else "device in cpus"
    usual += [f"(device is None or {there})"]
    there = "r0.__class__ is made"  # no number was one of Weft's tensors, which would have made another
    there += "" if "x.blob" in way.call else " and r0.is_cpu"  # torch may have a default
    return [
        "",
        "        r0 = None",
        "        try:",
        f"            if {' and '.join(usual)}:",
        *([f"                {size} = {ONE}"] if spread and size.isidentifier() else []),
        f"                if prod({size}) <= LARGE:",
        f"                    r0 = kernel({way.call}) if dtype is None else kernel({way.call}, dtype=dtype.torch)",
        *REFUSED,
        "            r0 = None",
        f"        if {there}:",
        *MADE[:-1],
        "            if requires_grad:",
        "                y0.requires_grad = True",
        MADE[-1],
    ]


def _usual_call(parameters: Sequence[inspect.Parameter]) -> str:
    def text(p: inspect.Parameter) -> str:
        value = f"d_{p.name}" if p is parameters[0] or "Tensor" in p.annotation or p.annotation == "Any" else p.name
        return f"{p.name}={value}" if p.kind is p.KEYWORD_ONLY else value

    return ", ".join(text(p) for p in parameters if p.name not in ("dtype", "generator"))


def _of_one(
    way: InOne, unasked: Sequence[str], asked: Sequence[str], types: Mapping[str, str], handed: Sequence[str]
) -> list[str]:
    """Likewise, for a function that torch has as one kernel. A tensor as an option isn't the kernel's: it would ask for
    this function again."""
    read, ready, wants = [], [f"{n} is default_{n}" for n in unasked], []
    first, *_ = operands = dict.fromkeys(re.findall(r"\bd_(\w+)", way.call))
    ready += [f"{n}.__class__ not in tensors" for n in asked if n not in operands]
    for n in operands:
        if types[n] == "Tensor":
            read.append(f"            d_{n} = {n}.blob.now")
            ready.append(f"d_{n} is not None")
            wants.append(f"{n}._requires_grad")
        elif types[n].startswith("Sequence[Tensor"):
            read.append(f"            d_{n} = data_of({n})")
            ready.append(f"d_{n} is not None")
            wants.append(f"any_wanting({n})")
        else:  # perhaps a number or None
            read.append(f"            d_{n} = {n}.blob.now if {n}.__class__ in tensors else {n}")
            ready.append(f"(d_{n} is not None or {n} is None)")
            wants.append(f"({n}.__class__ in tensors and {n}._requires_grad)")
    if way.writes:
        ready.append(unused(first))
        wants.append(taped_base(first))
    recorded: list[str] = []
    if way.derived:
        given, places = "".join(f"d_{n}, " for n in operands), tuple(map(handed.index, operands))
        recorded = [
            "                else:",
            f"                    y0 = taped(tape, lambda {given}: kernel({way.call}), ({given}), {places}, "
            f"[{', '.join(handed)}])",
            "                    if y0 is not None:",
            "                        return y0",
        ]
    return [
        "",
        "        r0 = None",
        "        try:",
        *read,
        f"            if {' and '.join(ready)}:",
        f"                if not (({' or '.join(wants)}) and here.grad):",
        f"                    r0 = kernel({way.call})",
        *recorded,
        *REFUSED,
        "            r0 = None",
        "        if r0.__class__ is made:",
        *([f"            return {first}"] if way.writes else MADE),
        "        if r0 is not None:",
        "            return told(r0)",
    ]


def _told(result: Any) -> Any:
    """A kernel's result that isn't one tensor: several, or a bool."""
    return result.__class__([of_torch(part) for part in result]) if isinstance(result, tuple) else result


def _only_one(sizes: Any) -> Any:
    return tuple(sizes) if sizes.__class__ is list else sizes


def longer(
    otherwise: Callable[..., Any], plain: Sequence[str], defaults: dict[str, Any], named: dict[str, Any],
    rest: tuple[Any, ...], more: dict[str, Any],
) -> Any:  # fmt: skip
    """The call as the user made it, as far as known: defaults left out, positional arguments positional."""
    given = {n: v for n, v in named.items() if v is not ABSENT and (v is not defaults[n] or (rest and n in plain))}
    ahead = [given.pop(n) for n in itertools.takewhile(list(given).__contains__, plain)]
    return otherwise(*ahead, *rest, **given, **more)
