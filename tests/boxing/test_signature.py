"""The signature that is chosen is the cheapest of all, and it is found without looking for everybody's routes."""

from __future__ import annotations

import random
from typing import Any

import pytest

import weft as flow
from weft.boxing import planner, signature
from weft.boxing.links import ONE_HOST, Links
from weft.boxing.signature import Signature
from weft.core.errors import SbpError
from weft.core.rank import Rank, enter
from weft.core.sbp import NdSbp
from weft.core.spec import Spec
from weft.launch import spawn_threads
from weft.ops import OPS
from weft.ops.infer import freeze

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum


def cost(spec: Spec, nd_sbp: NdSbp, links: Links = ONE_HOST) -> float:
    return planner.cost(spec.shape, spec.dtype, spec.placement, spec.nd_sbp, spec.placement, nd_sbp, links)


def memory(spec: Spec) -> float:
    splits = [n for n, s in zip(spec.placement.shape, spec.nd_sbp, strict=True) if s.is_split]
    found = 1.0
    for n in spec.shape:
        found *= n
    for n in splits:
        found /= n
    return found


def cheapest(name: str, args: tuple[Any, ...], held: signature.Held) -> Signature:
    """By trying all."""
    specs = signature.flatten(OPS[name], args)
    new = [k for k in range(specs[0].placement.ndim) if not any(s.nd_sbp[k].is_partial for s in specs)]

    def adding_up(s: Signature) -> float:
        lie = {k: [(a, b) for a, b in zip(specs, s.inputs, strict=True) if b.nd_sbp[k].is_split] for k in new}
        begun = {
            k for k, split_for in lie.items()
            if not split_for or any(a.nd_sbp[k] is not b.nd_sbp[k] and cost(a, b.nd_sbp) for a, b in split_for)
        }  # fmt: skip
        sums = [tuple(S(0) if n.is_partial and k in begun else n for k, n in enumerate(y.nd_sbp)) for y in s.outputs]
        return sum(cost(y, to, ONE_HOST.without_latency) for y, to in zip(s.outputs, sums, strict=True))

    def key(s: Signature) -> tuple[float, float, int]:
        there = [held[i] if held else () for i in range(len(specs))]
        moves = zip(specs, there, s.inputs, strict=True)
        seconds = sum(0.0 if to.nd_sbp in known else cost(spec, to.nd_sbp) for spec, known, to in moves)
        seconds += adding_up(s)
        held_memory = sum(memory(x) for x in s.inputs) + sum(memory(x) for x in s.outputs)
        return seconds, held_memory, sum(a.nd_sbp != b.nd_sbp for a, b in zip(specs, s.inputs, strict=True))

    return min(signature.candidates(name, freeze(args)), key=key)


@pytest.mark.filterwarnings("ignore:.*has no layout rule")
@pytest.mark.parametrize("seed", range(4))
def test_the_chosen_is_the_cheapest_of_all(seed: int) -> None:
    rng = random.Random(seed)
    with enter(Rank(0, 8)):
        places = [flow.placement("cpu", r) for r in ([0, 1, 2], [[0, 1], [2, 3]], [[0], [1]], [[0, 1, 2], [3, 4, 5]])]
        for _ in range(50):
            place = rng.choice(places)

            def layout(ndim: int, kinds: list[Any], place: Any = place) -> NdSbp:
                return tuple(rng.choice([*kinds, *map(S, range(ndim))]) for _ in range(place.ndim))

            def spec(*shape: int, place: Any = place, layout: Any = layout) -> Spec:
                return Spec(shape, flow.float32, place, layout(len(shape), [B, P]))

            a, b, c = rng.choice([0, 1, 3, 4, 8]), rng.choice([1, 4, 6]), rng.choice([1, 5, 8])
            name, args = rng.choice([
                ("matmul", (spec(a, b), spec(b, c))), ("add", (spec(a, b), spec(b))), ("mul", (spec(a, b), spec(1, b))),
                ("cat", ((spec(a, b), spec(a, b)), 0)), ("transpose", (spec(a, b), 0, 1)),
            ])  # fmt: skip
            flat: list[Spec] = signature.flatten(OPS[name], args)
            held = tuple((layout(len(s.shape), [B]),) if rng.random() < 0.3 else () for s in flat)
            got, expected = signature.choose(OPS[name], args, held), cheapest(name, args, held)
            assert (got.inputs, got.outputs) == (expected.inputs, expected.outputs), (name, args, held)


def test_what_fits_as_it_lies_is_found_without_a_search() -> None:
    with enter(Rank(0, 8)):
        place = flow.placement("cpu", [[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
        x = Spec((8, 16, 34), flow.float32, place, (S(0), B, B))
        w = Spec((34, 66), flow.float32, place, (B, S(1), B))
        before = planner._search.cache_info().misses
        assert signature.choose(OPS["matmul"], (x, w)).outputs[0].nd_sbp == (S(0), S(2), B)
        assert planner._search.cache_info().misses == before


def test_a_sum_that_a_choice_begins_is_counted() -> None:
    """But not what the operands ask for as they lie, nor a gradient's, nor the latency of a loss."""
    with enter(Rank(0, 2)):
        place = flow.placement("cpu", [0, 1])

        def spec(*shape: int, sbp: Any) -> Spec:
            return Spec(shape, flow.float32, place, (sbp,))

        def layouts(name: str, *args: Any, **options: Any) -> list[Any]:
            found = signature.choose(OPS[name], args, **options)
            return [s.nd_sbp[0] for s in (*found.inputs, *found.outputs)]

        h, w = spec(4096, 64, sbp=S(1)), spec(64, 4096, sbp=B)
        assert layouts("matmul", h, w) == [S(0), B, S(0)]
        assert layouts("matmul", h, w, gradient=True) == [S(1), S(0), P]
        assert layouts("matmul", h, w.replace(nd_sbp=(S(0),))) == [S(1), S(0), P]
        bias = layouts("linear", spec(512, 64, sbp=S(1)), spec(512, 64, sbp=S(1)), spec(512, sbp=B))
        assert bias == [S(1), S(1), P, P]  # a relabelled bias
        rows, target = spec(4, 8, sbp=S(0)), spec(4, 8, sbp=B)
        assert layouts("square_error", rows, target, True, links=Links(hosts=lambda rank: rank))[:3] == [S(0), S(0), P]
        given = signature.declared(OPS["matmul"], (h, w), (spec(4096, 4096, sbp=P),))
        assert [s.nd_sbp[0] for s in given.inputs] == [S(1), S(0)]
        with pytest.raises(SbpError, match=r"no layout of the op gives \(P\(max\)\)"):
            signature.declared(OPS["matmul"], (h, w), (spec(4096, 4096, sbp=flow.sbp.partial_max),))


def test_what_is_recomputed_has_the_layouts_of_forward() -> None:
    def told() -> list[str]:
        place = flow.placement("cpu", [0, 1])
        h = flow.ones(2048, 8, placement=place, sbp=S(1)).requires_grad_()
        w = flow.ones(8, 2048, placement=place, sbp=B)
        found = []
        for again in (False, True):
            with flow.explain() as movements:
                y = flow.utils.checkpoint.checkpoint(lambda: flow.relu(h @ w)) if again else flow.relu(h @ w)
                y.sum().backward()
            found.append(str(movements))
        return found

    once, twice = spawn_threads(2, told, deadline=60)[0]
    assert once.count("all_to_all") == 2 and "(P)" not in once  # to rows, and the gradient back
    assert twice.count("all_to_all") == 3 and "(P)" not in twice


def test_a_written_operand_is_not_moved() -> None:
    with enter(Rank(0, 2)):
        place = flow.placement("cpu", [0, 1])
        with pytest.raises(SbpError, match="can't be moved first"):
            x = Spec((2, 3), flow.float32, place, (P,))
            signature.choose(OPS["batch_norm"], (x, *[Spec((3,), flow.float32, place, (P,))] * 4, True, 0.1, 1e-5))
