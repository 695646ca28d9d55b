"""Which line of the user's program the running thread is at."""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import os
import sys
import warnings
from types import CodeType, FrameType
from typing import NamedTuple

import torch

# What counts as Weft itself when the line of the user's code is looked for: generated sources are named "<weft ...>",
# and torch's own Python, which is derived here, and Python's context managers stand between.
INSIDE = (
    *(os.path.dirname(file) + os.sep for file in (os.path.dirname(os.path.abspath(__file__)), torch.__file__)),
    "<weft", contextlib.__file__,
)  # fmt: skip


class Line(NamedTuple):
    """A line of a program."""

    file: str
    number: int
    function: str

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.number).strip()
        return f"{self.file}:{self.number}, in {self.function}" + (f": {source}" if source else "")

    @property
    def brief(self) -> str:
        return f"{os.path.basename(self.file)}:{self.number}"


def place(depth: int = 1) -> tuple[CodeType, int] | None:
    """The code object and offset of the user's innermost frame; None in Weft's own threads.

    A frame would keep the user's variables alive, and a text costs too much.
    """
    return _place(sys._getframe(depth))


def _place(frame: FrameType | None, inside: tuple[str, ...] = INSIDE) -> tuple[CodeType, int] | None:
    frame = _outside(frame, inside)
    return None if frame is None else (frame.f_code, frame.f_lasti)


def _outside(frame: FrameType | None, inside: tuple[str, ...] = INSIDE) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
    return frame


def brief() -> str:
    """file:line of the user's innermost frame, for the nodes of a trace."""
    frame = _outside(sys._getframe(2))
    return "" if frame is None else f"{_base(frame.f_code.co_filename)}:{frame.f_lineno}"


_base = functools.lru_cache(maxsize=1 << 10)(os.path.basename)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the location of the user's line, however deep inside Weft it is called."""
    frame, depth = sys._getframe(1), 3  # 1 is this function, 2 its caller
    while (frame := frame.f_back) is not None and frame.f_code.co_filename.startswith(INSIDE):
        depth += 1
    warnings.warn(text, category, stacklevel=depth)


def line_of(code: CodeType, offset: int) -> Line:
    (position,) = itertools.islice(code.co_positions(), offset // 2, offset // 2 + 1)
    return Line(code.co_filename, position[0] or code.co_firstlineno, code.co_qualname)


def line() -> Line | None:
    """The line of the user's program that this thread is at."""
    found = place(2)
    return None if found is None or found[0].co_filename.endswith("threading.py") else line_of(*found)


def line_of_thread(ident: int) -> str:
    """The line of the user's program that another thread is at, as text; empty if none. Python's own modules are
    skipped."""
    found = _place(sys._current_frames().get(ident), (*INSIDE, os.path.dirname(os.__file__) + os.sep))
    return "" if found is None else str(line_of(*found))
