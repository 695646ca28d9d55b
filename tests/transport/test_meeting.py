"""Ranks meet without waiting for all; they say who hasn't come, and end at once if one dies or was told otherwise."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import sys
import threading
import time
from typing import Any

import pytest
import torch
import torch.distributed as dist

from weft.core.errors import DeadlineError, RankError, SecretError
from weft.core.rank import Rank, current
from weft.transport import base, peers, rendezvous, roll, transport_of
from weft.transport.roll import run_of, tell_end
from weft.transport.secret import Signed

NOTICED = 30.0  # seconds, where everything else runs at the same time
TRANSPORTS = ("shm", "c10d")


def told(key: str) -> None:
    """Wait for a word of the test, without meeting anybody."""
    port = int(os.environ["MASTER_PORT"])
    rendezvous.reach("127.0.0.1", port, 60.0, "a rank", "the test").get(key)


def tell(running: Any, key: str) -> None:
    running.run._inner.set(key, "")


def test_a_connection_that_is_late_is_tried_again_and_a_refused_one_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    served = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    late, connect = iter([TimeoutError("timed out")]), socket.create_connection

    def connecting(*given: Any) -> socket.socket:
        for error in late:
            raise error
        return connect(*given)

    monkeypatch.setattr(socket, "create_connection", connecting)
    served.set("key", "value")
    found = rendezvous.reach("127.0.0.1", served.port, 30.0, "a rank", "the test", again=True)
    assert found.get("key") == b"value"
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        with pytest.raises(dist.DistNetworkError, match="nobody answers"):
            rendezvous.reach("127.0.0.1", unheard.getsockname()[1], 30.0, "a rank", "the test", again=True)


# ---- a third rank ------------------------------------------------------------------------------------------------


def two_talk() -> None:
    """Ranks 0 and 1 reduce, send and end, while rank 2 hasn't come."""
    if current().index == 2:
        told("talked")
        return
    transport, other = transport_of(), 1 - current().index
    t = torch.ones(2)
    transport.group((0, 1)).all_reduce(t)
    got = torch.empty(2)
    transport.exchange([(other, t)], [(other, got)])
    transport.close()
    print("talked", got.tolist())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_two_ranks_talk_and_end_while_a_third_has_not_come(world: Any, transport: str) -> None:
    def during(running: Any) -> None:
        for rank in (0, 1):
            running.wait_for(rank, "talked [2.0, 2.0]")
        tell(running, "talked")

    world("two_talk", 3, transport, during=during).well()


def third_needed() -> None:
    base.SPEAK = rendezvous.SPEAK = 0.02
    if current().index == 2:
        told("over")
        return
    transport = transport_of()
    if current().index == 1:
        print("came", flush=True)
        if os.environ.get("DIES"):
            told("die")
            os.kill(os.getpid(), signal.SIGKILL)
    transport.group((0, 1, 2)).barrier()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_who_has_not_come_is_said_and_a_launcher_tells_of_its_end(world: Any, transport: str) -> None:
    def during(running: Any) -> None:
        for rank in (0, 1):
            running.wait_for(rank, "rank 2 of 3 has not come to 127.0.0.1:")
        tell_end(running.run, 2, "was killed by SIGKILL")
        for rank in (0, 1):
            running.wait_for(rank, "PeerFailed: rank 2 was killed by SIGKILL before it had come")
        tell(running, "over")

    world("third_needed", 3, transport, during=during)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rank_that_came_dies_while_the_others_wait_for_a_third(world: Any, transport: str) -> None:
    def during(running: Any) -> None:
        running.wait_for(0, "rank 2 of 3 has not come")
        running.wait_for(1, "came")
        start = time.monotonic()
        tell(running, "die")
        running.wait_for(0, "PeerFailed: rank 1")
        assert time.monotonic() - start < NOTICED
        tell(running, "over")

    done = world("third_needed", 3, transport, env={"DIES": "1"}, during=during)
    assert re.search(rf"rank 1 \(process {done.pids[1]}\) died without a word", done.said(0)), done.said(0)


def never() -> None:
    roll.LATE = 0.0
    transport_of().deadline = 0.1
    with pytest.raises(DeadlineError, match=r"ranks 1, 2 of 3 have not come to 127.0.0.1:\d+\. WEFT_DEADLINE"):
        transport_of().group((0, 1, 2)).barrier()
    with pytest.raises(DeadlineError, match=r"rank 2 of 3 has not come"):
        transport_of().recv(torch.empty(1), 2)


def test_a_deadline_says_who_never_came(world: Any) -> None:
    """Rank 0 alone comes; the others are here, and use nothing of Weft's."""
    world("never_but_0", 3, "shm").well()


def never_but_0() -> None:
    if os.environ["RANK"] == "0":
        never()


def fails_before_it_comes() -> None:
    if current().index:
        del os.environ[rendezvous.AGENT]  # as if it were started by hand
        raise ValueError("no such file")
    transport_of().group((0, 1)).barrier()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rank_by_hand_tells_that_it_failed_before_it_came(world: Any, transport: str) -> None:
    said = world("fails_before_it_comes", 2, transport).said(0)
    assert "PeerFailed: rank 1 raised ValueError: no such file before it had come" in said, said


def dies_at_its_first_call() -> None:
    transport = transport_of()
    if current().index:
        transport.note("its first deed")
    transport.group((0, 1)).barrier()
    if current().index:
        transport.note("its last deed")
        os.kill(os.getpid(), signal.SIGKILL)
    transport.group((0, 1)).barrier()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_a_rank_did_last_is_known_however_soon_it_dies(world: Any, transport: str) -> None:
    said = world("dies_at_its_first_call", 2, transport).said(0)
    assert re.search(r"rank 1 \(process \d+\) died without a word, at its last deed", said), said


def test_a_port_and_a_host_that_cannot_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "0")
    with pytest.raises(RankError, match="MASTER_PORT=0 would be another port for each rank"):
        rendezvous.address()

    def unknown(*_: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(rendezvous, "UNKNOWN", 0.0)
    with pytest.raises(RankError, match=r"MASTER_ADDR='no\.such\.host' is the name of no host that is known here"):
        rendezvous.resolved("no.such.host", 29500, 300.0, "rank 1")


# ---- contradictions ----------------------------------------------------------------------------------------------


def contradicting(variable: str, value: str) -> None:
    if os.environ["RANK"] == "1":
        os.environ[variable] = value
    transport_of().group((0, 1)).barrier()


CONTRADICTIONS = {
    "WORLD_SIZE": ("3", r"WORLD_SIZE=(2.*WORLD_SIZE=3|3.*WORLD_SIZE=2)"),
    "RANK": ("0", r"rank 0 was started twice, as processes \d+ and \d+"),
    "WEFT_TRANSPORT": ("c10d", r"WEFT_TRANSPORT=(c10d.*WEFT_TRANSPORT=shm|shm.*WEFT_TRANSPORT=c10d)"),
    "WEFT_CHECK": ("1", r"WEFT_CHECK=(0.*WEFT_CHECK=1|1.*WEFT_CHECK=0)"),
    "WEFT_SECRET": ("another secret of a run", r"not written by one who knows this run's secret.*python -c"),
}


@pytest.mark.parametrize("variable", CONTRADICTIONS)
def test_ranks_that_were_told_different_things_end_at_once(world: Any, variable: str) -> None:
    value, words = CONTRADICTIONS[variable]
    start = time.monotonic()
    done = world("contradicting", 2, "shm", variable, value)
    assert time.monotonic() - start < NOTICED
    for rank in (0, 1):
        assert done.ended[rank][1] == 1
        assert re.search(words, done.said(rank)), done.said(rank)


def without_a_secret(shared: str) -> None:
    """As on hosts of which each has its user's own file, or that share it."""
    del os.environ["WEFT_SECRET"]
    os.environ["XDG_CACHE_HOME"] = shared or f"{os.environ['TMPDIR']}/home-{os.environ['RANK']}"
    transport_of().group((0, 1)).barrier()


@pytest.mark.parametrize("shared", ["", "home"])
def test_hosts_meet_with_a_secret_in_common_or_not_at_all(world: Any, tmp_path: Any, shared: str) -> None:
    place = str(tmp_path / shared) if shared else ""
    done = world("without_a_secret", 2, "c10d", place, env={"WEFT_HOSTS": "2", "TMPDIR": str(tmp_path)})
    if shared:
        done.well()
        return
    for rank in (0, 1):
        assert done.ended[rank][1] == 1
        assert re.search(r"knows? .*secret.* several hosts.* need the same value of WEFT_SECRET", done.said(rank))


def another_protocol() -> None:
    if os.environ["RANK"] == "1":
        roll.PROTOCOL += 1
    transport_of().group((0, 1)).barrier()


def test_versions_are_compared(world: Any) -> None:
    done = world("another_protocol", 2, "c10d")
    for rank in (0, 1):
        assert re.search(r"speaks version \d of Weft's protocol, and rank", done.said(rank)), done.said(rank)


# ---- strangers ---------------------------------------------------------------------------------------------------


def in_the_way(key: str) -> None:
    told("forged")
    if key != "1/come/1" or current().index == 0:  # rank 1 itself would write there
        transport_of().group((0, 1)).barrier()


@pytest.mark.parametrize("key", ["1/come/1", "1/group/0,1", "failure"])
def test_what_a_stranger_writes_is_refused(world: Any, key: str) -> None:
    def during(running: Any) -> None:
        run = run_of(running.run._inner, "the secret of another run")
        run.set(key, f"{os.getpid()}:0:0:4096")
        run.add("1/group/0,1/claim", 1)
        run.add("1/come", 1)
        tell(running, "forged")

    done = world("in_the_way", 2, "shm", key, during=during)
    said = done.said(0) + done.said(1)
    assert f"SecretError: 'weft/0/{key}' in the run's store" in said and done.ended[0][1] == 1, said


def tags_again() -> None:
    transport = transport_of()
    transport.channel("a", 0, 1, (1,), torch.float32, 1)
    transport.group((0, 1)).barrier()
    if current().index:
        transport._meeting.add("tags", -1)
    transport.group((0, 1)).barrier()
    with pytest.raises(RankError, match="tag 18, which is another's: somebody who isn't of the run"):
        transport.channel("b", 0, 1, (1,), torch.float32, 1)


def test_two_channels_never_get_one_tag(world: Any) -> None:
    """Counters bear no proof: a stranger may change them."""
    world("tags_again", 2, "c10d").well()


def test_a_value_is_believed_under_its_own_name_only() -> None:
    store: Any = dist.HashStore()
    one = Signed(store, "the secret of one run", "a/")
    one.set("x", b"1")
    assert one.get("x") == b"1" == Signed(store, "the secret of one run").under("a").get("x")
    store.set("a/y", store.get("a/x"))
    with pytest.raises(SecretError, match="'a/y'"):
        one.get("y")
    for forged in (b"", b"1", b"0" * 32, b"0" * 32 + b"1"):
        store.set("a/x", forged)
        with pytest.raises(SecretError, match="WEFT_SECRET"):
            one.get("x")


# ---- the agent ---------------------------------------------------------------------------------------------------


def left_behind() -> None:
    """This process starts a rank as torchrun does, and is killed."""
    ends = os.pipe()
    if os.fork():
        os.read(ends[0], 1)
        os.kill(os.getpid(), signal.SIGKILL)
    os.environ["TORCHELASTIC_RUN_ID"] = "none"
    transport_of(Rank())
    print(f"process {os.getpid()} goes on", flush=True)
    os.write(ends[1], b".")
    select.poll().poll()  # for ever


def test_a_rank_ends_when_its_torchrun_was_killed(world: Any) -> None:
    def during(running: Any) -> None:
        running.wait_for(0, "goes on")
        running.wait_for(0, f"rank 0 ends, as process {running.pids[0]}, which started it, has gone")
        found = re.search(r"process (\d+) goes on", running.said(0))
        assert found is not None
        end = time.monotonic() + NOTICED
        while lives(int(found[1])):
            assert time.monotonic() < end
            time.sleep(0.01)

    assert world("left_behind", 1, "local", during=during).ended[0][1] == -signal.SIGKILL


def test_what_was_started_by_hand_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a shell is none of its ranks'."""
    monkeypatch.delenv(peers.STARTED_BY_AGENT, raising=False)
    peers.end_with_agent(0)
    assert peers.NAME not in [thread.name for thread in threading.enumerate()]


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# ---- children ----------------------------------------------------------------------------------------------------


def in_a_child(what: Any) -> None:
    child = os.fork()
    if child == 0:
        try:
            what()
        except RankError as error:
            print(f"child: {error}", flush=True)
            sys.exit(0)  # with all exit functions, of which none may end the rank
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def children() -> None:
    """Before the rank has met anybody, and after."""

    def reduces() -> None:
        transport_of().group((0, 1)).all_reduce(torch.ones(1))

    if current().index:
        in_a_child(reduces)
    transport = transport_of()
    group = transport.group((0, 1))
    bound = group.all_reduce  # as a compiled chain holds it
    end = transport.channel("k", 0, 1, (1,), torch.float32, 1)
    group.barrier()

    if current().index:
        for use in (
            reduces,
            group.barrier,
            lambda: bound(torch.ones(1)),
            lambda: transport.recv(torch.ones(1), 0),
            lambda: transport.put("x", b""),
            end.acknowledge,
        ):
            in_a_child(use)
    group.all_reduce(t := torch.ones(1))
    print(t.item(), flush=True)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_forked_child_takes_no_part(world: Any, transport: str) -> None:
    done = world("children", 2, transport)
    zero, one = done.well()
    assert zero == "2.0\n" and one.endswith("2.0\n")
    refused = re.findall(rf"child: process \d+ was forked from rank 1 \(process {done.pids[1]}\)", one)
    assert len(refused) == 7, one
