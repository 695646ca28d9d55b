"""Layers against torch's: the same options, weights and inputs give the same outputs and gradients."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import WeftError
from weft.nn import functional as F
from weft.tensor.tensor import of_torch

IMAGE, VECTOR, SEQUENCE = (2, 4, 6, 6), (3, 4), (2, 4, 8)

LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], Any]] = [
    ("Linear", (4, 5), {}, VECTOR),
    ("Linear", (4, 5), {"bias": False}, (2, 3, 4)),
    ("Conv1d", (4, 6, 3), {"padding": 1}, SEQUENCE),
    ("Conv2d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, IMAGE),
    ("Conv2d", (4, 6, 3), {"padding": "same", "bias": False, "dilation": 2}, IMAGE),
    ("Conv2d", (4, 6, 3), {"padding": (1, 2), "padding_mode": "reflect"}, IMAGE),
    ("Conv2d", (4, 6, (4, 3)), {"padding": "same", "padding_mode": "circular"}, IMAGE),
    ("Conv1d", (4, 6, 4), {"padding": "same"}, SEQUENCE),
    ("Conv3d", (4, 2, 2), {"padding": 1, "padding_mode": "replicate"}, (1, 4, 3, 3, 3)),
    ("Conv3d", (4, 2, 2), {}, (1, 4, 3, 3, 3)),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1}, IMAGE),
    ("BatchNorm1d", (4,), {}, VECTOR),
    ("BatchNorm1d", (4,), {"momentum": None}, SEQUENCE),
    ("BatchNorm2d", (4,), {"eps": 1e-3, "momentum": 0.2}, IMAGE),
    ("BatchNorm2d", (4,), {"affine": False, "track_running_stats": False}, IMAGE),
    ("BatchNorm3d", (4,), {}, (2, 4, 3, 3, 3)),
    ("BatchNorm2d", (4,), {"bias": False}, IMAGE),
    ("InstanceNorm2d", (4,), {"affine": True, "bias": False}, IMAGE),
    ("GroupNorm", (2, 4), {"bias": False}, IMAGE),
    ("LayerNorm", (4,), {}, VECTOR),
    ("LayerNorm", ((4, 8),), {"elementwise_affine": False}, SEQUENCE),
    ("LayerNorm", (8,), {"bias": False}, SEQUENCE),
    ("RMSNorm", (8,), {}, SEQUENCE),
    ("RMSNorm", (8,), {"eps": 1e-3, "elementwise_affine": False}, SEQUENCE),
    ("GroupNorm", (2, 4), {}, IMAGE),
    ("MaxPool1d", (2,), {}, SEQUENCE),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1}, IMAGE),
    ("AvgPool1d", (2,), {}, SEQUENCE),
    ("AvgPool2d", (2,), {"stride": 1}, IMAGE),
    ("AvgPool2d", (3,), {"padding": 1, "count_include_pad": False, "ceil_mode": True}, IMAGE),
    ("AdaptiveAvgPool1d", (3,), {}, SEQUENCE),
    ("AdaptiveAvgPool2d", (1,), {}, IMAGE),
    ("AdaptiveAvgPool2d", ((2, 3),), {}, IMAGE),
    ("AdaptiveMaxPool2d", (2,), {}, IMAGE),
    ("Flatten", (), {}, IMAGE),
    ("Flatten", (0, 1), {}, IMAGE),
    ("Identity", (), {}, VECTOR),
    ("Dropout", (0.0,), {}, VECTOR),
    ("ReLU", (), {}, VECTOR),
    ("ReLU6", (), {}, VECTOR),
    ("LeakyReLU", (0.2,), {}, VECTOR),
    ("ELU", (1.5,), {}, VECTOR),
    ("CELU", (1.5,), {}, VECTOR),
    ("SELU", (), {}, VECTOR),
    ("GELU", (), {}, VECTOR),
    ("GELU", (), {"approximate": "tanh"}, VECTOR),
    ("GLU", (), {"dim": 1}, VECTOR),
    ("SiLU", (), {}, VECTOR),
    ("Mish", (), {}, VECTOR),
    ("Tanh", (), {}, VECTOR),
    ("Sigmoid", (), {}, VECTOR),
    ("Softmax", (1,), {}, VECTOR),
    ("LogSoftmax", (0,), {}, VECTOR),
    ("LogSigmoid", (), {}, VECTOR),
    ("Softplus", (2.0,), {}, VECTOR),
    ("Softshrink", (0.3,), {}, VECTOR),
    ("Softsign", (), {}, VECTOR),
    ("Hardshrink", (0.3,), {}, VECTOR),
    ("Hardsigmoid", (), {}, VECTOR),
    ("Hardswish", (), {}, VECTOR),
    ("Hardtanh", (-0.5, 0.5), {}, VECTOR),
    ("PReLU", (), {}, VECTOR),
    ("InstanceNorm1d", (4,), {}, SEQUENCE),
    ("InstanceNorm2d", (4,), {"affine": True, "track_running_stats": True, "momentum": 0.3}, IMAGE),
    ("InstanceNorm2d", (4,), {}, IMAGE[1:]),
    ("InstanceNorm3d", (4,), {"affine": True}, (2, 4, 3, 3, 3)),
    ("AdaptiveMaxPool3d", (2,), {}, (2, 4, 3, 3, 3)),
    ("ConstantPad1d", (2, 1.5), {}, SEQUENCE),
    ("ConstantPad2d", ((1, 0, 2, -1), 1.5), {}, IMAGE),
    ("ConstantPad3d", (1, -2.0), {}, (2, 4, 3, 3, 3)),
    ("ZeroPad2d", (2,), {}, IMAGE),
    ("ReflectionPad1d", ((1, 2),), {}, SEQUENCE),
    ("ReflectionPad2d", (2,), {}, IMAGE),
    ("ReplicationPad1d", (2,), {}, SEQUENCE[1:]),
    ("ReplicationPad2d", ((1, 2, 0, 3),), {}, IMAGE),
    ("ReplicationPad3d", (1,), {}, (2, 4, 3, 3, 3)),
    ("Upsample", (), {"scale_factor": 2}, IMAGE),
    ("Upsample", (), {"size": 5, "mode": "linear"}, SEQUENCE),
    ("Upsample", (), {"scale_factor": (1.5, 0.7), "mode": "bilinear"}, IMAGE),
    ("Upsample", (), {"size": (4, 9), "mode": "bicubic", "align_corners": True}, IMAGE),
    ("Upsample", (), {"scale_factor": 1.7, "mode": "nearest", "recompute_scale_factor": True}, SEQUENCE),
    ("Upsample", (), {"size": (2, 3), "mode": "area"}, IMAGE),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, IMAGE),
    ("UpsamplingBilinear2d", (), {"size": (7, 8)}, IMAGE),
    ("PixelShuffle", (2,), {}, IMAGE),
    ("PixelUnshuffle", (2,), {}, IMAGE[1:]),
    ("Unfold", ((2, 3),), {"padding": 1, "stride": 2}, IMAGE),
    ("Unfold", (2,), {"dilation": 2}, IMAGE[1:]),
    ("Fold", ((4, 5), (2, 2)), {}, (2, 8, 12)),
    ("Fold", ((4, 5), (2, 2)), {}, (8, 12)),
    ("Threshold", (0.1, 2.0), {}, VECTOR),
    ("Bilinear", (4, 5, 3), {}, [VECTOR, (3, 5)]),
    ("Unflatten", (1, (2, 2)), {}, VECTOR),
    ("Softmin", (1,), {}, VECTOR),
    ("Softmax2d", (), {}, IMAGE),
    ("Tanhshrink", (), {}, VECTOR),
    ("ChannelShuffle", (2,), {}, IMAGE),
    ("LocalResponseNorm", (3,), {"alpha": 0.1}, IMAGE),
    ("LocalResponseNorm", (2,), {}, SEQUENCE),
    ("LPPool1d", (2, 3), {}, SEQUENCE),
    ("LPPool2d", (2, 2), {"stride": 1}, IMAGE),
    ("CircularPad1d", (2,), {}, SEQUENCE),
    ("CircularPad2d", ((1, 2, 0, 3),), {}, IMAGE),
    ("RReLU", (), {}, VECTOR),
    ("AlphaDropout", (0.3,), {}, VECTOR),
]
DRAW = ("RReLU", "AlphaDropout")  # while they are trained


def named(row: tuple[Any, ...]) -> str:
    return f"{row[0]}-{row[1]}-{row[2]}"


def both(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.nn.Module, flow.nn.Module]:
    """torch's layer and ours, with the same weights."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **kwargs)
    ours = getattr(flow.nn, name)(*args, **kwargs)
    for p in theirs.parameters():
        p.data.normal_()
    ours.load_state_dict({k: of_torch(v.clone()) for k, v in theirs.state_dict().items()})
    return theirs, ours


def close(ours: flow.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours.detach().to_torch(), theirs.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("row", LAYERS, ids=named)
def test_a_layer_computes_what_torchs_does(row: tuple[Any, ...]) -> None:
    name, args, kwargs, shape = row
    _need(name, kwargs)
    theirs, ours = both(name, args, kwargs)
    for layer in (theirs, ours) if name in DRAW else ():
        layer.eval()
    xs = [torch.randn(s, requires_grad=True) for s in (shape if isinstance(shape, list) else [shape])]
    ys = [of_torch(x.detach().clone()).requires_grad_() for x in xs]
    expected, got = theirs(*xs), ours(*ys)
    close(got, expected)
    gradient = torch.randn_like(expected)
    expected.backward(gradient)
    got.backward(of_torch(gradient.clone()))
    for x, y in zip(xs, ys, strict=True):
        assert x.grad is not None and y.grad is not None
        close(y.grad, x.grad)
    for (path, p), q in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        assert p.grad is not None and q.grad is not None, path
        close(q.grad, p.grad)
    for (path, b), c in zip(theirs.state_dict().items(), ours.state_dict().values(), strict=True):
        torch.testing.assert_close(c.to_torch(), b, msg=path)
    theirs.eval(), ours.eval()
    close(ours(*ys), theirs(*xs))


@pytest.mark.parametrize("row", LAYERS, ids=named)
def test_a_layer_prints_as_torchs_does(row: tuple[Any, ...]) -> None:
    name, args, kwargs, _ = row
    _need(name, kwargs)
    theirs, ours = getattr(torch.nn, name)(*args, **kwargs), getattr(flow.nn, name)(*args, **kwargs)
    shown = repr(ours)
    if "Norm" in name and "bias=" not in repr(theirs):  # torch before 2.13 doesn't say it
        shown = re.sub(", bias=(True|False)", "", shown)
    assert shown == repr(theirs)


def _need(name: str, kwargs: dict[str, Any]) -> None:
    """Skip what this torch's layers can't be told."""
    if "Norm" in name and "bias" in kwargs and "bias" not in inspect.signature(torch.nn.BatchNorm2d).parameters:
        pytest.skip("norms of this torch always have a bias")


def test_embedding() -> None:
    theirs = torch.nn.Embedding(5, 3, padding_idx=1)
    ours = flow.nn.Embedding(5, 3, padding_idx=1)
    assert ours.weight.tolist()[1] == [0.0, 0.0, 0.0]
    ours.load_state_dict({"weight": of_torch(theirs.weight.detach().clone())})
    ids = torch.tensor([[1, 0], [4, 0]])
    theirs(ids).sum().backward()
    got = ours(of_torch(ids))
    got.sum().backward()
    close(got, theirs(ids))
    close(ours.weight.grad, theirs.weight.grad)  # type: ignore[arg-type]
    assert repr(ours) == repr(theirs)


def test_distances() -> None:
    a, b, c = (torch.randn(3, 4) for _ in range(3))
    ours = [of_torch(t) for t in (a, b, c)]
    close(F.cosine_similarity(*ours[:2]), torch.nn.functional.cosine_similarity(a, b))
    close(F.pairwise_distance(*ours[:2]), torch.nn.functional.pairwise_distance(a, b))
    close(F.normalize(ours[0]), torch.nn.functional.normalize(a))
    close(F.triplet_margin_loss(*ours), torch.nn.functional.triplet_margin_loss(a, b, c))
    close(F.margin_ranking_loss(*ours[:2], ours[2].sign()), torch.nn.functional.margin_ranking_loss(a, b, c.sign()))
    assert F.one_hot(flow.tensor([1, 0])).tolist() == [[0, 1], [1, 0]]


def test_activations_in_place() -> None:
    for name in ("ReLU", "ReLU6", "CELU", "Hardtanh", "LeakyReLU", "SiLU", "Hardswish", "Mish", "Hardsigmoid"):
        x, weight = torch.randn(6), torch.arange(6.0)
        leaf, mine = x.clone().requires_grad_(), of_torch(x.clone()).requires_grad_()
        theirs, ours = leaf * 2, mine * 2
        y = getattr(flow.nn, name)(inplace=True)(ours)
        expected = getattr(torch.nn, name)()(theirs)
        assert y is ours
        close(ours, expected)
        (expected * weight).sum().backward()
        (y * of_torch(weight)).sum().backward()
        torch.testing.assert_close(mine.grad.to_torch(), leaf.grad)  # type: ignore[union-attr]


def test_dropout_drops_while_training_only() -> None:
    flow.manual_seed(3)
    drop = flow.nn.Dropout(0.25)
    x = flow.ones(4000)
    y = drop(x)
    kept = (y != 0).sum().item()
    assert 2800 < kept < 3200 and y.max().item() == pytest.approx(4 / 3)
    assert drop.eval()(x) is x


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: flow.nn.Dropout(1.5), "between 0 and 1"),
        (lambda: flow.nn.Conv2d(3, 4, 3, groups=2), "divisible by groups"),
        (lambda: flow.nn.Conv2d(4, 4, (3, 3, 3)), "kernel_size is one number, or 2"),
        (lambda: flow.nn.GroupNorm(3, 4), "divisible by num_groups"),
        (lambda: flow.nn.Linear(-1, 2), "nonnegative integers"),
        (lambda: flow.nn.Embedding(3, 2, padding_idx=3), "within num_embeddings"),
        (lambda: flow.nn.BatchNorm2d(3)(flow.ones(2, 3)), "expected 4D input"),
        (lambda: flow.nn.ReLU6(1, 2), r"takes 1 positional argument but 2 were given"),
        (lambda: flow.nn.MSELoss("most")(flow.ones(2), flow.ones(2)), "not a valid value for reduction"),
        (lambda: flow.nn.NLLLoss()(flow.ones(2, 3), flow.ones(2)), "Long|number of a class"),
    ],
)
def test_a_layer_refuses_what_it_cannot_be(make: Any, says: str) -> None:
    with pytest.raises(flow.errors.WeftError, match=says):
        make()


def test_statistics_of_other_channels_than_x_has() -> None:
    """The kernel doesn't look: it would read and write beyond the end."""
    x = flow.ones(2, 5)
    for call, says in (
        (lambda: flow.nn.BatchNorm1d(3)(x), "running_mean should contain 5 elements not 3"),
        (lambda: F.batch_norm(x, flow.ones(5), flow.ones(5), flow.ones(1)), "weight should contain 5"),
        (lambda: F.batch_norm(x, None, None), "expected running_mean and running_var when not training"),
    ):
        with pytest.raises(WeftError, match=says):
            call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_root_mean_square_without_an_eps_adds_next_to_nothing(dtype: str) -> None:
    """In the dtype that the kernel sums in, however short the input's."""
    x = torch.tensor([[1e-3, -2e-3, 1e-3, 5e-4]], dtype=getattr(torch, dtype), requires_grad=True)
    mine = of_torch(x.detach().clone()).requires_grad_()
    layer = flow.nn.RMSNorm(4, elementwise_affine=False)
    expected = torch.nn.RMSNorm(4, elementwise_affine=False)(x)
    expected.sum().backward()
    for y in (layer(mine), F.rms_norm(mine, (4,))):
        torch.testing.assert_close(y.detach().to_torch(), expected.detach())
    layer(mine).sum().backward()
    assert mine.grad is not None
    torch.testing.assert_close(mine.grad.to_torch(), x.grad, rtol=2e-2, atol=2.0)


@pytest.mark.parametrize("lib", [flow, torch])
def test_what_has_no_statistics_or_no_dimension_is_refused(lib: Any) -> None:
    norm = lib.nn.BatchNorm1d(3)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(lib.ones(1, 3))
    assert tuple(norm.eval()(lib.ones(1, 3)).shape) == tuple(norm.train()(lib.ones(1, 3, 2)).shape)[:2]
    with pytest.raises(IndexError):
        lib.nn.Flatten()(lib.ones(()))
    for ask in (len, iter, list):
        with pytest.raises(TypeError):
            ask(lib.ones(()))
