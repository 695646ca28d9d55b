"""Roads: connections for messages, made when two ranks first exchange, in any order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from weft.transport.c10d import C10dTransport

Road = tuple[tuple[int, ...], str, str]  # ranks, type of device, line


class Roads:
    """The connections of a rank. `made` are its process groups; threads that wait in them must keep them alive."""

    def __init__(self, make: Callable[[tuple[int, ...], str, str], Any]) -> None:
        self._make = make
        self.made: list[Any] = []
        self._known: set[Road] = set()
        self._under_way: dict[Road, Future[Any]] = {}

    def connected(self, road: Road) -> bool:
        """Whether a road's process group exists. For CPU tensors it is made in a thread, so that waiting for one rank
        doesn't delay another."""
        if road in self._known:
            return True
        if road[1] == "cuda":
            self._make(*road)
        else:
            future = self._under_way.get(road)
            if future is None:
                future = self._under_way[road] = Future()
                threading.Thread(target=self._run, args=(road, future), name="weft-connect", daemon=True).start()
            if not future.done():
                return False
            del self._under_way[road]
            self.made.append(future.result())
        self._known.add(road)
        return True

    def _run(self, road: Road, future: Future[Any]) -> None:
        try:
            future.set_result(self._make(*road))
        except BaseException as error:
            future.set_exception(error)


class Coalesced:
    """Groups the sends and receives of an exchange for NCCL, where they would deadlock otherwise; no effect on Gloo."""

    def __init__(self, transport: C10dTransport, ranks: tuple[int, ...], tensors: Sequence[Tensor], line: str) -> None:
        self._processes: Any = None
        if any(t.is_cuda for t in tensors):
            self._processes = transport.processes(ranks, "cuda", line)

    def __enter__(self) -> None:
        if self._processes is not None:
            self._processes._start_coalescing(torch.device("cuda"))

    def __exit__(self, *_: object) -> None:
        if self._processes is not None:
            work = self._processes._end_coalescing(torch.device("cuda"))
            if work is not None:
                work.wait()
