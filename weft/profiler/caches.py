"""Figures of the caches that global calls go through."""

from __future__ import annotations

from functools import _CacheInfo
from typing import Final

from weft.boxing import planner, signature
from weft.interpreter import eager_global
from weft.ops import infer

CACHES: Final = {
    "calls": eager_global._prepare,  # a call's layouts, kernel and local arguments
    "forms": infer._infer,  # shapes and dtypes of results
    "layouts": signature._choose,
    "routes": planner._planned,  # from one layout to another
}


def caches() -> dict[str, _CacheInfo]:
    """Hits, misses and entries of each cache so far; the ranks of a process share them.

    >>> sorted(flow.profiler.caches())
    ['calls', 'forms', 'layouts', 'routes']
    """
    return {name: cached.cache_info() for name, cached in CACHES.items()}
