"""The network between the ranks, as the current rank's transport knows it."""

from __future__ import annotations

from weft.boxing.links import BETWEEN, ONE_HOST, Link, Links
from weft.core.rank import Rank
from weft.transport import transport_of

NAME = "links"


def links_of(rank: Rank) -> Links:
    """The links by which this rank plans routes; read from the transport once."""
    if rank.world_size == 1:
        return ONE_HOST
    found = rank.resources.get(NAME)
    return found if found is not None else rank.resource(NAME, _make)


def _make(rank: Rank) -> Links:
    transport = transport_of(rank)
    if not transport.several_hosts:
        return ONE_HOST
    slow = transport.link
    between = BETWEEN if slow is None else BETWEEN | {"cpu": Link(slow.speed, BETWEEN["cpu"].latency + slow.latency)}
    return Links(transport.host_of, between=between)
