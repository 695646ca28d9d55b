"""The thread's state: whether it runs code of torch's modules, on Weft's tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any


class Inside(threading.local):
    """The running thread's state.

    depth       the number of nested calls into torch's code
    everywhere  whether tensors are global: then local ones that the code makes are converted when mixed with them
    """

    depth: int = 0
    everywhere: bool = False
    answers: Mapping[Callable[..., Any], Callable[[Any, Any], Any]]  # to functions of torch; set by functions.py


inside = Inside()
