from __future__ import annotations

import pytest

import weft as flow
from weft.autograd import Function, sweep
from weft.autograd.function import once_differentiable
from weft.core.errors import ArgumentError, AutogradError


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * x * x * 3


def test_what_a_function_gave_leaves_no_mark_on_other_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gradient may get the place in memory of one that a program saw, and that is gone."""
    copies: list[flow.Tensor] = []
    monkeypatch.setattr(sweep.ops, "clone", lambda g: copies.append(g) or g.detach())
    weights = [flow.ones(3, 3, requires_grad=True) for _ in range(8)]
    x = flow.ones(3, 3)
    for w in weights:
        x = Cube.apply((x @ w).tanh())
    x.sum().backward()
    assert not copies


class TwoInTwoOut(Function):
    @staticmethod
    def forward(ctx, x, n, y):
        ctx.n = n
        return x * n, y + x

    @staticmethod
    def backward(ctx, dp, dq):
        return dp * ctx.n + dq, None, dq


def test_a_gradient_of_ones_own() -> None:
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x)
    assert repr(y.grad_fn) == "<Cube_backward>"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_its_gradient_has_a_gradient() -> None:
    x = flow.tensor([2.0], requires_grad=True)
    (g,) = flow.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    g.sum().backward()
    assert x.grad.tolist() == [12.0]


def test_several_inputs_and_outputs_and_numbers() -> None:
    x, y = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    p, q = TwoInTwoOut.apply(x, 3.0, y)
    (p.sum() + 2 * q.sum()).backward()
    assert x.grad.tolist() == [5.0, 5.0] and y.grad.tolist() == [2.0, 2.0]


def test_an_output_without_gradient_gets_zeros() -> None:
    x, y = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    p, _ = TwoInTwoOut.apply(x, 3.0, y)
    p.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and y.grad.tolist() == [0.0, 0.0]


def test_no_materialized_zeros() -> None:
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return a

    x = flow.ones(2, requires_grad=True)
    Two.apply(x)[0].sum().backward()
    assert seen == [(False, True)]


def test_non_differentiable_output() -> None:
    class Sign(Function):
        @staticmethod
        def forward(ctx, x):
            mask = x > 0
            y, count = x * 2, x * 0
            ctx.mark_non_differentiable(count)
            return y, count, mask

        @staticmethod
        def backward(ctx, dy, dcount, dmask):
            return dy * 2

    x = flow.ones(2, requires_grad=True)
    y, count, mask = Sign.apply(x)
    assert y.requires_grad and not count.requires_grad and not mask.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_needs_input_grad() -> None:
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, a, b):
            seen.append(ctx.needs_input_grad)
            return a + b

        @staticmethod
        def backward(ctx, dy):
            return dy, dy

    Look.apply(flow.ones(1, requires_grad=True), flow.ones(1))
    assert seen == [(True, False)]


def test_an_input_returned_as_it_is() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, dy):
            return dy * 10

    x = flow.ones(2, requires_grad=True)
    y = Same.apply(x)
    assert y is not x and x.grad_fn is None
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


def test_no_tape_without_need() -> None:
    assert Cube.apply(flow.ones(2)).grad_fn is None
    with flow.no_grad():
        assert not Cube.apply(flow.ones(2, requires_grad=True)).requires_grad


def test_a_second_backward_that_needs_nothing_saved() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, dy):
            return dy * 2

    x = flow.ones(2, requires_grad=True)
    y = Double.apply(x).sum()
    for _ in range(2):
        y.backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_second_backward_is_refused() -> None:
    x = flow.ones(2, requires_grad=True)
    y = Cube.apply(x)
    y.backward(flow.ones(2))
    with pytest.raises(AutogradError, match=r"Cube_backward.*retain_graph=True"):
        y.backward(flow.ones(2))


def test_too_few_gradients() -> None:
    class Few(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, dy):
            return dy

    x = flow.ones(2, requires_grad=True)
    with pytest.raises(AutogradError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        Few.apply(x, x).sum().backward()


@pytest.mark.parametrize("missing", ["forward", "backward"])
def test_missing_method(missing: str) -> None:
    kind = type("Half", (Cube,), {missing: getattr(Function, missing)})
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match=missing):
        kind.apply(x).sum().backward()


def test_a_forward_without_ctx() -> None:
    class Scaled(Function):
        @staticmethod
        def forward(x, by):
            return x * by, by

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.by = output[1]

        @staticmethod
        def backward(ctx, dy, _):
            assert ctx.needs_input_grad == (True, False)
            return dy * ctx.by, None

    x = flow.ones(2, requires_grad=True)
    Scaled.apply(x, 3.0)[0].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_gradient_that_has_none() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, dy):
            return dy * ctx.saved_tensors[0] * 2, None

    x = flow.ones(2, requires_grad=True)
    Once.apply(x, 1).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and not x.grad.requires_grad
    (g,) = flow.autograd.grad(Once.apply(x * 2, 1).sum(), x, create_graph=True)
    assert g.tolist() == [8.0, 8.0]
    v = flow.ones(2, requires_grad=True)
    (g,) = flow.autograd.grad(Once.apply(x, 1), x, v, create_graph=True)
    with pytest.raises(AutogradError, match="once_differentiable"):
        g.sum().backward()


def test_gradients_beside_differences() -> None:
    x = flow.tensor([0.5, 1.5], dtype=flow.float64, requires_grad=True)
    y = flow.tensor([1.0, -2.0], dtype=flow.float64, requires_grad=True)
    check, twice = flow.autograd.gradcheck, flow.autograd.gradgradcheck
    assert check(lambda x, y: (x.sin() * y, x.sum()), (x, y)) and twice(lambda x, y: x**3 * y, (x, y))
    assert check(Cube.apply, x) and twice(Cube.apply, x)

    class Wrong(Cube):
        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved_tensors[0]

    assert not check(Wrong.apply, x, raise_exception=False)
    with pytest.raises(AutogradError, match="of result 0 by input 0"):
        check(Wrong.apply, x)
    with pytest.raises(ArgumentError, match="one of which requires a gradient"):
        check(flow.sin, flow.ones(2))


def test_differences_options() -> None:
    x = flow.tensor([[0.5, 1.5], [2.0, -1.0]], dtype=flow.float64, requires_grad=True)
    check, twice = flow.autograd.gradcheck, flow.autograd.gradgradcheck
    assert check(lambda x: (x.exp(), x.sum(0)), x, check_batched_grad=True, fast_mode=True)
    assert twice(lambda x: x**3, x, gen_non_contig_grad_outputs=True, check_batched_grad=True)

    class Drifting(Cube):
        times = 0

        @staticmethod
        def backward(ctx, dy):
            Drifting.times += 1
            return Cube.backward(ctx, dy) * (1 + 1e-9 * Drifting.times)

    with pytest.raises(AutogradError, match="computed again"):
        check(Drifting.apply, x)
    assert check(Drifting.apply, x, nondet_tol=1e-5)
    with pytest.raises(ArgumentError, match="unknown options atoll"):
        check(flow.sin, x, atoll=1.0)
    with pytest.raises(ArgumentError, match="leave them on"):
        check(flow.sin, x, check_backward_ad=False)
    assert check(lambda x: x[:0] * 2, x, check_batched_grad=True)
