"""Torch's tensors and states come in and go out, with torch as the oracle."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError
from weft.interop import from_torch, load_torch, to_torch
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast


def test_memory_is_shared_both_ways():
    a = torch.zeros(2, 3)
    b = from_torch(a)
    b[0] = 1.0
    assert a.sum() == 3
    assert to_torch(b).data_ptr() == a.data_ptr()


def test_a_lazy_conjugate_of_torchs_is_an_ordinary_tensor():
    given = torch.tensor([1 + 2j]).conj()
    assert from_torch(given).numpy().tolist() == [1 - 2j] and flow.as_tensor(given.imag).numpy().tolist() == [-2.0]
    ends = []
    for m, values in ((flow, from_torch(given)), (torch, given)):
        p = m.nn.Parameter(values)
        optimizer = m.optim.SGD([p], lr=0.1)
        (p.abs() ** 2).sum().backward()
        optimizer.step()
        ends.append(p.tolist())
    assert ends[0] == ends[1]


def test_what_is_no_torch_tensor_is_refused():
    with pytest.raises(ArgumentError, match=r"flow\.tensor"):
        from_torch([1.0])  # type: ignore[arg-type]


def test_a_module_with_torchs_state_computes_what_torch_computes():
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    ours = load_torch(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)), theirs)
    x = torch.randn(3, 4)
    assert torch.allclose(to_torch(ours(from_torch(x))), theirs(x), atol=1e-6)


def test_a_split_module_takes_its_part_of_the_state():
    theirs = torch.nn.Linear(4, 6)
    x = torch.randn(3, 4)

    def run():
        P = flow.placement("cpu", ranks=[0, 1])
        ours = load_torch(nn.Linear(4, 6).to_global(placement=P, sbp=S(0)), theirs)
        y = ours(from_torch(x).to_global(placement=P, sbp=B))
        return ours.weight.to_local().shape, y.detach().numpy()

    for shape, y in spawn_threads(2, run):
        assert tuple(shape) == (3, 4)
        assert torch.allclose(torch.from_numpy(y), theirs(x), atol=1e-6)
