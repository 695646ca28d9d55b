"""The builder of a job while a program is traced: it names values, captures tensors, and records lines of code."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from weft.boxing.signature import Signature
from weft.core import program_line, random
from weft.core.device import Device
from weft.core.dispatch import here, hooks
from weft.core.dtype import DType, float32, float64
from weft.core.errors import SbpError, ShapeError, TraceError
from weft.core.literal import cleaned
from weft.core.placement import Placement
from weft.core.sbp import NdSbp, broadcast
from weft.core.spec import Spec
from weft.job.aliasing import Memories
from weft.job.attributes import Attributes
from weft.job.job import Job
from weft.job.memory_order import Order
from weft.job.shares import Gradients
from weft.job.value import Node, Value
from weft.ops import OPS, ops
from weft.tensor.blob import Blob, blob_of
from weft.tensor.tensor import Tensor, of_value

Form = tuple[tuple[int, ...], DType, Spec | None, Device]


class Settings(NamedTuple):
    """A graph's settings of a module: stage and checkpointing."""

    path: str
    stage: int | None = None
    placement: Placement | None = None
    checkpoint: bool = False


class Builder:
    """The trace in progress. `modules` has, by identity, what gives the settings of a called module."""

    def __init__(self, job: Job, modules: Mapping[int, Any]) -> None:
        self.job, self.modules = job, modules
        self.settings = Settings("")
        self.updating = False  # whether this is the optimizers' part, which runs once a launch
        self.losses: list[Value] = []
        self.draws = 0  # so far
        self.memories = Memories()
        self.order = Order(job, self.memories)
        self.gradients = Gradients(job, self.times)
        self.numbers: dict[str, dict[Placement | Device, Value]] = {}
        self.attributes = Attributes(self.memories)
        self._written: dict[int, Tensor] = {}  # captured tensors that the program writes in place
        self.guarded = 0  # above 0, the program may read what follows from arguments
        self.arguments: dict[Value, Tensor] = {}  # by input, what the call in which it is traced gives
        self.expected: list[Any] = []  # what the program has read of values that follow from these
        self.fixed_tensors: dict[int, tuple[Tensor, str]] = {}  # by blob: the program has read their values, and where
        self._cut: Value | None = None  # of the global inputs that are cut into micro-batches, the one of fewest rows
        self._moved: dict[Value, dict[NdSbp, None]] = {}
        # the rest by the id of a tensor's blob, which is kept alive so that the id stays valid
        self._values: dict[int, tuple[Blob, Value]] = {}
        self._within: dict[int, list[Value]] = {}  # the variables in each memory
        self._read_as: dict[int, tuple[Blob, NdSbp]] = {}
        self._read: dict[int, Value] = {}  # their values as ops read them
        self._names: dict[int, tuple[Blob, str, Tensor]] = {}
        self._counts: dict[str, int] = {}

    def add(
        self, op: str, args: tuple[Any, ...], forms: Sequence[Form], *, name: str = "", chosen: Signature | None = None
    ) -> tuple[Value, ...]:
        """Append a node, and return its outputs."""
        at = self.settings
        name = self.unique(name or "-".join(filter(None, (at.path, op))))
        outputs = tuple(
            Value(name if len(forms) == 1 else f"{name}:{i}", shape, dtype, spec, device)
            for i, (shape, dtype, spec, device) in enumerate(forms)
        )
        node = Node(name, op, args, outputs, at.path, program_line.brief(), stage=at.stage)
        node.micro = op == "unpack" or (op not in LEAVING and self._each_time(node))
        if chosen is not None:
            node.ranked, node.signature = chosen.ranked, chosen
        if self.losses:
            node.extra["backward"] = True
        elif at.checkpoint:
            node.extra["checkpoint"] = True
        if node.draws:
            node.extra["source"] = random.source()
            laid = self.order.laid
            node.extra["strides"] = [None if v.spec is not None else laid(v).stride() for v in node.operands()]
            self.draws += 1
        self.job.append(node)
        if (shares := self.gradients.shares) and not shares.isdisjoint(node.operands()):
            shares.update(outputs)
        return outputs

    def steer(self, source: random.Source, verb: str, seed: int | None = None) -> None:
        """Let each launch do this to a random source, in program order between draws: "seed" it, or "fork" it, so that
        draws until "join" don't advance it."""
        self.add("steer", (verb, seed), ())
        self.job.nodes[-1].extra["source"] = source

    def _each_time(self, node: Node) -> bool:
        """Whether a node runs once per micro-batch: because it reads such values, or draws."""
        if self.job.micro_batches == 1:
            return False
        return node.op == "steer" or node.draws or any(map(self.job.is_micro, node.operands()))

    def unique(self, name: str) -> str:
        name = cleaned(name)
        count = self._counts.get(name)
        self._counts[name] = 0 if count is None else count + 1
        return name if count is None else self.unique(f"{name}-{count + 1}")

    def held(self, v: Value) -> tuple[NdSbp, ...]:
        """The layouts to which a value was already moved, where reading it again is free."""
        return tuple(self._moved.get(v, ()))

    def moves(self, values: Sequence[Value], wanted: Sequence[Spec]) -> None:
        """Record the layouts in which values are about to be read."""
        for v, spec in zip(values, wanted, strict=True):
            if v.spec is not spec and self.job.producer[v].op != "variable":
                self._moved.setdefault(v, {})[spec.nd_sbp] = None

    # ---- what comes in ---------------------------------------------------------------------------------

    def name_of(self, t: Tensor, name: str) -> None:
        """Give a tensor a name before it is captured: a parameter's path."""
        self._names.setdefault(id(blob_of(t)), (blob_of(t), name, t))

    def named(self, t: Tensor) -> bool:
        """Whether it is a parameter or a buffer of the graph's modules."""
        return id(blob_of(t)) in self._names

    def known_name(self, t: Tensor) -> str:
        return self._names[id(blob_of(t))][1] if id(blob_of(t)) in self._names else "parameter"

    def input(self, t: Tensor, name: str) -> Tensor:
        """An argument of the graph's calls."""
        form = (tuple(t.shape), t.dtype, t.spec, _device(t))
        value = self.add("input", (), [form], name=name)[0]
        self.order.given(value, t)
        self.arguments[value] = t
        return of_value(value, value.spec)

    def source(self, loader: Any, batch: Sequence[Tensor]) -> list[Tensor]:
        """A batch that each launch takes from a loader; `batch` is an example of its form."""
        name = f"loader{len(self.job.loaders)}"
        self.job.loaders[name] = loader
        forms = [(tuple(t.shape), t.dtype, t.spec, _device(t)) for t in batch]
        symbols = [of_value(v, v.spec) for v in self.add("source", (name,), forms, name=name)]
        return [self.unpack(t) for t in symbols] if self.job.micro_batches > 1 else symbols

    def unpack(self, t: Tensor) -> Tensor:
        """The micro-batches of an input: slices of each rank's part along the first dimension."""
        v, k = t.value, self.job.micro_batches
        if not v.shape:
            return t
        ways = _ways(v.spec)
        if v.shape[0] % (ways * k):
            shown = f"{k} micro-batches" + (f" on {ways} ranks" if ways > 1 else "")
            raise ShapeError(
                f"input {v.name} of shape {list(v.shape)} can't be cut into {shown}: its first dimension must divide "
                f"by {ways * k}; choose another batch size or config.set_gradient_accumulation_steps"
            )
        if v.spec is not None:
            first = self._cut or v
            self._cut = min(first, v, key=lambda each: each.shape[0])
            if ways != _ways(first.spec):
                raise SbpError(
                    f"inputs {first.name}, {first.spec}, and {v.name}, {v.spec}, can't be cut into micro-batches "
                    f"together: each rank cuts its own part, and dimension 0 is in {_ways(first.spec)} parts and in "
                    f"{ways}, so that a micro-batch would hold other rows of the one than of the other. Split both "
                    "alike before the call: y.to_global(placement=..., sbp=...)"
                )
        shape = (v.shape[0] // k, *v.shape[1:])
        spec = None if v.spec is None else v.spec.replace(shape=shape)
        value = self.add("unpack", (v,), [(shape, v.dtype, spec, v.device)], name=f"{v.name}.micro")[0]
        return of_value(value, spec)

    def given(self, name: str, where: Placement | Device) -> Tensor:
        """A number that the host gives at each launch, on every rank of a placement, or on a local tensor's device."""
        known = self.numbers.setdefault(name, {})
        if where not in known:
            dtype = float32 if where.type == "cuda" else float64  # as fused kernels read it there
            spec = Spec((), dtype, where, (broadcast,) * where.ndim) if isinstance(where, Placement) else None
            device = where if isinstance(where, Device) else Device("cpu")
            known[where] = self.add("host", (name,), [((), dtype, spec, device)], name=name)[0]
        return of_value(known[where], known[where].spec)

    def capture(self, t: Tensor) -> Value:
        """The variable for the memory of an eager tensor, the same for all tensors that share it."""
        blob = blob_of(t)
        known = self._values.get(id(blob))
        if known is not None:
            return known[1]
        if t.is_local and blob.data is not None and blob.data.layout is not torch.strided:
            raise TraceError(
                "a sparse tensor in a graph, whose plan says where each element lies: give x.to_dense(), or call the "
                "module outside of the graph, where the product of a sparse matrix and a dense one is computed as such"
            )
        _, name, t = self._names.get(id(blob)) or (blob, "constant", self.memories.first(t))
        if self.memories.is_made(t):  # which may stand for a symbol later
            made, t = t, object.__new__(Tensor)
            t.__dict__.update(made.__dict__)
        name = self.unique(name)
        value = Value(name, tuple(t.shape), t.dtype, t.spec, _device(t))
        self.job.append(Node(name, "variable", (), (value,)))
        self.job.variables[value] = t
        self._values[id(blob)] = (blob, value)
        self._within.setdefault(_memory(blob), []).append(value)
        return value

    def capture_as(self, t: Tensor, y: Tensor) -> None:
        """Capture a local tensor that a global program reads as y, over the same memory."""
        self._values[id(blob_of(t))] = blob_of(t), self.capture(y)

    def read_as(self, t: Tensor, nd_sbp: NdSbp) -> None:
        """Let the program's ops read this tensor in another layout than its own, which the optimizers' ops use."""
        self._read_as[id(blob_of(t))] = blob_of(t), nd_sbp

    def layout_of(self, t: Tensor) -> NdSbp:
        """The layout in which the program reads a tensor, sharded parameters (ZeRO) included."""
        assert t.spec is not None
        _, nd_sbp = self._read_as.get(id(blob_of(t)), (None, None)) if t.value is None else (None, None)
        return t.spec.nd_sbp if nd_sbp is None or self.updating else nd_sbp

    def read(self, t: Tensor) -> Value:
        """The value that an op reads for an eager tensor."""
        self.memories.follow(t)
        if t.value is not None:
            return t.value
        value, key = self.capture(t), id(blob_of(t))
        _, nd_sbp = self._read_as.get(key, (None, None))
        if nd_sbp is None or self.updating:
            return value
        if key not in self._read:
            assert t.spec is not None
            self.job.parts.add(value)
            spec = t.spec.replace(nd_sbp=nd_sbp)
            form = (value.shape, value.dtype, spec, value.device)
            args = (value, spec.placement, nd_sbp)
            self._read[key] = self.add("to_global", args, [form], name=f"{value.name}.whole")[0]
        return self._read[key]

    def fixed(self, v: Value) -> Tensor | None:
        """A captured tensor, there to be read while tracing; but not one that changes."""
        t = self.job.variables[v]
        return None if id(blob_of(t)) in self._written or t.requires_grad else t

    def seen(self, t: Tensor) -> None:
        """The program has read a captured tensor's value: the graph holds for this value alone."""
        if not self.memories.is_made(t) and id(blob_of(t)) not in self.fixed_tensors:
            self.fixed_tensors[id(blob_of(t))] = t, program_line.brief()

    def write(self, t: Tensor, symbol: Value) -> None:
        """An in-place write: let a tensor stand for a symbol. A captured tensor's memory is written at the end of the
        launch; a view writes its base.

        Each micro-batch writes it, and reads what the one before wrote.
        """
        kept = t.value is None and t._view_of is None and not self.memories.is_made(t)
        if kept and id(blob_of(t)) not in self._written:
            self.capture(t)
            self._written[id(blob_of(t))] = t
            if self.job.micro_batches > 1 and not self.updating:
                self._write_each_time(self._over(t))
        self.memories.write(t, symbol)

    def _over(self, t: Tensor) -> list[Value]:
        """The variables of a captured tensor's memory: its own, and those of views that were captured apart."""
        return self._within.get(_memory(blob_of(t))) or [self.capture(t)]

    def _write_each_time(self, variables: list[Value]) -> None:
        """Let what has read these variables be computed for each micro-batch."""
        changed = {self.job.producer[v] for v in variables}
        since: list[Node] = []  # the first of them was captured
        for node in reversed(self.job.nodes):
            since.append(node)
            changed.discard(node)
            if not changed:
                break
        for v in variables:
            self.job.producer[v].micro = True
        for node in reversed(since):
            node.micro = node.micro or (node.op not in LEAVING and any(map(self.job.is_micro, node.operands())))

    def _write_what_was_exchanged(self) -> None:
        """Write tensors that build() assigned to modules' attributes into the old ones, for the next launch."""
        pairs = self.attributes.exchanged(lambda t: id(blob_of(t)) in self._values)
        if any(id(old) in self.gradients.leaves for old, _ in pairs):
            raise TraceError(
                "build() sets a parameter anew that backward() found a gradient for; write into it instead"
            )
        now = [ops.clone(t).value if self.memories.stands_over(t) else t.value for _, t in pairs]
        before, here.grad = here.grad, False
        try:
            for (old, _), symbol in zip(pairs, now, strict=True):
                if old._view_of is None:
                    self.write(old, symbol)
                else:
                    hooks.overwriting(OPS["copy"])(old, of_value(symbol, symbol.spec))  # and its base
        finally:
            here.grad = before

    def settle(self, keep: bool = True) -> None:
        """End the trace: captured tensors become eager again, and the job writes what was written into them."""
        if keep and not self.updating:
            self._write_what_was_exchanged()
        written = [(t, of_value(t.value, t.spec)) for t in self._written.values()]
        self.memories.restore()
        for t, y in written:
            if keep:
                if t.spec is not None and y.spec is not t.spec:
                    y = ops.to_global(y, t.spec.placement, t.spec.nd_sbp)
                ops.store(of_value(self.capture(t), t.spec), y)
            for v in self._over(t):
                self.job.producer[v].micro = False
        self._written.clear()
        if not keep:
            self.attributes.restore()
            for leaf, before in self.gradients.leaves.values():
                leaf._grad = before

    # ---- what goes out ---------------------------------------------------------------------------------

    def output(self, t: Tensor, name: str) -> Value:
        self.memories.follow(t)
        v = t.value if t.value is not None else self.capture(t)
        if self.job.is_micro(v):
            k, wanted = self.job.micro_batches, v.spec
            v, mixed = self._in_order(v)
            shape = (k,) if not v.shape else (v.shape[0] * k, *v.shape[1:])
            spec = None if v.spec is None else v.spec.replace(shape=shape)
            v = self.add("pack", (v,), [(shape, v.dtype, spec, v.device)], name=f"{name}.pack")[0]
            if mixed > 1:
                rows = ops.reshape(of_value(v, spec), (k, mixed, -1, *shape[1:]))
                v = ops.reshape(ops.transpose(rows, 0, 1), shape).value
            if v.spec is not None and wanted is not None and wanted.nd_sbp != v.spec.nd_sbp:
                v = ops.to_global(of_value(v, v.spec), wanted.placement, wanted.nd_sbp).value
        self.add("output", (v,), [], name=name)
        return v

    def _in_order(self, v: Value) -> tuple[Value, int]:
        """A result in a layout in which its micro-batches, one after the other on each rank, are in the order of the
        inputs' rows; or in that of the micro-batches, if it doesn't hold their rows. Where it lies on other ranks: in
        how many parts the rows of a micro-batch are, each of which belongs elsewhere."""
        if self._cut is None or v.spec is None or not v.shape:
            return v, 1
        given, spec, rows = self._cut.spec, v.spec, self._cut.shape[0] // self.job.micro_batches
        assert given is not None
        ways = 1 if v.shape[0] == 0 or v.shape[0] % rows else _ways(given)
        if _ways(spec) == ways:
            return v, 1
        here = ways > 1 and spec.placement is given.placement
        along = [s if s.dim == 0 else broadcast for s in given.nd_sbp] if here else [
            broadcast if s.dim == 0 else s for s in spec.nd_sbp
        ]  # fmt: skip
        return ops.to_global(of_value(v, spec), spec.placement, tuple(along)).value, 1 if here else ways

    def loss(self, outputs: Sequence[Tensor]) -> None:
        self.losses.extend(t.value for t in outputs if t.value is not None)

    def times(self, t: Tensor, number: str) -> Tensor:
        """A tensor times a number from the host."""
        product = ops.mul(t, self.given(number, t.device if t.spec is None else t.spec.placement))
        return product if product.dtype is t.dtype else ops.cast(product, t.dtype)

    def accumulated(self, g: Tensor) -> Tensor:
        """A gradient summed over the micro-batches; one that is the same for all has a share of each."""
        v, k = g.value, self.job.micro_batches
        if not self.job.is_micro(v):
            return g if k == 1 else ops.mul(g, float(k))
        value = self.add("accumulate", (v,), [(v.shape, v.dtype, v.spec, v.device)], name=f"{v.name}.sum")[0]
        return of_value(value, v.spec)

    def again(self, call: Callable[[], Any]) -> Any:
        """Run a call under activation checkpointing: backward recomputes its values."""
        before = self.settings
        self.settings = before._replace(checkpoint=True)
        try:
            return self._kept(call()) if not before.checkpoint else call()
        finally:
            self.settings = before

    def _kept(self, result: Any) -> Any:
        """Keep the outputs of a checkpointed call, else the next one would recompute all before it."""
        todo = [result]
        while todo:
            found = todo.pop()
            if isinstance(found, Tensor) and found.value is not None:
                made = self.job.producer.get(found.value)
                if made is not None:
                    made.extra.pop("checkpoint", None)
            elif isinstance(found, (list, tuple)):
                todo += found
            elif isinstance(found, dict):
                todo += found.values()
        return result

    # ---- modules ---------------------------------------------------------------------------------------

    def call_module(self, module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module: its nodes get its scope, and its stage's placement."""
        before = self.settings
        self.attributes.see(module)
        known = self.modules.get(id(module))
        if known is None:
            self.attributes.remark(module)
            return call(*args, **kwargs)
        own: Settings = known.settings()
        if own.stage is None:
            own = own._replace(stage=before.stage)
        if before.checkpoint:
            own = own._replace(checkpoint=True)
        if own.placement is not None:
            args = tuple(_moved(a, own.placement) for a in args)
            kwargs = {k: _moved(a, own.placement) for k, a in kwargs.items()}
        self.settings = own
        try:
            result = call(*args, **kwargs)
            return self._kept(result) if own.checkpoint and not before.checkpoint else result
        finally:
            self.settings = before


LEAVING = ("accumulate", "pack")  # they lead from once per micro-batch to once per launch


def _moved(a: Any, placement: Placement) -> Any:
    """A module's argument, moved to its stage's placement."""
    if not isinstance(a, Tensor) or a.spec is None or a.spec.placement is placement:
        return a
    same = len(a.spec.nd_sbp) == placement.ndim and not a.spec.has_partial
    return ops.to_global(a, placement, a.spec.nd_sbp if same else (broadcast,) * placement.ndim)


def _ways(spec: Spec | None) -> int:
    """Into how many parts a layout splits the first dimension."""
    if spec is None:
        return 1
    return math.prod(n for n, s in zip(spec.placement.shape, spec.nd_sbp, strict=True) if s.dim == 0)


def _memory(blob: Blob) -> int:
    """The identity of a blob's memory, the same for all views."""
    return id(blob) if blob.data is None else blob.data.untyped_storage()._cdata


def _device(t: Tensor) -> Device:
    return t.device if t.is_local else Device("cpu")
