"""`out`, `layout` and `pin_memory`, which PyTorch's functions take: results go where they should, or errors say why."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from bench import fuzz
from weft.core.errors import ArgumentError, DtypeError, OptionError, ShapeError, WeftError
from weft.tensor.tensor import of_torch

CALLS = """
    lib.add(a, b, out=c)
    lib.add(input=a, other=b, alpha=2, out=c)
    lib.sub(a, 1, out=c)
    lib.mul(a, 2.0, out=c)
    lib.div(a, b, rounding_mode="floor", out=c)
    lib.pow(a, 2, out=c)
    lib.sin(a, out=c)
    lib.clamp(a, 0.0, 1.0, out=c)
    lib.cumsum(a, 0, out=c)
    lib.where(a > 0, a, b, out=c)
    lib.lerp(a, b, 0.5, out=c)
    lib.addcmul(a, a, b, value=2, out=c)
    lib.maximum(a, b, out=c)
    lib.sigmoid(a, out=c)
    lib.round(a, decimals=1, out=c)
    lib.nan_to_num(a, out=c)
    lib.cat([a, b], out=lib.zeros(6))
    lib.cat([a, b], 0, out=lib.empty(0))
    lib.stack([a, b], dim=1, out=lib.empty(3, 2))
    lib.sum(m, 0, out=c)
    lib.sum(m, dim=1, keepdim=True, out=lib.empty(3, 1))
    lib.mean(m, 0, out=c)
    lib.std(m, 0, out=c)
    lib.amax(m, dim=0, out=c)
    lib.logsumexp(m, 0, out=c)
    lib.any(m > 0, 0, out=lib.empty(3, dtype=lib.bool))
    lib.matmul(m, m, out=lib.empty(3, 3))
    lib.mm(m, m, out=lib.empty(0))
    lib.addmm(m, m, m, beta=2, out=lib.empty(3, 3))
    lib.bmm(m[None], m[None], out=lib.empty(1, 3, 3))
    lib.mv(m, a, out=c)
    lib.outer(a, b, out=lib.empty(3, 3))
    lib.gt(a, b, out=lib.empty(3, dtype=lib.bool))
    lib.logical_and(a > 0, b > 0, out=lib.empty(3, dtype=lib.bool))
    lib.argmax(m, 0, out=lib.empty(3, dtype=lib.int64))
    lib.gather(a, 0, lib.tensor([1, 0, 2]), out=c)
    lib.index_select(m, 0, lib.tensor([0]), out=lib.empty(1, 3))
    lib.take(m, lib.tensor([3, 1]), out=lib.empty(2))
    lib.tril(m, out=lib.empty(3, 3))
    lib.diag(m, out=c)
    lib.norm(m, dim=0, out=c)
    lib.linalg.norm(m, dim=0, out=c)
    lib.linalg.inv(m, out=lib.empty(3, 3))
    lib.linalg.solve(m, a, out=c)
    lib.linalg.cholesky(m @ m.T, out=lib.empty(3, 3))
    lib.fft.rfft(a, out=lib.empty(2, dtype=lib.complex64)).abs()
    lib.topk(a, 2, out=(lib.empty(2), lib.empty(2, dtype=lib.int64))).indices
    lib.sort(a, out=(lib.empty(3), lib.empty(3, dtype=lib.int64)))[0]
    lib.max(m, 0, out=(lib.empty(3), lib.empty(3, dtype=lib.int64)))[1]
    lib.zeros(3, out=c)
    lib.ones((3,), out=c)
    lib.full((3,), 2.5, out=c)
    lib.arange(3.0, out=c)
    lib.linspace(0, 1, 3, out=c)
    lib.eye(3, out=lib.empty(3, 3))
    lib.add(a, b, out=lib.empty(3, dtype=lib.float64))
    lib.zeros(2, layout=lib.strided, pin_memory=False)
    lib.empty(2, layout=lib.strided).shape
    lib.arange(4, layout=lib.strided)
    lib.full((2,), 1.0, layout=lib.strided, pin_memory=False)
    lib.tensor([1.0], pin_memory=False)
    lib.eye(2, layout=lib.strided)
    lib.linspace(0, 1, 3, layout=lib.strided)
    lib.zeros_like(a, layout=lib.strided, pin_memory=False)
    a.new_zeros(2, layout=lib.strided)
"""


def given(lib: Any, call: str) -> tuple[Any, Any]:
    values = torch.tensor([0.5, -1.5, 2.0]), torch.tensor([1.0, 2.0, -0.5]), torch.zeros(3), torch.eye(3) * 2 + 0.25
    made = values if lib is torch else [of_torch(t.clone()) for t in values]
    space = {"lib": lib, **dict(zip("abcm", (t.clone() for t in made), strict=True))}
    got = eval(call, space)
    return got, space["c"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_a_result_goes_where_torchs_goes(call: str) -> None:
    (theirs, where), (ours, here) = given(torch, call), given(flow, call)
    assert (theirs is where) == (ours is here)
    if not isinstance(theirs, torch.Tensor):
        assert tuple(ours) == tuple(theirs)
        return
    torch.testing.assert_close(ours.to_torch(), theirs)
    torch.testing.assert_close(here.to_torch(), where)


def test_the_memory_is_the_given_ones() -> None:
    c = flow.zeros(3)
    place = c.data_ptr()
    assert flow.exp(flow.zeros(3), out=c) is c and c.data_ptr() == place and c.tolist() == [1.0] * 3
    view = flow.zeros(2, 3)
    flow.add(flow.ones(3), 1, out=view[1])
    assert view.tolist() == [[0.0] * 3, [2.0] * 3]


def test_in_a_graph_and_over_ranks() -> None:
    class Sum(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            c = flow.zeros_like(x)
            flow.add(x, x, out=c)
            return c * 2

    assert Sum()(flow.ones(2)).tolist() == [4.0, 4.0]
    everywhere = {"placement": flow.placement("cpu", [0]), "sbp": flow.sbp.broadcast}
    c = flow.zeros(2, **everywhere)
    assert flow.matmul(flow.eye(2, **everywhere), flow.ones(2, **everywhere), out=c) is c and c.numpy().sum() == 2


def test_what_cannot_be() -> None:
    a = flow.ones(3)
    for call, error in (
        (lambda: flow.add(a, a, out=flow.zeros(2)), ShapeError),
        (lambda: flow.add(a, a, out=flow.zeros(3, dtype=flow.int64)), DtypeError),
        (lambda: flow.add(a, a, out=[1]), ArgumentError), (lambda: flow.topk(a, 1, out=a), ArgumentError),
        (lambda: flow.zeros(2, layout="sparse"), OptionError),
        (lambda: flow.add(a, a, layout=flow.strided), ArgumentError),
        (lambda: flow.add(a, a, out=flow.zeros(3, requires_grad=True)), WeftError),
        (lambda: flow.add(a, a, wrong=1, out=a), ArgumentError),
    ):  # fmt: skip
        with pytest.raises(error):
            call()
    assert flow.add(a, a, out=None).tolist() == [2.0] * 3


def test_what_overwrites_has_no_other_place_for_its_result() -> None:
    names = [n for n in dir(torch.Tensor) if n.endswith("_") and not n.startswith("_") and hasattr(flow.Tensor, n)]
    held = 0
    for name in names:
        for args in ((), (1,), (0, 1)):
            x = flow.ones(1, 3)
            try:
                getattr(x.clone(), name)(*args)
            except (WeftError, TypeError):
                continue
            held += 1
            with pytest.raises((WeftError, TypeError)):  # Python's own of methods written as such
                getattr(x, name)(*args, out=flow.zeros(1, 3))
            assert x.tolist() == [[1, 1, 1]], name
    assert held > 100


@pytest.mark.parametrize("split", [flow.hsplit, flow.vsplit, flow.dsplit])
def test_parts_that_a_tensor_counts_are_of_one_size(split: Any) -> None:
    x = flow.ones(4, 4, 4)
    assert len(split(x, flow.tensor(2))) == 2 and len(split(x, flow.tensor([1, 3]))) == 3
    for three in (3, flow.tensor(3)):
        with pytest.raises(ShapeError, match="is not divisible by the split_size 3"):
            split(x, three)


def test_parts_of_nothing_and_places_that_are_none() -> None:
    for lib in (torch, flow):
        assert lib.split_with_sizes(lib.ones(0, 2), []) == lib.ones(0).split([]) == ()
        for dtype in (lib.complex64, lib.float32, lib.int16):
            x = lib.ones(2)
            for put in (lib.index_put, lib.Tensor.index_put_):
                with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
                    put(x, [lib.ones(1).to(dtype)], lib.ones(1))
            assert x.tolist() == [1, 1]


OTHERS = (torch.float64, torch.float16, torch.int64, torch.bool, torch.complex64)
# torch has two rules, by a number or by a tensor; it writes a factor's own dtype into any out
TWO_RULES = ("cholesky", "lerp")


@pytest.mark.filterwarnings("ignore")
def test_an_out_of_another_dtype_is_refused_where_torch_refuses_it() -> None:
    made, held = fuzz.Maker(0), 0
    # torch's write where they mustn't
    for name in [n for n in made.names if n.startswith("flow.") and "pool" not in n]:
        ours, theirs = made.pairs[name]
        for op, row in made._rows(name)[:1]:
            args = [fuzz.twin(a) for a in made._copied(op, row)]
            try:
                want = theirs(*args)
                theirs(*args, out=want.clone())
            except (TypeError, RuntimeError, AttributeError):
                continue
            for dtype in OTHERS:
                if dtype is want.dtype or name.partition(".")[2] in TWO_RULES:
                    continue
                held += 1
                out, mine = (torch.zeros(want.shape, dtype=dtype) for _ in range(2))
                try:
                    theirs(*args, out=out)
                except NotImplementedError:  # torch has no kernel for it
                    continue
                except (RuntimeError, TypeError):
                    with pytest.raises(WeftError):
                        ours(*made._copied(op, row), out=of_torch(mine))
                else:
                    ours(*made._copied(op, row), out=of_torch(mine))
                    torch.testing.assert_close(mine, out, equal_nan=True)
    assert held > 500


def test_several_outs_and_those_of_what_is_composed_have_the_results_dtypes() -> None:
    x, double = flow.ones(3), flow.zeros((), dtype=flow.float64)
    for call in (
        lambda: flow.aminmax(x, out=(double, double)),
        lambda: flow.complex(x, x, out=flow.zeros(3, dtype=flow.complex128)),
        lambda: flow.polar(x, x, out=flow.zeros(3, dtype=flow.complex128)),
        lambda: flow.frexp(x, out=(flow.zeros(3, dtype=flow.float64), flow.zeros(3, dtype=flow.int32))),
    ):
        with pytest.raises(DtypeError, match="Expected out tensor to have dtype"):
            call()


KINDS = ("float64", "float16", "float32", "int64", "int32", "bool", "complex64")
# those with an out that are no single op, and those that compute in the dtype of the out
COMPOSED = """
    arange(6)
    arange(6, dtype=lib.float32)
    range(0, 5)
    eye(2, 3)
    zeros(2, 3)
    zeros((2, 3), dtype=lib.float32)
    ones(2, 3)
    empty(2, 3).shape
    full((2, 3), 2)
    linspace(0, 5, 6)
    logspace(0, 1, 6)
    randn(2, 3)
    rand(2, 3)
    randint(0, 5, (2, 3))
    randperm(6)
    normal(0.0, 1.0, (2, 3))
    normal(x, x)
    sum(x, 0)
    sum(x, 0, dtype=lib.float32)
    sum(x.long(), 0)
    prod(x, 0)
    cumsum(x, 0)
    cumsum(x.long(), 0)
    cumprod(x, 0)
    cumprod(x, 0, dtype=lib.float32)
    nansum(x, 0)
    mean(x, 0)
    nanmean(x, 0)
    hstack([x, x])
    concat([x, x])
    outer(x[0], x[1])
    diff(x)
    renorm(x, 1, 0, 5)
    matmul(x, x.T)
    tensordot(x, x.T, 1)
    linalg.norm(x)
    linalg.vector_norm(x)
    linalg.matrix_power(x[:, :2], 2)
    linalg.multi_dot([x, x.T, x])
    chain_matmul(x, x.T)
    inner(x, x)
    masked_select(x, x > 1)
    take(x, lib.tensor([0, 3]))
    quantile(x, 0.5)
    nanquantile(x, 0.5, dim=0)
    isin(x, x)
    bucketize(x, x[0])
    histc(x, 4)
    take_along_dim(x, lib.tensor([[0], [1]]), 1)
    float_power(x, 2)
    msort(x)
    nonzero(x)
    tril(x)
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [line.strip() for line in COMPOSED.strip().splitlines()])
def test_an_out_of_each_dtype_is_taken_or_refused_as_torchs(call: str) -> None:
    held = 0
    for kind in KINDS:
        got: list[Any] = []
        for lib in (torch, flow):
            lib.manual_seed(3)
            x, o = lib.tensor([[0.25, 1.5, 0.5], [0.75, 2.0, 0.875]]), lib.empty(0, dtype=getattr(lib, kind))
            ends = call.rindex(")")
            try:
                y = eval(f"lib.{call[:ends]}, out=o{call[ends:]}", {"lib": lib, "x": x, "o": o})
            except (RuntimeError, TypeError, NotImplementedError, WeftError):
                got.append(None)
                continue
            assert y is o or isinstance(y, tuple)
            got.append(y if isinstance(y, (torch.Tensor, tuple)) else y.to_torch())
        theirs, ours = got
        if theirs is None and ours is not None:
            assert (call.split("(")[0], kind) in WIDER, kind
        elif theirs is not None:
            held += 1
            assert ours is not None, kind
            if isinstance(theirs, torch.Tensor):
                torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=1e-6)
            else:
                assert tuple(ours) == tuple(theirs)
    assert held


# torch has no kernels for these
WIDER = {("cumsum", "bool"), ("cumprod", "bool"), ("nansum", "complex64"), ("nanmean", "complex64")}


def test_a_result_in_out_is_rounded_once_as_torchs() -> None:
    """Where torch has one kernel: optimizers iterate so in bfloat16."""
    x = torch.randn(8, 8, generator=torch.Generator().manual_seed(0)).bfloat16()

    def products(lib: Any, x: Any) -> list[Any]:
        y = lib.empty_like(x)
        lib.addmm(x, x, x, beta=-4.775, alpha=2.0315, out=y)
        return y.float().tolist()

    assert products(flow, flow.from_torch(x)) == products(torch, x)
