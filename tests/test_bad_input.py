"""What a user may do wrong: each is answered by a named error that tells the values, why, and what would work.

The first table is OneFlow's own list of failures, expression by expression, in Weft's spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.core.errors import (
    ArgumentError,
    AutogradError,
    CheckpointError,
    DeadlineError,
    DeviceError,
    DtypeError,
    EndOfData,
    GraphError,
    IndexingError,
    OptionError,
    PlacementError,
    RankError,
    SbpError,
    ShapeError,
    TraceError,
    WeftError,
)
from weft.core.rank import current
from weft.launch import spawn_threads

F = nn.functional


def _graph(build: Callable[..., Any], prepare: Callable[[Any], object] = lambda graph: None) -> nn.Graph:
    class G(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            prepare(self)

        def build(self, *args: Any) -> Any:
            return build(self, *args)

    return G()


def _twice(call: Any, first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    call(*first)
    call(*second)


def _twice_backward() -> None:
    a = flow.ones(2, requires_grad=True)
    loss = (a * a).sum()
    loss.backward()
    loss.backward()


def _leaf() -> flow.Tensor:
    return flow.ones(2, requires_grad=True)


def _fill(graph: Any, name: str, value: Any) -> None:
    setattr(graph, name, value)


LOCAL: list[tuple[str, type[Exception], str]] = [
    # placements, sbp, devices
    ("flow.add(flow.ones(2, device='meta'), flow.ones(2))", DeviceError, "on cpu and meta.*one device"),
    ("flow.ones(2, 2).to_local()", SbpError, "local already"),
    ("flow.ones(2, 2, sbp=B)", ArgumentError, "give placement="),
    ("flow.placement('gpu', ranks=[0])", PlacementError, "'cpu' or 'cuda'; got 'gpu'"),
    ("flow.placement('cpu', ranks=[])", PlacementError, r"non-empty .* list of ints; got \[\]"),
    ("flow.placement('cpu')", PlacementError, r"ranks=\[0, 1\].*placement\.all"),
    ("flow.placement('cpu', [[0, 1], [2]])", PlacementError, "must form a grid"),
    ("flow.placement('cpu', [0, 0])", PlacementError, "every rank occurs once"),
    ("flow.device('abc')", DeviceError, "'abc' is not a device; write 'cpu'"),
    *(
        (f"flow.device({kind!r}, {index!r})", DeviceError, "the index of a device is an integer from 0")
        for kind in ("cpu", "cuda")
        for index in ("x", 1.5, -1)
    ),
    ("flow.sbp.split('x')", SbpError, "takes a dimension, an int; got 'x'"),
    ("flow.sbp.split(-3)", SbpError, r"split\(-3\).*at least 0"),
    ("flow.tensor([1, 2]).to('abc')", ArgumentError, "'abc' is not a device.*not a dtype"),
    # arguments
    ("flow.relu(3)", ArgumentError, r"relu\(\): argument 'x' must be tensor, not int \(3\)"),
    ("flow.relu()", ArgumentError, r"relu\(\): missing required argument 'x'"),
    ("flow.relu(flow.ones(2), True, 1)", ArgumentError, r"relu\(\): takes 2 positional arguments but 3 were given"),
    ("flow.relu(flow.ones(2), input=flow.ones(2))", ArgumentError, "several values for argument 'x'"),
    ("flow.relu(flow.ones(2), depth=3)", ArgumentError, r"unexpected argument 'depth'.*\n.*relu\(x: Tensor, inplace"),
    ("flow.matmul(flow.ones(2, 2))", ArgumentError, r"matmul\(\): missing required argument '\w+'"),
    ("flow.sum(flow.ones(2), 0, True, 1)", ArgumentError, r"takes 3 positional arguments but 4 were given"),
    ("flow.ones(2).exp_(1)", ArgumentError, r"exp_?\(\): takes 1 positional argument but 2"),
    ("flow.add(flow.ones(2), 'a')", ArgumentError, "argument 'other' must be tensor or number, not str"),
    ("flow.tensor('a')", DtypeError, r"'a' can't be converted to a tensor.*numbers, arrays"),
    ("flow.tensor([[1, 2], [3]])", ShapeError, "every row is as long"),
    ("flow.ones(2, dtype=flow.int32, requires_grad=True)", DtypeError, "floating point.*weft.int32"),
    ("flow.float32 + 1", TypeError, "unsupported operand"),
    ("flow.ones(2, 2).foo", AttributeError, "'Tensor' object has no attribute 'foo'"),
    ("flow.nothing", AttributeError, "no attribute|has no 'nothing'"),
    # shapes
    ("flow.matmul(flow.ones(2, 3), flow.ones(2, 3))", ShapeError, r"2x3 and 2x3.*inner dimensions must agree"),
    ("flow.ones(2, 3) + flow.ones(4, 5)", ShapeError, r"\(3\) must match .*\(5\).*aligned at the last"),
    ("flow.ones(2, 3).reshape(4, 5)", ShapeError, r"\[4, 5\].* input of size 6.*keeps the number"),
    ("flow.ones(2, 2).view(3)", ShapeError, r"\[3\].* input of size 4"),
    ("flow.cat([flow.ones(2, 3), flow.ones(3, 4)], 0)", ShapeError, "Expected size 3 but got size 4"),
    ("flow.cat([], 0)", OptionError, "non-empty list"),
    ("flow.stack([flow.ones(2), flow.ones(3)])", ShapeError, r"got \[2\] at entry 0 and \[3\] at entry 1"),
    ("flow.stack([])", ArgumentError, "got none"),
    ("flow.split(flow.ones(4), [1, 2])", ShapeError, r"sum exactly to 4 .*\[1, 2\], which make 3: split\(\) of \[4\]"),
    ("flow.bmm(flow.ones(2, 2), flow.ones(2, 2))", ShapeError, r"bmm\(\): .*takes .* 3 and 3 .*\[2, 2\]"),
    ("flow.mm(flow.ones(2), flow.ones(2, 2))", ShapeError, r"mm\(\): .*takes .* 2 and 2 .*matmul\(\) takes any"),
    ("flow.ones(2, 3).expand(4, 5)", ShapeError, r"\(5\) must match .*\(3\)"),
    ("flow.where(flow.ones(2) > 0, flow.ones(3), flow.ones(2))", ShapeError, r"\(2\) must match .*\(3\)"),
    ("flow.ones(-1)", ShapeError, "negative dimension -1"),
    ("flow.ones(2).narrow(0, 1, 5)", ShapeError, r"start \(1\) \+ length \(5\) exceeds"),
    ("nn.Linear(3, 4)(flow.ones(2, 5))", ShapeError, r"2x5 and 3x4.*weight is \[m, k\]"),
    (
        "F.conv2d(flow.ones(1, 2, 3, 3), flow.ones(4, 3, 1, 1))",
        ShapeError,
        "to have 3 channels, but got 2 channels instead",
    ),
    ("F.layer_norm(flow.ones(2, 3), (4,))", ShapeError, r"\[\*, 4\].*size\[2, 3\]"),
    ("F.cross_entropy(flow.ones(2, 3), flow.tensor([0, 1, 2]))", ShapeError, r"labels of shape \[2\]; got \[3\]"),
    ("bool(flow.ones(2))", ShapeError, "ambiguous.*use .any"),
    ("flow.ones(2).item()", ShapeError, "2 elements"),
    # dimensions, indices, labels
    ("flow.ones(2, 3).sum(5)", IndexingError, r"range of \[-2, 1\], but got 5"),
    ("flow.softmax(flow.ones(2, 2), 5)", IndexingError, r"range of \[-2, 1\], but got 5"),
    ("flow.squeeze(flow.ones(2), 4)", IndexingError, "but got 4"),
    ("flow.ones(2, 2).transpose(0, 4)", IndexingError, "but got 4"),
    ("flow.ones(2, 2).permute(0, 0)", IndexingError, r"\[0, 0\] must name each of the 2 dimensions once"),
    ("flow.ones(2)[5]", IndexingError, "index 5 is out of bounds for dimension 0 with size 2"),
    ("F.embedding(flow.tensor([9]), flow.ones(3, 2))", IndexingError, r"index 9, at position \[0\].*3 rows"),
    ("F.cross_entropy(flow.ones(2, 3), flow.tensor([0, 7]))", IndexingError, r"label 7, at position \[1\].*0 to 2"),
    ("F.one_hot(flow.tensor([5]), 3)", IndexingError, "label 5.*3 classes"),
    ("flow.gather(flow.ones(2, 2), 1, flow.tensor([[5]]))", IndexingError, "index 5 is out of bounds"),
    ("flow.index_select(flow.ones(2, 2), 0, flow.tensor([4]))", IndexingError, "they are 4 to 4"),
    # gradients
    ("flow.ones(2).backward()", AutogradError, "does not require grad.*requires_grad=True"),
    ("(_leaf() * 2).backward()", AutogradError, r"shape \[2\].*backward\(gradient\)"),
    ("_twice_backward()", AutogradError, "released.*retain_graph=True"),
    ("_leaf().add_(1)", AutogradError, "leaf Variable that requires grad.*no_grad"),
    # modules, optimizers, files
    ("nn.Module().forward(1)", NotImplementedError, "forward"),
    ("nn.Linear(3, 4).foo", AttributeError, "'Linear' object has no attribute 'foo'"),
    ("nn.Linear(3, 4).load_state_dict({})", CheckpointError, 'Missing key.*"weight", "bias"'),
    (
        "nn.Linear(3, 4).load_state_dict({'weight': flow.ones(2, 2)})",
        CheckpointError,
        r'Missing key.*"bias".*size mismatch for weight.*\[2, 2\].*\[4, 3\]',
    ),
    ("flow.optim.SGD([], lr=0.1)", OptionError, "empty parameter list"),
    ("flow.optim.SGD(nn.Linear(2, 2).parameters(), lr=-1)", OptionError, "-1; it must be at least 0"),
    ("flow.optim.Adam(nn.Linear(2, 2).parameters(), lr='1e-3')", ArgumentError, r"lr must be.*write float\('1e-3'\)"),
    ("flow.optim.lr_scheduler.StepLR(flow.optim.SGD([_leaf()]), step=3)", TypeError, r"^StepLR\.__init__\(\) got"),
    ("nn.Embedding(4, 3)(flow.tensor([-1.5, 9.0]))", DtypeError, "takes ids as int64: cast it"),
    ("F.dropout(flow.ones(2), p=2.0)", ArgumentError, "between 0 and 1, but got 2.0"),
    ("flow.load('/nonexistent')", FileNotFoundError, "/nonexistent"),
    # graphs
    (
        "_graph(lambda g, x: x, lambda g: g.config.set_gradient_accumulation_steps(0))",
        GraphError,
        r"set_gradient_accumulation_steps\(steps\) takes .* at least 1; got 0",
    ),
    (
        "_twice(_graph(lambda g, x: flow.relu(x)), (flow.ones(2),), (flow.ones(2), flow.ones(2)))",
        GraphError,
        "Expected nothing, got shape=",
    ),
    (
        "_twice(_graph(lambda g, x: flow.relu(x)), (flow.ones(2),), (flow.ones(3),))",
        GraphError,
        r"shape=\(2,\).*shape=\(3,\).*Make another graph",
    ),
    ("_graph(lambda g: 0, lambda g: _fill(g, 't', flow.ones(2)))", GraphError, "not allowed to set Tensor.*'t'"),
    ("nn.Graph()(flow.ones(2))", GraphError, "needs a method build"),
    ("_graph(lambda g, x: x * x.sum().item())(flow.ones(2))", TraceError, "symbol. Return it"),
    ("_graph(lambda g, x: x.numpy())(flow.ones(2))", TraceError, "symbol. Return it"),
    ("_graph(lambda g, x: f'{x.sum():.3f}')(flow.ones(2))", TraceError, "symbol. Return it"),
    ("_graph(lambda g, x: flow.nonzero(x))(flow.ones(2))", TraceError, "shape that depends on data.*flow.where"),
    (
        "_graph(lambda g, x: g.m(x).sum().backward(), lambda g: _fill(g, 'm', nn.Linear(2, 2)))(flow.ones(2, 2))",
        TraceError,
        "call self.add_optimizer",
    ),
    ("_graph(lambda g, x: x).job", GraphError, "isn't compiled yet; call it once"),
]

GLOBAL: list[tuple[str, type[Exception], str]] = [
    ("flow.ones(2, 2, placement=P, sbp=S(0)) + flow.ones(2, 2)", PlacementError, "are global.*to_global"),
    ("flow.ones(2, 2) + flow.ones(2, 2, placement=P, sbp=S(0))", PlacementError, "are global.*to_local"),
    ("flow.ones(2, placement=P0, sbp=B) + flow.ones(2, placement=P1, sbp=B)", PlacementError, r":\[0\] and cpu:\[1\]"),
    (
        "flow.matmul(flow.ones(2, 2, placement=P0, sbp=B), flow.ones(2, 2, placement=P, sbp=B))",
        PlacementError,
        "different placements.*Move them",
    ),
    ("flow.ones(2, 2, placement=P, sbp=S(2))", SbpError, r"S\(2\) splits dimension 2, but the tensor has 2"),
    ("flow.ones(2, 2).to_global(placement=P)", SbpError, "both a placement and an sbp"),
    ("flow.ones(2, 2).to_global(sbp=B)", SbpError, "both a placement and an sbp"),
    ("flow.ones(2, 2).to_global(placement=P, sbp=[B, B])", SbpError, "1 axes takes 1 sbp; got 2"),
    ("flow.ones(2, 2, placement=P, sbp=B).to_global(sbp=[B, B])", SbpError, "1 axes takes 1 sbp; got 2"),
    ("flow.ones(2, 2, placement=P, sbp=B).to_global(sbp=S(5))", SbpError, "dimension 5, but the tensor has 2"),
    ("flow.ones(2).to_global(placement=P, sbp='b')", SbpError, r"'b' is not an sbp; write S\(0\), B"),
    ("flow.ones(2).to_global(placement=0, sbp=B)", ArgumentError, "must be a flow.placement, not int"),
    ("flow.ones(2, 2, placement=P)", SbpError, "needs an sbp, such as"),
    ("flow.ones(2, 2, device='cpu', placement=P, sbp=B)", ArgumentError, "give one of them"),
    ("flow.ones(2, placement=flow.placement('cpu', [0, 5]), sbp=B)", PlacementError, "names rank 5.*ranks 0 to 1"),
    (
        "nn.graph.GraphModule('m').set_stage(0, flow.placement('cpu', [0, 5]))",
        PlacementError,
        "names rank 5.*ranks 0 to 1",
    ),
    ("flow.ones(2, 2, placement=P, sbp=S(0)).permute(0, 0)", IndexingError, "must name each of the 2"),
    ("flow.ones(2, 2, placement=P, sbp=S(0)).view(3)", ShapeError, "input of size 4"),
    ("F.embedding(LABELS + 9, flow.ones(3, 2, placement=P, sbp=S(0)))", IndexingError, "index 9, at position.*3 rows"),
    (
        "F.cross_entropy(flow.ones(2, 3, placement=P, sbp=S(1)), LABELS + 7)",
        IndexingError,
        "label 7, at position.*3 classes",
    ),
    (
        "_graph(lambda g, x: x + flow.ones(2))(flow.ones(2, placement=P, sbp=B))",
        PlacementError,
        "some operands are global and some are local in this graph",
    ),
    ("flow.comm.broadcast(flow.ones(2), 7)", RankError, "rank 7 is outside.*0 to 1"),
    ("flow.comm.all_reduce(flow.ones(2, placement=P, sbp=B))", SbpError, "works on local tensors"),
]

NO_CUDA = [
    "flow.ones(2).cuda()",
    "flow.ones(2).to('cuda')",
    "flow.ones(2, device='cuda')",
    "nn.Linear(2, 2).cuda()",
    "flow.ones(2, placement=flow.placement('cuda', [0]), sbp=B)",
    "flow.ones(2, placement=flow.placement('cpu', [0]), sbp=B).to('cuda')",
]


def raises(expression: str, kind: type[Exception], words: str) -> str:
    """What is wrong with the answer, if anything."""
    names = {
        "P": flow.placement("cpu", [0, 1]), "P0": flow.placement("cpu", [0]), "P1": flow.placement("cpu", [1]),
        "S": flow.sbp.split, "B": flow.sbp.broadcast,
    }  # fmt: skip
    if "LABELS" in expression:
        names["LABELS"] = flow.zeros(2, dtype=flow.int64, placement=names["P"], sbp=names["B"])
    try:
        value = eval(expression, {**globals(), **names})
    except Exception as error:
        if isinstance(error, kind) and re.search(words, str(error), re.DOTALL):
            return ""
        return f"{expression}\n  raised {type(error).__name__}: {error}\n  not {kind.__name__}: {words}"
    return f"{expression}\n  gave a {type(value).__name__}"


@pytest.mark.parametrize(("expression", "kind", "words"), LOCAL, ids=[row[0][:60] for row in LOCAL])
def test_on_one_rank(expression: str, kind: type[Exception], words: str) -> None:
    wrong = raises(expression, kind, words)
    assert not wrong, wrong


def test_on_two_ranks() -> None:
    """Each rank raises by itself: nobody waits for somebody who has failed."""

    def body() -> list[str]:
        return [wrong for row in GLOBAL if (wrong := raises(*row))]

    found = spawn_threads(2, body, deadline=60)
    assert found == [[], []], "\n".join(w for rank in found for w in rank)


def test_what_oneflow_refuses_or_gets_wrong_and_weft_can() -> None:
    def body() -> None:
        placement, flat = flow.placement("cpu", [0, 1]), flow.sbp.broadcast
        flow.manual_seed(1)
        whole = flow.randn(2, 2, placement=placement, sbp=flat).numpy()
        flow.manual_seed(1)
        parts = flow.randn(2, 2, placement=placement, sbp=flow.sbp.partial_sum)
        assert (parts.numpy() == whole).all()
        # a graph on local tensors: OneFlow gave rank 1 a wrong answer
        graph = _graph(lambda g, x: x + 1)
        assert graph(flow.ones(2, 2)).tolist() == [[2.0, 2.0]] * 2
        # the norm of a split or partial tensor: OneFlow's was silently wrong
        for sbp in (flow.sbp.split(0), flow.sbp.split(1), flow.sbp.partial_sum):
            x = flow.ones(4, 4, placement=placement, sbp=flat).to_global(sbp=sbp)
            assert x.norm().item() == 4.0

    spawn_threads(2, body)


@pytest.mark.parametrize("expression", NO_CUDA)
def test_without_cuda(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    wrong = raises(expression, DeviceError, "torch sees no(ne| CUDA devices) here; use .*cpu")
    assert not wrong, wrong


def test_every_named_error_is_one_of_wefts_and_of_pythons() -> None:
    """Whoever catches what PyTorch would raise catches ours, too."""
    for kind, wider in (
        (ArgumentError, TypeError), (ShapeError, RuntimeError), (IndexingError, IndexError),
        (OptionError, ValueError), (DtypeError, RuntimeError), (DeadlineError, TimeoutError),
        (EndOfData, EOFError),
    ):  # fmt: skip
        assert issubclass(kind, wider) and issubclass(kind, WeftError)


def test_a_kernel_that_fails_leaves_everything_as_it_was() -> None:
    x = flow.ones(2, 3)
    with pytest.raises(ShapeError):
        x.add_(flow.ones(4, 5))
    assert x.tolist() == [[1.0] * 3] * 2 and (x + 1).tolist() == [[2.0] * 3] * 2
    assert current().index == 0
