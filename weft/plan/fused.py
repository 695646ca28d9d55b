"""Fused calls: one kernel for several calls.

%b, %c = fused(%x, %y) : float32[8,16] arena+0, float32[16] arena+512
    %a = gelu(%x, 'none') : float32[8,16] inside    # mlp, train.py:12
    %b = mul(%a, %y) : float32[8,16] inside    # mlp, train.py:12
    %c = sum_to(%b, (16,)) : float32[16] inside

It reads values, and makes some of the inner calls' results, where the plan says; the others have no memory. Inner names
shadow outer ones. `scratch` tells the bytes that its kernel allocates. Only ops that depend on their operands alone can
be fused: no draws, no writes of variables. `channels_last` tells which of the operands that are allocated lie so.
"""

from __future__ import annotations

from weft.core.errors import CompileError
from weft.ops import OPS
from weft.ops.kernels import FORMATS
from weft.plan.calls import Call, Ref, Result, Step, check_op, shown


def fusable(op: str) -> bool:
    declared = OPS.get(op)
    return declared is not None and not (declared.random or declared.writes or declared.dynamic)


def verify(step: Step) -> None:
    """Raise CompileError unless the inner calls of each fused call compute its results from its operands."""
    forms: dict[str, Result] = {}
    for call in step.calls:
        if call.op == "fused":
            _verify(call, forms)
        elif call.calls:
            raise CompileError(f"{shown(call)}: only a fused call has calls within")
        for r in call.results:
            if r.place.kind == "inside":
                raise CompileError(
                    f"{shown(call)}: %{r.name} must lie somewhere: `inside` is for calls within a fused one"
                )
        forms |= {r.name: r for r in call.results}


def _verify(call: Call, outside: dict[str, Result]) -> None:
    kinds = {"scratch": int, "channels_last": tuple}
    strange = any(type(value) is not kinds.get(key) for key, value in call.options)
    if not call.results or not call.calls or strange or not all(isinstance(a, Ref) for a in call.args):
        raise CompileError(f"{shown(call)}: a fused call reads values, makes some, and tells by which calls")
    known = {name: outside[name] for name in call.operands()}
    images = [i for i, a in enumerate(call.args) if len(known[a.name].shape) in FORMATS]
    if not {*call.option("channels_last", ())} <= {*images}:
        raise CompileError(f"{shown(call)}: channels_last names images that it reads, which are {images}")
    made: set[str] = set()
    for inner in call.calls:
        if inner.calls or inner.options or not fusable(inner.op):
            raise CompileError(f"{shown(inner)}: {inner.op} can't be fused with others")
        check_op(inner)
        for name in inner.operands():
            if name not in known:
                raise CompileError(f"{shown(inner)}: %{name} is neither made within the fused call, nor read by it")
        for r in inner.results:
            if r.name in made or r.place.kind != "inside":
                why = "made twice" if r.name in made else f"inside of a fused call, and not in `{r.place}`"
                raise CompileError(f"{shown(inner)}: %{r.name} is {why}")
            known[r.name] = r
            made.add(r.name)
    for r in call.results:
        if r.name not in made or (known[r.name].dtype, known[r.name].shape) != (r.dtype, r.shape):
            raise CompileError(f"{shown(call)}: no call within makes %{r.name} as {r.dtype}{list(r.shape)}")
