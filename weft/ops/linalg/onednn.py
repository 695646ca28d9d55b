"""Products of large float32 matrices by oneDNN, on CPUs where it takes less time than MKL, which torch calls: those of
AMD's with AVX-512, which MKL leaves unused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, cast

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import _disable_current_modes

LEAST: Final = 1 << 22  # multiplications where oneDNN is far faster, and
SIDE: Final = 32  # rows and columns, from which on the calls save more than they cost:
SIZE: Final = SIDE * SIDE  # elements of a matrix
FASTER: Final = 0.75  # share of MKL's time, far from that of any CPU seen, so that ranks decide alike: to the last bit
MANY: Final = 1 << 26  # multiplications where it takes less on AMD's CPUs with AVX-512, and
DEEP: Final = 512, 256  # so many for an element of the result, which is copied; fewer in larger slices
NARROW: Final = 64  # columns of a transposed matrix
SLICE: Final = 1 << 19, 1 << 21  # bytes that a call allocates where the result's memory is given; if it may be roomy
ROWS: Final = 256  # of a slice with a large matrix, which is packed anew for each slice; fewer with a smaller one:
PACKED: Final = 1 << 13  # one for so many elements

_LINEAR: Final = cast("Callable[..., Tensor]", getattr(torch.ops.mkldnn, "_linear_pointwise", None))
_AS_IT_IS: Final[tuple[Any, ...]] = ("none", [], "")  # nothing is computed after the product
# without it oneDNN isn't faster; MKL uses it, too, but not on every CPU that has it
AVX512: Final = _LINEAR is not None and torch.backends.cpu.get_cpu_capability() == "AVX512"


@functools.cache
def amd() -> bool:
    """Whether the CPU is one of AMD's."""
    try:
        with open("/proc/cpuinfo") as text:
            return "AuthenticAMD" in text.read(256)
    except OSError:
        return False


@functools.cache
def share(threads: int) -> float:
    """The time of a product of oneDNN's as a share of MKL's, with so many threads: measured once in a process."""
    took: list[list[float]] = [[], []]
    with _disable_current_modes(), torch.no_grad():
        a, b, out = torch.ones(3, 256, 256, dtype=torch.float32, device="cpu").unbind()
        ((slices, args, _),) = requests(out, a, b)
        for _ in range(10):
            for call, samples in zip((lambda: torch.mm(a, b, out=out), lambda: slices(*args)), took, strict=True):
                start = perf_counter()
                call()
                samples.append(perf_counter() - start)
    return min(took[1]) / min(took[0])


def takes(a: Tensor, b: Tensor, bias: Tensor | None = None, roomy: bool = False) -> bool:
    """Whether oneDNN is to compute a @ b + bias: of tensors without data, as it would of the CPU's."""
    if a.dim() != 2 or b.dim() != 2:
        return False
    (m, k), n = a.shape, b.shape[1]
    work = m * k * n
    if work < LEAST or min(m, k, n) < SIDE or b.shape[0] != k or not torch._C._get_mkldnn_enabled():
        return False
    if not all(map(_plain, (a, b) if bias is None else (a, b, bias))):
        return False
    dense = b.is_contiguous() or b.t().is_contiguous()  # over gaps it takes a hundred times as long
    fits = bias is None or (bias.shape == (n,) and bias.is_contiguous())
    if not dense or not fits:
        return False
    somewhat = work >= MANY and k >= DEEP[roomy] and not _transposed(a) and amd()
    return somewhat or share(torch.get_num_threads()) < FASTER


def _plain(t: Tensor) -> bool:
    """Whether it is no tensor of torch's autograd, tracers or transformations, which don't know oneDNN's call."""
    return (
        type(t) in (Tensor, Parameter)
        and t.dtype is torch.float32
        and t.layout is torch.strided
        and t.device.type in ("cpu", "meta")
        and not (t.requires_grad and torch.is_grad_enabled())
        and not torch._C._functorch.is_functorch_wrapped_tensor(t)  # pyright: ignore[reportAttributeAccessIssue]
    )


def product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """a @ b + bias."""
    return _LINEAR(a, b.t(), bias, *_AS_IT_IS)


def writes(a: Tensor, b: Tensor, bias: Tensor | None = None, roomy: bool = False) -> bool:
    """Whether oneDNN is to write a @ b + bias into given memory. What is narrow takes as long to be transposed, in
    slices, as it saves."""
    return takes(a, b, bias, roomy) and not (_transposed(a) and a.shape[1] <= NARROW)


def _transposed(a: Tensor) -> bool:
    return a.stride(0) == 1 != a.stride(1)


def requests(
    out: Tensor, a: Tensor, b: Tensor, bias: Tensor | None = None, add: bool = False, roomy: bool = False
) -> list[Any]:
    """The calls that write a @ b + bias into given memory, or add it to what is there, slice by slice of its rows.
    `roomy`: of larger slices."""
    transposed, weight = _transposed(a), b.t()
    write = Tensor.add_ if add else Tensor.copy_
    copies = 2 if transposed else int(not a.is_contiguous())
    rows = max(SLICE[roomy] // 4 // (b.shape[1] + copies * a.shape[1]), min(b.numel() // PACKED, ROWS))
    parts = zip(out.split(rows), a.split(rows), strict=True)
    return [(_slice, (write, y, x.t() if transposed else x, transposed, weight, bias), {}) for y, x in parts]


def _slice(write: Any, out: Tensor, given: Tensor, transposed: bool, weight: Tensor, bias: Tensor | None) -> None:
    given = given.contiguous()
    if transposed:  # torch transposes fast what has no gaps
        given = given.t().contiguous()
    write(out, _LINEAR(given, weight, bias, *_AS_IT_IS))
