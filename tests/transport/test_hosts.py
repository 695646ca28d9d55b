"""Hosts that are imagined on one machine, and the slow links between them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import torch

import weft as flow
from weft.boxing.links import ONE_HOST
from weft.boxing.network import links_of
from weft.core.errors import RankError
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.transport import hosts, transport_of
from weft.transport.hosts import HOSTS, LINK, SlowLink, imagined, slow_link


@pytest.mark.parametrize(
    ("given", "ranks", "found"),
    [
        ("", 4, None),
        ("2", 1, None),
        ("1", 4, (0, 0, 0, 0)),
        ("2", 4, (0, 0, 1, 1)),
        ("0,1,0,1", 4, (0, 1, 0, 1)),
        ("3", 3, (0, 1, 2)),
    ],
)
def test_which_host_a_rank_is_on(given: str, ranks: int, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS, given)
    assert imagined(ranks) == found


@pytest.mark.parametrize("given", ["3", "0", "-1", "two", "0,1", "0,0,1,x", "1.5", ","])
def test_hosts_that_do_not_hold_the_ranks_are_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS, given)
    with pytest.raises(RankError, match=f"{HOSTS} splits the ranks .* 0,0,1,1 say; got '{given}'"):
        imagined(4)


@pytest.mark.parametrize("given", ["fast", "0", "-1e6", "1e6,-1", "1e6,0,0", "nan", "1e6,nan"])
def test_links_that_cannot_be_are_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LINK, given)
    with pytest.raises(RankError, match=f"{LINK} is bytes per second"):
        slow_link()


def test_what_goes_over_a_link_goes_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(hosts.time, "monotonic", lambda: now)
    link = SlowLink(1000.0, 0.5)
    assert link.arrival(500) == 101.0
    assert link.arrival(500) == 101.5  # the link is taken until then; latency holds up nobody else
    now = 200.0
    assert link.arrival(0) == 200.5


def test_ranks_that_are_threads_plan_by_imagined_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS, "2")

    def on_each() -> tuple[Any, ...]:
        links = links_of(current())
        place = flow.placement("cpu", [[0, 1], [2, 3]])
        x = flow.ones(4, 6, placement=place, sbp=(flow.sbp.partial_sum, flow.sbp.partial_sum))
        y = flow.ones(4, 6, placement=flow.placement("cpu", [0, 1, 2, 3]), sbp=flow.sbp.partial_sum)
        whole = y.to_global(sbp=flow.sbp.broadcast).to_local().unique().tolist()
        return links.of_axis(place, 0), links.of_axis(place, 1), x.to_local().sum().item(), whole

    for across, within, _, whole in spawn_threads(4, on_each, deadline=60):
        assert across == (2, 1) and within == (1, 2) and whole == [1.0]
    monkeypatch.delenv(HOSTS)
    assert spawn_threads(2, lambda: links_of(current()) is ONE_HOST, deadline=60) == [True, True]


def slowly() -> None:
    """What it takes to sum between hosts, within one, and to send between them."""
    transport, rank = transport_of(), current().index
    t, pair = torch.ones(25_000), (0, 1) if rank < 2 else (2, 3)
    took = []
    for call in (
        lambda: transport.group(range(4)).all_reduce(t),
        lambda: transport.group(pair).all_reduce(t),
        lambda: transport.exchange([(rank ^ 2, t)], [(rank ^ 2, torch.empty_like(t))]),
    ):
        transport.group(range(4)).barrier()
        start = time.monotonic()
        call()
        took.append(time.monotonic() - start)
    print(json.dumps([*took, [transport.host_of(r) for r in range(4)]]))


def test_only_what_goes_between_hosts_takes_as_long_as_the_link_does(world: Any) -> None:
    for said in world("slowly", 4, "auto", env={HOSTS: "2", LINK: "1e6"}).well():
        across, _, sent, places = json.loads(said)
        assert across >= 0.15 and sent >= 0.1 and places == [0, 0, 1, 1]


def test_shared_memory_joins_no_imagined_hosts(world: Any) -> None:
    ended = world("slowly", 2, "shm", env={HOSTS: "2"})
    assert all(code for _, code in ended.ended.values()) and "joins ranks of one host" in ended.said(0)
