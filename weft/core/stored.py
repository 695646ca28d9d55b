"""Where Python finds the attributes of a module. Its `__dict__` shows members in tables instead, as programs expect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final


class Stored:
    """The base of modules, whose real dict `stored(module)` gives."""


stored: Final[Callable[[Any], dict[str, Any]]] = Stored.__dict__["__dict__"].__get__
