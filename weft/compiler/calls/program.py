"""Lower a chain to a step of its task: calls in order, with the memory of their operands and results. Pure.

Kernels that take an `out` write into the arena, or straight into a register.
Small results of other kernels are copied there, so that their readers can be bound; the rest is allocated in each act.
A view of planned memory is free.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch

from weft.boxing.part import kernel_of
from weft.compiler import avoid_copies
from weft.compiler.arena import Block, aligned, plan
from weft.compiler.calls import moves, rows
from weft.compiler.calls.moves import Move
from weft.compiler.ends import variable_options
from weft.compiler.layout import Chain, Shape, Strides, own_strides
from weft.compiler.local_node import PLACED, SMALL, local_call, refs
from weft.core.dtype import named
from weft.core.substitution import substituted
from weft.job.memory_order import results
from weft.job.value import Node, Value
from weft.ops import OPS
from weft.ops.kernels import FORMATS, is_channels_last
from weft.plan.calls import FORM_ONLY, Call, Place, Ref, Result, Step
from weft.plan.overwriting import overwrites
from weft.plan.spans import Span, Strided, Use, contiguous, needed

FEW: Final = 1 << 10  # bytes of a constant if memory is tight


def lower_chain(chain: Chain) -> Step:
    return _Lowering(chain).step()


class _Lowering:
    def __init__(self, chain: Chain) -> None:
        self.chain, self.nodes, self.exports = chain, chain.nodes, chain.exports
        self.moves = {n: Move.of(n, chain.rank) for n in self.nodes if n.op == "boxing" and n not in chain.crossings}
        self.last_read: dict[Value, int] = {}
        self.made_at: dict[Value, int] = {}
        for i, n in enumerate(self.nodes):
            for v in n.operands():
                self.last_read[v] = i
            self.made_at.update(dict.fromkeys(n.outputs, i))
        on_cpu = all(v.device_type == "cpu" for v in self.made_at)
        self.copied_in = {v for v in chain.imports if on_cpu and self._is_copied_in(v)}
        self.constant = self._constants()
        looked_at = {n.args[0] for n in self.nodes if self._is_view(n)}
        self.rows = rows.fused(
            self.nodes, lambda n: n in self.moves and self.moves[n].in_row and not self._has_register(n), chain.bytes,
            lambda v, i: self._alone(v, i) and v not in looked_at and not self.exports.get(v),
        )  # fmt: skip
        inside = {v for row in self.rows.values() for v in (*row.members, *row.outputs)}
        self.rows |= rows.gradients(self.nodes, chain.bytes, self._placeable, {*inside, *self.exports})
        inside |= {v for row in self.rows.values() for v in row.members}
        self.row_of = {v: n for n, row in self.rows.items() for v in row.offsets}
        copied = {v for n in self.nodes if self._copied(n) for v in n.outputs if not self.exports.get(v)} - inside
        planned = {v for n in self.nodes if n.op in OPS and self._planned(n) for v in n.outputs} - inside
        written = {v for v in planned - copied if not self.exports.get(v)}
        self.joined = avoid_copies.joined(
            self.nodes, copied.__contains__, written.__contains__, inside.isdisjoint, chain.shape
        )
        self.wholes = {part.whole for part in self.joined.values()}
        free = (copied | self._movable(written)) - self.joined.keys()
        self.ordered = avoid_copies.ordered(self.nodes, free.__contains__, chain.shape)
        self.strides = dict(chain.variables)  # of values in planned memory; None: contiguous
        self.allocated: dict[Value, Strides | None] = {}  # of values that kernels allocate
        self.views = self._views()
        self.views_of: dict[Value, Value] = {}  # from a view to its base
        for n in self.nodes:
            if n in self.views:
                base: Any = n.args[0]
                base = self.views_of.get(base, base)
                self.views_of.update((v, base) for v in n.outputs)
        takes = {n: self._takes(n, move) for n, move in self.moves.items() if not move.is_view}
        self.scratch, self.inside = ({n: t[i] for n, t in takes.items() if t[i]} for i in (0, 1))
        self.offsets, self.arena = self._memory()

    # ---- what is known of the nodes ------------------------------------------------------------------

    def _constants(self) -> set[Node]:
        """Nodes with a small, constant value: computed once, when the chain is bound."""
        found: set[Node] = set()
        known: set[Value] = set()
        most = FEW if self.chain.tight else SMALL
        for n in self.nodes:
            if n.op not in OPS or len(n.outputs) != 1 or self.exports.get(n.outputs[0]):
                continue
            op = OPS[n.op]
            if op.random or op.writes or op.keywords or (self.chain.bytes(n.outputs[0]) > most and not op.view):
                continue
            if n.op in FORM_ONLY or all(v in known for v in n.operands()):
                found.add(n)
                known.update(n.outputs)
        return found

    def _is_copied_in(self, v: Value) -> bool:
        """Whether a micro-batch's input is small, and copied to one place: else all that reads it would be bound to
        memory for each micro-batch."""
        return v in self.chain.unpacked and v.device_type == "cpu" and 0 < self.chain.bytes(v) <= SMALL

    def _movable(self, written: set[Value]) -> set[Value]:
        """The concatenations whose parts may have any strides: nothing is `written` contiguously, at any depth."""
        found, looked_at = set(self.wholes), {n.args[0] for n in self.nodes if n.view}
        for v, part in sorted(self.joined.items(), key=lambda item: self.made_at[item[0]]):  # the inner ones first
            inner = v in self.wholes and v not in looked_at
            if self.exports.get(part.whole) or (v not in found if inner else v in written):
                found.discard(part.whole)
        return found

    def _is_view(self, n: Node) -> bool:
        """Whether its results can be views of its operand."""
        if n in self.constant:
            return False
        return n.view or (n in self.moves and self.moves[n].is_view)

    def _planned(self, n: Node) -> bool:
        """Whether its kernel writes its results into planned memory (`out`)."""
        if n in self.constant:
            return False
        if n.op == "fused":
            return True
        if n.op == "boxing":
            return n in self.moves and not self.moves[n].is_view and not self.moves[n].in_row
        return n.op in OPS and OPS[n.op].out_kernel is not None and not n.ranked and not OPS[n.op].random

    def _kept(self, n: Node) -> bool:
        """Whether its results are small, and copied into planned memory."""
        if n.op not in OPS or n in self.constant or self._planned(n) or OPS[n.op].view:
            return False
        sizes, most = map(self.chain.bytes, n.outputs), PLACED if self.chain.tight else SMALL
        return not OPS[n.op].random and all(0 < size <= most for size in sizes)

    def _copied(self, n: Node) -> bool:
        """Whether its results are copied into planned memory, which may have any strides."""
        return self._kept(n) or (self._planned(n) and n.op in OPS and OPS[n.op].strided)

    def _placeable(self, n: Node) -> bool:
        return self._planned(n) or self._kept(n)

    def _alone(self, v: Value, i: int) -> bool:
        """Whether a value is made in planned memory and read by the i-th node only."""
        made = self.made_at.get(v)
        return made is not None and self._planned(self.nodes[made]) and self.last_read.get(v) == i

    # ---- views ---------------------------------------------------------------------------------------

    def _strided(self, v: Value) -> Strides | None:
        """The strides of a value, in planned memory or as its kernel allocates it; None: contiguous."""
        return self.strides[v] if v in self.strides else self.allocated.get(v)

    def _laid(self, v: Value) -> torch.Tensor:
        """A meta tensor with a value's form and strides."""
        strides = self._strided(v)
        return self._blank(v) if strides is None else _meta(self.chain.shape(v), strides, v)

    def _views(self) -> set[Node]:
        """The nodes whose results are views (a reshape may have to copy). Computes all strides."""
        found: set[Node] = set()
        strides = self.strides
        strides.update(dict.fromkeys(self.chain.imports))
        for n in self.nodes:
            if n in self.constant:
                strides[n.outputs[0]] = None
            elif self._is_view(n):
                planned, base, made = n.args[0] in strides, self._laid(n.args[0]), []
                with contextlib.suppress(RuntimeError):  # what is allocated may lie otherwise, after all
                    made = self.moves[n].view(base) if n in self.moves else self._viewed(n, base)
                    known = strides if planned else self.allocated
                    known.update((v, own_strides(t)) for v, t in zip(n.outputs, made, strict=True))
                if not planned or all(t.untyped_storage()._cdata == base.untyped_storage()._cdata for t in made):
                    found.add(n)
            else:
                made = self._made(n) or [self._contiguous(v) for v in n.outputs]
                for v, t in zip(n.outputs, made, strict=True):
                    self._stride(n, v, t)
        return found

    def _contiguous(self, v: Value) -> torch.Tensor | None:
        """A contiguous meta tensor of a value's form, if its strides may fit another order, too."""
        return self._blank(v) if len(self.chain.shape(v)) in FORMATS else None

    def _made(self, n: Node) -> Sequence[torch.Tensor]:
        """Meta tensors of a node's results, as its kernel makes them of operands that lie so; none if these are
        contiguous, and so are the results."""
        op, given = OPS.get(n.op), n.operands()
        if n.op == "fused":
            return self._made_together(n)
        turns = op is not None and (op.memory_order == "meta" or "channels_last" in op.names)
        if op is None or not n.outputs or (given and not turns and not any(map(self._strided, given))):
            return ()
        args, shapes = substituted(self._local(n)[0], Value, self._laid), [*map(self.chain.shape, n.outputs)]
        made = results(op, args, shapes, n.outputs[0].device_type)
        return [*map(_meta, shapes, made, n.outputs)]

    def _made_together(self, n: Node) -> Sequence[torch.Tensor]:
        laid = {v.name: self._laid(v) for v in n.args}
        for c in n.extra["calls"]:
            args = substituted(c.args, Ref, lambda r: laid[r.name])
            made = results(OPS[c.op], args, [r.shape for r in c.results], n.outputs[0].device_type)
            for r, strides in zip(c.results, made, strict=True):
                laid[r.name] = torch.empty_strided(r.shape, strides, dtype=named(r.dtype).torch, device="meta")
        return [laid[v.name] for v in n.outputs]

    def _viewed(self, n: Node, base: torch.Tensor) -> Sequence[torch.Tensor]:
        (_, *others), options = self._local(n)
        spec = n.outputs[0].spec
        if spec is not None and self.chain.rank not in spec.placement:
            return (base,)  # of a variable elsewhere: this rank gets what is sent
        made = kernel_of(OPS[n.op], dict(options).get("where"))(base, *others)
        return made if isinstance(made, (tuple, list)) else (made,)

    def _stride(self, n: Node, v: Value, made: torch.Tensor | None) -> None:
        """Set the strides of a computed value, which its kernel has `made` so unless its memory is planned; None:
        contiguous."""
        chain = self.chain
        in_row = n in self.moves and self.moves[n].in_row
        if n in chain.crossings or n.op in ("accumulate", "pack") or in_row or v in self.row_of:
            self.strides[v] = None
        elif v in self.joined:
            self.strides[v] = self._arranged(v).stride()
        elif self._placeable(n):
            turned = made is not None and v not in self.wholes and is_channels_last(made)
            laid = self._arranged(v) if v in self.ordered else made if turned else self._contiguous(v)
            self.strides[v] = None if self.exports.get(v) or laid is None else own_strides(laid)
        else:
            self.allocated[v] = None if made is None else own_strides(made)

    def _arranged(self, v: Value) -> torch.Tensor:
        """A value as a meta tensor, its dimensions in the chosen order."""
        if v in self.joined:
            whole, dim, start = self.joined[v]
            return self._arranged(whole).narrow(dim, start, self.chain.shape(v)[dim])
        return avoid_copies.arranged(lambda s: torch.empty(s, device="meta"), self.chain.shape(v), self.ordered.get(v))

    def _takes(self, n: Node, move: Move) -> tuple[int, int]:
        """The bytes of its scratch memory in the arena, and what it allocates: that too, if an operand is allocated."""
        given, outs, backend = n.operands(), n.outputs, self.chain.backend
        if move.in_row:
            size = sum(aligned(self.chain.bytes(v)) for v in outs)
            flat = [torch.empty(size // outs[0].dtype.itemsize, dtype=outs[0].dtype.torch, device="meta")]
            return move.takes(flat, flat, backend)
        scratch, inside = move.takes([*map(self._laid, given)], [*map(self._blank, outs)], backend)
        return (scratch, inside) if self.strides.keys() >= {*given} else (0, scratch + inside)

    def _blank(self, v: Value) -> torch.Tensor:
        """A contiguous meta tensor of a value's form."""
        return torch.empty(self.chain.shape(v), dtype=v.dtype.torch, device="meta")

    def _has_register(self, n: Node) -> bool:
        """Whether a register holds exactly the results of a fused all-reduce, which can then run in place there."""
        packets = {p.id: p for v in n.outputs for p in self.exports.get(v, ())[:1]}
        return len(packets) == 1 and all(p.entries.keys() == set(n.outputs) for p in packets.values())

    # ---- memory --------------------------------------------------------------------------------------

    def _memory(self) -> tuple[dict[Any, int], int]:
        """Offsets in the arena: of rows by their node, of its scratch by ("scratch", node), of the others by value."""
        nodes, last = self.nodes, dict(self.last_read)
        for n in reversed(nodes):  # a view keeps its base alive
            if n in self.views and isinstance(n.args[0], Value):
                last[n.args[0]] = max([last[n.args[0]], *(last.get(v, 0) for v in n.outputs)])
        parts: dict[Value, list[Value]] = {}
        for v, part in self.joined.items():
            parts.setdefault(part.whole, []).append(v)
        pieces = self._pieces() if self.chain.tight else {}
        blocks: list[Block] = []
        block_of: dict[Any, int] = {}

        def want(key: Any, bytes: int, first: int, until: int) -> None:
            block_of[key] = len(blocks)
            blocks.append(Block(bytes, first, until, pieces.get(key, ())))

        def begun(v: Value) -> int:
            """When the first part of a value is made."""
            return min([self.made_at[v], *map(begun, parts.get(v, ()))])

        def ended(v: Value) -> int:
            """When it, or a part of it, is last read."""
            return max([last.get(v, self.made_at[v]), *map(ended, parts.get(v, ()))])

        for v in self.copied_in:
            want(v, self.chain.bytes(v), 0, last.get(v, 0))
        for i, n in enumerate(nodes):
            row = self.rows.get(n)
            if row is not None:
                made = [self.made_at[v] for v in row.members]
                want(n, row.bytes, min([i, *made]), max([i, *(last.get(v, i) for v in (*row.outputs, *row.members))]))
            if self.scratch.get(n):
                want(("scratch", n), self.scratch[n], i, i)
            for v in n.outputs:
                if self._in_arena(n, v):
                    until = ended(v)
                    over = None if v in parts else self._over(n, v)
                    if over in block_of and blocks[block_of[over]].last == i:
                        block_of[v] = block_of[over]
                        b = blocks[block_of[v]]
                        whole = Span(0, b.bytes, b.first, b.last)
                        more = (*(b.pieces or (whole,)), *pieces[v]) if v in pieces else ()
                        blocks[block_of[v]] = b._replace(last=until, pieces=more)
                    else:
                        want(v, self.chain.bytes(v), begun(v), until)
        found = plan(blocks, self.chain.tight)
        return {key: found.offsets[place] for key, place in block_of.items()}, found.total

    def _pieces(self) -> dict[Value, tuple[Span, ...]]:
        """The lifetimes of values that aren't needed whole all the time."""

        def form(v: Value) -> Strided | None:
            if v not in self.strides:
                return None
            shape = self.chain.shape(v)
            return Strided(shape, self.strides[v] or contiguous(shape), v.dtype.itemsize)

        within: dict[Value, tuple[Value, int]] = {}
        for v, (whole, dim, start) in self.joined.items():
            within[v] = whole, start * self._arranged(whole).stride(dim) * v.dtype.itemsize
        uses = (Use(n.op, n.args, n.operands(), n.outputs, n in self.views) for n in self.nodes)
        return {v: tuple(spans) for v, spans in needed(uses, form, within).items()}

    def _over(self, n: Node, v: Value) -> Value | None:
        """The operand whose memory the result of an elementwise call may reuse, if this is its last use."""
        if not self._planned(n):
            return None
        alike = [
            w for w in overwrites(n.op, n.operands())
            if w.dtype is v.dtype and self.chain.shape(w) == self.chain.shape(v) and w in self.strides
            and self.strides[w] == self.strides[v] and w not in self.views_of
        ]  # fmt: skip
        roots = [self.views_of.get(w, w) for w in n.operands()]
        return next((w for w in alike if roots.count(w) == n.operands().count(w)), None)

    def _in_arena(self, n: Node, v: Value) -> bool:
        """Whether a value gets its own block of the arena."""
        if n in self.chain.crossings:
            return moves.merges(self.chain, n)
        if v in self.row_of or v in self.joined or self.exports.get(v):
            return False
        return self._placeable(n) or (self._is_view(n) and n not in self.views and n not in self.constant)

    def _place(self, n: Node, v: Value) -> Place:
        """The place of a result that is no view."""
        if n in self.constant:
            return Place("constant")
        if self._in_register(n, v):
            packet = self.exports[v][0]
            return Place("register", packet.offset(v), packet.id)
        if v in self.row_of:
            row = self.row_of[v]
            return Place("arena", self.offsets[row] + self.rows[row].offsets[v])
        if v in self.joined:
            whole, dim, start = self.joined[v]
            at = self._place(self.nodes[self.made_at[whole]], whole)
            step = self._arranged(whole).stride(dim) * v.dtype.itemsize
            return Place(at.kind, at.offset + start * step, at.register)
        return Place("arena", self.offsets[v]) if v in self.offsets else Place("made")

    def _in_register(self, n: Node, v: Value) -> bool:
        """Whether a value is written directly into its first register."""
        elsewhere = n in self.views or n in self.constant or n in self.chain.crossings or v in self.row_of
        return bool(self.exports.get(v)) and not elsewhere and v in self.strides

    # ---- the calls -----------------------------------------------------------------------------------

    def step(self) -> Step:
        calls = list(self._heads())
        for n in self.nodes:
            calls += self._calls(n)
            for v in n.outputs:
                calls += self._exported(n, v)
        return Step(tuple(calls), self.arena, self.chain.one_thread, self.chain.roomy)

    def result(self, v: Value, place: Place, shape: Shape | None = None, name: str | None = None) -> Result:
        laid = place.kind in ("register", "arena", "variable", "made") and shape is None
        strides = self._strided(v) if laid else None
        return Result(name or v.name, v.dtype.name, self.chain.shape(v) if shape is None else shape, place, strides)

    def _heads(self) -> Iterator[Call]:
        """The chain's inputs: entries of registers, and variables."""
        chain = self.chain
        for v, packet in chain.imports.items():
            owner = chain.unpacked.get(v)
            place = Place("register", packet.offset(v if owner is None else owner), packet.id)
            if owner is not None:
                place = Place("register", place.offset, packet.id, step=chain.bytes(v))
            name = f"{v.name}.given" if v in self.copied_in else v.name
            yield Call("read", results=(self.result(v, place, name=name),), name=name)
            if v in self.copied_in:
                kept = self.result(v, Place("arena", self.offsets[v]))
                yield Call("box.copy", (Ref(name),), (kept,), name=v.name)
        for v in dict.fromkeys(v for n in self.nodes for v in n.operands()):
            if v not in self.made_at and v in chain.variables:
                yield Call("variable", (), (self.result(v, Place("variable")),), variable_options(v), v.name)

    def _calls(self, n: Node) -> Iterator[Call]:
        at = n.where
        if n in self.chain.crossings:
            yield from moves.crossing(self.chain, n, self._place(n, n.outputs[0]), at)
        elif n in self.moves:
            yield self._moved(n, self.moves[n], at)
        elif n.op == "accumulate":
            (v,) = n.outputs
            assert self.exports.get(v), f"{n.name}: nobody reads the sum"
            yield Call("accumulate", refs(n.args), (self.result(v, self._place(n, v)),), name=n.name, at=at)
        elif n.op == "pack":
            yield self._packed(n, at)
        elif n.op == "fused":
            options, inner = n.extra.get("options", ()), n.extra["calls"]
            last = tuple(i for i, v in enumerate(n.args) if v in self.allocated and is_channels_last(self._laid(v)))
            options += (("channels_last", last),) * bool(last)
            yield Call("fused", refs(n.args), tuple(self._results(n)), options, n.name, calls=inner)
        else:
            args, options = self._local(n)
            strides = n.extra.get("strides")
            if strides and any(s is not None for s in strides):
                options = (*options, ("strides", tuple(strides)))
            op = "box.joined" if n.outputs and n.outputs[0] in self.wholes else n.op
            if op == "box.joined":
                args, options = args[:1], ()
            yield Call(op, refs(args), tuple(self._results(n)), options, n.name, at)

    def _results(self, n: Node) -> Iterator[Result]:
        for v in n.outputs:
            if n in self.views:
                yield self.result(v, Place("view", of=n.args[0].name))
            else:
                yield self.result(v, self._place(n, v))

    def _moved(self, n: Node, move: Move, at: str) -> Call:
        results = list(self._results(n))
        if self.scratch.get(n):
            place = Place("arena", self.offsets["scratch", n])
            results.append(Result(f"{n.outputs[0].name}.scratch", "uint8", (self.scratch[n],), place))
        options = (*move.options, ("allocates", self.inside[n])) if n in self.inside else move.options
        return Call(f"box.{move.kind}", refs(n.args[:1]), tuple(results), options, n.name, at)

    def _packed(self, n: Node, at: str) -> Call:
        """Copy a micro-batch's result into its slice of the output."""
        whole, k = n.outputs[0], self.chain.micro_batches
        assert self.exports.get(whole), f"{n.name}: nobody reads the outputs"
        shape = self.chain.shape(whole)
        part = shape[1:] if self.chain.shape(n.args[0]) == () else (shape[0] // k, *shape[1:])
        place = self._place(n, whole)
        place = Place(place.kind, place.offset, place.register, math.prod(part) * whole.dtype.itemsize)
        return Call("pack", refs(n.args), (self.result(whole, place, part),), name=n.name, at=at)

    def _exported(self, n: Node, v: Value) -> Iterator[Call]:
        """Copies of a value into the registers in which it wasn't computed."""
        for packet in self.exports.get(v, [])[self._in_register(n, v) :]:
            place = Place("register", packet.offset(v), packet.id)
            result = Result(f"{v.name}.{packet.name}", v.dtype.name, self.chain.shape(v), place)
            yield Call("box.copy", (Ref(v.name),), (result,), name=result.name)

    def _local(self, n: Node) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]]:
        return local_call(n, self.chain.rank)


def _meta(shape: Shape, strides: Strides, v: Value) -> torch.Tensor:
    """A meta tensor that lies so; torch's own `new_empty_strided` is slow there."""
    return torch.empty_strided(shape, strides, dtype=v.dtype.torch, device="meta")
