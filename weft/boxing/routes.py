"""A route: the steps that take a tensor from one spec to another. Pure data: it prints, parses and verifies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.boxing import steps as steps_
from weft.boxing.steps import State, Step
from weft.core import dtype as dtypes
from weft.core import sbp as sbps
from weft.core.dtype import DType
from weft.core.errors import SbpError
from weft.core.reading import MALFORMED, shortened
from weft.core.spec import Spec

_INDENT: Final = "    "


@dataclass(frozen=True)
class Route:
    """From the spec `src` to the spec `dst`, which differ in placement and sbp only, by `steps`."""

    src: Spec
    dst: Spec
    steps: tuple[Step, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.src.shape

    @property
    def dtype(self) -> DType:
        return self.src.dtype

    def states(self) -> Iterator[State]:
        """The state before each step, and the last one."""
        state = State(self.src.placement, self.src.nd_sbp)
        yield state
        for step in self.steps:
            state = step.after(self.shape, state)
            yield state

    def verify(self) -> Route:
        """Raise if a step isn't legal in its state, or if the route ends elsewhere."""
        if (self.src.shape, self.src.dtype) != (self.dst.shape, self.dst.dtype):
            raise SbpError(f"a route keeps shape and dtype; this one goes from {self.src} to {self.dst}")
        for spec in (self.src, self.dst):
            sbps.nd(spec.nd_sbp, spec.placement.ndim, len(spec.shape))
        *_, last = self.states()
        if last != (self.dst.placement, self.dst.nd_sbp):
            raise SbpError(f"the route ends at {last}, but should at {State(self.dst.placement, self.dst.nd_sbp)}")
        return self

    def __str__(self) -> str:
        """
        >>> from weft.boxing.planner import route
        >>> from weft.core import dtype, sbp
        >>> from weft.core.placement import placement
        >>> P = placement("cpu", [0, 1])
        >>> print(route((4, 6), dtype.float32, P, (sbp.split(0),), P, (sbp.broadcast,)))
        float32[4,6] cpu:[0,1] (S(0)) -> cpu:[0,1] (B)
            all_gather(axis=0, dim=0)
        """
        dst = State(self.dst.placement, self.dst.nd_sbp)
        return "\n".join([f"{self.src} -> {dst}", *(f"{_INDENT}{step}" for step in self.steps)])


def parse(text: str) -> Route:
    """The inverse of str()."""
    head, *lines = text.strip().splitlines() or [""]
    found = re.fullmatch(r"(\w+)\[([\d,]*)\] (.+) -> (.+)", head)
    if found is None:
        raise SbpError(f"{head!r} heads no route; write 'float32[4,6] cpu:[0,1] (S(0)) -> cpu:[0,1] (B)'")
    try:
        shape = tuple(map(int, found[2].split(","))) if found[2] else ()
        src, dst = (Spec(shape, dtypes.named(found[1]), *State.parse(found[i])) for i in (3, 4))
        return Route(src, dst, tuple(steps_.parse(line.strip()) for line in lines))
    except SbpError:
        raise
    except MALFORMED as cause:
        raise SbpError(f"{shortened(head)} heads no route: {cause}") from None
