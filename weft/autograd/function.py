"""`autograd.Function`: a custom function with a custom gradient, in Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from weft.autograd.call import as_it_is, check_unwritten, edge, version
from weft.autograd.freshness import set_view
from weft.autograd.graph import Packed, hooks_around
from weft.autograd.inplace import check_writable, rebase
from weft.autograd.modes import anomaly, call_stack
from weft.autograd.node import RELEASED, Hooked, Slot, opened
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, AutogradError, MissingFormulaError, ShapeError
from weft.ops import ops
from weft.ops.explain import describe
from weft.tensor.gradient import check_kind
from weft.tensor.tensor import Tensor, rewrap
from weft.tensor.written import next_sequence


class Context:
    """What `forward` passes to `backward`: saved tensors, and attributes set on it."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] | str = ()  # or, once released, the reason
        self._given: tuple[Any, ...] = ()  # the saved tensors as they were given, of which leaves are found by identity
        self._versions: tuple[int, ...] = ()  # of the saved tensors' memory after forward
        self._non_differentiable: set[int] = set()
        self._dirty: tuple[Tensor, ...] = ()
        self.needs_input_grad: tuple[bool, ...] = ()
        self.materialize_grads = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        for i, t in enumerate(tensors):
            if not isinstance(t, Tensor | None):
                raise ArgumentError(
                    f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}: set "
                    "anything else as an attribute, ctx.n = n"
                )
        hooks = hooks_around()
        if hooks is not None:
            self._saved = tuple(Packed(t, hooks) if isinstance(t, Tensor) else t for t in tensors)
        else:
            self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        if isinstance(self._saved, str):
            raise AutogradError(self._saved)
        for t, was in zip(self._saved, self._versions, strict=False):
            if isinstance(t, Tensor):
                check_unwritten(t, was, f"{describe(t)}, given to save_for_backward,", "Save a copy, t.clone()")
        found = (opened(t) if type(t) is Packed else t for t in self._saved)
        return tuple(map(_leaf_again, found, self._given or self._saved))

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self._non_differentiable = {id(t) for t in tensors}

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Inputs that forward overwrites and returns: they become outputs, for whoever holds them."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


def _leaf_again(saved: Any, given: Any) -> Any:
    """The leaf itself for the symbol that a trace saved of it, if nothing was written into it since."""
    if saved is given or not isinstance(given, Tensor) or given.node is not None or not given._requires_grad:
        return saved
    symbol = given.value if given.value is not None or here.trace is None else here.trace.read(given)
    return given if symbol is not None and symbol == saved.value else saved


class CustomNode(Hooked):
    """The tape's node of a `Function`."""

    def __init__(
        self, function: type[Function], context: Context, edges: tuple[Any, ...], outputs: tuple[Any, ...],
        inputs: tuple[Any, ...] | None = None,
    ) -> None:  # fmt: skip
        self.function, self.context, self.edges = function, context, edges
        self.forms = None  # shape, dtype and kind of inputs that are tensors; None where gradients are known to fit
        if inputs is not None:
            self.forms = tuple(
                (tuple(a.shape), a.dtype, a.is_global) if isinstance(a, Tensor) else None for a in inputs
            )
        self.shapes: tuple[Any, ...] = ()  # of outputs without a gradient
        if context.materialize_grads:
            self.shapes = tuple((y.detach() if isinstance(y, Tensor) else None) for y in outputs)
        self.sequence = next_sequence()
        self.outputs_count = len(outputs)
        self.hooks: dict[int, dict[int, Callable[..., Any]]] | None = None
        self.retained: dict[int, Any] | None = None
        self.origin: Any = call_stack() if anomaly() is not None else None

    def name(self) -> str:
        return f"{self.function.__name__}_backward"

    def retain(self, index: int, tensor: Any) -> None:
        self.retained = (self.retained or {}) | {index: tensor}

    def release(self) -> None:
        self.context._saved = RELEASED.format(self.name())

    def backward(self, gradients: list[Tensor | None]) -> tuple[Tensor | None, ...]:
        if self.context.materialize_grads:
            gradients = [
                ops.zeros_like(y) if g is None and y is not None else g
                for g, y in zip(gradients, self.shapes, strict=True)
            ]
        result = self.function.backward(self.context, *gradients)
        result = result if isinstance(result, tuple) else (result,)
        n = len(self.edges)
        if len(result) < n or any(g is not None for g in result[n:]):
            raise AutogradError(
                f"{self.function.__name__}.backward returned an incorrect number of gradients (expected {n}, got "
                f"{len(result)}): return one per input, None where there is none"
            )
        return result[:n] if self.forms is None else tuple(map(self._fitting, range(n), result, self.forms))

    def _fitting(self, i: int, g: Any, form: Any) -> Tensor | None:
        """A gradient in its input's shape and dtype: what was broadcast is summed."""
        if g is None:
            return None
        where = f"{self.function.__name__}.backward returned for input {i}"
        if not isinstance(g, Tensor):
            raise ArgumentError(f"expected Variable or None (got {type(g).__name__}): {where}, {g!r}")
        if form is None:
            raise AutogradError(f"{where}, which is no tensor, a gradient different than None")
        shape, dtype, everywhere = form
        check_kind(everywhere, g, where)
        lead = g.ndim - len(shape)
        if tuple(g.shape) != shape:
            if lead < 0 or any(n not in (m, 1) for n, m in zip(shape, g.shape[lead:], strict=True)):
                raise ShapeError(
                    f"{where} an invalid gradient - got {list(g.shape)} but expected shape compatible with "
                    f"{list(shape)}"
                )
            g = ops.sum_to(g, shape)
        return g if g.dtype is dtype or not dtype.differentiable else ops.cast(g, dtype)

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Function:
    """Subclass with static methods `forward(ctx, *args)` and `backward(ctx, *gradients)`; call with `apply`.

    >>> class Double(flow.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x): return x * 2
    ...     @staticmethod
    ...     def backward(ctx, dy): return dy * 2
    >>> x = flow.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward(); x.grad.tolist()
    [2.0, 2.0]
    """

    makes_views = False  # whether its outputs that are views have a view's gradient

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        raise MissingFormulaError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def backward(ctx: Any, *gradients: Any, **kwargs: Any) -> Any:
        raise MissingFormulaError("a Function needs a static method backward(ctx, *gradients)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """If defined, `forward` takes no ctx, and this saves what backward needs."""

    def __call__(self, *args: Any) -> Any:
        """OneFlow's other way to call it: `Double()(x)`."""
        return self.apply(*args)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        context = Context()
        context.needs_input_grad = tuple(isinstance(a, Tensor) and a._requires_grad for a in args)
        before, here.grad = here.grad, False
        try:
            if cls.setup_context is Function.setup_context:
                result = cls.forward(context, *args, **kwargs)
            else:
                if kwargs:
                    bound = inspect.signature(cls.forward).bind(*args, **kwargs)
                    bound.apply_defaults()
                    args, kwargs = bound.args, bound.kwargs
                result = cls.forward(*args, **kwargs)
                cls.setup_context(context, args, result)
        finally:
            here.grad = before
        outputs: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)
        for y in outputs if cls.makes_views else ():
            set_view(y, (*y._view_of[:5], before))
        for t in context._dirty:
            check_writable(t, f"{cls.__name__}.apply")
            if not any(t is y for y in outputs):
                raise AutogradError(
                    f"{cls.__name__}: Some elements marked as dirty during the forward method were not returned as "
                    "output. The inputs that are modified inplace must all be outputs of the Function"
                )
        if not (here.grad and any(context.needs_input_grad)):
            return result
        if type(context._saved) is tuple:
            context._given, context._saved = context._saved, tuple(map(as_it_is, context._saved))
            context._versions = tuple(map(version, context._saved))
        edges = tuple(edge(a) if isinstance(a, Tensor) and a._requires_grad else None for a in args)
        held = {id(a) for a in args} | {id(y) for y in outputs if isinstance(y, Tensor) and y._requires_grad}
        wrapped = tuple(rewrap(y) if isinstance(y, Tensor) and id(y) in held else y for y in outputs)
        several = len(wrapped) > 1
        node = CustomNode(cls, context, edges, wrapped, args)
        for i, y in enumerate(wrapped):
            if isinstance(y, Tensor) and id(outputs[i]) not in context._non_differentiable and y.dtype.differentiable:
                y.node = Slot(node, i) if several else node  # type: ignore[arg-type]
                y._requires_grad = True
        for t in context._dirty:
            rebase(t, next(w for w, y in zip(wrapped, outputs, strict=True) if y is t))
        dirty = {id(t) for t in context._dirty}
        shown = tuple(y if id(y) in dirty else w for w, y in zip(wrapped, outputs, strict=True))
        return shown if isinstance(result, tuple) else shown[0]


FunctionCtx = Context


class _Once(Function):
    """A gradient without a second derivative."""

    @staticmethod
    def forward(ctx: Any, name: str, *args: Any) -> Any:
        ctx.name = name
        return args

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise AutogradError(
            f"{ctx.name} is marked @once_differentiable, so it has no second derivative; write it with ops, "
            "without the decorator"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a `backward` that isn't differentiable: it isn't recorded, and a second derivative raises."""

    @functools.wraps(backward)
    def call(ctx: Any, *gradients: Any) -> Any:
        recording, here.grad = here.grad, False
        try:
            result = backward(ctx, *gradients)
        finally:
            here.grad = recording
        if not (recording and any(isinstance(g, Tensor) and g._requires_grad for g in gradients)):
            return result
        several = result if isinstance(result, tuple) else (result,)
        handle = ops.zeros_like(next(g for g in several if g is not None), None).requires_grad_()
        made = iter(_Once.apply(backward.__qualname__, handle, *(g for g in several if g is not None))[1:])
        return tuple(None if g is None else next(made) for g in several)

    return call
