"""Figures of the host's memory: a tensor shows in them while it lives."""

from __future__ import annotations

import weft as flow

SIZE = 1 << 26  # bytes, more than whatever else comes and goes here, and than malloc ever takes from what it kept


def test_a_tensor_is_counted_while_it_lives() -> None:
    before = flow.cpu.memory_allocated()
    x = flow.ones(SIZE // 4)
    assert 0.9 * SIZE < flow.cpu.memory_allocated() - before < 1.5 * SIZE
    del x
    assert abs(flow.cpu.memory_allocated() - before) < 0.5 * SIZE


def test_the_process_has_what_is_in_use_and_had_more() -> None:
    flow.cpu.reset_peak_memory_stats()
    x = flow.ones(SIZE // 4)
    del x
    flow.cpu.empty_cache()
    figures = flow.cpu.memory_stats()
    assert 0 < flow.cpu.memory_reserved() <= flow.cpu.max_memory_reserved()
    assert figures["reserved_bytes.all.peak"] - figures["reserved_bytes.all.current"] > 0.5 * SIZE
    assert figures["allocated_bytes.all.current"] > 0
