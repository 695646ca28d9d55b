"""In which order elements lie in memory, against torch's kernels."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
import weft.nn.functional as F
from tests.functional.test_torch_calls import CALLS
from tests.functional.test_values import called, listed
from tests.graphs import Trains
from weft import nn
from weft.job.aliasing import Memories
from weft.job.job import Job
from weft.job.memory_order import Order, alike, lies
from weft.job.value import Node, Value


def tensor(r: random.Random, shape: tuple[int, ...]) -> torch.Tensor:
    """Of this shape or one that broadcasts to it, its dimensions in any order in memory."""
    shape = tuple(1 if r.random() < 0.15 else n for n in shape)
    order = r.sample(range(len(shape)), len(shape))
    x = torch.empty([shape[i] for i in order]).permute([order.index(i) for i in range(len(shape))])
    return x if r.random() < 0.7 else torch.empty([2 * n for n in shape])[(slice(None, None, 2),) * len(shape)]


def test_what_an_elementwise_kernel_makes_lies_as_torchs() -> None:
    r = random.Random(0)
    for _ in range(500):
        shape = tuple(r.randint(1, 4) for _ in range(r.randint(1, 4)))
        operands = [torch.empty(shape), *(tensor(r, shape) for _ in range(2))]
        r.shuffle(operands)
        made = torch.addcmul(*operands)
        assert lies(made, alike(tuple(made.shape), operands)), [(x.shape, x.stride()) for x in operands]


KEEPING: dict[str, Callable[[Any], Any]] = {
    "conv2d": lambda x: F.conv2d(x, flow.ones(4, 3, 3, 3)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, flow.ones(3, 4, 2, 2), stride=2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 3),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "interpolate of one place": lambda x: F.interpolate(
        x.mean((2, 3)).unsqueeze(1).transpose(1, 2).reshape(2, 3, 1, 1), size=(4, 4), mode="bilinear"
    ),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "pad by reflection": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "cat": lambda x: flow.cat([x, x], 1),
    "cat of one that lies otherwise": lambda x: flow.cat([x, x.contiguous()], 1),
    "cat of slices": lambda x: flow.cat([-x[..., 4:], x[..., :4]], 3),
    "pad around": lambda x: F.pad(x, (1, 2, 1, 0), "circular"),
    "roll": lambda x: x.roll(1, 2),
    "roll to its place": lambda x: x.roll(8, 2),
    "roll as if flat": lambda x: x.roll(5),
    "index": lambda x: x[:, flow.tensor([2, 0])],
    "index in two dimensions": lambda x: x[:, :, flow.tensor([[2], [0]]), flow.tensor([1, 5, 4])],
    "einsum": lambda x: flow.einsum("nchw,cd->ndhw", x, flow.ones(3, 3)),
    "einsum of what lies flat": lambda x: flow.einsum("nchw,cd->ndhw", x.contiguous(), flow.ones(3, 3)),
    "expand": lambda x: x[:, :1].expand(2, 3, 8, 8),
    "conv2d of one image": lambda x: F.conv2d(x[:1].flatten(2).unflatten(2, (8, 8)).sin(), flow.ones(4, 3, 1, 1)),
    "flip": lambda x: x.flip(2),
    "sort": lambda x: x.sort(1)[0],
    "argsort": lambda x: x.argsort(1) + 1.0,
    "rms_norm": lambda x: F.rms_norm(x, (8,)),
    "layer_norm": lambda x: F.layer_norm(x, (8,)),
    "group_norm": lambda x: F.group_norm(x, 3),
    "instance_norm": lambda x: F.instance_norm(x),
    "softmax": lambda x: F.softmax(x, 1),
    "bernoulli": lambda x: flow.bernoulli(x - 1) + 1,
    "poisson": lambda x: flow.poisson(x) + 1,
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "index_put": lambda x: x.index_put((flow.tensor([0]),), flow.ones(3, 8, 8)),
    "sum": lambda x: x.sum(1, keepdim=True),
    "inv": lambda x: flow.linalg.inv(x + 9 * flow.eye(8)),
    "solve": lambda x: flow.linalg.solve(x + 9 * flow.eye(8), x[..., :3]),
    "qr": lambda x: flow.linalg.qr(x)[0],
    "svd": lambda x: sum(flow.linalg.svd(x)[::2]),
    "cholesky": lambda x: flow.linalg.cholesky(x @ x.mT + flow.eye(8)),
    "eigh": lambda x: flow.linalg.eigh(x @ x.mT)[1],
    "eig": lambda x: flow.linalg.eig(x)[1].abs(),
    "lu_factor": lambda x: flow.linalg.lu_factor(x)[0],
    "fft": lambda x: flow.fft.fft(x, dim=1).abs(),
    "angle": lambda x: flow.complex(x, x + 1).angle(),
    "power of a number": lambda x: 2**x,
    "logsigmoid": lambda x: F.logsigmoid(x),
    "mvlgamma": lambda x: flow.mvlgamma(x + 2, 2),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "attention of one place": lambda x: F.scaled_dot_product_attention(*x[:, :, :1].chunk(2, 3), x[:, :, :1, :4]),  # type: ignore[call-arg]
}


TURNS = pytest.mark.parametrize("turn", [(0, 2, 3, 1), (0, 1, 3, 2), (0, 2, 1, 3)], ids=str)


CHANNELS: list[Callable[[Any, Any], Any]] = [
    lambda F, x: F.group_norm(x, 3), lambda F, x: F.instance_norm(x), lambda F, x: F.pad(x, (1, 2, 1, 0), "reflect"),
    lambda F, x: F.pad(x, (1, 2, 1, 0), "replicate"),
]  # fmt: skip


@TURNS
@pytest.mark.parametrize("call", CHANNELS)
def test_channels_lie_as_torchs_after_a_kernel(call: Callable[[Any, Any], Any], turn: tuple[int, ...]) -> None:
    back = [turn.index(d) for d in range(4)]
    theirs = torch.rand(2, 3, 8, 8, dtype=torch.float64).permute(turn).contiguous().permute(back).requires_grad_()
    mine = flow.from_torch(theirs.detach()).requires_grad_()
    expected, found = call(torch.nn.functional, theirs), call(F, mine)
    assert torch.allclose(expected, found.to_torch()) and lies(found.to_torch(), expected.stride())
    expected.square().mul(torch.arange(expected.numel()).view(expected.shape)).sum().backward()
    found.square().mul(flow.arange(found.numel()).view(found.shape)).sum().backward()
    assert theirs.grad is not None and mine.grad is not None and torch.allclose(theirs.grad, mine.grad.to_torch())


WEIGHTS = {shape: torch.rand(shape, dtype=torch.float64) for shape in [(6, 4, 3, 3), (6, 4, 1, 1), (4, 1, 3, 3)]}
ALONG_CHANNELS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "conv2d": lambda F, x, w: F.conv2d(x, w[6, 4, 3, 3], None, 2, 1),
    "conv2d of one place": lambda F, x, w: F.conv2d(x, w[6, 4, 1, 1]),
    "conv2d of each channel": lambda F, x, w: F.conv2d(x, w[4, 1, 3, 3], groups=4),
    "conv_transpose2d": lambda F, x, w: F.conv_transpose2d(x, w[6, 4, 3, 3].transpose(0, 1)),
    "max_pool2d": lambda F, x, w: F.max_pool2d(x, 3, 2, 1),
    "adaptive_max_pool2d": lambda F, x, w: F.adaptive_max_pool2d(x, 3),
    "avg_pool2d": lambda F, x, w: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda F, x, w: F.adaptive_avg_pool2d(x, 3),
    "batch_norm": lambda F, x, w: F.batch_norm(x, None, None, training=True),
    "interpolate": lambda F, x, w: F.interpolate(x, scale_factor=2),
    "gelu": lambda F, x, w: F.gelu(x),
    "relu": lambda F, x, w: F.relu(x),
    "clamp": lambda F, x, w: x.clamp(0.2, 0.6),
    "glu": lambda F, x, w: F.glu(x, 1),
    "prelu": lambda F, x, w: F.prelu(x - 0.5, w[6, 4, 1, 1][0, :, 0, 0]),
    "pixel_shuffle": lambda F, x, w: F.pixel_shuffle(F.conv2d(x, w[6, 4, 1, 1].repeat(2, 1, 1, 1)), 2),
    "pixel_unshuffle": lambda F, x, w: F.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda F, x, w: F.channel_shuffle(x, 2),
    "interpolate bicubic": lambda F, x, w: F.interpolate(x, scale_factor=2, mode="bicubic"),
}


SHAPES_ALONE = ("avg_pool2d", "adaptive_avg_pool2d", "pixel_unshuffle", "channel_shuffle")


@pytest.mark.parametrize("lying", ["by channels", "contiguous", "repeated"])
@pytest.mark.parametrize("name", ALONG_CHANNELS)
def test_gradients_have_channels_innermost_where_torchs_have(name: str, lying: str) -> None:
    call = ALONG_CHANNELS[name]
    theirs = torch.rand(2, 4, 8, 8, dtype=torch.float64).contiguous(memory_format=torch.channels_last).requires_grad_()
    mine = flow.from_torch(theirs.detach()).requires_grad_()
    expected = call(torch.nn.functional, theirs, WEIGHTS)
    dy = torch.rand(expected.shape, dtype=torch.float64)
    if lying == "by channels":
        dy = dy.contiguous(memory_format=torch.channels_last)
    elif lying == "repeated":
        dy = dy[:, :, :1, :1].expand(expected.shape)
    (dx,) = torch.autograd.grad(expected, theirs, dy)

    def ours(x: Any, dy: Any) -> Any:
        y = call(F, x, {shape: flow.from_torch(w) for shape, w in WEIGHTS.items()})
        return y, *flow.autograd.grad(y, x, dy)

    class Told(nn.Graph):
        def build(self, x: Any, dy: Any) -> Any:
            told.extend(t.stride() for t in ours(x.requires_grad_(), dy))
            return x

    told: list[tuple[int, ...]] = []
    eager = [t.detach().to_torch() for t in ours(mine, flow.from_torch(dy))]
    Told()(mine.detach(), flow.from_torch(dy))
    assert torch.allclose(dx, eager[1])
    assert all(map(lies, eager, told))
    if name not in SHAPES_ALONE or lying == "by channels":  # of x they see nothing but its shape
        assert lies(eager[1], dx.stride())


IMAGES, COUNTED = torch.rand(2, 4, 6, 8), torch.tensor([0, 2])
LYING: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *(row for row in CALLS if row[0] not in ("linalg.lstsq", "kron")),  # these are as good as torch's
    *(("nn.functional." + name, (IMAGES, *args), {}) for name, args in [
        ("rms_norm", ((8,),)), ("layer_norm", ((6, 8),)), ("group_norm", (2,)), ("instance_norm", ()), ("glu", (1,)),
        ("pad", ((1, 2, 1, 1), "circular")), ("pixel_shuffle", (2,)), ("rrelu", (0.1, 0.3, False)), ("softmax", (1,)),
        ("rrelu", (0.1, 0.3, True)), ("avg_pool2d", (2,)), ("interpolate", (None, 2.0)), ("unfold", (2,)),
        ("linear", (torch.rand(3, 8),)), ("normalize", ()), ("scaled_dot_product_attention", (IMAGES, IMAGES)),
    ]),
    *((name, (IMAGES, *args), {}) for name, args in [
        ("index_copy", (1, COUNTED, IMAGES[:, :2])), ("index_add", (1, COUNTED, IMAGES[:, :2])), ("amax", (1,)),
        ("index_select", (1, COUNTED)), ("sort", (1,)), ("cumsum", (1,)), ("flip", ((1,),)), ("roll", (1, 1)),
        ("matmul", (torch.rand(8, 3),)), ("tril", ()), ("repeat_interleave", (2, 1)), ("topk", (2, 1)), ("var", (1,)),
        ("masked_fill", (IMAGES > 0.5, 1.0)), ("slice_scatter", (IMAGES[:, :2], 1, 0, 2)), ("unflatten", (1, (2, 2))),
    ]),
]  # fmt: skip


@TURNS
@pytest.mark.parametrize(("name", "args", "options"), LYING, ids=lambda v: v if isinstance(v, str) else "")
def test_results_lie_as_torchs(
    name: str, args: tuple[Any, ...], options: dict[str, Any], turn: tuple[int, ...]
) -> None:
    def turned(v: Any) -> Any:
        """The same values with their dimensions in another order in memory."""
        if not isinstance(v, torch.Tensor) or v.dim() < 2:
            return v.detach() if isinstance(v, torch.Tensor) else v
        order = [d - 4 + v.dim() for d in turn if d >= 4 - v.dim()]
        return v.detach().permute(order).contiguous().permute([order.index(d) for d in range(v.dim())])

    def mine(v: Any) -> Any:
        return flow.from_torch(v) if isinstance(v, torch.Tensor) else v

    given = [turned(v) for v in args]
    expected = listed(called(torch, name, tuple(given), options))
    found = listed(called(flow, name, tuple(map(mine, given)), {k: mine(v) for k, v in options.items()}))
    for e, f in zip(expected, found, strict=True):
        assert not isinstance(e, torch.Tensor) or lies(f.to_torch(), e.stride()), f"{f.stride()}, not {e.stride()}"


def test_channels_lie_innermost_only_where_a_kernel_lays_them_so() -> None:
    def of_norm(device: str) -> tuple[int, ...]:
        job = Job("norm")
        values = [Value(name, (2, 3, 8, 8), flow.float32, None, flow.device(device)) for name in "xyms"]
        order = Order(job, Memories())
        order.known[values[0]] = values[0].meta.contiguous(memory_format=torch.channels_last)
        job.append(Node("group_norm", "group_norm", (values[0], 3, None, None, 1e-5), tuple(values[1:])))
        return order.laid(values[1]).stride()

    assert of_norm("cpu") == (192, 1, 24, 3) and of_norm("cuda:0") == (192, 64, 8, 1)


@TURNS
@pytest.mark.parametrize("name", KEEPING)
def test_a_graph_drops_what_eager_calls_drop_of_results_in_another_order(name: str, turn: tuple[int, ...]) -> None:
    back = [turn.index(d) for d in range(4)]

    def dropped(x: Any) -> Any:
        return F.dropout(KEEPING[name](x.permute(turn).contiguous().permute(back)))

    class Dropping(nn.Graph):
        def build(self, x: Any) -> Any:
            return dropped(x)

    x = flow.rand(2, 3, 8, 8) + 1
    flow.manual_seed(1)
    expected = dropped(x)
    flow.manual_seed(1)
    assert ((Dropping()(x) == 0) == (expected == 0)).all()


READERS: dict[str, Callable[[Any], Any]] = {
    "conv": lambda x: F.conv2d(x, flow.ones(2, 3, 3, 3)),
    "dropout": F.dropout,
    "rand_like": lambda x: x + flow.rand_like(x),
    "is_contiguous": lambda x: x * x.is_contiguous(memory_format=flow.channels_last),
}


@pytest.mark.parametrize("name", READERS)
def test_a_parameter_lies_as_it_did_once_the_program_has_written_it(name: str) -> None:
    class Step(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            x = (flow.rand(2, 3, 4, 5) + 1).to(memory_format=flow.channels_last)
            self.held = nn.ParameterList([nn.Parameter(x)])
            self.optimizer = flow.optim.SGD(self.held.parameters(), lr=0.1)
            self.add_optimizer(self.optimizer)

        def build(self) -> Any:
            with flow.no_grad():
                self.held[0].clamp_(1.2, 1.6)
            loss = READERS[name](self.held[0]).square().sum()
            loss.backward()
            return loss

    flow.manual_seed(1)
    graph = Step()
    found = graph()
    flow.manual_seed(1)
    eager = Step()
    torch.testing.assert_close(found.item(), eager.build().item())
    eager.optimizer.step()
    assert graph.held[0].allclose(eager.held[0])


def test_a_group_norm_whose_weights_alone_want_gradients_does_not_crash() -> None:
    """Torch's kernel does, where channels are innermost."""
    x = torch.rand(2, 4, 8, 8, dtype=torch.float64).contiguous(memory_format=torch.channels_last)
    weight, bias = (torch.full((4,), n, dtype=torch.float64, requires_grad=True) for n in (1.0, 0.0))
    mine: Any = [flow.from_torch(t.detach()).requires_grad_() for t in (weight, bias)]
    torch.nn.functional.group_norm(x.contiguous(), 2, weight, bias).square().sum().backward()
    F.group_norm(flow.from_torch(x), 2, *mine).square().sum().backward()
    for t, m in zip((weight, bias), mine, strict=True):
        assert t.grad is not None and m.grad is not None and torch.allclose(t.grad, m.grad.to_torch())


def test_a_graph_trains_convolutions_of_global_tensors() -> None:
    """Whose strides aren't known as it is traced: the gradient of the second one asked for them without end."""
    one = flow.placement("cpu", ranks=[0])
    model = flow.nn.Sequential(flow.nn.Conv2d(3, 4, 3), flow.nn.Conv2d(4, 2, 3)).to_global(one, flow.sbp.broadcast)
    x = flow.randn(2, 3, 6, 6, placement=one, sbp=flow.sbp.broadcast)

    train = Trains(model, flow.optim.SGD(model.parameters(), lr=0.1))
    assert train(x).item() > train(x).item()
