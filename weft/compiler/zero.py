"""What the stages of ZeRO ask of the passes."""

from __future__ import annotations

from typing import NamedTuple

from weft.compiler.options import Options


class Stage(NamedTuple):
    """`early`: gradients are scattered as soon as a bucket of them is made. `dropped`: parameters are whole only while
    they are read."""

    early: bool
    dropped: bool


def stage_of(options: Options) -> Stage | None:
    """None where everything is kept whole."""
    return Stage(options.zero > 1, options.zero == 3) if options.zero else None
