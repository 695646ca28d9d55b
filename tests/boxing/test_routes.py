from __future__ import annotations

import doctest

import pytest

from weft.boxing import overlap, routes
from weft.boxing.routes import Route
from weft.boxing.steps import AllGather, AllReduce, Relabel, Slice, State
from weft.core import dtype, sbp
from weft.core.errors import SbpError
from weft.core.placement import Placement
from weft.core.spec import Spec

S, B, P, PMAX = sbp.split, sbp.broadcast, sbp.partial_sum, sbp.partial_max
ROW = Placement("cpu", [0, 1])


def spec(*nd_sbp: sbp.Sbp, shape: tuple[int, ...] = (4, 6)) -> Spec:
    return Spec(shape, dtype.float32, ROW, nd_sbp)


@pytest.mark.parametrize("module", [routes, overlap], ids=lambda m: m.__name__)
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_route_reads_well_and_parses() -> None:
    route = Route(spec(P), spec(S(0)), (AllReduce(0, "sum"), Slice(0, 0)))
    assert str(route.verify()) == (
        "float32[4,6] cpu:[0,1] (P) -> cpu:[0,1] (S(0))\n    all_reduce(axis=0, reduce=sum)\n    slice(axis=0, dim=0)"
    )
    assert routes.parse(str(route)) == route
    for empty in (Route(spec(B), spec(B), ()), Route(spec(B, shape=()), spec(B, shape=()), ())):
        assert routes.parse(str(empty)) == empty.verify()


@pytest.mark.parametrize(
    ("route", "why"),
    [
        (Route(spec(P), spec(B), ()), r"ends at cpu:\[0,1\] \(P\), but should at cpu:\[0,1\] \(B\)"),
        (Route(spec(P), spec(B), (AllGather(0, 0),)), "starts from S"),
        (Route(spec(S(0)), spec(B), (AllGather(0, 0), AllGather(0, 0))), "starts from S"),
        (Route(spec(S(2)), spec(S(2)), ()), "splits dimension 2, but the tensor has 2"),
        (Route(spec(B), spec(B, shape=(4, 7)), ()), "keeps shape and dtype"),
        (Route(spec(S(0)), spec(B), (Relabel(State(ROW, (S(0),)), State(ROW, (B,))),)), "changes more than names"),
    ],
    ids=str,
)
def test_verify_refuses_broken_routes(route: Route, why: str) -> None:
    with pytest.raises(SbpError, match=why):
        route.verify()


@pytest.mark.parametrize("text", ["", "nonsense", "float32[4] cpu:[0,1] (S(0))"])
def test_text_that_is_no_route(text: str) -> None:
    with pytest.raises(SbpError, match="heads no route"):
        routes.parse(text)
