"""Finds which argument a kernel's error is about: the one whose change makes the call work.

Kernels' messages differ from one to the next and between releases, so they aren't parsed: the call is retried with
one thing changed, on small tensors, with large sizes scaled down consistently.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import torch

from weft.core import errors, random
from weft.core.dtype import of_torch as named
from weft.core.errors import WeftError
from weft.ops.declaration import Op
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor

OTHERS: Final = (torch.float32, torch.int64, torch.bool, torch.int32, torch.complex64)  # dtypes to try instead
SMALL: Final = 1 << 14  # elements: larger tensors are scaled down
FEW: Final = 16  # larger sizes are mapped to small ones beyond this, equal ones to equal ones

Found = tuple[type[WeftError], str]  # the error's class, and what would work
Change = Callable[[torch.Tensor], torch.Tensor]


def blamed(op: Op, args: tuple[Any, ...]) -> Found:
    """The error's class and advice, for a RuntimeError of an op's kernel."""
    local = _local(op, args)
    if local is None or op.writes or op.conversion:
        return errors.ShapeError, ""
    drawing = random.seeded(0) if op.random else contextlib.nullcontext()  # the program's generator isn't advanced
    with drawing, warnings.catch_warnings(action="ignore"):  # of the calls that are tried
        return _blamed(op, local)


def _blamed(op: Op, local: tuple[Any, ...]) -> Found:
    local = _scaled(op, local, SMALL)
    held = list(_tensors(op, local))
    made = _made(op, local)
    if made is not None:  # the kernel works: writing into the first operand fails
        fits = all(torch.can_cast(y.dtype, held[0].dtype) for y in made[:1])
        return (errors.ShapeError if fits else errors.DtypeError), ""
    if any(map(_counts, held)) and _works(op, _changed(op, local, _zeros)):
        return errors.IndexingError, ""
    if any(map(_counts, held)) and _works(op, _changed(op, local, torch.ones_like)):
        return errors.OpError, ""  # a division by zero
    if any(map(_has_fractions, held)) and _works(op, _changed(op, local, _drawn)):
        return errors.OpError, ""  # because of its values
    places = {t.device.type for t in held}
    together = "meta" if "meta" in places else "cpu"
    if len(places) > 1 and _works(op, _changed(op, local, lambda t: t.to(together))):
        return errors.DeviceError, ""
    return next(itertools.chain(_of_dtype(op, local), _of_option(op, local)), (errors.ShapeError, ""))


def _scaled(op: Op, local: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """The arguments with smaller tensors, if they have more elements than this."""
    held = list(_tensors(op, local))
    if sum(t.numel() for t in held) <= most:
        return local
    sizes = sorted({n for t in held for n in t.shape if n > FEW})
    fewer = {n: FEW + 1 + i for i, n in enumerate(sizes)}
    return _changed(op, local, lambda t: t.new_zeros([fewer.get(n, n) for n in t.shape]))


def refusal(op: Op, local: tuple[Any, ...]) -> Exception | None:
    """What a kernel raises for operands of zeros, which hold no memory; None if it works. Those that
    it writes need memory of their own."""
    if op.random or op.dynamic or _works(op, _scaled(op, local, -1)):
        return None
    local = _changed(op, local, torch.Tensor.contiguous) if op.writes else local
    try:
        op.compute(local)
    except Exception as cause:
        return cause
    return None


def _of_dtype(op: Op, local: tuple[Any, ...]) -> Iterator[Found]:
    """Whether the call works with another dtype of one operand, or of all."""
    held = list(_tensors(op, local))
    for i, t in sorted(enumerate(held), key=lambda pair: pair[1].is_floating_point()):  # integers first
        for dtype in dict.fromkeys((*(o.dtype for o in held), *OTHERS)):
            if dtype is not t.dtype and _works(
                op, _changed(op, local, lambda o, t=t, d=dtype: _as(o, d) if o is t else o)
            ):
                name = next((op.names[at] for at in op.operands if local[at] is t), f"operand {i}")
                yield (
                    errors.DtypeError,
                    f"It takes {name} as {named(dtype).name}: cast it, {name}.to(flow.{named(dtype).name})",
                )
    for dtype in OTHERS:
        if _works(op, _changed(op, local, lambda o, d=dtype: o.to(d))):
            yield (
                errors.DtypeError,
                f"It takes operands of {named(dtype).name}: cast them, x.to(flow.{named(dtype).name})",
            )


def _of_option(op: Op, local: tuple[Any, ...]) -> Iterator[Found]:
    """Whether the call works with an attribute's default."""
    for i, p in enumerate(op.params):
        if p.kind == "attribute" and not p.required and local[i] != p.default:
            if _works(op, (*local[:i], p.default, *local[i + 1 :])):
                sizes = "Size" in p.type or "dim" in p.name
                kind = errors.ShapeError if sizes else errors.OpError
                yield kind, f"{p.name}={local[i]!r} is what doesn't fit here; {p.name}={p.default!r} would"


def _works(op: Op, local: tuple[Any, ...]) -> bool:
    return _made(op, local) is not None


def _made(op: Op, local: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What a kernel returns; None if it fails."""
    try:
        made = op.compute(local)
    except torch.linalg.LinAlgError:  # because of its values
        return ()
    except Exception:
        return None
    return made if isinstance(made, tuple) else (made,)


def _local(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with torch tensors for Weft's; None if one has no data at hand."""
    local = list(args)
    for i in op.operands:
        value = args[i]
        several = isinstance(value, (list, tuple))
        data = [_data(v) if isinstance(v, Tensor) else v for v in (value if several else (value,))]
        if any(d is ... for d in data):
            return None
        local[i] = data if several else data[0]
    return tuple(local)


def _data(t: Tensor) -> Any:
    data = blob_of(t).data
    return ... if data is None else data.detach()


def _tensors(op: Op, local: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in local:
        for v in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(v, torch.Tensor):
                yield v


def _changed(op: Op, local: tuple[Any, ...], change: Change) -> tuple[Any, ...]:
    changed = list(local)
    for i in op.operands:
        value = local[i]
        if isinstance(value, list):
            changed[i] = [change(v) if isinstance(v, torch.Tensor) else v for v in value]
        elif isinstance(value, torch.Tensor):
            changed[i] = change(value)
    return tuple(changed)


def _counts(t: torch.Tensor) -> bool:
    return not _has_fractions(t) and t.dtype is not torch.bool


def _has_fractions(t: torch.Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def _as(t: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Of another dtype. Fractions become zeros as integers: their values were never meant as indices."""
    t = t.real if t.is_complex() and not dtype.is_complex else t  # torch would warn
    return t.to(dtype) if dtype.is_floating_point or not t.is_floating_point() else torch.zeros_like(t, dtype=dtype)


def _zeros(t: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(t) if _counts(t) else t


def _drawn(t: torch.Tensor) -> torch.Tensor:
    """Random values: a matrix of them is regular."""
    if not _has_fractions(t):
        return t
    return torch.rand(t.shape, generator=torch.Generator().manual_seed(0)).to(t)
