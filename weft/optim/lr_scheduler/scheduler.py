"""The base class of schedules."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from weft.autograd.plain import is_others
from weft.core.derived import is_derived
from weft.core.errors import CheckpointError, GraphError, OptionError
from weft.optim.optimizer import Optimizer


class Counted:
    """A schedule given to a graph: launches count its steps, so the rate of step n depends on n alone.

    Stepping the schedule by hand, as training loops do for a log, has an effect only after an eager step of the
    optimizer, which no launch has counted.
    """

    def __init__(self, schedule: LRScheduler) -> None:
        self.schedule, self.groups = schedule, schedule.optimizer.param_groups
        self.open = False  # whether a counted step is being made
        schedule.optimizer.stepped = False
        self._note()

    def covers(self, schedule: LRScheduler) -> bool:
        return any(schedule is part for part in _parts(self.schedule))

    def step(self) -> None:
        """Count a launch, or an eager step before it."""
        with self.opened():
            self.schedule.step()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        self.open = True
        try:
            yield
        finally:
            self.open = self.schedule.optimizer.stepped = False
            self._note()

    def check(self, graph: str, schedule: LRScheduler) -> None:
        """Check before a launch that the groups have the rates of the schedule's step, also after loading a state."""
        if self.schedule is not schedule:
            raise GraphError(
                f"{graph} was given {type(schedule).__name__}, and another graph gave its optimizer "
                f"{type(self.schedule).__name__} since: one optimizer has one rate. Give both graphs one schedule"
            )
        found = [g["lr"] for g in self.groups]
        now = self._at()
        if found == self._rates and now == self._known:
            return
        if now == self._known:
            i = next(i for i, (a, b) in enumerate(zip(found, self._rates, strict=True)) if a != b)
            raise GraphError(
                f"{graph}: param_groups[{i}]['lr'] was set to {found[i]}, and {type(schedule).__name__} says "
                f"{self._rates[i]} for step {now[0]}: the rate of a graph's step follows from its schedule alone. Load "
                "the schedule's state with the optimizer's (graph.load_state_dict does), put the factor into a "
                "LambdaLR, or leave lr_sch out of add_optimizer and set the rates yourself"
            )
        for group, lr in zip(self.groups, now[1] or found, strict=True):
            group["lr"] = lr
        self._note()

    def _at(self) -> tuple[int, list[Any]]:
        return getattr(self.schedule, "last_epoch", 0), list(getattr(self.schedule, "_last_lr", ()))

    def _note(self) -> None:
        self._rates, self._known = [g["lr"] for g in self.groups], self._at()


def _parts(schedule: LRScheduler) -> Iterator[LRScheduler]:
    """The schedule and its parts."""
    yield schedule
    for value in vars(schedule).values():
        for part in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(part, LRScheduler):
                yield from _parts(part)


def _guarded(step: Callable[..., None]) -> Callable[..., None]:
    """A `step` that does nothing for a schedule that launches count."""

    @functools.wraps(step)
    def call(self: LRScheduler, *args: Any, **options: Any) -> None:
        counted = getattr(self.__dict__.get("optimizer"), "counted", None)
        if counted is None or counted.open or not counted.covers(self):
            return step(self, *args, **options)
        if self.optimizer.stepped:
            with counted.opened():
                step(self, *args, **options)

    return call


def _of_both(init: Callable[..., None]) -> Callable[..., None]:
    """An `__init__` that takes, from a program as from a subclass, its own arguments, `verbose` after them or by its
    name, and `last_step` for `last_epoch`.
    """
    own = inspect.signature(init).parameters
    placed = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in own.values())

    @functools.wraps(init)
    def call(self: LRScheduler, *args: Any, **options: Any) -> None:
        if "verbose" not in own:
            if placed and len(args) == len(own) and isinstance(args[-1], bool):
                args, options["verbose"] = args[:-1], args[-1]
            if options.pop("verbose", False):
                self.verbose = True
        if "last_step" not in own and "last_step" in options:
            options["last_epoch"] = options.pop("last_step")
        if is_derived(init.__module__):  # torch's take lists and tuples only
            args = tuple(tuple(v) if is_others(v) else v for v in args)
            options = {k: tuple(v) if is_others(v) else v for k, v in options.items()}
        init(self, *args, **options)

    return call


def _of_all_groups(get_lr: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's `get_lr()`, which answers OneFlow's `get_lr(base_lr, step)`, one group's rate, where a schedule has a
    closed form; or OneFlow's, which answers PyTorch's.
    """
    required = [p.kind for p in inspect.signature(get_lr).parameters.values() if p.default is p.empty]
    of_one = required == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 3

    @functools.wraps(get_lr)
    def call(self: LRScheduler, *given: Any, **named: Any) -> Any:
        if of_one and not (given or named):
            return [get_lr(self, base, self.last_epoch) for base in self.base_lrs]
        if of_one or not (given or named) or not hasattr(self, "_get_closed_form_lr"):
            return get_lr(self, *given, **named)
        return of_a_group(self, *given, **named)

    def of_a_group(self: Any, base_lr: float, step: int) -> float:
        then = copy.copy(self)
        then.base_lrs, then.last_epoch = [base_lr], step
        return then._get_closed_form_lr()[0]

    return call


# methods of any schedule that are called in more ways than they are written, or not always
ADAPTED: Final = {"__init__": _of_both, "get_lr": _of_all_groups, "step": _guarded}


class _Made(type):
    """Adapts the methods of schedules, as a class is made or changed."""

    @property
    def __signature__(cls) -> inspect.Signature:
        own = inspect.signature(cls.__init__)
        parameters = [*own.parameters.values()][1:]
        if "verbose" not in own.parameters:
            parameters.append(inspect.Parameter("verbose", inspect.Parameter.KEYWORD_ONLY, default=False))
        return own.replace(parameters=parameters)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return super().__call__(*args, **options)  # for type checkers: arguments of both libraries

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, ADAPTED[name](value) if name in ADAPTED else value)


# what OneFlow's schedules save, under other names, and what they save and those here don't keep
RENAMED: Final = {"last_step": "last_epoch", "max_decay_steps": "total_iters", "num_bad_steps": "num_bad_epochs"}
LEFT_OUT: Final = ("base_lrs", "interval_rescaling", "milestones", "schedulers")


class LRScheduler(metaclass=_Made):
    """Subclasses return the rates of step `last_epoch` from `get_lr`; reading `group["lr"]` in it makes it recursive.
    Or, as in OneFlow, `get_lr(base_lr, step)` returns the rate of one group.

    Every schedule takes `verbose=True`, to print the rates that it sets.
    """

    verbose: bool = False
    # read by get_lr() of PyTorch's schedules: whether this is the first step, and whether step() calls it
    _is_initial, _get_lr_called_within_step = False, True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ADAPTED.keys() & vars(cls).keys():
            setattr(cls, name, vars(cls)[name])

    def __init__(
        self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool = False, *, last_step: int | None = None
    ) -> None:
        last_epoch = last_epoch if last_step is None else last_step
        if verbose:
            self.verbose = True
        if not isinstance(optimizer, Optimizer):
            raise OptionError(f"{type(optimizer).__name__} is not an Optimizer: a schedule belongs to one")
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer; load the "
                    "optimizer's state dict first, or begin at last_epoch=-1"
                )
        self.optimizer = optimizer
        self.base_lrs = [g["initial_lr"] for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates of step `last_epoch`, one per group."""
        raise TypeError(f"{type(self).__name__} has no get_lr(): a schedule returns from it the rates of a step")

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set, one per group."""
        return self._last_lr

    @_guarded
    def step(self, epoch: int | None = None) -> None:
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        formula = self.get_lr if epoch is None else getattr(self, "_get_closed_form_lr", self.get_lr)
        self.update_lrs(formula())

    def update_lrs(self, rates: Sequence[float]) -> None:
        """Set the rates of the groups."""
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._print_rates()
        self._last_lr = [g["lr"] for g in self.optimizer.param_groups]

    def _print_rates(self) -> None:
        for i, lr in enumerate(self._now() if self.verbose else ()):
            self.print_lr(i, lr)

    def print_lr(self, group: int, lr: float) -> None:
        """Print a group's rate, as with `verbose`: for an `update_lrs` of one's own."""
        print(f"step {self.last_epoch} of {type(self).__name__}: the rate of param_groups[{group}] is {lr:.5g}")

    @property
    def last_step(self) -> int:
        """OneFlow's name for `last_epoch`."""
        return self.last_epoch

    @last_step.setter
    def last_step(self, step: int) -> None:
        self.last_epoch = step

    def _now(self) -> list[float]:
        return [g["lr"] for g in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The state, without the optimizer and functions, which can't be saved."""
        kept = {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}
        return {k: sorted(v.elements()) if isinstance(v, Counter) else v for k, v in kept.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        now = vars(self)
        state = self.checked(state_dict)
        now.update({k: Counter(v) if isinstance(now.get(k), Counter) else v for k, v in state.items()})

    def checked(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """The state, with OneFlow's names as they are here; raises for that of another schedule."""
        state, known = dict(state_dict), {*vars(self), *dir(LRScheduler)}
        if "last_step" in state:
            named = {k if k in vars(self) else RENAMED.get(k, k): v for k, v in state.items()}
            state = {k: v for k, v in named.items() if k in known or k not in LEFT_OUT}
        unknown = [k for k in state if k not in known]
        if unknown:
            raise CheckpointError(f"{type(self).__name__} has no {unknown[0]!r}; is it the state of another schedule?")
        return state
