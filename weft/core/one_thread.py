"""Run on one of torch's threads, or multiply on one within each. Settings hold for the calling thread only."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch


class _Library(NamedTuple):
    """Functions of OpenMP and MKL."""

    omp_threads: Callable[[int], Any]
    mkl_threads: Callable[[int], int]  # returns the number before; 0 for that of the process
    parallel: Callable[[int, int, int, int], None]  # a function's address, its argument, in how many threads, flags
    mkl_address: int


_told = threading.local()  # `threads`: in so many that serve this one MKL was told to take one


@functools.cache
def _library() -> _Library | None:
    """None if torch was built without them."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        mkl, parallel = library.MKL_Set_Num_Threads_Local, library.GOMP_parallel
        parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        return _Library(library.omp_set_num_threads, mkl, parallel, ctypes.cast(mkl, ctypes.c_void_p).value or 0)
    except (OSError, AttributeError):
        return None


def alone(function: Callable[[], None]) -> Callable[[], None]:
    """Wrap a function to run on one of torch's threads."""
    library = _library()
    if library is None:
        return function
    omp, mkl, *_ = library
    now = torch.get_num_threads

    def run() -> None:
        threads = now()
        if threads == 1:
            function()
            return
        omp(1)
        before = mkl(1)
        try:
            function()
        finally:
            omp(threads)
            mkl(before)

    return run


def each_alone(kernel: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a kernel that multiplies small matrices in each of torch's threads. MKL, which doesn't look whether a thread
    is one of many, would set up another team of threads for each product."""
    library, threads = _library(), torch.get_num_threads()
    if library is None or threads == 1:
        return kernel(*args, **options)
    before = library.mkl_threads(1)
    try:
        if getattr(_told, "threads", 0) != threads:
            library.parallel(library.mkl_address, 1, threads, 0)
            _told.threads = threads
        return kernel(*args, **options)
    finally:
        library.mkl_threads(before)
