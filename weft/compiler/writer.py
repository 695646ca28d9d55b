"""Writes a chain's function: views of memory are made once, here; what is left are kernel calls, mostly with `out=`."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from weft.boxing import signature
from weft.boxing.part import kernel_of, local_arguments
from weft.compiler import abreast, collective, homes
from weft.compiler.layout import Packet, typed
from weft.core.spec import Spec
from weft.job.value import Node, Value
from weft.ops import OPS

if TYPE_CHECKING:
    from weft.compiler.program import Program

HEAD = 3  # the number of a function's first line in its source
FORM_ONLY = ("ones_like", "zeros_like", "full_like")  # the operand's form is all that they read


class Static(dict[Value, torch.Tensor]):
    """Values whose memory is known, and which value a tensor was first known as."""

    def __init__(self, given: Mapping[Value, torch.Tensor]) -> None:
        super().__init__()
        self.first: dict[int, Value] = {}
        for v, t in given.items():
            self[v] = t

    def __setitem__(self, v: Value, t: torch.Tensor) -> None:
        self.first.setdefault(id(t), v)
        super().__setitem__(v, t)


class Writer:
    """Writes one function: `static` values are memory known now, others are names of the function's own variables."""

    def __init__(
        self, program: Program, slots: Mapping[int, torch.Tensor], phase: int, variables: Mapping[Value, torch.Tensor],
        arena: torch.Tensor, run: Any,
    ) -> None:  # fmt: skip
        self.file = f"<weft chain {program.name}>"
        self.program, self.slots, self.phase, self.arena, self.run = program, slots, phase, arena, run
        self.static = Static(variables)
        self.names: dict[Value, str] = {}
        self.bound: dict[str, Any] = {}
        self.lines: list[str] = []
        self.origins: list[Node] = []  # of the lines
        for v, packet in program.imports.items():
            owner = program.unpacked.get(v)
            if owner is None:
                self.static[v] = self.packet_view(packet, v)
            else:
                whole = self.packet_view(packet, owner)
                size = whole.shape[0] // program.micro_batches
                self.static[v] = whole[phase * size : (phase + 1) * size]

    def packet_view(self, packet: Packet, v: Value) -> torch.Tensor:
        return packet.view(self.slots[packet.id], v)

    def memory_for(self, v: Value) -> torch.Tensor | None:
        """Where an output goes: its first register, its bucket, its place in the arena; None if nothing is planned."""
        p = self.program
        packets = p.exports.get(v)
        if packets:
            return self.packet_view(packets[0], v)
        if v in p.bucket_of:
            return typed(self.arena, p.in_bucket(v), p.shape(v), v.dtype)
        if v in p.joined:
            whole, dim, start = p.joined[v]
            memory = self.memory_for(whole)
            assert memory is not None
            return memory.narrow(dim, start, p.shape(v)[dim])
        if v in p.blocks:
            at = p.memory.offsets[p.blocks[v]]
            return homes.arranged(lambda s: typed(self.arena, at, s, v.dtype), p.shape(v), p.ordered.get(v))
        return None

    def name(self, hint: str, value: Any) -> str:
        """A name for something the function closes over."""
        base = re.sub(r"\W", "_", hint).lstrip("_0123456789") or "v"
        if keyword.iskeyword(base):
            base += "_"
        name, n = base, 1
        while name in self.bound and self.bound[name] is not value:
            n += 1
            name = f"{base}_{n}"
        self.bound[name] = value
        return name

    def expression(self, a: Any) -> str:
        """An argument as source text."""
        if isinstance(a, Value):
            if a in self.static:
                return self.name(a.name, self.static[a])
            return self.names[a]
        if isinstance(a, tuple) and any(isinstance(v, Value) for v in a):
            if all(v is None or v in self.static for v in a):
                listed = [None if v is None else self.static[v] for v in a]
                return self.name("many", listed)
            return "[" + ", ".join(self.expression(v) for v in a) + "]"
        if a is None or isinstance(a, (bool, int, str)) or (isinstance(a, float) and math.isfinite(a)):
            return repr(a)
        if isinstance(a, tuple) and all(isinstance(v, int) for v in a):
            return repr(a)
        return self.name("c", a)

    def is_static(self, a: Any) -> bool:
        if isinstance(a, Value):
            return a in self.static
        return all(map(self.is_static, a)) if isinstance(a, tuple) else True

    def node(self, n: Node) -> None:
        if n.op == "boxing":
            if n in self.program.crossings:
                collective.cross(self, n)
            else:
                collective.emit(self, n)
        elif n.op == "accumulate":
            self.accumulate(n)
        elif n.op == "pack":
            self.pack(n)
        else:
            self.call(n)
        for v in n.outputs:
            self.export(v, n)
        self.origins += [n] * (len(self.lines) - len(self.origins))

    def call(self, n: Node) -> None:
        op = OPS[n.op]
        args, kernel, cut = self.local(n)
        if op.abreast:
            args = self.long(n, args)
        if n in self.program.constant:
            held = [
                self.program.stand_in(a, self.arena.device)
                if n.op in FORM_ONLY and isinstance(a, Value)
                else self.known(a)
                for a in args
            ]
            self.static[n.outputs[0]] = kernel(*held)
            return
        if op.view and self.is_static(n.args[0]):
            made = kernel(*[self.static[a] if isinstance(a, Value) else a for a in args])
            if made.untyped_storage().data_ptr() == self.static[n.args[0]].untyped_storage().data_ptr():
                self.static[n.outputs[0]] = made
                return
            v, x = n.outputs[0], self.static[n.args[0]]  # a reshape that has to copy: in the order of the elements
            memory = self.memory_for(v)
            self.static[v] = made if memory is None else memory
            self.lines.append(f"{self.name(v.name, self.static[v].view(x.shape))}.copy_({self.expression(n.args[0])})")
            return
        outs = [self.memory_for(v) for v in n.outputs]
        if n.outputs and n.outputs[0] in self.program.wholes and outs[0] is not None:
            self.static[n.outputs[0]] = outs[0]  # its parts were made here
            return
        if not outs and op.prepare is not None and self.is_static(args) and self.prepared(n, op, args, outs):
            return
        if self.program.planned(n) and all(o is not None for o in outs):
            if op.prepare is not None and all(map(self.is_static, n.args)) and self.prepared(n, op, args, outs):
                return
            names = [self.name(v.name, o) for v, o in zip(n.outputs, outs, strict=True)]
            target = names[0] if len(names) == 1 else f"({', '.join(names)})"
            function = self.name(f"{n.op}_out", op.out_kernel)
            self.lines.append(f"{function}({target}, {self.arguments(op, args, positional=True)})")
            for v, o in zip(n.outputs, outs, strict=True):
                assert o is not None
                self.static[v] = o
            return
        text = f"{self.name(n.op, kernel)}({self.arguments(op, args)})"
        if op.random:
            text = self.run.draws.text(self, n, text, cut)
        elif outs and self.program.kept(n):
            memory = [o for o in outs if o is not None]
            if op.prepare is not None and not n.ranked and self.is_static(n.args):
                text = next(iter(self.prepared_texts(n, op, args, [])), text)
            self.into(n, memory, text)
            return
        targets = [self.variable(v) for v in n.outputs]
        self.lines.append(f"{', '.join(targets)} = {text}" if targets else text)

    def long(self, n: Node, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """An update's arguments, with one tensor for those that lie side by side in all its lists."""
        lists = abreast.lists_of(n)
        if not lists or not all(map(self.is_static, lists)):
            return args
        found = abreast.pieces([[self.static[v] for v in values] for values in lists])
        if found is None:
            return args
        written = [self.static[v] for i in OPS[n.op].writes if n.args[i] in lists for v in n.args[i]]
        # the pieces count their changes apart from the tensors whose memory they are
        self.lines.append(
            f"{self.name('changed', torch._C._increment_version)}({self.name(f'{n.name}_written', written)})"
        )
        longer = iter(found)
        return tuple(next(longer) if a in lists else a for a in args)

    def prepared(self, n: Node, op: Any, args: tuple[Any, ...], outs: list[torch.Tensor | None]) -> bool:
        """Emit the very call that the op makes for this memory, with its views taken now."""
        texts = self.prepared_texts(n, op, args, outs)
        if not texts:
            return False
        self.lines += texts
        for v, o in zip(n.outputs, outs, strict=True):
            assert o is not None
            self.static[v] = o
        return True

    def prepared_texts(self, n: Node, op: Any, args: tuple[Any, ...], outs: list[torch.Tensor | None]) -> list[str]:
        found = op.prepare(*outs, *[self.known(a) for a in args])
        texts = []
        for function, positional, keywords in found if isinstance(found, list) else [found] if found else []:
            parts = [self.literal(f"{n.name}_{i}", a) for i, a in enumerate(positional)]
            made = n.outputs[0].name if n.outputs else n.name
            parts += [f"{k}={self.literal(made, a)}" for k, a in keywords.items()]
            name = getattr(function, "__name__", n.op).partition(".")[0]
            function = getattr(function, "_op", function)  # torch's overload without the Python around it
            texts.append(f"{self.name(name, function)}({', '.join(parts)})")
        return texts

    def known(self, a: Any) -> Any:
        if isinstance(a, Value):
            return self.static[a]
        return [self.known(v) for v in a] if isinstance(a, tuple) and any(isinstance(v, Value) for v in a) else a

    def literal(self, hint: str, a: Any) -> str:
        """A tensor under the name of the value that it is; anything else as an argument."""
        if isinstance(a, (list, dict)):
            return self.name(hint, a)
        if not isinstance(a, torch.Tensor):
            return self.expression(a)
        known = self.static.first.get(id(a))
        return self.name(hint if known is None else known.name, a)

    def variable(self, v: Value) -> str:
        """A name for a variable of the function."""
        name = self.names[v] = self.name(v.name, object())
        self.bound[name] = None  # reserved
        return name

    def arguments(self, op: Any, args: tuple[Any, ...], positional: bool = False) -> str:
        parts = []
        for p, a in zip(op.params, args, strict=True):
            text = self.expression(a)
            parts.append(f"{p.name}={text}" if p.keyword_only and not positional else text)
        return ", ".join(parts)

    def local(self, n: Node) -> tuple[tuple[Any, ...], Callable[..., Any], tuple[slice, ...] | None]:
        args, kernel, cut = local_call(n, self.program.rank)
        return args, self.run.draws.kernel(n, kernel, self.static) if OPS[n.op].random else kernel, cut

    def into(self, n: Node, memory: list[torch.Tensor], text: str) -> None:
        """The text's values go into memory of their own."""
        names = [self.name(v.name, o) for v, o in zip(n.outputs, memory, strict=True)]
        for v, t in zip(n.outputs, memory, strict=True):
            self.static[v] = t
        copy = "" if len(names) == 1 else f"{self.name('copy', torch._foreach_copy_)}([{', '.join(names)}], {text})"
        self.lines.append(copy or f"{names[0]}.copy_({text})")

    def export(self, v: Value, n: Node) -> None:
        """Copies into the registers that don't hold the value already."""
        for i, packet in enumerate(self.program.exports.get(v, ())):
            target = self.packet_view(packet, v)
            if v in self.static and self.static[v].data_ptr() == target.data_ptr() and target.numel():
                continue
            if n.op in ("accumulate", "pack") and i == 0:
                continue
            self.lines.append(f"{self.name(f'{v.name}_{packet.name}', target)}.copy_({self.expression(v)})")

    def accumulate(self, n: Node) -> None:
        total = self.memory_for(n.outputs[0])
        assert total is not None, f"{n.name}: nobody reads the sum"
        name = self.name(n.outputs[0].name, total)
        verb = "copy_" if self.phase == 0 else "add_"
        self.lines.append(f"{name}.{verb}({self.expression(n.args[0])})")
        self.static[n.outputs[0]] = total

    def pack(self, n: Node) -> None:
        whole = self.memory_for(n.outputs[0])
        assert whole is not None, f"{n.name}: nobody reads the outputs"
        k = self.program.micro_batches
        part = whole.view(k, *whole.shape[1:])[self.phase] if self.program.shape(n.args[0]) == () else None
        if part is None:
            size = whole.shape[0] // k
            part = whole[self.phase * size : (self.phase + 1) * size]
        self.lines.append(f"{self.name(f'{n.name}_{self.phase}', part)}.copy_({self.expression(n.args[0])})")
        self.static[n.outputs[0]] = whole

    def finish(self) -> tuple[Callable[[], None], str]:
        name = re.sub(r"\W", "_", self.program.name)
        own = set(self.names.values())
        closed = [k for k in self.bound if k not in own]
        self.release(own)
        body = "\n".join(f"        {line}" for line in self.lines) or "        pass"
        source = f"def make({', '.join(closed)}):\n    def {name}():\n{body}\n    return {name}\n"
        space: dict[str, Any] = {}
        exec(compile(source, self.file, "exec"), space)
        function = space["make"](*[self.bound[k] for k in closed])
        return function, f"def {name}():\n" + "\n".join(f"    {line}" for line in self.lines or ["pass"])

    def release(self, own: set[str]) -> None:
        """Delete each variable of the function after the last line that reads it."""
        last = {word: i for i, line in enumerate(self.lines) for word in re.findall(r"\w+", line)}
        gone: dict[int, list[str]] = {}
        for name in sorted(own & last.keys()):
            gone.setdefault(last[name], []).append(name)
        for i in sorted(gone, reverse=True):
            if i < len(self.lines) - 1:
                self.lines.insert(i + 1, f"del {', '.join(gone[i])}")
                self.origins.insert(i + 1, self.origins[i])

    def explained(self, error: Exception) -> Exception:
        """What the kernel of the failing line says, which checks what the line's bare call takes for granted."""
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != self.file:
            trace = trace.tb_next
        n = self.origins[trace.tb_lineno - HEAD] if trace is not None else None
        if n is None or n.op not in OPS or OPS[n.op].writes or OPS[n.op].random or not self.is_static(n.args):
            return error
        args, kernel, _ = self.local(n)
        try:
            kernel(*[self.known(a) for a in args])
        except Exception as better:
            return better
        return error


def local_call(n: Node, rank: int) -> tuple[tuple[Any, ...], Callable[..., Any], tuple[slice, ...] | None]:
    """The arguments in local terms, the kernel of this rank's part, and what a draw keeps of the whole."""
    op = OPS[n.op]
    if not any(v.spec is not None for v in (*n.operands(), *n.outputs)):
        return n.args, op.kernel, None
    chosen = n.signature or signature.choose(op, tuple(_spec(a) for a in n.args))
    args = local_arguments(op, n.args, chosen, rank)
    cut = None
    if op.random:
        box = chosen.outputs[0].box(rank)
        cut = None if box is None else tuple(slice(a, b) for a, b in box)
    return args, kernel_of(op, chosen, rank), cut


def _spec(a: Any) -> Any:
    if isinstance(a, Value):
        assert isinstance(a.spec, Spec), f"{a} is local among global operands"
        return a.spec
    return tuple(_spec(v) for v in a) if isinstance(a, tuple) else a
