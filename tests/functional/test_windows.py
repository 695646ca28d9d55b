"""Windows against torch's, of every length."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, OptionError

WINDOWS: list[tuple[str, dict[str, Any]]] = [
    ("hann", {}), ("hamming", {}), ("blackman", {}), ("nuttall", {}), ("bartlett", {}), ("cosine", {}),
    ("kaiser", {}), ("kaiser", {"beta": 3.0}), ("gaussian", {"std": 2.5}), ("exponential", {"tau": 3.0}),
    ("general_hamming", {"alpha": 0.6}), ("general_cosine", {"a": [0.4, 0.3, 0.2, 0.1]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), WINDOWS)
@pytest.mark.parametrize("sym", [True, False])
def test_a_window_is_torchs(name: str, options: dict[str, Any], sym: bool) -> None:
    for m in (0, 1, 2, 7, 8):
        for dtype in ("float32", "float64"):
            theirs = getattr(torch.signal.windows, name)(m, sym=sym, dtype=getattr(torch, dtype), **options)
            ours = getattr(flow.signal.windows, name)(m, sym=sym, dtype=getattr(flow, dtype), **options)
            torch.testing.assert_close(ours.to_torch(), theirs, rtol=1e-5, atol=1e-6)


def test_where_it_lies_and_what_it_refuses() -> None:
    windows = flow.signal.windows
    everywhere = flow.placement("cpu", [0])
    assert windows.hann(4, placement=everywhere, sbp=flow.sbp.broadcast).is_global
    assert windows.hann(4, requires_grad=True).requires_grad
    assert windows.exponential(5, center=0.0, sym=False).tolist()[0] == 1.0
    for wrong in (
        lambda: windows.hann(-1), lambda: windows.kaiser(3, beta=-1.0), lambda: windows.gaussian(3, std=0.0),
        lambda: windows.exponential(3, center=1.0), lambda: windows.general_cosine(3, a=[]),
        lambda: windows.hann(3, dtype=flow.int64),
    ):  # fmt: skip
        with pytest.raises(OptionError):
            wrong()
    with pytest.raises(ArgumentError, match=r"'taus'(.|\n)*exponential\(M: int, \*, center: .*, sbp: Any = None"):
        windows.exponential(3, taus=2.0)
