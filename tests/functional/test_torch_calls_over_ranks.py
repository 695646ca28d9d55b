"""The calls of test_everyday on global tensors over two ranks: what one device gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from tests.functional.test_torch_calls import CALLS, parts
from tests.functional.test_values import called, mapped
from weft.launch import spawn_threads

ALONE = (
    "fft.fftfreq",
    "fft.rfftfreq",
    "tril_indices",
    "triu_indices",
    "is_complex",
    "linalg.multi_dot",
    "linalg.lstsq",
)


def _every_call(split: bool) -> list[str]:
    """What differs from one device, told."""
    placement, wrong = flow.placement("cpu", ranks=[0, 1]), []

    def spread(a: torch.Tensor) -> Any:
        return flow.tensor(a, placement=placement, sbp=flow.sbp.split(0) if split and a.ndim else flow.sbp.broadcast)

    for name, args, options in CALLS:
        if name in ALONE:  # made of numbers, or not of tensors alone
            continue
        expected = parts(torch, called(torch, name, args, options))
        given = {k: spread(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        try:
            got = [g.numpy() for g in parts(flow, called(flow, name, mapped(args, spread), given))]
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__} {error}")
            continue
        for g, e in zip(got, expected, strict=True):
            if g.shape != tuple(e.shape) or not torch.allclose(torch.as_tensor(g), e, equal_nan=True):
                wrong.append(f"{name}: {g} instead of {e}")
    return wrong


@pytest.mark.filterwarnings("ignore:.*has no layout rule")  # where a whole matrix is needed, and its rows are split
@pytest.mark.parametrize("split", [False, True])
def test_global_arguments(split: bool) -> None:
    assert spawn_threads(2, _every_call, split) == [[], []]
