"""Aliases of keywords: PyTorch's names are read from its function of the same name, by position; OneFlow's are in a
table. Used only for a call that doesn't fit.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

import torch

NAMESPACES: Final = {  # where PyTorch has functions, layers and methods, and their prefixes in ATen
    torch: "", torch.nn.functional: "", torch.linalg: "linalg_", torch.special: "special_", torch.fft: "fft_",
    torch.nn: "", torch.Tensor: "",
}  # fmt: skip
NUMPY: Final = {"input": ("x", "a", "x1"), "dim": ("axis",), "keepdim": ("keepdims",)}
SCRIPTED: Final = frozenset({"a", "l", "t", "reverse"})  # parameters of TorchScript's builtins
FORMER: Final = ("size_average", "reduce")  # deprecated forms of `reduction`

# the names of each positional parameter; and the keyword-only ones
Signature = tuple[tuple[tuple[str, ...], ...], frozenset[str]]


def _table(text: str) -> dict[str, dict[str, str]]:
    lines = [line.split() for line in text.strip().splitlines()]
    return {name: {other: own for own, other in (pair.split("=") for pair in pairs)} for name, *pairs in lines}


# our name = an alias that PyTorch's function lacks in that position: OneFlow's, or another function's; or our own name,
# where PyTorch has something else there
OTHERS: Final = _table("""
    .forward input=x
    Embedding.forward input=indices
    ParameterList values=parameters
    asarray data=obj
    bmm mat2=b
    broadcast_like like_tensor=like
    cat tensors=inputs
    cosine_similarity x1=x x2=y
    expand shape=sizes
    fold input=x
    fused_bias_add_dropout x=a bias=b
    fused_bias_add_gelu x=a bias=b
    gather_nd input=params index=indices
    global_to_global x=input
    group_norm weight=gamma bias=beta eps=epsilon
    gumbel_softmax logits=x
    leaky_relu negative_slope=alpha alpha=negative_slope
    local_to_global x=input
    logaddexp other=y
    margin_ranking_loss input1=input_1 input2=input_2
    max other=other
    min other=other
    nms boxes=x
    prelu weight=alpha
    promote_types a=type1 b=type2
    repeat sizes=repeat_shape
    rms_layer_norm x=hidden_states eps=variance_epsilon
    rrelu generator=generator
    scatter_nd index=indices update=updates
    set_default_tensor_type t=tensor_type
    slice_update x=input
    smooth_l1_loss input=logits target=label
    softmax_cross_entropy labels=label
    solve a=A
    stack tensors=inputs
    to_global x=input
    to_local x=input
    transpose dim0=axis0 dim1=axis1
    type_as other=target
    unfold input=x
    upsample input=x
""")


def place_of(function: str, keyword: str, names: Sequence[str]) -> int | None:
    """The index of the parameter with this name, here, in PyTorch or in OneFlow; None if there is none."""
    name = OTHERS.get(function, OTHERS.get(f".{function.rpartition('.')[2]}", {})).get(keyword)
    if name is not None or keyword in names:
        own = name or keyword
        return names.index(own) if own in names else None
    for placed, others in signatures(function):
        elsewhere = {n for given in placed if keyword not in given for n in given} | others
        for place, given in enumerate(placed[: len(names)]):
            if keyword in given and names[place] not in elsewhere:
                return place
    return None


def known(function: str, keyword: str) -> bool:
    """Whether PyTorch's function of this name takes this argument."""
    return any(keyword in given for placed, _ in signatures(function) for given in placed)


@functools.cache
def signatures(function: str) -> tuple[Signature, ...]:
    """The signatures of PyTorch's functions of this name."""
    found: list[Signature] = []
    for home, prefix in NAMESPACES.items():
        try:
            f = attrgetter(function)(home)
        except AttributeError:
            continue
        try:
            parameters = inspect.signature(f).parameters.values()
        except (TypeError, ValueError):
            found += _native(prefix + function)
            continue
        placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        names = ["input" if n == "self" and home is torch.Tensor else n for n in placed]
        others = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        found.append((tuple((n,) for n in names if n != "self"), others))
    if not found and function.endswith("_"):
        return signatures(function.removesuffix("_"))
    return tuple(dict.fromkeys(found))


def _native(name: str) -> Iterable[Signature]:
    """The signatures of an ATen function, whose parameters also have NumPy's names."""
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        names = [a.name for a in schema.arguments if not a.kwarg_only]
        others = frozenset(a.name for a in schema.arguments if a.kwarg_only)
        named = "name" in schema.overload_name.lower()  # the names of dimensions that torch had before 2.13
        tensors = "dtype" in others or any("Tensor" in str(a.type) for a in schema.arguments)
        if tensors and not named and not SCRIPTED.intersection(names[:2]):
            yield tuple(("input", *NUMPY["input"]) if n == "self" else (n, *NUMPY.get(n, ())) for n in names), others
