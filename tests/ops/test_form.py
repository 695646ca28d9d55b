"""What declarations tell of shapes and dtypes is what their kernels give, and misfits are left to the kernels."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from weft.core import dtype as dtypes
from weft.core.errors import DtypeError, IndexingError
from weft.ops import OPS
from weft.ops.form import Form, declared
from weft.testing.cases import cases
from weft.testing.layouts import replaced, run_kernel, tensors

UNCHECKED = {"attention_grad"}  # its kernel reads past the end of what doesn't fit
TELLING = [
    name
    for name, op in OPS.items()
    if (op.form_function or op.uniform or op.elementwise) and not op.dynamic and not op.random and name not in UNCHECKED
]
# a graph meets these only with operands that its own forward pass made
INTERNAL = {name for name in TELLING if name.endswith(("_grad", "_places", "_slope"))}


def _others(t: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensor in other shapes and dtypes."""
    if t.dim():
        yield t[..., :-1]
        yield t[:1]
        yield t[:0]
        if len(t):
            yield t[0]
    yield t.unsqueeze(0)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.bool):
        if dtype is not t.dtype:
            yield t.real.to(dtype) if t.is_complex() else t.to(dtype)


def _variations(operands: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """One operand in another form, or all floating ones in a 16-bit dtype."""
    for i, t in enumerate(operands):
        for other in _others(t):
            yield [(other if j == i else o).clone() for j, o in enumerate(operands)]
    for dtype in (torch.bfloat16, torch.float16):
        yield [o.to(dtype) if o.is_floating_point() else o.clone() for o in operands]


def _forms(given: list[torch.Tensor]) -> list[Form]:
    return [Form(tuple(t.shape), dtypes.of_torch(t.dtype)) for t in given]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TELLING)
def test_told_is_what_the_kernel_gives(name: str) -> None:
    op, asked = OPS[name], 0
    for args in cases(op):
        for given in _variations(tensors(op, args)):
            try:
                forms = declared(op, replaced(op, args, _forms(given)))
            except DtypeError:  # complex numbers of 16 bits
                continue
            if forms is None:
                continue
            asked += 1
            try:
                made = run_kernel(op, replaced(op, args, given))
            except IndexingError:  # of the values, which forms don't know
                continue
            except Exception as refused:
                if re.search("out of bounds|allocated size", str(refused)):  # likewise
                    continue
                if re.search("not implemented for '(Half|BFloat16)'", str(refused)):  # on the CPU
                    continue
                assert name in INTERNAL, f"declared {forms} of {_forms(given)}, and the kernel says {refused}"
                continue
            assert forms == tuple(_forms(list(made)))
    if not asked:
        pytest.skip("any change makes it a misfit")


def test_what_training_needs_is_told() -> None:
    """Declared forms spare a program what torch's meta kernels need: seconds at every first call."""
    needed = (
        "linear matmul linear_weight_grad softmax softmax_grad log_softmax layer_norm layer_norm_grad rms_norm"
        " embedding embedding_weight_grad scaled_dot_product_attention attention_grad cross_entropy"
        " cross_entropy_grad dropout cat conv2d conv_input_grad conv_weight_grad batch_norm batch_norm_grad"
        " max_pool2d sum mean gelu add mul sum_to"
    )
    for name in needed.split():
        op = OPS[name]
        assert declared(op, replaced(op, cases(op)[0], _forms(tensors(op, cases(op)[0])))) is not None, name


PROGRAM = """
import sys
import weft as flow
from weft import nn
class Attends(nn.Module):
    def forward(self, x):
        q = x.view(1, 5, 2, 8).transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).reshape(5, 16)
model = nn.Sequential(
    nn.Linear(8, 16), nn.GELU(), Attends(), nn.LayerNorm(16), nn.Dropout(0.1), nn.Linear(16, 4)
)
optimizer = flow.optim.AdamW(model.parameters(), lr=0.1)
class Train(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)
    def build(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        return loss
Train()(flow.randn(5, 8), flow.tensor([0, 1, 2, 3, 0])).item()
shorter = Train()
shorter.config.enable_amp()
shorter(flow.randn(5, 8), flow.tensor([0, 1, 2, 3, 0])).item()
model = model.to(flow.bfloat16)
optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
Train()(flow.randn(5, 8).to(flow.bfloat16), flow.tensor([0, 1, 2, 3, 0])).item()
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))  # what such calls allocate is measured
optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
Train()(flow.ones(512, 512), flow.zeros(512, dtype=flow.int64)).item()
print(sorted({"torch._dynamo", "sympy"} & set(sys.modules)))
"""


def test_a_first_call_loads_no_compiler() -> None:
    first_calls = Path(__file__).with_name("first_calls.py").read_text()
    ran = subprocess.run([sys.executable, "-c", PROGRAM + first_calls], capture_output=True, text=True, timeout=250)
    assert ran.stdout.strip() == "[]", ran.stderr
