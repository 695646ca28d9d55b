"""The same calls on global tensors over two ranks: what one device gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as TF

import weft as flow
from tests.functional.test_torch_calls import CALLS as MORE_CALLS
from tests.functional.test_torch_calls import parts
from tests.functional.test_values import CALLS, called, mapped, rand
from weft.launch import spawn_threads

MADE = {  # of numbers, or not of tensors alone
    "hann_window", "fft.fftfreq", "fft.rfftfreq", "tril_indices", "triu_indices", "is_complex", "linalg.multi_dot",
    "linalg.lstsq",
}  # fmt: skip


def _every_call(split: bool) -> list[str]:
    """What differs from one device, told."""
    placement, wrong = flow.placement("cpu", ranks=[0, 1]), []

    def spread(a: torch.Tensor) -> Any:
        sbp = flow.sbp.split(0) if split and a.ndim else flow.sbp.broadcast
        return flow.tensor(a, placement=placement, sbp=sbp)

    for name, args, options in [*CALLS, *MORE_CALLS]:
        if name in MADE:
            continue
        text = f"{name}({', '.join(str(list(a.shape)) if isinstance(a, torch.Tensor) else str(a) for a in args)})"
        expected = parts(torch, called(torch, name, args, options))
        given = {k: spread(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        try:
            got = [g.numpy() for g in parts(flow, called(flow, name, mapped(args, spread), given))]
        except Exception as error:
            wrong.append(f"{text}: {type(error).__name__} {error}")
            continue
        for g, e in zip(got, expected, strict=True):
            if g.shape != tuple(e.shape) or not torch.allclose(torch.as_tensor(g), e, equal_nan=True):
                wrong.append(f"{text}: {g} instead of {e}")
    return wrong


@pytest.mark.filterwarnings("ignore:.*has no layout rule")  # where a whole matrix is needed, and its rows are split
@pytest.mark.parametrize("split", [False, True])
def test_global_arguments(split: bool) -> None:
    assert spawn_threads(2, _every_call, split) == [[], []]


def _sampled() -> list[Any]:
    placement, functional = flow.placement("cpu", ranks=[0, 1]), flow.nn.functional

    def spread(a: torch.Tensor, sbp: Any) -> Any:
        return flow.tensor(a, placement=placement, sbp=sbp)

    grid = functional.affine_grid(spread(THETA, flow.sbp.split(0)), (2, 3, 2, 2))
    read = functional.grid_sample(spread(IMAGE, flow.sbp.split(0)), grid)
    scores = spread(SCORES, flow.sbp.split(1)).log_softmax(-1)
    loss = flow._C.ctc_loss(scores, spread(LABELS, flow.sbp.split(0)), [6, 5], [3, 2])
    drawn = functional.gumbel_softmax(spread(SCORES, flow.sbp.split(0)), hard=True)
    return [read.numpy(), loss.item(), drawn.sum(-1).numpy()]


THETA, IMAGE, SCORES = rand(2, 2, 3), rand(2, 3, 4, 5), rand(6, 2, 4)
LABELS = torch.tensor([[1, 2, 3], [2, 2, 1]])


def test_sampling_of_global_tensors() -> None:
    image = TF.grid_sample(IMAGE, TF.affine_grid(THETA, [2, 3, 2, 2], align_corners=False), align_corners=False)
    loss = TF.ctc_loss(SCORES.log_softmax(-1), LABELS, torch.tensor([6, 5]), torch.tensor([3, 2]))
    for read, found, drawn in spawn_threads(2, _sampled):
        torch.testing.assert_close(torch.as_tensor(read), image)
        assert abs(found - loss.item()) < 1e-9
        torch.testing.assert_close(torch.as_tensor(drawn), torch.ones(6, 2, dtype=torch.float64))
