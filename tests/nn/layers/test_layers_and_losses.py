"""Layers and losses beyond the daily ones, against torch's; regions against torchvision's definition, written out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import weft as flow
from weft.interop import load_torch
from weft.nn import functional as F
from weft.tensor.tensor import of_torch


def test_what_draws_while_training_keeps_its_law() -> None:
    flow.manual_seed(0)
    x = flow.randn(20000)
    y = flow.nn.AlphaDropout(0.3)(x.view(100, 200))
    assert abs(y.mean().item()) < 0.05 and abs(y.std().item() - 1) < 0.05
    channels = flow.nn.FeatureAlphaDropout(0.5)(flow.randn(8, 16, 5))
    assert {len(set(c)) for c in channels.view(128, 5).tolist()} == {1, 5}
    slopes = flow.nn.RReLU(0.1, 0.3)(-flow.ones(1000))
    assert -0.3 <= slopes.min().item() < -0.25 and -0.15 < slopes.max().item() <= -0.1
    flips = flow.nn.CoinFlip(1000, probability=0.25)()
    assert flips.dtype is flow.int8 and 180 < flips.sum().item() < 320


PAIR, LABELS, WEIGHTS = [(5, 4), (5, 4)], torch.tensor([1, 0, 3, 2, 2]), torch.tensor([0.5, 1, 2, 1])
LOSSES: list[tuple[str, dict[str, Any], list[tuple[int, ...]], Any]] = [
    *((name, {}, PAIR[:1], torch.randn(5, 4)) for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")),
    ("SmoothL1Loss", {"beta": 0.3}, PAIR[:1], torch.randn(5, 4)),
    ("HuberLoss", {"delta": 0.3}, PAIR[:1], torch.randn(5, 4)),
    ("BCELoss", {}, PAIR[:1], torch.rand(5, 4)),
    ("BCEWithLogitsLoss", {}, PAIR[:1], torch.rand(5, 4)),
    ("BCEWithLogitsLoss", {"pos_weight": WEIGHTS}, PAIR[:1], torch.rand(5, 4)),
    ("KLDivLoss", {"reduction": "batchmean"}, PAIR[:1], torch.randn(5, 4).softmax(1)),
    ("KLDivLoss", {"log_target": True}, PAIR[:1], torch.randn(5, 4)),
    ("NLLLoss", {}, PAIR[:1], LABELS),
    ("NLLLoss", {"weight": WEIGHTS, "ignore_index": 1}, PAIR[:1], LABELS),
    ("CrossEntropyLoss", {}, PAIR[:1], LABELS),
    ("CrossEntropyLoss", {"ignore_index": 1}, PAIR[:1], LABELS),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, PAIR[:1], LABELS),
    ("CosineEmbeddingLoss", {"margin": 0.2}, PAIR, torch.tensor([1, -1, 1, -1, 1])),
    ("HingeEmbeddingLoss", {"margin": 0.5}, [(5,)], torch.tensor([1, -1, 1, -1, 1])),
    ("PoissonNLLLoss", {"full": True}, [(5,)], torch.tensor([0.0, 1.0, 2.0, 3.0, 1.5])),
    ("GaussianNLLLoss", {"full": True}, [(5,)], (torch.randn(5), torch.rand(5) + 0.1)),
    ("SoftMarginLoss", {}, [(5,)], torch.tensor([1.0, -1, 1, -1, 1])),
    ("MultiMarginLoss", {"margin": 0.7}, PAIR[:1], LABELS),
    ("MultiMarginLoss", {"p": 2, "weight": WEIGHTS}, PAIR[:1], LABELS),
    ("MultiLabelMarginLoss", {}, [(2, 4)], torch.tensor([[3, 0, -1, 1], [2, -1, 0, 0]])),
    ("MultiLabelSoftMarginLoss", {}, [(2, 4)], torch.tensor([[1.0, 0, 0, 1], [0, 1, 1, 0]])),
    ("TripletMarginWithDistanceLoss", {"swap": True}, [(5, 4)] * 3, None),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("name", "options", "shapes", "target"), LOSSES, ids=[r[0] for r in LOSSES])
def test_a_loss_is_torchs(
    name: str, options: dict[str, Any], shapes: list[tuple[int, ...]], target: Any, reduction: str
) -> None:
    torch.manual_seed(1)
    draw = torch.rand if name == "BCELoss" else torch.randn
    given = [draw(s, requires_grad=True) for s in shapes]
    mine = [of_torch(x.detach().clone()).requires_grad_() for x in given]
    options = {"reduction": reduction, **options}
    rest = () if target is None else target if isinstance(target, tuple) else (target,)
    theirs = getattr(torch.nn, name)(**options)
    own = {k: of_torch(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    expected = theirs(*given, *rest)
    got = getattr(flow.nn, name)(**own)(*mine, *map(of_torch, rest))
    torch.testing.assert_close(got.detach().to_torch(), expected.detach())
    expected.sum().backward()
    got.sum().backward()
    for x, y in zip(given, mine, strict=True):
        torch.testing.assert_close(y.grad.to_torch(), x.grad)  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 2])
def test_bags_of_rows(mode: str, padding_idx: int | None) -> None:
    theirs = torch.nn.EmbeddingBag(6, 3, mode=mode, padding_idx=padding_idx)
    ours = load_torch(flow.nn.EmbeddingBag(6, 3, mode=mode, padding_idx=padding_idx), theirs)
    ids, starts = torch.tensor([0, 2, 2, 5, 1, 2]), torch.tensor([0, 2, 5])
    for args in ((ids, starts), (ids.view(2, 3),)):
        torch.testing.assert_close(ours(*map(of_torch, args)).detach().to_torch(), theirs(*args).detach())
    theirs(ids, starts).pow(2).sum().backward()
    ours(of_torch(ids), of_torch(starts)).pow(2).sum().backward()
    torch.testing.assert_close(ours.weight.grad.to_torch(), theirs.weight.grad)  # type: ignore[union-attr]


def test_layers_that_learn_their_size() -> None:
    model = flow.nn.Sequential(
        flow.nn.LazyConv2d(3, 3, padding=1), flow.nn.LazyBatchNorm2d(), flow.nn.Flatten(), flow.nn.LazyLinear(2)
    )
    assert model(flow.randn(2, 5, 4, 4)).shape == (2, 2)
    assert [type(m).__name__ for m in model] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]
    assert model[0].in_channels == 5 and model[3].in_features == 48 and len(list(model.parameters())) == 6


def test_combined_margins() -> None:
    torch.manual_seed(0)
    x, label = torch.rand(3, 4) * 1.6 - 0.8, torch.tensor([1, 3, 0])
    got = flow.nn.CombinedMarginLoss(0.9, 0.2, 0.1)(of_torch(x), of_torch(label)).numpy()
    expected = x.numpy().copy()
    for row, k in enumerate(label.tolist()):
        expected[row, k] = math.cos(0.9 * math.acos(expected[row, k]) + 0.2) - 0.1
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_greedy_decoding() -> None:
    """The figures of OneFlow's documentation."""
    scores = flow.tensor([
        [[-1.54, -1.20, -1.95, -1.65, -1.81], [-1.84, -1.74, -1.58, -1.55, -1.12]],
        [[-1.68, -1.48, -1.89, -1.30, -2.07], [-1.13, -1.45, -1.24, -1.61, -1.66]],
        [[-1.56, -1.40, -2.83, -1.67, -1.48], [-1.20, -2.01, -2.05, -1.95, -1.24]],
        [[-2.09, -1.76, -1.36, -1.67, -1.45], [-1.85, -1.48, -1.34, -2.16, -1.55]],
    ])  # fmt: skip
    decoded, path = F.ctc_greedy_decoder(scores, flow.tensor([4, 4]))
    assert decoded.tolist() == [[1, 3, 1, 2], [0, 2, 0, 0]]
    np.testing.assert_allclose(path.numpy(), [[5.26], [4.79]], rtol=1e-6)
    decoded, path = F.ctc_greedy_decoder(scores, flow.tensor([2, 3]), merge_repeated=False)
    assert decoded.tolist() == [[1, 3, 0, 0], [0, 0, 0, 0]]


# ---- regions -----------------------------------------------------------------------------------------------


def blended(image: np.ndarray, y: float, x: float) -> float:
    """What an image holds between its pixels, zero around it."""
    total, y0, x0 = 0.0, math.floor(y), math.floor(x)
    for i in (y0, y0 + 1):
        for j in (x0, x0 + 1):
            if 0 <= i < image.shape[0] and 0 <= j < image.shape[1]:
                total += image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolution(masked: bool) -> None:
    rng = np.random.default_rng(0)
    x, weight, bias = rng.normal(size=(2, 4, 5, 6)), rng.normal(size=(3, 2, 3, 2)), rng.normal(size=3)[[0, 1, 2]]
    weight, bias = rng.normal(size=(4, 2, 3, 2)), rng.normal(size=4)
    stride, padding, dilation, groups = (2, 1), (1, 0), (1, 2), 2
    oh, ow = (5 + 2 - 2 - 1) // 2 + 1, (6 - 2 - 1) // 1 + 1
    offset, mask = rng.normal(size=(2, 2 * groups * 6, oh, ow)), rng.uniform(size=(2, groups * 6, oh, ow))
    expected = np.zeros((2, 4, oh, ow)) + bias[:, None, None]
    for n, o, i, j in np.ndindex(2, 4, oh, ow):
        for c, p, q in np.ndindex(2, 3, 2):
            channel = (o // 2) * 2 + c  # the convolution has two groups
            g, tap = channel // 2, p * 2 + q  # as the offsets have
            dy, dx = offset[n, g * 12 + 2 * tap, i, j], offset[n, g * 12 + 2 * tap + 1, i, j]
            value = blended(
                x[n, channel],
                i * stride[0] - padding[0] + p * dilation[0] + dy,
                j * stride[1] - padding[1] + q * dilation[1] + dx,
            )
            expected[n, o, i, j] += weight[o, c, p, q] * value * (mask[n, g * 6 + tap, i, j] if masked else 1.0)
    given = [flow.tensor(v, requires_grad=True) for v in (x, offset, weight, bias)]
    told = flow.tensor(mask, requires_grad=True) if masked else None
    got = flow.deform_conv2d(*given, stride, padding, dilation, told)
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-10, atol=1e-12)
    got.square().sum().backward()
    for leaf, data in zip(given, (x, offset, weight, bias), strict=True):  # one slope of each, by differences
        at = tuple(s // 2 for s in data.shape)
        ends = []
        for h in (1e-6, -1e-6):
            moved = data.copy()
            moved[at] += h
            again = [flow.tensor(moved if v is leaf else v.detach().numpy()) for v in given]
            ends.append(flow.deform_conv2d(*again, stride, padding, dilation, told).square().sum().item())
        np.testing.assert_allclose(leaf.grad.numpy()[at], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-6)  # type: ignore[union-attr]


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_boxes_pooled_to_one_size(aligned: bool, ratio: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 3, 8, 9))
    rois = np.array([[0, 1.0, 2.0, 12.0, 9.0], [1, -3.0, 0.5, 5.0, 30.0], [1, 4.0, 4.0, 4.2, 4.1]])
    scale, cells = 0.5, (2, 3)
    expected = np.zeros((3, 3, *cells))
    for k, (image, x1, y1, x2, y2) in enumerate(rois):
        shift = 0.5 if aligned else 0.0
        left, top, right, bottom = (v * scale - shift for v in (x1, y1, x2, y2))
        high, wide = (bottom - top, right - left) if aligned else (max(bottom - top, 1.0), max(right - left, 1.0))
        counts = [ratio if ratio > 0 else max(math.ceil(s / n), 1) for s, n in ((high, cells[0]), (wide, cells[1]))]
        for c, i, j in np.ndindex(3, *cells):
            total = 0.0
            for p, q in np.ndindex(*counts):
                y = top + (i + (p + 0.5) / counts[0]) * high / cells[0]
                z = left + (j + (q + 0.5) / counts[1]) * wide / cells[1]
                if -1 <= y <= 8 and -1 <= z <= 9:
                    total += blended(x[int(image), c], min(max(y, 0), 7), min(max(z, 0), 8))
            expected[k, c, i, j] = total / (counts[0] * counts[1])
    got = flow.roi_align(flow.tensor(x, requires_grad=True), flow.tensor(rois), scale, *cells, ratio, aligned)
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    boxes = [flow.tensor(rois[:1, 1:]), flow.tensor(rois[1:, 1:])]
    again = flow.roi_align(flow.tensor(x), boxes, scale, *cells, ratio, aligned)
    np.testing.assert_allclose(again.numpy(), expected, rtol=1e-9, atol=1e-12)


class Largest(TorchDispatchMode):
    """Notes how many elements the largest output of a kernel has."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for made in found if isinstance(found, (tuple, list)) else (found,):
            if isinstance(made, torch.Tensor):
                self.elements = max(self.elements, made.numel())
        return found


def test_many_boxes_need_no_memory_for_each_pair_or_picture() -> None:
    corner = flow.rand(400, 2) * 30
    boxes = flow.cat([corner, corner + 9], 1)
    picture, samples = flow.rand(1, 3, 64, 64), 400 * 4 * 4
    with Largest() as seen:
        flow.nms(boxes, flow.rand(400), 0.5)
    assert seen.elements < 10 * boxes.numel()
    with Largest() as seen:
        flow.roi_align(picture, [boxes], 1.0, 2, 2, 2)
    assert seen.elements <= 4 * 3 * samples, "four pixels of each sample"


# ---- few bits ----------------------------------------------------------------------------------------------

WEIGHT = np.random.default_rng(2).uniform(-0.5, 0.7, size=(3, 4, 2)).astype(np.float32)


def scale_of(rows: np.ndarray, formula: str, bits: int, scheme: str) -> tuple[np.ndarray, np.ndarray]:
    size = np.abs(rows).max(1)
    if formula == "cambricon":
        return np.floor(np.log2(size)) - (bits - 2), np.zeros(len(rows))
    if scheme == "symmetric":
        return size / (2 ** (bits - 1) - 1), np.zeros(len(rows))
    scale = (rows.max(1) - rows.min(1)) / (2**bits - 1)
    return scale, -np.round(rows.min(1) / scale)


@pytest.mark.parametrize("per_layer", [True, False])
@pytest.mark.parametrize(
    ("formula", "scheme"), [("google", "symmetric"), ("google", "affine"), ("cambricon", "symmetric")]
)
def test_numbers_of_few_bits(formula: str, scheme: str, per_layer: bool) -> None:
    whole = per_layer or formula == "cambricon"
    rows = WEIGHT.reshape(1 if whole else 3, -1)
    scale, zero = scale_of(rows, formula, 4, scheme)
    x = flow.tensor(WEIGHT, requires_grad=True)
    found = flow.nn.MinMaxObserver(formula, 4, scheme, per_layer)(x)
    np.testing.assert_allclose(found[0].numpy(), scale, rtol=1e-5)
    np.testing.assert_allclose(found[1].numpy(), zero)
    step = 2.0**scale if formula == "cambricon" else scale
    low, high = (0, 15) if scheme == "affine" else (-7, 7)
    counts = np.clip(np.rint(rows / step[:, None] + zero[:, None]), low, high)
    got = flow.nn.Quantization(formula, 4, scheme)(x, *found)
    np.testing.assert_allclose(got.detach().numpy().reshape(counts.shape), counts)
    back = flow.nn.FakeQuantization(formula, 4, scheme)(x, *found)
    np.testing.assert_allclose(
        back.detach().numpy().reshape(counts.shape), (counts - zero[:, None]) * step[:, None], rtol=1e-4, atol=1e-6
    )
    (back * 3).sum().backward()
    assert set(x.grad.flatten().tolist()) == {3.0}  # type: ignore[union-attr]


@pytest.mark.parametrize("scheme", ["symmetric", "affine"])
def test_running_extremes(scheme: str) -> None:
    observer = flow.nn.MovingAverageMinMaxObserver(stop_update_after_iters=2, quantization_scheme=scheme, momentum=0.9)
    high = low = 0.0
    for step, factor in enumerate((1.0, 2.0, 3.0, 4.0)):
        data = WEIGHT * factor
        scale, zero = observer(flow.tensor(data), flow.tensor([step]))
        top, bottom = (np.abs(data).max(),) * 2 if scheme == "symmetric" else (data.max(), data.min())
        if step <= 2:
            high = top if high == 0 else high * 0.9 + top * 0.1
            low = bottom if low == 0 else low * 0.9 + bottom * 0.1
        expected = high / 127 if scheme == "symmetric" else (high - low) / 255
        np.testing.assert_allclose(scale.numpy(), [expected], rtol=1e-5)
        np.testing.assert_allclose(zero.numpy(), [0 if scheme == "symmetric" else -np.round(low / expected)])
    observer.reset_running_stats()
    assert observer.moving_max.item() == 0.0


@pytest.mark.parametrize(("dims", "scheme", "per_layer", "values", "largest"), [  # OneFlow 0.9's
    (2, "symmetric", True, [2.1361787, 0.7518887, -0.849522, 13.584537], 2.4538484),
    (2, "affine", True, [2.1243842, 0.7630705, -0.8646103, 13.670808], 2.4073222),
    (1, "symmetric", False, [4.333802, 8.81503, -4.135995, -2.3734472], 1.9451202),
])  # fmt: skip
def test_a_convolution_that_trains_for_few_bits(
    dims: int, scheme: str, per_layer: bool, values: list[float], largest: float
) -> None:
    draws = np.random.RandomState(0)
    layer = getattr(flow.nn, f"QatConv{dims}d")(3, 4, 3, 1, 1, 1, 1, True, "zeros", "google", 8, scheme, per_layer, 0.9)
    layer.load_state_dict({n: flow.tensor(draws.randn(*p.shape)) for n, p in layer.named_parameters()}, strict=False)
    for _ in range(3):
        x = flow.tensor(draws.randn(2, 3, *(5,) * dims).astype("float32"))
        y = layer(x)
    np.testing.assert_allclose(y.detach().numpy().ravel()[:4], values, rtol=1e-4)
    np.testing.assert_allclose(layer.eval()(x).detach().numpy().ravel()[:4], values, rtol=1e-4)
    np.testing.assert_allclose(layer.state_dict()["input_min_max_observer.moving_max"].item(), largest, rtol=1e-6)
    y.sum().backward()
    assert layer.weight.grad is not None and layer.state_dict()["current_train_step"].tolist() == [0]
    bordered = getattr(flow.nn, f"QatConv{dims}d")(3, 4, 3, padding=1, padding_mode="reflect")
    plain = getattr(flow.nn, f"Conv{dims}d")(3, 4, 3, padding=1, padding_mode="reflect")
    plain.load_state_dict({n: p for n, p in bordered.named_parameters()})
    assert 0 < (bordered(x) - plain(x)).abs().max().item() < 0.1


# ---- convolutions as functions -----------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("padding", ["same", "valid", 1])
def test_convolutions_with_borders_by_name_and_without_a_batch(dims: int, padding: Any) -> None:
    x, weight = torch.randn(2, 3, *(5,) * dims), torch.randn(4, 3, *(2, 3, 3)[:dims])
    name = f"conv{dims}d"
    for given in (x, x[0]):
        expected = getattr(torch.nn.functional, name)(given, weight, padding=padding)
        got = getattr(F, name)(of_torch(given), of_torch(weight), padding=padding)
        torch.testing.assert_close(got.to_torch(), expected)


def test_transposed_convolutions_of_a_size() -> None:
    theirs = torch.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    ours = load_torch(flow.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), theirs)
    x = torch.randn(2, 4, 4)
    for size in ([7, 8], [3, 8, 8]):
        expected = theirs(x, output_size=size)
        torch.testing.assert_close(ours(of_torch(x), output_size=size).detach().to_torch(), expected.detach())
    with pytest.raises(flow.errors.OptionError, match="valid sizes range from"):
        ours(of_torch(x), output_size=[12, 12])


def test_of_pairs_that_are_neither_alike_nor_apart_nothing_is_asked() -> None:
    x, y, target = torch.randn(3, 4), torch.randn(3, 4), torch.tensor([1, 0, -1])
    expected = torch.nn.functional.cosine_embedding_loss(x, y, target, reduction="none")
    got = F.cosine_embedding_loss(of_torch(x), of_torch(y), of_torch(target), reduction="none")
    torch.testing.assert_close(got.to_torch(), expected)


def test_bags_of_a_given_table() -> None:
    bags = flow.nn.EmbeddingBag.from_pretrained(flow.eye(3), mode="sum", freeze=False)
    assert bags(flow.tensor([[0, 1], [2, 2]])).tolist() == [[1, 1, 0], [0, 0, 2]] and bags.weight.requires_grad
    assert not flow.nn.EmbeddingBag.from_pretrained(flow.eye(3)).weight.requires_grad


def test_fractional_pooling_by_one_ratio() -> None:
    assert flow.nn.FractionalMaxPool2d(2, output_ratio=0.5)(flow.rand(1, 2, 7, 9)).shape == (1, 2, 3, 4)


def test_a_bags_padding_row_is_zero_and_its_options_are_attributes() -> None:
    made = [lib.nn.EmbeddingBag(4, 2, max_norm=1.0, mode="sum", padding_idx=-1) for lib in (flow, torch)]
    for name in torch.nn.EmbeddingBag.__constants__:  # type: ignore[attr-defined]
        assert getattr(made[0], name) == getattr(made[1], name), name
    assert made[0].weight[3].tolist() == [0.0, 0.0]
