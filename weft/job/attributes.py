"""Attributes of modules that the program assigns while it is traced: they are made writes of the job, or refused.

A graph runs without Python. If `build` assigns another tensor to a buffer, the job writes it into the old one, where
the next launch reads it; other state that launches would lose is an error or a warning.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch

from weft.core.dispatch import hooks, tracing
from weft.core.errors import TraceError
from weft.core.program_line import warn
from weft.core.stored import stored
from weft.job.aliasing import Memories, overlap
from weft.job.python_state import PLAIN, Snapshot, change, is_cached, snapshot, warn_of_change
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor

OWN: Final = ("_roles", "_non_persistent", "_hooks")  # what modules themselves keep


class Held(NamedTuple):
    """A module's attribute before the trace."""

    module: Any
    name: str
    value: Any
    inside: Any = None  # what a list, a tuple or a dict held
    was: Snapshot = {}  # the Python state of it

    @property
    def now(self) -> Any:
        return stored(self.module).get(self.name)

    @property
    def is_state(self) -> bool:
        return self.name in self.module._roles

    def __str__(self) -> str:
        return f"{type(self.module).__name__}.{self.name}"


class Attributes:
    def __init__(self, memories: Memories) -> None:
        self.memories = memories
        self._held: dict[int, tuple[Any, list[Held]]] = {}
        self._times: Counter[tuple[int, str]] = Counter()  # how often attributes were set
        self.others: set[int] = set()  # modules of inner graphs, and those already warned of
        self._born: set[int] = set()  # modules made during the trace
        self._snapshots: dict[int, Snapshot] = {}  # of objects, which several modules may hold
        self._compared: set[tuple[int, int]] = set()  # such, before and after
        self._states: set[int] = set()  # the parameters and buffers of before the trace, by identity

    def see(self, module: Any, name: str = "") -> None:
        """Save a module's attributes when the program first calls it, or sets one of them, whose name is given."""
        self._times[id(module), name] += 1
        if "_roles" not in stored(module):
            self.make(module)
        elif id(module) not in self._held:
            held = [Held(module, k, v, _copy(v), self._state(v)) for k, v in stored(module).items() if k not in OWN]
            self._held[id(module)] = module, held

    def _state(self, value: Any) -> Snapshot:
        if isinstance(value, Tensor) or type(value) in PLAIN:
            return snapshot(value)
        if id(value) not in self._snapshots:
            self._snapshots[id(value)] = snapshot(value)
        return self._snapshots[id(value)]

    def make(self, module: Any) -> None:
        """Note a module whose `__init__` runs during the trace."""
        if id(module) not in self._held:
            self._held[id(module)] = module, []
            self._born.add(id(module))

    def remark(self, module: Any) -> None:
        """Warn of a module that isn't the graph's: its calls are traced, but its state isn't the graph's."""
        if id(module) not in self.others and any(True for _ in module.parameters()):
            shown = f"{module._get_name()}({module.extra_repr()}) is"
            warn(
                f"{shown} made in build(): each launch makes it again, and draws its weights anew. Make it in "
                "__init__, or call the module that makes it once, before the graph is made"
                if id(module) in self._born else
                f"{shown} called in a nn.Graph, but not registered into a nn.Graph: its parameters are no part of the "
                "graph's state, and have no names in it. Set it in __init__: self.m = module"
            )  # fmt: skip
            self.others.update(map(id, module.modules()))

    def exchanged(self, was_read: Callable[[Tensor], bool]) -> list[tuple[Tensor, Tensor]]:
        """The tensors that the program replaced, each with its replacement; the attributes are restored."""
        found: list[tuple[Held, tuple[Tensor, Tensor]]] = []
        read = self._read_as_no_state(was_read)
        for module, held in self._held.values():
            changed = [each for each in held if not self._is_as_before(each)]
            late = [Held(module, name, None, was=_of_class(module, name)) for name in self._late(module, held)]
            for each in [*changed, *late]:
                self._keep_constants(each, was_read)
            for each in changed:
                pair = self._judged(each, was_read if each.is_state else read)
                if pair is not None:
                    found.append((each, pair))
            for each in late:
                self._judged(each, was_read)
        self._check_shared([each for each, _ in found])
        for each, _ in found:
            stored(each.module)[each.name] = each.value
        return [pair for _, pair in found]

    def _check_shared(self, changed: list[Held]) -> None:
        """Refuse to write a replacement into memory that has another buffer or parameter, which shall stay apart; warn
        where another attribute holds that memory."""
        held = [h for _, held in self._held.values() for h in held]
        every = {id(m): m for module, _ in self._held.values() for m in module.modules()} if changed else {}
        held += [Held(m, k, stored(m).get(k)) for i, m in every.items() if i not in self._held for k in m._roles]
        there: dict[int, list[tuple[Held, Tensor]]] = {}
        for each in held if changed else ():
            for t in _tensors(each.value if each.inside is None else each.inside):
                there.setdefault(self._memory(t), []).append((each, t))
        for each in changed:
            at = self._memory(each.value)
            for other, t in there.get(at, ()) if at else ():
                kept = any(now is each.now for now in _tensors(other.now))
                if kept or not overlap(self.memories.data(each.value), self.memories.data(t)):
                    continue
                if other.is_state:
                    raise TraceError(
                        f"build() sets {each} anew, and {other} lies in the same memory, in which launches keep both: "
                        "give each its own, register_buffer(name, tensor.clone())"
                    )
                warn(
                    f"build() sets {each} anew, and {other} holds the tensor that was there before. A launch writes "
                    "into its memory, and so both change: let the other hold a clone()"
                )

    def _memory(self, t: Tensor) -> int:
        """The address of a tensor's storage; 0 if it has none."""
        data = self.memories.data(t)
        return data.untyped_storage().data_ptr() if data.layout is torch.strided and data.numel() else 0

    def _is_as_before(self, each: Held) -> bool:
        """Whether it is the tensor of before the trace, or what holds none."""
        if isinstance(each.value, Tensor):
            return each.now is each.value and not self._is_new(each.value)
        return type(each.value) in PLAIN and each.now is each.value

    def _keep_constants(self, each: Held, was_read: Callable[[Tensor], bool]) -> None:
        """Give new tensors that follow from constants alone their data, as the program's tables stay for later calls;
        but those that were set twice, written into, or are to be written into others, are what changes."""
        old = each.value
        if self._times[id(each.module), each.name] > 1 or (
            isinstance(old, Tensor) and (was_read(old) or (each.is_state and _form(old) == _form(each.now)))
        ):
            return
        for t in filter(self._is_new, _tensors(each.now)):
            if not t.requires_grad and not self.memories.is_written(t):
                with contextlib.suppress(TraceError):
                    known = hooks.traced(t, f"{each} isn't constant", read=False)
                    with tracing(None):
                        t.data = known

    def _late(self, module: Any, held: list[Held]) -> list[str]:
        """The attributes that a module of before the trace has got since."""
        known = {*OWN, *(each.name for each in held)}
        return [] if id(module) in self._born else [n for n in stored(module) if n not in known]

    def _read_as_no_state(self, was_read: Callable[[Tensor], bool]) -> Callable[[Tensor], bool]:
        """Whether a tensor was read, though no parameter and no buffer has its memory."""
        everything = [each for _, held in self._held.values() for each in held]
        found = [each.value for each in everything if each.is_state and isinstance(each.value, Tensor)]
        states, self._states = {id(blob_of(t)) for t in found}, set(map(id, found))
        return lambda t: id(blob_of(t)) not in states and was_read(t)

    def _judged(self, each: Held, was_read: Callable[[Tensor], bool]) -> tuple[Tensor, Tensor] | None:
        old, now = each.value, each.now
        if isinstance(old, Tensor):
            return self._exchange(each, was_read)
        if old is None and each.is_state:
            self._refuse_new(each)
        elif any(map(was_read, _tensors(each.inside))) and any(map(self._is_new, _tensors(now))):
            raise TraceError(
                f"build() reads tensors of {each} and then puts others there, which the next launch would not see. "
                "What a graph keeps is buffers, register_buffer(name, tensor): set those anew, or write into them"
            )
        elif not _tensors(each.inside) and any(map(self._is_new, _tensors(now))):
            warn(
                f"build() found no tensor in {each} and left one there. Launches don't: each finds what was there when "
                "the graph was traced. What a launch leaves to the next is a buffer, register_buffer(name, tensor), "
                "that __init__ makes; what it shows is an output of build()"
            )
        elif type(now) in PLAIN or (id(old), id(now)) not in self._compared:
            self._compared.add((id(old), id(now)))
            if (how := change(each.was, snapshot(now))) is not None:
                warn_of_change(str(each), how)
        return None

    def _exchange(self, each: Held, was_read: Callable[[Tensor], bool]) -> tuple[Tensor, Tensor] | None:
        old, now, read = each.value, each.now, was_read(each.value)
        if now is old or self._is_new(old) or not isinstance(now, Tensor):
            return None
        if not (each.is_state or read):
            if id(old) in self._states and self._is_new(now):
                warn(
                    f"build() sets {each} anew, where a parameter or a buffer was. Launches don't: each finds what was "
                    "there when the graph was traced. What a launch leaves to the next is a buffer of its own"
                )
            return None
        now = hooks.fresh(now)
        alike = _form(now) == _form(old)
        if not (read or alike or self._is_new(now)):
            return None
        if read and not (each.is_state and alike):
            before, after = (f"{t.dtype.name}{list(t.shape)}" for t in (old, now))
            raise TraceError(
                f"build() reads {each}, {before}, and then sets it to {after}, which the next launch would not see. "
                "What a graph keeps is a buffer, register_buffer(name, tensor), that keeps its form, or is written in "
                f"place: self.{each.name}.copy_(...) under flow.no_grad()"
            )
        return (old, now if alike else old)

    def _refuse_new(self, each: Held) -> None:
        if self._is_made(each.now):
            raise TraceError(
                f"build() makes {each}, which the next launch would make again. What a graph keeps is there before: "
                "let __init__ make it, or register it, register_buffer(name, tensor), in the form that it will have; "
                "or call the module once before the graph is made"
            )

    def _is_new(self, t: Tensor) -> bool:
        """Whether a tensor was made in the trace."""
        return not self.memories.stands_over(t)

    def _is_made(self, value: Any) -> bool:
        """Whether a tensor was made in the trace, or a module with such tensors."""
        if isinstance(value, Tensor):
            return self._is_new(value)
        return id(value) in self._born and any(map(self._is_new, (*value.parameters(), *value.buffers())))

    def restore(self) -> None:
        """Restore all attributes, after a failed trace."""
        for module, held in self._held.values():
            for name in self._late(module, held):
                if self._is_made(stored(module)[name]):
                    delattr(module, name)
            for each in held:
                now = each.now
                if now is not each.value and (id(now) in self._born or any(map(self._is_new, _tensors([now])))):
                    stored(module)[each.name] = each.value
                if type(each.value) in (list, dict) and any(map(self._is_new, _tensors(each.value))):
                    each.value.clear()
                    (each.value.extend if isinstance(each.value, list) else each.value.update)(each.inside)


def _of_class(module: Any, name: str) -> Snapshot:
    """What a module's class has under the name of an attribute that the module hadn't; None if it computes it once."""
    return snapshot(None if is_cached(module, name) else getattr(type(module), name, None))


def _form(t: Any) -> Any:
    return isinstance(t, Tensor) and (t.shape, t.dtype)


def _copy(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict) else value


def _tensors(value: Any) -> list[Tensor]:
    """The tensors of a list, a tuple or a dict, or the tensor itself."""
    if type(value) not in (list, tuple, dict):
        value = [value]
    held = dict.values(value) if isinstance(value, dict) else value
    found = (getattr(t, "of", t) if isinstance(t, torch.Tensor) else t for t in held)  # also of facades
    return [t for t in found if isinstance(t, Tensor)]
