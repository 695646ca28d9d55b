"""Which dtype ops run in under autocast, what is cached, and gradients: torch's, where it has the same rules."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import operator
import re
from typing import Any

import pytest
import torch

import weft as flow
from tests.functional import test_torch_calls, test_values
from weft.api.cast_rules import RULES
from weft.autograd.trees import mapped
from weft.core.dispatch import here, intercept
from weft.core.errors import OptionError
from weft.nn import functional as F
from weft.ops import OPS
from weft.tensor.tensor import of_torch
from weft.testing.cases import Passing, cases, copied
from weft.testing.layouts import replaced, tensors


def test_products_run_short_and_losses_in_full() -> None:
    x, w = flow.randn(4, 8), flow.randn(8, 8)
    with flow.autocast("cpu"):
        y = x @ w
        assert y.dtype is flow.bfloat16
        assert F.linear(x, w).dtype is flow.bfloat16
        assert F.conv1d(flow.ones(1, 2, 5), flow.ones(3, 2, 2)).dtype is flow.bfloat16
        q = x[None, None]
        assert F.scaled_dot_product_attention(q, q, q).dtype is flow.bfloat16
        assert F.cross_entropy(y, flow.tensor([0, 1, 2, 3])).dtype is flow.float32
        assert F.mse_loss(y, x).dtype is flow.float32
        assert F.sparse_softmax_cross_entropy(flow.tensor([0, 1, 2, 3]), y).dtype is flow.float32, "OneFlow's"
        assert F.relu(y).dtype is flow.bfloat16, "what costs no digits runs as it comes"
        assert (y + x[:, :8]).dtype is flow.float32
        assert (x.double() @ w.double()).dtype is flow.float64
        assert (x @ y.T).dtype is flow.bfloat16, "mixed operands"
    assert (x @ w).dtype is flow.float32


def dtypes_of(y: Any) -> Any:
    return [dtypes_of(v) for v in y] if isinstance(y, (tuple, list)) else str(getattr(y, "dtype", y)).rpartition(".")[2]


rand = functools.partial(torch.rand, dtype=torch.float64)
V = rand(5)
LONE = [rand(()), torch.tensor(0)]
FOR_PICTURES = rand(1, 2, 6, 6, 6)
MORE: list[tuple[str, Any, Any]] = [
    ("addmm", (rand(3, 5), rand(3, 4), rand(4, 5)), {}), ("mv", (rand(3, 4), rand(4)), {}), ("dot", (V, V), {}),
    ("inner", (V, V), {}), ("stack", ([rand(3), rand(3).bfloat16()],), {}),
    ("index_copy", (V, 0, LONE[1], LONE[0].bfloat16()), {}), ("prelu", (V, V[:1]), {}),
    *((f"nn.functional.{name}", (V, V.sigmoid().round()), {}) for name in
      ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "hinge_embedding_loss", "kl_div",
       "poisson_nll_loss", "binary_cross_entropy_with_logits")),
    ("nn.functional.margin_ranking_loss", (V, V, V.sign()), {}), ("nn.functional.multi_margin_loss", LONE, {}),
    ("nn.functional.multilabel_margin_loss", LONE, {}), ("nn.functional.cross_entropy", (V, V.softmax(0)), {}),
    *((f"nn.functional.{name}", (FOR_PICTURES, 2), {}) for name in ("avg_pool3d", "max_pool3d", "adaptive_avg_pool3d")),
    *((f"nn.functional.{name}", (FOR_PICTURES[0, 0, 0], -1), {}) for name in ("softmax", "log_softmax", "normalize")),
    ("nn.functional.pad", (FOR_PICTURES[0], (1, 1), "reflect"), {}), ("qr", (rand(3, 3),), {}),
    ("nn.functional.layer_norm", (rand(3, 4), (4,), rand(4)), {}), ("nn.functional.rms_norm", (rand(3, 4), (4,)), {}),
    ("nn.functional.group_norm", (rand(2, 4), 2), {}),
    ("nn.functional.bilinear", (rand(3, 4), rand(3, 5), rand(2, 4, 5)), {}),
    *((name, (rand(3, 4).abs(),), {}) for name in ("sum", "mean", "prod", "exp", "log", "rsqrt", "var", "pinverse")),
]  # fmt: skip
SHORT = torch.bfloat16, torch.float16
OTHERWISE = {
    "linalg.pinv",  # torch's is composed of products
    "einsum",  # torch's, where nothing is summed, is no product
}


WRITTEN = {"nll_loss2d": "nll_loss", "cross_entropy_loss": "cross_entropy", "grid_sampler": "grid_sample",
           "multilabel_margin_loss_forward": "multilabel_margin_loss", "inverse": "inv", "conv_tbc": None,
           "grid_sampler_2d": "grid_sample", "grid_sampler_3d": "grid_sample", "convolution": None,
           "native_layer_norm": "layer_norm", "fake_quantize_per_tensor_affine": None, "mkldnn_rnn_layer": "lstm_scan",
           "fractional_max_pool2d": "fractional_max_pool2d_at", "fractional_max_pool3d": "fractional_max_pool3d_at",
           "reflection_pad": "pad_edges", "replication_pad": "pad_edges", "upsample": "interpolate",
           "householder_product": "orgqr", "lstm_cell": "lstm_scan", "gru_cell": "gru_scan",
           "rnn_tanh_cell": "rnn_scan",
           "rnn_relu_cell": "rnn_scan", "matrix_sqrth": None}  # fmt: skip
ANSWERED = {"cond", "eigvalsh", "matrix_rank", "svdvals", "tensorinv", "tensorsolve"}  # by ops that have rules


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_function_that_torch_casts_has_a_rule(kind: str) -> None:
    key = f"Autocast{kind.upper()}"
    found = [n.partition(".")[0] for n in torch._C._dispatch_get_all_op_names()
             if n.startswith("aten::") and torch._C._dispatch_has_kernel_for_dispatch_key(n, key)]  # fmt: skip
    assert len(found) > 90
    names = {re.sub(r"^aten::(linalg_|fft_)?|(?<=_pad)[123]d$|(?<=^aten::upsample)_.*", "", n) for n in found}
    ours = {WRITTEN.get(n, n) for n in names if not re.match("_|cudnn_", n)} - {None}
    assert ours <= {*RULES[kind], *ANSWERED}


@pytest.mark.filterwarnings("ignore")
def test_a_call_has_torchs_dtypes() -> None:
    different = []
    for name, args, options in (*test_values.CALLS, *test_torch_calls.CALLS, *MORE):
        ours, theirs = (
            operator.attrgetter(name)(lib) if hasattr(lib, name.split(".")[0]) else None for lib in (flow, torch)
        )
        if ours is None or name in OTHERWISE:
            continue
        for given, short in itertools.product((torch.float32, *SHORT), SHORT):
            own = mapped(
                (args, options), lambda t, to=given: t.to(to) if getattr(t, "dtype", None) is torch.float64 else t
            )
            try:
                with torch.autocast("cpu", dtype=short):
                    expected = dtypes_of(theirs(*own[0], **own[1]))
            except RuntimeError:  # torch has no kernel for it
                continue
            args_, options_ = mapped(own, lambda t: of_torch(t.clone()) if isinstance(t, torch.Tensor) else t)
            with flow.autocast("cpu", dtype=getattr(flow, str(short)[6:])):
                got = dtypes_of(ours(*args_, **options_))
            if got != expected:
                different.append((name, given, short, got, expected))
    assert not different, "\n".join(map(str, different))


def test_a_networks_outputs_and_gradients_are_torchs() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    ours = flow.nn.Sequential(flow.nn.Linear(8, 16), flow.nn.ReLU(), flow.nn.Linear(16, 4))
    ours.load_state_dict({k: of_torch(v.clone()) for k, v in theirs.state_dict().items()})
    x, target = torch.randn(32, 8), torch.randint(0, 4, (32,))
    with torch.autocast("cpu"):
        expected = torch.nn.functional.cross_entropy(theirs(x), target)
    expected.backward()
    with flow.autocast("cpu"):
        loss = F.cross_entropy(ours(of_torch(x)), of_torch(target))
    loss.backward()
    torch.testing.assert_close(loss.detach().to_torch().float(), expected.detach().float(), rtol=1e-2, atol=1e-2)
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert p.grad is not None and q.grad is not None and q.grad.dtype is flow.float32
        torch.testing.assert_close(q.grad.to_torch(), p.grad, rtol=2e-2, atol=2e-3)


class Attending(torch.nn.Module):
    """Attention with dropout or with a mask that is trained, gates, a norm, and a convolution before them."""

    def __init__(self, dropout: float, masked: bool) -> None:
        super().__init__()
        self.patches, self.norm = torch.nn.Conv1d(3, 8, 2, 2), torch.nn.LayerNorm(8)
        self.qkv, self.up, self.down = torch.nn.Linear(8, 24), torch.nn.Linear(8, 16), torch.nn.Linear(8, 8)
        self.mask = torch.nn.Parameter(torch.randn(2, 6, 6)) if masked else None
        self.dropout = dropout

    def forward(self, x: Any) -> Any:
        x = self.patches(x).transpose(1, 2)
        q, k, v = (t.view(len(x), 6, 2, 4).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, self.mask, self.dropout, self.mask is None)
        x = x + y.transpose(1, 2).reshape(len(x), 6, 8)
        a, b = self.up(x).chunk(2, -1)
        return (self.down(torch.tanh(a + 0.1 * a**3) * a * torch.sigmoid(b)) + x).square().mean()


@pytest.mark.parametrize(("dropout", "masked"), [(0.0, False), (0.1, False), (0.0, True), (0.1, True)])
def test_attention_and_gates_have_torchs_gradients_to_the_last_bit(dropout: float, masked: bool) -> None:
    torch.manual_seed(0)
    theirs, x = Attending(dropout, masked), torch.randn(2, 3, 12)
    ours = flow.from_torch(copy.deepcopy(theirs))
    torch.manual_seed(1)
    with torch.autocast("cpu"):
        expected = theirs(x)
    flow.manual_seed(1)
    with flow.autocast("cpu"):
        loss = ours(flow.from_torch(x))
    expected.backward()
    loss.backward()
    assert torch.equal(loss.detach().to_torch(), expected.detach())
    for (name, p), q in zip(theirs.named_parameters(), ours.parameters(), strict=True):
        assert torch.equal(q.grad.to_torch(), p.grad), name


def test_a_parameter_is_cast_once_in_a_context() -> None:
    layer, x = flow.nn.Linear(4, 4, bias=False), flow.ones(2, 4)
    with flow.autocast("cpu") as cast:
        layer(x), layer(x)
        assert len(cast._casts) == 1
        with flow.no_grad():
            layer(x)  # a cast without a tape must not serve calls that are recorded
        layer(x).float().sum().backward()
        first = layer.weight.grad
        assert first is not None
        layer(x).float().sum().backward()  # the first backward has released the cast
        assert layer.weight.grad.equal(2 * flow.ones(4, 4) * 2)  # type: ignore[union-attr]
        flow.optim.SGD(layer.parameters(), lr=1.0).step()
        assert layer(x).allclose((x @ layer.weight.T).bfloat16(), atol=0.1), "a parameter that moved is cast anew"
        flow.clear_autocast_cache()
        assert not cast._casts
        layer(x)
    assert not cast._casts


def test_the_innermost_decides() -> None:
    x = flow.ones(2, 2)
    assert not flow.is_autocast_enabled()
    with flow.autocast("cpu"):
        with flow.autocast("cpu", enabled=False):
            assert (x @ x).dtype is flow.float32 and not flow.is_autocast_enabled()
        with flow.autocast("cpu", dtype=flow.float16):
            assert (x @ x).dtype is flow.float16 and flow.get_autocast_cpu_dtype() is flow.float16
        with flow.autocast("cuda"):
            assert (x @ x).dtype is flow.bfloat16, "this one is for another device: each has its own"
        assert flow.is_autocast_enabled() and flow.is_autocast_cache_enabled()
    assert flow.get_autocast_gpu_dtype() is flow.float16


RULED = sorted(n for n, op in OPS.items() if n in RULES["cpu"] and cases(op) and not (op.conversion or op.writes))


@pytest.mark.parametrize("name", RULED)
def test_the_fast_path_casts_as_the_general_one(name: str) -> None:
    op = OPS[name]
    for args in cases(op):
        found = []
        for general in (False, True):
            given = [t.float() if t.dtype is torch.float64 else t for t in tensors(op, copied(op, args))]
            mine = [of_torch(t) for t in given]
            for t in mine:
                t.requires_grad = t.dtype.differentiable
            with flow.autocast("cpu"), intercept(Passing()) if general else contextlib.nullcontext():
                out = op(*replaced(op, args, mine))
            out = out if isinstance(out, tuple) else (out,)
            roots = [y for y in out if y.requires_grad]
            if roots:
                flow.autograd.backward(roots, [flow.ones_like(y) for y in roots])
            every = [*out, *(t.grad for t in mine if t.grad is not None)]
            found.append([(y.dtype, y.to_torch().nan_to_num().tolist()) for y in every])
        assert found[0] == found[1]


def test_modes_inside_each_other_come_back_in_order() -> None:
    """Autocast leaves the fast path open, other modes close it, whichever is around the other."""
    x = flow.ones(2, 2, requires_grad=True)
    modes = lambda: flow.autocast("cpu"), lambda: intercept(Passing()), flow.no_grad
    for outer, inner in itertools.permutations(modes, 2):
        with outer():
            around = here.plain, here.casting
            with inner():
                assert bool(here.casting) is any(isinstance(i, flow.autocast) for i in here.stack)
                assert here.plain is not any(isinstance(i, Passing) for i in here.stack)
                assert (x @ x).dtype is (flow.bfloat16 if here.casting else flow.float32)
            assert (here.plain, here.casting) == around
        assert here.plain and not here.casting and (x @ x).dtype is flow.float32


def test_it_decorates() -> None:
    @flow.autocast("cpu", dtype=flow.bfloat16)
    def product(x: flow.Tensor) -> flow.Tensor:
        """Its own text."""
        return x @ x

    assert product(flow.ones(2, 2)).dtype is flow.bfloat16
    assert product.__doc__ == "Its own text."
    assert flow.autocast_decorator("cpu")(lambda x: x @ x)(flow.ones(2, 2)).dtype is flow.bfloat16


def test_global_tensors_are_cast_too() -> None:
    here = flow.placement("cpu", ranks=[0])
    x = flow.ones(2, 2, placement=here, sbp=flow.sbp.broadcast)
    with flow.autocast("cpu"):
        assert (x @ x).dtype is flow.bfloat16


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="device types cpu, cuda"):
        flow.autocast("tpu")
    with pytest.raises(OptionError, match="16-bit dtype"):
        flow.autocast("cpu", dtype=flow.float64)


def test_what_an_autocast_takes_can_be_set_and_told() -> None:
    try:
        flow.set_autocast_cpu_dtype(flow.float16)
        assert flow.get_autocast_cpu_dtype() is flow.float16
        with flow.autocast("cpu"):
            assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float16
            flow.set_autocast_cache_enabled(False)
            assert not flow.is_autocast_cache_enabled()
        assert flow.is_autocast_cache_enabled() and flow.amp.is_autocast_available("cpu")
        with pytest.raises(flow.errors.OptionError, match="16-bit"):
            flow.set_autocast_cpu_dtype(flow.float32)
    finally:
        flow.set_autocast_cpu_dtype(flow.bfloat16)


def test_an_autocast_without_a_with_ends_with_the_one_around() -> None:
    with flow.autocast("cpu", enabled=False):
        flow.set_autocast_enabled("cpu", True)
        assert flow.is_autocast_enabled("cpu") and not flow.is_autocast_enabled("cuda")
        assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.bfloat16
        flow.set_autocast_enabled("cpu", False)
        assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float32
    assert not flow.is_autocast_enabled() and (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float32


@pytest.mark.parametrize("device_type", ["cpu", "cuda"])
@pytest.mark.parametrize("cast", [True, False])
@pytest.mark.parametrize("forth", [True, False])
@pytest.mark.parametrize("back", [True, False])
def test_a_function_of_ones_own_says_its_dtype_as_torchs(device_type: str, cast: bool, forth: bool, back: bool) -> None:
    def run(m: Any) -> list[Any]:
        seen: list[Any] = []

        class Double(m.autograd.Function):
            @staticmethod
            @m.amp.custom_fwd(device_type=device_type, cast_inputs=m.float32 if cast else None)
            def forward(ctx: Any, x: Any) -> Any:
                seen.append((str(x.dtype).rpartition(".")[2], m.is_autocast_enabled("cpu")))
                return x * 2

            @staticmethod
            @m.amp.custom_bwd(device_type=device_type)
            def backward(ctx: Any, dy: Any) -> Any:
                seen.append((str(dy.dtype).rpartition(".")[2], m.is_autocast_enabled("cpu")))
                return dy * 2

        x = m.ones(2, requires_grad=True)
        with m.autocast("cpu", enabled=forth):
            y = Double.apply(x.bfloat16())
        with m.autocast("cpu", enabled=back):
            y.sum().backward()
        return [*seen, x.grad.tolist()]

    assert run(flow) == run(torch)
