"""Choose the layout of an op: the candidate to which its inputs are cheapest to move, and whose partial sums are
cheapest to add up; ties go to less memory. Operands that fit as they lie stay so: then the sum is what was asked for.
A gradient's sum doesn't count, as it is added up once, after all batches.

Pure: from specs and attributes to specs. Eager global and lazy use the same function, so a graph's layouts are those of
the eager program.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from weft.boxing import planner
from weft.boxing.links import ONE_HOST, Links
from weft.boxing.steps import State, canonical
from weft.core import sbp as sbps
from weft.core.errors import PlacementError, SbpError
from weft.core.placement import Placement
from weft.core.program_line import warn
from weft.core.sbp import NdSbp, broadcast, split
from weft.core.spec import Spec
from weft.ops.declaration import OPS, Op
from weft.ops.form import Form
from weft.ops.infer import freeze, infer, thaw
from weft.ops.notation import Rule

_UNKNOWN: set[str] = set()  # ops that were warned of already


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """The layout chosen for a call: a spec per flattened operand and per output, hidden ones too."""

    placement: Placement
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    ranked: bool


Held = tuple[tuple[NdSbp, ...], ...]


def choose(
    op: Op, args: tuple[Any, ...], held: Held = (), links: Links = ONE_HOST, gradient: bool = False
) -> Signature:
    """The signature of a call. `args` hold a Spec in the place of every tensor.

    `held` lists, for each flattened operand, the other layouts in which it exists already, at no cost. `gradient`: the
    call computes a gradient.
    """
    return _choose(op.name, freeze(args), held, links, gradient)


def declared(op: Op, args: tuple[Any, ...], outputs: tuple[Spec | None, ...], links: Links = ONE_HOST) -> Signature:
    """The cheapest signature of a call whose outputs have these layouts: of a job's node."""
    return _choose(op.name, freeze(args), (), links, True, tuple(s.nd_sbp for s in outputs if s is not None))


def flatten(op: Op, args: tuple[Any, ...]) -> list[Any]:
    """The placeholders of tensors among the arguments, in order."""
    flat: list[Any] = []
    for i in op.operands:
        value = args[i]
        if op.params[i].kind == "tensors":
            flat.extend(v for v in value if v is not None)
        elif value is not None and not isinstance(value, (int, float, complex)):
            flat.append(value)
    return flat


def replaced(op: Op, args: tuple[Any, ...], make: Any) -> tuple[Any, ...]:
    """The arguments with `make(v)` for every tensor's placeholder v."""
    new = list(args)
    for i in op.operands:
        value = args[i]
        if op.params[i].kind == "tensors":
            new[i] = tuple(None if v is None else make(v) for v in value)
        elif value is not None and not isinstance(value, (int, float, complex)):
            new[i] = make(value)
    return tuple(new)


@functools.lru_cache(maxsize=1 << 16)
def _choose(
    name: str, frozen: tuple[Any, ...], held: Held, links: Links, gradient: bool, given: tuple[NdSbp, ...] | None = None
) -> Signature:
    call = _call(name, frozen)
    best: tuple[float, float, int, int] | None = None
    chosen: Combination | None = None
    stays = [_Stays(s, held[i] if held else ()) for i, s in enumerate(call.specs)]

    def moved(combination: Combination) -> int:
        pairs = zip(call.specs, stays, combination.inputs, strict=True)
        return sum(spec.bytes for spec, here, nd_sbp in pairs if nd_sbp not in here)

    # what moves least comes first: then few routes of the others, which take time to find, are worth a search
    for order, combination in sorted(enumerate(_legal(call)), key=lambda pair: moved(pair[1])):
        ins, outs, seconds = combination.inputs, combination.outputs, 0.0
        if given is not None and outs != given:
            continue
        most = math.inf if best is None else best[0]
        for spec, here, nd_sbp in zip(call.specs, stays, ins, strict=True):
            if nd_sbp not in here:
                seconds += _cost(spec, nd_sbp, links, most) if most or not spec.bytes else math.inf
                if seconds > most:
                    break
        if seconds <= most and not gradient:
            seconds += _adding_up(call, ins, outs, links)
        if seconds > most:
            continue
        memory = sum(_share(s.shape, call.placement, n) for s, n in zip(call.specs, ins, strict=True))
        memory += sum(_share(f.shape, call.placement, n) for f, n in zip(call.forms, outs, strict=True))
        changed = sum(n != s.nd_sbp for s, n in zip(call.specs, ins, strict=True))
        key = (seconds, memory, changed, order)
        if best is None or key < best:
            best, chosen = key, combination
    if chosen is None:
        if given is not None:
            raise SbpError(f"{name}: no layout of the op gives {', '.join(map(sbps.show, given))}")
        raise SbpError(
            f"{name}: no layout of the op fits {', '.join(map(str, call.specs)) or sbps.show(call.wanted or ())}"
            + (": an operand that is written can't be moved first" if call.written else "")
        )
    return _signature(call, chosen)


def _adding_up(call: _Call, ins: tuple[NdSbp, ...], outs: tuple[NdSbp, ...], links: Links) -> float:
    """Seconds that it takes at least to add up the partial sums that an op begins, except along axes where its operands
    ask for them: one is partial, or all that are split for it lie so. Without latency: a sum is mostly joined with
    others, or with a movement that comes anyway."""
    place, seconds, begun = call.placement, 0.0, set[int]()
    for k in range(place.ndim):
        if any(n[k].is_partial for n in outs) and not any(s.nd_sbp[k].is_partial for s in call.specs):
            split_for = [(s, n) for s, n in zip(call.specs, ins, strict=True) if n[k].is_split]
            if not split_for or any(n[k] is not s.nd_sbp[k] and n not in _Stays(s, ()) for s, n in split_for):
                begun.add(k)
    for form, nd_sbp in zip(call.forms, outs, strict=True):
        summed = split(0) if form.shape else broadcast
        to = tuple(summed if k in begun and s.is_partial else s for k, s in enumerate(nd_sbp))
        if to != nd_sbp:
            seconds += planner.cost(form.shape, form.dtype, place, nd_sbp, place, to, links.without_latency)
    return seconds


class _Stays:
    """The layouts in which an operand is there: its own under any name, and those held besides. Any other costs."""

    def __init__(self, spec: Spec, held: tuple[NdSbp, ...]) -> None:
        self.spec, self.known = spec, {spec.nd_sbp: True} | dict.fromkeys(held, True)
        self.form = canonical(spec.shape, State(spec.placement, spec.nd_sbp))

    def __contains__(self, nd_sbp: NdSbp) -> bool:
        found = self.known.get(nd_sbp)
        if found is None:
            state = State(self.spec.placement, nd_sbp)
            found = self.known[nd_sbp] = canonical(self.spec.shape, state) == self.form
        return found


@functools.lru_cache(maxsize=1 << 16)
def candidates(name: str, frozen: tuple[Any, ...]) -> tuple[Signature, ...]:
    """All distinct signatures that a call may have. `frozen` as in `choose`."""
    call = _call(name, frozen)
    distinct = {(c.inputs, c.outputs): c for c in reversed(list(_legal(call)))}
    return tuple(_signature(call, c) for c in reversed(distinct.values()))


def reason(
    op: Op, args: tuple[Any, ...], links: Links = ONE_HOST, given: Signature | None = None, gradient: bool = False
) -> str:
    """Why the signature of a call was chosen, as text: its cost, and that of the next best. `args` and `gradient` as in
    `choose`; `given`: the signature, if other things counted than its cost."""
    chosen, call = given or choose(op, args, (), links, gradient), _call(op.name, freeze(args))

    def parts(s: Signature) -> tuple[float, float]:
        ins, outs = (tuple(spec.nd_sbp for spec in specs) for specs in (s.inputs, s.outputs))
        moving = sum(_cost(spec, to, links) for spec, to in zip(call.specs, ins, strict=True))
        return moving, 0.0 if gradient else _adding_up(call, ins, outs, links)

    def seconds(s: Signature) -> float:
        return sum(parts(s))

    def cost(s: Signature) -> str:
        moving, adding = parts(s)
        return f"{moving * 1e6:.1f} us of moving" + f" and {adding * 1e6:.1f} us of adding up" * (adding > 0)

    def shown(s: Signature) -> str:
        ins, outs = ([sbps.show(spec.nd_sbp) for spec in specs] for specs in (s.inputs, s.outputs))
        return f"{', '.join(ins)} -> {', '.join(outs[: op.visible])}"

    others = [s for s in candidates(op.name, freeze(args)) if s.inputs != chosen.inputs]
    text = f"which runs as {shown(chosen)} ({cost(chosen)})"
    if not others:
        return f"{text}, the only way"
    other = min(others, key=seconds)
    if seconds(other) < seconds(chosen):  # an operand exists in this layout, or all layouts were chosen together
        return f"{text}; by itself {shown(other)} would take {cost(other)}"
    return f"{text}; the next best, {shown(other)}, takes {cost(other)}"


class _Call(NamedTuple):
    """A call before its layout is chosen."""

    op: Op
    specs: list[Spec]  # of its flattened operands
    forms: tuple[Form, ...]  # of its outputs
    placement: Placement
    rules: tuple[Rule, ...]
    wanted: NdSbp | None  # the layout of its output, if an attribute gives it
    written: list[int]


class Combination(NamedTuple):
    """A rule for each axis of the placement, read by operand and by output."""

    inputs: tuple[NdSbp, ...]
    outputs: tuple[NdSbp, ...]
    ranked: bool


def _call(name: str, frozen: tuple[Any, ...]) -> _Call:
    op, args = OPS[name], thaw(frozen)
    specs: list[Spec] = flatten(op, args)
    placement = _placement(op, args, specs)
    forms = infer(op, replaced(op, args, lambda s: Form(s.shape, s.dtype)))
    shapes, outputs = tuple(s.shape for s in specs), tuple(f.shape for f in forms)
    sizes = replaced(op, args, lambda s: s.shape)
    rules = tuple(r for r in op.rules(sizes, shapes, outputs) if _keeps_sums(op, r, specs, forms))
    wanted = None
    if op.placed is not None:
        wanted = sbps.nd(args[op.names.index("sbp")], placement.ndim, len(outputs[0]))
        if op.random and any(s.kind == "P" for s in wanted):
            raise SbpError(f"{op.name}: random values can be broadcast or split, not partial; got {sbps.show(wanted)}")
    if len(rules) == 1 and wanted is None:
        _warn(op, specs)
    places = op.operand_indices(sizes)
    written = [at for i in op.writes for at in places[op.names[i]]]
    return _Call(op, specs, forms, placement, rules, wanted, written)


def _keeps_sums(op: Op, rule: Rule, specs: list[Spec], forms: tuple[Form, ...]) -> bool:
    """Whether parts of a sum stay such in the result's dtype: integers wrap, and a narrower dtype rounds each part."""
    taken = [s.dtype for s, n in zip(specs, rule.inputs, strict=True) if n is sbps.partial_sum]
    given = {f.dtype for f, n in zip(forms, rule.outputs, strict=True) if n is sbps.partial_sum}
    return all(
        a.to_real().itemsize <= b.to_real().itemsize
        if a.differentiable and b.differentiable
        else a is b and not op.rounds
        for a in taken
        for b in given
    )


def _legal(call: _Call) -> Iterator[Combination]:
    """The combinations of a rule for each axis that fit each other, the attributes, and operands written in place."""
    for rules in itertools.product(call.rules, repeat=call.placement.ndim):
        if not _fits(rules, call.placement):
            continue
        ins = tuple(tuple(r.inputs[i] for r in rules) for i in range(len(call.specs)))
        if any(ins[i] != call.specs[i].nd_sbp for i in call.written) or _begins_a_factor(call, ins):
            continue
        outs = tuple(tuple(r.outputs[i] for r in rules) for i in range(len(call.forms)))
        if call.wanted is None or outs[0] == call.wanted:
            yield Combination(ins, outs, any(r.ranked for r in rules))


def _begins_a_factor(call: _Call, ins: tuple[NdSbp, ...]) -> bool:
    """Whether an operand would become a partial sum to be multiplied, where none is: zeros times infinity are nan."""
    for k in range(call.placement.ndim):
        begun = any(n[k].is_partial for n in ins) and not any(s.nd_sbp[k].is_partial for s in call.specs)
        if begun and broadcast in (n[k] for n in ins):
            return True
    return False


def _signature(call: _Call, chosen: Combination) -> Signature:
    return Signature(
        call.placement,
        tuple(spec.replace(nd_sbp=n) for spec, n in zip(call.specs, chosen.inputs, strict=True)),
        tuple(Spec(f.shape, f.dtype, call.placement, n) for f, n in zip(call.forms, chosen.outputs, strict=True)),
        chosen.ranked,
    )


def _placement(op: Op, args: tuple[Any, ...], specs: list[Spec]) -> Placement:
    places = {s.placement for s in specs}
    if op.placed is not None and args[op.placed] is not None:
        places.add(args[op.placed])
    if len(places) > 1:
        shown = " and ".join(sorted(map(str, places)))
        raise PlacementError(
            f"{op.name}: operands lie on different placements, {shown}. "
            "Move them to one first: x.to_global(placement=..., sbp=...)"
        )
    return places.pop()


def _fits(combination: tuple[Rule, ...], placement: Placement) -> bool:
    for rule in combination:
        if rule.even:
            ranks = math.prod(n for n, r in zip(placement.shape, combination, strict=True) if r is rule)
            if any(size % ranks for size in rule.even):
                return False
            # another axis that splits the same dimension by another rule would split the groups
            if any(r is not rule and _shares(r, rule) for r in combination):
                return False
    return True


def _shares(a: Rule, b: Rule) -> bool:
    return any(x.dim >= 0 and x is y for x, y in zip((*a.inputs, *a.outputs), (*b.inputs, *b.outputs), strict=True))


def _cost(spec: Spec, nd_sbp: NdSbp, links: Links, most: float = math.inf) -> float:
    if spec.nd_sbp == nd_sbp:
        return 0.0
    return planner.cost(spec.shape, spec.dtype, spec.placement, spec.nd_sbp, spec.placement, nd_sbp, links, most)


def _share(shape: tuple[int, ...], placement: Placement, nd_sbp: NdSbp) -> float:
    total = float(math.prod(shape))
    for n, s in zip(placement.shape, nd_sbp, strict=True):
        if s.kind == "S":
            total /= n
    return total


def _warn(op: Op, specs: list[Spec]) -> None:
    """Warn once that an op's operands are gathered because it has no layout rule. One element can't be split anyway."""
    parts = [s for s in specs if math.prod(s.shape) != 1 and any(x is not broadcast for x in s.nd_sbp)]
    if op.name in _UNKNOWN or op.dynamic or not parts:
        return
    _UNKNOWN.add(op.name)
    moved = sum(s.bytes for s in specs if any(x is not broadcast for x in s.nd_sbp))
    warn(
        f"{op.name} has no layout rule for {', '.join(map(str, specs))}: its operands are made whole on every rank "
        f"({moved:,} bytes). Give the op a layout to avoid that"
    )
