"""What is told where to write writes there, however its operands lie: for float32, too, of which oneDNN has kernels."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Calls
from weft import nn
from weft.ops import OPS
from weft.ops.neural import attention
from weft.testing import registry

NAMES = [name for name, op in OPS.items() if op.out_kernel is not None and not op.random]


def lying(a: Any, turned: bool) -> Any:
    """The same numbers, in float32, in order of memory or in the order of their transpose."""
    if isinstance(a, torch.Tensor):
        a = a.float() if a.dtype is torch.float64 else a
        return a.transpose(0, -1).contiguous().transpose(0, -1) if turned and a.dim() > 1 else a
    return type(a)(lying(v, turned) for v in a) if isinstance(a, (list, tuple)) else a


def as_room(want: Any) -> Any:
    """Tensors to write to; of results that may be absent, only those that aren't."""
    if isinstance(want, torch.Tensor):
        return torch.ones(want.shape, dtype=want.dtype)
    return [None if t is None else as_room(t) for t in want]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_results_are_those_of_the_kernel(name: str, turned: bool) -> None:
    op: Any = OPS[name]
    for case in registry.cases(op):
        args = lying(case, turned)
        cut = len(args) - len(op.keywords)
        want = op.kernel(*args[:cut], **dict(zip(op.keywords, args[cut:], strict=True)))
        for prepared in (False, True):
            out = as_room(want)
            outs = [out] if isinstance(out, torch.Tensor) else out
            found = op.prepare(*outs, *args) if prepared and op.prepare is not None else None
            for function, positional, keywords in found if isinstance(found, list) else [found] if found else []:
                function(*positional, **keywords)
            if not found:
                op.out_kernel(out, *args)
            torch.testing.assert_close(
                outs, [want] if isinstance(want, torch.Tensor) else list(want), rtol=1e-4, atol=1e-5, equal_nan=True
            )


@pytest.mark.parametrize(
    "batch, mask, width, dtype",
    [
        (8, None, 64, torch.float32),
        (5, (5, 4, 128, 128), 64, torch.float32),
        (5, (1, 1, 128, 128), 64, torch.float32),
        (7, (128,), 64, torch.float32),
        (3, (3, 1, 1, 128), 64, torch.bool),
        (5, (5, 1, 128, 1), 32, torch.float32),  # values are narrower than keys: without the fused kernel
    ],
)
def test_gradients_of_attention_are_those_of_the_whole_batch(
    batch: int, mask: tuple[int, ...] | None, width: int, dtype: torch.dtype
) -> None:
    """A large batch is done a part at a time, or if memory is short, some heads at a time."""
    torch.manual_seed(batch)
    forward: Any = OPS["scaled_dot_product_attention"]
    grad: Any = OPS["attention_grad"]
    q, k, v = (torch.randn(batch, 4, 128, n) for n in (64, 64, width))
    added = None if mask is None else torch.randn(mask) if dtype.is_floating_point else torch.rand(mask) < 0.9
    for causal, sparing in itertools.product((False, True), (False, True)):
        y, logsumexp = forward.kernel(q, k, v, added, causal)
        args = torch.randn(y.shape), q, k, v, y, logsumexp, added, causal, None, sparing
        want = grad.kernel(*args)
        out = as_room(want)
        grad.out_kernel(out, *args)
        torch.testing.assert_close(out, list(want), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tokens", [128, 150, 321])
def test_causal_gradients_by_blocks_are_those_of_torch(
    tokens: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one thread; their first block may be a smaller one, and their memory may be slices of another."""
    torch.manual_seed(tokens)
    blocks: list[int] = []
    products: Any = attention._products
    monkeypatch.setattr(attention, "_products", lambda *args: blocks.append(products(*args)))
    q, k, v = (t.requires_grad_() for t in torch.randn(2, tokens, 3, 192, dtype=dtype).transpose(1, 2).chunk(3, -1))
    dy = torch.randn(2, tokens, 3, 64, dtype=dtype).transpose(1, 2)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.2)
    want = torch.autograd.grad(y, (q, k, v), dy)
    op: Any = OPS["attention_grad"]
    with torch.no_grad():
        _, logsumexp = OPS["scaled_dot_product_attention"].kernel(q, k, v, None, True, 0.2)
        args = dy, q, k, v, y, logsumexp, None, True, 0.2, False
        into = torch.full((2, tokens, 3, 192), torch.nan, dtype=dtype).transpose(1, 2).chunk(3, -1)
        op.out_kernel(into, *args)
        found = op.kernel(*args)
        assert len(blocks) == 2
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(into, found, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(8,), (1, 8), (4, 8), (2, 4, 8)])
def test_a_graph_adds_a_bias_that_is_no_vector(shape: tuple[int, ...]) -> None:
    x, weight, bias = flow.randn(2, 4, 8), flow.randn(8, 8), flow.randn(*shape)
    found = Calls(nn.functional.linear)(x, weight, bias)
    assert torch.allclose(found.to_torch(), nn.functional.linear(x, weight, bias).to_torch(), atol=1e-6)
