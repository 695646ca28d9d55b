"""`flow.nn.functional`: the functions behind layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from weft.api import table
from weft.api.signature import door
from weft.api.surface import PUBLIC
from weft.functional.neural import (
    activations,
    bilinear_product,
    channels,
    convolution,
    ctc,
    dropouts,
    embeddings,
    folding,
    fractional_pooling,
    image_padding,
    interpolation,
    lookup,
    losses,
    margin_losses,
    pooling_functions,
    regions,
    similarity,
)

MODULES = (
    activations, ctc, dropouts, fractional_pooling, image_padding, folding, channels, interpolation, pooling_functions,
    losses, similarity, embeddings, margin_losses, bilinear_product, regions, convolution,
)  # fmt: skip
COMPOSED = {name: door(getattr(module, name)) for module in MODULES for name in module.__all__}


def composed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a function that is made of a layer."""
    COMPOSED[function.__name__] = table.ADAPTERS["neural"][function.__name__] = door(function)
    return function


for _name, _function in COMPOSED.items():  # for flow._C
    table.ADAPTERS["neural"].setdefault(_name, _function)
    if _name in PUBLIC["flow"]:
        table.ADAPTERS["flow"].setdefault(_name, _function)


def __getattr__(name: str) -> Callable[..., Any]:
    found = COMPOSED.get(name) or lookup.functions().get(name)
    if found is None:
        raise AttributeError(f"nn.functional has no {name!r}", name=name, obj=sys.modules[__name__])
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted({*lookup.functions(), *COMPOSED})
