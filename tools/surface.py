"""Writes `weft/api/surface.txt`, the table of public names.

    python -m tools.surface            # writes it: after an op, a function or a layer was added
    python -m tools.surface --check    # fails where it isn't what would be written now: a part of `make check`

A name's owner stays as it was written. Names that the installed torch has and the table lacks are listed: implement
them, or add them with `-` for a home, which says that they aren't implemented. A layer's row comes first: `flow.nn` has
the layers of the table.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import torch

import weft
from weft.api import surface, table
from weft.api.surface import FILE, NOWHERE, Row
from weft.core.dtype import DType
from weft.tensor.tensor import Tensor

MODULES: Final = (
    "linalg", "special", "fft", "nn", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "optim.swa_utils", "func",
    "distributions", "autograd", "amp", "random", "utils.data", "signal.windows",
)  # fmt: skip
HEAD: Final = """\
# Public names: name, where it appears, the file where it lives, whose name it is. Written by `python -m tools.surface`.
# flow: weft.*; tensor: methods; neural: nn.functional; the rest are modules. A home of - says: torch's, and not built.
"""


def path(module: str) -> tuple[Any, Any]:
    """A public module, and torch's of the same path or None."""
    ours, theirs = weft, torch
    for part in module.split("."):
        ours, theirs = getattr(ours, part), getattr(theirs, part, None)
    return ours, theirs


PLACES: Final = {
    "flow": (weft, torch), "tensor": (Tensor, torch.Tensor), "neural": (weft.nn.functional, torch.nn.functional),
    **{module: path(module) for module in MODULES},
}  # fmt: skip


def names(place: str) -> Iterator[tuple[str, Any]]:
    """The public names of a place, with their objects."""
    ours, _ = PLACES[place]
    if place in table.ADAPTERS:
        yield from table.listed(place)
    if place == "flow":
        listed = {n for n, v in vars(weft).items() if isinstance(v, DType)} | set(weft.__all__)
    elif place == "tensor":
        listed = {n for n, v in vars(Tensor).items() if callable(v) or isinstance(v, property)}
        listed |= {n for n in dir(Tensor) if n in vars(torch.Tensor) and hasattr(Tensor, n)}
    else:
        listed = set(getattr(ours, "__all__", ())) or {
            n for n, v in vars(ours).items()
            if home(v) == ours.__name__ or (home(v).startswith("weft.") and hasattr(PLACES[place][1], n))
        }  # fmt: skip
    for name in listed:
        value = inspect.getattr_static(ours, name, None) if place == "tensor" else getattr(ours, name)
        if not name.startswith("_") and not isinstance(value, types.ModuleType):
            yield name, value


def home(value: Any) -> str:
    """The module in which an object is defined."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    found = getattr(value, "__module__", None) or type(value).__module__
    return found if isinstance(found, str) and found.startswith(("weft.", "torch")) else "weft"


def made() -> list[Row]:
    """The rows for the code as it is, and of names that aren't implemented; owners are those of the present table."""
    standing = {(row.name, place): row.whose for row in surface.rows() for place in row.places}
    places: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for place, (_, theirs) in PLACES.items():
        for name, value in dict(names(place)).items():
            whose = standing.get((name, place), "torch" if hasattr(theirs, name) else "weft")
            places[name, home(value), whose].append(place)
    built = {(name, place) for (name, _, _), where in places.items() for place in where}
    for row in surface.rows():
        if row.home == NOWHERE:
            places[row.name, NOWHERE, row.whose] += [p for p in row.places if (row.name, p) not in built]
    return sorted(Row(name, tuple(where), *rest) for (name, *rest), where in places.items() if where)


def undecided() -> list[tuple[str, str]]:
    """The names of the installed torch that the table lacks, with their places."""
    known = {(place, row.name) for row in surface.rows() for place in row.places}
    found = []
    for place, (_, theirs) in PLACES.items():
        if theirs is not None:
            listed = vars(theirs) if isinstance(theirs, type) else getattr(theirs, "__all__", None) or vars(theirs)
            found += [(place, n) for n in listed if not n.startswith("_") and _theirs(getattr(theirs, n, None))]
    return sorted({*found} - known)


def _theirs(value: Any) -> bool:
    """Whether it is torch's own, and no module."""
    if isinstance(value, types.ModuleType):
        return False
    return (getattr(value, "__module__", None) or "torch").partition(".")[0] == "torch"


def text(rows: Iterable[Row]) -> str:
    return HEAD + "".join(f"{r.name:40} {','.join(r.places):24} {r.home:40} {r.whose}\n" for r in rows)


def main(*args: str) -> str | None:
    """Write or check the table; returns an error message, or None."""
    if args not in ((), ("--check",)):
        return __doc__
    new = "".join(f"  {place}: {name}\n" for place, name in undecided())
    if new:
        print(f"new there: decide\n{new}", end="")
    if not args:
        FILE.write_text(text(made()))
        return None
    return None if FILE.read_text() == text(made()) else f"{FILE.name} isn't what the names are now: make stubs"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
