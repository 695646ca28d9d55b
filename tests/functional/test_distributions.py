"""Distributions against torch's; samples against their distributions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

T, W = torch.distributions, flow.distributions
A, B, POSITIVE = torch.tensor([1.0, -2.0]), torch.tensor([0.5, 2.0]), torch.tensor([0.7, 3.0])
SHARES, SCORES = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]), torch.tensor([[0.5, -1.0, 2.0], [0.0, 0.3, -0.2]])
COVARIANCE = torch.tensor([[2.0, 0.5], [0.5, 1.0]])
ROOT = torch.linalg.cholesky(torch.tensor([[1.0, 0.2, -0.4], [0.2, 1.0, 0.1], [-0.4, 0.1, 1.0]]))

# a distribution, the values of its parameters, a value
LAWS: list[tuple[str, dict[str, Any], Any]] = [
    ("Categorical", {"probs": SHARES}, torch.tensor([[2, 0], [1, 1]])),
    ("Categorical", {"logits": SCORES}, torch.tensor([2, 0])),
    ("OneHotCategorical", {"probs": SHARES}, torch.eye(3)[:2]),
    ("Bernoulli", {"probs": torch.tensor([0.2, 0.7])}, torch.tensor([1.0, 0.0])),
    ("Bernoulli", {"logits": A}, torch.tensor([1.0, 0.0])),
    ("Geometric", {"probs": torch.tensor([0.2, 0.7])}, torch.tensor([3.0, 0.0])),
    ("Poisson", {"rate": POSITIVE}, torch.tensor([2.0, 0.0])),
    ("Binomial", {"total_count": 5, "probs": torch.tensor([0.2, 0.7])}, torch.tensor([2.0, 5.0])),
    ("Normal", {"loc": A, "scale": B}, torch.tensor([[0.5, 3.0]])),
    ("Normal", {"loc": A, "scale": 0.5}, torch.tensor([0.5, 3.0])),
    ("Laplace", {"loc": A, "scale": B}, torch.tensor([0.5, 3.0])),
    ("Gumbel", {"loc": A, "scale": B}, torch.tensor([0.5, 3.0])),
    ("Cauchy", {"loc": A, "scale": B}, torch.tensor([0.5, 3.0])),
    ("LogNormal", {"loc": A, "scale": B}, torch.tensor([0.5, 3.0])),
    ("HalfNormal", {"scale": B}, torch.tensor([0.5, 3.0])),
    ("Uniform", {"low": A, "high": A + B}, A + 0.25),
    ("Exponential", {"rate": POSITIVE}, torch.tensor([0.5, 3.0])),
    ("Gamma", {"concentration": B, "rate": POSITIVE}, torch.tensor([0.5, 3.0])),
    ("Chi2", {"df": POSITIVE}, torch.tensor([0.5, 3.0])),
    ("StudentT", {"df": POSITIVE, "loc": A, "scale": B}, torch.tensor([0.5, 3.0])),
    ("Beta", {"concentration1": B, "concentration0": POSITIVE}, torch.tensor([0.5, 0.3])),
    ("Dirichlet", {"concentration": POSITIVE}, torch.tensor([0.4, 0.6])),
    ("MultivariateNormal", {"loc": A, "covariance_matrix": COVARIANCE}, torch.tensor([[0.5, 3.0], [1.0, 0.0]])),
    ("MultivariateNormal", {"loc": A, "precision_matrix": COVARIANCE}, torch.tensor([0.5, 3.0])),
    ("MultivariateNormal", {"loc": A, "scale_tril": COVARIANCE.tril()}, torch.tensor([0.5, 3.0])),
    ("RelaxedBernoulli", {"temperature": torch.tensor(0.5), "logits": A}, torch.tensor([0.2, 0.9])),
    ("RelaxedBernoulli", {"temperature": torch.tensor(0.5), "probs": B / 4}, torch.tensor([0.2, 0.9])),
    ("RelaxedOneHotCategorical", {"temperature": torch.tensor(0.5), "logits": SCORES}, SHARES),
    ("Multinomial", {"total_count": 5, "probs": SHARES}, torch.tensor([[1.0, 2.0, 2.0], [0.0, 5.0, 0.0]])),
    ("NegativeBinomial", {"total_count": POSITIVE, "probs": torch.tensor([0.2, 0.7])}, torch.tensor([3.0, 0.0])),
    ("Weibull", {"scale": B, "concentration": POSITIVE}, torch.tensor([0.5, 3.0])),
    ("Pareto", {"scale": B, "alpha": POSITIVE + 2}, torch.tensor([0.75, 3.0])),
    ("HalfCauchy", {"scale": B}, torch.tensor([0.5, 3.0])),
    ("InverseGamma", {"concentration": B + 2, "rate": POSITIVE}, torch.tensor([0.5, 3.0])),
    ("VonMises", {"loc": A, "concentration": POSITIVE}, torch.tensor([0.5, -3.0])),
    ("ContinuousBernoulli", {"probs": torch.tensor([0.2, 0.5, 0.9])}, torch.tensor([0.3, 0.6, 1.0])),
    ("ContinuousBernoulli", {"logits": A}, torch.tensor([0.3, 0.6])),
    ("FisherSnedecor", {"df1": POSITIVE, "df2": POSITIVE + 5}, torch.tensor([0.5, 3.0])),
    ("Kumaraswamy", {"concentration1": B + 1, "concentration0": POSITIVE + 1}, torch.tensor([0.5, 0.3])),
    ("LogisticNormal", {"loc": A, "scale": B}, torch.tensor([0.5, 0.3, 0.2])),
    ("GeneralizedPareto", {"loc": A, "scale": B, "concentration": torch.tensor([0.2, -0.5])}, A + 0.5),
    ("GeneralizedPareto", {"loc": A, "scale": B, "concentration": torch.tensor([0.0, 0.4])}, A + 0.5),
    (
        "LowRankMultivariateNormal",
        {"loc": torch.ones(3), "cov_factor": SHARES.T.contiguous(), "cov_diag": SHARES[0]},
        torch.tensor([0.5, 3.0, 1.0]),
    ),
    ("LKJCholesky", {"dim": 3, "concentration": POSITIVE}, ROOT),
    ("Wishart", {"df": torch.tensor([2.5, 4.0]), "covariance_matrix": COVARIANCE}, COVARIANCE @ COVARIANCE),
    ("Wishart", {"df": torch.tensor(3.0), "precision_matrix": COVARIANCE}, COVARIANCE @ COVARIANCE),
]
RELAXED = ("RelaxedBernoulli", "RelaxedOneHotCategorical")
WITHOUT = {  # what torch has no formula for
    "entropy": ("Poisson", "NegativeBinomial", "VonMises", "FisherSnedecor", "LogisticNormal", "LKJCholesky", *RELAXED),
    "mean": (*RELAXED, "LogisticNormal", "LKJCholesky"),
    "variance": (*RELAXED, "LogisticNormal", "LKJCholesky"),
    "mode": (*RELAXED, "LogisticNormal", "LKJCholesky", "Multinomial", "ContinuousBernoulli"),
    "mean of draws": (
        "Categorical",
        "Cauchy",
        "StudentT",
        "HalfCauchy",
        *RELAXED,
        "VonMises",
        "LogisticNormal",
        "LKJCholesky",
        "Wishart",
    ),
}


def made(name: str, given: dict[str, Any]) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """The distribution in both libraries, and their parameters, paired."""
    theirs = {k: v.clone().requires_grad_() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
    ours = {k: of_torch(v.clone()).requires_grad_() if isinstance(v, torch.Tensor) else v for k, v in given.items()}
    pairs = [(theirs[k], ours[k]) for k, v in given.items() if isinstance(v, torch.Tensor)]
    return getattr(T, name)(**theirs, validate_args=False), getattr(W, name)(**ours, validate_args=False), pairs


def close(got: Any, expected: torch.Tensor, **tolerance: float) -> None:
    torch.testing.assert_close(got.detach().to_torch(), expected.detach(), equal_nan=True, **tolerance)


@pytest.mark.parametrize(("name", "given", "value"), LAWS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_law_is_torchs(name: str, given: dict[str, Any], value: torch.Tensor) -> None:
    theirs, ours, pairs = made(name, given)
    expected, got = theirs.log_prob(value), ours.log_prob(of_torch(value))
    close(got, expected)
    expected.sum().backward()
    got.sum().backward()
    for leaf, mine in pairs:
        torch.testing.assert_close(mine.grad.to_torch(), leaf.grad)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) and tuple(ours.event_shape) == tuple(theirs.event_shape)
    for what in ("entropy", "mean", "variance", "mode"):
        if name not in WITHOUT[what]:
            find = getattr(theirs, what), getattr(ours, what)
            close(*[f() if what == "entropy" else f for f in reversed(find)])


@pytest.mark.parametrize(("name", "given", "value"), LAWS, ids=lambda v: v if isinstance(v, str) else "")
def test_parameters_may_be_tensors_of_torchs(name: str, given: dict[str, Any], value: torch.Tensor) -> None:
    got = getattr(W, name)(**given, validate_args=False).log_prob(of_torch(value))
    assert type(got) is flow.Tensor
    close(got, getattr(T, name)(**given, validate_args=False).log_prob(value))


@pytest.mark.parametrize(("name", "given", "value"), LAWS, ids=lambda v: v if isinstance(v, str) else "")
def test_draws_follow_the_law(name: str, given: dict[str, Any], value: torch.Tensor) -> None:
    theirs, ours, _ = made(name, given)
    flow.manual_seed(0)
    drawn = ours.sample((4000,))
    assert tuple(drawn.shape) == tuple(theirs.sample((4000,)).shape) and not drawn.requires_grad
    if name not in WITHOUT["mean of draws"]:
        spread = theirs.variance.sqrt().max().item()
        close(drawn.mean(0), theirs.mean, atol=0.08 * max(spread, 0.3), rtol=0)
    if ours.has_rsample:
        assert ours.rsample((3,)).requires_grad


@pytest.mark.parametrize(("name", "given", "value"), LAWS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_seed_draws_what_it_draws_in_torch(name: str, given: dict[str, Any], value: torch.Tensor) -> None:
    theirs, ours, pairs = made(name, given)
    if name == "Wishart":
        pytest.skip("torch draws a second time where the first draw was good")
    torch.manual_seed(3)
    flow.manual_seed(3)
    close(ours.sample((5,)), theirs.sample((5,)))
    if not ours.has_rsample:
        return
    expected, got = theirs.rsample((5,)), ours.rsample((5,))
    weights = torch.arange(1.0, expected.numel() + 1).reshape(expected.shape)
    (expected * weights).sum().backward()
    (got * of_torch(weights)).sum().backward()
    for leaf, mine in pairs:
        torch.testing.assert_close(flow.to_torch(mine.grad), leaf.grad, rtol=1e-4, atol=1e-4)


PAIRS = [
    ("Normal", {"loc": A, "scale": B}, {"loc": B, "scale": POSITIVE}),
    ("Laplace", {"loc": A, "scale": B}, {"loc": B, "scale": POSITIVE}),
    ("Exponential", {"rate": B}, {"rate": POSITIVE}),
    ("Uniform", {"low": A, "high": A + 1}, {"low": A - 1, "high": A + B + 1}),
    ("Bernoulli", {"logits": A}, {"logits": B}),
    ("Categorical", {"probs": SHARES}, {"logits": SCORES}),
    ("OneHotCategorical", {"probs": SHARES}, {"logits": SCORES}),
    ("Poisson", {"rate": B}, {"rate": POSITIVE}),
    ("Gamma", {"concentration": B, "rate": POSITIVE}, {"concentration": POSITIVE, "rate": B}),
    ("Dirichlet", {"concentration": B}, {"concentration": POSITIVE}),
    ("Beta", {"concentration1": B, "concentration0": POSITIVE}, {"concentration1": POSITIVE, "concentration0": B}),
    ("MultivariateNormal", {"loc": A, "covariance_matrix": COVARIANCE}, {"loc": B, "scale_tril": COVARIANCE.tril()}),
]


@pytest.mark.parametrize(("name", "first", "second"), PAIRS, ids=lambda v: v if isinstance(v, str) else "")
def test_divergence(name: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    p, mine, _ = made(name, first)
    q, other, _ = made(name, second)
    close(W.kl_divergence(mine, other), T.kl_divergence(p, q))


def test_laws_of_laws() -> None:
    x = torch.tensor([[0.1, 0.2], [0.3, -0.4]])
    theirs: Any = T.Independent(T.Normal(A, B), 1)
    ours: Any = W.Independent(W.Normal(of_torch(A), of_torch(B)), 1)
    close(ours.log_prob(of_torch(x)), theirs.log_prob(x))
    close(ours.entropy(), theirs.entropy())
    close(W.kl_divergence(ours, ours), T.kl_divergence(theirs, theirs))
    theirs = T.TransformedDistribution(theirs, [T.TanhTransform(), T.AffineTransform(0.5, 2.0)])  # an actor's bounds
    ours = W.TransformedDistribution(ours, [W.TanhTransform(), W.AffineTransform(0.5, 2.0)])
    close(ours.log_prob(of_torch(x + 0.5)), theirs.log_prob(x + 0.5))
    assert ours.rsample((3,)).shape == (3, 2) and ours.sample().abs().max().item() <= 2.5
    mixture: Any = T.MixtureSameFamily(T.Categorical(SHARES[0]), T.Normal(SCORES[0], 0.5))
    mine: Any = W.MixtureSameFamily(W.Categorical(of_torch(SHARES[0])), W.Normal(of_torch(SCORES[0]), 0.5))
    close(mine.log_prob(of_torch(x)), mixture.log_prob(x))
    close(mine.mean, mixture.mean)
    assert mine.sample((4, 5)).shape == (4, 5)


class Doubled(W.Transform):
    """As a program has one: its own three methods."""

    domain, codomain = W.constraints.real, W.constraints.real

    def _call(self, x: Any) -> Any:
        return x * 2

    def _inverse(self, y: Any) -> Any:
        return y / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return flow.full_like(x, 2.0).log()


TRANSFORMS = [
    (lambda D: D.PowerTransform(2.0), B),
    (lambda D: D.SoftplusTransform(), A),
    (lambda D: D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, -2.0)]), A),
    (lambda D: D.SigmoidTransform().inv, torch.tensor([0.2, 0.7])),
    (lambda D: D.AffineTransform(A, B, event_dim=1), torch.ones(3, 2)),
    (lambda D: D.AffineTransform(0.0, 2.0) if D is T else Doubled(), A),
]


@pytest.mark.parametrize(("make", "x"), TRANSFORMS)
def test_transforms(make: Any, x: torch.Tensor) -> None:
    theirs, y = make(T), make(T)(x)

    def own(t: torch.Tensor) -> Any:
        return of_torch(t.clone())

    class Ours:  # where parameters are tensors, Weft's
        def __getattr__(self, name: str) -> Any:
            kind = getattr(W, name)
            return lambda *a, **k: kind(*(own(t) if isinstance(t, torch.Tensor) else t for t in a), **k)

    ours = make(Ours())
    close(ours(own(x)), y)
    close(ours.inv(own(y)), x)
    close(ours.log_abs_det_jacobian(own(x), own(y)), theirs.log_abs_det_jacobian(x, y))
    close(ours.inv.log_abs_det_jacobian(own(y), own(x)), theirs.inv.log_abs_det_jacobian(y, x))
    assert ours.inv.inv(own(x)).shape == y.shape


def test_what_was_just_drawn_is_known_by_what_it_was_made_of() -> None:
    distribution = W.TransformedDistribution(
        W.Normal(flow.zeros(2), flow.full((2,), 9.0)), W.TanhTransform(cache_size=1)
    )
    assert distribution.log_prob(distribution.rsample((50,))).isfinite().all()


def test_a_law_is_laid_out_as_its_parameters() -> None:
    distribution = W.Normal(flow.zeros(3), flow.ones(3)).expand((2, 3))
    assert distribution.sample((4,)).shape == (4, 2, 3)
    everywhere = flow.placement("cpu", ranks=[0])
    spread = W.Normal(flow.zeros(3, placement=everywhere, sbp=flow.sbp.broadcast), 1.0)
    assert spread.sample((2,)).is_global and repr(spread) == "Normal(loc: torch.Size([3]), scale: torch.Size([3]))"


def test_ranks_that_are_threads_meet_while_a_parameter_is_worked_out() -> None:
    def halves() -> list[float]:
        x = flow.zeros(2, 2).to_global(flow.placement("cpu", ranks=[0, 1]), flow.sbp.partial_sum)
        return W.Bernoulli(logits=x).probs.numpy().ravel().tolist()

    assert spawn_threads(2, halves, deadline=60) == [[0.5] * 4] * 2


def test_numbers_lie_beside_split_parameters() -> None:
    x = flow.ones(4, placement=flow.placement("cpu", ranks=[0]), sbp=flow.sbp.split(0))
    assert W.Normal(0.0, x).sample((2,)).shape == W.Binomial(3, x / 2).sample((2,)).shape == (2, 4)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="`probs` or `logits` must be"):
        W.Categorical()
    with pytest.raises(OptionError, match="at least one-dimensional"):
        W.Categorical(flow.tensor(1.0))
    with pytest.raises(NotImplementedError, match="Cauchy and q type Uniform"):
        W.kl_divergence(W.Cauchy(0.0, 1.0), W.Uniform(0.0, 1.0))
    with pytest.raises(OptionError, match="draws have no gradient"):
        W.Poisson(flow.ones(1)).rsample()


def test_script_and_ignore_change_nothing() -> None:
    def double(x: flow.Tensor) -> flow.Tensor:
        return x + x

    assert flow.jit.script(double) is double
    assert flow.jit.ignore(double) is double and flow.jit.ignore()(double) is double
