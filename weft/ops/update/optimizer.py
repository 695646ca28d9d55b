"""Optimizer updates of many parameters at once: one call per group of parameters of the same dtype, device and layout.

Each op overwrites its parameters and states. `lr` may be a 0-d tensor, so that a graph can be given another rate at
every step. `step` counts the updates so far, and the op increments it, unless another call has `counted` this one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from weft.core.dtype import of_torch as named
from weft.core.errors import DeviceError, DtypeError, ShapeError
from weft.core.one_thread import alone
from weft.core.sbp import Sbp, broadcast, partial_max, partial_sum, split
from weft.ops.declaration import Op, Scalar, op
from weft.ops.notation import Rule

over: Any = torch  # its functions over lists are typed for lists alone, though they take any sequence
SHARED: Final = 1 << 14  # elements of a parameter from which on threads share its update: fewer take less than to wait
Lists = Sequence[Sequence[Tensor]]


def _alike(op: Op, linear: bool = False) -> None:
    """Any split that all parameters, gradients and states share; 0-d tensors stay whole. What is `linear` in the lists
    may be done to each summand."""
    op.element_by_element()

    @op.layout
    def _(*args: Any) -> Iterable[Rule]:
        flat: list[tuple[int, ...]] = []
        summands: list[Sbp] = []
        for i in op.operands:
            if op.params[i].kind == "tensors":
                flat.extend(args[i])
                summands.extend(partial_sum for _ in args[i])
            elif isinstance(args[i], tuple):
                flat.append(args[i])
                summands.append(broadcast)
        least = min((len(s) for s in args[0]), default=0)
        for dim in range(least):
            yield Rule(tuple(split(dim) if s else broadcast for s in flat), ())
        if linear:
            yield Rule(tuple(summands), ())


def _meta(params: Sequence[Tensor]) -> bool:
    return not params or params[0].device.type == "meta"


def _written(*lists: Sequence[Tensor]) -> None:
    """Bump version counters, which fused kernels don't: the tape must notice the writes."""
    for tensors in lists:
        over._C._increment_version(tensors)


def _in_order(*lists: Sequence[Tensor]) -> Sequence[Sequence[Tensor]]:
    """All lists with the dimensions of each parameter's tensors as its own lie in memory: with channels outside, say,
    where they are innermost."""
    if all(p.is_contiguous() for p in lists[0]):
        return lists
    orders = [sorted(range(p.dim()), key=p.stride, reverse=True) for p in lists[0]]
    return [[t.permute(order) for t, order in zip(tensors, orders, strict=False)] for tensors in lists]


def _dense(lists: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
    """Contiguous copies where needed: fused kernels ignore strides."""
    return [[t if t.is_contiguous() else t.contiguous() for t in tensors] for tensors in lists]


def _all_dense(*lists: Sequence[Tensor]) -> bool:
    return all(t.is_contiguous() and not t.is_complex() for tensors in lists for t in tensors)


def _update(*optional: str) -> Callable[[Callable[..., None]], Callable[..., tuple[()]]]:
    """An update that does nothing without values, and to which complex numbers are pairs of real ones, as in torch: a
    square is of each part. Its `trusted` form is for lists that fit each other; those named here may also be empty."""

    def declare(kernel: Callable[..., None]) -> Callable[..., tuple[()]]:
        rows = list(inspect.signature(kernel).parameters.values())
        lists = [(i, p.name, p.name in optional) for i, p in enumerate(rows) if p.annotation == rows[0].annotation]
        single = next((i for i, p in enumerate(rows) if p.name == "step"), None)

        @functools.wraps(kernel)
        def trusted(*args: Any) -> tuple[()]:
            if not _meta(args[0]):
                if args[0][0].is_complex():
                    args = tuple([pairs(t) for t in a] if isinstance(a, (list, tuple)) else a for a in args)
                kernel(*args)
            return ()

        @functools.wraps(kernel)
        def call(*args: Any) -> tuple[()]:
            for i, name, may_lack in lists:
                if args[i] or not may_lack:
                    _check_fit(kernel.__name__, name, args[i], args[0])
            if single is not None and args[single].numel() != 1:
                raise ShapeError(f"{kernel.__name__}(): step must have one element; got shape {[*args[single].shape]}")
            return trusted(*args)

        over_call: Any = call
        over_call.trusted = trusted
        return call

    return declare


def _check_fit(op: str, name: str, given: Sequence[Tensor], params: Sequence[Tensor]) -> None:
    """Kernels look at the parameters' sizes only, and go through all lists by them."""
    if len(given) != len(params):
        raise ShapeError(f"{op}(): {name} must be as many as params, {len(params)}; got {len(given)}")
    for i, (t, p) in enumerate(zip(given, params, strict=True)):
        if t.shape != p.shape:
            raise ShapeError(f"{op}(): {name}[{i}] must have the shape of params[{i}], {[*p.shape]}; got {[*t.shape]}")
        if t.device != p.device:
            raise DeviceError(f"{op}(): {name}[{i}] must be on the device of params[{i}], {p.device}; got {t.device}")
        if t.dtype is not params[0].dtype:
            here, wanted = named(t.dtype).name, named(params[0].dtype).name
            raise DtypeError(f"{op}(): {name}[{i}] must have the dtype of params[0], {wanted}; got {here}")


def pairs(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj())


def _by_size(*lists: Sequence[Tensor]) -> tuple[Lists, Lists, Lists]:
    """The lists, those of the parameters on the CPU that are small, and those of the others; no small ones: neither."""
    small = [p.numel() < SHARED and p.is_cpu for p in lists[0]]
    if not any(small):
        return lists, (), ()
    apart = [[[t for t, s in zip(ts, small, strict=False) if s == kept] for ts in lists] for kept in (True, False)]
    return lists, apart[0], apart[1]


def _fused(kernel: Any, lists: tuple[Lists, Lists, Lists], options: dict[str, Any]) -> None:
    """torch's fused update, which has threads share each parameter, even a bias: here one thread updates small ones."""
    together, small, large = lists
    if not small or torch.get_num_threads() == 1:
        kernel(*together, **options)
        return
    alone(functools.partial(kernel, *small, **options))()
    if large[0]:
        kernel(*large, **options)


def _give_back(lists: Lists, dense: Lists) -> None:
    for tensors, copies in zip(lists, dense, strict=True):
        for t, copy in zip(tensors, copies, strict=True):
            if t is not copy:
                t.copy_(copy)


def _number(option: Tensor | Scalar) -> Any:
    return option if _fixed(option) else option.item()  # type: ignore[union-attr]


def _fixed(option: Tensor | Scalar) -> bool:
    return not isinstance(option, Tensor)


def _fused_sgd_skips(params: Sequence[Tensor]) -> bool:
    """Whether torch's fused SGD would leave most of the parameters as they are: those of 16 bits on the CPU."""
    return params[0].is_cpu and params[0].dtype.itemsize == 2


def _plain_sgd(
    params: Any, grads: Any, momenta: Any, lr: float, momentum: float, dampening: Any, weight_decay: float,
    nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    grads = _decayed(params, grads, weight_decay, maximize)
    if momenta:
        over._foreach_mul_(momenta, momentum)
        over._foreach_add_(momenta, grads, alpha=1 - dampening)
        grads = over._foreach_add(grads, momenta, alpha=momentum) if nesterov else momenta
    over._foreach_add_(params, grads, alpha=-lr)


@op(returns="", writes="params momenta")
@_update("momenta")
def sgd_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], momenta: Sequence[Tensor], lr: Tensor | Scalar,
    momentum: float = 0.0, dampening: Tensor | Scalar = 0.0, weight_decay: float = 0.0, nesterov: bool = False,
    maximize: bool = False,
) -> None:  # fmt: skip
    """params -= lr * (grads + weight_decay * params), with momentum if there are momenta."""
    dampening = _number(dampening)
    if _fused_sgd_skips(params):
        rule = momentum, dampening, weight_decay, nesterov, maximize
        _plain_sgd(params, grads, momenta, _number(lr), *rule)
        return
    params, momenta, grads = _in_order(params, momenta, grads)
    written = (params, momenta)
    dense = _dense((params, momenta, grads))
    options = _sgd_options(lr, momentum, dampening, weight_decay, nesterov, maximize)
    _fused(over._fused_sgd_, _by_size(dense[0], dense[2], dense[1]), options)
    _give_back(written, dense[:2])
    _written(*written)


def _sgd_options(
    lr: Any, momentum: float, dampening: Any, weight_decay: float, nesterov: bool, maximize: bool
) -> dict[str, Any]:
    return {
        "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
        "maximize": maximize, "is_first_step": False,
    }  # fmt: skip


def _sgd_dense(lists: Any, options: Any) -> None:
    _fused(over._fused_sgd_, lists, options)
    params, _, momenta = lists[0]
    _written(params, momenta)


@sgd_update.prepared
def _(params, grads, momenta, lr, momentum, dampening, weight_decay, nesterov, maximize):
    params, grads, momenta = _in_order(params, grads, momenta)
    if not params or not _all_dense(params, grads, momenta) or _fused_sgd_skips(params) or not _fixed(dampening):
        return None
    options = _sgd_options(lr, momentum, dampening, weight_decay, nesterov, maximize)
    return _sgd_dense, (_by_size(params, grads, momenta), options), {}


def _adam_options(
    lr: Any, beta1: float, beta2: float, eps: float, weight_decay: float, most: Sequence[Tensor], maximize: bool
) -> dict[str, Any]:
    return {
        "lr": lr, "beta1": beta1, "beta2": beta2, "weight_decay": weight_decay, "eps": eps, "amsgrad": bool(most),
        "maximize": maximize,
    }  # fmt: skip


def _adam(name: str, fused: Any, decoupled: bool, doc: str) -> Op:
    def kernel(
        params: Sequence[Tensor], grads: Sequence[Tensor], means: Sequence[Tensor], squares: Sequence[Tensor],
        most: Sequence[Tensor], step: Tensor, lr: Tensor | Scalar, beta1: float = 0.9, beta2: float = 0.999,
        eps: float = 1e-8, weight_decay: float = 0.0, maximize: bool = False, bias_correction: bool = True,
        counted: bool = False,
    ) -> None:  # fmt: skip
        step += not counted
        params, grads, means, squares, most = _in_order(params, grads, means, squares, most)
        written = (params, means, squares, most)
        if not bias_correction:
            rule = weight_decay, decoupled, beta1, beta2, eps, maximize
            _plain_adam(params, grads, means, squares, most, _number(lr), *rule)
            return
        dense = _dense((*written, grads))
        steps = [step] * len(params)
        options = _adam_options(lr, beta1, beta2, eps, weight_decay, most, maximize)
        _fused(fused, _by_size(dense[0], dense[4], dense[1], dense[2], dense[3], steps), options)
        _give_back(written, dense[:4])
        _written(*written)

    def step_dense(lists: Any, options: Any) -> None:
        lists[0][-1][0].add_(1)  # the same tensor for all
        counted_dense(lists, options)

    def counted_dense(lists: Any, options: Any) -> None:
        _fused(fused, lists, options)
        params, _, means, squares, most, _ = lists[0]
        _written(params, means, squares, most)

    def prepare(
        params: Any, grads: Any, means: Any, squares: Any, most: Any, step: Tensor, lr: Any, beta1: float,
        beta2: float, eps: float, weight_decay: float, maximize: bool, bias_correction: bool, counted: bool,
    ) -> Any:  # fmt: skip
        params, grads, means, squares, most = _in_order(params, grads, means, squares, most)
        if not bias_correction or not params or not _all_dense(params, grads, means, squares, most):
            return None
        options = _adam_options(lr, beta1, beta2, eps, weight_decay, most, maximize)
        function = counted_dense if counted else step_dense
        return function, (_by_size(params, grads, means, squares, most, [step] * len(params)), options), {}

    kernel.__name__, kernel.__doc__, step_dense.__name__ = name, doc, name + "_dense"
    counted_dense.__name__ = name + "_counted"
    declared = op(returns="", writes="params means squares most step")(_update("most")(kernel))
    declared.prepared(prepare)
    _alike(declared)
    return declared


def _plain_adam(
    params: Any, grads: Any, means: Any, squares: Any, most: Any, lr: float,
    weight_decay: float, decoupled: bool, beta1: float, beta2: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """Adam without correcting the means for their start at zero."""
    grads = _decayed(params, grads, 0.0 if decoupled else weight_decay, maximize)
    if decoupled:
        over._foreach_mul_(params, 1 - lr * weight_decay)
    over._foreach_lerp_(means, grads, 1 - beta1)
    over._foreach_mul_(squares, beta2)
    over._foreach_addcmul_(squares, grads, grads, 1 - beta2)
    if most:
        over._foreach_maximum_(most, squares)
    root = over._foreach_sqrt(most or squares)
    over._foreach_add_(root, eps)
    over._foreach_addcdiv_(params, means, root, -lr)


adam_update = _adam(
    "adam_update", over._fused_adam_, False,
    "params -= lr * mean / (sqrt(square) + eps); `most` holds the largest squares so far, or nothing.",
)  # fmt: skip
adamw_update = _adam(
    "adamw_update", over._fused_adamw_, True, "As adam_update, with the weight decay applied to the parameters alone."
)


@op(returns="", writes="params sums step")
@_update()
def adagrad_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], sums: Sequence[Tensor], step: Tensor, lr: Tensor | Scalar,
    lr_decay: float = 0.0, weight_decay: float = 0.0, eps: float = 1e-10, maximize: bool = False, counted: bool = False,
) -> None:  # fmt: skip
    """params -= lr / (1 + step * lr_decay) * grads / (sqrt(sums) + eps), the squares summed over all steps."""
    step += not counted
    rate = _number(lr) / (1 + (step.item() - 1) * lr_decay)
    grads = _decayed(params, grads, weight_decay, maximize)
    over._foreach_addcmul_(sums, grads, grads, 1)
    root = over._foreach_sqrt(sums)
    over._foreach_add_(root, eps)
    over._foreach_addcdiv_(params, grads, root, -rate)


@op(returns="", writes="params squares means momenta")
@_update("means", "momenta")
def rmsprop_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], squares: Sequence[Tensor], means: Sequence[Tensor],
    momenta: Sequence[Tensor], lr: Tensor | Scalar, alpha: float = 0.99, eps: float = 1e-8,
    weight_decay: float = 0.0, momentum: float = 0.0, maximize: bool = False,
) -> None:  # fmt: skip
    """params -= lr * grads / (sqrt(squares) + eps). `means` centre them, `momenta` carry on; both may be empty."""
    grads = _decayed(params, grads, weight_decay, maximize)
    over._foreach_mul_(squares, alpha)
    over._foreach_addcmul_(squares, grads, grads, 1 - alpha)
    if means:
        over._foreach_lerp_(means, grads, 1 - alpha)
        root = over._foreach_sqrt(over._foreach_addcmul(squares, means, means, -1))
    else:
        root = over._foreach_sqrt(squares)
    over._foreach_add_(root, eps)
    if momenta:
        over._foreach_mul_(momenta, momentum)
        over._foreach_addcdiv_(momenta, grads, root)
        over._foreach_add_(params, momenta, alpha=-_number(lr))
    else:
        over._foreach_addcdiv_(params, grads, root, -_number(lr))


@op(returns="", writes="params squares deltas")
@_update()
def adadelta_update(
    params: Sequence[Tensor], grads: Sequence[Tensor], squares: Sequence[Tensor], deltas: Sequence[Tensor],
    lr: Tensor | Scalar, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, maximize: bool = False,
) -> None:  # fmt: skip
    """params -= lr * grads * sqrt(deltas + eps) / sqrt(squares + eps), both running means of squares."""
    grads = _decayed(params, grads, weight_decay, maximize)
    over._foreach_mul_(squares, rho)
    over._foreach_addcmul_(squares, grads, grads, 1 - rho)
    change = over._foreach_sqrt(over._foreach_add(deltas, eps))
    over._foreach_div_(change, over._foreach_sqrt(over._foreach_add(squares, eps)))
    over._foreach_mul_(change, grads)
    over._foreach_mul_(deltas, rho)
    over._foreach_addcmul_(deltas, change, change, 1 - rho)
    over._foreach_add_(params, change, alpha=-_number(lr))


def _decayed(params: Sequence[Tensor], grads: Sequence[Tensor], weight_decay: float, maximize: bool) -> Any:
    if maximize:
        grads = over._foreach_neg(grads)
    return over._foreach_add(grads, params, alpha=weight_decay) if weight_decay else grads


def _several(rand: Any, count: int) -> list[list[Any]]:
    """`count` lists of tensors of the same shapes; but for the first two, nowhere below zero."""
    made = [[rand(4, 6), rand(6)] for _ in range(2)]
    return [*made, *([rand(4, 6) ** 2, rand(6) ** 2] for _ in range(count - 2))]


@sgd_update.samples
def _(rand):
    yield [rand(4, 6), rand(6)], [rand(4, 6), rand(6)], [], 0.1
    yield (*_several(rand, 3), 0.1, 0.9, 0.0, 0.01, True)


for _op in (adam_update, adamw_update):

    @_op.samples
    def _(rand):
        yield (*_several(rand, 4), [], rand() ** 2 + 1, 0.1)
        yield (*_several(rand, 5), rand() ** 2 + 1, 0.1, 0.9, 0.99, 1e-8, 0.1)


adagrad_update.samples(lambda rand: [(*_several(rand, 3), rand() ** 2, 0.1, 0.01)])

rmsprop_update.samples(lambda rand: [(*_several(rand, 3), [], [], 0.1)])

adadelta_update.samples(lambda rand: [(*_several(rand, 4), 0.1)])


_alike(sgd_update, linear=True)
for _op in (adagrad_update, rmsprop_update, adadelta_update):
    _alike(_op)


# ---- over all gradients ------------------------------------------------------------------------------


@op()
def power_sum(tensors: Sequence[Tensor], exponent: float = 2.0) -> Tensor:
    """The sum of |x| ** exponent over every element of every tensor, for a norm over all gradients.

    >>> flow._C.power_sum([flow.tensor([3.0]), flow.tensor([4.0])], 2.0).item()
    25.0
    """
    if not tensors or tensors[0].device.type == "meta":
        return torch.zeros((), dtype=tensors[0].dtype, device=tensors[0].device)
    return torch.stack(over._foreach_norm(tensors, exponent)).pow_(exponent).sum()


@power_sum.layout
def _(tensors, exponent):
    for dim in range(min(map(len, tensors), default=0)):
        yield Rule((split(dim),) * len(tensors), (partial_sum,))


power_sum.samples(lambda rand: [([rand(4, 6), rand(6)], 2.0), ([rand(4, 6)], 3.0)])


@op()
def greatest(tensors: Sequence[Tensor]) -> Tensor:
    """The largest |x| over every element of every tensor.

    >>> flow._C.greatest([flow.tensor([3.0]), flow.tensor([-4.0])]).item()
    4.0
    """
    return torch.stack([t.abs().amax() if t.numel() else t.new_zeros(()) for t in tensors]).amax()


@greatest.layout
def _(tensors):
    for dim in range(min(map(len, tensors), default=0)):
        yield Rule((split(dim),) * len(tensors), (partial_max,))


greatest.samples(lambda rand: [([rand(4, 6), rand(6)],)])


@op(returns="", writes="tensors")
def scale_all(tensors: Sequence[Tensor], factor: Tensor | Scalar) -> tuple[()]:
    """Every tensor times one factor, in place."""
    if not _meta(tensors):
        over._foreach_mul_(tensors, factor)
    return ()


scale_all.samples(lambda rand: [([rand(4, 6), rand(6)], 0.5), ([rand(4, 6)], rand())])

_alike(scale_all, linear=True)


@op(returns="", writes="tensors")
def take_from_row(tensors: Sequence[Tensor], row: Tensor) -> tuple[()]:
    """Overwrite tensors with consecutive elements of a row: the inverse of `in_a_row`."""
    if _meta(tensors):
        return ()
    parts = torch.split_with_sizes(row, [t.numel() for t in tensors])
    over._foreach_copy_(tensors, [part.view(t.shape) for part, t in zip(parts, tensors, strict=True)])
    return ()


@take_from_row.layout
def _(tensors, row):
    each = [" ".join(f"a{k}x{i}!" for i in range(len(shape))) for k, shape in enumerate(tensors)]
    return f"{', '.join([*each, 'row!'])} -> "


take_from_row.samples(lambda rand: [([rand(4, 6), rand(3)], rand(27))])
