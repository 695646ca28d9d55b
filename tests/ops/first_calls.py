"""A program of its own: the first calls of what people use, locally, globally and in graphs. It prints which of them
loaded torch's compiler or sympy.
"""

import functools
import sys
import warnings
from typing import Any

import weft as flow
from weft import nn
from weft.core.errors import WeftError

F = nn.functional
HEAVY = ("torch._dynamo", "torch._inductor", "sympy")
AT: dict[str, Any] = {}


def gl(t: Any) -> Any:
    return t.to_global(**AT) if AT else t


def lay(m: Any) -> Any:
    return m.to_global(**AT) if AT else m


def calls() -> dict[str, Any]:
    x, i = gl(flow.rand(4, 6)), gl(flow.tensor([1, 2, 0, 1]))
    im, c = gl(flow.rand(2, 3, 8, 8)), gl(flow.rand(2, 3, 16))
    v, sq = gl(flow.rand(9)), gl(flow.eye(3) + 1)
    return {
        "max_pool2d": lambda: F.max_pool2d(im, 2),
        "avg_pool2d": lambda: F.avg_pool2d(im, 2),
        "adaptive_avg": lambda: F.adaptive_avg_pool2d(im, 1),
        "adaptive_max": lambda: F.adaptive_max_pool2d(im, 1),
        "max_pool1d": lambda: F.max_pool1d(c, 2),
        "avg_pool1d": lambda: F.avg_pool1d(c, 2),
        "argmax": lambda: x.argmax(1),
        "argmax0": lambda: x.argmax(),
        "argmin": lambda: x.argmin(1),
        "max": lambda: x.max(),
        "maxd": lambda: x.max(1),
        "mind": lambda: x.min(1),
        "any": lambda: (x > 0).any(),
        "all": lambda: (x > 0).all(1),
        "sum": lambda: x.sum(1),
        "mean": lambda: x.mean(),
        "std": lambda: x.std(),
        "var": lambda: x.var(1),
        "prod": lambda: x.prod(1),
        "cumsum": lambda: x.cumsum(1),
        "cumprod": lambda: x.cumprod(1),
        "norm": lambda: x.norm(),
        "sort": lambda: x.sort(1),
        "argsort": lambda: x.argsort(1),
        "topk": lambda: x.topk(2),
        "kth": lambda: x.kthvalue(2),
        "median": lambda: x.median(),
        "unique": lambda: i.unique(),
        "nonzero": lambda: (x > 0.5).nonzero(),
        "index": lambda: x[i],
        "indexl": lambda: x[[0, 1]],
        "mask": lambda: x[x > 0.5],
        "slice": lambda: x[1:, ::2],
        "setitem": lambda: x.clone().__setitem__(0, 1.0),
        "setidx": lambda: x.clone().__setitem__(i, 1.0),
        "setmask": lambda: x.clone().__setitem__(x > 0.5, 1.0),
        "gather": lambda: x.gather(1, i[:, None]),
        "scatter": lambda: x.scatter(1, i[:, None], 1.0),
        "scatter_add": lambda: x.scatter_add(1, i[:, None], x),
        "index_select": lambda: x.index_select(0, i),
        "index_add": lambda: x.index_add(0, i, x),
        "index_fill": lambda: x.index_fill(0, i, 1.0),
        "masked_fill": lambda: x.masked_fill(x > 0.5, 0.0),
        "masked_select": lambda: x.masked_select(x > 0.5),
        "take": lambda: flow.take_along_dim(x, i[:, None], 1),
        "where": lambda: flow.where(x > 0.5, x, x),
        "cat": lambda: flow.cat([x, x]),
        "stack": lambda: flow.stack([x, x]),
        "split": lambda: x.split(2),
        "chunk": lambda: x.chunk(2),
        "tile": lambda: x.tile((2, 1)),
        "repeat": lambda: x.repeat(2, 1),
        "repi": lambda: x.repeat_interleave(2, 0),
        "flip": lambda: x.flip(0),
        "roll": lambda: x.roll(1, 0),
        "tril": lambda: x.tril(),
        "triu": lambda: x.triu(),
        "diag": lambda: sq.diag(),
        "diagonal": lambda: sq.diagonal(),
        "pad": lambda: F.pad(x, (1, 1)),
        "padr": lambda: F.pad(c, (1, 1), mode="reflect"),
        "one_hot": lambda: F.one_hot(i, 4),
        "unfold": lambda: F.unfold(im, 2),
        "fold": lambda: F.fold(gl(flow.rand(1, 4, 4)), (4, 4), 2, stride=2),
        "matmul": lambda: x @ x.t(),
        "einsum": lambda: flow.einsum("ij,kj->ik", x, x),
        "bmm": lambda: flow.bmm(c, c.transpose(1, 2)),
        "outer": lambda: flow.outer(v, v),
        "dot": lambda: v.dot(v),
        "tensordot": lambda: flow.tensordot(x, x.t(), 1),
        "linear": lambda: lay(nn.Linear(6, 4))(x),
        "conv2d": lambda: lay(nn.Conv2d(3, 4, 3))(im).sum().backward(),
        "conv1d": lambda: lay(nn.Conv1d(3, 4, 3))(c),
        "convT": lambda: lay(nn.ConvTranspose2d(3, 4, 3))(im),
        "bn": lambda: lay(nn.BatchNorm2d(3))(im).sum().backward(),
        "ln": lambda: lay(nn.LayerNorm(6))(x).sum().backward(),
        "gn": lambda: lay(nn.GroupNorm(3, 3))(im).sum().backward(),
        "in": lambda: F.instance_norm(im),
        "rms": lambda: F.rms_norm(x, (6,)),
        "emb": lambda: lay(nn.Embedding(9, 4))(i).sum().backward(),
        "lstm": lambda: lay(nn.LSTM(6, 5))(x[:, None])[0].sum().backward(),
        "gru": lambda: lay(nn.GRU(6, 5))(x[:, None])[0].sum().backward(),
        "enc": lambda: lay(nn.TransformerEncoderLayer(6, 2))(x[:, None]).sum().backward(),
        "mha": lambda: lay(nn.MultiheadAttention(6, 2))(x[:, None], x[:, None], x[:, None])[0].sum().backward(),
        "ce": lambda: F.cross_entropy(x, i),
        "nll": lambda: F.nll_loss(x.log_softmax(1), i),
        "mse": lambda: F.mse_loss(x, x),
        "bce": lambda: F.binary_cross_entropy(x, x),
        "bcel": lambda: F.binary_cross_entropy_with_logits(x, x),
        "smooth": lambda: F.smooth_l1_loss(x, x),
        "kl": lambda: F.kl_div(x, x),
        "cos": lambda: F.cosine_similarity(x, x),
        "interp": lambda: F.interpolate(im, scale_factor=2),
        "interpb": lambda: F.interpolate(im, scale_factor=2, mode="bilinear"),
        "grid": lambda: F.grid_sample(im, gl(flow.rand(2, 4, 4, 2))),
        "softmax": lambda: x.softmax(1),
        "gelu": lambda: F.gelu(x),
        "acts": lambda: [
            f(x)
            for f in (
                F.relu,
                F.silu,
                F.elu,
                F.selu,
                F.softplus,
                F.leaky_relu,
                F.hardtanh,
                F.mish,
                F.logsigmoid,
                F.hardswish,
                F.hardsigmoid,
                F.relu6,
                F.celu,
                F.softsign,
                F.tanhshrink,
            )
        ],
        "ew": lambda: [
            f(x)
            for f in (
                flow.exp,
                flow.log,
                flow.sqrt,
                flow.rsqrt,
                flow.sin,
                flow.cos,
                flow.tanh,
                flow.sigmoid,
                flow.abs,
                flow.neg,
                flow.erf,
                flow.floor,
                flow.ceil,
                flow.round,
                flow.sign,
                flow.isnan,
                flow.isinf,
                flow.reciprocal,
                flow.square,
            )
        ],
        "bin": lambda: [
            f(x, x)
            for f in (
                flow.add,
                flow.sub,
                flow.mul,
                flow.div,
                flow.pow,
                flow.maximum,
                flow.minimum,
                flow.fmod,
                flow.eq,
                flow.lt,
                flow.atan2,
                flow.floor_divide,
            )
        ],
        "clamp": lambda: x.clamp(0, 0.5),
        "lerp": lambda: flow.lerp(x, x, 0.5),
        "addcmul": lambda: flow.addcmul(x, x, x),
        "logsumexp": lambda: x.logsumexp(1),
        "cast": lambda: x.to(flow.float64),
        "arange": lambda: flow.arange(4, **AT),
        "full": lambda: flow.full((2,), 1.0, **AT),
        "linspace": lambda: flow.linspace(0, 1, 4, **AT),
        "eye": lambda: flow.eye(3, **AT),
        "like": lambda: flow.zeros_like(x),
        "fill_": lambda: x.clone().fill_(1.0),
        "zero_": lambda: x.clone().zero_(),
        "searchsorted": lambda: flow.searchsorted(v.sort()[0], v),
        "bincount": lambda: flow.bincount(i),
        "histc": lambda: flow.histc(v, 3),
        "meshgrid": lambda: flow.meshgrid(v, v),
        "inv": lambda: flow.linalg.inv(sq),
        "det": lambda: flow.linalg.det(sq),
        "svd": lambda: flow.linalg.svd(sq),
        "qr": lambda: flow.linalg.qr(sq),
        "solve": lambda: flow.linalg.solve(sq, sq),
        "chol": lambda: flow.linalg.cholesky(sq @ sq.t() + flow.eye(3, **AT)),
        "eigh": lambda: flow.linalg.eigh(sq),
        "fft": lambda: flow.fft.fft(x),
        "dropouts": lambda: [F.dropout(x), F.dropout2d(im), F.alpha_dropout(x, 0.5, True)],
        "bernoulli": lambda: flow.bernoulli(x),
        "multinomial": lambda: flow.multinomial(x, 2),
        "poisson": lambda: flow.poisson(x),
        "randn_like": lambda: flow.randn_like(x),
        "normal_": lambda: x.clone().normal_(),
        "adam": lambda: flow.optim.AdamW([nn.Parameter(x)]).step(),
        "sgd": lambda: flow.optim.SGD([nn.Parameter(x)], 0.1, momentum=0.9).step(),
        "clip": lambda: nn.utils.clip_grad_norm_([nn.Parameter(x)], 1.0),
    }


def wrong_calls() -> dict[str, Any]:
    x, i, v = gl(flow.rand(4, 6)), gl(flow.tensor([1, 2, 0, 1])), gl(flow.rand(9))
    return {
        **{
            f"wrong_{f.__name__}": lambda f=f: f(x, v)
            for f in (flow.add, flow.mul, flow.pow, flow.maximum, flow.matmul, flow.eq)
        },
        **{f"wrong_{f.__name__}": lambda f=f: f(x, v) for f in (F.mse_loss, F.cross_entropy, F.linear, F.embedding)},
        **{
            f"wrong_{f.__name__}": lambda f=f: f(x, 5)
            for f in (flow.sum, flow.softmax, flow.cumsum, flow.argmax, flow.flip)
        },
        "wrong_cat": lambda: flow.cat([x, v]),
        "wrong_stack": lambda: flow.stack([x, v]),
        "wrong_view": lambda: x.view(5, 5),
        "wrong_gather": lambda: x.gather(0, i),
        "wrong_linear": lambda: lay(nn.Linear(5, 4))(x),
        "wrong_large": lambda: gl(flow.rand(300, 400)) + gl(flow.rand(400, 300)),
    }


class Once(nn.Graph):
    def __init__(self, f: Any) -> None:
        super().__init__()
        self.f = f

    def build(self, z: Any) -> Any:
        self.f()
        return z * 1


def main() -> None:
    warnings.simplefilter("ignore")
    for where in ({}, {"placement": flow.placement("cpu", ranks=[0]), "sbp": flow.sbp.broadcast}):
        AT.clear()
        AT.update(where)
        z = gl(flow.ones(1))
        for name, f in [*calls().items(), *wrong_calls().items()]:
            for road in (f, functools.partial(Once(f), z)):
                try:
                    road()
                except WeftError:  # some have no place in a graph
                    assert road is not f or "wrong" in name
                else:
                    assert "wrong" not in name, name
                loaded = [m for m in HEAVY if m in sys.modules]
                if loaded:
                    print(f"{name} {sorted(AT)} loaded {loaded}")
                    return


main()
