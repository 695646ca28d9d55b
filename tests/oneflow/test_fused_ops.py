"""OneFlow's names of several ops at once, against what they are made of in torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as TF

import weft as flow
from tests.functional.test_values import agree, rand

X, W, B, MASK = rand(2, 3, 4), rand(5, 4), rand(5), rand(2, 3, 4) > 0


def attended(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and values of two heads of 4, each with its query, key and value side by side."""
    q, k, v = x.unflatten(2, (2, 3, 4)).unbind(3)
    return torch.einsum("ibhd,jbhd->bhij", q, k) * 0.5, torch.einsum("ibhd->bhid", v)


def interacted(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, diagonal: int, padding: int) -> torch.Tensor:
    every = torch.cat([x, y], 1)
    rows, columns = torch.tril_indices(every.shape[1], every.shape[1], diagonal - 1)
    return TF.pad(torch.cat([z, (every @ every.mT)[:, rows, columns]], 1), (0, padding))


CALLS: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "bias_add": (lambda x, b: x + b[:, None], lambda f, x, b: f(x, b, 1), (X, rand(3))),
    "fused_bias_add_gelu": (lambda x, b: TF.gelu(x + b), lambda f, x, b: f(x, b, 2), (X, rand(4))),
    "fused_scale_mask_softmax": (
        lambda x, m: (x * 2).masked_fill(~m, -9.0).softmax(-1), lambda f, x, m: f(x, m, -9.0, 2.0), (X, MASK)
    ),
    "fused_scale_tril": (
        lambda x: (x * 3).tril() + torch.ones_like(x).triu(1) * 5, lambda f, x: f(x, 0, 5.0, 3.0), (X,)
    ),
    "fused_matmul_bias": (TF.linear, lambda f, *a: f(*a), (X, W, B)),
    "fused_mlp": (
        lambda x, w, b, v, c: TF.linear(TF.linear(x, w, b).relu(), v, c),
        lambda f, x, w, b, v, c: f(x, [w, v], [b, c], True), (X, W, B, rand(2, 5), rand(2)),
    ),
    "fused_glu": (
        lambda x, w, b, v, c: TF.linear(x, w, b) * TF.linear(x, v, c).sigmoid(),
        lambda f, *a: f(*a, activation="sigmoid"), (X, W, B, rand(5, 4), rand(5)),
    ),
    "fast_gelu": (lambda x: TF.gelu(x, approximate="tanh"), lambda f, x: f(x), (X,)),
    "fused_fast_gelu_mul": (lambda x, y: TF.gelu(x, approximate="tanh") * y, lambda f, *a: f(*a), (X, rand(2, 3, 4))),
    "fused_weighted_sum": (lambda x, y: 3 * (x + 2 * y), lambda f, x, y: f([x, y], [1.0, 2.0], 3.0), (X, X + 1)),
    "rms_layer_norm": (lambda x, w: TF.rms_norm(x, (4,), w, 1e-6), lambda f, *a: f(*a), (X, rand(4))),
    "trunc_divide": (lambda x: torch.div(x, 0.3, rounding_mode="trunc"), lambda f, x: f(x, 0.3), (X,)),
    "reciprocal_no_nan": (
        lambda x: torch.where(x == 0, 0.0, 1 / x), lambda f, x: f(x), (torch.tensor([4.0, 0.5]),)
    ),
    "sqrt_square_sum": (torch.linalg.vector_norm, lambda f, x: f(x), (X,)),
    "reduce_sum_like": (lambda x, y: x.sum(0), lambda f, x, y: f(x, y, (0,)), (X, rand(3, 4))),
    "softmax_cross_entropy": (
        lambda x, y: TF.cross_entropy(x, y, reduction="none"), lambda f, *a: f(*a), (rand(3, 4), rand(3, 4).softmax(1))
    ),
    "fused_self_attention": (
        attended, lambda f, x: f(x, head_size=4, alpha=0.5), (rand(3, 2, 24),)
    ),
    "fused_dot_feature_interaction": (
        lambda x, y, z: interacted(x, y, z, 0, 2), lambda f, x, y, z: f([x, y], output_concat=z, output_padding=2),
        (rand(2, 1, 4), rand(2, 3, 4), rand(2, 5))
    ),
    "fused_cross_feature_interaction": (
        lambda x, w, y, b, v, c: (TF.linear(x, w) * y + b + x, TF.linear(x, v, c) * y + x),
        lambda f, x, w, y, b, v, c: (f(x, w, y, b, "vector"), f(x, v, y, c, "matrix")),
        (rand(3, 4), rand(1, 4), rand(3, 4), rand(4), rand(4, 4), rand(4)),
    ),
    "T": (lambda x: x.permute(2, 1, 0), lambda f, x: f(x), (X,)),
    "vector_norm": (torch.linalg.vector_norm, lambda f, x: f(x), (X,)),
    "mse_loss": (TF.mse_loss, lambda f, *a: f(*a), (X, X + 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_names_of_several_ops(name: str) -> None:
    theirs, ours, args = CALLS[name]
    agree(theirs, lambda *a: ours(getattr(flow._C, name), *a), args)


def test_interactions_of_features_in_their_other_forms() -> None:
    x, y, nothing = rand(2, 1, 4), rand(2, 3, 4), rand(2, 0)
    interaction = flow._C.fused_dot_feature_interaction
    agree(lambda a, b: interacted(a, b, nothing, 1, 0), lambda *f: interaction(f, self_interaction=True), (x, y))
    agree(lambda a, b: interacted(a, b, nothing, 0, 0).sum(1, True), lambda *f: interaction(f, pooling="sum"), (x, y))
    with pytest.raises(flow.errors.OptionError, match="takes no output_concat"):
        interaction([flow.tensor(x)], pooling="sum", output_padding=1)
    with pytest.raises(flow.errors.OptionError, match='"vector" or "matrix"; got'):
        flow._C.fused_cross_feature_interaction(one := flow.ones(1, 1), one, one, one, "all")
    with pytest.raises(flow.errors.ShapeError, match="the width, 10, is"):
        flow._C.fused_self_attention(flow.ones(2, 2, 10), 3)
    P = flow.placement("cpu", ranks=[0])
    spread = [flow.tensor(t, placement=P, sbp=flow.sbp.split(0)) for t in (x, y)]
    assert interaction(spread).shape == (2, 6)

    class Interaction(flow.nn.Graph):
        def build(self, *features: flow.Tensor) -> flow.Tensor:
            return interaction(features, self_interaction=True)

    assert Interaction()(*spread).tolist() == interaction(spread, self_interaction=True).tolist()


def test_dropped_names_drop_only_in_training() -> None:
    x, mask = flow.tensor(X), flow.tensor(MASK)
    dropped, soft = flow._C.fused_scale_mask_softmax_dropout(x, mask, -9.0, 2.0, 0.0, True)
    assert dropped is soft
    y, _ = flow._C.fused_scale_mask_softmax_dropout(x, mask, -9.0, 2.0, 1.0, True)
    assert not y.any()
    assert not flow._C.fused_bias_add_dropout(x, flow.tensor(rand(4)), 1.0, 2).any()
    same = flow._C.fused_bias_add_dropout(x, flow.zeros(4, dtype=flow.float64), 1.0, 2, training=False)
    assert torch.equal(same.to_torch(), X)


def test_bound_names_stay_out_of_the_root() -> None:
    assert not hasattr(flow, "fused_mlp") and not hasattr(flow.nn.functional, "fused_mlp")
    x = flow.zeros(2)
    assert flow._C.to(x, flow.float64).dtype is flow.float64
    assert "fused_mlp" in dir(flow._C)


def test_boxes_that_overlap_better_ones_go() -> None:
    corner = rand(40, 2) * 2
    boxes, scores = torch.cat([corner, corner + 1], 1), rand(40)
    kept = flow.nms(flow.tensor(boxes), flow.tensor(scores), 0.3).tolist()
    best: list[int] = []
    for i in scores.argsort(descending=True).tolist():

        def share(j: int, i: int = i) -> float:
            a, b = boxes[i], boxes[j]
            sides = (torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp_min(0)
            both = float(sides.prod())
            return both / (2.0 - both)

        if all(share(j) <= 0.3 for j in best):
            best.append(i)
    assert kept == best


def test_the_parts_of_the_complete_iou() -> None:
    ours = flow.tensor(rand(6, 4) + 0.5, requires_grad=True)
    theirs = torch.tensor(ours.numpy(), requires_grad=True)
    other, eps = rand(6, 4) + 0.5, 1e-7
    (x1, y1, w1, h1), (x2, y2, w2, h2) = ours.chunk(4, 1), flow.tensor(other).chunk(4, 1)
    left1, right1, top1, bottom1, left2, right2, top2, bottom2 = flow._C.fused_get_boundding_boxes_coord(
        x1, y1, w1, h1, x2, y2, w2, h2
    )
    edges = (left1, right1, left2, right2, top1, bottom1, top2, bottom2)
    shared = flow._C.fused_get_intersection_area(*edges)
    iou = flow._C.fused_get_iou(w1, h1, w2, h2, shared, eps)
    around = flow._C.fused_get_convex_diagonal_squared(*edges, eps)
    angle = flow._C.fused_get_ciou_diagonal_angle(w1, h1, w2, h2, eps)
    complete, weight = flow._C.fused_get_ciou_result(angle, iou, flow._C.fused_get_center_dist(*edges), around, eps)
    assert not weight.requires_grad
    complete.sum().backward()

    low, high = theirs[:, :2] - theirs[:, 2:] / 2, theirs[:, :2] + theirs[:, 2:] / 2
    low2, high2 = other[:, :2] - other[:, 2:] / 2, other[:, :2] + other[:, 2:] / 2
    both = (torch.minimum(high, high2) - torch.maximum(low, low2)).clamp_min(0).prod(1)
    share = both / (theirs[:, 2:].prod(1) + other[:, 2:].prod(1) - both + eps)
    diagonal = (torch.maximum(high, high2) - torch.minimum(low, low2)).square().sum(1) + eps
    slopes = [torch.atan(sides[:, 2] / (sides[:, 3] + eps)) for sides in (theirs, other)]
    tilt = (slopes[1] - slopes[0]) * 2 / torch.pi
    factor = (tilt**2 / (tilt**2 - share + 1 + eps)).detach()
    wanted = share - (theirs[:, :2] - other[:, :2]).square().sum(1) / diagonal - factor * tilt**2
    wanted.sum().backward()
    torch.testing.assert_close(torch.tensor(complete[:, 0].numpy()), wanted.detach())
    assert ours.grad is not None
    torch.testing.assert_close(torch.tensor(ours.grad.numpy()), theirs.grad)
