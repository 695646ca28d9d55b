"""What values may be: of a law's parameters, and of its draws. `constraints.positive.check(x)` says where x is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.core.dispatch import here
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.functional.info import finfo
from weft.functional.parts import stack as stacked
from weft.ops import OPS
from weft.tensor.tensor import Tensor


class Constraint:
    """A region of values; `event_dim` dimensions, counted from the last, are judged together."""

    is_discrete: Any = False
    event_dim: Any = 0

    @property
    def kind(self) -> Any:
        """By what `biject_to` and `transform_to` look a transform up."""
        return type(self)

    def check(self, value: Any) -> Any:
        """Where a value lies in the region: a bool for each event."""
        raise OptionError(f"{type(self).__name__} should say where values lie in it: def check(self, value)")

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}()"


class Region(Constraint):
    """A region that a test tells, by bounds."""

    def __init__(
        self, name: str, test: Callable[..., Any], event_dim: int = 0, is_discrete: bool = False, **bounds: Any
    ) -> None:
        self.name, self.test, self.bounds = name, test, bounds
        self.event_dim, self.is_discrete = event_dim, is_discrete
        self.__dict__.update(bounds)

    @property
    def kind(self) -> str:
        return self.name

    def check(self, value: Any) -> Any:
        return self.test(value, *self.bounds.values())

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in self.bounds.items())})"


# ---- numbers -----------------------------------------------------------------------------------------


def _whole(x: Any) -> Any:
    return x % 1 == 0


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """From one bound to the other, both included."""
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return Region("Interval", lambda x, low, high: (x >= low) & (x <= high), **bounds)


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """From one bound, included, to the other."""
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return Region("HalfOpenInterval", lambda x, low, high: (x >= low) & (x < high), **bounds)


def greater_than(lower_bound: Any) -> Constraint:
    return Region("GreaterThan", lambda x, low: x > low, lower_bound=lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    return Region("GreaterThanEq", lambda x, low: x >= low, lower_bound=lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    return Region("LessThan", lambda x, high: x < high, upper_bound=upper_bound)


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """The whole numbers from one bound to the other, both included."""
    bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return Region(
        "IntegerInterval", lambda x, low, high: _whole(x) & (x >= low) & (x <= high), is_discrete=True, **bounds
    )


def integer_greater_than(lower_bound: Any) -> Constraint:
    """Whole numbers, the bound included."""
    return Region(
        "IntegerGreaterThan", lambda x, low: _whole(x) & (x >= low), is_discrete=True, lower_bound=lower_bound
    )


real = Region("Real", lambda x: x == x)  # but for what is no number
boolean = Region("Boolean", lambda x: (x == 0) | (x == 1), is_discrete=True)
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
nonnegative_integer, positive_integer = integer_greater_than(0), integer_greater_than(1)


# ---- several numbers together ------------------------------------------------------------------------


class independent(Constraint):
    """A region of several numbers, each of which lies in another."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> Any:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> Any:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        if value.ndim < self.event_dim:
            raise ShapeError(f"{self} judges {self.event_dim} dimensions together; the value has shape {value.shape}")
        inside = self.base_constraint.check(value)
        return inside.flatten(inside.ndim - self.reinterpreted_batch_ndims).all(-1) if inside.ndim else inside

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Where any of a mixture's laws, which lie along their last batch dimension, have values."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Any) -> Any:
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class cat(Constraint):
    """Regions side by side along a dimension, of these lengths."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        parts = value.split(self.lengths, self.dim)
        return OPS["cat"]([c.check(x) for c, x in zip(self.cseq, parts, strict=True)], self.dim)


class stack(Constraint):
    """Regions, one for each place along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        inner = max(c.event_dim for c in self.cseq)
        self.event_dim = inner + (dim + inner < 0)

    def check(self, value: Any) -> Any:
        places = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        return stacked([c.check(x) for c, x in zip(self.cseq, places, strict=True)], self.dim)


def _simplex(x: Any) -> Any:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _all(x: Any) -> Any:
    """Over a matrix."""
    return x.all(-1).all(-1)


def _lower(x: Any) -> Any:
    return _all(x.tril() == x)


def _lower_cholesky(x: Any) -> Any:
    return _lower(x) & (OPS["diagonal"](x, 0, -2, -1) > 0).all(-1)


def _corr_cholesky(x: Any) -> Any:
    near = finfo(x.dtype).eps * x.shape[-1] * 10
    return ((x.square().sum(-1).sqrt() - 1).abs() <= near).all(-1) & _lower_cholesky(x)


def _square(x: Any) -> Any:
    same = x.shape[-2] == x.shape[-1]
    return OPS["full_like"](x.detach().select(-1, 0).select(-1, 0), 1.0, None) == (1.0 if same else 0.0)


def _symmetric(x: Any) -> Any:
    if x.shape[-2] != x.shape[-1]:
        return _square(x)
    return _all((x - x.mT).abs() <= 1e-6 + 1e-5 * x.mT.abs())


def _curved(least: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def test(x: Any) -> Any:
        inside = _symmetric(x)
        return inside & least(OPS["eigh"](x)[0]).all(-1) if bool(inside.all()) else inside

    return test


real_vector = independent(real, 1)
simplex = Region("Simplex", _simplex, 1)
one_hot = Region("OneHot", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1, True)
lower_triangular = Region("LowerTriangular", _lower, 2)
lower_cholesky = Region("LowerCholesky", _lower_cholesky, 2)
corr_cholesky = Region("CorrCholesky", _corr_cholesky, 2)
square = Region("Square", _square, 2)
symmetric = Region("Symmetric", _symmetric, 2)
positive_semidefinite = Region("PositiveSemidefinite", _curved(lambda e: e >= 0), 2)
positive_definite = Region("PositiveDefinite", _curved(lambda e: e > 0), 2)


def multinomial(upper_bound: Any) -> Constraint:
    """Counts that sum to at most the bound."""
    return Region(
        "Multinomial", lambda x, high: (x >= 0).all(-1) & (x.sum(-1) <= high), 1, True, upper_bound=upper_bound
    )


# ---- what depends on others --------------------------------------------------------------------------


class Dependent(Constraint):
    """A region that other values tell, so that it has none to check by itself. Call it to say what is known of it."""

    def __init__(self, *, is_discrete: Any = False, event_dim: Any = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: Any = None, event_dim: Any = None) -> Dependent:
        return Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise OptionError("what this constraint is depends on others: ask the law that has it, law.support.check(x)")


class dependent_property(property, Dependent):
    """A property that gives a constraint, and on the class stands for one that isn't known yet."""

    def __init__(self, fn: Callable[[Any], Any] | None = None, *, is_discrete: Any = False, event_dim: Any = 0) -> None:
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any = None, **known: Any) -> Any:
        if not callable(fn):
            raise ArgumentError(f"dependent_property(...) decorates a method; got {fn!r}")
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


dependent = Dependent()


def is_dependent(constraint: Any) -> bool:
    """Whether other values tell what a constraint is."""
    return isinstance(constraint, Dependent)


def holds(constraint: Constraint, value: Any) -> bool:
    """Whether a value lies where it should; of what isn't there to be looked at, it is taken for granted."""
    if not isinstance(value, Tensor) or here.trace is not None or value.value is not None or not value.numel():
        return True
    if value.spec is None and value.device.type == "meta":
        return True
    inside = constraint.check(value.detach()).all()
    if inside.spec is None:
        return bool(inside)
    whole = inside._whole("validate_args")
    return not whole.numel() or bool(whole)  # a rank outside of the placement holds nothing


__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
