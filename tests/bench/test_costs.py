"""What the bench imagines, so that it can be measured: that it still can be."""

from __future__ import annotations

from bench.costs import compile_in


def test_a_world_is_compiled_for_on_one_rank_of_it() -> None:
    lowered = compile_in(4, "2 layers, d 64, 2x32 tokens")
    assert (lowered.plan.rank, lowered.plan.world_size) == (0, 4)
    assert any(n.op == "boxing" for n in lowered.job.nodes)  # its gradients are made whole
