"""The one actor: it acts when all it reads is readable and all it writes is free. Pure: no thread, no clock, no I/O.

    state      message or event           next                 says
    ---------  -------------------------  -------------------  ------------------------------------------------
    waiting    readable, free, launch     waiting              nothing; `blocked` counts what is still missing
    waiting    begin(), if blocked is 0   acting               nothing; what it reads and writes is its own now
    acting     readable, free, launch     acting               nothing
    acting     finish()                   waiting              readable for each register it has written in full,
                                                               free for each it has read to the end of the period
    waiting    end, and that is missing   draining             end to its consumers; free for all it still held
    acting     end                        acting               nothing; finish() looks whether a next act can come
    draining   readable                   draining             free: what comes too late goes back unread
    draining   free, end                  draining or done     done: every input has ended, every copy is back

Both drivers use it in the same way, one at once, the other with its clock in between:

    send(actor.on_message(message))
    while actor.blocked == 0:
        turn = actor.begin()
        ...
        send(actor.finish())
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import lcm
from typing import Final

from weft.plan.plan import Port, Register, Task
from weft.runtime.message import END, FOREVER, FREE, LAUNCH, NONE, READABLE, Message

WAITING: Final = "waiting"
ACTING: Final = "acting"
DRAINING: Final = "draining"
DONE: Final = "done"
FORESEEN: Final = 1024  # turns that are computed before their acts, at most
_NEVER: Final = 1 << 40  # added to `blocked` where no message may bring it to zero


class Turn:
    """What one act works on: for each port, in the task's order, the copy's index, and the number of the act in the
    port's period.

    Turns are cached and reused by their actor; keep their values, not the turn.
    """

    __slots__ = ("act", "consumed", "produced", "reading", "writing", "takes", "claims", "messages", "sends")

    def __init__(self, consumed: tuple[int, ...], reading: tuple[int, ...], produced: tuple[int, ...],
                 writing: tuple[int, ...]) -> None:  # fmt: skip
        self.act = 0
        self.consumed, self.reading = consumed, reading
        self.produced, self.writing = produced, writing
        self.takes: tuple[Input, ...] = ()  # inputs of which it needs one more readable copy
        self.claims: tuple[tuple[Output, int], ...] = ()  # outputs, and the copies that must be free
        self.sends: tuple[tuple[Output, int], ...] = ()  # outputs, and the copies that it makes readable
        self.messages: tuple[Message, ...] = ()  # messages to send when finished

    def __repr__(self) -> str:
        return f"<turn {self.act}, reads {self.consumed} at {self.reading}, writes {self.produced} at {self.writing}>"


class Input:
    """A consumed port: the number of copies that are readable and not yet taken."""

    __slots__ = ("port", "register", "readable", "unread", "ended", "slots", "acknowledge")

    def __init__(self, port: Port, register: Register) -> None:
        self.port, self.register = port, register
        self.readable, self.ended = register.full, False
        self.unread = 0  # copies that were sent back while draining
        self.slots = register.copies
        self.acknowledge = tuple(Message(FREE, register.producer, register.id, s) for s in range(register.copies))


class Output:
    """A produced port: for each copy, the number of consumers that still use it."""

    __slots__ = ("port", "register", "reading", "out", "slots", "announce")

    def __init__(self, port: Port, register: Register) -> None:
        self.port, self.register = port, register
        self.slots = register.copies
        self.reading = [len(register.consumers) * (s < register.full) for s in range(register.copies)]
        self.out = sum(self.reading)
        self.announce = tuple(
            tuple(Message(READABLE, c, register.id, s) for c in register.consumers) for s in range(register.copies)
        )


class Actor:
    """One task at run time. `blocked` is 0 exactly when `begin` may be called."""

    __slots__ = (
        "id", "task", "acts", "tokens", "blocked", "turn", "state", "ended",
        "_inputs", "_outputs", "_in", "_out", "_turns", "_cycle",
    )  # fmt: skip

    def __init__(self, task: Task, registers: Mapping[int, Register]) -> None:
        self.id, self.task = task.id, task
        self.acts = self.tokens = 0
        self.ended = 0
        self.state = WAITING
        self._inputs = tuple(Input(p, registers[p.register]) for p in task.consumes)
        self._outputs = tuple(Output(p, registers[p.register]) for p in task.produces)
        self._in = {p.register.id: p for p in self._inputs}
        self._out = {p.register.id: p for p in self._outputs}
        self._turns: dict[int, Turn] = {}
        ports = (*self._inputs, *self._outputs)
        self._cycle = lcm(1, *((task.acts if p.port.at else p.port.period) * p.slots for p in ports))
        self.turn = self._turn(0)
        self.blocked = self._missing()

    def on_message(self, message: Message) -> Sequence[Message]:
        """Handle a message. Returns messages to send, nearly always none."""
        kind, _, register, slot = message
        if kind == READABLE:
            port = self._in[register]
            port.readable += 1
            if port.readable == 1 and port in self.turn.takes:
                self.blocked -= 1
            return self._send_back(port) if self.state is DRAINING else ()
        if kind == FREE:
            output = self._out[register]
            output.out -= 1
            left = output.reading[slot] - 1
            assert left >= 0, f"{self.task.name}: copy {slot} of {output.register.name} was let go of too often"
            output.reading[slot] = left
            if left == 0:
                if (output, slot) in self.turn.claims:
                    self.blocked -= 1
                if self.state is DRAINING:
                    self._settle()
            return ()
        if kind == LAUNCH:
            if self.tokens == 0:
                self.blocked -= 1
            self.tokens += slot
            return ()
        assert kind == END
        return self._on_end(register)

    def begin(self) -> Turn:
        """Begin the next act: take its copies."""
        assert self.blocked == 0, f"{self.task.name} can't act: it is {self.state} and lacks {self.blocked}"
        turn = self.turn
        for port in turn.takes:
            port.readable -= 1
        self.state = ACTING
        self.blocked = _NEVER
        turn.act = self.acts
        return turn

    def finish(self) -> Sequence[Message]:
        """End the act: returns the messages to consumers and producers."""
        assert self.state is ACTING
        turn = self.turn
        for output, slot in turn.sends:
            n = output.reading[slot] = len(output.announce[slot])
            output.out += n
        if not self._inputs:
            self.tokens -= 1
        self.acts = acts = self.acts + 1
        self.state = WAITING
        key = acts % self._cycle
        self.turn = following = self._turns.get(key) or self._turn(key)
        blocked = 0 if self._inputs or self.tokens else 1
        for port in following.takes:
            if not port.readable:
                blocked += 1
        for output, slot in following.claims:
            if output.reading[slot]:
                blocked += 1
        self.blocked = blocked
        return (*turn.messages, *self._drain()) if self.ended and self._exhausted() else turn.messages

    def _turn(self, key: int) -> Turn:
        """The turn of act number `key`; turns repeat every `_cycle` acts, so each is computed once."""
        ins, outs, acts = self._inputs, self._outputs, self.task.acts
        consumed = tuple(p.port.item(key, acts) % p.slots for p in ins)
        produced = tuple((p.port.item(key, acts) + p.register.full) % p.slots for p in outs)
        turn = Turn(consumed, tuple(key % p.port.period for p in ins), produced,
                    tuple(key % p.port.period for p in outs))  # fmt: skip
        turn.takes = tuple(p for p in ins if p.port.begins(key, acts))
        turn.claims = tuple((p, s) for p, s in zip(outs, produced, strict=True) if p.port.begins(key, acts))
        turn.sends = tuple((p, s) for p, s in zip(outs, produced, strict=True) if p.port.ends(key, acts))
        said = [m for p, s in turn.sends for m in p.announce[s]]
        said += [p.acknowledge[s] for p, s in zip(ins, consumed, strict=True) if p.port.ends(key, acts)]
        turn.messages = tuple(said)
        self._turns[key] = turn
        return turn

    def foresee(self) -> Iterator[None]:
        """Compute the turns to come, one at a step: for those who wait anyway."""
        for act in range(min(self._cycle, FORESEEN)):
            if act not in self._turns:
                self._turn(act)
                yield

    def _missing(self) -> int:
        """The number of unmet conditions of the next act."""
        if self.state is not WAITING:
            return _NEVER
        return (
            sum(not p.readable for p in self.turn.takes)
            + sum(o.reading[s] != 0 for o, s in self.turn.claims)
            + (not self._inputs and not self.tokens)
        )

    # --- the end ---

    def _on_end(self, register: int) -> Sequence[Message]:
        self.ended += 1
        if register == NONE:
            assert not self._inputs
            if self.tokens >= FOREVER // 2:  # it ran ahead; the rest isn't needed
                self.tokens = int(self.state is ACTING)
        else:
            self._in[register].ended = True
        if self.state is WAITING and self._exhausted():
            return self._drain()
        if self.state is DRAINING:
            self._settle()
        return ()

    def _exhausted(self) -> bool:
        """Whether no further act is possible: the next one needs an input that has ended."""
        if not self._inputs:
            return self.ended > 0 and self.tokens == 0
        return any(p.ended and not p.readable for p in self.turn.takes)

    def _drain(self) -> Sequence[Message]:
        self.state, self.blocked = DRAINING, _NEVER
        said = [Message(END, c, o.register.id, 0) for o in self._outputs for c in o.register.consumers]
        for p in self._inputs:
            if self.acts % p.port.period:  # held since an act of a period that never completes
                said.append(p.acknowledge[self.acts // p.port.period % p.slots])
            said += self._send_back(p)
        self._settle()
        return said

    def _send_back(self, port: Input) -> Sequence[Message]:
        """Acknowledge, unread, what is readable."""
        first = port.port.item(self.acts + port.port.period - 1, self.task.acts) + port.unread
        said = [port.acknowledge[(first + i) % port.slots] for i in range(port.readable)]
        port.unread += port.readable
        port.readable = 0
        return said

    def _settle(self) -> None:
        if all(p.ended for p in self._inputs) and not any(o.out for o in self._outputs):
            self.state = DONE

    # --- for observers ---

    def waits_for(self) -> list[tuple[Register, str]]:
        """The registers that the next act waits for: not readable ("data"), or without a free copy ("copy")."""
        if self.state is not WAITING:
            return []
        lacks = [(p.register, "data") for p in self.turn.takes if not p.readable]
        return lacks + [(o.register, "copy") for o, s in self.turn.claims if o.reading[s]]

    def snapshot(self) -> tuple[object, ...]:
        """The state: two actors of a task with equal snapshots behave alike from then on."""
        return (
            self.acts % self._cycle, self.tokens, self.ended, self.state,
            tuple((p.readable, p.unread % p.slots, p.ended) for p in self._inputs),
            tuple(tuple(o.reading) for o in self._outputs),
        )  # fmt: skip

    def assume(self, other: Actor) -> None:
        """Copy the state of another actor of the same task; a model checker backtracks by it."""
        self.acts, self.tokens, self.ended, self.state = other.acts, other.tokens, other.ended, other.state
        for mine, its in zip(self._inputs, other._inputs, strict=True):
            mine.readable, mine.unread, mine.ended = its.readable, its.unread, its.ended
        for out, its in zip(self._outputs, other._outputs, strict=True):
            out.reading, out.out = list(its.reading), its.out
        key = self.acts % self._cycle
        self.turn = self._turns.get(key) or self._turn(key)
        self.turn.act = self.acts
        self.blocked = other.blocked

    def validate(self) -> None:
        """Assert the invariants that hold between messages."""
        me = f"{self.task.name} {self.snapshot()}"
        assert self.tokens >= 0 and self.acts >= 0, me
        for p in self._inputs:
            assert 0 <= p.readable <= p.slots, f"{me}: {p.register.name} has more readable copies than copies"
        for o in self._outputs:
            assert o.out == sum(o.reading), f"{me}: {o.register.name} miscounts its readers"
            assert all(0 <= n <= len(o.register.consumers) for n in o.reading), f"{me}: {o.register.name} {o.reading}"
        if self.state is WAITING:
            assert self.blocked == self._missing(), f"{me}: blocked is {self.blocked}, should be {self._missing()}"
            assert not (self.ended and self._exhausted()), f"{me}: should be draining"
        elif self.state is ACTING:
            for o, s in self.turn.claims:
                assert o.reading[s] == 0, f"{me}: writes copy {s} of {o.register.name} while it is read"
        else:
            assert self.blocked >= _NEVER // 2 and not any(p.readable for p in self._inputs), me
            if self.state is DONE:
                assert all(p.ended for p in self._inputs) and not any(o.out for o in self._outputs), me
