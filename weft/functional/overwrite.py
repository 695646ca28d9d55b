"""Methods that overwrite a tensor: `copy_`, `fill_`, `zero_`, and draws in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.autograd.inplace import assign, held
from weft.autograd.trees import leaves
from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.core.sbp import broadcast
from weft.functional import creation
from weft.functional.conversion import cast, to
from weft.functional.creation import drawing
from weft.functional.likeness import form, strides_of
from weft.functional.signature import overloaded
from weft.functional.table import overwriting, public
from weft.ops import OPS, create
from weft.tensor.tensor import Tensor

_fill, _copy = overwriting(OPS["fill"]), overwriting(OPS["copy"])


@public("tensor")
def copy_(x: Tensor, value: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite x with the value, which may have another dtype, device or layout, and broadcasts."""
    if isinstance(value, Tensor):
        mine, other = x.blob.now, value.blob.now
        if mine is not None and other is not None and mine.device == other.device:
            return _copy(x, value)
    else:
        if isinstance(value, (int, float)):
            return fill_(x, value)
        value = creation.as_tensor(value)
    if value.spec is None and x.spec is not None:  # data that every rank has alike
        value = creation.placed("copy_", value._local("copy_()"), None, x.placement, _flat(x), False)
    elif x.spec is None and value.device is not x.device:
        value = to(value, x.device)
    elif x.spec is not None and value.placement is not x.placement:
        value = to(value, x)
    return assign(x, value)


def into(x: Tensor, f: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
    """Overwrite x with what a function composed of ops makes of it. Their gradients read what x held before."""
    before = x
    if here.grad and here.trace is None and any(map(_wants, leaves((x, args, options)))):
        before = OPS["clone"](x)
    made = f(before, *args, **options)
    held(f.__name__, made.dtype, x.dtype)
    return copy_(x, made)


def composed(name: str, f: Callable[..., Tensor]) -> None:
    """Make the method `name_` of a function that is composed of ops."""

    def overwrite(x: Tensor, *args: Any, **options: Any) -> Tensor:
        refuse_out(name, options)
        return into(x, f, *args, **options)

    overwrite.__name__ = overwrite.__qualname__ = f"{name}_"
    overwrite.__doc__ = f"`{name}`, into x's memory."
    public("tensor")(overwrite)


def refuse_out(name: str, options: dict[str, Any]) -> None:
    if "out" in options:
        raise ArgumentError(
            f"{name}_() got an unexpected keyword argument 'out': it writes into the tensor itself; {name}() takes one"
        )


def _wants(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _flat(x: Tensor) -> Any:
    return (broadcast,) * x.placement.ndim


def number_like(x: Tensor, value: Any) -> Tensor:
    """A number as a tensor that broadcasts to x: x's dtype, where x lies."""
    if isinstance(value, Tensor):
        return value
    if x.spec is not None:
        return create.full((), value, x.dtype, None, x.placement, _flat(x))
    return create.full((), value, x.dtype, x.device)


@public("tensor")
def fill_(x: Tensor, value: Any) -> Tensor:
    """Overwrite every element with one value.

    >>> flow.empty(2).fill_(3).tolist()
    [3.0, 3.0]
    """
    return _fill(x, value)


@public("flow tensor")
def zero_(x: Tensor) -> Tensor:
    """Overwrite every element with zero."""
    return _fill(x, 0)


def drawn(x: Tensor, law: str, parameters: tuple[float, ...], generator: Any = None) -> Tensor:
    """Overwrite x with draws from a law of `OPS["draw"]`, which go through memory as torch's do."""
    where = {k: v for k, v in form(x, None, None, None, None).items() if k != "dtype"}
    with drawing(generator):
        y = OPS["draw"](
            tuple(x.shape), law, parameters, x.dtype, where.get("device"), where.get("placement"), where.get("sbp"),
            strides_of(x),
        )  # fmt: skip
    return assign(x, y)


def _uniform(x: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the uniform distribution over [from_, to)."""
    return drawn(x, "uniform", (from_, to), generator)


def _between(x: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Tensor:  # OneFlow's names
    return drawn(x, "uniform", (a, b), generator)


public("tensor", "uniform_")(overloaded("uniform_", _uniform, _between))


@public("tensor")
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the normal distribution."""
    return drawn(x, "normal", (mean, std), generator)


@public("tensor")
def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the exponential distribution."""
    return drawn(x, "exponential", (lambd,), generator)


@public("tensor")
def geometric_(x: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws of how many tries it takes until something of probability p comes true."""
    return drawn(x, "geometric", (p,), generator)


@public("tensor")
def cauchy_(x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the Cauchy distribution."""
    return drawn(x, "cauchy", (median, sigma), generator)


@public("tensor")
def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with numbers whose logarithms are draws from the normal distribution."""
    return drawn(x, "log_normal", (mean, std), generator)


@public("tensor")
def random_(x: Tensor, from_: int | None = None, to: int | None = None, *, generator: Any = None) -> Tensor:
    """Overwrite x with integers from `from_` to `to` - 1; `random_(n)` draws from 0 to n - 1, and without bounds from
    all that the dtype counts.

    >>> flow.empty(3).random_(1).tolist()
    [0.0, 0.0, 0.0]
    """
    if to is not None:
        return drawn(x, "random", (from_ or 0, to), generator)
    return drawn(x, "random", () if from_ is None else (from_,), generator)


@public("tensor")
def bernoulli_(x: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Overwrite x with ones, each with probability p, and zeros; p may be a tensor."""
    if isinstance(p, Tensor):
        with drawing(generator):
            return assign(x, cast(OPS["bernoulli"](p), x.dtype))
    return drawn(x, "bernoulli", (p,), generator)
