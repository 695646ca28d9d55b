"""Ranks that are started by hand, and wrongly: each case ends in seconds, and is named by all who can know of it."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.ports import free_port, free_ports
from weft.core.errors import RankError
from weft.core.rank import current
from weft.transport import rendezvous, transport_of
from weft.transport.rendezvous import serve

SOON = 25.0  # seconds, where everything else runs at the same time; the deadline is far behind


def meets() -> None:
    transport_of().group(range(current().world_size)).barrier()


def waits(word: str) -> None:
    while not Path(word).exists():
        time.sleep(0.005)


def after_the_other() -> None:
    waits("met")
    meets()


def first() -> None:
    transport = transport_of()
    Path("met").touch()
    transport.group((0, 1)).barrier()


def stays() -> None:
    """A run of two whose ranks have met, until a third process has ended."""
    meets()
    Path("met").touch()
    waits("ended")
    meets()


def is_one_too_many() -> None:
    waits("met")
    try:
        meets()
    finally:
        Path("ended").touch()


def takes_a_wrong_option() -> None:
    """Rank 0 comes and fails before it has a transport; it serves the store until the other has read why."""
    rendezvous.STAND_IN = SOON
    os.environ["WEFT_HOSTS"] = "5"
    try:
        meets()
    finally:
        Path("met").touch()


def sees_who_ended() -> None:
    transport: Any = transport_of()
    Path("met").touch()
    roll = transport._meeting.roll
    transport.wait_until(lambda: roll.look() or roll.went, "what is said of rank 1")
    transport.deadline = 0.1
    transport.group((0, 1)).barrier()


def ends_well() -> None:
    waits("met")


ONCE = r"rank {} was started twice, as processes \d+ and \d+"
BEYOND = r"RANK counts from 0 to WORLD_SIZE - 1.*that is rank 2 of 2"
PORT = r"the store can't be served at 127.0.0.1:\d+, as another process listens there"
OPTION = r"WEFT_HOSTS splits the ranks .* got '5'"
WELL = r"rank 1 of 2 has not come to 127.0.0.1:\d+; process \d+ of rank 1 ended well, but never came"

# By case: of each process its RANK, what it does, and what it says at last; nothing where it ends well.
CASES: dict[str, list[tuple[int, Any, str]]] = {
    "two are rank 0": [(0, first, ONCE.format(0)), (0, after_the_other, ONCE.format(0))],
    "one too many": [(0, stays, ""), (1, stays, ""), (1, is_one_too_many, ONCE.format(1))],
    "beyond the world": [(0, first, BEYOND), (2, after_the_other, BEYOND)],
    "an option of one rank": [(0, takes_a_wrong_option, OPTION), (1, after_the_other, OPTION)],
    "another program's port": [(0, meets, PORT), (1, meets, PORT)],
    "one ends without coming": [(0, sees_who_ended, WELL), (1, ends_well, "")],
    "IPv6": [(0, meets, ""), (1, meets, "")],
    "another loopback address": [(0, meets, ""), (1, meets, "")],
}
ADDRESSES = {"IPv6": "::1", "another loopback address": "127.0.1.1"}
EVERY = [(case, *one) for case, processes in CASES.items() for one in processes]


def is_by_hand(folder: str, *ports: str) -> None:
    """One process of one of the cases."""
    case, rank, what, _ = EVERY[int(os.environ["RANK"])]
    for name in [n for n in os.environ if n.startswith(("TORCHELASTIC", "LOCAL_", "GROUP_"))]:
        del os.environ[name]
    port = dict(zip(CASES, ports, strict=True))[case]
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR=ADDRESSES.get(case, "127.0.0.1"), MASTER_PORT=port)
    os.makedirs(place := os.path.join(folder, case), exist_ok=True)
    os.chdir(place)
    what()


@pytest.fixture
def ports() -> Iterator[list[str]]:
    other = serve("127.0.0.1", 0, 60)  # of no run
    free = free_ports()
    yield [str(other.port if case == "another program's port" else next(free)) for case in CASES]


def test_what_is_wrong_is_named_soon(world: Any, tmp_path: Path, ports: list[str]) -> None:
    done = world("is_by_hand", len(EVERY), "shm", str(tmp_path), *ports)
    for i, (case, rank, _, words) in enumerate(EVERY):
        when, code = done.ended[i]
        assert code == bool(words) and re.search(words, done.said(i)), (case, rank, done.said(i))
        assert when - min(t for t, _ in done.ended.values()) < SOON, (case, rank)


def test_an_address_of_another_host_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_way(*_: object) -> None:
        raise OSError(113, "No route to host")

    monkeypatch.setattr(socket, "create_connection", no_way)
    with pytest.raises(RankError, match=r"at 192\.0\.2\.7:\d+ \(.*No route.*: MASTER_ADDR is the address"):
        serve("192.0.2.7", free_port(), 5.0)
