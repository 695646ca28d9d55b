from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import CompileError
from weft.plan.ids import DEVICES, TaskId, decode, encode, parse_id, rank_of, stream_of

ids = st.builds(
    TaskId,
    st.integers(0, (1 << 19) - 1),
    st.sampled_from(DEVICES[1:]),
    st.integers(0, (1 << 7) - 1),
    st.integers(0, (1 << 12) - 1),
    st.integers(0, (1 << 21) - 1),
)


@given(ids)
def test_an_id_is_its_fields(id: TaskId) -> None:
    number = id.encode()
    assert 0 <= number < 1 << 64
    assert decode(number) == id
    assert parse_id(str(id)) == number
    assert (rank_of(number), stream_of(number)) == (id.rank, id.stream)


def test_the_bits_lie_as_documented() -> None:
    assert encode(3, "cpu", 2, 5, 7) == 3 << 45 | 1 << 40 | 2 << 33 | 5 << 21 | 7


@pytest.mark.parametrize(
    "bad", [(1 << 19, "cpu", 0, 0, 0), (0, "tpu", 0, 0, 0), (0, "cpu", 128, 0, 0), (0, "cpu", 0, 0, -1)]
)
def test_what_does_not_fit_is_refused(bad: tuple[int, str, int, int, int]) -> None:
    with pytest.raises(CompileError):
        encode(*bad)


@pytest.mark.parametrize("bad", ["", "0.cpu.0.1", "0.cpu.x.1.2", "0.tpu.0.0.0"])
def test_an_address_is_read_strictly(bad: str) -> None:
    with pytest.raises(CompileError):
        parse_id(bad)


def test_zero_is_no_id() -> None:
    with pytest.raises(CompileError, match="device type"):
        decode(0)
