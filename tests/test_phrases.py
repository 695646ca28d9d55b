"""Words of torch's errors that programs and tests look for: the same call says them here."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import WeftError

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
    ("Given normalized_shape=[2], expected input with shape [*, 2]", "F.layer_norm(x, (2,))"),
    ("Given normalized_shape=[2], expected input with shape", "F.rms_norm(x, (2,))"),
    ("quantile() q must be in the range [0, 1]", "lib.quantile(x, 1.5)"),
    ("quantile() q values must be in the range [0, 1]", "lib.quantile(x, lib.tensor([0., 2.]))"),
    ("must be a matrix", "lib.addmm(x, lib.ones(2, 2, 2), x)"),
    ("must be a 3D tensor", "lib.baddbmm(v[0], lib.ones(1, 2, 2, 2), lib.ones(1, 2, 2, 2))"),
    ("must be a 3D tensor", "lib.bmm(x, x)"),
    ("", "lib.addmm(lib.ones(4, 2, 2), x, x.t())"),
    ("", "lib.addmv(x, x, v)"),
    ("must be a 3D tensor", "lib.addbmm(v[0], lib.ones(1, 2, 2, 2), lib.ones(1, 2, 2, 2))"),
    ("expected at least 2 tensors but got 1", "lib.linalg.multi_dot([x])"),
    ("Invalid number of data points (0) specified", "lib.fft.fft(x, 0)"),
    ("Invalid number of data points (0) specified", "lib.fft.irfft(x, 0)"),
    ("Invalid number of data points (0) specified", "lib.fft.ifftn(x[:, :0])"),
    ("", "lib.linalg.tensorinv(lib.tensor(2.0), 1)"),
    ("Dimension out of range (expected to be in range of [-1, 0], but got 1)", "lib.flatten(v[0], 1)"),
    ("Dimension out of range (expected to be in range of [-1, 0], but got 3)", "lib.all(v[0], 3)"),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 2)", "lib.nuclear_norm(x, [0, 2])"),
    ("is not a valid value for compute_mode", "lib.cdist(x, x, 2.0, 'fast')"),
    ("epeats must be non-negative", "lib.repeat_interleave(v, -1)"),
    ("Invalid output_size, expected 6 but got 5", "lib.repeat_interleave(v, 2, output_size=5)"),
    ("", "lib.repeat_interleave(v, i, output_size=5)"),
    ("expected input to have two or fewer dimensions", "lib.cov(x[None])"),
    ("have one or fewer dimensions", "lib.cov(v, aweights=x)"),
    ("the same numel as there are observations in the input", "lib.cov(v, aweights=v[:1])"),
    ("expected fweights to have integral dtype but got", "lib.cov(v, fweights=v)"),
    ("fweights cannot be negative", "lib.cov(v, fweights=-i - 1)"),
    ("aweights cannot be negative", "lib.cov(v, aweights=-v - 1)"),
    ("inputs must have the same number of dimensions", "lib.linalg.cross(x, v)"),
    ("must have length 3. Got 3 and 1", "lib.linalg.cross(x, x[:, :1])"),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 2)", "lib.linalg.cross(x, x, dim=2)"),
    ("expected both vectors to have same dtype", "lib.vdot(v, i)"),
    ("", "lib.vdot(v, v[:1])"),
    ("dim 1 appears multiple times in the list of dims", "lib.gradient(lib.ones(3, 3), dim=(1, 1))"),
    ("rtol must be greater than or equal to zero, but got -1", "lib.isclose(x, x, rtol=-1.0)"),
    ("", "F.prelu(x, x)"),
    ("label_smoothing must be between 0.0 and 1.0. Got: 1.5", "F.cross_entropy(x, i[:2], label_smoothing=1.5)"),
    ("ignore_index is not supported for floating point target", "F.cross_entropy(x, x, ignore_index=1)"),
    ("Lower bound should be less than or equal to the upper bound", "F.rrelu(x, 0.5, 0.2)"),
    ("margin must be greater than 0, got -1.0", "F.triplet_margin_with_distance_loss(x, x, x, margin=-1.0)"),
    ("normal expects all elements of std >= 0.0", "lib.normal(x, -x)"),
    ("all elements of input should be between 0 and 1", "F.binary_cross_entropy(x * 2, x)"),
    ("avg is not a valid value for reduction", "F.cross_entropy(x, i[:2], reduction='avg')"),
    ("must be the same as input size", "F.binary_cross_entropy_with_logits(x, v)"),
    ("to have 3 channels, but got 2 channels instead", "lib.nn.Conv2d(3, 4, 3)(lib.ones(1, 2, 8, 8))"),
    ("Expected number of channels in input to be divisible by num_groups", "F.group_norm(lib.ones(1, 5, 2), 2)"),
    ("either size or scale_factor should be defined", "F.interpolate(lib.ones(1, 1, 2, 2))"),
    ("", "F.interpolate(x, scale_factor=2)"),
    ("", "F.pad(x, (1, 1), mode='foo')"),
    ("Padding length", "F.pad(x, (1,))"),
    ("Fan in and fan out can not be computed", "lib.nn.init.xavier_uniform_(v)"),
    ("lass values must be non-negative", "F.one_hot(i - 1)"),
    ("does not match the length of the desired ordering of dimensions", "x.permute(0)"),
    ("duplicate dims are not allowed", "x.permute(0, 0)"),
    ("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor", "x.repeat(2)"),
    ("fewer operands were provided than specified in the equation", "lib.einsum('ij,jk->ik', x)"),
    ("which does not broadcast with previously seen size 3", "lib.einsum('ij,jk->ik', x, x)"),
    ("contracted dimensions need to match, but first has size 3", "lib.tensordot(x, x, 1)"),
    ("The size of tensor a (3) must match the size of tensor b (4) at non", "lib.broadcast_tensors(x, lib.ones(4))"),
    ("appears to not have been used in the graph", "lib.autograd.grad(w.sum(), [lib.ones(2, requires_grad=True)])"),
    ("params argument given to the optimizer should be an iterable of", "lib.optim.SGD(v, lr=0.1)"),
    ("", "lib.optim.Adam(lib.nn.Linear(2, 2))"),
    ("Invalid momentum value: -1", "lib.optim.SGD([w], lr=0.1, momentum=-1)"),
    ("Invalid epsilon value: -1", "lib.optim.Adam([w], eps=-1)"),
    ("loaded state dict has a different number of parameter groups",
     "lib.optim.SGD([w], lr=0.1).load_state_dict({'state': {}, 'param_groups': []})"),
    ("int is not an Optimizer", "lib.optim.lr_scheduler.StepLR(3, 1)"),
    ("int is not a Module subclass", "lib.nn.ModuleDict({'a': 1})"),
    ("int is not a Module subclass", "lib.nn.Sequential(1)"),
    ("Expected state_dict to be dict-like, got", "lib.nn.Linear(2, 2).load_state_dict([1])"),
    ("arange()", "lib.arange()"),
    ("step must be greater than zero", "x[::-1]"),
    ("slice indices must be integers or None or have an __index__ method", "x[0.5:]"),
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
    ("can't optimize a non-leaf Tensor", "lib.optim.SGD([w * 2], lr=0.1)"),
    ("optimizer got an empty parameter list", "lib.optim.SGD([], lr=0.1)"),
    ("some parameters appear in more than one parameter group",
     "lib.optim.SGD([{'params': [w]}, {'params': [w]}], lr=0.1)"),
    ("Invalid learning rate", "lib.optim.SGD([w], lr=-1.)"),
    ("result type Float can't be cast to the desired output type Long", "i.sqrt_()"),
    ("result type Float can't be cast to", "i.div_(2)"),
    ("to match target batch_size", "F.cross_entropy(x, i)"),
    ("Expected more than 1 value per channel when training", "lib.nn.BatchNorm1d(3)(x[:1])"),
    ("Expected more than 1 value per channel when training", "F.batch_norm(x[:1], None, None, training=True)"),
    ("Expected more than 1 value per channel when training", "F.group_norm(x[:1], 3)"),
    ("Number of indices (2) should be equal to source.size(dim)", "x.index_copy(0, i[:2] * 0, x[:1])"),
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
    ("", "F.embedding(i, x, padding_idx=5)"),
    ("as parameter 'bias'", "setattr(lib.nn.Linear(2, 2), 'bias', lib.nn.ReLU())"),
    ("", "lib.nn.utils.rnn.pad_sequence([])"),
    ("", "x.type('q')"),
    ("", "lib.manual_seed('a')"),
    ("", "lib.Generator().manual_seed('a')"),
    ("", "lib.optim.SGD([w], lr=0.1).load_state_dict({})"),
    ("", "lib.optim.SGD([w], lr=0.1).add_param_group({})"),
    ("", "lib.utils.data.TensorDataset(x, v)"),
    ("", "x.to(1, 2, 3)"),
    ("", "x.type_as(3)"),
    ("", "lib.nn.Linear(2, 2).register_parameter(1, None)"),
    ("", "lib.nn.Linear(2, 2).train('a')"),
    ("", "lib.ones(2, device=3.5)"),
    ("", "lib.device('cpu', 'a')"),
    ("", "lib.device(None)"),
    ("", "'a' in x"),
    ("", "None in x"),
    ("", "lib.autograd.Function.forward(None)"),
    ("", "lib.autograd.Function.backward(None)"),
    ("", "lib.bmm(x[None], lib.ones(2, 3, 4))"),
    ("", "F.grid_sample(lib.ones(1, 1, 2, 2), lib.ones(1, 2, 2, 2), mode='q')"),
    ("", "lib.tensor(['a'])"),
    ("", "lib.einsum('ij,jk->ik')"),
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
    assert isinstance(ours, WeftError | AttributeError), type(ours)
    assert isinstance(ours, next(k for k in type(theirs).__mro__ if k.__module__ == "builtins"))
