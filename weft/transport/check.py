"""Detect ranks that diverge: what they compare at each call, and the error if they differ.

Every collective carries a hash of its kind, reduction, dtype, root and sizes, and of the rank's fingerprints. If two
hashes differ, all members write what they called into the store, read the others', and raise the same error. Data that
should be equal on ranks is compared under WEFT_CHECK=full, and for replicated parameters.
"""

from __future__ import annotations

import enum
import hashlib
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import torch
from torch import Tensor

from weft.core import fingerprints
from weft.core.errors import DeadlineError, RankError
from weft.core.fingerprints import WORD, Behind, Words
from weft.core.program_line import line as program_line
from weft.core.rank import Rank, current
from weft.core.reading import MALFORMED
from weft.transport import reduction

KINDS = ("barrier", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast")
BARRIER, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST = range(len(KINDS))
DTYPES = tuple(sorted({d for d in vars(torch).values() if isinstance(d, torch.dtype)}, key=str))
dtype_code = {d: i for i, d in enumerate(DTYPES)}
_reduce_code = {r: i for i, r in enumerate(reduction.BINARY)}

KEPT = "kept alike"  # a rank's resource: local parameters that are replicated on all ranks, by id
BUFFERS = "global buffers"  # a rank's resource, under WEFT_CHECK=full: modules' buffers by placement, then by id
PROGRAM = ("", "gradients")  # lines of the program's main thread, ordered together; others belong to threads
TELLING = 5.0  # seconds for diverged members to write what they called
Sizes = Sequence[Sequence[int]]


class Check(enum.IntEnum):
    """How much ranks compare: WEFT_CHECK."""

    CHEAP = 0  # what travels with the calls anyway
    CALLS = 1  # shapes too
    FULL = 2  # also layouts of global ops, and parameters


def checking() -> Check:
    given = os.environ.get("WEFT_CHECK", "")
    found = {"": Check.CHEAP, "0": Check.CHEAP, "1": Check.CALLS, "full": Check.FULL}.get(given)
    if found is None:
        raise RankError(
            f"WEFT_CHECK is 0, 1 (shapes of calls too) or full (whatever ranks have in common); got {given!r}"
        )
    return found


def check_of(rank: Rank) -> Check:
    """How much a rank compares; read once."""
    found = rank.resources.get("check")
    return found if found is not None else rank.resource("check", lambda _: checking())


def every_steps() -> int:
    """The number of steps between comparisons of parameters under WEFT_CHECK=full."""
    given = os.environ.get("WEFT_CHECK_EVERY", "100")
    if not given.isdigit() or not int(given):
        raise RankError(f"WEFT_CHECK_EVERY is a number of steps, like 100; got {given!r}")
    return int(given)


class Comparing(Protocol):
    """The part of a transport by which ranks compare what they do."""

    rank: int

    def put(self, key: str, value: bytes) -> None: ...
    def get(self, key: str, timeout: float | None = None) -> bytes: ...
    def group(self, ranks: Sequence[int]) -> Any: ...


class Call:
    """A description of a collective: a hash to compare, and text. Made once per form."""

    __slots__ = ("number", "kind", "reduce", "dtype", "sizes", "root")

    def __init__(
        self, check: Check, kind: int, reduce: str = "", dtype: torch.dtype = torch.uint8, sizes: Sizes = (),
        root: int = -1,
    ) -> None:  # fmt: skip
        self.kind, self.reduce, self.dtype, self.root = kind, reduce, dtype, root
        self.sizes = tuple(map(tuple, sizes))
        compared = self.sizes if check else tuple(map(numel, self.sizes))
        parts = (kind, _reduce_code.get(reduce, -1), dtype_code[dtype], root, compared)
        self.number = hash(parts) & WORD  # of numbers, Python's hash is the same in every process

    def __str__(self) -> str:
        name = KINDS[self.kind] + (f" ({self.reduce})" if self.reduce else "")
        if self.kind == BARRIER:
            return name
        shapes = " + ".join(map(str, self.sizes))
        root = f" from member {self.root}" if self.root >= 0 else ""
        return f"{name} of {str(self.dtype).removeprefix('torch.')} {shapes}".rstrip() + root


def numel(shape: Sequence[int]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


class Diverged(RankError):
    """Raised by all members of a group at the same call; the group stays usable."""


class Report(msgspec.Struct):
    """A member's report: its call, what its fingerprints mean, the line of its program, and the fingerprints."""

    call: str
    common: dict[str, str] = {}
    line: str = ""
    numbers: dict[str, str] = {}

    def __str__(self) -> str:
        return self.call + (f" at {self.line}" if self.line else "")


def decoded(data: bytes, kind: type, what: str) -> object:
    """Decode another rank's message in the store; anything else raises RankError."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (*MALFORMED, msgspec.MsgspecError) as error:
        raise RankError(f"{what} is no message of Weft's: {error}") from None


def words(ranks: tuple[int, ...], line: str) -> Words:
    """The fingerprints that a group's collectives compare: none on lines of other threads."""
    return Words(ranks, fingerprints.of() if line in PROGRAM and len(ranks) > 1 else None)


def group_key(ranks: tuple[int, ...], line: str) -> str:
    return f"group {','.join(map(str, ranks))} {line}"


def differ(transport: Comparing, key: str, ranks: tuple[int, ...], turn: int, call: str, behind: Behind) -> RankError:
    """The error of a member whose hash differs from another's; `key` names the call, alike for all members."""
    at = program_line()
    common = {name: str(entry) for name, entry, _ in behind}
    numbers = {name: str(number) for name, _, number in behind}
    mine = Report(call, common, "" if at is None else at.brief, numbers)
    transport.put(f"{key}/{transport.rank}", msgspec.json.encode(mine))
    found: dict[int, Report] = {}
    for rank in ranks:
        try:
            data = transport.get(f"{key}/{rank}", TELLING)
        except DeadlineError:
            continue
        found[rank] = decoded(data, Report, f"what rank {rank} says that it calls")  # type: ignore[assignment]
    return Diverged(story(ranks, transport.rank, turn, found))


def story(ranks: tuple[int, ...], rank: int, turn: int, reports: Mapping[int, Report]) -> str:
    """Which members differ, and in what. The first reported member represents those that agree with it."""
    mine = reports[rank]
    where = f"the ranks diverged at call {turn} of group {ranks}: rank {rank}"
    for other, theirs in reports.items():
        if theirs.call != mine.call:
            return (
                f"{where} calls {mine} and rank {other} calls {theirs}. Every member must make the same calls in the "
                "same order"
            )
    for other, theirs in reports.items():
        for name in [*mine.common, *theirs.common]:
            a, b = (t.common.get(name, "nothing of that kind") for t in (mine, theirs))
            if mine.numbers.get(name, a) != theirs.numbers.get(name, b):  # the words may name other lines
                lines = " and ".join(dict.fromkeys(t.line for t in (mine, theirs) if t.line))
                return (
                    f"{where} and rank {other} both call {mine.call}{f' at {lines}' * bool(lines)}, but differ in "
                    f"{name}: {a} on rank {rank} and {b} on rank {other}. It must be alike on all ranks"
                )
    return f"{where} calls {mine.call}, and another member something else that it doesn't say"


def unlike(src: int, dst: int, sent: tuple[object, Sequence[int]], wanted: tuple[object, Sequence[int]]) -> str:
    """The text for a message that isn't what its receiver expects."""
    (a, b), (c, d) = ((d, list(s)) for d, s in (sent, wanted))
    return (
        f"rank {src} sends rank {dst} a tensor of {a}{b}, which receives one of {c}{d}: the ranks diverged. A message "
        "is received into a tensor of its dtype and size"
    )


def misfit(giver: int, taker: int, given: int, wanted: int) -> str:
    """The text for two members of an all-to-all that expect different sizes."""
    return (
        f"the ranks diverged in an all_to_all, gather or scatter: rank {giver} gives rank {taker} {given} elements, "
        f"which expects {wanted}"
    )


# ---- data ------------------------------------------------------------------------------------------------------


def keep_alike(params: Iterable[Any]) -> None:
    """Register local parameters as replicated on all ranks of the world."""
    kept = current().resource(KEPT, lambda _: {})
    for p in params:
        kept[id(p)] = weakref.ref(p, lambda _, key=id(p): kept.pop(key, None))


def kept_alike(p: Any) -> bool:
    found = current().resources.get(KEPT, {}).get(id(p))
    return found is not None and found() is p


def keep_buffer(name: str, t: Any) -> None:
    """Under WEFT_CHECK=full, register a module's global buffer to be compared as parameters are; in one order on the
    ranks of its placement."""
    rank = current()
    if rank.world_size == 1 or check_of(rank) is not Check.FULL:
        return
    known = rank.resource(BUFFERS, lambda _: {}).setdefault(t.placement, {})
    if id(t) not in known or known[id(t)][1]() is not t:
        known[id(t)] = name, weakref.ref(t)


def buffers_among(transport: Comparing, ranks: frozenset[int]) -> list[tuple[str, Any]]:
    """The buffers on placements within these ranks that all ranks of the placement still hold: a collective call."""
    rank, found = current(), []
    for placement, known in rank.resources.get(BUFFERS, {}).items():
        if len(placement.members) < 2 or rank.index not in placement or not ranks.issuperset(placement.members):
            continue
        mine = {at: (name, t) for at, (name, ref) in known.items() if (t := ref()) is not None}
        here = torch.tensor([at in mine and mine[at][1].placement == placement for at in known], dtype=torch.uint8)
        rows = [torch.empty_like(here) for _ in placement.members]
        transport.group(placement.members).all_gather(rows, here)
        live = torch.stack(rows).amin(0).tolist()  # garbage collection frees cycles at different times
        for at, alive in zip(tuple(known), live, strict=True):
            if not alive:
                del known[at]
        found += [mine[at] for at in known]
    return found


def digest(t: Tensor) -> int:
    """A hash of the tensor's bits."""
    data = t.detach().contiguous().cpu().reshape(-1).view(torch.uint8)
    return int.from_bytes(hashlib.blake2b(data.numpy().tobytes(), digest_size=8).digest(), "little", signed=True)


def compare_data(
    transport: Comparing, ranks: tuple[int, ...], tensors: Mapping[str, Tensor], what: str,
    twin: Mapping[str, Mapping[int, int]] | None = None,
) -> None:  # fmt: skip
    """Raise on all of these ranks if a tensor isn't the same on all of them or, for those in `twin`, on a rank and the
    rank that it names."""
    mine = torch.tensor([digest(t) for t in tensors.values()], dtype=torch.int64)
    rows = [torch.empty_like(mine) for _ in ranks]
    transport.group(ranks).all_gather(rows, mine)
    for i, name in enumerate(tensors):
        for at, rank in enumerate(ranks):
            other = ranks[0] if twin is None else twin[name][rank]
            if rows[at][i] != rows[ranks.index(other)][i]:
                raise RankError(
                    f"the ranks diverged: {what} should be alike, and {name} differs between rank {other} and rank "
                    f"{rank}. Did they begin with other values, or a rank write its own?"
                )
