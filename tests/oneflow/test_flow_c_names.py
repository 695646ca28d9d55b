"""OneFlow's other names for what is here: the same values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as TF

import weft as flow
from tests.functional.test_values import agree, rand
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

A, IMAGE = rand(3, 4), rand(2, 3, 4, 5)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "cosh", "tan"])
def test_slopes(name: str) -> None:
    x, dy = A.clone().requires_grad_(), rand(3, 4)
    y = getattr(torch, name)(x)
    y.backward(dy)
    first = y.detach() if name == "sigmoid" else A
    got = getattr(flow._C, f"{name}_grad")(of_torch(first), of_torch(dy))
    torch.testing.assert_close(got.to_torch(), x.grad)


SIZES: list[tuple[str, torch.Tensor, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = [
    ("upsample_nearest_1d", IMAGE[0], (2.0,), {}, {"scale_factor": 2.0, "mode": "nearest"}),
    ("upsample_linear_1d", IMAGE[0], (1.0, True), {"output_size": (7,)},
     {"size": 7, "mode": "linear", "align_corners": True}),
    ("upsample_nearest_2d", IMAGE, (2.0, 1.5), {}, {"scale_factor": (2.0, 1.5), "mode": "nearest"}),
    ("upsample_bilinear_2d", IMAGE, (2.0, 1.5, False), {}, {"scale_factor": (2.0, 1.5), "mode": "bilinear"}),
    ("upsample_bicubic_2d", IMAGE, (), {"output_size": (3, 9)}, {"size": (3, 9), "mode": "bicubic"}),
    ("upsample_nearest_3d", IMAGE[None], (1.0, 2.0, 2.0), {}, {"scale_factor": (1.0, 2.0, 2.0), "mode": "nearest"}),
    ("upsample_trilinear_3d", IMAGE[None], (2.0, 1.0, 1.0), {}, {"scale_factor": (2.0, 1.0, 1.0), "mode": "trilinear"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "x", "args", "options", "theirs"), SIZES, ids=[r[0] for r in SIZES])
def test_other_sizes(name: str, x: torch.Tensor, args: Any, options: Any, theirs: dict[str, Any]) -> None:
    agree(lambda x: TF.interpolate(x, **theirs), lambda x: getattr(flow._C, name)(x, *args, **options), (x,))


def test_single_steps_of_recurrent_layers() -> None:
    x, h, c, b = rand(2, 3), rand(2, 4), rand(2, 4), {}
    for name, gates in (("rnn_tanh_cell", 1), ("rnn_relu_cell", 1), ("gru_cell", 3), ("lstm_cell", 4)):
        b = rand(gates * 4, 3), rand(gates * 4, 4), rand(gates * 4), rand(gates * 4)
        theirs, ours = getattr(torch, name), getattr(flow, name)
        if name == "lstm_cell":
            agree(
                lambda x, h, c, *b: torch.lstm_cell(x, (h, c), *b),
                lambda x, h, c, *b: flow.lstm_cell(x, (h, c), *b),
                (x, h, c, *b),
            )
        else:
            agree(theirs, ours, (x, h, *b))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_whole_recurrent_layers(kind: str) -> None:
    """Of sequences and of packed ones; programs have the weights and call these, as OneFlow's own modules do."""
    layer = getattr(torch.nn, kind.partition("_")[0].upper())(3, 4, 2, bidirectional=True, dtype=torch.float64)
    weights = [w.detach() for w in layer.parameters()]

    def whole(f: Any, x: Any, h: Any, c: Any, *w: Any) -> Any:
        return f(x, (h, c) if kind == "lstm" else h, list(w), True, 2, 0.0, True, True, True)

    def packed(f: Any, sizes: Any, x: Any, h: Any, c: Any, *w: Any) -> Any:
        return f(x, sizes, (h, c) if kind == "lstm" else h, list(w), True, 2, 0.0, True, True)

    theirs, ours, sizes = getattr(torch, kind), getattr(flow._C, kind), torch.tensor([2, 2, 2, 1])
    states = rand(4, 2, 4), rand(4, 2, 4)
    agree(lambda *a: whole(theirs, *a), lambda *a: whole(ours, *a), (rand(2, 5, 3), *states, *weights))
    agree(
        lambda *a: packed(theirs, sizes, *a),
        lambda *a: packed(ours, of_torch(sizes), *a),
        (rand(7, 3), *states, *weights),
    )


def test_losses_and_norms() -> None:
    logits, labels = rand(3, 4), torch.tensor([0, 3, 1])
    probs = logits.softmax(-1)
    agree(
        lambda p: TF.nll_loss(p.log(), labels, reduction="none"),
        lambda p: flow._C.sparse_cross_entropy(p, of_torch(labels), 4),
        (probs,),
    )
    hot = TF.one_hot(labels, 4).double()
    leaf = logits.clone().requires_grad_()
    (-(hot * leaf.log_softmax(-1)).sum(-1)).sum().backward()
    gradient = flow._C.softmax_cross_entropy_grad(flow.ones(3, dtype=flow.float64), of_torch(hot), of_torch(probs))
    torch.testing.assert_close(gradient.to_torch(), leaf.grad)
    weights = rand(4), rand(4)
    agree(
        lambda x, g, b: TF.layer_norm(x, (4,), g, b), lambda x, g, b: flow._C.layer_norm_affine(x, g, b), (A, *weights)
    )
    mean, var, scale, shift = rand(3), rand(3).abs(), rand(3), rand(3)
    agree(
        lambda x, g, b: TF.batch_norm(x, mean, var, g, b).add(1).relu(),
        lambda x, g, b: flow._C.normalization_add_relu(x, x * 0 + 1, of_torch(mean), of_torch(var), g, b),
        (IMAGE, scale, shift),
    )
    moved = IMAGE.permute(0, 2, 3, 1).contiguous()
    got = flow._C.normalization(of_torch(moved), of_torch(mean), of_torch(var), axis=-1)
    torch.testing.assert_close(got.to_torch(), TF.batch_norm(IMAGE, mean, var).permute(0, 2, 3, 1))
    pooled = flow._C.avg_pool2d_nhwc(of_torch(moved), 2)
    torch.testing.assert_close(pooled.to_torch(), TF.avg_pool2d(IMAGE, 2).permute(0, 2, 3, 1))
    table, ids = rand(5, 3) * 3, torch.tensor([0, 3, 3])
    expected = torch.embedding_renorm_(table.clone(), ids, 1.0, 2.0)
    torch.testing.assert_close(
        flow._C.embedding_renorm_(of_torch(table.clone()), of_torch(ids), 1.0).to_torch(), expected
    )


def test_pieces_and_constants() -> None:
    x: Any = of_torch(A.clone())
    first, second = flow._C.split_like(x, [flow.ones(1), flow.ones(2)], 0)
    assert first.shape == (1, 4) and second.shape == (2, 4)
    assert flow._C.select_top_n([1, 2, 3], 2) == (1, 2) and flow._C.amp_white_identity(x) is x
    assert flow._C.slice_view_1d_contiguous(flow.arange(5), 1, 3).tolist() == [1, 2]
    spread = flow._C.scatterndlike(flow.zeros(3), flow.tensor([[1], [1]]), flow.ones(2))
    assert spread.tolist() == [0.0, 2.0, 0.0]
    y = flow.zeros(3, 3)
    flow._C.tensor_setitem(y, (0, slice(None)), flow.ones(3))
    assert y.sum().item() == 3 and flow._C.eye_(y).trace().item() == 3
    flow._C.assign_local_tensor(y, flow.ones(3, 3))
    assert y.sum().item() == 9
    assert flow._C.constant((2,), 3, dtype=flow.int32).tolist() == [3, 3]
    assert flow._C.tensor_constant((2,), flow.tensor(1.5)).tolist() == [1.5, 1.5]
    where = {"placement": flow.placement("cpu", [0]), "sbp": flow.sbp.broadcast}
    assert flow._C.global_constant((2,), 3, **where).is_global and flow._C.global_empty((2,), **where).shape == (2,)
    assert flow._C.global_arange(3, **where).numpy().tolist() == [0, 1, 2]
    assert flow._C.global_tensor_constant((1,), flow.tensor(2), **where).numpy().tolist() == [2]
    with pytest.raises(flow.errors.OpError, match="always raises"):
        flow._C.throw_error(x)


def _shared() -> list[Any]:
    me = flow.tensor([float(flow.env.get_rank() + 1)])
    gathered, part = flow.zeros(2), flow.zeros(1)
    flow._C.local_all_gather(gathered, me)
    flow._C.local_reduce_scatter(part, flow.tensor([1.0, 2.0]))
    return [
        flow._C.local_all_reduce(me).tolist(), gathered.tolist(), part.tolist(), flow._C.comm_broadcast(me, 1).tolist(),
        flow._C.local_reduce(me, 0).tolist(), me.tolist(),
    ]  # fmt: skip


def test_collectives() -> None:
    assert spawn_threads(2, _shared) == [
        [[3.0], [1.0, 2.0], [2.0], [2.0], [3.0], [1.0]],
        [[3.0], [1.0, 2.0], [4.0], [2.0], [2.0], [2.0]],
    ]


def test_modules_are_kept_up() -> None:
    model = flow.nn.Sequential(flow.nn.Linear(2, 3), flow.nn.ReLU())
    assert model.type(flow.float64)[0].weight.dtype is flow.float64  # type: ignore[attr-defined, union-attr]
    model.set_submodule("1", flow.nn.Tanh())  # type: ignore[attr-defined]
    assert isinstance(model[1], flow.nn.Tanh) and model.share_memory()[0].weight.is_shared()  # type: ignore[attr-defined, union-attr]
    with pytest.raises(AttributeError, match="could be replaced"):
        model.set_submodule("2", flow.nn.Tanh(), strict=True)  # type: ignore[attr-defined]
    kept = model[0].weight.data_ptr()  # type: ignore[union-attr]
    assert model.to_empty(device="cpu", recurse=False)[0].weight.data_ptr() == kept  # type: ignore[attr-defined, union-attr]
    assert model.to_empty(device="cpu")[0].weight.shape == (3, 2)  # type: ignore[attr-defined, union-attr]
    placed = model.to_consistent(flow.placement("cpu", [0]), flow.sbp.broadcast)  # type: ignore[attr-defined]
    assert placed[0].weight.is_global
