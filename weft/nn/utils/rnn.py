"""Sequences of several lengths in one batch: padded, or packed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.autograd.plain import plain
from weft.core import dtype as dtypes
from weft.core.errors import ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.shape.views import movedim
from weft.ops import ops
from weft.tensor.tensor import Tensor

__all__ = [
    "PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
    "unpack_sequence", "unpad_sequence",
]  # fmt: skip


CONVERSIONS = ("byte", "char", "cpu", "cuda", "double", "float", "half", "int", "long", "pin_memory", "short")


class PackedSequence(NamedTuple):
    """The steps of several sequences, time by time; `batch_sizes` is the number of sequences at each time."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None  # the sequences in the order of `data`, by falling length
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self._replace(data=self.data.to(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        """What a tensor has that moves or converts it: `cpu`, `double`, `pin_memory`."""
        if name not in CONVERSIONS:
            raise AttributeError(f"'PackedSequence' object has no attribute {name!r}")
        return lambda *args, **kwargs: self._replace(data=getattr(self.data, name)(*args, **kwargs))

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return self.data.is_pinned()


def _ints(values: Sequence[int], like: Tensor | None = None) -> Tensor:
    return creation.tensor(list(values), dtype=dtypes.int64, **({} if like is None else device_of(like)))


def _numbers(lengths: Any) -> list[int]:
    return [int(n) for n in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]


def _indices(lengths: Sequence[int], order: Sequence[int]) -> tuple[list[int], list[int]]:
    """The flat index in (time, batch) of each packed step; and the number of sequences at each time."""
    sizes = [sum(n > t for n in lengths) for t in range(max(lengths))]
    return [t * len(lengths) + order[i] for t, size in enumerate(sizes) for i in range(size)], sizes


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The steps of a padded batch, (time, batch, ...), without its padding.

    >>> packed = flow.nn.utils.rnn.pack_padded_sequence(flow.tensor([[1, 4], [2, 0], [3, 0]]), [3, 1])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """
    (x,) = plain((input,))  # torch's, too
    x = ops.transpose(x, 0, 1) if batch_first else x
    counts = _numbers(lengths)
    if len(counts) != x.shape[1] or min(counts, default=0) < 1 or max(counts) > x.shape[0]:
        raise ShapeError(
            f"pack_padded_sequence: lengths must be {x.shape[1]} numbers from 1 to {x.shape[0]}, for an input of shape "
            f"{list(input.shape)}; got {counts}"
        )
    order = sorted(range(len(counts)), key=lambda i: -counts[i])
    if enforce_sorted and any(a < b for a, b in itertools.pairwise(counts)):
        raise ShapeError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when `enforce_sorted` is "
            f"True; got {counts}. Pass enforce_sorted=False"
        )
    places, sizes = _indices(counts, order)
    flat = ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
    data = ops.index_select(flat, 0, _ints(places, x))
    if enforce_sorted:
        return PackedSequence(data, _ints(sizes))
    return PackedSequence(data, _ints(sizes), _ints(order), _ints([order.index(i) for i in range(len(order))]))


def lengths_of(packed: PackedSequence) -> list[int]:
    """Each sequence's length, in the original order."""
    sizes = _numbers(packed.batch_sizes)
    falling = [sum(size > i for size in sizes) for i in range(sizes[0])]
    back = range(len(falling)) if packed.unsorted_indices is None else _numbers(packed.unsorted_indices)
    return [falling[i] for i in back]


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """The padded batch that was packed, and the lengths."""
    counts = lengths_of(sequence)
    order = range(len(counts)) if sequence.sorted_indices is None else _numbers(sequence.sorted_indices)
    places, sizes = _indices(counts, list(order))
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ShapeError(f"pad_packed_sequence: total_length must be at least {len(sizes)}, the longest; got {steps}")
    data = sequence.data
    at, shape = _ints(places, data), (steps * len(counts), *data.shape[1:])
    flat = ops.index_put_zeros(data, [at], shape)
    if padding_value:
        there = ops.index_put_zeros(ops.ones_like(data.detach()), [at], shape)
        flat = ops.where(ops.ne(there, 0), flat, padding_value)
    padded = ops.reshape(flat, (steps, len(counts), *data.shape[1:]))
    return ops.transpose(padded, 0, 1) if batch_first else padded, _ints(counts)


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences of several lengths as one batch, (time, batch, ...), short ones padded.

    >>> flow.nn.utils.rnn.pad_sequence([flow.tensor([1, 2]), flow.tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    longest = max((s.shape[0] for s in sequences), default=0)
    rows = []
    for s in sequences:
        short = longest - s.shape[0]
        around = (0, 0) * (s.ndim - 1) + ((0, short) if padding_side == "right" else (short, 0))
        rows.append(ops.pad_with(s, around, padding_value))
    return ops.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded batch, without padding."""
    x = padded_sequences if batch_first else movedim(padded_sequences, 0, 1)
    return [ops.narrow(ops.select(x, 0, i), 0, 0, n) for i, n in enumerate(_numbers(lengths))]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed.

    >>> rnn = flow.nn.utils.rnn
    >>> [s.tolist() for s in rnn.unpack_sequence(rnn.pack_sequence([flow.tensor([1, 2]), flow.tensor([3])]))]
    [[1, 2], [3]]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of several lengths, packed."""
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], False, enforce_sorted)
