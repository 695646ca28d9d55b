"""Words of torch's errors that programs and tests look for: the same call says them here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow

# what is matched, the call that says it in torch and here; x is 2 by 3, v has 3 elements, w is a leaf, i an index
PHRASES = [
    ("Dimension out of range (expected to be in range of [-2, 1], but got 5)", "lib.sum(x, 5)"),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 5)", "x.size(5)"),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 5)", "x.permute(0, 5)"),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 5)", "x.chunk(2, 5)"),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 5)", "F.softmax(x, 5)"),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 5)", "lib.cat([x, x], 5)"),
    ("Dimension out of range (expected to be in range of [-3, 2], but got 5)", "x.unsqueeze(5)"),
    ("Dimension out of range (expected to be in range of [-3, 2], but got 5)", "lib.stack([x, x], 5)"),
    ("stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [3] at entry 1", "lib.stack([x, v])"),
    ("split_with_sizes expects split_sizes to sum exactly to 3", "v.split([1, 1])"),
    ("Sizes of tensors must match except in dimension 0", "lib.cat([x, x[:, :2]])"),
    ("Tensors must have same number of dimensions: got 2 and 1", "lib.cat([x, v])"),
    ("expected a non-empty list of Tensors", "lib.cat([])"),
    ("expects a non-empty TensorList", "lib.stack([])"),
    ("The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1", "x + x[:, :2]"),
    ("mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", "x @ x"),
    ("shape '[4]' is invalid for input of size 6", "x.view(4)"),
    ("view size is not compatible with input tensor's size and stride", "x.t().view(6)"),
    ("must match the existing size (3) at non-singleton dimension", "v.expand(4)"),
    ("the number of sizes provided (1) must be greater or equal to the number of dimensions", "x.expand(3)"),
    ("index 5 is out of bounds for dimension 0 with size 2", "x[5]"),
    ("too many indices for tensor of dimension 2", "x[0, 0, 0]"),
    ("index out of range in self", "F.embedding(lib.tensor([9]), x)"),
    ("Boolean value of Tensor with more than one value is ambiguous", "bool(v)"),
    ("a Tensor with 3 elements cannot be converted to Scalar", "v.item()"),
    ("iteration over a 0-d tensor", "list(v[0])"),
    ("len() of a 0-d tensor", "len(v[0])"),
    ("does not require grad and does not have a grad_fn", "v.sum().backward()"),
    ("grad can be implicitly created only for scalar outputs", "(w * 2).backward()"),
    ("Trying to backward through the graph a second time", "twice((w * w).sum())"),
    ("a leaf Variable that requires grad is being used in an in-place operation", "w.add_(1)"),
    ("a view of a leaf Variable that requires grad is being used in an in-place operation", "w[0].add_(1)"),
    ("has been modified by an inplace operation", "modified(w)"),
    ("Tensors of floating point", "i.requires_grad_()"),
    ("Can't call numpy() on Tensor that requires grad", "w.numpy()"),
    ("can't optimize a non-leaf Tensor", "lib.optim.SGD([w * 2], lr=0.1)"),
    ("optimizer got an empty parameter list", "lib.optim.SGD([], lr=0.1)"),
    ("some parameters appear in more than one parameter group",
     "lib.optim.SGD([{'params': [w]}, {'params': [w]}], lr=0.1)"),
    ("Invalid learning rate", "lib.optim.SGD([w], lr=-1.)"),
    ("result type Float can't be cast to the desired output type Long", "i.sqrt_()"),
    ("result type Float can't be cast to", "i.div_(2)"),
    ("to match target batch_size", "F.cross_entropy(x, i)"),
    ("Expected more than 1 value per channel when training", "lib.nn.BatchNorm1d(3)(x[:1])"),
    ("Halving dimension must be even, but dimension 1 is size 3", "F.glu(x)"),
    ("probability has to be between 0 and 1", "F.dropout(x, 1.5)"),
    ("Target 7 is out of bounds", "F.nll_loss(x, i[:2] + 7)"),
    ("einsum()", "lib.einsum('ij,j->i', x, x)"),
    ("A must be batches of square matrices", "lib.linalg.inv(x)"),
    ("selected index k out of range", "lib.topk(v, 7)"),
    ("Error(s) in loading state_dict for Linear", "lib.nn.Linear(2, 2).load_state_dict({})"),
    ("Missing key(s) in state_dict", "lib.nn.Linear(2, 2).load_state_dict({})"),
    ("size mismatch for weight", "lib.nn.Linear(2, 2).load_state_dict(lib.nn.Linear(3, 2).state_dict())"),
    ("has no attribute 'nothing'", "lib.nn.Linear(2, 2).nothing"),
    ("same dtype", "lib.meshgrid(v, i)"),
    ("only integer tensors of a single element can be converted to an index", "x[:, [i, i]]"),
    ("tensors used as indices must be long, int, byte or bool tensors", "x[v]"),
    ("The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3]", "x[v > 0]"),
]  # fmt: skip


def twice(y: Any) -> None:
    y.backward()
    y.backward()


def modified(w: Any) -> None:
    y = w * 1
    z = y * y
    y.add_(1)
    z.sum().backward()


def said(lib: Any, call: str) -> Exception:
    space = {
        "lib": lib, "F": lib.nn.functional, "x": lib.ones(2, 3), "v": lib.ones(3), "i": lib.tensor([0, 1, 0]),
        "w": lib.ones(2, requires_grad=True), "twice": twice, "modified": modified,
    }  # fmt: skip
    with pytest.raises(Exception) as told:
        eval(call, space)
    return told.value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("phrase", "call"), PHRASES, ids=[call for _, call in PHRASES])
def test_an_error_says_what_programs_look_for(phrase: str, call: str) -> None:
    theirs, ours = said(torch, call), said(flow, call)
    assert phrase in str(theirs), f"torch says: {theirs}"
    assert phrase in str(ours)
    assert isinstance(ours, next(k for k in type(theirs).__mro__ if k.__module__ == "builtins"))
