"""Every kind of divergence: what each rank does, and what each must say of it.

`CALLS` diverge in calls of a transport, over lines of their own where one can't go on, so that one world tries all of
them. `PROGRAMS` diverge in what they say of global tensors, optimizers and the like, each in a world of its own.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import weft as flow
from weft.core import fingerprints
from weft.core.errors import DeadlineError, RankError
from weft.core.rank import current
from weft.transport import Line, transport_of

WORLD = 3


@dataclass(frozen=True)
class Divergence:
    name: str
    run: Callable[[Any, int], Any]  # on a line, as a rank
    said: tuple[str, ...]  # what the error of each rank that takes part must say, beside the ranks
    ranks: tuple[int, ...] = (0, 1)
    alone: tuple[int, ...] = ()  # where a send doesn't wait for who receives it, those who notice
    apart: bool = False  # it leaves its line with waits or messages for which nobody comes
    check: str = ""  # the WEFT_CHECK that notices; without one, any


def reduces(t: torch.Tensor, reduce: str = "sum") -> Callable[[Any], None]:
    return lambda line: line.group((0, 1)).all_reduce(t.clone(), reduce)


def gathers(n: int) -> Callable[[Any], None]:
    return lambda line: line.group((0, 1)).all_gather([torch.zeros(n), torch.zeros(n)], torch.ones(n))


def broadcasts(root: int, n: int = 4) -> Callable[[Any], None]:
    return lambda line: line.group((0, 1)).broadcast(torch.ones(n), root)


def scatters(*sizes: int) -> Callable[[Any], None]:
    def run(line: Any) -> None:
        group = line.group((0, 1))
        group.reduce_scatter(torch.empty(sizes[group.index]), [torch.ones(n) for n in sizes])

    return run


def to_each(outs: Sequence[int], parts: Sequence[int]) -> Callable[[Any], None]:
    return lambda line: line.group((0, 1)).all_to_all([torch.empty(n) for n in outs], [torch.ones(n) for n in parts])


def barrier(line: Any) -> None:
    line.group((0, 1)).barrier()


def sends(*tensors: torch.Tensor) -> Callable[[Any], None]:
    return lambda line: line.exchange([(1, t) for t in tensors], [])


def receives(*tensors: torch.Tensor, of: int = 0) -> Callable[[Any], None]:
    def run(line: Any) -> None:
        for t in tensors:
            line.exchange([], [(of, t.clone())])

    return run


def either(*each: Callable[[Any], None] | None) -> Callable[[Any, int], None]:
    """What rank 0 does, what rank 1 does, ..."""

    def run(line: Any, rank: int) -> None:
        mine = each[rank] if rank < len(each) else None
        if mine is not None:
            mine(line)

    return run


def after(*calls: Callable[[Any], None]) -> Callable[[Any], None]:
    def run(line: Any) -> None:
        for call in calls:
            call(line)

    return run


def among(*ranks: int) -> Callable[[Any], None]:
    return lambda line: line.group(ranks).barrier()


def out_of_step(line: Any, rank: int) -> None:
    """Over the program's own line: others carry no fingerprints."""
    if rank > 1:
        return
    mine = fingerprints.of()
    mine.put("the count of draws", 5 + rank, lambda: f"{5 + rank} draws")
    try:
        transport_of().group((0, 1)).all_reduce(torch.ones(2))
    finally:
        mine.drop("the count of draws")


F, D, I = torch.ones(4), torch.ones(2, dtype=torch.float64), torch.ones(4, dtype=torch.int32)  # two of 16 bytes
BIG = 1 << 17
LARGE = torch.ones(BIG)

CALLS = [
    Divergence("another collective", either(reduces(F), broadcasts(0)), ("all_reduce", "broadcast")),
    Divergence("another collective, large", either(reduces(LARGE), broadcasts(0, BIG)), ("all_reduce", "broadcast")),
    Divergence("a barrier", either(barrier, gathers(2)), ("barrier", "all_gather")),
    Divergence("another reduction", either(reduces(F), reduces(F, "max")), ("sum", "max")),
    Divergence("another dtype", either(reduces(F), reduces(I)), ("float32", "int32")),
    Divergence("another dtype, large", either(reduces(LARGE), reduces(LARGE.int())), ("float32", "int32")),
    Divergence("another size", either(reduces(F), reduces(torch.ones(6))), ("(4,)", "(6,)")),
    Divergence("another size, large", either(reduces(LARGE), reduces(torch.ones(BIG + 9))), ("072", "081")),
    Divergence("another shape", either(reduces(F.view(2, 2)), reduces(F)), ("(2, 2)", "(4,)"), check="1"),
    Divergence("another root", either(broadcasts(0), broadcasts(1)), ("broadcast", "0", "1")),
    Divergence("parts of other sizes", either(gathers(2), gathers(3)), ("all_gather", "2", "3")),
    Divergence("shares of other sizes", either(scatters(2, 2), scatters(2, 4)), ("reduce_scatter", "2", "4")),
    Divergence(
        "gifts of other sizes", either(to_each((2, 3), (2, 3)), to_each((3, 2), (4, 2))), ("all_to_all", "4", "3")
    ),
    Divergence(
        "two calls in another order", either(after(reduces(F), gathers(2)), after(gathers(2), reduces(F))),
        ("all_reduce", "all_gather"),
    ),
    Divergence(
        "one call too many", either(after(reduces(F), reduces(F), barrier), after(reduces(F), barrier)),
        ("all_reduce", "barrier"),
    ),
    Divergence("another group", either(among(0, 1), among(0, 1, 2)), ("(0, 1)", "(0, 1, 2)"), apart=True),
    Divergence(
        "groups in a circle", either(among(0, 1), among(1, 2), among(0, 2)), ("barrier",), (0, 1, 2), apart=True
    ),
    Divergence("a collective, a message", either(reduces(F), receives(F)), ("all_reduce", "recv"), apart=True),
    Divergence("nobody sends", either(receives(F, of=1), receives(I)), ("recv",), apart=True),
    Divergence(
        "a message of another dtype", either(sends(F), receives(I)), ("float32", "int32"), alone=(1,), apart=True
    ),
    Divergence("a message of another size", either(sends(F), receives(F[:2])), ("4", "2"), alone=(1,), apart=True),
    Divergence(
        "a large message of another dtype", either(sends(LARGE), receives(LARGE.int())),
        ("float32", "int32"), alone=(1,), apart=True,
    ),
    Divergence(
        "messages in another order", either(sends(F, D), receives(D, F)), ("float32", "float64"), alone=(1,), apart=True
    ),
    Divergence("nothing sent for something", either(sends(F[:0], F), receives(F)), ("4",), alone=(1,), apart=True),
    Divergence("something sent for nothing", either(sends(F, D), receives(F[:0], D)), (), alone=(1,), apart=True),
    Divergence("a fingerprint", out_of_step, ("the count of draws", "5 draws", "6 draws")),
]  # fmt: skip


# ---- programs ----------------------------------------------------------------------------------------------------

B, S = flow.sbp.broadcast, flow.sbp.split


def layer(bad: bool = False) -> flow.nn.Module:
    made = flow.nn.Linear(4, 4, bias=False)
    return made.to_global(placement=flow.placement.all("cpu"), sbp=B)


def trained(net: flow.nn.Module, optimizer: flow.optim.Optimizer, steps: int = 3) -> None:
    for _ in range(steps):
        x = flow.ones(2, 4)
        given = x.to_global(placement=flow.placement.all("cpu"), sbp=S(0)) if next(net.parameters()).is_global else x
        net(given).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def placements(line: Any, rank: int) -> None:
    flow.ones(4, 4).to_global(placement=flow.placement("cpu", [[0, 1], [1, 0]][rank]), sbp=S(0))


def sbps(line: Any, rank: int) -> None:
    flow.ones(4, 4).to_global(placement=flow.placement.all("cpu"), sbp=[S(0), S(1)][rank])


def trusted_sbps(line: Any, rank: int) -> None:
    """Nothing moves when they differ: the next collective says so."""
    x = flow.local_to_global(flow.ones(4, 4), flow.placement.all("cpu"), [S(0), S(1)][rank], check_meta=False)
    x.to_global(sbp=B)


def sbps_of_a_parameter(line: Any, rank: int) -> None:
    p = flow.nn.Parameter(flow.ones(4, 4)).to_global(placement=flow.placement.all("cpu"), sbp=[S(0), S(1)][rank])
    p.sum().to_global(sbp=B)


def scatters_to(line: Any, rank: int) -> None:
    """The same collective of the same sizes, that leads to other layouts."""
    x = flow.ones(4, 4, placement=flow.placement.all("cpu"), sbp=flow.sbp.partial_sum)
    x.to_global(sbp=[S(0), S(1)][rank])


class Training(flow.nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.net = layer()
        self.optimizer = flow.optim.SGD(self.net.parameters(), lr=0.1)
        self.add_optimizer(self.optimizer)

    def build(self, x: Any) -> Any:
        loss = self.net(x).sum()
        loss.backward()
        return loss


def rates(line: Any, rank: int) -> None:
    net = layer()
    trained(net, flow.optim.SGD(net.parameters(), lr=0.1 + rank))


def rates_in_ddp(line: Any, rank: int) -> None:
    net = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(4, 4))
    trained(net, flow.optim.AdamW(net.parameters(), lr=0.1, weight_decay=0.1 * rank))


def rates_in_a_graph(line: Any, rank: int) -> None:
    graph = Training()
    graph.optimizer.param_groups[0]["lr"] = 0.1 + rank
    graph(flow.ones(2, 4, placement=flow.placement.all("cpu"), sbp=S(0)))


def rates_after_compiling(line: Any, rank: int) -> None:
    graph, x = Training(), flow.ones(2, 4, placement=flow.placement.all("cpu"), sbp=S(0))
    graph(x)
    graph.optimizer.param_groups[0]["lr"] = 0.1 + rank
    graph(x).numpy()


def own_values_in_a_graph(line: Any, rank: int) -> None:
    graph, x = Training(), flow.ones(2, 4, placement=flow.placement.all("cpu"), sbp=S(0))
    graph.net.weight.to_local().add_(float(rank))
    graph(x)
    graph(x)


def skips_a_backward(line: Any, rank: int) -> None:
    """One rank makes no gradients at all, and goes on to what others don't make yet."""
    net = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(4, 4))
    if rank == 0:
        net(flow.ones(2, 4)).sum().backward()
    flow.comm.barrier()


def own_values(line: Any, rank: int) -> None:
    net = layer()
    net.weight.to_local().add_(float(rank))
    trained(net, flow.optim.SGD(net.parameters(), lr=0.1))


class Seen(flow.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen = flow.nn.Buffer(flow.zeros(2, placement=flow.placement.all("cpu"), sbp=B))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return x


def own_buffers(line: Any, rank: int) -> None:
    """Batch norm's statistics are moved by global ops, and by one rank alone."""
    for _ in range(3):
        layer()  # and is dropped
    kept = [flow.nn.BatchNorm1d(4)] if rank else []  # a rank's own
    net = flow.nn.Sequential(layer(), flow.nn.BatchNorm1d(4, affine=False).to_global(flow.placement.all("cpu"), B))
    if rank:
        net[1].running_var.to_local().mul_(2)
    trained(net, flow.optim.SGD(net.parameters(), lr=0.1))
    del kept


def own_registered_buffers(line: Any, rank: int) -> None:
    net = flow.nn.Sequential(layer(), Seen())
    if rank:
        net[1].seen.to_local().fill_(2)
    trained(net, flow.optim.SGD(net.parameters(), lr=0.1))


def own_values_in_ddp(line: Any, rank: int) -> None:
    net = flow.nn.parallel.DistributedDataParallel(flow.nn.Linear(4, 4))
    with flow.no_grad():
        net.bias.add_(float(rank))
    trained(net, flow.optim.SGD(net.parameters(), lr=0.1))


def seeds(line: Any, rank: int) -> None:
    flow.manual_seed(rank)
    flow.randn(4, placement=flow.placement.all("cpu"), sbp=flow.sbp.partial_sum).to_global(sbp=B)


def new_shapes(line: Any, rank: int) -> None:
    flow.tensor([1.0] * (2 + rank), placement=flow.placement.all("cpu"), sbp=B)
    flow.comm.barrier()


def new_values(line: Any, rank: int) -> None:
    flow.tensor([1.0, 2.0 + rank], placement=flow.placement.all("cpu"), sbp=B)
    flow.comm.barrier()


def loaded(line: Any, rank: int) -> None:
    """Each rank reads a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        flow.save({"x": flow.full((4,), float(rank))}, f"{folder}/x")
        flow.load(f"{folder}/x", placement=flow.placement.all("cpu"), sbp=S(0))["x"].numpy()


def global_ops(line: Any, rank: int) -> None:
    x = flow.ones(4, placement=flow.placement.all("cpu"), sbp=B)
    (flow.exp(x) if rank else flow.relu(x)).sum()
    flow.comm.barrier()


def global_ops_again(line: Any, rank: int) -> None:
    x = flow.ones(4, placement=flow.placement.all("cpu"), sbp=B)
    flow.exp(flow.relu(x))
    flow.comm.barrier()
    (flow.exp if rank else flow.relu)(x)
    flow.comm.barrier()


_LINE = f"divergences.py:{global_ops_again.__code__.co_firstlineno + 4}"
AGAIN = tuple(f"{op}(float32[4] cpu:[0,1] (B)) at {_LINE} on rank {rank}" for rank, op in enumerate(("relu", "exp")))


def reduces_to(line: Any, rank: int) -> None:
    flow.comm.reduce(flow.ones(4), dst=rank)


def gathers_to(line: Any, rank: int) -> None:
    flow.comm.gather(flow.ones(4), [flow.ones(4), flow.ones(4)], dst=rank)


def scatters_from(line: Any, rank: int) -> None:
    flow.comm.scatter(flow.ones(4), [flow.ones(4), flow.ones(4)], src=rank)


def gathers_objects_to(line: Any, rank: int) -> None:
    flow.distributed.gather_object(rank, [None, None], dst=rank)


PROGRAMS = [
    Divergence("the root of reduce", reduces_to, ("reduce_scatter",)),
    Divergence("the root of gather", gathers_to, ("gather",)),
    Divergence("the root of scatter", scatters_from, ("scatter",)),
    Divergence("the root of gather_object", gathers_objects_to, ("gather",)),
    Divergence("placements", placements, ("to_global", "cpu:[0,1]", "cpu:[1,0]")),
    Divergence("sbp", sbps, ("to_global", "S(0)", "S(1)")),
    Divergence("sbp that are trusted", trusted_sbps, ("to_global", "S(0)", "S(1)")),
    Divergence("sbp of a parameter", sbps_of_a_parameter, ("to_global", "S(0)", "S(1)")),
    Divergence("sbp after a sum", scatters_to, ("(",)),  # threads compare shapes, too
    Divergence("learning rates", rates, ("the options of optimizers", "lr=0.1", "lr=1.1")),
    Divergence("decay under DDP", rates_in_ddp, ("the options of optimizers", "weight_decay=0.0", "weight_decay=0.1")),
    Divergence("learning rates in a graph", rates_in_a_graph, ("the options of optimizers", "lr=0.1", "lr=1.1")),
    Divergence("rates after compiling", rates_after_compiling, ("the options of optimizers", "lr=0.1", "lr=1.1")),
    Divergence("values in a graph", own_values_in_a_graph, ("net.weight of",), check="full"),
    Divergence("seeds", seeds, ("the random numbers of global draws",)),
    Divergence("shapes of new tensors", new_shapes, ("float32[2] cpu:[0,1] (B)", "float32[3] cpu:[0,1] (B)")),
    Divergence("values of new tensors", new_values, ("[1.0, 2.0]", "[1.0, 3.0]"), check="full"),
    Divergence("checkpoints", loaded, ("what is in the checkpoints",)),
    Divergence("a backward less", skips_a_backward, ("all_reduce", "barrier")),
    Divergence("values of parameters", own_values, ("parameter 0",), check="full"),
    Divergence("running statistics", own_buffers, ("BatchNorm1d.running_var",), check="full"),
    Divergence("registered buffers", own_registered_buffers, ("Seen.seen",), check="full"),
    Divergence("values under DDP", own_values_in_ddp, ("bias",), check="full"),
    Divergence("global ops", global_ops, ("relu", "exp"), check="full"),
    Divergence("global ops again", global_ops_again, AGAIN, check="full"),
]


def attempt(d: Divergence, line: Any, rank: int) -> dict[str, Any]:
    """What a rank met with."""
    start = time.monotonic()
    try:
        d.run(line, rank)
    except RankError as error:
        return {"error": type(error).__name__, "said": str(error), "seconds": round(time.monotonic() - start, 2)}
    return {}


def try_calls(check: str = "", stuck_after: str = "0.1") -> list[dict[str, Any]]:
    """All divergences that a check notices, on one rank; prints what came of each, as a line of JSON."""
    transport, rank, rows = transport_of(), current().index, []
    transport.stuck_after = float(stuck_after)
    for d in CALLS:
        if d.check == check:
            line = Line(transport, d.name if d.apart else "calls")
            line.exchange([((rank + 1) % WORLD, torch.ones(1))], [((rank - 1) % WORLD, torch.ones(1))])  # all meet
            rows.append({"name": d.name, "rank": rank, **attempt(d, line, rank)})
            print(json.dumps(rows[-1]) + "\n", end="", flush=True)
    transport.group(tuple(range(WORLD)), "end").barrier()
    return rows


def try_program(name: str, stuck_after: str = "0.1") -> list[dict[str, Any]]:
    """One of the programs, on one of two ranks."""
    transport, rank = transport_of(), current().index
    transport.stuck_after = float(stuck_after)
    d = next(d for d in PROGRAMS if d.name == name)
    found = {"name": name, "rank": rank, **attempt(d, None, rank)}
    print(json.dumps(found) + "\n", end="", flush=True)
    transport.group((0, 1), "end").barrier()
    return [found]


def fault(d: Divergence, rank: int, found: dict[str, Any], waits: bool) -> str:
    """What is wrong with what a rank said, if anything. `waits`: a send waits for who receives it."""
    noticing = d.ranks if waits else d.alone or d.ranks
    if rank not in noticing:
        return ""
    if "said" not in found:
        return f"{d.name}: rank {rank} noticed nothing"
    if found["error"] in (DeadlineError.__name__,) or found["seconds"] > 40:
        return f"{d.name}: rank {rank} waited {found['seconds']} s: {found['said']}"
    missing = [word for word in (*(f"rank {r}" for r in d.ranks), *d.said) if word not in found["said"]]
    if missing or "diverged" not in found["said"]:
        return f"{d.name}: rank {rank} didn't say {missing}, but {found['said']!r}"
    if " calls " in found["said"] and found["said"].count("divergences.py:") < 2:
        return f"{d.name}: rank {rank} named no line of each program, but said {found['said']!r}"
    return ""
