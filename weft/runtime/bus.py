"""The bus: route messages to actors of the same thread, of another thread of this rank, or of another rank."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from weft.core.errors import GraphError
from weft.plan.ids import rank_of
from weft.plan.plan import Plan, Register
from weft.runtime.message import END, FREE, READABLE, Message


class Channel(Protocol):
    """The part of a transport's channel that the bus uses: two monotonic counters, one written by each end."""

    def post(self) -> None: ...
    def arrived(self) -> int: ...
    def acknowledge(self) -> None: ...
    def acknowledged(self) -> int: ...
    def rings(self, bell: Callable[[], None]) -> bool: ...


class Mailbox:
    """The queue of messages to the actors of one thread. That thread appends to `messages` itself; others `put`, which
    wakes it."""

    __slots__ = ("messages", "asleep", "_bell")

    def __init__(self) -> None:
        self.messages: deque[Message] = deque()
        self.asleep = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def put(self, message: Message) -> None:
        self.messages.append(message)
        if self.asleep:
            self.ring()

    def ring(self) -> None:
        self.asleep = False
        try:
            self._bell.release()
        except RuntimeError:  # two threads rang at once; one wake-up is enough
            pass

    def wait(self, timeout: float) -> None:
        """Sleep until another thread puts or rings, or the timeout. It may return early."""
        self.asleep = True
        if not self.messages:
            self._bell.acquire(timeout=timeout)
        self.asleep = False


class Outgoing:
    """The producer's end of a register that another rank reads: it stands in for the consumers."""

    __slots__ = ("register", "channel", "items", "freed", "_said", "posted", "_free")

    def __init__(self, register: Register, channel: Channel, items: int) -> None:
        self.register, self.channel = register, channel
        self.items = items  # per launch
        self.freed = 0
        self._said = self.posted = 0
        back = Message(FREE, register.producer, register.id, 0)
        self._free = [[back._replace(slot=s)] * len(register.consumers) for s in range(register.copies)]

    def readable(self) -> None:
        """Count one more message to a consumer; after the last one, post the copy."""
        self._said += 1
        if self._said == len(self.register.consumers):
            self._said = 0
            self.posted += 1
            self.channel.post()

    def poll(self, box: Mailbox) -> bool:
        return self._free_up_to(self.channel.acknowledged(), box)

    def forgive(self, launches: int, box: Mailbox) -> None:
        """After the last launch: free what was sent beyond it, which won't be read."""
        if self.freed >= launches * self.items:
            self._free_up_to(self.posted, box)

    def _free_up_to(self, count: int, box: Mailbox) -> bool:
        if count <= self.freed:
            return False
        for i in range(self.freed, count):
            for message in self._free[i % self.register.copies]:
                box.put(message)
        self.freed = count
        return True


class Incoming:
    """The consumers' end of a register that another rank writes: it stands in for the producer."""

    __slots__ = ("register", "channel", "_taken", "acknowledged", "_left", "_readable", "_lock")

    def __init__(self, register: Register, channel: Channel) -> None:
        self.register, self.channel = register, channel
        self._taken = self.acknowledged = 0
        self._left = [0] * register.copies
        self._readable = [
            [Message(READABLE, c, register.id, s) for c in register.consumers] for s in range(register.copies)
        ]
        self._lock = threading.Lock()  # the consumers may be on several threads

    def free(self, slot: int) -> None:
        """A consumer has freed a copy; channels acknowledge in order."""
        with self._lock:
            self._left[slot] -= 1
            while self.acknowledged < self._taken and not self._left[self.acknowledged % self.register.copies]:
                self.acknowledged += 1
                self.channel.acknowledge()

    def poll(self, boxes: Mapping[int, Mailbox]) -> bool:
        arrived = self.channel.arrived()
        if arrived == self._taken:
            return False
        while self._taken < arrived:
            slot = self._taken % self.register.copies
            with self._lock:
                self._left[slot] = len(self.register.consumers)
                self._taken += 1
            for message in self._readable[slot]:
                boxes[message.to].put(message)
        return True


class Bus:
    """Routes messages by actor id. `boxes` maps each actor of this rank to its thread's mailbox."""

    def __init__(self, plan: Plan, boxes: Mapping[int, Mailbox], channels: Mapping[int, Channel]) -> None:
        self.boxes = boxes
        self.outgoing: dict[int, Outgoing] = {}
        self.incoming: dict[int, Incoming] = {}
        for r in plan.registers:
            read_at = {rank_of(c) for c in r.consumers}
            if rank_of(r.producer) == plan.rank and read_at <= {plan.rank}:
                continue
            channel = channels.get(r.id)
            if channel is None:
                raise GraphError(f"register {r.name} crosses ranks and has no channel; give channels[{r.id}]")
            if rank_of(r.producer) == plan.rank:
                task = plan.task(r.producer)
                port = next(p for p in task.produces if p.register == r.id)
                self.outgoing[r.id] = Outgoing(r, channel, port.items(task.acts))
            else:
                self.incoming[r.id] = Incoming(r, channel)
        self.remote = bool(self.outgoing or self.incoming)
        self.silent = self.remote  # channels that must be polled

    def wake(self, box: Mailbox) -> None:
        """Let the channels wake the thread of this mailbox, if they can."""
        ends = [end.channel for end in (*self.outgoing.values(), *self.incoming.values())]
        self.silent = not all([channel.rings(box.ring) for channel in ends])

    def send(self, messages: Iterable[Message], here: Mailbox) -> None:
        """Send from the thread that owns the mailbox `here`."""
        boxes = self.boxes
        for message in messages:
            box = boxes.get(message.to)
            if box is here:
                here.messages.append(message)
            elif box is not None:
                box.put(message)
            elif message.kind == READABLE:
                self.outgoing[message.register].readable()
            elif message.kind == FREE:
                self.incoming[message.register].free(message.slot)
            # END isn't sent to other ranks: each knows the number of launches, and ends by itself

    def poll(self) -> bool:
        """Poll the channels; put their messages into the mailboxes. True if there were any."""
        found = False
        for o in self.outgoing.values():
            found |= o.poll(self.boxes[o.register.producer])
        for i in self.incoming.values():
            found |= i.poll(self.boxes)
        return found

    def count(self, register: int) -> int:
        """The number of posts, or acknowledgements, of this end of a channel."""
        return self.outgoing[register].posted if register in self.outgoing else self.incoming[register].acknowledged

    def end(self) -> None:
        """Nothing more will come from other ranks."""
        for i in self.incoming.values():
            for c in i.register.consumers:
                self.boxes[c].put(Message(END, c, i.register.id, 0))
