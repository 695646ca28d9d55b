"""Sequences of several lengths: packing, padding, and recurrent layers over them, against torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils import rnn as theirs

import weft as flow
from weft.core.errors import ShapeError
from weft.interop import load_torch
from weft.tensor.tensor import of_torch

ours = flow.nn.utils.rnn
LENGTHS = [3, 5, 1]


def sequences() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(n, 4) for n in LENGTHS]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["right", "left"])
def test_padding(batch_first: bool, side: str) -> None:
    given = sequences()
    expected = theirs.pad_sequence(given, batch_first, 2.0, side)
    got = ours.pad_sequence([of_torch(s) for s in given], batch_first, 2.0, side)
    torch.testing.assert_close(got.to_torch(), expected, check_stride=True)
    if side == "right":
        for a, b in zip(ours.unpad_sequence(got, LENGTHS, batch_first), given, strict=True):
            torch.testing.assert_close(a.to_torch(), b)


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_back(batch_first: bool) -> None:
    padded = theirs.pad_sequence(sequences(), batch_first)
    expected = theirs.pack_padded_sequence(padded, LENGTHS, batch_first, enforce_sorted=False)
    got = ours.pack_padded_sequence(of_torch(padded), LENGTHS, batch_first, enforce_sorted=False)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a.to_torch(), b)  # type: ignore[union-attr]
    again, counts = ours.pad_packed_sequence(got, batch_first, -1.0, 6)
    torch.testing.assert_close(again.to_torch(), theirs.pad_packed_sequence(expected, batch_first, -1.0, 6)[0])
    assert counts.tolist() == LENGTHS
    torch.testing.assert_close(
        ours.pack_sequence([of_torch(s) for s in sequences()], False).data.to_torch(), expected.data
    )


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2, "batch_first": True}])
def test_a_layer_stops_where_each_sequence_ends(kind: str, options: dict[str, Any]) -> None:
    reference = getattr(torch.nn, kind)(4, 3, **options)
    layer = load_torch(getattr(flow.nn, kind)(4, 3, **options), reference)
    first = options.get("batch_first", False)
    padded = theirs.pad_sequence(sequences(), first)
    y, state = reference(theirs.pack_padded_sequence(padded, LENGTHS, first, enforce_sorted=False))
    z, mine = layer(ours.pack_padded_sequence(of_torch(padded), LENGTHS, first, enforce_sorted=False))
    torch.testing.assert_close(z.data.detach().to_torch(), y.data.detach())
    for a, b in zip(mine, state, strict=True):
        torch.testing.assert_close(a.detach().to_torch(), b.detach())
    (y.data.sum() + sum(s.sum() for s in state)).backward()
    (z.data.sum() + sum(s.sum() for s in mine)).backward()
    for a, b in zip(layer.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(a.grad.to_torch(), b.grad, rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]


def test_what_cannot_be_packed_is_said() -> None:
    padded = flow.zeros(5, 3, 4)
    with pytest.raises(ShapeError, match="enforce_sorted=False"):
        ours.pack_padded_sequence(padded, LENGTHS)
    with pytest.raises(ShapeError, match="3 numbers from 1 to 5"):
        ours.pack_padded_sequence(padded, [6, 1, 1])


def test_unpacking() -> None:
    given = sequences()
    packed = ours.pack_sequence([of_torch(s) for s in given], enforce_sorted=False)
    for a, b in zip(ours.unpack_sequence(packed), given, strict=True):
        torch.testing.assert_close(a.to_torch(), b)


def test_a_packed_sequence_moves_and_converts_as_its_data() -> None:
    packed = ours.pack_sequence([flow.ones(3), flow.ones(2)])
    assert packed.double().data.dtype is flow.float64 and packed.cpu().batch_sizes is packed.batch_sizes
    assert not packed.is_pinned() and not hasattr(packed, "sum")
