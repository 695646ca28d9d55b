"""In which order elements lie in memory, against torch's kernels."""

from __future__ import annotations

import random

import torch

from weft.job.memory_order import alike, lies


def tensor(r: random.Random, shape: tuple[int, ...]) -> torch.Tensor:
    """Of this shape or one that broadcasts to it, its dimensions in any order in memory."""
    shape = tuple(1 if r.random() < 0.15 else n for n in shape)
    order = r.sample(range(len(shape)), len(shape))
    x = torch.empty([shape[i] for i in order]).permute([order.index(i) for i in range(len(shape))])
    return x if r.random() < 0.7 else torch.empty([2 * n for n in shape])[(slice(None, None, 2),) * len(shape)]


def test_what_an_elementwise_kernel_makes_lies_as_torchs() -> None:
    r = random.Random(0)
    for _ in range(500):
        shape = tuple(r.randint(1, 4) for _ in range(r.randint(1, 4)))
        operands = [torch.empty(shape), *(tensor(r, shape) for _ in range(2))]
        r.shuffle(operands)
        made = torch.addcmul(*operands)
        assert lies(made, alike(tuple(made.shape), operands)), [(x.shape, x.stride()) for x in operands]
