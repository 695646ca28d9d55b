"""Saving the states of all ranks in a folder, and loading them in place."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.autograd.trees import leaves, mapped
from weft.checkpoint import checkpoint
from weft.core.errors import ArgumentError, CheckpointError
from weft.core.rank import current
from weft.distributed import collectives
from weft.distributed.checkpoint.stateful import Stateful
from weft.distributed.groups import get_process_group_ranks
from weft.ops import ops
from weft.tensor.tensor import Tensor
from weft.vm.instruction import Instruction


class _Folder:
    """PyTorch's options for how it writes files have no effect."""

    def __init__(self, path: Any, *_: Any, **__: Any) -> None:
        self.path = os.fspath(path)


class FileSystemWriter(_Folder):
    """Where a checkpoint is written."""


class FileSystemReader(_Folder):
    """Where a checkpoint is read."""


class DefaultSavePlanner:
    """Whole values are written, each once, whatever is planned."""

    def __init__(self, *_: Any, **__: Any) -> None: ...


class DefaultLoadPlanner:
    """With `allow_partial_load`, what the checkpoint lacks keeps its value."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.allow_partial_load = allow_partial_load


def _place(what: str, checkpoint_id: Any, storage: Any) -> str:
    if checkpoint_id is None and not hasattr(storage, "path"):
        raise ArgumentError(f'{what}(state, checkpoint_id="folder"): a checkpoint has a folder')
    return os.fspath(storage.path if checkpoint_id is None else checkpoint_id)


def _check(what: str, planner: Any, kind: type) -> None:
    if type(planner) not in (kind, type(None)):
        raise ArgumentError(f"{what}(planner=...) takes a {kind.__name__}, as files hold whole values; got {planner!r}")


def _states(value: Any) -> Any:
    """Nested dicts, with states in place of the objects that have them."""
    if isinstance(value, dict):
        return {k: _states(v) for k, v in value.items()}
    return value.state_dict() if isinstance(value, Stateful) else value


def save(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> None:  # fmt: skip
    """Write the states of all ranks, or of a group, into a folder; each of them calls this. Of local tensors, and of
    other values, the first rank's are written."""
    _check("save", planner, DefaultSavePlanner)
    _write(_states(state_dict), _place("save", checkpoint_id, storage_writer), no_dist, process_group)


def _write(state: Any, folder: str, alone: bool = False, group: Any = None) -> None:
    some_global = any(isinstance(t, Tensor) and t.is_global for t in leaves(state))
    first = get_process_group_ranks(group)[0]
    if some_global or alone or current().index == first:
        os.makedirs(folder, exist_ok=True)
        checkpoint.save(state, folder, first if some_global else None)
    if not alone:
        collectives.barrier(group)


class Saving:
    """A checkpoint that is being written."""

    def __init__(self, under_way: Instruction | None) -> None:
        self._under_way = under_way

    def done(self) -> bool:
        return self._under_way is None or self._under_way.finished

    def result(self, timeout: float | None = None) -> None:
        """Wait until it is written; raises what went wrong."""
        if self._under_way is not None:
            self._under_way.wait(timeout)


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, **_: Any,
) -> Saving:  # fmt: skip
    """As `save`; local tensors are written in the background. Global ones are written at once, as all ranks take
    part."""
    _check("async_save", planner, DefaultSavePlanner)
    state, folder = _states(state_dict), _place("async_save", checkpoint_id, storage_writer)
    if any(isinstance(t, Tensor) and t.is_global for t in leaves(state)):
        _write(state, folder, group=process_group)
    elif current().index == get_process_group_ranks(process_group)[0]:
        os.makedirs(folder, exist_ok=True)
        return Saving(checkpoint.save(state, folder, wait=False))
    return Saving(None)


def load(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_reader: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Fill a nested dict with the values of a checkpoint: tensors in place, in the layouts that they have; other values
    are replaced; objects with a state load it."""
    _check("load", planner, DefaultLoadPlanner)
    saved = checkpoint.unread(_place("load", checkpoint_id, storage_reader))
    partly = planner is not None and planner.allow_partial_load
    writes: list[Callable[[], Any]] = []
    _match(state_dict, saved, "", partly, writes, set())
    with no_grad():
        for write in writes:
            write()


def _match(own: Any, saved: Any, path: str, partly: bool, writes: list[Callable[[], Any]], written: set[int]) -> None:
    """Find and read each value, before any is written. A tensor that has several names, as the count of steps of
    several parameters, is written once: each further name gets a tensor of its own."""
    for name, value in own.items():
        at = f"{path}.{name}" if path else str(name)
        if name not in saved:
            if partly:
                continue
            raise CheckpointError(f"the checkpoint has no {at!r}; it has {list(saved)[:8]}. Nothing was loaded")
        found = saved[name]
        if isinstance(value, dict) and isinstance(found, dict):
            _match(value, found, at, partly, writes, written)
        elif isinstance(value, Stateful):
            state = _states(value.state_dict())
            _match(state, found, at, partly, writes, written)
            writes.append(lambda value=value, state=state: value.load_state_dict(state))
        elif isinstance(value, Tensor) and isinstance(found, checkpoint.Unread):
            if tuple(value.shape) != found.shape:
                raise CheckpointError(f"{at} has the shape {value.shape}, in the checkpoint {found.shape}")
            read = ops.cast(found.like(value), value.dtype)
            if id(value) in written:
                writes.append(lambda name=name, read=read: own.__setitem__(name, read))
            else:
                writes.append(lambda value=value, read=read: assign(value.detach(), read))
            written.add(id(value))
        else:
            whole = mapped(found, lambda leaf: leaf.whole() if isinstance(leaf, checkpoint.Unread) else leaf)
            writes.append(lambda name=name, whole=whole: own.__setitem__(name, whole))


def save_state_dict(state_dict: dict[str, Any], storage_writer: Any, *args: Any, **options: Any) -> None:
    """`save`, as it was called before."""
    save(state_dict, storage_writer=storage_writer, no_dist=bool(options.get("no_dist")))


def load_state_dict(state_dict: dict[str, Any], storage_reader: Any, *args: Any, **options: Any) -> None:
    """`load`, as it was called before."""
    load(state_dict, storage_reader=storage_reader, planner=options.get("planner"))
