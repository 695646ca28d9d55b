"""A module's state as a dict from path to tensor, and back. Loading checks everything first: a state that doesn't fit
changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core.errors import ArgumentError, CheckpointError
from weft.nn.module.members import BUFFER, PARAMETER, of_role
from weft.nn.module.moving import laid_out, moved
from weft.ops import ops
from weft.tensor.parameter import Parameter, is_lazy
from weft.tensor.tensor import Tensor, of_torch

EXTRA = "_extra_state"
ASSIGN = "assign_to_params_buffers"  # metadata flag: the state's tensors become the module's
WRITES = "writes"  # metadata key of the writes to do once everything is checked


class IncompatibleKeys(NamedTuple):
    """The missing and the unexpected keys of `load_state_dict`."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Writes:
    """The deferred writes of a load; those done at once can be undone."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []
        self.back: list[Callable[[], None]] = []

    def take(self, put: Callable[[], None], at_once: bool, before: Tensor | Callable[[], None] | None) -> None:
        """Add a write; `before` restores the old value, or is the tensor to overwrite."""
        if not at_once:
            self.later.append(put)
            return
        if isinstance(before, Tensor):
            before = partial(write, before, ops.clone(before.detach()))
        if before is not None:
            self.back.append(before)
        put()

    def finish(self) -> None:
        for put in self.later:
            put()

    def undo(self) -> None:
        for put in self.back:
            put()


def state_dict(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix.removesuffix(".")] = local
    for hook, _ in module._hooks_of("state_dict_pre"):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook, _ in module._hooks_of("state_dict"):
        changed = hook(module, destination, prefix, local)
        if changed is not None:
            destination = changed
    return destination


def own_state(module: Any) -> dict[str, Tensor]:
    """A module's own saved entries: parameters, then persistent buffers."""
    own = {name: p for name, p in of_role(module, PARAMETER) if p is not None}
    own |= {n: b for n, b in of_role(module, BUFFER) if b is not None and n not in module._non_persistent}
    return own


def save(module: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    for name, t in own_state(module).items():
        destination[prefix + name] = t if keep_vars or is_lazy(t) else t.detach()
    if hasattr(type(module), "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


def load(module: Any, state: Mapping[str, Any], strict: bool, assign_them: bool) -> IncompatibleKeys:
    """Check a state against a module and its submodules; write it only if all fits."""
    if not isinstance(state, Mapping):
        raise ArgumentError(
            f"Expected state_dict to be dict-like, got {type(state)}; it goes from names to tensors, as "
            "state_dict() gives"
        )
    versions = getattr(state, "_metadata", {})
    state = OrderedDict(state)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    writes = Writes()
    after: list[tuple[Callable[..., Any], Any]] = []

    def visit(m: Any, prefix: str, state: OrderedDict[str, Any]) -> None:
        metadata = {**versions.get(prefix.removesuffix("."), {}), WRITES: writes}
        if assign_them:
            metadata[ASSIGN] = True
        m._load_from_state_dict(state, prefix, metadata, True, missing, unexpected, errors)
        for name, child in m._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                visit(child, inner, OrderedDict((k, v) for k, v in state.items() if k.startswith(inner)))
        after.extend((hook, m) for hook, _ in m._hooks_of("load_post"))

    visit(module, "", state)
    found = IncompatibleKeys(missing, unexpected)
    if errors or not after:  # else hooks may still remove missing keys
        try:
            _refuse(module, found, errors, strict, "\nThe module was left as it was.")
        except CheckpointError:
            writes.undo()
            raise
    writes.finish()
    for hook, m in after:
        hook(m, found)
    _refuse(module, found, [], strict, "")
    return found


def _refuse(module: Any, found: IncompatibleKeys, errors: list[str], strict: bool, more: str) -> None:
    if strict and found.unexpected_keys:
        errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(found.unexpected_keys)}. ")
    if strict and found.missing_keys:
        errors.insert(0, f"Missing key(s) in state_dict: {_quoted(found.missing_keys)}. {_tied(module, found)}")
    if errors:
        lines = "\n\t".join(errors)
        raise CheckpointError(f"Error(s) in loading state_dict for {module._get_name()}:\n\t{lines}{more}")


def _tied(module: Any, found: IncompatibleKeys) -> str:
    """What to write where all that is missing is tied to what isn't: files of models have such tensors once."""
    names: dict[int, list[str]] = {}
    for name, t in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(t), []).append(name)
    others = {n: k for own in names.values() for n in own for k in own if k not in found.missing_keys}
    if not all(n in others for n in found.missing_keys):
        return ""
    pairs = ", ".join(f"{n} to {others[n]}" for n in found.missing_keys[:3])
    return f"They are tied to what is there, {pairs}: strict=False loads these, too. "


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{n}"' for n in names)


def check(
    module: Any, state: Mapping[str, Any], prefix: str, metadata: dict[str, Any], strict: bool,
    missing: list[str], unexpected: list[str], errors: list[str], at_once: bool,
) -> None:  # fmt: skip
    """Compare a module's own parameters and buffers with the state. Writes are deferred, or done `at_once` for
    overrides that read the values."""
    for hook, with_module in module._hooks_of("load_pre"):
        given = (state, prefix, metadata, strict, missing, unexpected, errors)
        hook(module, *given) if with_module else hook(*given)
    writes, assign_them = metadata.get(WRITES), metadata.get(ASSIGN, False)
    if writes is None:  # called directly by the user
        writes, at_once = Writes(), True
    own, version = own_state(module), metadata.get("version", 1)
    for name, target in own.items():
        key = prefix + name
        if key not in state:
            if version >= module._since.get(name, 0):
                missing.append(key)
            continue
        value = state[key]
        if isinstance(value, np.ndarray):
            value = of_torch(torch.from_numpy(value.copy()))
        elif isinstance(value, torch.Tensor):
            value = of_torch(value.detach())
        if is_lazy(target) and isinstance(value, Tensor) and is_lazy(value):
            continue
        wrong = _unfit(key, value, target)
        if wrong:
            errors.append(wrong)
        elif assign_them:
            put, back = partial(_replace, module, name, target, value), partial(setattr, module, name, target)
            writes.take(put, at_once, back)
        elif is_lazy(target):
            writes.take(partial(_begin, target, value), at_once, None)
        else:
            writes.take(partial(write, target, value), at_once, target)
    extra = prefix + EXTRA
    if hasattr(type(module), "set_extra_state"):
        if extra in state:
            writes.take(partial(module.set_extra_state, state[extra]), at_once, None)
        else:
            missing.append(extra)
    elif extra in state:
        unexpected.append(extra)
    if strict:
        here = [k[len(prefix) :] for k in state if k.startswith(prefix) and k != extra]
        for name in here:
            first, dot, _ = name.partition(".")
            if (first not in module._modules) if dot else (name not in own):
                unexpected.append(prefix + name)


def _unfit(key: str, value: Any, target: Tensor) -> str:
    """Why a parameter can't take a value, or ""."""
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected a Tensor from checkpoint but received {type(value)}'
        )
    if not _fits(value, target):
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
            f"the shape in current model is {target.data.shape}."
        )
    if value.is_global and not target.is_global:
        return (
            f"{key}: the checkpoint's tensor is global ({value.placement}, {value.sbp}), the model's is local; "
            "make the module global first, module.to_global(placement=..., sbp=...), or load value.to_local()"
        )
    return ""


def _fits(value: Tensor, target: Tensor) -> bool:
    """Whether a parameter may take a value's shape. A lazy one knows its sizes but those that are 0."""
    if not is_lazy(target):
        return tuple(value.shape) == tuple(target.shape) or value.numel() == target.numel() == 1
    known = tuple(target.data.shape)
    like = len(known) == value.ndim and all(n in (0, m) for n, m in zip(known, value.shape, strict=True))
    return like or known == (0,)


def _begin(target: Any, value: Tensor) -> None:
    """Give a parameter without a shape this value's."""
    like = target.data
    new = laid_out(value, like.placement, like.sbp) if like.is_global else moved(value, like.device, like.dtype)
    target.become(ops.clone(new.detach()))


def write(target: Tensor, value: Tensor) -> None:
    """Overwrite in place, across layouts and dtypes. A local value for a global tensor is taken as the whole."""
    with no_grad():
        value = value.detach()
        if tuple(value.shape) != tuple(target.shape):
            value = ops.reshape(value, tuple(target.shape))
        if target.is_global:
            value = laid_out(value, target.placement, target.sbp)
        else:
            value = moved(value, target.device, None)
        assign(target, value)


def _replace(module: Any, name: str, old: Tensor, value: Tensor) -> None:
    value = value.detach()
    setattr(module, name, Parameter(value, requires_grad=old.requires_grad) if isinstance(old, Parameter) else value)
