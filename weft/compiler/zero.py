"""The stages of ZeRO, as the passes read them."""

from __future__ import annotations

from typing import NamedTuple

from weft.compiler.options import Options


class Stage(NamedTuple):
    """`early`: gradients are scattered as soon as a bucket of them is made. `dropped`: whole parameters are freed after
    each use."""

    early: bool
    dropped: bool


def stage_of(options: Options) -> Stage | None:
    """The stage that the options ask for; None without ZeRO."""
    return Stage(options.zero > 1, options.zero == 3) if options.zero else None
