"""The named results of functions: torch's own types."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import weft as flow

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("max", "min", "topk", "kthvalue", "median", "nanmedian", "mode", "cummax", "cummin"), (1,)),
    **dict.fromkeys(("linalg_lstsq", "linalg_solve_ex"), (torch.eye(3),)),
    "histogram": (4,),
    "lu_unpack": (torch.tensor([1, 2, 3], dtype=torch.int32),),
}


def returned(root: Any, name: str, x: Any) -> Any:
    place = root.linalg if name.startswith("linalg_") else root
    return getattr(place, name.removeprefix("linalg_"))(x, *ARGUMENTS.get(name, ()))


def present() -> list[str]:
    """The names of torch's types whose functions are here."""
    public = [n for n in torch.return_types.__all__ if not n.endswith("_out") and n[0] != "_"]
    return [
        n for n in public
        if hasattr(flow.linalg if n.startswith("linalg_") else flow, n.removeprefix("linalg_"))
        and n not in ("pytree_register_structseq", "all_return_types")
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:torch.qr is deprecated")
@pytest.mark.parametrize("name", present())
def test_results_are_torchs_types_and_print_as_torchs(name: str) -> None:
    x = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
    ours, theirs = returned(flow, name, flow.from_torch(x)), returned(torch, name, x)
    assert type(ours) is type(theirs) is getattr(torch.return_types, name)
    assert repr(ours)[: repr(ours).index("=")] == repr(theirs)[: repr(theirs).index("=")]
    if not name.startswith("linalg_") and hasattr(flow.Tensor, name):
        method = getattr(flow.from_torch(x), name)(*ARGUMENTS.get(name, ()))
        assert type(method) is type(theirs)


def test_results_go_through_copies_trees_graphs_and_transforms() -> None:
    class Largest(flow.nn.Graph):
        def build(self, x: Any) -> Any:
            return x.max(1), x.topk(2)

    x = flow.tensor([[1.0, 3.0, 2.0], [6.0, 5.0, 4.0]])
    largest = x.max(1)
    values, indices = largest
    assert values is largest.values is largest[0] and indices is largest.indices
    assert repr(largest) == repr(x.to_torch().max(1))
    for y in (
        copy.deepcopy(largest),
        pickle.loads(pickle.dumps(largest)),
        pytree.tree_map(lambda t: t.clone(), largest),
        Largest()(x)[0],
        flow.vmap(lambda row: row.max(0))(x),
        flow.nn.utils.stateless.functional_call(flow.from_torch(Rows()), {}, (x,)),
    ):
        assert type(y) is torch.return_types.max
        assert y.values.tolist() == [3.0, 6.0] and y.indices.tolist() == [1, 0]


class Rows(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        y = x.max(1)
        assert isinstance(y, torch.return_types.max) and torch.is_tensor(y.values)
        return y


def test_results_with_out_are_named_as_torchs() -> None:
    x = flow.tensor([[1.0, 3.0]])
    out = flow.empty(1), flow.empty(1, dtype=flow.int64)
    made = flow.max(x, 1, out=out)
    assert type(made) is torch.return_types.max_out and made.values is out[0]
