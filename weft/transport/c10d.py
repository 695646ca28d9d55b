"""The transport for ranks on any hosts, by torch's c10d: Gloo for CPU tensors, NCCL for CUDA tensors.

Process groups are made directly over a separate store, so torch.distributed's default group stays free for the user.
"""

from __future__ import annotations

import inspect
import os
import queue
import re
import socket
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from datetime import timedelta
from types import FunctionType
from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor

from weft.core.errors import ArgumentError, RankError
from weft.core.rank import Rank
from weft.transport.base import Channel, Group, PeerFailed
from weft.transport.c10d_channel import C10dChannel
from weft.transport.c10d_connections import FIRST_TAG, MESSAGES, Coalesced, Connected, Connections, Key, Waiter, end
from weft.transport.c10d_group import C10dGroup
from weft.transport.check import PROGRAM
from weft.transport.hosts import SlowLink, slow_link, until
from weft.transport.rendezvous import Meeting, is_loopback
from weft.transport.stuck import Need
from weft.transport.watch import SETTLE, Watch


class C10dTransport(Connected):
    backend = "c10d"
    overlaps = True

    def __init__(self, rank: Rank, meeting: Meeting, deadline: float | None = None) -> None:
        super().__init__(rank, meeting, deadline)
        self._here = rank.local_size == rank.world_size and is_loopback(meeting.host)
        self.link, self.several_hosts = slow_link(), self.several_hosts or (self._imagined is None and not self._here)
        self._local_index = rank.local_index
        self._processes: dict[tuple[tuple[int, ...], str, str], Any] = {}
        self._watch = Watch(meeting)
        self._closed = self._failed = False
        self._waiters: list[Waiter] = []
        self._ends: list[C10dChannel] = []
        self._kept: list[object] = []
        self._exchanging: dict[str, Waiter] = {}
        self._connecting: set[str] = set()
        self._messages: Counter[tuple[int, int, str]] = Counter()  # by whom, to whom, on which line
        self._posted: defaultdict[tuple[int, int, str], deque[str]] = defaultdict(lambda: deque(maxlen=64))
        self._tags: set[int] = set()  # to check for reuse, as the counter in the store isn't authenticated
        self._connections = Connections(self.processes)
        self._to_myself: defaultdict[str, deque[Tensor]] = defaultdict(deque)

    def host_of(self, rank: int) -> Hashable:
        if self._imagined is not None or self._here:
            return super().host_of(rank)
        roll = self._meeting.roll
        if rank != self.rank and rank not in roll.here:
            self.wait_until(lambda: roll.look() or rank in roll.here, f"rank {rank} to come", (rank,))
        return roll.mine.host if rank == self.rank else roll.here[rank].host

    def processes(self, ranks: tuple[int, ...], device: str, line: str = "", what: object = "a message") -> Any:
        found = self._processes.get((ranks, device, line))
        if found is None:
            prefix = f"{device}/{','.join(map(str, ranks))}" + f"/{line}" * bool(line)
            self._gather(prefix, ranks, line, what)
            found = self._processes[ranks, device, line] = self._connected(prefix, ranks, device)
        return found

    def _connected(self, prefix: str, ranks: tuple[int, ...], device: str) -> Any:
        """A new process group. If a rank or the store dies meanwhile, c10d waits until its timeout, but the caller
        doesn't."""
        made: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def connect() -> None:
            try:
                make = self._nccl if device == "cuda" else self._gloo
                made.put(make(self._meeting.under(prefix), ranks.index(self.rank), len(ranks)))
            except Exception as error:
                made.put(error)

        threading.Thread(target=connect, name=f"weft-connecting-{self.rank}", daemon=True).start()
        what = f"connecting ranks {ranks}"
        self.wait_until(lambda: not made.empty(), what, ranks)
        found = made.get()
        if isinstance(found, RuntimeError):  # c10d's errors are such
            raise self.explained(found, what, ranks) from None
        if isinstance(found, Exception):
            raise found
        return found

    def _gather(self, where: str, ranks: tuple[int, ...], line: str, what: object) -> None:
        """Wait until all ranks are about to connect: c10d itself would wait for a rank that has already failed."""
        self._connecting.add(f"come to {where}")
        self._meeting.put(f"come/{where}/{self.rank}", b"1")
        needs = [Need(r, f"come to {where}", 1) for r in ranks if r != self.rank]
        said = f"{what}, the first call of ranks {ranks}"
        with self.watched(lambda: (line, said, needs, self.promises(line))) as watcher:

            def look() -> None:
                self.look_around(ranks)
                watcher.look()

            for rank in ranks:
                self._meeting.get(f"come/{where}/{rank}", self.deadline, look, ranks)
        self._meeting.roll.look_at_once()
        self._watch.meet()  # so that their notes can be read even if they die at once

    def promises(self, line: str) -> dict[str, int]:
        lines = PROGRAM if line in PROGRAM else (line,)
        posted = {m: 1 for (_, _, on), messages in list(self._posted.items()) if on in lines for m in list(messages)}
        return super().promises(line) | posted | dict.fromkeys(list(self._connecting), 1)

    def _gloo(self, store: Any, index: int, size: int) -> Any:
        options = dist.ProcessGroupGloo._Options()  # pyright: ignore[reportAttributeAccessIssue]  (missing in torch's stubs)
        # By default c10d uses the address of the host's name, which often is the loopback.
        interface = os.environ.get("GLOO_SOCKET_IFNAME")
        if interface:
            known = [name for _, name in socket.if_nameindex()]
            if interface.partition(":")[0] not in known:
                raise ArgumentError(f"GLOO_SOCKET_IFNAME={interface} names no interface of this host; it has {known}")
            device = dist.ProcessGroupGloo.create_device(interface=interface)
        else:
            device = dist.ProcessGroupGloo.create_device(hostname=self._meeting.own_address())
        # Gloo's timeout explains nothing and breaks its connections: our deadline must come first.
        options._devices, options._timeout = [device], timedelta(seconds=self.deadline + SETTLE)
        return dist.ProcessGroupGloo(store, index, size, options)

    def _nccl(self, store: Any, index: int, size: int) -> Any:
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timedelta(seconds=self.deadline)
        # NCCL's threads use their store even at exit, after Python has been finalized.
        made = dist.ProcessGroupNCCL(store.plain(), index, size, options)
        # Now, when all ranks come: the first messages of a group may be of some of them.
        made.eager_connect_single_device(torch.device("cuda", self._local_index % torch.cuda.device_count()))
        return made

    def _make_group(self, ranks: tuple[int, ...], line: str) -> Group:
        return C10dGroup(self, ranks, line)

    def explained(self, error: RuntimeError, what: str, ranks: Sequence[int]) -> RankError:
        try:
            self._watch.settle(ranks)
        except PeerFailed as failure:
            return PeerFailed(f"{failure}; rank {self.rank} was in {what}")
        return RankError(f"rank {self.rank} in {what} over ranks {tuple(ranks)}: {str(error).splitlines()[0]}")

    def exchange(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str = "",
        among: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        with self.moving(sends, receives, line):
            try:
                self._exchange(sends, receives, line, among)
            except BaseException:
                self._exchanging.pop(line, None)  # its thread may wait for ever; later messages get a new one
                raise

    def _exchange(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str,
        among: tuple[int, ...],
    ) -> None:  # fmt: skip
        for dst, t in sends:
            if dst == self.rank:
                self._to_myself[line].append(t.clone())
        posts: list[tuple[str, int, Tensor, int]] = []
        needs: list[Need] = []
        back: list[tuple[Tensor, Tensor]] = []
        for src, t in receives:
            if src != self.rank and (t.numel() or not among):
                flat = t if t.is_contiguous() else torch.empty_like(t, memory_format=torch.contiguous_format)
                if flat is not t:
                    back.append((t, flat))
                said, tag = self._message(src, self.rank, t, line)
                needs.append(Need(src, "send " + said, 1))
                posts.append(("recv", src, _something(flat), tag))
        for dst, t in sends:
            if dst != self.rank and (t.numel() or not among):
                said, tag = self._message(self.rank, dst, t, line)
                needs.append(Need(dst, "recv " + said, 1))
                posts.append(("send", dst, _something(t.contiguous()), tag))
        keyed = [(self._key(post, line, among), post) for post in posts]
        apart = {key for key, _ in keyed if key[1] == "cuda"}
        works: list[tuple[int, Any, bool]] = []
        for key in sorted(apart):  # in an order that all ranks have, as they connect
            with Coalesced(self, key):
                works += self._post([each for each in keyed if each[0] == key])
        works += self._post([each for each in keyed if each[0] not in apart])
        self._finish_exchange(works, line, needs)
        if self.link is not None:
            self._carry(posts)
        for t, flat in back:
            t.copy_(flat)
        for src, t in receives:
            if src == self.rank:
                if not self._to_myself[line]:
                    raise RankError(f"rank {src} receives from itself what it has not sent; send first")
                t.copy_(self._to_myself[line].popleft().view(t.shape))

    def _carry(self, posts: Sequence[tuple[str, int, Tensor, int]]) -> None:
        """Wait until an exchange would have gone over the simulated link, in both directions at once."""
        far = [(way, t.nbytes) for way, peer, t, _ in posts if self.over_link((self.rank, peer))]
        ways = [[size for w, size in far if w == way] for way in ("send", "recv")]
        if any(ways):
            until(self.carried(range(self.world_size), max(map(sum, ways))))

    def _message(self, src: int, dst: int, t: Tensor, line: str) -> tuple[str, int]:
        """The next message from one rank to another: its description, and a tag that both ends derive from its form.

        If the ends differ, so do their tags: the ends wait, and the deadlock is detected, instead of receiving bytes
        into a tensor of another form.
        """
        number = self._messages[src, dst, line] = self._messages[src, dst, line] + 1
        form = str(tuple(t.shape)) if self.check else str(t.numel())
        said = f"{number} on line {line!r} from rank {src} to rank {dst}: {str(t.dtype).removeprefix('torch.')} {form}"
        self._posted[src, dst, line].append(("send " if src == self.rank else "recv ") + said)
        return said, MESSAGES | crc32(said.encode()) & MESSAGES - 1

    def _key(self, post: tuple[str, int, Tensor, int], line: str, among: tuple[int, ...]) -> Key:
        """The connection over which a message goes: of a group whose ranks all come, or of the two."""
        _, peer, t, _ = post
        return among or (min(self.rank, peer), max(self.rank, peer)), t.device.type, line

    def _post(self, keyed: Sequence[tuple[Key, tuple[str, int, Tensor, int]]]) -> list[tuple[int, Any, bool]]:
        """Start each transfer as soon as its peer has connected, in any order."""
        works: dict[int, tuple[int, Any, bool]] = {}

        def started() -> bool:
            there = {key for key in {k for k, _ in keyed} if self._connections.connected(key)}
            for i, (key, (way, peer, t, tag)) in enumerate(keyed):  # in this order within one
                if i not in works and key in there:
                    works[i] = peer, self.start(way, key[0], t, peer, tag, key[2]), t.is_cuda
            return len(works) == len(keyed)

        if not started():
            peers = tuple({post[1] for _, post in keyed})
            self.wait_until(started, "the others to come to an exchange", peers)
        return [works[i] for i in range(len(keyed))]

    def _finish_exchange(self, works: Sequence[tuple[int, Any, bool]], line: str, needs: Sequence[Need]) -> None:
        peers = tuple({peer for peer, _, _ in works})
        what = f"an exchange with rank {', '.join(map(str, peers))}"
        if any(not cuda for _, _, cuda in works):
            waiter = self._exchanging.get(line)
            if waiter is None:
                waiter = self._exchanging[line] = self.waiter("exchange", self._connections.made)
            before = waiter.started
            for _, work, cuda in works:
                if not cuda:
                    waiter.add(work)

            def left() -> list[Need]:
                """The needs from the first unfinished transfer on."""
                return list(needs[max(waiter.done - before, 0) :])

            self.wait_until(
                waiter.idle, what, peers, waiting=lambda: (line, _spoken(left()), left(), self.promises(line)),
                rest=waiter.rest,
            )  # fmt: skip
            if waiter.error is not None:
                raise self.explained(waiter.error, what, peers)
        for _, work, cuda in works:
            if cuda and work is not None:
                self.finish(work, what, peers, cuda)

    def channel(self, key: str, src: int, dst: int, shape: Sequence[int], dtype: torch.dtype, copies: int) -> Channel:
        name = f"channel/{src}/{dst}/{key}/{self._opens(key, src, dst, copies)}"
        layout = repr((tuple(shape), dtype, copies)).encode()
        if self._meeting.claim(name):
            tag = FIRST_TAG + 2 * self._meeting.add("tags")
            self._meeting.put(name, f"{tag} ".encode() + layout)
        number, _, found = self._meeting.get(
            name, self.deadline, lambda: self.look_around((src, dst)), (src, dst)
        ).partition(b" ")
        if found != layout or not number.isdigit() or len(number) > 15:
            raise RankError(
                f"the two ends of channel {key!r} differ in (shape, dtype, copies): {layout.decode()} here, "
                f"{found[:200].decode(errors='replace')} there"
            )
        tag = int(number)
        if tag in self._tags or not FIRST_TAG <= tag < MESSAGES:
            raise RankError(
                f"channel {key!r} was given tag {tag}, which is another's: somebody who isn't of the run has changed "
                "its store"
            )
        self._tags.add(tag)
        made = C10dChannel(self, src, dst, (tuple(shape), dtype, copies), tag)
        self._channels.add(made)
        self._ends.append(made)
        return made

    def waiter(
        self, name: str, kept: object, ring: Callable[[], None] = lambda: None, link: SlowLink | None = None
    ) -> Waiter:
        self._waiters.append(made := Waiter(f"weft-{name}-{self.rank}", kept, ring, link))
        return made

    def note(self, what: str) -> None:
        self._watch.tell(what)

    def whereabouts(self, rank: int) -> str:
        return self._watch.whereabouts(rank)

    def look_around(self, needed: Sequence[int]) -> None:
        self._watch.look_around(needed)

    def fail(self, why: str, followed: bool = False) -> None:
        self._failed = True
        self._watch.leave(why, followed)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._watch.leave()
        given_up = self._failed or self._watch.failure is not None or any(g.under_way for g in self._groups.values())
        self._groups.clear()
        for channel in self._ends:
            self._kept += channel.farewell()
        groups = [(ranks, p) for (ranks, on, _), p in self._processes.items() if on == "cpu"]
        end(self._waiters, groups, self.rank, given_up)
        self._processes.clear()


def _something(t: Tensor) -> Tensor:
    """What travels: of nothing one byte, so that its receiver doesn't take it for the next message."""
    return t if t.numel() else t.new_empty(1, dtype=torch.uint8)


def _spoken(needs: Sequence[Need]) -> str:
    """A description of the messages that a rank waits for."""
    other = {"send": "recv", "recv": "send"}
    return "; ".join(f"{other[n.key[:4]]} of message {n.key[5:]}" for n in needs[:3])


def joined() -> bool:
    """Whether the program has groups of torch's own."""
    return dist.is_initialized()


SENDING = [  # torch's functions that send tensors or objects
    name
    for name, f in vars(dist.distributed_c10d).items()
    if type(f) is FunctionType and name[0] != "_" and re.search("tensor|object", str(inspect.signature(f)))
]
