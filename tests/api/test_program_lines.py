"""Lines as programs have them, with torch's result beside Weft's."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.dlpack

import weft as flow


def overwrites_copies(lib: Any) -> Any:
    x = lib.arange(3.0)
    for copied in (x.repeat(2, 1), x[:1].repeat(3), lib.tile(x, (2, 1)), x[:1].repeat_interleave(3)):
        yield copied.add_(lib.arange(float(copied.shape[-1]))), copied.div_(2)
    yield x


def asserts(lib: Any) -> Any:
    lib._assert(True, "fine")
    with pytest.raises(AssertionError, match="not fine"):
        lib._assert(False, "not fine")
    yield lib.ones(1)


def compiles_nothing(lib: Any) -> Any:
    @lib.compiler.disable
    def once(x: Any) -> Any:
        return x + 1

    @lib.compiler.disable(recursive=False)
    def twice(x: Any) -> Any:
        return x + 2

    lib.compiler.reset()
    yield once(lib.ones(1)), twice(lib.ones(1)), lib.compiler.is_compiling()
    yield importlib.import_module(f"{lib.__name__}.backends.cudnn") is torch.backends.cudnn


def loads(lib: Any) -> Any:
    for options in ({"weights_only": True}, {"map_location": lambda storage, where: storage, "weights_only": False}):
        file = io.BytesIO()
        lib.save({"x": lib.arange(3.0)}, file)
        file.seek(0)
        yield lib.load(file, **options)["x"]


def heads_share(lib: Any) -> Any:
    q, k, v = (lib.randn(1, heads, 6, 8) for heads in (4, 2, 2))
    attend = lib.nn.functional.scaled_dot_product_attention
    yield attend(q, k, v, is_causal=True, enable_gqa=True)
    with pytest.raises((RuntimeError, ValueError)):
        attend(q, lib.randn(1, 3, 6, 8), lib.randn(1, 3, 6, 8), enable_gqa=True)


def draws_aside(lib: Any) -> Any:
    with lib.random.fork_rng():
        lib.manual_seed(7)
        yield lib.rand(2)
    yield lib.rand(2)


def numbers_of_numpy(lib: Any) -> Any:
    f, i, d = np.float32(2), np.int64(3), np.float64(0.5)
    x = lib.arange(6.0).reshape(i - 1, i)
    yield x + f, f * x, i - x, x / i, x**i, d * x, x < f, x == i, x // i, x.clamp(max=f), x.lerp(x + 1, f)
    yield (
        x.clone().add_(f),
        x.clone().fill_(f),
        lib.where(x > 2, f, x),
        lib.add(x, x, alpha=f),
        x.view(np.prod(x.shape)),
    )
    for mixed in (i * x, x * i, lib.arange(3) * i, lib.arange(i), lib.arange(3) + f, x.double() + f):
        yield isinstance(mixed, lib.Tensor), str(mixed.dtype).rpartition(".")[2]
    for made in (np.sqrt(x), np.abs(x), np.isnan(x), np.exp(x[0, 0])):
        yield isinstance(made, lib.Tensor), made
    layers = lib.nn.Linear(i, np.int32(2)), lib.nn.Conv2d(i, 2, i), lib.nn.Embedding(i, i), lib.nn.LayerNorm(i)
    for layer in layers:
        yield tuple(layer.weight.shape)
    yield layers[3](x), lib.nn.functional.dropout(x, d, training=False), lib.randint(0, i, (i,)) < i


def goes_by_default(lib: Any) -> Any:
    try:
        lib.set_default_device("meta")
        made = lib.zeros(2), lib.tensor([1.0]), lib.rand(3), lib.nn.Linear(2, 2).weight, lib.arange(3)
        yield [t.device.type for t in made], lib.ones(2, device="cpu").device.type, lib.get_default_device().type
    finally:
        lib.set_default_device(None)
    yield lib.zeros(2).device.type
    with lib.device("meta"):
        with lib.device("cpu"):
            yield lib.zeros(2).device.type
        yield lib.zeros(2).device.type, lib.nn.Linear(1, 1).weight.device.type, lib.ones(1, device="cpu").device.type
    yield lib.zeros(2).device.type, lib.get_default_device().type


def is_asked_for_less(lib: Any) -> Any:
    i, x = lib.tensor([1, 2, 3]), lib.tensor([1.0, -2.0], requires_grad=True)
    left, right = i.clone(), i.clone()
    left <<= 1
    right >>= 1
    yield 1 << i, 8 >> i, left, right, +i, x.numpy(force=True), i.clone().map_(i, lambda a, b: a * 10 + b)
    yield i.is_set_to(i), i.is_set_to(i.clone()), i.dim_order(), lib.get_deterministic_debug_mode()
    yield isinstance(lib.strided, lib.layout), isinstance(lib.channels_last, lib.memory_format)
    yield lib.cpu.is_available(), lib.xpu.is_available(), lib.xpu.device_count(), lib.utils.dlpack.from_dlpack(i)
    for name in ("float32", "int64", "uint8", "bool", "complex64"):
        yield getattr(lib, name).is_signed, getattr(lib, name).itemsize
    source = lib.Generator().manual_seed(5)
    lib.rand(3, generator=source)
    other = source.clone_state()
    yield lib.equal(lib.rand(3, generator=source), lib.rand(3, generator=other))
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1)
    schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, cooldown=1)
    for _ in range(3):
        schedule.step(1.0)
        yield schedule.in_cooldown


def makes_weights_of_weights(lib: Any) -> Any:
    class Centred(lib.nn.Conv2d):
        def forward(self, x: Any) -> Any:
            return self._conv_forward(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True), self.bias)

    yield Centred(2, 3, 3, padding=1)(lib.ones(1, 2, 4, 4))
    with lib.nn.attention.sdpa_kernel(lib.nn.attention.SDPBackend.MATH):
        yield lib.nn.functional.scaled_dot_product_attention(*[lib.ones(1, 1, 2, 4)] * 3)


def series(lib: Any) -> Any:
    x, at = lib.randn(3, 5), lib.arange(5.0) ** 2
    y = (x * 80).requires_grad_()
    for dim in (0, 1):
        yield lib.logcumsumexp(y, dim), lib.cumulative_trapezoid(x, dim=dim), lib.cumulative_trapezoid(x, at)
    lib.logcumsumexp(y, 1).square().sum().backward()
    yield y.grad, lib.vander(at), lib.vander(at, 3, increasing=True), lib.unravel_index(lib.tensor([[5, 7]]), (3, 4))
    for order in (1, 2):
        options: Any
        for options in ({}, {"spacing": 2.0}, {"dim": 1}, {"dim": (0, 1), "spacing": (0.5, 3.0)}):
            yield lib.gradient(x, edge_order=order, **options)
        yield lib.gradient(x, spacing=(at,), dim=1, edge_order=order), lib.gradient(x[:, :3], edge_order=order)


def flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


@pytest.mark.parametrize(
    "program",
    [
        makes_weights_of_weights,
        overwrites_copies,
        asserts,
        loads,
        heads_share,
        draws_aside,
        numbers_of_numpy,
        goes_by_default,
        is_asked_for_less,
    ],
)
def test_the_same_as_torchs(program: Any) -> None:
    results = []
    for lib in (flow, torch):
        lib.manual_seed(1)
        results.append([x.tolist() if isinstance(x, lib.Tensor) else x for x in flat(list(program(lib)))])
    for ours, theirs in zip(*map(flat, results), strict=True):
        assert ours == (theirs if isinstance(theirs, str) else pytest.approx(theirs, rel=1e-5, abs=1e-6))
