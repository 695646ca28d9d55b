"""Eager execution on global tensors: choose a signature, box the operands, run the kernel on this rank's shards."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import torch

from weft.boxing import Route, execute, signature
from weft.boxing.links import Links
from weft.boxing.network import links_of
from weft.boxing.part import device_of, kernel_of, local_arguments, pass_over, where_of
from weft.boxing.planner import route
from weft.boxing.signature import Signature
from weft.core import fingerprints, random
from weft.core.dispatch import here as modes
from weft.core.dispatch import hooks
from weft.core.errors import RankError, WeftError
from weft.core.placement import Placement
from weft.core.program_line import line
from weft.core.rank import current
from weft.core.spec import Spec
from weft.interpreter import conversions
from weft.interpreter.eager_local import execute as run_kernel
from weft.interpreter.explain_movements import moving
from weft.ops.declaration import Op
from weft.ops.explain import check_arguments
from weft.ops.infer import Number
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_shard
from weft.tensor.written import mark
from weft.transport import transport_of
from weft.transport.check import Check, check_of
from weft.vm.trace import MOVEMENTS


class Prepared:
    """A cached plan of a call with these specs and attributes on this rank."""

    __slots__ = ("op", "routes", "kernel", "args", "inputs", "outputs", "member", "box", "shape", "placement")

    def __init__(self, op: Op, args: tuple[Any, ...], chosen: Signature, rank: int, links: Links) -> None:
        specs = signature.flatten(op, args)
        self.op = op
        self.routes: tuple[Route | None, ...] = tuple(
            None if a is b else route(a.shape, a.dtype, a.placement, a.nd_sbp, b.placement, b.nd_sbp, links)
            for a, b in zip(specs, chosen.inputs, strict=True)
        )
        if not any(self.routes):
            self.routes = ()
        self.inputs, self.outputs = chosen.inputs, chosen.outputs
        self.member, self.placement = rank in chosen.placement, chosen.placement
        self.kernel = kernel_of(op, where_of(chosen, rank))
        self.args = local_arguments(op, args, chosen, rank)
        self.box = None
        if op.random and chosen.outputs and self.member:
            box = chosen.outputs[0].box(rank)
            assert box is not None
            self.shape = tuple(b - a for a, b in box)
            self.box = tuple(slice(a, b) for a, b in box)


@functools.lru_cache(maxsize=1 << 16)
def _prepare(op: Op, frozen: tuple[Any, ...], rank: int, links: Links, gradient: bool) -> Prepared:
    args = tuple(_plain(a) for a in frozen)
    return Prepared(op, args, signature.choose(op, args, (), links, gradient), rank, links)


@functools.lru_cache(maxsize=1 << 12)
def _fingerprint(op: Op, frozen: tuple[Any, ...], placement: Placement) -> tuple[str, int, str, frozenset[int]]:
    """The fingerprint of a call, which ranks compare under WEFT_CHECK=full."""
    text = f"{op.name}({', '.join(map(str, frozen))})"
    return f"global ops on {placement}", crc32(text.encode()), text, frozenset(placement.members)


def _plain(a: Any) -> Any:
    if isinstance(a, Number):
        return a.value
    return tuple(_plain(v) for v in a) if type(a) is tuple else a


def _each(a: Any) -> Any:
    return a if isinstance(a, (list, tuple)) else (a,)


def _key(a: Any) -> Any:
    if isinstance(a, Tensor):
        return a.spec or a  # a local one is in the place of an option: no key that was seen
    if type(a) is list or type(a) is tuple:
        return tuple(map(_key, a))
    return Number(a, type(a)) if isinstance(a, (int, float, complex)) else a


def run(op: Op, args: tuple[Any, ...]) -> tuple[list[Tensor], tuple[Any, ...]]:
    """Run a call. Returns the outputs, and the arguments as used, with boxed operands in their new layouts."""
    if op.conversion:
        return [conversions.run(op, args)], args
    here = current()
    rank = here.index
    try:
        prepared = _prepare(op, tuple(map(_key, args)), rank, links_of(here), modes.backward)
    except WeftError:
        raise
    except Exception:  # of what isn't what it should be
        check_arguments(op, args)
        raise
    if here.world_size > 1 and check_of(here) is Check.FULL:
        (name, number, text, members), at = _fingerprint(op, tuple(map(_key, args)), prepared.placement), line()
        fingerprints.of(here).fold(name, number, text if at is None else f"{text} at {at.brief}", members)
    if prepared.routes:
        args = _boxed(op, args, prepared.routes)
    if op.random:
        random.meet()
    if op.writes:
        mark(t.shard for i in op.writes for t in _each(args[i]) if isinstance(t, Tensor))
    if not prepared.member:
        if op.random:
            _pass_over(prepared)
        outputs = prepared.outputs if not op.dynamic else _heard(prepared.outputs)
        return [of_shard(torch.empty(s.local_shape(rank), dtype=s.dtype.torch), s) for s in outputs], args  # empty
    local = list(prepared.args)
    for i in op.operands:
        value = args[i]
        if isinstance(value, Tensor):
            blob = value.shard
            now = blob.now  # type: ignore[union-attr]
            local[i] = now if now is not None else local_data(value, op.name)
        elif type(value) is list or type(value) is tuple:
            local[i] = [None if t is None else local_data(t, op.name) for t in value]
    for i in op.writes:
        for t in _each(args[i]):
            if isinstance(t, Tensor) and t.shard is not None and t.shard.access is not None:
                hooks.wait_write(t.shard)
    if op.random:
        return [_drawn(prepared, local, args)], args
    results = run_kernel(op, prepared.kernel, tuple(local), args)
    if op.dynamic:
        sizes = torch.tensor([n for t in results for n in t.shape], dtype=torch.int64)
        _tell(sizes, prepared.outputs[0].placement)
        return [
            of_shard(r, s.replace(shape=tuple(r.shape))) for r, s in zip(results, prepared.outputs, strict=True)
        ], args
    return [of_shard(r, s) for r, s in zip(results, prepared.outputs, strict=True)], args


def _drawn(prepared: Prepared, local: list[Any], args: tuple[Any, ...]) -> Tensor:
    """Draw the whole logical tensor, as every rank does, and keep this rank's part."""
    whole = run_kernel(prepared.op, prepared.kernel, tuple(local), args)[0]
    spec = prepared.outputs[0]
    assert prepared.box is not None
    if prepared.op.rejection:
        _tell(random.source().on(whole.device).get_state(), spec.placement)
    return of_shard(whole if whole.shape == prepared.shape else whole[prepared.box].clone(), spec)


def _pass_over(prepared: Prepared) -> None:
    """Advance the generator of a rank outside the placement, by drawing and discarding; if the amount depends on data,
    it gets the state of the placement's first rank."""
    device = device_of(prepared.outputs[0].placement).torch
    if prepared.op.rejection:
        g = random.generator(device)
        assert g is not None
        state = g.get_state()
        transport_of().recv(state, prepared.outputs[0].placement.members[0])
        g.set_state(state)
    else:
        pass_over(prepared.op, prepared.args, [(s.shape, s.dtype) for s in prepared.inputs], device)


def _tell(word: torch.Tensor, placement: Placement) -> None:
    """The placement's first rank sends data-dependent values to the ranks outside of it."""
    transport = transport_of()
    outside = [r for r in range(transport.world_size) if r not in placement]
    if outside and current().index == placement.members[0]:
        transport.exchange([(r, word) for r in outside], ())


def _heard(outputs: Sequence[Spec]) -> list[Spec]:
    sizes = torch.empty(sum(len(s.shape) for s in outputs), dtype=torch.int64)
    transport_of().recv(sizes, outputs[0].placement.members[0])
    if sizes.numel() and int(sizes.min()) < 0:
        raise RankError(f"what rank {outputs[0].placement.members[0]} tells of shapes can't be sizes: {sizes.tolist()}")
    shape = iter(sizes.tolist())
    return [s.replace(shape=tuple(next(shape) for _ in s.shape)) for s in outputs]


def _boxed(op: Op, args: tuple[Any, ...], routes: tuple[Route | None, ...]) -> tuple[Any, ...]:
    todo = iter(routes)

    def box(t: Tensor) -> Tensor:
        path = next(todo)
        return t if path is None else along(t, path, op.name, op, args)

    return signature.replaced(op, args, box)


def along(t: Tensor, path: Route, why: str, op: Op | None = None, args: tuple[Any, ...] = ()) -> Tensor:
    """Move a global tensor along a route; for a call of `op`, if it is given."""
    here, transport = current(), transport_of()
    transport.note(f"boxing {path.src} -> {path.dst} for {why}")
    hosts = links_of(here).hosts
    if MOVEMENTS not in here.resources:
        return of_shard(execute.run(path, local_data(t, why), here.index, transport, hosts), path.dst)
    specs = args if op is None else signature.replaced(op, args, lambda t: t.spec)
    return moving(
        path, why, op is None, specs, op,
        lambda: of_shard(execute.run(path, local_data(t, why), here.index, transport, hosts), path.dst),
    )  # fmt: skip
