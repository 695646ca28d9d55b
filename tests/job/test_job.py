"""Nodes are put before and after others, and left out, as a plain list would have it."""

from __future__ import annotations

from weft.job.text import parse

JOB = """\
job arranged
%x = input() : float32[2] cpu:0
%a = relu(%x) : float32[2] cpu:0
%b = relu(%x) : float32[2] cpu:0
%c = add(%a, %b) : float32[2] cpu:0
"""


def test_nodes_are_arranged() -> None:
    job = parse(JOB)
    x, a, b, c = job.nodes
    job.arrange(before={1: [b], 3: [a]}, without={a, b})
    assert job.nodes == [x, b, a, c]
    job.verify()
    job.arrange(after={0: [a], 2: [b]}, without={a, b})
    assert job.nodes == [x, a, b, c]
    job.arrange(without={c, b})
    assert job.nodes == [x, a] and [*job.producer] == [*x.outputs, *a.outputs]
