"""Whether this thread runs code of torch's modules, on Weft's tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Inside(threading.local):
    """The running thread's state.

    depth       how many calls from outside are under way
    everywhere  whether tensors are global: then those that the code makes become so where they meet
    """

    depth: int = 0
    everywhere: bool = False
    answer: Callable[[Callable[..., Any], Any, Any], Any]  # what one of torch's functions is here; functions.py


inside = Inside()
