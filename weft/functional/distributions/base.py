"""What every law is, and what laws are made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from torch import Size

from weft.autograd import enable_grad, no_grad
from weft.core.errors import MissingFormulaError, OptionError
from weft.functional import creation, info
from weft.functional.distributions.constraints import Constraint, holds, is_dependent
from weft.functional.likeness import beside, fitted
from weft.functional.shaping import broadcast_tensors
from weft.ops import OPS
from weft.tensor.tensor import Tensor


class lazy:
    """A parameter that follows from others, worked out when it is first asked for: with gradients, whoever asks.

    It takes no lock, as `functools.cached_property` of Python 3.11 does for all instances at once: ranks that are
    threads meet while they work it out.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            found = instance.__dict__[self.name] = self.function(instance)
        return found


class Distribution:
    """A law over values of `event_shape`, one for each place of `batch_shape`.

    `arg_constraints` says what its parameters may be, and `support` what values may. Both are checked, as far as they
    are said, unless `validate_args=False`; in a graph, where nothing is known yet, they aren't.
    """

    arg_constraints: Any = {}
    support: Any = None
    has_rsample = False
    has_enumerate_support = False
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether laws that aren't told so themselves check parameters and values."""
        if not isinstance(value, bool):
            raise OptionError(f"set_default_validate_args() takes True or False; got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if not is_dependent(constraint) and name in self.__dict__:  # others follow from those that were given
                    self._validate_parameter(name, constraint, self.__dict__[name])

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    def _validate_parameter(self, name: str, constraint: Constraint, value: Any) -> None:
        if not holds(constraint, value):
            raise OptionError(
                f"{type(self).__name__}: parameter {name}, of shape {list(value.shape)}, doesn't satisfy {constraint}: "
                f"{value}"
            )

    def _validate_sample(self, value: Any) -> None:
        """Refuse a value that no draw could be."""
        if not isinstance(value, Tensor):
            raise OptionError(
                f"{type(self).__name__}: a value is a tensor; got {type(value).__name__}. Make one: flow.tensor(value)"
            )
        shape, events = tuple(value.shape), tuple(self.event_shape)
        wanted = (*self.batch_shape, *events)
        pairs = zip(reversed(shape), reversed(wanted), strict=False)
        if shape[len(shape) - len(events) :] != events or any(i != 1 != j != i for i, j in pairs):
            raise OptionError(
                f"{type(self).__name__}: a value of shape {list(shape)} for batch_shape {list(self.batch_shape)} and "
                f"event_shape {list(events)}: its last dimensions are those of the event, and those before go with the "
                "batch's"
            )
        support = self.support
        if support is not None and not is_dependent(support) and not holds(support, value):
            raise OptionError(f"{type(self).__name__}: a value lies outside of the support, {support}: {value}")

    def _valued(self, value: Any) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Values drawn from the law: `sample_shape` of them for each place. They carry no gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`, by its older name."""
        return self.sample((n,))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Values drawn, through which gradients flow to the parameters."""
        raise MissingFormulaError(
            f"{type(self).__name__}.rsample(): its draws have no gradient; weigh log_prob(sample) by what they bring"
        )

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density, or the probability, at a value."""
        raise MissingFormulaError(f"{type(self).__name__}.log_prob(): no formula for it is here")

    def cdf(self, value: Any) -> Tensor:
        """The probability of a draw below the value."""
        raise MissingFormulaError(f"{type(self).__name__}.cdf(): no formula for it is here; count (sample <= value)")

    def icdf(self, value: Any) -> Tensor:
        """The value that a draw lies below with this probability."""
        raise MissingFormulaError(f"{type(self).__name__}.icdf(): no formula for it is here; sort draws")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Every value that there is, one after another along a new first dimension."""
        raise MissingFormulaError(f"{type(self).__name__}.enumerate_support(): its values can't be listed")

    def entropy(self) -> Tensor:
        """How much a value tells, in nats."""
        raise MissingFormulaError(f"{type(self).__name__}.entropy(): no formula for it is here; average -log_prob(x)")

    @property
    def mean(self) -> Tensor:
        """The value in the middle, each weighed by how likely it is."""
        raise MissingFormulaError(f"{type(self).__name__}.mean: no formula for it is here; average draws")

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        raise MissingFormulaError(f"{type(self).__name__}.mode: no formula for it is here")

    @property
    def variance(self) -> Tensor:
        """The mean square distance from the mean."""
        raise MissingFormulaError(f"{type(self).__name__}.variance: no formula for it is here; average over draws")

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()  # type: ignore[attr-defined]  # bound from the registry

    def perplexity(self) -> Any:
        return self.entropy().exp()  # type: ignore[attr-defined]  # bound from the registry

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        """The same law for each place of a larger batch."""
        return self._again(**self._larger(batch_shape))

    def _larger(self, batch_shape: Sequence[int]) -> dict[str, Any]:
        """The parameters that were given, as many as a larger batch has."""
        found = {}
        for name in self._given():
            value, events = getattr(self, name), self._parameter_dims(name)
            found[name] = value.expand((*batch_shape, *value.shape[value.ndim - events :]))
        return found

    def _given(self) -> Sequence[str]:
        """The parameters that a law of this kind is made by."""
        return [name for name in self.arg_constraints if name in self.__dict__]

    def _parameter_dims(self, name: str) -> int:
        """How many dimensions a parameter has beyond the batch's."""
        return self.arg_constraints[name].event_dim

    def _again(self, *args: Any, **parameters: Any) -> Self:
        """Another law of this kind, of parameters that were checked before."""
        made = type(self)(*args, **parameters, validate_args=False)
        made._validate_args = self._validate_args
        return made

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> tuple[int, ...]:
        """The shape of so many draws."""
        return (*sample_shape, *self.batch_shape, *self.event_shape)

    def __repr__(self) -> str:
        told = {n: self.__dict__[n] for n in self.arg_constraints if n in self.__dict__}
        return f"{type(self).__name__}({', '.join(f'{n}: {_told(v)}' for n, v in told.items())})"


def _told(value: Any) -> Any:
    return value if not isinstance(value, Tensor) or value.numel() == 1 else value.shape


class ExponentialFamily(Distribution):
    """A law whose density is exp(<parameters, statistics of the value> - a function of the parameters)."""


class Reparametrised(Distribution):
    """A law whose draws are functions of its parameters and of noise."""

    has_rsample = True


class Centred(Distribution):
    """A law that is symmetric about its highest place, `loc`."""

    loc: Any

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc


def together(*values: Any) -> list[Any]:
    """Parameters as tensors of one shape; numbers take the dtype of the first tensor, and lie where it does."""
    like = next((v for v in values if isinstance(v, Tensor)), None)
    form_of = {} if like is None else {"dtype": like.dtype, **beside(like)}
    return broadcast_tensors(*(v if isinstance(v, Tensor) else creation.full((), float(v), **form_of) for v in values))


def noise(like: Tensor, shape: Sequence[int], make: Any = creation.randn) -> Any:
    """Draws of this shape, of the dtype of a parameter and where it lies."""
    return make(tuple(shape), **fitted(like, shape, None, None, None, None))


def drawn(like: Tensor, shape: Sequence[int], law: str, *parameters: float) -> Any:
    """Draws of this shape from a law that a kernel knows."""
    where = fitted(like, shape, None, None, None, None)
    at = (where.get(name) for name in ("dtype", "device", "placement", "sbp"))
    return OPS["draw"](tuple(shape), law, parameters, *at)


def uniform(like: Tensor, shape: Sequence[int]) -> Any:
    """Draws from above 0 to below 1: their logarithms are finite."""
    return noise(like, shape, creation.rand).clamp(min=info.finfo(like.dtype).tiny)


def summed(x: Any, dims: int) -> Any:
    """The sum over the last so many dimensions."""
    return x.sum(tuple(range(-dims, 0))) if dims else x
