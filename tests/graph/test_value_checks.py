"""What an eager call refuses for its operands' values, a graph's launch refuses too, and names the program's line."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow

X, SCORES, SQUARE, FAR, BELOW = [1.0, 1.0, 1.0], [[1.0, 1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [5], [-4]
NAN = [[math.nan, 0.0], [0.0, 1.0]]
Refused = tuple[str, Callable[..., Any], list[Any]]


def bce(lib: Any, x: Any, t: Any) -> Any:
    return lib.nn.functional.binary_cross_entropy(x, t)


CASES: list[Refused] = [
    ("index", lambda lib, x, i: x[i], [X, FAR]), ("index_below", lambda lib, x, i: x[i], [X, BELOW]),
    ("gather", lambda lib, x, i: lib.gather(x, 0, i), [X, FAR]), ("take", lambda lib, x, i: lib.take(x, i), [X, FAR]),
    ("index_select", lambda lib, x, i: lib.index_select(x, 0, i), [X, FAR]),
    ("index_put", lambda lib, x, i: lib.index_put(x, (i,), x[:1]), [X, FAR]),
    ("index_add", lambda lib, x, i: lib.index_add(x, 0, i, x[:1]), [X, FAR]),
    ("index_copy", lambda lib, x, i: lib.index_copy(x, 0, i, x[:1]), [X, FAR]),
    ("index_fill", lambda lib, x, i: lib.index_fill(x, 0, i, 1.0), [X, FAR]),
    ("index_reduce", lambda lib, x, i: lib.index_reduce(x, 0, i, x[:1], "amax"), [X, FAR]),
    ("scatter", lambda lib, x, i: lib.scatter(x, 0, i, 1.0), [X, FAR]),
    ("scatter_add", lambda lib, x, i: lib.scatter_add(x, 0, i, x[:1]), [X, BELOW]),
    ("scatter_reduce", lambda lib, x, i: lib.scatter_reduce(x, 0, i, x[:1], "amax"), [X, FAR]),
    ("put", lambda lib, x, i: lib.put(x, i, x[:1]), [X, FAR]),
    ("embedding", lambda lib, x, i: lib.nn.functional.embedding(i, x), [SCORES, FAR]),
    ("embedding_bag", lambda lib, x, i: lib.nn.functional.embedding_bag(i, x), [SCORES, [[5]]]),
    *((f"bags_{where}", lambda lib, x, i, o: lib.nn.functional.embedding_bag(i, x, o), [SCORES, [0, 0], where])
      for where in ([1], [0, 3])),
    ("one_hot", lambda lib, i: lib.nn.functional.one_hot(i, 3), [FAR]),
    *((name, lambda lib, x, i, n=name: getattr(lib.nn.functional, n)(x, i), [SCORES, FAR])
      for name in ("nll_loss", "cross_entropy", "multi_margin_loss")),
    ("multilabel_margin_loss", lambda lib, x, i:
      lib.nn.functional.multilabel_margin_loss(x, i), [SCORES, [[5, -1, 0]]]),
    ("max_unpool1d", lambda lib, x, i: lib.nn.functional.max_unpool1d(x, i, 2), [SCORES, [[0, 1, 9]]]),
    ("multinomial", lambda lib, x: lib.multinomial(x, 1), [[-1.0, 2.0]]),
    ("multinomial_of_nothing", lambda lib, x: lib.multinomial(x, 1), [[0.0, 0.0]]),
    ("bernoulli", lambda lib, x: lib.bernoulli(x), [[1.5]]), ("poisson", lambda lib, x: lib.poisson(x), [[-1.0]]),
    ("normal", lambda lib, x: lib.normal(x, x), [[-1.0]]),
    ("quantile", lambda lib, x, q: lib.quantile(x, q), [X, [1.5]]),
    ("quantile_nan", lambda lib, x, q: lib.quantile(x, q), [X, [math.nan]]),
    ("fweights", lambda lib, x, w: lib.cov(x, fweights=w), [SCORES, [1, -1, 1]]),
    ("aweights", lambda lib, x, w: lib.cov(x, aweights=w), [SCORES, [1.0, -1.0, 1.0]]),
    ("binary_cross_entropy", lambda lib, x, t: bce(lib, x, t), [[1.5], [1.0]]),
    ("binary_cross_entropy_of_nan", lambda lib, x, t: bce(lib, x, t), [[math.nan], [1.0]]),
    ("binary_cross_entropy_target", lambda lib, x, t: bce(lib, x, t), [[0.5], [-1.0]]),
    ("gaussian_nll_loss", lambda lib, x, v: lib.nn.functional.gaussian_nll_loss(x, x, v), [X, [-1.0, 1.0, 1.0]]),
    ("ctc_loss", lambda lib, x, n, m: lib.nn.functional.ctc_loss(x[:, None], m[None], n, m), [SCORES, [9], [1]]),
    *((name, lambda lib, x, n=name: getattr(lib.linalg, n)(x), [SQUARE]) for name in ("cholesky", "inv", "lu_factor")),
    ("solve", lambda lib, x: lib.linalg.solve(x, x[0]), [SQUARE]),
    ("cholesky_inverse", lambda lib, x: lib.cholesky_inverse(x), [SQUARE]),
    ("matrix_power", lambda lib, x: lib.linalg.matrix_power(x, -1), [SQUARE]),
    *((name, lambda lib, x, n=name: getattr(lib.linalg, n)(x), [NAN]) for name in ("eig", "svd", "svdvals")),
    *((name, lambda lib, x, y, n=name: getattr(lib, n)(x, y), [[1], [0]])
      for name in ("remainder", "fmod", "floor_divide")),
    ("as_strided", lambda lib, x: lib.as_strided(x, (3,), (2,)), [X]),
    ("repeat_interleave", lambda lib, x, n: lib.repeat_interleave(x, n, output_size=4), [X, [1, 1, 1]]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize(("name", "f", "given"), CASES, ids=[name for name, _, _ in CASES])
def test_a_launch_refuses_what_a_call_does(name: str, f: Callable[..., Any], given: list[Any]) -> None:
    class Calling(flow.nn.Graph):
        def build(self, *tensors: Any) -> Any:
            return f(flow, *tensors)

    with pytest.raises((RuntimeError, IndexError, ValueError)):
        f(torch, *map(torch.tensor, given))
    with pytest.raises(flow.errors.WeftError):
        f(flow, *map(flow.tensor, given))
    with pytest.raises(flow.errors.WeftError) as launched:
        found = Calling()(*map(flow.tensor, given))
        (found if isinstance(found, flow.Tensor) else found[0]).tolist()
    told = "".join(getattr(launched.value, "__notes__", []))
    assert f"of {Path(__file__).name}:" in told or name == "as_strided"  # which is refused while it is traced
