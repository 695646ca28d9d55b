"""Arguments of calls as text, and back, for jobs and plans. Parsing runs no code."""

from __future__ import annotations

import ast
import math
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.core import dtype as dtypes
from weft.core import placement as placements
from weft.core import sbp as sbps
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.placement import Placement
from weft.core.sbp import Sbp

NAME: Final = r"[\w.:+/<>\[\]-]+"  # of a value in a job or plan
_NOT_NAMED: Final = re.compile(r"[^\w.:+/<>\[\]-]")
_TOKEN: Final = re.compile(  # a text, a value, or a number with a word in it, of which Python would only warn
    rf"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|%({NAME})|(?<![\w.])(\d[\d.]*+(?:e[+-]?\d++)?+j?+[A-Za-z_]\w*)"""
)
_ESCAPES: Final = {*"\\'\"nrtxuU"}
_ALONE: Final = threading.Lock()  # in Python 3.11 ast.parse fails if two threads run it at once
_PLAIN: Final = frozenset({int, bool, str, type(None)})
LONG: Final = 4  # longer lists are abbreviated for readers
_MADE: Final[Mapping[str, Callable[..., Any]]] = {
    "dtype": dtypes.named, "placement": placements.parse, "sbp": sbps.parse, "device": Device, "float": float,
    "slice": slice,
}  # fmt: skip


def show(a: Any, named: Callable[[Any], str | None], most: int | None = None) -> str:
    """An argument as text; `named` gives the name of a value. Lists of more than `most` values are abbreviated."""
    if type(a) in _PLAIN:
        return repr(a)
    name = named(a)
    if name is not None:
        return f"%{name}"
    if isinstance(a, DType):
        return f"dtype({a.name!r})"
    if isinstance(a, Placement):
        return f"placement({str(a)!r})"
    if isinstance(a, Sbp):
        return f"sbp({str(a)!r})"
    if isinstance(a, Device):
        return f"device({str(a)!r})"
    if isinstance(a, (tuple, list)):
        inside = some([show(v, named) for v in a], most if any(named(v) is not None for v in a) else None)
        return f"({inside}{',' if len(a) == 1 else ''})"
    if isinstance(a, slice):
        return f"slice({a.start}, {a.stop}, {a.step})"
    if isinstance(a, float) and not math.isfinite(a):
        return f"float({str(a)!r})"
    if a is ...:
        return "..."
    if a is None or isinstance(a, (bool, int, float, complex, str)):
        return repr(a)
    raise TypeError(f"an argument of type {type(a).__name__} has no text form: {a!r:.80}")


def some(texts: list[str], most: int | None) -> str:
    """A list as text, only the first ones if there are more than `most`."""
    if most is None or len(texts) <= most:
        return ", ".join(texts)
    return f"{', '.join(texts[: most - 2])}, ... {len(texts) - most + 2} more"


def cleaned(name: str) -> str:
    """A name with an underscore for each character that stands in no name."""
    return _NOT_NAMED.sub("_", name)


def _expression(token: re.Match[str]) -> str:
    if token[3] or not _ESCAPES.issuperset(re.findall(r"\\(.)", token[1] or "")):
        raise ValueError(f"can't read {token[0]!r:.80}")
    return token[1] or f"value({token[2]!r})"


def read(text: str, value: Callable[[str], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments of a call, parsed; `value` resolves a name."""
    source = _TOKEN.sub(_expression, text)
    with _ALONE:
        tree = ast.parse(f"f({source})", mode="eval").body
    if not isinstance(tree, ast.Call) or any(k.arg is None for k in tree.keywords):
        raise ValueError(f"not a list of arguments: {text}")

    def made(e: ast.expr) -> Any:
        if isinstance(e, ast.Tuple):
            return tuple(map(made, e.elts))
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Name):
            function = value if e.func.id == "value" else _MADE[e.func.id]
            return function(*map(ast.literal_eval, e.args))
        return ... if isinstance(e, ast.Constant) and e.value is ... else ast.literal_eval(e)

    return tuple(map(made, tree.args)), {str(k.arg): made(k.value) for k in tree.keywords}
