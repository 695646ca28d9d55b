"""Keywords: by which other names a function's parameters go. PyTorch's are read off its function of the same name,
place by place; OneFlow's stand in a table. Only a call that doesn't fit looks here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

import torch

# where PyTorch has functions, layers and methods, and how the names of some begin in ATen
HOMES: Final = (torch, torch.nn.functional, torch.linalg, torch.special, torch.fft, torch.nn, torch.Tensor)
PREFIXES: Final = ("", "linalg_", "special_", "fft_")
NUMPY: Final = {"input": ("x", "a", "x1"), "other": ("x2",), "dim": ("axis",), "keepdim": ("keepdims",)}
FORMER: Final = ("size_average", "reduce")  # what said `reduction` in older programs

Names = tuple[str, ...]


def _table(text: str) -> dict[str, dict[str, str]]:
    lines = [line.split() for line in text.strip().splitlines()]
    return {name: dict(reversed(pair.split("=")) for pair in pairs) for name, *pairs in lines}


# our name = another's, which PyTorch's function hasn't in that place: OneFlow's, or that of an alias
OTHERS: Final = _table("""
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
    nms boxes=x
    prelu weight=alpha
    promote_types a=type1 b=type2
    repeat sizes=repeat_shape
    rms_layer_norm x=hidden_states eps=variance_epsilon
    scatter_nd index=indices update=updates
    set_default_tensor_type t=tensor_type
    slice_update x=input
    smooth_l1_loss input=logits target=label
    softmax_cross_entropy labels=label
    solve a=A b=B
    stack tensors=inputs
    to_global x=input
    to_local x=input
    transpose dim0=axis0 dim1=axis1
    type_as other=target
    unfold input=x
    unique x=input
    upsample input=x
""")


def place_of(function: str, keyword: str, names: Sequence[str]) -> int | None:
    """Which of a function's parameters goes by this name, or by it in PyTorch or OneFlow; None if none does."""
    name = OTHERS.get(function, {}).get(keyword, keyword)
    if name in names:
        return names.index(name)
    for signature in signatures(function):
        elsewhere = {n for given in signature if keyword not in given for n in given}
        for place, given in enumerate(signature[: len(names)]):
            if keyword in given and names[place] not in elsewhere:
                return place
    return None


def known(function: str, keyword: str) -> bool:
    """Whether PyTorch's function of this name takes this keyword."""
    return any(keyword in given for signature in signatures(function) for given in signature)


@functools.cache
def signatures(function: str) -> tuple[tuple[Names, ...], ...]:
    """How PyTorch's functions of this name are called: per parameter the names that it goes by."""
    found = [*_python(function), *_native(function)]
    if not found and function.endswith("_"):
        return signatures(function.removesuffix("_"))
    return tuple(dict.fromkeys(found))


def _python(function: str) -> Iterable[tuple[Names, ...]]:
    for home in HOMES:
        try:
            parameters = inspect.signature(attrgetter(function)(home)).parameters.values()
        except (AttributeError, TypeError, ValueError):  # none, or one of ATen's
            continue
        names = ["input" if p.name == "self" and home is torch.Tensor else p.name for p in parameters]
        yield tuple((n,) for n in names if n != "self")


def _native(function: str) -> Iterable[tuple[Names, ...]]:
    """ATen's, whose parameters go by NumPy's names, too."""
    for prefix in PREFIXES:
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{prefix}{function}"):
            names = ["input" if a.name == "self" else a.name for a in schema.arguments]
            if "dtype" in names or any("Tensor" in str(a.type) for a in schema.arguments):  # others are TorchScript's
                yield tuple((n, *NUMPY.get(n, ())) for n in names)
