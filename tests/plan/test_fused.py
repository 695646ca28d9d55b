"""Fused calls in a plan's text: read and written, and refused where a change by hand left no sense."""

from __future__ import annotations

import pytest

from weft.core.errors import CompileError
from weft.plan import calls, fused

TEXT = """\
arena 256
%x = read() : float32[4,4] register 0+0
%w = variable() : float32[4,4] variable
%b, %c = fused(%x, %w, scratch=64) : float32[4,4] arena+0, float32[4] register 1+0
    %a = gelu(%x, 'none') : float32[4,4] inside    # mlp, train.py:12
    %t = transpose(%w, 0, 1) : float32[4,4] inside
    %b = mul(%a, %t) : float32[4,4] inside
    %c = sum_to(%b, (4,)) : float32[4] inside
%a = relu(%b) : float32[4,4] arena+0"""


def check(text: str) -> None:
    step = calls.parse(text.splitlines())
    assert str(step) == text
    calls.verify(step, {0: 256}, {1: 64})
    fused.verify(step)


def test_as_it_is() -> None:
    check(TEXT)
    step = calls.parse(TEXT.splitlines())
    assert [c.op for c in step.calls] == ["read", "variable", "fused", "relu"]
    assert [c.op for c in step.calls[2].calls] == ["gelu", "transpose", "mul", "sum_to"]


CHANGES = [
    ("mul(%a, %t)", "mul(%a, %q)", "%q is neither made within the fused call, nor read by it"),
    ("mul(%a, %t)", "mul(%a, %c)", "%c is neither made within the fused call, nor read by it"),
    ("scratch=64", "scratch='much'", "a fused call reads values"),
    ("scratch=64", "at=64", "a fused call reads values"),
    ("scratch=64", "channels_last=0", "a fused call reads values"),
    ("scratch=64", "channels_last=(0,)", "names images that it reads"),
    ("fused(%x, %w", "fused(%x", "%w is neither made within the fused call, nor read by it"),
    ("fused(%x, %w", "fused(%x, %z", "reads %z, which no call before it makes"),
    ("fused(%x, %w", "fused(%x, %w, 3", "a fused call reads values, makes some"),
    ("fused(%x, %w", "matmul(%x, %w", "makes 1 values, and here are 2"),
    ("%b = mul(", "%a = mul(", "%a is made twice"),
    ("%b = mul(", "%k = mul(", "neither made within"),
    ("%c = sum_to(%b, (4,)) : float32[4]", "%c = sum_to(%b, (4,)) : float32[2,2]", "no call within makes %c"),
    ("sum_to(%b, (4,)) : float32[4] inside", "sum_to(%b, (4,)) : float32[4] arena+0", "inside of a fused call"),
    ("%a = relu(%b) : float32[4,4] arena+0", "%a = relu(%b) : float32[4,4] inside", "must lie somewhere"),
    ("    %a = gelu(%x, 'none')", "    %a = gelus(%x, 'none')", "gelus can't be fused"),
    ("    %a = gelu(%x, 'none')", "    %a = dropout(%x, 0.5)", "can't be fused"),
    ("    %a = gelu(%x, 'none')", "    %a = gelu(%x)", "takes 2 arguments"),
    ("float32[4,4] arena+0, float32[4] register 1+0", "float32[4,4] made, float32[4] register 1+0", "needs a place"),
    ("float32[4,4] arena+0, float32[4] register 1+0", "float32[4,4] view of %x, float32[4] register 1+0", "no view"),
    ("float32[4,4] variable", "float32[4,4] variable\n    %k = neg(%w) : float32[4,4] inside", "only a fused call has"),
]


@pytest.mark.parametrize("before, after, says", CHANGES)
def test_a_change_is_refused(before: str, after: str, says: str) -> None:
    assert before in TEXT
    with pytest.raises(CompileError) as refused:
        check(TEXT.replace(before, after, 1))
    assert says in str(refused.value)


def test_what_it_makes_lies_apart_from_all_that_it_reads() -> None:
    """One kernel reads and writes in any order, so not even elementwise results go over operands."""
    text = TEXT.replace("%x = read() : float32[4,4] register 0+0", "%r = read() : float32[4,4] register 0+0\n"
                        "%x = relu(%r) : float32[4,4] arena+0")  # fmt: skip
    with pytest.raises(CompileError, match="still needed"):
        check(text)
