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
    grouped_product,
    image_padding,
    interpolation,
    losses,
    margin_losses,
    pooling_functions,
    regions,
    similarity,
)

MODULES = (
    activations, ctc, dropouts, fractional_pooling, image_padding, folding, channels, interpolation, pooling_functions,
    losses, similarity, embeddings, margin_losses, bilinear_product, grouped_product, regions, convolution,
)  # fmt: skip
for _module in MODULES:
    for _name in _module.__all__:
        _function = door(getattr(_module, _name))
        table.ADAPTERS["neural"].setdefault(_name, _function)
        if _name in PUBLIC["flow"]:
            table.ADAPTERS["flow"].setdefault(_name, _function)


def __getattr__(name: str) -> Callable[..., Any]:
    known = name in PUBLIC["neural"] or name in table.ADAPTERS["neural"]
    found = table.lookup("neural", name) if known else None
    if found is None:
        raise AttributeError(f"nn.functional has no {name!r}", name=name, obj=sys.modules[__name__])
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted(dict(table.listed("neural")))
