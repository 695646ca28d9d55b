"""States of models and optimizers under full names, as `torch.distributed.checkpoint.state_dict` has them.

An optimizer's state goes by its parameters' names, so that it also fits where they are numbered in another way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.autograd import no_grad
from weft.autograd.trees import mapped
from weft.core.errors import CheckpointError
from weft.core.rank import current
from weft.distributed.objects import broadcast_object_list
from weft.distributed.tensor import full_tensor
from weft.nn.module.module import Module
from weft.nn.module.state_dict import IncompatibleKeys
from weft.ops import ops
from weft.optim.optimizer import Optimizer
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

KIND: Final = "_state_settings"  # the attribute of an FSDP module that says what its state_dict() gives


@dataclass
class StateDictOptions:
    """What the functions below give and take. `full_state_dict`: local tensors of whole values; with `cpu_offload` on
    the first rank alone. `broadcast_from_rank0`: the others are given nothing."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def as_it_is(model: Module, keep_vars: bool = False) -> dict[str, Any]:
    """A model's state, whose sharded tensors are global."""
    settings = {m: m.__dict__.pop(KIND) for m in model.modules() if KIND in m.__dict__}
    try:
        return dict(model.state_dict(keep_vars=keep_vars))
    finally:
        for m, found in settings.items():
            m.__dict__[KIND] = found


def whole(tree: Any) -> Any:
    """Nested values with local tensors in place of global ones."""
    return mapped(tree, lambda v: full_tensor(v.detach()) if isinstance(v, Tensor) and v.is_global else v)


def _given(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    if options.full_state_dict:
        state = whole(state)
        if options.cpu_offload and current().index:
            return {}
    return state


def _taken(state: Any, options: StateDictOptions | None) -> Any:
    """A state to load: that of the first rank, if it has the only one."""
    if options is None or not options.broadcast_from_rank0:
        return state
    # no tensor in two places, as on the ranks that receive it: what is shared is placed once, which takes all ranks
    held = [mapped(state, lambda v: v.detach() if isinstance(v, Tensor) else v)]
    broadcast_object_list(held, 0)
    return held[0]


# ---- models ------------------------------------------------------------------------------------------


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """A model's state by full names, or that of some submodules.

    >>> from weft.distributed.checkpoint.state_dict import get_model_state_dict
    >>> sorted(get_model_state_dict(flow.nn.Linear(2, 1)))
    ['bias', 'weight']
    """
    options = options or StateDictOptions()
    state = as_it_is(model)
    if options.ignore_frozen_params:
        frozen = {n for n, p in as_it_is(model, True).items() if isinstance(p, Parameter) and not p.requires_grad}
        state = {n: t for n, t in state.items() if n not in frozen}
    if submodules is not None:
        places = [f"{path}." for path, m in model.named_modules() if m in submodules]
        cut = {n: next((len(p) for p in places if n.startswith(p)), None) for n in state}
        kept = 0 if options.keep_submodule_prefixes else 1
        state = {n[kept * at :]: t for n, t in state.items() if (at := cut[n]) is not None}
    return _given(state, options)


def set_model_state_dict(
    model: Module, model_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None
) -> IncompatibleKeys:
    """Load a model's state, of whole or of global tensors."""
    return model.load_state_dict(_taken(model_state_dict, options), strict=(options or StateDictOptions()).strict)


# ---- optimizers --------------------------------------------------------------------------------------


def _each(optimizers: Any) -> tuple[Optimizer, ...]:
    return (optimizers,) if hasattr(optimizers, "param_groups") else tuple(optimizers)


def _names(model: Module, optimizer: Optimizer) -> list[list[str]]:
    """The names of each group's parameters."""
    names: dict[int, str] = {}
    for name, p in as_it_is(model, keep_vars=True).items():
        names.setdefault(id(p), name)
    lacking = [tuple(p.shape) for g in optimizer.param_groups for p in g["params"] if id(p) not in names]
    if lacking:
        raise CheckpointError(f"the optimizer has parameters of shapes {lacking} that the model lacks")
    return [[names[id(p)] for p in g["params"]] for g in optimizer.param_groups]


@contextlib.contextmanager
def _still(optimizer: Optimizer) -> Iterator[None]:
    """Gradients of zero and no learning rate, for a step that makes states and changes nothing."""
    before = [(g, g["lr"], [(p, p.grad) for p in g["params"]]) for g in optimizer.param_groups]
    try:
        for group, _, params in before:
            group["lr"] = 0.0
            for p, _ in params:
                p.grad = ops.zeros_like(p.detach()) if p.requires_grad else None
        yield
    finally:
        for group, lr, params in before:
            group["lr"] = lr
            for p, grad in params:
                p.grad = grad


def _started(model: Module, optimizer: Optimizer) -> None:
    """Make an optimizer's states, if it made no step yet, so that a checkpoint can be loaded into them."""
    as_it_is(model)  # sharded modules put their shards in place
    if not optimizer.state:
        with _still(optimizer), no_grad():
            optimizer.step()
        for group in optimizer.param_groups:
            for name, value in ((n, v) for p in group["params"] for n, v in optimizer.state.get(p, {}).items()):
                if isinstance(value, Tensor):  # training goes on as if there had been no step
                    value.fill_(optimizer.first_value(group, name))


def _named(model: Module, optimizer: Optimizer) -> dict[str, Any]:
    _started(model, optimizer)
    names = _names(model, optimizer)
    state, flat = optimizer.state_dict(), [n for group in names for n in group]
    groups = [{**g, "params": group} for g, group in zip(state["param_groups"], names, strict=True)]
    return {"state": {flat[i]: values for i, values in state["state"].items()}, "param_groups": groups}


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The states of one or several optimizers by names: `{"state": {"up.weight": {"exp_avg": ...}}, "param_groups":
    [{"params": ["up.weight"], "lr": ...}]}`; or flat, `{"state.up.weight.exp_avg": ...}`."""
    options = options or StateDictOptions()
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _each(optimizers):
        named = _named(model, optimizer)
        found["state"] |= named["state"]
        found["param_groups"] += named["param_groups"]
    if submodules is not None:
        kept = {*get_model_state_dict(model, submodules=submodules)}
        found["state"] = {n: values for n, values in found["state"].items() if n in kept}
        for group in found["param_groups"]:
            group["params"] = [n for n in group["params"] if n in kept]
    return _given(flattened(found) if options.flatten_optimizer_state_dict else found, options)


def flattened(state: Mapping[str, Any]) -> dict[str, Any]:
    values = {f"state.{n}.{k}": v for n, values in state["state"].items() for k, v in values.items()}
    options = {
        f"param_groups.{n}.{k}": v for g in state["param_groups"] for n in g["params"] for k, v in g.items()
        if k != "params"
    }  # fmt: skip
    return values | options


def _unflattened(flat: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A flat state in the form of the optimizer's own."""
    state = {n: {k: flat[f"state.{n}.{k}"] for k in values} for n, values in own["state"].items()}
    groups = [
        {k: v if k == "params" else flat[f"param_groups.{g['params'][0]}.{k}"] for k, v in g.items()}
        for g in own["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Load states by names, as `get_optimizer_state_dict` gives them, into one or several optimizers."""
    given = _taken(optim_state_dict, options)
    for optimizer in _each(optimizers):
        optimizer.load_state_dict(numbered(model, optimizer, given))


def numbered(
    model: Module, optimizer: Optimizer, given: Mapping[str, Any], options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Those groups and states that an optimizer's parameters have, under its numbers."""
    own, given = _named(model, optimizer), _taken(given, options)
    try:
        if "state" not in given:
            given = _unflattened(given, own)
        numbers = {n: i for i, n in enumerate(n for g in own["param_groups"] for n in g["params"])}
        owner = {n: g for g in given["param_groups"] for n in g["params"]}
        groups = [
            {**(owner[g["params"][0]] if g["params"] else g), "params": [numbers[n] for n in g["params"]]}
            for g in own["param_groups"]
        ]
        state = {i: given["state"][n] for n, i in numbers.items() if n in own["state"]}
    except KeyError as lacking:
        raise CheckpointError(f"the optimizer's state has nothing under {lacking}") from None
    return {"state": state, "param_groups": groups}


# ---- both --------------------------------------------------------------------------------------------


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module, optimizers: Any, *, model_state_dict: Mapping[str, Any], optim_state_dict: Mapping[str, Any],
    options: StateDictOptions | None = None,
) -> IncompatibleKeys:  # fmt: skip
    """Load the states of a model and of its optimizers."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
