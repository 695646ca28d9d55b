"""Random draws from distributions, whose parameters are attributes or operands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from weft.core.device import Device
from weft.core.dtype import DType, float64, int64
from weft.core.placement import Placement
from weft.core.random import generator
from weft.core.sbp import NdSbp
from weft.ops.create.constructors import CPU, sized
from weft.ops.declaration import Scalar, Size, op
from weft.ops.form import Form, alike, of_floats
from weft.ops.neural.grid_sample import once
from weft.ops.pointwise.arithmetic import mul, underived
from weft.ops.shape.views import axes

DISTRIBUTIONS: Final[dict[str, Callable[..., Any]]] = {  # each fills its first argument in place
    "bernoulli": Tensor.bernoulli_,
    "cauchy": Tensor.cauchy_,
    "exponential": Tensor.exponential_,
    "geometric": Tensor.geometric_,
    "log_normal": Tensor.log_normal_,
    "normal": Tensor.normal_,
    "random": Tensor.random_,
    "trunc_normal": torch.nn.init.trunc_normal_,
    "uniform": Tensor.uniform_,
}


@op(shape_of="size", random=True)
def draw(
    size: Size, distribution: str, parameters: Sequence[Scalar], dtype: DType, device: Device | None = None,
    placement: Placement | None = None, sbp: NdSbp | None = None, strides: Size | None = None,
) -> Tensor:  # fmt: skip
    """Draws from one of `DISTRIBUTIONS` with these parameters. `strides`: those of the local tensor to be filled."""
    on = CPU if device is None else device.torch
    y = torch.empty(tuple(size), dtype=dtype.torch, device=on)
    if strides is not None:
        y = torch.empty_strided(tuple(size), tuple(strides), dtype=dtype.torch, device=on)
    DISTRIBUTIONS[distribution](y, *parameters, generator=generator(on))
    return y


draw.layout(lambda size, *args: f" -> {' '.join(axes(len(size)))}")
draw.form(functools.partial(sized, 0, 3))


@draw.samples
def _(rand):
    yield (4, 6), "exponential", (2.0,), float64
    yield (4, 6), "trunc_normal", (0.0, 1.0, -1.0, 2.0), float64
    yield (4, 6), "geometric", (0.5,), float64
    yield (4, 6), "random", (2, 9), float64
    yield (4, 6), "normal", (0.0, 1.0), float64, None, None, None, (1, 4)


@op(random=True, rejection=True, returns="y*")
def rrelu_slope(x: Tensor, lower: float, upper: float) -> Tensor:
    """A random slope from [lower, upper) where x is at most zero, and 1 elsewhere."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)  # the kernel assumes it
    if x.device.type != "meta":
        torch.ops.aten.rrelu_with_noise(x, y, lower, upper, True, generator(x.device))
    return y


rrelu_slope.form(of_floats)
rrelu_slope.samples(lambda rand: [(rand(4, 6), 0.1, 0.3)])


@op(random=True, rejection=True, returns="y*")
def poisson(rate: Tensor) -> Tensor:
    """Draws from the Poisson distribution.

    >>> flow.poisson(flow.zeros(2)).tolist()
    [0.0, 0.0]
    """
    return torch.poisson(rate, generator=generator(rate.device))


poisson.form(of_floats)
poisson.samples(lambda rand: [(rand(4, 6).abs(),)])


@op(random=True, rejection=True)
def binomial(count: Tensor, prob: Tensor) -> Tensor:
    """Draws from the binomial distribution.

    >>> flow.binomial(flow.tensor([3.0, 3.0]), flow.tensor([0.0, 1.0])).tolist()
    [0.0, 3.0]
    """
    if count.device.type == "meta":
        return torch.empty_like(count)
    return torch.binomial(count, prob, generator=generator(count.device))


binomial.grad(lambda dy: underived("binomial"))

binomial.form(lambda count, prob: count if alike(count, prob) and count.shape == prob.shape else None)
binomial.samples(lambda rand: [(torch.full((4, 6), 5.0, dtype=torch.float64), torch.rand(4, 6, dtype=torch.float64))])


@op(random=True, rejection=True)
def standard_gamma(concentration: Tensor) -> Tensor:
    """Draws from the gamma distribution of rate 1, differentiable by its concentration (reparameterized)."""
    return torch._standard_gamma(concentration, generator=generator(concentration.device))


@standard_gamma.grad
def _(dy, concentration, y):
    once("standard_gamma")
    return mul(dy, standard_gamma_grad(concentration, y))


standard_gamma.form(lambda concentration: concentration)
standard_gamma.samples(lambda rand: [(rand(4, 6).abs() + 0.5,)])


@op("..., ... -> ...", returns="dx*")
def standard_gamma_grad(concentration: Tensor, y: Tensor) -> Tensor:
    """The derivative of a draw of standard_gamma by its concentration."""
    return torch._standard_gamma_grad(concentration, y)


standard_gamma_grad.form(lambda x, y: y if alike(x, y) and x.shape == y.shape else None)
standard_gamma_grad.samples(lambda rand: [(rand(4, 6).abs() + 0.5, rand(4, 6).abs() + 0.1)])


@op("..., ..., ... -> ...", returns="dx*")
def dirichlet_grad(y: Tensor, concentration: Tensor, total: Tensor) -> Tensor:
    """The derivative of a Dirichlet draw's element by its concentration, given the sum of all concentrations."""
    return torch._dirichlet_grad(y, concentration, total)


dirichlet_grad.form(lambda y, x, total: y if alike(y, x, total) and y.shape == x.shape == total.shape else None)


@dirichlet_grad.samples
def _(rand):
    x = rand(4, 6).abs() + 0.5
    yield (rand(4, 6).abs() + 0.1) / 4, x, x + 1


@op(random=True, returns="y*")
def bernoulli(x: Tensor) -> Tensor:
    """1 with probability x, else 0, element-wise.

    >>> flow.bernoulli(flow.tensor([0., 1.])).tolist()
    [0.0, 1.0]
    """
    return torch.bernoulli(x, generator=generator(x.device))


bernoulli.form(of_floats)
bernoulli.samples(lambda rand: [rand(4, 6).sigmoid()])


@op(random=True, returns="y*")
def multinomial(x: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    """Draws of indices, with probabilities proportional to x along its last dimension.

    >>> flow.multinomial(flow.tensor([0., 3., 0.]), 1).tolist()
    [1]
    """
    if x.device.type == "meta":
        return x.new_empty((*x.shape[:-1], num_samples), dtype=torch.int64)
    return torch.multinomial(x, num_samples, replacement, generator=generator(x.device))


@multinomial.form
def _(x, num_samples, replacement):
    enough = x.shape and num_samples > 0 and (replacement or num_samples <= x.shape[-1])
    return Form((*x.shape[:-1], num_samples), int64) if alike(x) and enough and 0 not in x.shape else None


multinomial.samples(lambda rand: [(rand(4, 6).sigmoid(), 2), (rand(6).sigmoid(), 20, True)])
