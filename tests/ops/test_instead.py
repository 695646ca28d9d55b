"""Compositions that stand in for an op on global operands give what one device gives, and its gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from weft import autograd
from weft.core import random
from weft.core.placement import Placement
from weft.core.sbp import Sbp, broadcast, parse
from weft.interpreter import conversions
from weft.launch.threads import spawn_threads
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_torch

TARGET = torch.tensor([0, 4, 2, -100, 1])
DEEP = torch.tensor([[0, 4, 2], [1, -100, 3]])


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def to_global(t: torch.Tensor, sbp: Sbp, placement: Placement) -> Tensor:
    whole = OPS["from_local"](of_torch(t.clone()), placement, (broadcast,) * placement.ndim, tuple(t.shape), False)
    return OPS["to_global"](whole, placement, (sbp,))


def with_gradients(op: Any, args: list[Any]) -> list[torch.Tensor]:
    """The output and the gradient of the first operand, whole."""
    x = args[0].requires_grad_()
    y = op(*args)
    grads = autograd.grad([y], [x], [OPS["ones_like"](y)])
    return [(conversions.whole(t, "a test") if t.spec is not None else t).to_torch() for t in (y, *grads)]  # type: ignore[union-attr]


CASES = [
    *(
        ("cross_entropy", (floats(5, 5), TARGET, None, -100, reduction, smoothing), (x, t))
        for reduction in ("mean", "sum", "none")
        for smoothing in (0.0, 0.2)
        for x, t in (("S(0)", "S(0)"), ("S(1)", "B"), ("B", "S(0)"), ("P", "B"), ("B", "B"))
    ),
    ("cross_entropy", (floats(5, 5), TARGET, torch.ones(5).double() * 2, -100, "mean", 0.0), ("S(0)", "S(0)", "B")),
    ("cross_entropy", (floats(2, 5, 3), DEEP, None, -100, "mean", 0.0), ("S(1)", "B")),
    ("cross_entropy", (floats(2, 5, 3), DEEP, None, -100, "mean", 0.1), ("S(0)", "S(1)")),
    ("nll_loss", (floats(5, 5), TARGET), ("S(0)", "S(0)")),
    ("nll_loss", (floats(2, 5, 3), DEEP), ("S(1)", "B")),
]


@pytest.mark.parametrize("ranks", [2, 3])
def test_global_losses_are_those_of_one_device(ranks: int) -> None:
    def on_each_rank() -> list[list[torch.Tensor]]:
        placement = Placement("cpu", list(range(ranks)))
        results = []
        for name, args, sbp in CASES:
            sbps = iter(sbp)
            moved = [to_global(a, parse(next(sbps)), placement) if isinstance(a, torch.Tensor) else a for a in args]
            results.append(with_gradients(OPS[name], moved))
        return results

    every = spawn_threads(ranks, on_each_rank, deadline=60)
    for results in every:
        for (name, args, sbp), got in zip(CASES, results, strict=True):
            local = [of_torch(a.clone()) if isinstance(a, torch.Tensor) else a for a in args]
            for mine, truth in zip(got, with_gradients(OPS[name], local), strict=True):
                assert torch.allclose(mine, truth, atol=1e-9), (name, args[2:], sbp, mine, truth)


@pytest.mark.parametrize(
    ("dtype", "of_parameters", "atol"),
    [
        (torch.float64, torch.float64, 1e-9),
        (torch.float16, torch.float32, 1e-2),
        (torch.bfloat16, torch.float32, 5e-2),
        (torch.bfloat16, torch.bfloat16, 5e-2),
    ],
    ids=str,
)
@pytest.mark.parametrize("sbp", ["S(0)", "S(2)", "P", "S(1)", "B"])
def test_batch_norm_takes_the_statistics_of_the_whole_batch(
    sbp: str, dtype: torch.dtype, of_parameters: torch.dtype, atol: float
) -> None:
    x = floats(5, 4, 3).to(dtype)
    weight, bias, *running = (t.to(of_parameters) for t in (floats(4), floats(4) + 1, floats(4), floats(4).abs()))

    def on_one(made: Any) -> list[torch.Tensor]:
        stats = [made(t, "B") for t in running]
        args = [made(x, sbp), *stats, made(weight, "B"), made(bias, "B"), True, 0.2]
        y_and_dx = with_gradients(OPS["batch_norm"], args)
        return [*y_and_dx, *(conversions.whole(t, "a test").to_torch() if t.spec else t.to_torch() for t in stats)]

    def on_each_rank() -> list[torch.Tensor]:
        placement = Placement("cpu", [0, 1])
        return on_one(lambda t, s: to_global(t, parse(s), placement))

    truth = on_one(lambda t, _: of_torch(t.clone()))
    for results in spawn_threads(2, on_each_rank, deadline=60):
        for mine, expected in zip(results, truth, strict=True):
            assert mine.dtype == expected.dtype and torch.allclose(mine, expected, atol=atol)


def test_dropout_drops_the_same_elements_in_every_layout() -> None:
    x = floats(6, 5)

    def on_each_rank() -> list[torch.Tensor]:
        placement = Placement("cpu", [0, 1])
        results = []
        for sbp in ("B", "S(0)", "S(1)", "P"):
            random.of().manual_seed(4)
            y = OPS["dropout"](to_global(x, parse(sbp), placement), 0.5, True)
            results.append(conversions.whole(y, "a test").to_torch())
        return results

    for results in spawn_threads(2, on_each_rank, deadline=60):
        first = results[0]
        assert 0 < int((first == 0).sum()) < first.numel()
        assert torch.allclose(first[first != 0], 2 * x[first != 0])
        assert all(torch.allclose(y, first) for y in results)
