"""What every law is, and what laws are made with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

from weft.autograd import no_grad
from weft.core.errors import OptionError
from weft.functional import creation, info
from weft.functional.likeness import form
from weft.functional.shaping import broadcast_tensors
from weft.ops import OPS
from weft.tensor.tensor import Size, Tensor


class Distribution(ABC):
    """A law over values of `event_shape`, one for each place of `batch_shape`.

    `parameters` names the tensors, of the batch's shape, that tell the law.
    """

    parameters: tuple[str, ...] = ()
    has_rsample = False

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: Any = None
    ) -> None:
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)

    @abstractmethod
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Values drawn from the law: `sample_shape` of them for each place. They carry no gradient."""

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Values drawn, through which gradients flow to the parameters."""
        raise OptionError(
            f"{type(self).__name__}.rsample(): its draws have no gradient; weigh log_prob(sample) by what they bring"
        )

    @abstractmethod
    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or the probability, at a value."""

    def entropy(self) -> Tensor:
        """How much a value tells, in nats."""
        raise OptionError(f"{type(self).__name__}.entropy(): no formula for it is here; average -log_prob(sample)")

    @property
    def mean(self) -> Tensor:
        """The value in the middle, each weighed by how likely it is."""
        raise OptionError(f"{type(self).__name__} has no mean")

    @property
    def variance(self) -> Tensor:
        """The mean square distance from the mean."""
        raise OptionError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()  # type: ignore[attr-defined]  # bound from the registry

    def perplexity(self) -> Any:
        return self.entropy().exp()  # type: ignore[attr-defined]  # bound from the registry

    def expand(self, batch_shape: Sequence[int]) -> Self:
        """The same law for each place of a larger batch."""
        return type(self)(**{n: getattr(self, n).expand(tuple(batch_shape)) for n in self.parameters})

    def _shape(self, sample_shape: Sequence[int]) -> tuple[int, ...]:
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def __repr__(self) -> str:
        told = {n: getattr(self, n) for n in self.parameters}
        return f"{type(self).__name__}({', '.join(f'{n}: {_told(v)}' for n, v in told.items())})"


def _told(value: Any) -> Any:
    return value if not isinstance(value, Tensor) or value.numel() == 1 else tuple(value.shape)


class Reparametrised(Distribution):
    """A law whose draws are functions of its parameters and of noise."""

    has_rsample = True

    @abstractmethod
    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Values drawn, through which gradients flow to the parameters."""

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)


def together(*values: Any) -> list[Any]:
    """Parameters as tensors of one shape; numbers take the form of the first tensor."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    form_of = {} if like is None else {k: v for k, v in form(like, None, None, None, None).items()}
    return broadcast_tensors(*(v if isinstance(v, Tensor) else creation.full((), float(v), **form_of) for v in values))


def noise(like: Tensor, shape: Sequence[int], make: Any = creation.randn) -> Any:
    """Draws of this shape, of the dtype of a parameter and where it lies."""
    return make(tuple(shape), **form(like, None, None, None, None))


def drawn(like: Tensor, shape: Sequence[int], law: str, *parameters: float) -> Any:
    """Draws of this shape from a law that a kernel knows."""
    where = form(like, None, None, None, None)
    at = (where.get(name) for name in ("dtype", "device", "placement", "sbp"))
    return OPS["draw"](tuple(shape), law, parameters, *at)


def uniform(like: Tensor, shape: Sequence[int]) -> Any:
    """Draws from above 0 to below 1: their logarithms are finite."""
    return noise(like, shape, creation.rand).clamp(min=info.finfo(like.dtype).tiny)


def summed(x: Any, dims: int) -> Any:
    """The sum over the last so many dimensions."""
    return x.sum(tuple(range(-dims, 0))) if dims else x
