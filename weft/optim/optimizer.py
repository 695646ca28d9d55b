"""The base class of optimizers: groups of parameters with options, states per parameter, and one op per bucket.

Parameters with the same dtype, device, layout and count of steps are updated by one op. The grouping is cached until a
parameter moves, or gets no gradient.

An eager `step()` takes the gradients of the parameters. For a graph, `prepare(params)` makes the states eagerly, and
`apply_update(gradients, rates)` calls the same ops in the trace, where they become nodes.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from inspect import unwrap
from typing import Any

import torch
from torch.optim.optimizer import (
    _global_optimizer_post_hooks,
    _global_optimizer_pre_hooks,
    register_optimizer_step_post_hook,  # noqa: F401  (for all optimizers, of torch's too)
    register_optimizer_step_pre_hook,  # noqa: F401
    required,  # what each group must give, in defaults of programs' own optimizers
)

from weft.autograd import enable_grad, no_grad
from weft.autograd.plain import is_others
from weft.core.device import Device
from weft.core.dispatch import here
from weft.core.errors import CONVERT, ArgumentError, CheckpointError, MissingKeyError, OptionError, TraceError
from weft.core.placement import Placement
from weft.core.program_line import warn
from weft.functional.training.clipping import clip_grad_norm, clipped
from weft.ops import ops
from weft.optim.agreement import Agreement
from weft.optim.bucket import Bucket, Plan, form, form_of, whole
from weft.optim.by_rows import looked_up
from weft.optim.keys import ParamGroup, check_keys, warn_of_lr_scale
from weft.optim.loading import filled_like, has_layout_of, placed_state
from weft.optim.oneflow_checkpoint import of_oneflow
from weft.optim.ranges import at_least_zero
from weft.tensor.counters import counters
from weft.tensor.data import local_data
from weft.tensor.sparse import is_dense
from weft.tensor.tensor import RemovableHook, Tensor, of_torch

STEP = "step"


class Optimizer:
    """Subclasses define a parameter's states (`first_values`, or `states_of` where options decide) and the op that
    updates a bucket (`update`); or, for eager programs only, a custom `step`, as in PyTorch, with any `state`."""

    rate_on_device = False  # whether a graph's update reads the rate where the parameters lie, and not on the host
    first_values: Mapping[str, float | str] = {}  # of states: a number, or the name of the option that gives it
    update_rows: Any = None  # where is_by_rows, (group, p, ids, rows, padding_idx, lr), if ids may occur twice
    nonnegative: tuple[str, ...] = ()  # options; those of a program's own optimizer may be anything

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise ArgumentError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts; got one Tensor: "
                "write [p]"
            )
        if not isinstance(params, Iterable):
            raise ArgumentError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts; got "
                f"{type(params).__name__}: of a module, write model.parameters()"
            )
        if isinstance(params, (set, frozenset)):
            raise ArgumentError("parameters have an order, by which their states are saved; give a list, not a set")
        if defaults.get("differentiable"):
            raise OptionError(
                "differentiable=True: a step here overwrites the parameters, and has no gradient. Write the step "
                "itself, new = {n: p - lr * g for ...}, and call flow.func.functional_call(model, new, inputs)"
            )
        self.defaults = defaults
        self.check_options({name: value for name, value in defaults.items() if value is not required})
        self.state: defaultdict[Any, Any] = defaultdict(dict)  # by parameter, and what an optimizer keeps for itself
        self.param_groups: list[dict[str, Any]] = []
        self.exchanges = 0  # counts added groups and replaced states, for graphs to check
        self.counted: Any = None  # the schedule whose steps a graph's launches count
        self.stepped = False  # whether an eager step was made since the last counted one
        self.agreement = Agreement()
        self._plans: list[Plan | None] = []
        self._optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._patch_step_function()
        self._around_state: defaultdict[str, OrderedDict[int, Callable[..., Any]]] = defaultdict(OrderedDict)
        groups = list(params)
        if not groups and isinstance(params, Iterator):  # OneFlow accepts a model without parameters
            groups = [{"params": []}]
            warn(
                f"{type(self).__name__} got a generator of no parameters, and will train nothing: the model has none, "
                "or the generator was used up before, by another pass over it"
            )
        if not groups:
            raise OptionError(
                "optimizer got an empty parameter list. A generator such as model.parameters() is used up after one "
                "pass; a model without nn.Parameter or nn.Module attributes has none"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    # ---- for subclasses ------------------------------------------------------------------------------

    def counts_steps(self, group: Mapping[str, Any]) -> bool:
        """Whether the update needs the count of steps."""
        return True

    def states_of(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of the states of each parameter of a group."""
        return tuple(self.first_values)

    def is_by_rows(self, group: Mapping[str, Any]) -> bool:
        """Whether the rows of a table that has a sparse gradient are updated as if there were no others. Else the
        gradient is made dense."""
        return False

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        """Call the op that updates a bucket."""
        name = type(self).__name__
        if unwrap(type(self).step) is not unwrap(Optimizer.step):
            raise OptionError(
                f"{name}.step() runs eagerly: a graph can't know its states. Let build() return "
                "the .grad of its parameters, give them those, and step it outside of the graph; or give it "
                "states_of() and update(), as weft.optim.SGD has"
            )
        raise OptionError(f"{name} should have its own step(); in a graph, states_of() and update()")

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise if an option is out of range."""
        at_least_zero(options, *self.nonnegative)

    def first_value(self, group: Mapping[str, Any], name: str) -> float:
        """The initial value of a state."""
        first = self.first_values.get(name, 0.0)
        return group[first] if isinstance(first, str) else first

    # ---- groups --------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with options of their own."""
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise MissingKeyError(f'a parameter group is a dict with "params"; got {param_group!r}')
        given = param_group["params"]
        if isinstance(given, (set, frozenset)):
            raise ArgumentError("parameters have an order, by which their states are saved; give a list, not a set")
        params = [given] if isinstance(given, Tensor) else list(given)
        if params and all(isinstance(p, tuple) for p in params):  # model.named_parameters()
            names, params = map(list, zip(*params, strict=True))
            param_group = {**param_group, "param_names": names}
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            raise OptionError(
                "all optimizer param groups should be with/without names: give each group of named parameters, or none"
            )
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise ArgumentError(
                    f"optimizer can only optimize Tensors, but parameter {i} is {type(p).__name__}"
                    + (CONVERT if isinstance(p, torch.Tensor) else "")
                )
            if not p.is_leaf:
                raise OptionError(
                    f"can't optimize a non-leaf Tensor: parameter {i}, of shape {list(p.shape)}, was computed by "
                    f"{p.grad_fn}. Give the tensor it was computed from, or nn.Parameter(x.detach())"
                )
            if id(p) in known:
                raise OptionError(
                    f"some parameters appear in more than one parameter group, or twice in one, such as number {i}, of "
                    f"shape {list(p.shape)}. Leave out the second, list(dict.fromkeys(params)) keeps the first of each"
                )
            known.add(id(p))
        check_keys(self, param_group, Optimizer)
        group = ParamGroup({"params": params, **{k: v for k, v in param_group.items() if k != "params"}})
        for name, value in self.defaults.items():
            if group.setdefault(name, value) is required:
                raise OptionError(
                    f"parameter group didn't specify a value of required optimization parameter {name}: "
                    f"{type(self).__name__} has no default for it"
                )
        group.update({k: tuple(v) for k, v in group.items() if is_others(v)})  # custom sequences as tuples, to be saved
        self.check_options(group)
        self.param_groups.append(group)
        self._plans.append(None)
        self.exchanges += 1

    def zero_grad(self, set_to_none: bool = True) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    p.grad = None if set_to_none else ops.zeros_like(p._grad, None)

    def clip_grad(self, error_if_nonfinite: bool = False) -> None:
        """Clip the gradients of every group that has `clip_grad_max_norm`, by `clip_grad_norm_type` (2)."""
        for group in self.param_groups:
            if group.get("clip_grad_max_norm") is not None:
                norm = group["clip_grad_max_norm"], group.get("clip_grad_norm_type", 2.0)
                clip_grad_norm(group["params"], *norm, error_if_nonfinite)

    def clipped(self, grads: Mapping[Tensor, Tensor]) -> dict[Tensor, Tensor]:
        """These gradients clipped as by `clip_grad`; the originals don't change."""
        made = dict(grads)
        for group in self.param_groups:
            own = [p for p in group["params"] if p in made]
            if group.get("clip_grad_max_norm") is not None:
                norm = group["clip_grad_max_norm"], group.get("clip_grad_norm_type", 2.0)
                made.update(zip(own, clipped([made[p] for p in own], *norm), strict=True))
        return made

    # ---- stepping ------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. `closure`, if given, recomputes the loss."""
        if here.trace is not None:
            raise TraceError(
                "optimizer.step() inside of build(): a graph updates after each loss.backward() of build(). "
                "Give it the optimizer in __init__, self.add_optimizer(optimizer), and leave step() out"
            )
        self.stepped, loss = True, None
        if closure is not None:
            with enable_grad():
                loss = closure()
        self.agreement.step(type(self).__name__, self.param_groups)
        for i, group in enumerate(self.param_groups):
            plan, params = self._plans[i], group["params"]
            if plan is None or plan.states != self.states_of(group) or not self._is_current(plan, params):
                plan = self._plans[i] = self._plan(group, [p for p in params if p._grad is not None])
                warn_of_lr_scale(self, group)
            lr = group["lr"]
            for bucket in plan.buckets:
                grads: list[Any] = [p._grad for p in bucket.params]
                if not counters.sparse or all(map(is_dense, grads)):
                    self.update(group, bucket, grads, bucket.rate(lr))
                else:
                    by_rows = self.is_by_rows(group)
                    directly = (
                        functools.partial(self.update_rows, group, lr=lr) if by_rows and self.update_rows else None
                    )
                    with looked_up(bucket, grads, by_rows, directly) as (rows, given):
                        self.update(group, rows, given, bucket.rate(lr))
        return loss

    @staticmethod
    def profile_hook_step(step: Callable[..., Any]) -> Callable[..., Any]:
        """Call hooks before and after a step, those of this optimizer and those of all."""

        @functools.wraps(step)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            before, after = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
            if not (before or after or _global_optimizer_pre_hooks or _global_optimizer_post_hooks):
                return step(self, *args, **kwargs)
            args = (self, *args)
            for hook in (*_global_optimizer_pre_hooks.values(), *before.values()):
                given = hook(self, args, kwargs)
                if given is not None:
                    args, kwargs = given
            result = step(*args, **kwargs)
            for hook in (*after.values(), *_global_optimizer_post_hooks.values()):
                hook(self, args, kwargs)
            return result

        return call

    def _patch_step_function(self) -> None:
        """Let the class's `step` call hooks, a program's own `step`, too. Wrappers of optimizers call it, which make
        these tables themselves."""
        kind: Any = type(self)
        if not getattr(kind.step, "hooked", False):
            step: Any = self.profile_hook_step(kind.step)
            step.hooked = True
            kind.step = step

    @staticmethod
    def _is_current(plan: Plan, params: list[Tensor]) -> bool:
        if len(plan.forms) != len(params):
            return False
        for p, was in zip(params, plan.forms, strict=True):
            if (p.blob if p.spec is None else p.spec) is not was if p._grad is not None else was is not None:
                return False
        return True

    def prepare(self, params: Container[Tensor]) -> None:
        """Make the states of the parameters that a graph updates."""
        for i, group in enumerate(self.param_groups):
            self._plans[i] = self._plan(group, [p for p in group["params"] if p in params])

    def apply_update(
        self, gradients: Mapping[Tensor, Tensor], rates: Sequence[Callable[[Placement | Device], Any]]
    ) -> None:
        """Call the ops that update the parameters by these gradients. `rates` give each group's rate on a placement or
        a device."""
        for i, group in enumerate(self.param_groups):
            plan = self._plans[i]
            assert plan is not None, "call prepare() first"
            for bucket in plan.buckets:
                lr = self.rate_at(bucket.params[0], rates[i])
                self.update(group, bucket, [gradients[p] for p in bucket.params], lr)

    def rate_at(self, p: Tensor, rate: Callable[[Placement | Device], Any]) -> Any:
        """A group's rate where the update of a parameter reads it."""
        if p.spec is not None:
            return rate(p.spec.placement)
        return rate(p.device if self.rate_on_device else Device("cpu"))

    def _plan(self, group: dict[str, Any], params: list[Tensor]) -> Plan:
        names = self.states_of(group)
        together: dict[Any, list[Tensor]] = {}
        moved: dict[Any, Tensor] = {}
        with no_grad():
            for p in params:
                self._follow(p, moved)
                self._fill(group, p, names)
                step = self.state[p].get(STEP)
                where = p.spec and (p.placement, p.sbp, p.dtype)
                together.setdefault((where or (p.device, p.dtype), _count(step)), []).append(p)
            counted = self.counts_steps(group)
            buckets = [self._bucket(names, counted, members) for members in together.values()]
        wanted = {id(p) for p in params}
        return Plan([form(p) if id(p) in wanted else None for p in group["params"]], names, buckets)

    def _follow(self, p: Tensor, moved: dict[Any, Tensor]) -> None:
        """Move a parameter's states to its new layout."""
        state = self.state[p]
        for name, t in state.items():
            if isinstance(t, Tensor) and not has_layout_of(t, p):
                state[name] = placed_state(f"state {name}", t, p, moved, False)
                self.exchanges += 1

    def _fill(self, group: Mapping[str, Any], p: Tensor, names: tuple[str, ...]) -> None:
        """Create a parameter's missing states. One that has others, as torch's SGD saves, has made a step;
        old files count by numbers."""
        state = self.state[p]
        fresh = not state
        for name in names:
            if name not in state:
                state[name] = filled_like(p, self.first_value(group, name))
        if self.counts_steps(group) and not isinstance(state.get(STEP), Tensor):
            state[STEP] = self._count_of(p, float(state.get(STEP, not fresh)))

    @staticmethod
    def _count_of(p: Tensor, steps: float) -> Tensor:
        if p.spec is not None:
            return whole(torch.tensor(steps, device=p._meta.device), p.spec)
        return of_torch(torch.tensor(steps, device=p.device.torch))

    def _bucket(self, names: tuple[str, ...], counted: bool, members: list[Tensor]) -> Bucket:
        """A bucket of parameters with the same count of steps, which share one step tensor, unless others share it."""
        step = None
        if counted:
            inside = {id(p) for p in members}
            step = self.state[members[0]][STEP]
            if any(s.get(STEP) is step for p, s in self.state.items() if isinstance(p, Tensor) and id(p) not in inside):
                step = ops.clone(step)
            for p in members:
                self.exchanges += self.state[p][STEP] is not step
                self.state[p][STEP] = step
        return Bucket(members, {n: [self.state[p][n] for p in members] for n in names}, step)

    # ---- hooks ---------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHook:
        """Call `hook(optimizer)` before `state_dict`."""
        return RemovableHook(self._around_state["save"], hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHook:
        """Call `hook(optimizer, state_dict)` after `state_dict`; its result, if any, replaces the state."""
        return RemovableHook(self._around_state["saved"], hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHook:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; its result, if any, replaces the state."""
        return RemovableHook(self._around_state["load"], hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHook:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return RemovableHook(self._around_state["loaded"], hook, prepend)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """Call `hook(optimizer, args, kwargs)` before every step."""
        return RemovableHook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHook:
        """Call `hook(optimizer, args, kwargs)` after every step."""
        return RemovableHook(self._optimizer_step_post_hooks, hook)

    # ---- state ---------------------------------------------------------------------------------------

    @property
    def _state(self) -> dict[Any, Any]:
        """OneFlow's name for `state`: its optimizers count their steps there."""
        self.state.setdefault(STEP, 0)
        return self.state

    def state_dict(self) -> dict[str, Any]:
        """States by parameter index, and the groups with indices for parameters."""
        for hook in tuple(self._around_state["save"].values()):
            hook(self)
        numbers = {id(p): i for i, p in enumerate(p for g in self.param_groups for p in g["params"])}
        groups = [{**g, "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]
        own = {k: v for k, v in self.state.items() if not isinstance(k, Tensor)}  # of the optimizer as a whole
        state = own | {numbers[id(p)]: dict(s) for p, s in self.state.items() if id(p) in numbers and s}
        made: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in tuple(self._around_state["saved"].values()):
            made = hook(self, made) or made
        return made

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state from `state_dict`; it is checked before anything is changed."""
        for hook in tuple(self._around_state["load"].values()):
            state_dict = hook(self, state_dict) or state_dict
        lacking = {"param_groups", "state"} - set(state_dict)
        if lacking:
            raise MissingKeyError(
                f"an optimizer's state has 'param_groups' and 'state', as from state_dict(); this lacks "
                f"{', '.join(map(repr, sorted(lacking)))} and has {list(state_dict)[:5]}"
            )
        state_dict = of_oneflow(state_dict, self.param_groups, any(map(self.counts_steps, self.param_groups)))
        groups, state = state_dict["param_groups"], state_dict["state"]
        if len(groups) != len(self.param_groups):
            raise CheckpointError(
                f"loaded state dict has a different number of parameter groups: {len(groups)}; this optimizer has "
                f"{len(self.param_groups)}"
            )
        by_number: dict[int, Tensor] = {}
        names: dict[int, tuple[str, ...]] = {}
        for i, (saved, own) in enumerate(zip(groups, self.param_groups, strict=True)):
            if len(saved["params"]) != len(own["params"]):
                raise CheckpointError(
                    f"loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {i} has {len(saved['params'])} parameters there and {len(own['params'])} here"
                )
            by_number |= dict(zip(saved["params"], own["params"], strict=True))
            names |= dict.fromkeys(map(id, own["params"]), self.states_of(own))
        by_number |= {str(n): p for n, p in by_number.items()}  # type: ignore[misc]  # JSON knows no numbers as keys
        placed: dict[Any, Tensor] = {}
        loaded: dict[Tensor, dict[str, Any]] = {}
        for number, values in state.items():
            p = by_number.get(number)
            if p is not None and values is not None:  # None: another rank has it
                known = names[id(p)]
                loaded[p] = {
                    k: placed_state(f"state {number}.{k}", v, p, placed, k in known) for k, v in values.items()
                }
        self._keep_tensors(loaded)
        self.state.clear()
        self.state.update(loaded | {k: v for k, v in state.items() if isinstance(k, str) and not k.isdigit()})
        for saved, own in zip(groups, self.param_groups, strict=True):
            own.update({k: v for k, v in saved.items() if k != "params"})
        self._plans = [None] * len(self.param_groups)
        for hook in tuple(self._around_state["loaded"].values()):
            hook(self)

    def _keep_tensors(self, loaded: dict[Tensor, dict[str, Any]]) -> None:
        """Copy loaded states to the existing state tensors, which graphs refer to."""
        heir: dict[int, Tensor] = {}
        given: set[int] = set()
        for p, values in loaded.items():
            for name, value in values.items():
                own = self.state[p].get(name) if p in self.state else None
                if not isinstance(value, Tensor) or own is None:
                    continue
                if id(value) not in heir and id(own) not in given and form_of(own) == form_of(value):
                    own.data = value
                    heir[id(value)] = own
                    given.add(id(own))
                values[name] = heir.get(id(value), value)
                self.exchanges += values[name] is not own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._patch_step_function()

    def __repr__(self) -> str:
        lines = []
        for i, group in enumerate(self.param_groups):
            options = "\n    ".join(f"{k}: {group[k]}" for k in sorted(group) if k != "params")
            lines.append(f"Parameter Group {i}\n    {options}\n")
        return f"{type(self).__name__} (\n" + "".join(lines) + ")"


def _count(step: Any) -> Any:
    there = local_data(step, "step") if isinstance(step, Tensor) else None
    return there.item() if there is not None and there.numel() else None  # empty on a rank outside the placement
