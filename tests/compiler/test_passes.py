"""Each pass alone: a small job as text in, text out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weft.compiler.options import Options
from weft.compiler.passes import PASSES, boxing, common_subexpressions, dead_code, fuse_collectives
from weft.job.job import Job
from weft.job.text import parse, show


def after(run: Callable[[Job, Options], None], text: str, options: Options = Options()) -> list[str]:
    job = parse(text)
    run(job, options)
    job.verify()
    assert show(parse(show(job))) == show(job)
    return show(job).splitlines()[1:]


LOCAL = """job a
%x = input() : float32[2,2] cpu:0
%a = relu(%x) : float32[2,2] cpu:0
%b = relu(%x) : float32[2,2] cpu:0
%unused = tanh(%x) : float32[2,2] cpu:0
%y = add(%a, %b) : float32[2,2] cpu:0
out: output(%y)
"""


def test_common_subexpressions() -> None:
    found = after(common_subexpressions.run, LOCAL)
    assert sum("relu" in line for line in found) == 1
    assert "%y = add(%a, %a) : float32[2,2] cpu:0" in found


def test_draws_are_no_common_subexpressions() -> None:
    text = LOCAL.replace("relu(%x)", "dropout(%x, 0.5, True)")
    assert sum("dropout" in line for line in after(common_subexpressions.run, text)) == 2


def test_reads_around_a_write_are_no_common_subexpressions() -> None:
    text = """job a
%x = input() : float32[2] cpu:0
%w = variable() : float32[2] cpu:0
%a = add(%x, %w) : float32[2] cpu:0
write: store(%w, %a)
%b = add(%x, %w) : float32[2] cpu:0
%y = mul(%a, %b) : float32[2] cpu:0
out: output(%y)
"""
    assert sum("= add" in line for line in after(common_subexpressions.run, text)) == 2


def test_dead_code() -> None:
    found = after(dead_code.run, LOCAL)
    assert not any("unused" in line for line in found) and len(found) == 5


def test_dead_code_keeps_inputs_and_writes() -> None:
    text = """job a
%x = input() : float32[2] cpu:0
%idle = input() : float32[2] cpu:0
%w = variable() : float32[2] cpu:0
write: store(%w, %x)
"""
    assert after(dead_code.run, text) == text.splitlines()[1:]


GLOBAL = """job a
%x = input() : float32[4,2] cpu:[0,1] (S(0))
%w = variable() : float32[4,2] cpu:[0,1] (B)
%t = transpose(%x, 0, 1) : float32[2,4] cpu:[0,1] (S(1))
%p = matmul(%t, %x) : float32[2,2] cpu:[0,1] (P)
%q = matmul(%t, %w) : float32[2,2] cpu:[0,1] (P)
%a = to_global(%p, placement('cpu:[0,1]'), (sbp('B'),)) : float32[2,2] cpu:[0,1] (B)
%b = to_global(%q, placement('cpu:[0,1]'), (sbp('B'),)) : float32[2,2] cpu:[0,1] (B)
%again = to_global(%p, placement('cpu:[0,1]'), (sbp('B'),)) : float32[2,2] cpu:[0,1] (B)
%y = add(%a, %b) : float32[2,2] cpu:[0,1] (B)
%z = add(%y, %again) : float32[2,2] cpu:[0,1] (B)
out: output(%z)
"""


def test_boxing_moves_a_value_once() -> None:
    found = after(boxing.run, GLOBAL)
    assert not any("to_global" in line for line in found)
    assert sum("all_reduce" in line for line in found) == 2
    assert any("slice" in line and "%w" in line for line in found)  # w, to lie as x does


def test_all_reduces_that_are_needed_together_are_fused() -> None:
    job = parse(GLOBAL)
    boxing.run(job, Options())
    fuse_collectives.run(job, Options())
    job.verify()
    assert sum("all_reduce" in line for line in show(job).splitlines()) == 1
    assert show(parse(show(job))) == show(job)


@pytest.mark.parametrize("bytes", [0, 16])
def test_fusing_keeps_to_its_limit(bytes: int) -> None:
    job = parse(GLOBAL)
    boxing.run(job, Options())
    fuse_collectives.run(job, Options(fuse_bytes=bytes))
    assert sum("all_reduce" in line for line in show(job).splitlines()) == 2


@pytest.mark.parametrize("name", [name for name, _ in PASSES])
def test_every_pass_leaves_a_finished_job_as_it_is(name: str) -> None:
    job = parse(GLOBAL)
    for _, run in PASSES:
        run(job, Options())
    before = show(job)
    dict(PASSES)[name](job, Options())
    assert show(job) == before
