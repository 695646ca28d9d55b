"""Point-to-point messages with `torch.distributed`'s signatures.

Asynchronous messages are sent together at the first wait, so that ranks that send to each other don't deadlock.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from weft.core.errors import ArgumentError, RankError
from weft.core.idle import idle
from weft.core.rank import Rank, current
from weft.distributed.groups import get_group_rank, root
from weft.system import comm
from weft.tensor.tensor import Tensor
from weft.transport import transport_of
from weft.vm.instruction import Instruction


class Work:
    """The handle of an asynchronous call. A collective is done before its call returns."""

    def __init__(self, run: Callable[[], None] | None = None, outputs: Sequence[Tensor] = ()) -> None:
        self._run, self._outputs = run, outputs

    def wait(self, timeout: timedelta | None = None) -> bool:
        idle("distributed.Work.wait(timeout)", timeout)
        if self._run is not None:
            self._run()
        return True

    def is_completed(self) -> bool:
        return self._run is None

    is_success = is_completed

    def result(self) -> list[Tensor]:
        """The tensors that the call fills, once it has."""
        self.wait()
        return list(self._outputs)

    def get_future(self) -> Future:
        return Future(self.result, self.is_completed)


class Future:
    """What a call will give. A function given to `then` runs at once if the call is done, else when someone waits."""

    def __init__(self, read: Callable[[], Any], done: Callable[[], bool]) -> None:
        self.wait = self.value = functools.cache(read)
        self.done = done

    def then(self, callback: Callable[[Future], Any]) -> Future:
        later = Future(lambda: callback(self), self.done)
        if self.done():
            later.wait()
        return later


class Begun(Work):
    """A collective that is still running."""

    def __init__(self, instruction: Instruction, outputs: Sequence[Tensor]) -> None:
        super().__init__(instruction.wait, outputs)
        self._instruction = instruction

    def is_completed(self) -> bool:
        return self._instruction.finished

    def is_success(self) -> bool:
        return self._instruction.state == "done"


class _Pending:
    """A rank's asynchronous messages, not yet sent."""

    def __init__(self, rank: Rank) -> None:
        transport_of(rank)  # which closes after this
        self.sends: list[tuple[int, Tensor]] = []
        self.receives: list[tuple[int, Tensor]] = []
        self.works: list[Work] = []

    def add(self, sends: list[tuple[int, Tensor]], receives: list[tuple[int, Tensor]]) -> Work:
        self.sends += sends
        self.receives += receives
        self.works.append(Work(self.travel))
        return self.works[-1]

    def travel(self) -> None:
        sends, receives, works = self.sends, self.receives, self.works
        self.sends, self.receives, self.works = [], [], []
        if sends or receives:
            comm.exchange(sends, receives)
        for work in works:
            work._run = None

    def close(self) -> None:
        """The rank ends: what it sent and never waited for goes, as other ranks may wait for it."""
        with contextlib.suppress(RankError):  # of one who failed
            self.settle()

    def settle(self) -> None:
        if self.sends:
            sends, self.sends = self.sends, []
            comm.exchange(sends, [])


def _pending() -> _Pending:
    return current().resource("distributed messages", _Pending)


def settle() -> None:
    """Send what is pending before a collective: receivers may reach it only then."""
    pending = current().resources.get("distributed messages")
    if pending is not None:
        pending.settle()


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Send a tensor to another rank, asynchronously; the receiver's has the same shape and dtype.

    Messages between two ranks arrive in the order of sending, as with NCCL; a `tag` doesn't change it.
    """
    idle("distributed.isend(tag)", tag)
    return _pending().add([(root("isend", dst, group_dst, group), tensor)], [])


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Receive the next message of another rank into the tensor, asynchronously, whatever its `tag`."""
    idle("distributed.irecv(tag)", tag)
    return _pending().add([], [(root("irecv", src, group_src, group), tensor)])


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """`isend`, and wait."""
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """`irecv`, and wait; returns the sender's rank."""
    irecv(tensor, src, group, tag, group_src).wait()
    return root("recv", src, group_src, group)


class P2POp:
    """One message of a batch: `op` is `isend` or `irecv`."""

    def __init__(
        self, op: Callable[..., Work], tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ArgumentError("P2POp(): op must be distributed.isend or distributed.irecv")
        idle("distributed.P2POp(tag)", tag)
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer = root("P2POp", peer, group_peer, group)
        self.group_peer = get_group_rank(group, self.peer)


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Several messages, sent together at the first wait."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ArgumentError("batch_isend_irecv() takes a list of one P2POp or more")
    return [p.op(p.tensor, p.peer) for p in p2p_op_list]
