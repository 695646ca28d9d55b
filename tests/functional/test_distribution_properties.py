"""Distributions beyond their densities, against torch's: cdf and its inverse, supports, checks, prints, divergences;
transforms of events, and those that a constraint names.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from torch.distributions.kl import _KL_REGISTRY as THEIR_PAIRS

import weft as flow
from weft.core.errors import OptionError
from weft.tensor.tensor import of_torch

T, W = torch.distributions, flow.distributions
A, B, C = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 2.0]), torch.tensor([0.7, 3.0])
SHARES = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
MATRIX = torch.tensor([[2.0, 0.5], [0.5, 1.0]])

LAWS: dict[str, dict[str, Any]] = {
    "Normal": {"loc": A, "scale": B}, "Laplace": {"loc": A, "scale": B}, "Gumbel": {"loc": A, "scale": B},
    "Cauchy": {"loc": A, "scale": B}, "LogNormal": {"loc": A, "scale": B}, "HalfNormal": {"scale": B},
    "HalfCauchy": {"scale": B}, "Uniform": {"low": A, "high": A + B}, "Exponential": {"rate": C},
    "Weibull": {"scale": B, "concentration": C}, "Pareto": {"scale": B, "alpha": C + 2},
    "Kumaraswamy": {"concentration1": B, "concentration0": C}, "ContinuousBernoulli": {"probs": SHARES[:, 0]},
    "GeneralizedPareto": {"loc": A, "scale": B, "concentration": torch.tensor([0.3, -0.2])},
    "Gamma": {"concentration": B, "rate": C}, "Chi2": {"df": C}, "InverseGamma": {"concentration": B, "rate": C},
    "Beta": {"concentration1": B, "concentration0": C}, "StudentT": {"df": C}, "Dirichlet": {"concentration": C},
    "FisherSnedecor": {"df1": B, "df2": C}, "VonMises": {"loc": A, "concentration": C},
    "Bernoulli": {"probs": SHARES[:, 0]}, "Geometric": {"probs": SHARES[:, 0]}, "Poisson": {"rate": C},
    "Binomial": {"total_count": 4, "probs": SHARES[:, 0]}, "NegativeBinomial": {"total_count": 4, "logits": A},
    "Categorical": {"probs": SHARES}, "OneHotCategorical": {"logits": SHARES},
    "Multinomial": {"total_count": 4, "probs": SHARES},
    "RelaxedBernoulli": {"temperature": torch.tensor(0.5), "logits": A},
    "RelaxedOneHotCategorical": {"temperature": torch.tensor(0.5), "probs": SHARES},
    "MultivariateNormal": {"loc": A, "covariance_matrix": MATRIX}, "LogisticNormal": {"loc": A, "scale": B},
    "LowRankMultivariateNormal": {"loc": A, "cov_factor": MATRIX[:, :1], "cov_diag": B},
    "Wishart": {"df": torch.tensor(4.0), "covariance_matrix": MATRIX}, "LKJCholesky": {"dim": 3, "concentration": C},
}  # fmt: skip


@pytest.fixture(autouse=True)
def checked() -> None:
    """The first torch.compile of a process turns torch's checks off."""
    T.Distribution.set_default_validate_args(True)


def own(value: Any) -> Any:
    return of_torch(value.clone()) if isinstance(value, torch.Tensor) else value


def made(name: str, given: dict[str, Any] | None = None, **options: Any) -> tuple[Any, Any]:
    given = LAWS[name] if given is None else given
    ours = {k: own(v) for k, v in given.items()}
    return getattr(T, name)(**given, **options), getattr(W, name)(**ours, **options)


def close(got: Any, expected: torch.Tensor, **tolerance: float) -> None:
    torch.testing.assert_close(got.detach().to_torch(), expected.detach(), equal_nan=True, **tolerance)


@pytest.mark.parametrize("name", LAWS)
def test_what_else_a_law_tells(name: str) -> None:
    theirs, ours = made(name)
    torch.manual_seed(0)
    x = theirs.sample((3,))
    chance = torch.tensor([[0.2, 0.7]])
    for what, given in (("cdf", x), ("icdf", chance), ("enumerate_support", None)):
        try:
            expected = getattr(theirs, what)(*(() if given is None else (given,)))
        except (NotImplementedError, AttributeError, ValueError):
            continue
        close(getattr(ours, what)(*(() if given is None else (own(given),))), expected)
        if what == "enumerate_support":
            close(ours.enumerate_support(expand=False), theirs.enumerate_support(expand=False))
    assert ours.has_rsample == theirs.has_rsample and ours.has_enumerate_support == theirs.has_enumerate_support
    if name != "Uniform":  # whose bounds depend on each other
        results = [{k: repr(v) for k, v in distribution.arg_constraints.items()} for distribution in (ours, theirs)]
        assert results[0] == results[1]
    assert bool(ours.support.check(own(x)).all()) and ours.support.event_dim == theirs.support.event_dim
    close(ours.support.check(own(x) - 0.3), theirs.support.check(x - 0.3))
    larger, wider = theirs.expand((4, *theirs.batch_shape)), ours.expand((4, *ours.batch_shape))
    assert tuple(wider.batch_shape) == tuple(larger.batch_shape)
    close(wider.log_prob(own(x[0])), larger.log_prob(x[0]), rtol=1e-4, atol=1e-5)


PRINTED = [n for n in LAWS if n not in (
    "LogNormal", "HalfNormal", "HalfCauchy", "Chi2", "InverseGamma", "Beta", "RelaxedBernoulli", "OneHotCategorical",
    "LogisticNormal",
)]  # fmt: skip  # of which torch's print is less


@pytest.mark.parametrize("name", PRINTED)
def test_a_law_prints_as_torchs(name: str) -> None:
    theirs, ours = made(name)
    assert repr(ours).replace("weft", "torch") == repr(theirs)
    simple = {"Normal": (0.0, 1.0), "Bernoulli": (0.5,), "Poisson": (2.0,)}.get(name)
    if simple is not None:
        assert repr(getattr(W, name)(*simple)) == repr(getattr(T, name)(*simple))


BAD: list[tuple[str, dict[str, Any]]] = [
    ("Normal", {"loc": A, "scale": -B}), ("Normal", {"loc": A * math.nan, "scale": B}), ("Bernoulli", {"probs": A}),
    ("Categorical", {"probs": A}), ("Uniform", {"low": A, "high": A}), ("Geometric", {"probs": 0 * B}),
    ("MultivariateNormal", {"loc": A, "covariance_matrix": -MATRIX}), ("Dirichlet", {"concentration": A}),
    ("MultivariateNormal", {"loc": A, "scale_tril": MATRIX}), ("Gamma", {"concentration": 0 * B, "rate": B}),
    ("Wishart", {"df": torch.tensor(0.5), "covariance_matrix": MATRIX}),
    ("Binomial", {"total_count": -1, "probs": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize("name", LAWS)
def test_a_law_of_global_parameters_is_that_of_local_ones(name: str) -> None:
    """Also where torch's code makes a number without a device."""
    place: Any = {"placement": flow.placement("cpu", ranks=[0]), "sbp": flow.sbp.broadcast}
    given = {k: own(v) for k, v in LAWS[name].items()}
    ours = getattr(W, name)(**given)
    spread = getattr(W, name)(
        **{k: v.to_global(**place) if isinstance(v, flow.Tensor) else v for k, v in given.items()}
    )
    flow.manual_seed(0)
    x = ours.sample((3,))
    for what, values in (("log_prob", (x,)), ("entropy", ()), ("cdf", (x,))):
        try:
            expected = getattr(ours, what)(*values)
        except NotImplementedError:
            continue
        close(getattr(spread, what)(*(v.to_global(**place) for v in values)).to_local(), expected.to_torch())


@pytest.mark.parametrize(("name", "given"), BAD)
def test_parameters_that_cannot_be_are_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        getattr(T, name)(**given)
    with pytest.raises(OptionError):
        getattr(W, name)(**{k: own(v) for k, v in given.items()})


def test_values_that_cannot_be_are_refused_unless_one_says_so() -> None:
    for lib, make in ((torch, torch.tensor), (flow, flow.tensor)):
        D: Any = lib.distributions
        for distribution, value in (
            (D.Bernoulli(make([0.5])), make([0.3])), (D.Categorical(make([0.5, 0.5])), make(2)),
            (D.Gamma(make(1.0), make(1.0)), make(-1.0)), (D.Normal(make([0.0, 1.0]), 1.0), make([1.0, 2.0, 3.0])),
            (D.Dirichlet(make([1.0, 1.0])), make([0.5, 0.6])), (D.Normal(make([0.0]), 1.0), 0.5),
        ):  # fmt: skip
            with pytest.raises(ValueError):
                distribution.log_prob(value)
        assert D.Uniform(make(0.0), make(1.0), validate_args=False).log_prob(make(2.0)).item() == -math.inf
        D.Distribution.set_default_validate_args(False)
        try:
            D.Normal(make(0.0), make(-1.0))
        finally:
            D.Distribution.set_default_validate_args(True)
        with pytest.raises(NotImplementedError):
            D.Poisson(make(1.0)).icdf(make(0.5))
    assert isinstance(W.Normal(flow.zeros(1, device="meta"), 1.0), W.Normal)  # nothing is there to be looked at


def test_a_law_in_a_graph_checks_nothing_and_draws() -> None:
    class Loss(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            distribution = W.Independent(W.Normal(x, x.exp()), 1)
            return distribution.log_prob(x), W.kl_divergence(distribution, W.Independent(W.Normal(x * 0, 1.0), 1))

    got = Loss()(own(A))
    distribution: Any = T.Independent(T.Normal(A, A.exp()), 1)
    close(got[0], distribution.log_prob(A))
    close(got[1], T.kl_divergence(distribution, T.Independent(T.Normal(A * 0, torch.ones(2)), 1)))


def test_draws_do_not_take_the_gradient_from_what_follows_from_the_parameters() -> None:
    logits = flow.zeros(3, requires_grad=True)
    distribution = W.Categorical(logits=logits)
    distribution.log_prob(distribution.sample()).backward()
    distribution = W.Bernoulli(logits=logits)
    assert distribution.sample() is not None and distribution.mean.requires_grad and logits.grad is not None


# ---- divergences -------------------------------------------------------------------------------------

SECOND: dict[str, dict[str, Any]] = {
    "Normal": {"loc": B, "scale": C}, "Laplace": {"loc": B, "scale": C}, "Gumbel": {"loc": B, "scale": C},
    "Cauchy": {"loc": B, "scale": C}, "HalfNormal": {"scale": C}, "Exponential": {"rate": B},
    "Uniform": {"low": A - 1, "high": A + B + 1}, "Pareto": {"scale": B / 2, "alpha": C + 3},
    "Gamma": {"concentration": C, "rate": B}, "Beta": {"concentration1": C, "concentration0": B},
    "ContinuousBernoulli": {"probs": SHARES[:, 1]}, "Dirichlet": {"concentration": B}, "Poisson": {"rate": B},
    "Bernoulli": {"probs": SHARES[:, 1]}, "Geometric": {"probs": SHARES[:, 1]},
    "Categorical": {"probs": SHARES.flip(0)},
    "Binomial": {"total_count": 4, "probs": SHARES[:, 1]}, "OneHotCategorical": {"probs": SHARES.flip(0)},
    "MultivariateNormal": {"loc": B, "scale_tril": MATRIX.tril()},
    "LowRankMultivariateNormal": {"loc": B, "cov_factor": MATRIX, "cov_diag": C},
}  # fmt: skip
NAMES = [(a.__name__, b.__name__) for a, b in THEIR_PAIRS if a.__name__ in LAWS and b.__name__ in SECOND]
NAMES.remove(("ContinuousBernoulli", "Uniform"))  # torch takes an interval of (0, 1) itself for too narrow
NAMES.remove(("Uniform", "ContinuousBernoulli"))


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_a_divergence_is_torchs(names: tuple[str, str]) -> None:
    p, mine = made(names[0])
    q, other = made(names[1], SECOND[names[1]])
    close(W.kl_divergence(mine, other), T.kl_divergence(p, q), rtol=1e-4, atol=1e-5)
    if names in (("Uniform", "Beta"), ("Uniform", "Gamma"), ("Uniform", "Exponential"), ("Uniform", "Pareto")):
        inner = {"low": B / 10, "high": B / 10 + 0.5}
        p, mine = made("Uniform", inner)
        q, other = made(names[1], {**SECOND[names[1]], **({"scale": B / 20} if names[1] == "Pareto" else {})})
        close(W.kl_divergence(mine, other), T.kl_divergence(p, q), rtol=1e-4, atol=1e-5)


def test_divergences_of_laws_of_laws() -> None:
    for lib, make in ((torch, lambda x: x), (flow, own)):
        D: Any = lib.distributions
        p, q = D.LogNormal(make(A), make(B)), D.LogNormal(make(B), make(C))
        assert D.kl_divergence(p, q).tolist() == pytest.approx(
            T.kl_divergence(T.Normal(A, B), T.Normal(B, C)).tolist(), rel=1e-4
        )
        p, q = (D.TransformedDistribution(D.Normal(make(A), make(s)), [D.ExpTransform()]) for s in (B, C))
        assert D.kl_divergence(p, q).tolist() == pytest.approx(
            T.kl_divergence(T.Normal(A, B), T.Normal(A, C)).tolist(), rel=1e-4
        )
        with pytest.raises(NotImplementedError):
            D.kl_divergence(D.StudentT(make(B)), D.Normal(make(A), make(B)))


def test_mixtures_have_a_variance_and_a_cdf() -> None:
    def mixture(D: Any, make: Any) -> Any:
        return D.MixtureSameFamily(D.Categorical(make(SHARES)), D.Normal(make(SHARES * 3), make(SHARES + 0.5)))

    theirs, ours = mixture(T, lambda x: x), mixture(W, own)
    close(ours.variance, theirs.variance)
    close(ours.cdf(own(A)), theirs.cdf(A))
    close(ours.expand((3, 2)).log_prob(own(A)), theirs.expand((3, 2)).log_prob(A))
    assert repr(mixture(W, own)).replace("weft", "torch") == repr(mixture(T, lambda x: x))
    with pytest.raises(OptionError, match=r"`mixture_distribution component` \(3\) does not equal"):
        W.MixtureSameFamily(W.Categorical(own(SHARES)), W.Normal(own(A), 1.0))


# ---- transforms --------------------------------------------------------------------------------------

EVENTS: list[tuple[Any, torch.Tensor]] = [
    (lambda D: D.StickBreakingTransform(), torch.tensor([[0.3, -1.0, 2.0], [0.0, 0.1, 0.2]])),
    (lambda D: D.CorrCholeskyTransform(), torch.tensor([[0.3, -1.0, 0.5], [0.0, 0.1, 0.2]])),
    (lambda D: D.ReshapeTransform((2, 3), (6,)), torch.arange(12.0).reshape(2, 2, 3)),
    (lambda D: D.IndependentTransform(D.ExpTransform(), 1), SHARES),
    (lambda D: D.CatTransform([D.ExpTransform(), D.SigmoidTransform()], -1, [1, 2]), SHARES),
    (lambda D: D.StackTransform([D.ExpTransform(), D.SigmoidTransform()], 0), SHARES),
    (lambda D: D.CumulativeDistributionTransform(D.Normal(0.0, 1.0)), SHARES),
    (lambda D: D.ComposeTransform([D.StickBreakingTransform(), D.StickBreakingTransform().inv]), SHARES),
    (lambda D: D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.StickBreakingTransform()]), SHARES),
]
LOOSE: list[tuple[Any, torch.Tensor]] = [
    (lambda D: D.SoftmaxTransform(), SHARES), (lambda D: D.AbsTransform(), A),
    (lambda D: D.LowerCholeskyTransform(), MATRIX), (lambda D: D.PositiveDefiniteTransform(), MATRIX),
]  # fmt: skip


@pytest.mark.parametrize(("make", "x"), [*EVENTS, *LOOSE])
def test_a_transform_of_events_is_torchs(make: Any, x: torch.Tensor) -> None:
    theirs, ours = make(T), make(W)
    y = theirs(x)
    close(ours(own(x)), y)
    close(ours.inv(own(y)), theirs.inv(y), rtol=1e-4, atol=1e-5)
    assert tuple(ours.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(ours.inverse_shape(y.shape)) == tuple(theirs.inverse_shape(y.shape))
    assert (ours.domain.event_dim, ours.codomain.event_dim) == (theirs.domain.event_dim, theirs.codomain.event_dim)
    assert ours.bijective == theirs.bijective and ours != W.TanhTransform()
    assert (ours == make(W)) == (theirs == make(T))
    if any(x is other for _, other in EVENTS) and theirs.bijective:
        close(ours.log_abs_det_jacobian(own(x), own(y)), theirs.log_abs_det_jacobian(x, y), rtol=1e-4, atol=1e-5)


def test_transforms_print_as_torchs() -> None:
    for make in (
        lambda D: D.ExpTransform(), lambda D: D.AffineTransform(0.0, 1.0), lambda D: D.ExpTransform().inv,
        lambda D: D.ComposeTransform([D.ExpTransform(), D.TanhTransform()]),
        lambda D: D.IndependentTransform(D.ExpTransform(), 2),
    ):  # fmt: skip
        assert repr(make(W)) == repr(make(T))


def test_a_law_of_transforms_has_a_cdf_and_a_shape() -> None:
    for D, make in ((T, lambda x: x), (W, own)):
        distribution: Any = D.TransformedDistribution(
            D.Normal(make(A), make(B)), [D.AffineTransform(make(torch.zeros(3, 2)), -2.0), D.ExpTransform()]
        )
        assert tuple(distribution.batch_shape) == (3, 2) and tuple(distribution.expand((4, 3, 2)).batch_shape) == (
            4,
            3,
            2,
        )
        x = torch.tensor([0.4, 1.0])
        reference = T.TransformedDistribution(T.Normal(A, B), [T.AffineTransform(0.0, -2.0), T.ExpTransform()])
        assert distribution.cdf(make(x))[0].tolist() == pytest.approx(reference.cdf(x).tolist(), rel=1e-5)
        assert distribution.icdf(make(B / 4))[0].tolist() == pytest.approx(reference.icdf(B / 4).tolist(), rel=1e-5)
        simplex: Any = D.TransformedDistribution(D.Normal(make(SHARES), make(SHARES)), D.StickBreakingTransform())
        assert (tuple(simplex.batch_shape), tuple(simplex.event_shape)) == ((2,), (4,))


CONSTRAINTS: list[Any] = [
    lambda C: C.real, lambda C: C.positive, lambda C: C.nonnegative, lambda C: C.greater_than(2.0),
    lambda C: C.less_than(-1.0), lambda C: C.unit_interval, lambda C: C.interval(-2.0, 3.0),
    lambda C: C.half_open_interval(-2.0, 3.0), lambda C: C.simplex, lambda C: C.lower_cholesky,
    lambda C: C.positive_definite, lambda C: C.corr_cholesky, lambda C: C.independent(C.positive, 1),
    lambda C: C.stack([C.positive, C.real, C.unit_interval], -1), lambda C: C.cat([C.positive, C.real], -1, [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("which", range(len(CONSTRAINTS)))
@pytest.mark.parametrize("how", ["biject_to", "transform_to"])
def test_a_constraint_names_a_transform_into_it(which: int, how: str) -> None:
    make = CONSTRAINTS[which]
    x = torch.tensor([[0.3, -1.0, 0.5], [0.0, 0.1, 0.2], [-0.4, 0.3, 1.0]])
    if how == "biject_to" and make(W.constraints) in (W.constraints.lower_cholesky, W.constraints.positive_definite):
        with pytest.raises(NotImplementedError):
            W.biject_to(make(W.constraints))
        return
    theirs, ours = getattr(T, how)(make(T.constraints)), getattr(W, how)(make(W.constraints))
    y = ours(own(x))
    close(y, theirs(x))
    assert bool(make(W.constraints).check(y).all())


@pytest.mark.parametrize("name", [n for n in T.constraints.__all__ if hasattr(getattr(T.constraints, n), "check")])
def test_a_constraint_is_torchs(name: str) -> None:
    ours, theirs = getattr(W.constraints, name), getattr(T.constraints, name)
    if isinstance(theirs, type) or name.startswith("dependent"):
        assert callable(ours)
        return
    assert repr(ours) == repr(theirs) and (ours.is_discrete, ours.event_dim) == (theirs.is_discrete, theirs.event_dim)
    g = torch.Generator().manual_seed(0)
    square = torch.randn(2, 3, 3, generator=g)
    for x in (
        square,
        square.tril(),
        square @ square.mT,
        torch.eye(3).expand(2, 3, 3),
        (square * 2).round(),
        square.softmax(-1),
    ):
        close(ours.check(own(x)), theirs.check(x))


def test_what_has_no_transform_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean"):
        W.biject_to(W.constraints.boolean)

    class Even(W.constraints.Constraint):
        def check(self, value: Any) -> Any:
            return value % 2 == 0

    @W.transform_to.register(Even)
    def _(constraint: Any) -> Any:
        return W.AffineTransform(0.0, 2.0)

    assert W.transform_to(Even())(flow.ones(1)).item() == 2.0 and repr(Even()) == "Even()"


class Twice(W.Distribution):
    """As a program has one: parameters, what they may be, a draw and a density."""

    arg_constraints = {"size": W.constraints.positive}
    support = W.constraints.positive
    has_rsample = True

    def __init__(self, size: Any, validate_args: Any = None) -> None:
        self.size = size
        super().__init__(size.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return flow.rand(self._extended_shape(sample_shape)) * self.size

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return -self.size.log() * value

    @W.constraints.dependent_property(is_discrete=False, event_dim=0)
    def half(self) -> Any:
        return W.constraints.less_than(self.size)


def test_a_law_of_ones_own() -> None:
    distribution = Twice(flow.ones(2, requires_grad=True))
    assert (
        distribution.sample((3,)).shape == (3, 2)
        and not distribution.sample().requires_grad
        and distribution.rsample().requires_grad
    )
    assert distribution.expand((4, 2)).batch_shape == (4, 2) and repr(distribution) == "Twice(size: torch.Size([2]))"
    assert W.constraints.is_dependent(Twice.half) and bool(distribution.half.check(flow.zeros(2)).all())
    with pytest.raises(OptionError, match="within the support"):
        distribution.log_prob(-flow.ones(2))
    with pytest.raises(OptionError, match="parameter size"):
        Twice(-flow.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert W.Independent(distribution, 1).log_prob(flow.ones(2)).item() == 0.0


def test_what_laws_of_ones_own_are_written_with() -> None:
    def results(lib: Any, make: Any) -> list[Any]:
        utils = lib.distributions.utils
        vector, square = make(torch.arange(1.0, 7.0)), make(torch.arange(9.0).reshape(3, 3))
        chances = make(torch.tensor([0.0, 0.3, 1.0]))
        both = utils.broadcast_all(make(A), 2.0)
        found = [*both, utils.clamp_probs(chances), utils.probs_to_logits(chances), utils.logits_to_probs(vector)]
        found += [utils.probs_to_logits(chances, is_binary=True), utils.logits_to_probs(vector, is_binary=True)]
        found += [utils.vec_to_tril_matrix(vector), utils.vec_to_tril_matrix(vector[:3], diag=-1)]
        return [*found, utils.tril_matrix_to_vec(square), utils.tril_matrix_to_vec(square, diag=-1)]

    for ours, theirs in zip(results(flow, own), results(torch, lambda t: t), strict=True):
        close(ours, theirs)

    class Half:
        asked = 0

        @W.utils.lazy_property
        def value(self) -> Any:
            self.asked += 1
            return flow.ones(1, requires_grad=True) * 0.5

    half = Half()
    with flow.no_grad():
        assert half.value.requires_grad and half.value.item() == 0.5 and half.asked == 1


def test_in_a_graph_values_are_taken_for_granted() -> None:
    class Scored(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = flow.nn.BatchNorm1d(2, eps=0.0)

        def build(self, x: flow.Tensor) -> flow.Tensor:
            distribution = flow.distributions.Normal(self.layer.running_mean, self.layer.running_var)
            return distribution.log_prob(x) + flow.distributions.Categorical(logits=x).log_prob(flow.tensor(1))

    x = flow.tensor([0.5, -1.0])
    expected = flow.distributions.Normal(0.0, 1.0).log_prob(x) + x.log_softmax(-1)[1]
    assert flow.allclose(Scored()(x), expected)


def test_draws_end_where_a_parameter_is_no_number() -> None:
    nothing = flow.tensor([float("nan"), 1.0])
    drawn = flow.distributions.VonMises(flow.zeros(2), nothing, validate_args=False).sample()
    assert [math.isnan(x) for x in drawn.tolist()] == [True, False]
