"""`oneflow.test_utils.test_util`: every combination of arguments, and places in arrays."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from weft.core import dtype as dtypes
from weft.system import cuda

_NAMES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8")
type_name_to_flow_type = {n: getattr(dtypes, n) for n in _NAMES} | {"double": dtypes.float64}
type_name_to_np_type = {n: getattr(np, n) for n in _NAMES} | {"double": np.float64}


def has_cuda() -> bool:
    return cuda.is_available() and not os.getenv("ONEFLOW_TEST_CPU_ONLY")


def GenCartesianProduct(sets: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """One tuple for each combination; without CUDA, "cuda" is left out."""
    return itertools.product(*([x for x in choices if has_cuda() or not _is_cuda(x)] for choices in sets))


def _is_cuda(x: Any) -> bool:
    return isinstance(x, str) and x == "cuda"


def GenArgList(arguments: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    return GenCartesianProduct(list(arguments.values()))


def GenArgDict(arguments: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(arguments, values, strict=True)) for values in GenArgList(arguments)]


def FlattenArray(array: Any) -> list[Any]:
    return np.asarray(array).ravel().tolist()


def Array2Numpy(values: Sequence[Any], shape: Sequence[int]) -> Any:
    return np.array(values).reshape(shape)


def Index2Coordinate(index: int, shape: Sequence[int]) -> list[int]:
    return [int(i) for i in np.unravel_index(index, tuple(shape))]


def Coordinate2Index(coordinate: Sequence[int], shape: Sequence[int]) -> int:
    return int(np.ravel_multi_index(tuple(coordinate), tuple(shape)))
