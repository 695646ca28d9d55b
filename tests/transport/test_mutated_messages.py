"""Messages between ranks, thousands of times changed at random: what reads them raises Weft's errors, or nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import torch
import torch.distributed as dist

from tests.distributed.test_hostile import mutations
from weft.core.errors import DeadlineError, WeftError
from weft.transport import check, stuck
from weft.transport.board import WHY, Board
from weft.transport.c10d import C10dTransport
from weft.transport.check import Check, Report
from weft.transport.memory import PAGE, Segment, page_bytes
from weft.transport.roll import PROTOCOL, Come, Roll, first_failure
from weft.transport.secret import Signed
from weft.transport.shared.shm_link import FORM_OF, LAYOUT, WRITTEN, Inlet, Outlet, ShmChannel, link_bytes
from weft.transport.stuck import Need, Wait, Watcher

TIMES = 800  # changes of each kind

SECRET = "the secret of one run"
COME = Come(PROTOCOL, 3, "shm", 4321, 99, "host", "0", "4321:99:5:4096")
WAIT = Wait(3, "barrier", [Need(1, "group 0,1 ", 2)], {"group 0,1 ": 1}, {"0": 7}, "they diverged")
REPORT = Report("all_reduce", {"seed": "3 at a.py:1"}, "a.py:7", {"seed": "3"})


HOSTILE = (b"[" * 5000, b"9" * 5000, b'{"a":' * 1000, b"\xff\xfe", b"-1", b"1e999", b"null", b"99999999999999")


def changed(message: bytes, draw: random.Random) -> Iterator[bytes]:
    for made in mutations(message, TIMES, draw):
        at = draw.randrange(len(made) + 1)
        yield made if draw.randrange(3) else made[:at] + draw.choice(HOSTILE) + made[at + draw.randrange(3) :]


class Table:
    """The part of a transport that reads what others put."""

    rank, world_size, stuck_after, lines = 0, 3, 0.0, frozenset[str]()

    def __init__(self, message: bytes) -> None:
        self.message, self.mine = message, dict[str, bytes]()

    def put(self, key: str, value: bytes) -> None:
        self.mine[key] = value

    def get(self, key: str, timeout: float | None = None) -> bytes:
        if "/2" in key:
            raise DeadlineError("never")
        return self.mine.get(key, self.message)

    peek = get

    def whereabouts(self, rank: int) -> str:
        return ""


def roll(store: dist.Store) -> Roll:
    run = Signed(store, SECRET, "weft/0/")
    meeting: Any = SimpleNamespace(host="host", port=1, run=run, store=run.under("1"), times=1, attempt=lambda f: f())
    meeting.put, meeting.add, meeting.has = meeting.store.set, lambda k: meeting.store.add(k, 1), lambda k: False
    found = Roll(meeting, 0, 3)
    found.enter("shm", b"")
    return found


def joins(message: bytes) -> None:
    here = roll(dist.HashStore())
    here._meeting.store.set("come/1", message)
    here._meeting.store.add("come", 1)
    here.look()
    assert here.here.keys() <= {1}


def ends(message: bytes) -> None:
    here = roll(dist.HashStore())
    here._meeting.run.set("gone/1", message)
    here._meeting.run.add("gone", 1)
    here.look()
    here.missing()


def fails(message: bytes) -> None:
    run = Signed(dist.HashStore(), SECRET, "weft/0/")
    run.set("failure", message)
    assert isinstance(first_failure(run), tuple)


def stranger(message: bytes) -> None:
    store = dist.HashStore()
    cast(Any, store).set("weft/0/failure", message)  # as a stranger who knows no secret writes it
    with pytest.raises(WeftError, match="secret"):
        first_failure(Signed(store, SECRET, "weft/0/"))
    raise WeftError


def waits(message: bytes) -> None:
    watcher = Watcher(Table(message), lambda: ("", "barrier", [Need(1, "group 0,1 ", 2)], {"group 0,1 ": 1}))
    watcher.look()


def late(message: bytes) -> None:
    stuck.waits_of(Table(message), range(3))


def diverges(message: bytes) -> None:
    raise check.differ(Table(message), "key", (0, 1, 2), 3, "barrier", [])  # type: ignore[arg-type]


def opens(message: bytes) -> None:
    Segment.open(message)


def sends(message: bytes) -> None:
    """What the sender's process writes into a link's first page."""
    segment = Segment.make("weft-changed", link_bytes())
    outlet, inlet = Outlet(segment, 0, 1), Inlet(lambda: segment, 0, 1)
    given, got = torch.arange(3.0), torch.empty(3)
    outlet.put(given, Check.CHEAP)
    outlet.move()
    header = segment.bytes[8 * FORM_OF : 8 * FORM_OF + 8], segment.bytes[8 * WRITTEN : 8 * WRITTEN + 8]
    segment.bytes[8 * FORM_OF : 8 * FORM_OF + 8] = (message + header[0])[:8]
    inlet.take(got, got, Check.CHEAP)
    inlet.move()
    assert got.equal(given)


def channels(message: bytes) -> None:
    segment = Segment.make("weft-changed", 2 * PAGE)
    segment.bytes[LAYOUT : LAYOUT + len(message[:1000])] = message[:1000]
    ShmChannel(segment, False, 1, "key", ((2,), torch.float32, 1), 64)


def tags(message: bytes) -> None:
    transport: Any = C10dTransport.__new__(C10dTransport)
    transport.rank, transport.world_size, transport._opened, transport._tags = 0, 2, {}, set()
    transport.deadline, transport.look_around = 1.0, lambda needed: None
    transport._meeting = SimpleNamespace(claim=lambda name: False, get=lambda *_: message)
    try:
        transport.channel("key", 0, 1, (2,), torch.float32, 1)
    except AttributeError as error:
        assert "_process" in str(error) or "_connecting" in str(error) or "_imagined" in str(error)  # it goes on


def boards(message: bytes) -> None:
    """The page that another rank writes."""
    page = Segment.make("weft-changed", page_bytes(3))
    mine = Segment.make("weft-mine", page_bytes(3))
    here = roll(dist.HashStore())
    board = Board(mine, here)
    board._pages[1], here.here[1] = page, COME
    page.bytes[: len(message[:PAGE])] = message[:PAGE]
    board.offered(1, 4096)
    board.whereabouts(1)
    board.look_around((1,))


KINDS: dict[str, tuple[Callable[[bytes], None], bytes]] = {
    "an entry in the roll": (joins, msgspec.json.encode(COME)),
    "an end": (ends, b"raised ValueError: no such file"),
    "a failure": (fails, b"1|rank 1 raised ValueError"),
    "a stranger's failure": (stranger, b"1|rank 1 raised ValueError"),
    "a wait": (waits, msgspec.json.encode(WAIT)),
    "a wait at the deadline": (late, msgspec.json.encode(WAIT)),
    "a call": (diverges, msgspec.json.encode(REPORT)),
    "a handle": (opens, COME.page.encode()),
    "a link's header": (sends, (0).to_bytes(8, "little")),
    "a channel's description": (channels, repr(((2,), torch.float32, 1)).encode()),
    "a channel's tag": (tags, b"18 " + repr(((2,), torch.float32, 1)).encode()),
    "a rank's page": (boards, b"\3" + bytes(WHY - 1) + b"raised ValueError"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_named_errors(kind: str) -> None:
    reads, message = KINDS[kind]
    draw = random.Random(kind)
    refused = 0
    for given in changed(message, draw):
        try:
            reads(given)
        except WeftError as error:
            refused += 1
            assert len(str(error)) < 20_000, kind
        except Exception as error:
            raise AssertionError(f"{kind}: {given[:200]!r} ends in {type(error).__name__}: {error}") from error
    assert refused, kind
