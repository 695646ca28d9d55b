"""The dependency structure against the program order, without threads."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weft.tensor.blob import Blob
from weft.vm.dependency import Dependencies, alias, failure, heal, writable
from weft.vm.instruction import Instruction

BLOBS = 4
blob_sets = st.sets(st.integers(0, BLOBS - 1), max_size=3)
steps = st.tuples(st.sampled_from([None, None, "a", "b"]), blob_sets, blob_sets)
programs = st.lists(steps, max_size=14)


def holding(data: Any) -> Blob:
    """A blob with a stand-in for memory."""
    blob = Blob(None)
    blob.data = blob.now = data
    return blob


def instruction(step, blobs) -> Instruction:
    lane, reads, writes = step
    made = Instruction("op", None, [blobs[i] for i in reads], [blobs[i] for i in writes])
    made.lane = lane
    return made


def act(number: int, made: Instruction) -> None:
    seen = tuple(blob.data for blob in made.const)
    for blob in made.mut:
        blob.data = hash((number, seen, blob.data))


@given(programs, st.randoms(use_true_random=False), st.booleans())
def test_any_ready_order_gives_the_values_of_the_program_order(program, random: Random, shared: bool):
    truth = [holding(i) for i in range(BLOBS)]
    for number, step in enumerate(program):
        act(number, instruction(step, truth))

    blobs = [holding(i) for i in range(BLOBS)]
    if shared:  # a record that says who shares stays, and must say the same
        views = [alias(blob, blob.data) for blob in blobs]
    dependencies = Dependencies()
    todo = list(enumerate(program))
    pending: list[tuple[int, Instruction]] = []
    while todo or pending:
        lanes = set()
        ready = []
        for number, made in pending:
            first_of_lane = made.lane is None or made.lane not in lanes
            lanes.add(made.lane)
            if first_of_lane and not made.unmet:
                ready.append((number, made))
        assert todo or ready, "stuck"
        if todo and (not ready or random.random() < 0.6):
            number, step = todo.pop(0)
            made = instruction(step, blobs)
            dependencies.submit(made)
            pending.append((number, made))
        else:
            number, made = random.choice(ready)
            pending.remove((number, made))
            act(number, made)
            done(dependencies, made)
        for index, blob in enumerate(blobs):
            written = any(blob in made.mut for _, made in pending)
            touched = written or any(blob in made.const for _, made in pending)
            assert blob.now == (None if written else blob.data)
            assert writable(blob) == (not touched)
            if shared:
                assert (views[index].now is None) == written
            else:
                assert (blob.access is None) == (not touched)
    assert [blob.data for blob in blobs] == [blob.data for blob in truth]
    assert not dependencies.pending


def done(dependencies: Dependencies, instruction: Instruction, failed: Instruction | None = None) -> Sequence[Any]:
    """As the machine does; that may break off, and does it again."""
    dependencies.done(instruction, failed)
    ready = dependencies.done(instruction, failed)
    del dependencies.pending[instruction]
    return ready


@given(programs)
def test_edges_are_those_of_the_operands_and_no_others(program):
    blobs = [holding(i) for i in range(BLOBS)]
    dependencies = Dependencies()
    made = [instruction(step, blobs) for step in program]
    edges = [{made.index(i) for i in dependencies.submit(one)} for one in made]

    def conflict(a: Instruction, b: Instruction) -> bool:
        if a.lane is not None and a.lane == b.lane:
            return True  # the lane itself keeps their order
        wa, wb = set(a.mut), set(b.mut)
        return bool(wa & wb or wa & set(b.const) or set(a.const) & wb)

    truth = [{i for i in range(n) if conflict(made[i], made[n])} for n in range(len(made))]
    with_lanes = [
        edges[n] | {i for i in range(n) if made[i].lane is not None and made[i].lane == made[n].lane}
        for n in range(len(made))
    ]
    assert all(edge <= true for edge, true in zip(edges, truth, strict=True))
    assert closure(with_lanes) == closure(truth)


def closure(before: list[set[int]]) -> list[set[int]]:
    out: list[set[int]] = []
    for direct in before:
        out.append(direct.union(*(out[i] for i in direct)))
    return out


def test_done_tells_whom_it_made_ready():
    x, y = holding(1), holding(2)
    dependencies = Dependencies()
    first, other = Instruction("op", mut=[x]), Instruction("op", mut=[y])
    both, again = Instruction("op", const=[x, y]), Instruction("op", const=[x])
    for one in (first, other, both, again):
        dependencies.submit(one)
    assert done(dependencies, first) == [again]
    assert done(dependencies, other) == [both]


def test_a_lane_may_end_out_of_order():
    """Launches are started in order but end when they like: the rest of the program waits for each of them."""
    x = holding(1)
    dependencies = Dependencies()
    reader, first, second = Instruction("op", const=[x]), Instruction("op", mut=[x]), Instruction("op", mut=[x])
    for one in (reader, first, second):
        one.lane = "a"
        assert dependencies.submit(one) == set()
    after, last = Instruction("op", const=[x]), Instruction("op", mut=[x])
    assert dependencies.submit(after) == {first, second}
    assert not done(dependencies, second) and x.now is None
    assert dependencies.submit(last) == {reader, first, after}
    assert done(dependencies, first) == [after]
    assert not done(dependencies, after) and done(dependencies, reader) == [last]
    done(dependencies, last)
    assert x.now == 1 and x.access is None


def test_one_blob_as_several_operands():
    x = holding(1)
    view = alias(x, 1)
    dependencies = Dependencies()
    one = Instruction("op", const=[x, x, view], mut=[x, view])
    assert dependencies.submit(one) == set()
    assert x.now is None and view.now is None
    done(dependencies, one)
    assert x.now == view.now == 1 and writable(x)


def test_aliases_made_before_while_and_after_a_write():
    base = holding("memory")
    before = alias(base, "view 1")
    dependencies = Dependencies()
    write = Instruction("op", mut=[base])
    dependencies.submit(write)
    during = alias(before, "view 2")
    assert before.now is None and during.now is None
    assert dependencies.submit(Instruction("op", const=[during])) == {write}
    done(dependencies, write)
    after = alias(base, "view 3")
    assert [b.now for b in (base, before, during, after)] == ["memory", "view 1", "view 2", "view 3"]


def test_dead_aliases_are_forgotten():
    base = holding("memory")
    kept = alias(base, "kept")
    for _ in range(1000):
        alias(base, "view")
    assert base.access.blobs() == [base, kept]


def test_a_failure_stays_until_something_replaces_the_value():
    x, y = holding(1), holding(2)
    dependencies = Dependencies()
    bad = Instruction("op", mut=[x])
    dependencies.submit(bad)
    done(dependencies, bad, bad)
    assert x.now is None and not writable(x)
    assert failure(Instruction("op", const=[x])) is bad
    assert failure(Instruction("op", mut=[x])) is bad
    assert failure(Instruction("op", const=[y])) is None
    assert failure(Instruction("op", mut2=[x])) is None

    in_place = Instruction("op", mut=[x])
    dependencies.submit(in_place)
    done(dependencies, in_place)
    assert x.now is None, "an in-place op can't bring back a value"

    afresh = Instruction("op", mut2=[x])
    dependencies.submit(afresh)
    done(dependencies, afresh)
    assert x.now == 1 and x.access is None


def test_heal():
    x = holding(1)
    dependencies = Dependencies()
    bad = Instruction("op", mut=[x])
    dependencies.submit(bad)
    done(dependencies, bad, bad)
    heal(x)
    assert x.now == 1 and x.access is None
