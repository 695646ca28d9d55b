"""From a constraint to a transform of any numbers into it: what optimizers and samplers move freely in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.errors import ArgumentError, MissingFormulaError
from weft.functional.distributions import constraints
from weft.functional.distributions.constraints import Constraint
from weft.functional.distributions.mapping import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    Transform,
    identity_transform,
)
from weft.functional.distributions.parts import CatTransform, IndependentTransform, StackTransform
from weft.functional.distributions.vectors import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Transforms by the kinds of constraints. Call it with a constraint; `register` adds a kind."""

    def __init__(self) -> None:
        self._factories: dict[Any, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Let a function of the constraint make its transform; without one, a decorator."""
        if factory is None:
            return lambda f: self.register(constraint, f)
        kind = constraint.kind if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, (type, str)):
            raise ArgumentError(f"register() takes a constraint, or a class of constraints; got {constraint!r}")
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._factories.get(constraint.kind) if isinstance(constraint, Constraint) else None
        if factory is None:
            raise MissingFormulaError(
                f"no transform to {constraint!r} is registered: @transform_to.register({constraint!r}) adds one"
            )
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()  # each reached one way; or somehow, and simply


def _above(c: Any) -> Transform:
    return (
        ExpTransform()
        if _is(c.lower_bound, 0)
        else ComposeTransform([ExpTransform(), AffineTransform(c.lower_bound, 1)])
    )


def _between(c: Any) -> Transform:
    if _is(c.lower_bound, 0) and _is(c.upper_bound, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(c.lower_bound, c.upper_bound - c.lower_bound)])


def _is(bound: Any, number: float) -> bool:
    return isinstance(bound, (int, float)) and bound == number


FACTORIES: dict[Any, Factory] = {
    constraints.real: lambda c: identity_transform,
    constraints.positive: _above,
    constraints.nonnegative: _above,
    constraints.less_than(0.0): lambda c: ComposeTransform([ExpTransform(), AffineTransform(c.upper_bound, -1)]),
    constraints.unit_interval: _between,
    constraints.half_open_interval(0.0, 1.0): _between,
    constraints.corr_cholesky: lambda c: CorrCholeskyTransform(),
}  # fmt: skip

for _registry, _shares in ((biject_to, StickBreakingTransform), (transform_to, SoftmaxTransform)):
    for _constraint, _factory in FACTORIES.items():
        _registry.register(_constraint, _factory)

    _registry.register(constraints.simplex, lambda c, made=_shares: made())
    _registry.register(
        constraints.independent,
        lambda c, registry=_registry: IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    _registry.register(
        constraints.MixtureSameFamilyConstraint, lambda c, registry=_registry: registry(c.base_constraint)
    )
    _registry.register(
        constraints.cat,
        lambda c, registry=_registry: CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths),
    )
    _registry.register(
        constraints.stack, lambda c, registry=_registry: StackTransform([registry(part) for part in c.cseq], c.dim)
    )

transform_to.register(constraints.lower_cholesky, lambda c: LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda c: PositiveDefiniteTransform())

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
