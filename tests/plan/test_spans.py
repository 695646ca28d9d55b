"""Which bytes are needed for how long, against a simulation; and a plan that takes a byte too early is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import CompileError
from weft.plan import calls
from weft.plan.spans import Strided, Use, contiguous, needed

SHAPE = (4, 6, 8)
VIEWS = st.lists(
    st.one_of(
        st.tuples(st.just("narrow"), st.integers(0, 2), st.integers(0, 3), st.integers(1, 3), st.integers(1, 2)),
        st.tuples(st.just("transpose"), st.integers(-3, 2), st.integers(-3, 2)),
        st.tuples(st.just("permute"), st.permutations([0, 1, 2])),
        st.tuples(st.just("reshape")),
        st.tuples(st.just("other")),
    ),
    max_size=5,
)


@given(st.lists(st.tuples(VIEWS, st.integers(0, 9)), max_size=6))
def test_no_byte_is_let_go_before_a_view_of_it_is_read(chains: list[tuple[list[tuple[Any, ...]], int]]) -> None:
    whole = torch.arange(4 * 6 * 8).view(SHAPE)
    shapes: dict[str, tuple[int, ...]] = {"x": SHAPE}
    uses, until, wanted = [Use("relu", (), (), ("x",), False)], [0] * whole.numel(), []
    for views, delay in chains:
        at, name = whole, "x"
        for op, *args in views:
            if op == "narrow" and (args[1] + (args[2] - 1) * args[3] >= at.shape[args[0]]):
                continue
            if op == "narrow":
                dim, start, length, step = args
                index = [slice(None)] * 3
                index[dim] = slice(start, start + (length - 1) * step + 1, step)
                seen = at[tuple(index)]
            elif op == "reshape":
                shape = (at.shape[0] * at.shape[1], 1, at.shape[2])
                if not at.is_contiguous():
                    continue
                seen, args = at.view(shape), [shape]
            elif op == "other":
                seen = at[:, :1]
            else:
                seen = getattr(at, op)(*args)
            made = f"v{len(shapes)}"
            shapes[made] = tuple(seen.shape)
            uses.append(Use(op, (name, *args), (name,), (made,), True))
            at, name = seen, made
        wanted.append((delay, name, at))
    for _, name, at in sorted(wanted, key=lambda w: w[0]):
        uses.append(Use("sum", (name,), (name,), (), False))
        for element in at.flatten().tolist():
            until[element] = len(uses) - 1
    pieces = needed(uses, lambda v: Strided(shapes[v], contiguous(shapes[v]), 4), {})["x"]
    assert [p.begin for p in pieces] + [pieces[-1].end] == [0] + [p.end for p in pieces] and pieces[-1].end == 4 * 192
    for element, last in enumerate(until):
        (piece,) = [p for p in pieces if p.begin <= 4 * element < p.end]
        assert piece.last >= last


def test_a_value_is_let_go_as_its_parts_are_read() -> None:
    uses = [Use("relu", (), (), ("x",), False)]
    for k in range(2):
        uses.append(Use("narrow", ("x", 0, 2 * k, 2, 1), ("x",), (f"x.{k}",), True))
        uses.append(Use("exp", (f"x.{k}",), (f"x.{k}",), (f"y.{k}",), False))
    uses.append(Use("cat", (("y.0", "y.1"), 0), ("y.0", "y.1"), ("y",), False))
    shapes = {v: (2, 3) for v in ("x.0", "x.1", "y.0", "y.1")} | {"x": (4, 3), "y": (4, 3)}
    found = needed(uses, lambda v: Strided(shapes[v], (3, 1), 4), {"y.0": ("y", 0), "y.1": ("y", 24)})
    assert [p[:4] for p in found["x"]] == [(0, 24, 0, 2), (24, 48, 0, 4)]
    assert [p[:4] for p in found["y"]] == [(0, 24, 2, 5), (24, 48, 4, 5)]


STEP = """arena 448
%a = read() : float32[8,4] register 1+0
%x = relu(%a) : float32[8,4] arena+0
%x.0 = narrow(%x, 0, 0, 4, 1) : float32[4,4] view of %x
%y = exp(%x.0) : float32[4,4] arena+128
%x.1 = narrow(%x, 0, 4, 4, 1) : float32[4,4] view of %x
%z = exp(%x.1) : float32[4,4] arena+PLACE
"""


def test_a_piece_that_is_read_no_more_may_be_overwritten() -> None:
    calls.verify(calls.parse(STEP.replace("PLACE", "0").splitlines()), {1: 128}, {})
    for wrong in ("64", "32", "128"):
        text = STEP.replace("PLACE", wrong) + "%u = add(%y, %x.1) : float32[4,4] arena+384\n"
        with pytest.raises(CompileError, match="still needed"):
            calls.verify(calls.parse(text.splitlines()), {1: 128}, {})
