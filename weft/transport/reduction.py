"""The reductions of collectives: one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import ArgumentError, DtypeError

BINARY: dict[str, Callable[..., Any]] = {
    "sum": torch.add,
    "avg": torch.add,  # and a division at the end
    "prod": torch.mul,
    "max": torch.maximum,
    "min": torch.minimum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}
BITS = ("band", "bor", "bxor")
# Dtypes that torch only keeps and converts, and one in which their sums are computed. Rearranged parts are sums, too:
# each rank has zeros where another one's part is.
SUMMED = {
    torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64,
    torch.float8_e4m3fn: torch.float32, torch.float8_e5m2: torch.float32,
}  # fmt: skip
# Dtypes that Gloo and NCCL can't reduce, and a wider one that they can.
WIDER = {torch.int16: torch.int32, torch.bool: torch.uint8, torch.uint16: torch.int32, torch.uint32: torch.int64}
OF_BOOL = {"sum": "max", "prod": "min", "max": "max", "min": "min"}  # or, and; bits stay


def checked(reduce: str, dtype: torch.dtype) -> Callable[..., Any]:
    """The binary function (with `out=`) of a reduction, after checking that it works for this dtype."""
    found = BINARY.get(reduce)
    if found is None:
        raise ArgumentError(f"reduce is one of {', '.join(BINARY)}; got {reduce!r}")
    if reduce == "avg" and not (dtype.is_floating_point or dtype.is_complex):
        raise DtypeError(f"{dtype} has no average; reduce by 'sum' and divide, or cast to float first")
    if reduce in ("max", "min") and dtype.is_complex:
        raise DtypeError(f"{dtype} has no order, so no {reduce}; reduce the real and the imaginary part by themselves")
    if reduce in BITS and (dtype.is_floating_point or dtype.is_complex):
        raise DtypeError(f"{reduce} combines the bits of integers and booleans; got {dtype}")
    return function_of(reduce, dtype)


def function_of(reduce: str, dtype: torch.dtype) -> Callable[..., Any]:
    return add_wider if reduce == "sum" and dtype in SUMMED else BINARY[reduce]


def add_wider(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
    wider = SUMMED[a.dtype]
    return out.copy_(a.to(wider) + b.to(wider))


def into(out: Tensor, terms: Sequence[Tensor], reduce: str) -> None:
    """`out` = the reduction of `terms` in order: bitwise the same on every rank."""
    function = checked(reduce, out.dtype)
    if len(terms) == 1:
        if out is not terms[0]:
            out.copy_(terms[0])
        return
    function(terms[0], terms[1], out=out)
    for term in terms[2:]:
        function(out, term, out=out)
    if reduce == "avg":
        out.div_(len(terms))


def same_dtype(what: str, t: Tensor, others: Sequence[Tensor]) -> None:
    for other in others:
        if other.dtype != t.dtype:
            raise DtypeError(f"{what} moves tensors of one dtype; got {t.dtype} and {other.dtype}")


# ---- by c10d ---------------------------------------------------------------------------------------------------------


def reducible(t: Tensor, reduce: str) -> tuple[Tensor, str]:
    """`t` in a dtype that c10d can reduce, contiguous; and the equivalent reduction for it."""
    if t.is_complex():
        if reduce not in ("sum", "avg"):
            raise DtypeError(f"c10d can't reduce {t.dtype} by {reduce}; WEFT_TRANSPORT=shm can, on one host")
        return torch.view_as_real(t.contiguous()), reduce
    by = OF_BOOL.get(reduce, reduce) if t.dtype == torch.bool else reduce
    wider = WIDER if by != "sum" else WIDER | SUMMED
    return t.to(wider.get(t.dtype, t.dtype)).contiguous(), by


def restore(t: Tensor, work: Tensor) -> None:
    if work is t:
        return
    t.copy_(torch.view_as_complex(work) if t.is_complex() else work)
