"""Several hosts: a launcher on each, which here all are on this one, at ends of the same loopback."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from bench.ports import free_port
from tests.worlds import SECRET, Start
from weft.core.errors import ArgumentError, RankError, SecretError
from weft.launch.__main__ import main
from weft.launch.hosts import Hosts
from weft.transport.rendezvous import own_address, serve
from weft.transport.roll import run_of

PROGRAM = """
import os, sys
if sys.argv[1:] == ["leave"] and os.environ["RANK"] == "1":
    sys.exit(3)                                     # before the others can notice it by themselves
import torch
from weft.core.rank import current
from weft.transport import transport_of

me = current()
transport = transport_of()
t = torch.tensor([1.0 + me.index])
transport.group(range(me.world_size)).all_reduce(t)
print(type(transport).__name__, me.index, me.local_index, me.local_size, me.world_size, t.item())
"""


def launches(program: str, port: str, *words: str) -> None:
    """Be the launcher of one of two hosts, with one rank each."""
    node = os.environ["RANK"]
    sys.exit(main(["--nnodes", "2", "--node-rank", node, "--master-port", port, program, *words]))


def launch(world: Start, tmp_path: Path, *words: str) -> list[tuple[int, str]]:
    """What the launchers give: their codes, and what was written there."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = world("launches", 2, "auto", str(program), str(free_port()), *words, env={"WEFT_DEADLINE": "60"})
    return [(done.ended[i][1], done.said(i)) for i in range(2)]


def test_ranks_of_two_hosts_meet_and_share_no_memory(world: Start, tmp_path: Path) -> None:
    assert launch(world, tmp_path) == [(0, f"[rank {i}] C10dTransport {i} 0 1 2 3.0\n") for i in range(2)]


def test_a_failure_on_one_host_ends_the_other(world: Start, tmp_path: Path) -> None:
    first, second = launch(world, tmp_path, "leave")
    for code, words in (first, second):
        assert "weft.launch: rank 1 failed with exit code 3; every other rank was ended" in words
        assert code
    assert second[0] == 3


def test_host_0_ends_last() -> None:
    store = serve("127.0.0.1", 0, 20)
    first = Hosts(0, 2, 4, "127.0.0.1", store.port, run_of(store, SECRET))
    second = Hosts(1, 2, 4, "127.0.0.1", store.port, run_of(store, SECRET))
    assert not second.look()
    ending = threading.Thread(target=first.end, args=(1.0,))
    ending.start()
    ending.join(0.2)
    assert ending.is_alive() and not second.look()
    second.end(1.0)
    ending.join(60)
    assert not ending.is_alive() and first.failure is None


def test_host_0_hears_of_a_failure_after_its_own_ranks_ended() -> None:
    store = serve("127.0.0.1", 0, 20)
    first = Hosts(0, 2, 4, "127.0.0.1", store.port, run_of(store, SECRET))
    second = Hosts(1, 2, 4, "127.0.0.1", store.port, run_of(store, SECRET))
    second.tell(6, "ran out of paper")
    second.tell(7, "followed")
    second.end(1.0)
    first.end(1.0)
    assert first.failure == second.failure == "rank 6 ran out of paper"


def test_hosts_are_started_alike_and_once() -> None:
    store = serve("127.0.0.1", 0, 20)
    first = Hosts(0, 2, 4, "127.0.0.1", store.port, run_of(store, SECRET))
    with pytest.raises(ArgumentError, match="another launcher has --node_rank 0"):
        Hosts(0, 2, 4, "127.0.0.1", store.port, run_of(store, SECRET))
    with pytest.raises(ArgumentError, match="host 0 was started with --nnodes 2 --nproc_per_node 4, and this one"):
        Hosts(1, 2, 3, "127.0.0.1", store.port, run_of(store, SECRET))
    first.end(0.5)
    assert first.look() and "rank 3 was not started" in str(first.failure)


def test_launchers_that_know_different_secrets_are_told() -> None:
    store = serve("127.0.0.1", 0, 20)
    first = Hosts(0, 2, 4, "127.0.0.1", store.port, run_of(store, SECRET))
    with pytest.raises(SecretError, match="the same value of WEFT_SECRET"):
        Hosts(1, 2, 4, "127.0.0.1", store.port, run_of(store, "the secret of another run"))
    first.end(0.1)
    assert first.look() and "the same value of WEFT_SECRET" in str(first.failure)


def test_a_host_is_known_by_its_address_on_the_way_to_the_store() -> None:
    assert own_address("127.0.0.1", 29500) == "127.0.0.1"


def test_a_port_that_is_taken_or_none_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RankError, match="Is the port taken by another run"):
            serve("127.0.0.1", taken.getsockname()[1], 5)
    with pytest.raises(ArgumentError, match="--master_port is a number up to 65535; got 70000"):
        main(["--nnodes", "2", "--master_port", "70000", "program.py"])
