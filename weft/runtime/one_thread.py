"""Run a chain's function on one of torch's threads. The setting holds for the calling thread only."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


@functools.cache
def _setters() -> tuple[Callable[[int], Any], Callable[[int], int]] | None:
    """The setters of OpenMP's and MKL's number of threads; None if torch was built without them."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        return library.omp_set_num_threads, library.MKL_Set_Num_Threads_Local
    except (OSError, AttributeError):
        return None


def alone(function: Callable[[], None]) -> Callable[[], None]:
    """Wrap a function to run on one of torch's threads."""
    setters = _setters()
    if setters is None:
        return function
    omp, mkl = setters
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
