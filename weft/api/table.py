"""The one table of public names: what `flow`, `flow._C`, `nn.functional` and `Tensor` call, by name.

An op whose declared signature is the public one is bound as its own entry, without a wrapper. Where the two differ,
a small adapter, marked `@public`, is bound instead. `surface.txt` says where an op is public: where PyTorch or OneFlow
has its name, and always in `flow._C`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from weft.api import names
from weft.api.fast_path import Way, shortened
from weft.api.signature import F, door
from weft.api.surface import PUBLIC
from weft.autograd.overwrite import overwriting
from weft.ops import OPS

Function = Callable[..., Any]
ADAPTERS: Final[dict[str, dict[str, Function]]] = {"flow": {}, "tensor": {}, "neural": {}, "bound": {}}


def public(where: str, name: str = "", short: Way | None = None) -> Callable[[F], F]:
    """Mark an adapter: the places that bind it ("bound" is `flow._C` alone), and its names if not its own.

    Users call it through its door. With `short`, a fast path comes before that.
    """

    def mark(f: F) -> F:
        if not f.__doc__ and f.__name__ in OPS:
            f.__doc__ = OPS[f.__name__].__doc__
        for n in (name or f.__name__).split():
            shown = door(f, n)
            if short is not None:
                shown = shortened(f, shown, short)
            if shown is not f:  # a pickle, of a module that holds it, finds it there
                shown.__qualname__ = f"{f.__qualname__}.{n}"
                vars(f)[n] = shown
            for place in where.split():
                assert n not in ADAPTERS[place], f"{n} has two adapters in {place}"
                ADAPTERS[place][n] = shown
        return f

    return mark


def named(name: str, doc: str | None) -> Callable[[F], F]:
    """Give a function that another one makes a name and a docstring."""

    def mark(f: F) -> F:
        f.__name__ = f.__qualname__ = name
        f.__doc__ = doc
        return f

    return mark


def lookup(place: str, name: str) -> Function | None:
    """The function that a public name is bound to in a place; None if there is no such name."""
    name = names.ALIASES.get(name, name)
    found = ADAPTERS[place].get(name)
    if found is not None:
        return found
    op = OPS.get(name)
    if op is not None and not op.conversion:
        return op.entry
    op = OPS.get(name.removesuffix("_"))
    if name.endswith("_") and op is not None and (op.inplace_kernel is not None or op.name in names.OVERWRITING):
        return overwriting(op)
    return None


def listed(place: str) -> Iterator[tuple[str, Function]]:
    """Every public name of a place, with its function."""
    shown = PUBLIC[place]
    candidates = [*ADAPTERS[place], *OPS, *(f"{n}_" for n in OPS), *names.ALIASES]
    for name in dict.fromkeys(candidates):
        if name in ADAPTERS[place] or name in shown:
            found = lookup(place, name)
            if found is not None:
                yield name, found
