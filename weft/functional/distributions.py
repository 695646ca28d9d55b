"""`flow.distributions`: derived from torch's, with changes for global tensors, graphs and seeds."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

from torch import Size

from weft.autograd.plain import plain
from weft.core.derived import GIVEN, Derived
from weft.core.dispatch import here
from weft.core.errors import MissingFormulaError
from weft.core.sbp import broadcast
from weft.functional.create import creation
from weft.functional.create.global_view import global_mode
from weft.functional.create.likeness import device_of, fitted
from weft.functional.random import random_tensors
from weft.functional.tensor import conversion
from weft.ops import ops
from weft.tensor.data import whole_data
from weft.tensor.tensor import Tensor

# ---- the device of a distribution's own tensors ----------------------------------------------------------


class Site:
    """`x.device` in torch's code for a global x: tensors created there get x's placement."""

    def __init__(self, x: Tensor) -> None:
        self.x = x


def site(x: Tensor) -> Any:
    return x.device if x.is_local else Site(x)


def _at_site(make: Callable[..., Any], shaped: bool) -> Callable[..., Any]:
    """A creation function whose `device` may be a site; a tensor with the site's shape may be split alike."""

    @functools.wraps(make)
    def call(*args: Any, device: Any = None, **options: Any) -> Any:
        if isinstance(device, Site):
            shape = options.get("size") if not args else args if isinstance(args[0], int) else args[0]
            where = fitted(device.x, shape, None, None, None, None) if shaped else device_of(device.x)
            options = {**where, **options}
        elif device is not None:
            options["device"] = device
        return make(*args, **options)

    return call


SHAPED: Final = (
    random_tensors.rand, random_tensors.randn, creation.zeros, creation.ones, creation.empty, creation.full,
)  # fmt: skip


def _as_tensor(x: Any, dtype: Any = None, device: Any = None) -> Any:
    if not isinstance(x, Tensor):
        return _at_site(creation.tensor, False)(x, dtype=dtype, device=device)
    return x if isinstance(device, Site) else conversion.to(x, device=device, dtype=dtype)


def _beside(parameter: str) -> Callable[[Any], Any]:
    """A method of torch's that makes numbers without a device: they lie beside the distribution's parameters."""

    def change(theirs: Any) -> Any:
        @functools.wraps(theirs)
        def call(self: Any, *args: Any) -> Any:
            x = getattr(self, parameter)
            if not isinstance(x, Tensor) or x.is_local:
                return theirs(self, *args)
            with global_mode(True, placement=x.placement, sbp=broadcast):
                return theirs(self, *args)

        return call

    return change


# ---- what is checked ---------------------------------------------------------------------------------


def _is_all_true(valid: Any) -> bool:
    """Whether every value is valid; assumed where values can't be read."""
    if here.trace is not None or valid.value is not None or not valid.numel():
        return True
    if valid.is_local:
        return valid.device.type == "meta" or bool(valid.all())
    whole = whole_data(valid.all(), "validate_args")
    return not whole.numel() or bool(whole)  # a rank outside of the placement holds nothing


def _unchecked_in_graphs(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def __init__(self: Any, batch_shape: Any = (), event_shape: Any = (), validate_args: Any = None) -> None:
        checks = False if here.trace is not None else validate_args
        init(self, Size(batch_shape), Size(event_shape), validate_args=checks)

    return __init__


ADVICE: Final = {
    "rsample": "its draws have no gradient; use the score function, log_prob(sample) * reward",
    "log_prob": "it has no formula here",
    "cdf": "it has no formula here; count (sample <= value)",
    "icdf": "it has no formula here; sort draws",
    "enumerate_support": "its support can't be enumerated",
    "entropy": "it has no formula here; average -log_prob(x)",
    "mean": "it has no formula here; average draws",
    "mode": "it has no formula here",
    "variance": "it has no formula here; average over draws",
}


def _of_torchs_too(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes torch's tensors as Weft's."""

    @functools.wraps(theirs)
    def call(*args: Any, **options: Any) -> Any:
        return theirs(*plain(args), **dict(zip(options, plain(tuple(options.values())), strict=True)))

    return call


def _missing(name: str) -> Callable[[Any], Any]:
    """Replace a missing formula's error, which has no text in torch."""

    def change(theirs: Any) -> Any:
        reads: Any = theirs.fget if isinstance(theirs, property) else theirs

        @functools.wraps(reads)
        def refuse(self: Any, *args: Any, **options: Any) -> Any:
            raise MissingFormulaError(f"{type(self).__name__}.{name}: {ADVICE[name]}")

        return property(refuse) if isinstance(theirs, property) else refuse

    return change


def _expand(theirs: Any) -> Callable[..., Any]:
    """The default `expand`: a new distribution with expanded parameters."""

    def expand(self: Any, batch_shape: Any, _instance: Any = None) -> Any:
        larger = {}
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                larger[name] = value.expand((*batch_shape, *value.shape[value.ndim - constraint.event_dim :]))
        made = type(self)(**larger, validate_args=False)
        made._validate_args = self._validate_args
        return made

    return expand


# ---- sampling -----------------------------------------------------------------------------------


def _standard_gamma(concentration: Any, generator: Any = None) -> Any:
    with creation.drawing(generator):
        return ops.standard_gamma(concentration)


def _sample_dirichlet(concentration: Any, generator: Any = None) -> Any:
    drawn = _standard_gamma(concentration, generator)
    return drawn / drawn.sum(-1, True)


def _von_mises(loc: Any, concentration: Any, proposal_r: Any, x: Any) -> Any:
    """Torch's rejection sampling, which doesn't end if a parameter is NaN."""
    done = ops.isnan(loc + concentration)
    x = ops.where(done, math.nan, x)
    while not bool(done.all()):
        u1, u2, u3 = _rand((3, *x.shape), dtype=loc.dtype, device=site(loc)).unbind()
        z = (math.pi * u1).cos()
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
        x = ops.where(accept, (u3 - 0.5).sign() * f.acos(), x)
        done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


_rand, _randn = _at_site(random_tensors.rand, True), _at_site(random_tensors.randn, True)


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    return _randn(shape, dtype=dtype, device=device)


def _without_second_draws(theirs: Any) -> Callable[..., Any]:
    """rsample without torch's retries for singular matrices, which a graph can't read."""

    @functools.wraps(theirs)
    def rsample(self: Any, sample_shape: Any = (), max_try_correction: Any = None) -> Any:
        return self._bartlett_sampling(Size(sample_shape))

    return rsample


GIVEN.update(
    {
        "torch.overrides.is_tensor_like": lambda x: isinstance(x, Tensor),
        "torch._is_all_true": _is_all_true,
        "torch._standard_gamma": _standard_gamma,  # torch 2.14's gives it a generator
        "torch._sample_dirichlet": _sample_dirichlet,
        "torch._dirichlet_grad": ops.dirichlet_grad,
        "torch.multinomial": ops.multinomial,
        "torch.as_tensor": _as_tensor,
        **{f"torch.{f.__name__}": _at_site(f, True) for f in SHAPED},
        **{f"torch.{f.__name__}": _at_site(f, False) for f in (creation.arange, creation.eye, creation.tensor)},
    }
)
Derived(
    "weft.distributions",
    "torch.distributions",
    changes={
        "constraints": {
            "Constraint.__repr__": lambda theirs: lambda self: f"{type(self).__name__.removeprefix('_')}()"
        },
        "distribution": {
            "Distribution.__init__": _unchecked_in_graphs,
            "Distribution.expand": _expand,
            **{f"Distribution.{name}": _missing(name) for name in ADVICE},
        },
        "utils": {"_standard_normal": lambda theirs: _standard_normal, "broadcast_all": _of_torchs_too},
        "generalized_pareto": {
            f"GeneralizedPareto.{name}": _beside("concentration") for name in ("log_prob", "log_survival_function")
        },
        "dirichlet": {"Dirichlet.__init__": _of_torchs_too},
        "multivariate_normal": {"MultivariateNormal.__init__": _of_torchs_too},
        "lowrank_multivariate_normal": {"LowRankMultivariateNormal.__init__": _of_torchs_too},
        "multinomial": {"Multinomial.entropy": _beside("logits")},
        "von_mises": {"_rejection_sample": lambda theirs: _von_mises},
        "wishart": {"Wishart.rsample": _without_second_draws, "Wishart.__init__": _of_torchs_too},
        "relaxed_categorical": {"ExpRelaxedCategorical.__init__": _of_torchs_too},
    },
    attributes={"device": "_site"},
)
Tensor._site = property(site)  # type: ignore[attr-defined]
