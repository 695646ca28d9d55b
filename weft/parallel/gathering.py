"""The parameters of one `fully_shard` call: gathered before forward and backward, freed after them, their gradients
scattered.

Over a network and on CUDA a module's parameters are gathered while the module before it computes: the one that followed
it the last time; and gradients are scattered while backward goes on. Over shared memory it would take the modules'
cores.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import torch

from weft.autograd import no_grad
from weft.autograd.call import version
from weft.autograd.graph import at_end_of_backward, passing
from weft.autograd.sweep import accumulate
from weft.autograd.trees import leaves, mapped
from weft.boxing.execute import execute, execute_together
from weft.boxing.lowering import LocalStep
from weft.boxing.part import device_of
from weft.compiler import buckets
from weft.core import dtype as dtypes
from weft.core.dispatch import here, hooks
from weft.core.dtype import DType
from weft.core.errors import OptionError, TraceError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.stored import stored
from weft.nn.module.module import Module
from weft.ops import ops
from weft.parallel.beside import BESIDE, UnderWay, begin
from weft.parallel.policies import MixedPrecisionPolicy
from weft.parallel.sharded import KEY, Sharded, own_parameters
from weft.tensor.blob import blob_of
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor
from weft.transport import transport_of
from weft.transport.base import Group
from weft.transport.line import Line

LINE: Final = "parts"  # a separate line, as gathers and scatters overlap with the program's own collectives
SCATTERS: Final = 2  # at most so many at a time, as each holds its gradients


class Parts:
    """The parameters of one `fully_shard` call, which are gathered and freed together."""

    def __init__(
        self, modules: list[Module], place: Placement, ignored: set[int], again: bool | None,
        policy: MixedPrecisionPolicy, mesh: Any = None,
    ) -> None:  # fmt: skip
        self.modules, self.place, self.policy = modules, place, policy
        self.device = device_of(place)
        self.overlaps = self.device.type == "cuda" or transport_of().overlaps
        self.coming: UnderWay | None = None  # what is gathered ahead
        self.waiting: list[Module] = []  # of several modules, those that the present forward has not begun yet,
        self.seen: list[int] = []  # and the versions of the parts that were gathered for it
        self.reshard_after_forward, self.requires_gradient_sync, self.requires_all_reduce = again, True, True
        self.divisor: float = len(place.members)
        self.is_whole = self.in_backward = False
        self.some_gone = False  # whether backward has freed some of the whole parameters
        self.fetched: list[int] | None = None  # the versions of the parts that were gathered ahead, until they are used
        self.ahead: dict[str, list[Parts]] = {}  # by way, forward or backward: what to gather meanwhile,
        self.follows: dict[str, Parts] = {}  # and what began next, the last time
        self.arrived: list[Sharded] = []
        self.more: list[tuple[Tensor, Tensor]] = []  # gradients to be added to what parts have already
        self.line, self.line_beside = (Line(transport_of(), name) for name in (LINE, BESIDE))
        self.ranks = place.group(current().index, place.ndim - 1)  # over which it splits
        self.group: Group = self.line.group(self.ranks)
        self.replicas = place.group(current().index, 0) if place.ndim == 2 else ()
        module = modules[0] if len(modules) == 1 else Module()
        for i, inner in enumerate(modules if len(modules) > 1 else ()):
            module.add_module(str(i), inner)
        own = own_parameters(module, ignored, mesh, place)
        self.members = [Sharded(name, p, place, at, policy.param_dtype, mesh) for name, p, at in own]
        most = buckets.limit(sum(s.bytes for s in self.members))
        self.alone = [s for s in self.members if s.split and buckets.travels_alone(s.bytes, most)]
        self.together: dict[Any, list[Sharded]] = {}
        for s in self.members:
            if s.split and s not in self.alone:
                self.together.setdefault(s.data.dtype, []).append(s)
        everyone = self.line.group(place.members)
        for b in module.buffers():
            if b.is_local and not b.is_meta:
                everyone.broadcast(local_data(b, "fully_shard"), 0)
        for module in modules:
            module.register_forward_pre_hook(self.before_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self.after_forward)
            module.register_state_dict_pre_hook(self.before_state)
            module.register_load_state_dict_pre_hook(self.before_state)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise OptionError(
            "a module that was sharded by fully_shard() can't be copied or pickled, as ranks gather its parameters "
            "together: copy it before fully_shard(), or save model.state_dict()"
        )

    # ---- whole and not -------------------------------------------------------------------------------

    def unshard(self, ahead: bool = False) -> None:
        """All-gather the parameters; `ahead`: where it may, beside what computes."""
        self.settle()
        for s in self.members:
            s.adopt()
            hooks.wait_write(blob_of(s.whole))
            s.make_room()
        split = [s for s in self.members if s.split]
        moves = [  # into aliases, so that the tape sees no in-place write
            (several, [s.here().to(s.data.dtype) for s in several], [s.data.data for s in several])
            for several in (*([s] for s in self.alone), *self.together.values())
        ]

        def gather(line: Line) -> None:
            for several, shards, wholes in moves:
                self._box("all_gather", several, shards, wholes, line)

        if ahead and split and self.overlaps:
            reads, writes = [blob_of(s.part) for s in split], [blob_of(s.whole) for s in split]
            self.coming = begin(gather, self.line_beside, self.device, reads, writes, "all_gather")
        else:
            gather(self.line)
        for s in self.members:
            if not (s.split or s.shares):
                s.data.data.copy_(s.here())
        if not self.is_whole:
            for s in self.members:
                self._hook(s)
                s.stand(s.whole)
                if s.shares:
                    s.share()
        self.is_whole, self.some_gone = True, False

    def _box(
        self, kind: str, several: list[Sharded], given: list[torch.Tensor], outs: list[torch.Tensor], line: Line
    ) -> None:
        """Move several values together, as a graph does."""
        transport_of().note(
            f"fully_shard: {', '.join(s.name for s in several):.80} of {type(self.modules[0]).__name__}"
        )
        before, shape = tuple(given[0].shape), tuple(outs[0].shape)
        step = LocalStep(
            kind, current().index, dtypes.of_torch(given[0].dtype), self.place.type, before, shape, self.ranks,
            self.group.index, dim=0, reduce="sum",
        )  # fmt: skip
        if len(several) == 1:
            execute(step, given[0], line, out=outs[0])
        else:
            execute_together(step, given, outs, line)

    def settle(self) -> None:
        """Before whole parameters are used, or freed."""
        coming, self.coming = self.coming, None
        if coming is not None and self.device.type == "cuda":
            coming.wait()

    def reshard(self) -> None:
        """Put the shards back, and free the whole parameters."""
        self.settle()
        if not self.is_whole:
            return
        self.is_whole, self.fetched = False, None
        for s in self.members:
            s.drop()
            s.stand(s.part)

    def write_back(self) -> None:
        """Take the values of whole parameters as those of the shards."""
        self.settle()
        for s in self.members:
            s.write_back()

    def prefetch(self, way: str, modules: Sequence[Module]) -> None:
        """Prefetch the parameters of these modules when this one begins."""
        self.ahead[way] = [stored(m)[KEY] for m in modules]

    def _ahead(self, way: str) -> None:
        """Gather what is asked for, or else what followed the last time, if that takes no time from this one."""
        running = _running()
        if running.last is not None and running.way == way:
            running.last.follows[way] = self
        running.way, running.last = way, self
        usual = [self.follows[way]] if way in self.follows and self.overlaps else []
        for parts in self.ahead.get(way, usual):
            if parts.fetched is None and (not parts.is_whole or parts.some_gone):
                parts.unshard(ahead=True)
                parts.fetched = parts.versions()
                running.fetched.append(parts)

    def versions(self) -> list[int]:
        """Counts of the writes of the parts: what was gathered before one is old."""
        return [version(s.part) for s in self.members]

    def _use(self) -> bool:
        """Whether what was gathered ahead can be used, which it then is."""
        found, self.fetched = self.fetched, None
        if found is not None and found != self.versions():
            self.reshard()
            return False
        if found is not None:
            self.settle()
        return found is not None

    # ---- forward -------------------------------------------------------------------------------------

    def before_state(self, *_: Any) -> None:
        self.reshard()

    def before_forward(self, module: Module, args: Any, named: Any) -> Any:
        if here.trace is not None:
            raise TraceError(
                "a module that was sharded by fully_shard() gathers its parameters as it is called; in a graph the job "
                "says that. Make the parameters global instead, model.to_global(placement=..., sbp=flow.sbp.broadcast),"
                " and call self.config.enable_zero(stage=3) in the graph's __init__"
            )
        if self.reshard_after_forward is None:  # it is the outermost if no other module runs at its first call
            working = _working()
            self.reshard_after_forward = bool(working)
        again = passing.ends is not None  # recomputed for backward
        if not self._goes_on(module, again):
            if not (self._use() or (again and self.is_whole and not self.some_gone)):
                self.unshard()
            if not again:
                if not _working():
                    _running().last = None
                self._ahead("forward")
        _working().append(self)
        return _cast((args, named), self.policy.param_dtype if self.policy.cast_forward_inputs else None)

    def _goes_on(self, module: Module, again: bool) -> bool:
        """Whether another of several modules has gathered the parameters for this one, too."""
        if again or len(self.modules) == 1:
            return False
        fresh = self.is_whole and not self.some_gone and self.seen == self.versions()
        goes_on = fresh and module in self.waiting
        self.waiting = [m for m in (self.waiting if goes_on else self.modules) if m is not module]
        self.seen = self.versions()
        return goes_on

    def after_forward(self, _: Module, args: Any, result: Any) -> Any:
        working = _working()
        while working and working.pop() is not self:  # drop modules whose forward failed
            pass
        if passing.ends is not None:  # recomputed for backward, which needs it whole
            self._watch()
            return _cast(result, self.policy.output_dtype)
        outputs = [t for t in leaves(result) if isinstance(t, Tensor) and t.requires_grad and t.node is not None]
        for t in outputs if here.grad else ():
            t.register_hook(self.before_backward)
        if not (self.waiting or self in working) and (self.reshard_after_forward or not outputs):
            self.reshard()
        if not working and _running().last is not self:  # else what it gathers ahead is of a module behind it
            _running().end()
        return _cast(result, self.policy.output_dtype)

    # ---- backward ------------------------------------------------------------------------------------

    def before_backward(self, _: Tensor) -> None:
        if self.in_backward:
            return
        self._watch()
        if not self._use() and (not self.is_whole or self.some_gone):
            self.unshard()
        self._ahead("backward")

    def _watch(self) -> None:
        if not self.in_backward:
            self.in_backward = True
            at_end_of_backward(self.finish, outermost=True, undo=self.break_off)

    def break_off(self) -> None:
        """At the end of a backward that fails: drop what it leaves."""
        self.in_backward = False
        self.arrived.clear()
        self.more.clear()
        for s in self.members:
            s.whole.grad = None
        self.reshard()
        _running().end()

    def _hook(self, s: Sharded) -> None:
        if s.part.requires_grad is not s.whole.requires_grad:
            s.whole.requires_grad = s.part.requires_grad
        if s.whole.requires_grad and not s.hooked:
            s.hooked = True
            s.whole.register_post_accumulate_grad_hook(functools.partial(self.found, s))

    def found(self, s: Sharded, _: Tensor) -> None:
        """A hook: backward has made a gradient, and no longer needs the parameter."""
        self._watch()
        if not self.requires_gradient_sync:
            return
        several = [s]
        if s.split and s not in self.alone:
            self.arrived.append(s)
            expected = [other for other in self.together[s.data.dtype] if other.whole.requires_grad]
            several = [a for a in self.arrived if a.data.dtype is s.data.dtype]
            if len(several) < len(expected):
                return
        self._scatter(several)
        for each in several:
            each.drop()
        self.some_gone = True

    def _scatter(self, several: list[Sharded]) -> None:
        """Reduce-scatter the mean of gradients."""
        self.arrived = [s for s in self.arrived if s not in several]
        several.sort(key=self.members.index)
        grads = [s.gradient() for s in several]
        for s in several:
            s.whole.grad = None
        if (kind := self.policy.reduce_dtype) is not None and grads[0].dtype.is_floating_point:
            with no_grad():
                grads = [ops.cast(g, kind) for g in grads]
        given = [local_data(g, "fully_shard") for g in grads]
        outs = [torch.empty_like(s.here(), dtype=g.dtype) for s, g in zip(several, given, strict=True)]
        means = [
            o if o.dtype is s.here().dtype else torch.empty_like(s.here()) for s, o in zip(several, outs, strict=True)
        ]
        found = [s.of(mean) for s, mean in zip(several, means, strict=True)]
        held, divisor = bool(self.replicas) and not self.requires_all_reduce, self.divisor

        def scatter(line: Line) -> None:
            self._sum(several, given, outs, held, line)
            if not held:
                torch._foreach_div_(outs, divisor)
                torch._foreach_copy_(means, outs)

        if self.overlaps:
            scatters = _running().scatters
            if len(scatters) == SCATTERS:
                scatters.popleft().wait()
            name = "reduce_scatter" if several[0].split else "all_reduce"
            reads, writes = map(blob_of, grads), map(blob_of, found)
            scatters.append(begin(scatter, self.line_beside, self.device, reads, writes, name))
        else:
            scatter(self.line)
        for s, mean in zip(several, () if held else found, strict=False):
            if s.part.grad is None:
                accumulate(s.part, mean, False)
            else:  # which waits for it
                self.more.append((s.part, mean))

    def _sum(
        self, several: list[Sharded], grads: list[torch.Tensor], outs: list[torch.Tensor], held: bool, line: Line
    ) -> None:
        """The sums over all ranks, in parts; or, `held` by the members, those over the ranks of one replica."""
        if several[0].split:
            self._box("reduce_scatter", several, grads, outs, line)
        else:
            outs[0].copy_(grads[0])
            line.group(self.ranks).all_reduce(outs[0])
        if self.replicas:
            for s, out in zip(several, outs, strict=True):
                if s.held is not None:
                    out.add_(s.held)
                s.held = out if held else None
            if not held:
                flat = torch.cat([out.reshape(-1) for out in outs])
                line.group(self.replicas).all_reduce(flat)
                sums = flat.split([out.numel() for out in outs])
                torch._foreach_copy_(outs, [part.view_as(out) for part, out in zip(sums, outs, strict=True)])

    def finish(self) -> None:
        """At the end of backward: scatter the remaining gradients, and free the whole parameters."""
        self.in_backward = False
        waiting: dict[Any, list[Sharded]] = {}
        if self.requires_gradient_sync:
            for s in self.members:  # also gradients accumulated without sync
                if s.whole.grad is not None:
                    waiting.setdefault(s.data.dtype if s.split and s not in self.alone else s, []).append(s)
        for several in waiting.values():
            self._scatter(several)
        for under_way in _running().scatters if self.device.type == "cuda" else ():
            under_way.wait()
        more, self.more = self.more, []
        for part, mean in more:
            accumulate(part, mean, False)
        self.arrived.clear()
        self.reshard()
        _running().end()


class _Running:
    """A rank's way through its sharded modules: forward or backward, the last that began, and what was gathered
    ahead."""

    def __init__(self) -> None:
        self.way = ""
        self.last: Parts | None = None
        self.fetched: list[Parts] = []
        self.scatters: deque[UnderWay] = deque(maxlen=SCATTERS)

    def end(self) -> None:
        """At the end of the way: free what was gathered ahead in vain."""
        fetched, self.fetched, self.last = self.fetched, [], None
        for parts in fetched:
            if parts.fetched is not None:
                parts.reshard()


def _running() -> _Running:
    return current().resource("the way through sharded modules", lambda rank: _Running())


def _cast(tree: Any, dtype: DType | None) -> Any:
    """Nested values whose tensors of real numbers are cast; None without a dtype."""

    def leaf(v: Any) -> Any:
        real = isinstance(v, Tensor) and v.dtype.is_floating_point
        return ops.cast(v, dtype) if real and v.dtype is not dtype else v

    return None if dtype is None else mapped(tree, leaf)


def _working() -> list[Parts]:
    """The sharded modules of this rank whose forward is running, outermost first."""
    return current().resource("sharded modules at work", lambda rank: [])
