"""`Join`: ranks with unequal numbers of batches. One that has no more takes part in the collectives of the others.

Those are shadowed by a hook for each participant: a `DistributedDataParallel` module, or any `Joinable`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from weft.core.errors import ArgumentError, RankError
from weft.core.rank import current
from weft.optim.agreement import UNEQUAL
from weft.system import comm
from weft.tensor.tensor import of_torch


def agree(values: Sequence[int], op: str = "sum", group: Any = None) -> list[int]:
    """The sums, or other reductions, of numbers over the ranks."""
    found = of_torch(torch.tensor(values))
    comm.all_reduce(found, op, None if group is None else tuple(group))
    return found.tolist()


class JoinHook:
    """What a rank does once it has no more inputs."""

    def main_hook(self) -> None:
        """Shadow the collectives of an iteration; called while some rank still has inputs."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when no rank has inputs, on those that were the last with `True`."""


class JoinConfig(NamedTuple):
    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """What calls `Join.notify_join_context(self)` before the collectives of an iteration."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook: ...

    @property
    @abstractmethod
    def join_device(self) -> Any: ...

    @property
    @abstractmethod
    def join_process_group(self) -> Any: ...


class Join:
    """`with Join([model, optimizer]):` around the loop over a rank's batches. Keyword arguments go to each `join_hook`.
    With `throw_on_early_termination` all ranks raise an error as soon as one has no more inputs."""

    def __init__(
        self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ArgumentError("Join([model]) takes at least one participant")
        self.hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self.joinables, self.enable, self.throws = joinables, enable, throw_on_early_termination
        every = tuple(range(current().world_size))
        groups = {every if g is None else tuple(g) for g in (j.join_process_group for j in joinables)}
        if len(groups) > 1:
            raise ArgumentError(f"Join: all participants have one group; these have {groups}")
        self.group = groups.pop()
        for i, joinable in enumerate(joinables):
            joinable._join_config = JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self) -> None:
        current().resources[UNEQUAL] = self.enable

    def __exit__(self, kind: Any, error: Any, at: Any) -> None:
        try:
            if self.enable and kind is None:
                self._shadow()
        finally:
            current().resources[UNEQUAL] = False

    def _shadow(self) -> None:
        """Take part in the others' iterations until no rank has inputs."""
        is_last = True
        while agree([0], group=self.group)[0]:
            if self.throws:
                agree([1], group=self.group)
                raise RankError("Join: this rank has no more inputs, before other ranks")
            for hook in self.hooks:
                hook.main_hook()
            is_last = False
        for joinable in self.joinables:
            joinable._join_config = JoinConfig()
        for hook in self.hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Any) -> int | None:
        """Tell that this rank still has inputs: how many ranks have, or None outside of `Join` and for all participants
        but the first."""
        config = joinable._join_config
        if not (config.enable and config.is_first_joinable):
            return None
        group = joinable.join_process_group
        count = agree([1], group=group)[0]
        if config.throw_on_early_termination and agree([0], group=group)[0]:
            raise RankError("Join: another rank has no more inputs")
        return count
