"""A spec: what is known of a global tensor without its data: logical shape, dtype, placement, sbp. Interned."""

from __future__ import annotations

import math
import threading
import weakref

from weft.core import sbp as sbps
from weft.core import shard
from weft.core.dtype import DType
from weft.core.placement import Placement
from weft.core.sbp import NdSbp

_interned: weakref.WeakValueDictionary[tuple[object, ...], Spec] = weakref.WeakValueDictionary()
_one_by_one = threading.RLock()


class Spec:
    """Equal means identical, so that caches key on it at the cost of a pointer."""

    __slots__ = ("shape", "dtype", "placement", "nd_sbp", "_local", "__weakref__")
    shape: tuple[int, ...]
    dtype: DType
    placement: Placement
    nd_sbp: NdSbp
    _local: dict[int, tuple[int, ...]]

    def __new__(cls, shape: tuple[int, ...], dtype: DType, placement: Placement, nd_sbp: NdSbp) -> Spec:
        key = (shape, dtype, placement, nd_sbp)
        self = _interned.get(key)
        if self is None:
            self = super().__new__(cls)
            self.shape, self.dtype, self.placement, self.nd_sbp = key
            self._local = {}
            with _one_by_one:  # which two ranks' threads can't do at once: a WeakValueDictionary is written in Python
                self = _interned.setdefault(key, self)
        return self

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Spec, (self.shape, self.dtype, self.placement, self.nd_sbp)

    def local_shape(self, rank: int) -> tuple[int, ...]:
        found = self._local.get(rank)
        if found is None:
            found = self._local[rank] = shard.local_shape(self.shape, self.placement, self.nd_sbp, rank)
        return found

    def box(self, rank: int) -> shard.Box | None:
        coordinate = self.placement.coordinate(rank)
        return None if coordinate is None else shard.box(self.shape, self.placement.shape, self.nd_sbp, coordinate)

    def replace(
        self, *, shape: tuple[int, ...] | None = None, dtype: DType | None = None,
        placement: Placement | None = None, nd_sbp: NdSbp | None = None,
    ) -> Spec:  # fmt: skip
        return Spec(
            self.shape if shape is None else shape, dtype or self.dtype,
            placement or self.placement, self.nd_sbp if nd_sbp is None else nd_sbp,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        """The bytes of the logical tensor."""
        return math.prod(self.shape, start=self.dtype.itemsize)

    @property
    def has_partial(self) -> bool:
        return any(s.kind == "P" for s in self.nd_sbp)

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}] {self.placement} {sbps.show(self.nd_sbp)}"
