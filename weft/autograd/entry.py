"""The entry of an op: a function generated for it when it is first called.

It takes the fast path if the thread is plain, every operand is local and its data is at hand: run the kernel, wrap the
result, record. Anything else (pending data, global or lazy operands, interceptors, wrong arguments) goes through
`call`. The generated text is a special case of `call` and `record`; `tests/autograd/test_entry.py` checks that they
agree.

An entry accepts any arguments, at some 30 ns for a correct call: those that don't fit go to `refit`, which resolves
aliases of keywords or raises an error with the signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import torch

from weft.autograd.call import call, edge, in_own_dtypes, zeros_of
from weft.autograd.inplace import in_place
from weft.autograd.node import Node, Slot
from weft.autograd.plain import again
from weft.core.dispatch import changed, here, hooks
from weft.core.late import written_late
from weft.ops.declaration import Op
from weft.ops.explain import ABSENT, missing, refit, taking_inplace
from weft.tensor.blob import Alias, Blob
from weft.tensor.tensor import Tensor
from weft.tensor.written import next_sequence
from weft.vm.dependency import shared

PLAIN: Final = "(not changed or here.plain)"
CASTABLE: Final = "(not changed or here.castable)"  # of views and new tensors, which torch's autocast leaves alone
INPLACE: Final = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation="bool")


def make_entry(op: Op, general: Callable[[Op, tuple[Any, ...]], Any] = call) -> Callable[..., Any]:
    """The entry of an op; `general` is its general path."""
    if op.conversion or (op.writes and not op.visible) or not op.operands:
        return _general(op)
    space = {**space_of(op), "call": general}
    meanwhile = while_traced(op, general)
    entry: Any = written_late(op.name, lambda: source_of(op), space, f"<weft entry of {op.name}>", meanwhile)
    return _described(entry, op)


def _described(entry: Any, op: Op) -> Callable[..., Any]:
    entry.__doc__, entry.__module__, entry.__wrapped__ = op.__doc__, op.__module__, op.__wrapped__
    entry.__qualname__ = f"{op.name}.entry"  # where a pickle, of a module that holds it, finds it
    if taking_inplace(op):
        own = inspect.signature(entry)
        takes = list(own.parameters.values())
        takes.insert(len(takes) - len(op.keywords), INPLACE)
        entry.__signature__ = own.replace(parameters=takes)
    return entry


def space_of(op: Op) -> dict[str, Any]:
    """The names that the text of an entry uses."""
    return {
        "here": here, "changed": changed, "new": object.__new__, "Tensor": Tensor, "Blob": Blob, "Node": Node, "op": op,
        "call": call, "Slot": Slot, "zeros_of": zeros_of, "edge": edge, "absent": ABSENT, "refit": refit,
        "missing": missing,
        "in_place": in_place, "kernel": op.kernel, "Alias": Alias, "shared": shared, "again": again,
        "next_sequence": next_sequence, "in_own_dtypes": in_own_dtypes, "hooks": hooks,
        "data_of": data_of, "any_wanting": any_wanting, "edges_of": edges_of, "any_other": any_other,
        **{f"default_{i}": p.default for i, p in enumerate(op.params)},
    }  # fmt: skip


def _general(op: Op) -> Callable[..., Any]:
    def entry(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(op.params):
            given = (*args[: len(op.params)], *(ABSENT for _ in op.params[len(args) :]))
            return refit(op, given, args[len(op.params) :], kwargs, call, in_place)
        return call(op, args)

    entry.__name__ = op.name
    return _described(entry, op)


def while_traced(op: Op, general: Callable[[Op, tuple[Any, ...]], Any]) -> Callable[..., Any]:
    """A call that isn't on the fast path, without generated text; NotImplemented for arguments that don't fit."""
    own = len(op.params) - len(op.keywords)
    defaults = {p.name: ABSENT if p.required else p.default for p in op.params}

    def meanwhile(*args: Any, **kwargs: Any) -> Any:
        named = dict(zip(op.names, args, strict=False))
        bound = {**defaults, **named, **kwargs}
        fits = len(args) <= own and len(bound) == len(defaults) and named.keys().isdisjoint(kwargs)
        complete = fits and not any(a is ABSENT for a in bound.values())
        return general(op, tuple(bound.values())) if complete else NotImplemented

    return meanwhile


def header_of(op: Op) -> list[str]:
    """Parameters of the generated function, which accept any call; `refits` checks that they fit the op."""
    header = [f"{p.name}={'absent' if p.required else f'default_{i}'}" for i, p in enumerate(op.params)]
    header.insert(len(op.params) - len(op.keywords), "*_rest")
    return [*header, "**_more"]


def refits(op: Op, then: str) -> list[str]:
    """Text for arguments that don't fit as given; with `inplace` alone among them, the call is that of `name_`."""
    refitted = f"return refit(op, ({', '.join(op.names)},), _rest, _more, {then}, in_place)"
    if then != "call" or not taking_inplace(op):
        return ["    if _rest or _more:", f"        {refitted}"]
    again = [f"{p.name}={p.name}" if p.keyword_only else p.name for p in op.params]
    return [
        "    if _rest or _more:",
        f"        if _rest or len(_more) > 1 or 'inplace' not in _more or {absent_in(op)}:",
        f"            {refitted}",
        "        if _more['inplace']:",
        f"            return hooks.overwriting(op)({', '.join(again)})",
    ]


def absent_in(op: Op) -> str:
    """Text that tells whether a required argument is absent."""
    return " or ".join(f"{p.name} is absent" for p in op.params if p.required)


def in_general(op: Op, run: str) -> list[str]:
    """Text for the general path, which needs every argument."""
    everything = f"({', '.join(op.names)},)"
    lines = []
    if absent_in(op):
        lines = [f"    if {absent_in(op)}:", f"        raise missing(op, {everything}{', True' * (run == 'in_place')})"]
    return [*lines, f"    return {run}(op, {everything})"]


def at_hand(op: Op, access: str = "") -> tuple[list[str], list[str]]:
    """Text that reads the operands' data as d0, d1, ... and sets `ready`; and the kernel's arguments."""
    lines, ready, kernel_args = ["        try:"], [access] if access else [], []
    for i, p in enumerate(op.params):
        data = p.name if p.kind == "attribute" else f"d{i}"
        if p.kind == "tensor":
            lines.append(f"            {data} = {blob_of(op, i)}.now")
            ready.append(f"{data} is not None")
        elif p.kind == "optional":
            lines.append(f"            {data} = {p.name} if {p.name} is None else {p.name}.blob.now")
            ready.append(f"({data} is not None or {p.name} is None)")
        elif p.kind == "operand":
            lines.append(f"            k{i} = {p.name}.__class__")
            lines.append(f"            {data} = {p.name} if k{i} is float or k{i} is int else {p.name}.blob.now")
            ready.append(f"{data} is not None")
        elif p.kind == "tensors":
            lines.append(f"            {data} = data_of({p.name})")
            ready.append(f"{data} is not None")
        kernel_args.append(f"{p.name}={data}" if p.keyword_only else data)
    for name in (op.names[i] for i in op.writes):  # nothing pending uses what is written, and no gradient goes there
        ready.append(f"({name} is None or ({name}.blob.access is None and not {name}._requires_grad))")
    lines.append("            ready = " + " and ".join(ready))
    lines += ["        except AttributeError:", "            ready = False"]
    return lines, kernel_args


def blob_of(op: Op, i: int) -> str:
    """Text for an operand's blob; one that the result will be a view of is kept as `base`."""
    blob = f"{op.names[i]}.blob"
    return f"(base := {blob})" if op.view and i == op.operands[0] else blob


def data_of(tensors: Any) -> list[Any] | None:
    """The data of a list of operands; None if one isn't at hand. None as an operand is kept: the kernel checks it."""
    if type(tensors) not in (list, tuple):
        return None
    found = []
    for t in tensors:
        data = None if t is None else t.blob.now
        if data is None and t is not None:
            return None
        found.append(data)
    return found


def any_wanting(tensors: Any) -> bool:
    for t in tensors:  # noqa: SIM110  (a generator takes longer)
        if t is not None and t._requires_grad:
            return True
    return False


def any_other(data: list[Any], dtype: torch.dtype) -> bool:
    """Whether the data of a list of operands has another dtype somewhere."""
    for d in data:  # noqa: SIM110
        if d is not None and d.dtype is not dtype:
            return True
    return False


def wanting(op: Op, i: int) -> str:
    """Text of whether an operand requires a gradient."""
    p = op.params[i]
    if p.kind == "tensor":
        return f"{p.name}._requires_grad"
    if p.kind == "tensors":
        return f"any_wanting({p.name})"
    test = f"{p.name} is not None" if p.kind == "optional" else f"k{i} is not float and k{i} is not int"
    return f"({test} and {p.name}._requires_grad)"


def source_of(op: Op) -> str:
    """The entry as Python text."""
    names = ", ".join(op.names)
    plain = CASTABLE if op.view else PLAIN
    lines = [f"def {op.name}({', '.join(header_of(op))}):", *refits(op, "call"), f"    if {plain}:"]
    if op.name in hooks.ruled:
        lines += ["        if changed and here.casting:", f"            {names}, = hooks.cast_operands(op, ({names},))"]
    reading, kernel_args = at_hand(op)
    lines += reading
    lines.append("        if ready:")
    lines.append("            try:")
    targets = ", ".join(f"r{j}" for j in range(len(op.returns)))
    lines.append(f"                {targets} = kernel({', '.join(kernel_args)})")
    lines.append("            except Exception as cause:")
    lines.append(f"                return again(op, cause, ({names},), call)")
    lines += wrapped(op)
    lines += in_general(op, "call")
    return "\n".join(lines) + "\n"


def wrapped(op: Op) -> list[str]:
    """Text that wraps the kernel's results r0, r1, ... in tensors, records the call, and returns them."""
    names, lines = op.names, []
    for j in range(op.visible):
        lines.append(f"            y{j} = new(Tensor)")
        if not op.view:
            lines.append(f"            y{j}.blob = b{j} = new(Blob)")
            lines.append(f"            b{j}.now = b{j}.data = r{j}")
            lines.append(f"            b{j}.access = None")
        else:
            of = op.names[op.operands[0]]
            lines.append("            access = base.access")
            lines.append("            if access is None or access.firsts is None:")
            lines.append("                access = shared(base)")
            lines.append(f"            y{j}.blob = b{j} = Alias(access)")
            lines.append(f"            b{j}.now = b{j}.data = r{j}")
            lines.append(f"            b{j}.access = access")
            attributes = "".join(f"{n}, " for i, n in enumerate(names) if i != op.operands[0])
            lines.append(f"            wants = {of}._requires_grad")
            lines.append(
                f"            y{j}._view_of = {of}, op, ({attributes}), {of}.node if wants else None, None, here.grad"
            )
    if op.vjp is not None and any(op.differentiable[: op.visible]):
        lines += _record(op)
    lines.append(f"            return {', '.join(f'y{j}' for j in range(op.visible))}")
    return lines


def _record(op: Op) -> list[str]:
    wants = ["wants"] if op.view else [wanting(op, i) for i in op.operands]
    pad = " " * 16
    lines = [f"            if ({' or '.join(wants)}) and here.grad:"]
    saved, versions, attributes = saved_by(op)
    slots = [j for j in range(op.visible) if op.differentiable[j]]
    lines += [
        f"{pad}made = new(Node)",
        f"{pad}made.op = op",
        f"{pad}made.edges = {tuple_of(edges_of_call(op))}",
        *promoted(op, pad, f"y{slots[0]}", f"r{slots[0]}"),
        f"{pad}made.sequence = next_sequence()",  # after those of views that are made anew for the edges
        f"{pad}made.saved = {tuple_of(saved)}",
        f"{pad}made.versions = {tuple_of(versions)}",
        f"{pad}made.attributes = {tuple_of(attributes)}",
        f"{pad}made.outputs = made.hooks = made.retained = made.origin = None",
        *(f"{pad}y{j}.node = {'made' if op.visible == 1 else f'Slot(made, {j})'}" for j in slots),
        *(f"{pad}y{j}._requires_grad = True" for j in slots),
    ]
    if op.visible > 1:
        lines.append(f"{pad}made.outputs = {tuple_of([f'zeros_of(r{j})' for j in range(op.visible)])}")
    if op.differentiable[0] and any("DType" in p.type for p in op.params):  # the result may be of integers
        lines[0] = (
            f"            if ({' or '.join(wants)}) and here.grad and (r0.is_floating_point() or r0.is_complex()):"
        )
    return lines


def tuple_of(parts: list[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def edges_of_call(op: Op) -> list[str]:
    """Text of where the operands' gradients go, of a call of which one wants a gradient."""
    edges = [_edge(op, i) for i in op.operands]
    if len(edges) == 1:
        return edges
    pairs = zip(edges, op.operands, strict=True)
    return [e if e.startswith("*") else f"({e}) if {wanting(op, i)} else None" for e, i in pairs]


def _edge(op: Op, i: int) -> str:
    """Text of where an operand's gradient goes; of a list, where those of its tensors go."""
    n = op.names[i]
    if op.params[i].kind == "tensors":
        return f"*edges_of({n})"
    return f"({n}.node or {n}) if {n}._view_of is None else edge({n})"


def edges_of(tensors: Any) -> list[Any]:
    """Where the gradients of a list of operands go."""
    return [
        None if t is None or not t._requires_grad else (t.node or t) if t._view_of is None else edge(t) for t in tensors
    ]


def saved_by(op: Op) -> tuple[list[str], list[str], list[str]]:
    """What a call leaves for its gradient: values, the versions of their memory, attributes."""
    saved: list[str] = []
    versions: list[str] = []
    attributes: list[str] = []
    for kind, place in op.saves:
        if kind == "operand":
            p = op.params[place]
            saved.append(f"list({p.name})" if p.kind == "tensors" else p.name)
            if p.kind == "tensors":
                versions.append(f"[0 if d is None else d._version for d in d{place}]")
            elif p.kind == "tensor":
                versions.append(f"d{place}._version")
            elif p.kind == "optional":
                versions.append(f"0 if d{place} is None else d{place}._version")
            else:
                versions.append(f"0 if k{place} is float or k{place} is int else d{place}._version")
        elif kind == "dtype":
            saved.append(f"d{place}.dtype")
            versions.append("0")
        elif kind == "shape":
            p = op.params[place]
            number = f"d{place} is None" if p.kind == "optional" else f"k{place} is float or k{place} is int"
            saved.append(f"d{place}.shape" if p.kind == "tensor" else f"None if {number} else d{place}.shape")
            versions.append("0")
        elif kind == "shapes":
            saved.append(f"tuple([d.shape for d in d{place}])")
            versions.append("0")
        elif kind == "output":
            saved.append(f"({f'b{place}' if place < op.visible else f'Blob(r{place})'}, None, None)")
            versions.append(f"r{place}._version")
        elif kind == "attribute":
            attributes.append(op.names[place])
    return saved, versions, attributes


def promoted(op: Op, pad: str, y: str = "y0", data: str = "r0") -> list[str]:
    """Text that casts gradients where tensors of two dtypes met. The result is `y`, its memory `data`."""
    if not (test := _promotes(op, data)):
        return []
    operands = ", ".join(f"{'*' * (op.params[i].kind == 'tensors')}{op.names[i]}" for i in op.operands)
    return [f"{pad}if {test}:", f"{pad}    made.edges = in_own_dtypes(made.edges, [{operands}], {y}.dtype)"]


def _promotes(op: Op, data: str) -> str:
    """Text that says whether tensors of two dtypes met, where they may."""
    if op.promotes or (op.visible > 1 and not op.lists and len(op.operands) > 1):
        return " or ".join(f"{wanting(op, i)} and d{i}.dtype is not {data}.dtype" for i in op.operands)
    if op.lists:
        return " or ".join(f"any_other(d{i}, {data}.dtype)" for i in op.operands if op.params[i].kind == "tensors")
    places = [i for i in op.operands if op.params[i].kind == "operand"]
    if len(places) != 2 or len(op.returns) > 1:
        return ""
    i, j = places
    tensors = " and ".join(f"k{n} is not float and k{n} is not int" for n in places)
    return f"{tensors} and d{i}.dtype is not d{j}.dtype"
