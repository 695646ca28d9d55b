"""The launchers of several hosts, which exchange heartbeats and failures through the run's store.

The launcher of host 0 serves the store. It exits last, as ranks of other hosts may still run when its own have ended.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable

from weft.core.errors import ArgumentError, SecretError
from weft.transport.rendezvous import reach
from weft.transport.roll import Lost, first_failure, run_of, tell_end, tell_failure
from weft.transport.secret import Signed, known

BEAT = 0.5  # seconds
SILENCE = 20.0  # seconds without a heartbeat after which a launcher counts as dead
ANSWER = 3.0  # seconds for the store to answer before a launcher goes on without it
ENDED = b"ended"


class Hosts:
    """One launcher's view of the others. `run` is given where this launcher serves its store.

    failure    the run's first failure on any host, once it is known here

    A thread accesses the store: if its host becomes unreachable, calls may block for minutes.
    """

    def __init__(self, node: int, nodes: int, ranks: int, host: str, port: int, run: Signed | None) -> None:
        self.node, self.nodes, self.first = node, nodes, node * ranks
        self.failure: str | None = None
        self._answered = time.monotonic()
        self._expanded: dict[int, tuple[bytes, float]] = {}
        self.run = run or run_of(reach(host, port, 300.0, f"host {node}", "the launcher with --node_rank 0"), known())
        self._agree(f"--nnodes {nodes} --nproc_per_node {ranks}")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-hosts", daemon=True)
        self._thread.start()

    def _key(self, node: int, what: str) -> str:
        return f"host/{node}/{what}"

    def _agree(self, mine: str) -> None:
        if self.run.add(self._key(self.node, "launchers"), 1) > 1:
            raise ArgumentError(f"another launcher has --node_rank {self.node} in this run; each host has its own")
        if self.node == 0:
            self.run.set(self._key(0, "words"), mine)
            return
        try:
            first = self.run.get(self._key(0, "words")).decode()
        except SecretError:
            # signed with the other one
            self.tell(self.first, f"was not started: host {self.node} knows another secret")
            raise
        if first != mine:
            self.tell(self.first, f"was not started: host {self.node} was given {mine}, and host 0 {first}")
            raise ArgumentError(f"host 0 was started with {first}, and this one with {mine}; all are started alike")

    def _run(self) -> None:
        """Send heartbeats, and check whether the run has failed."""
        count = 0
        try:
            while not self._ended.is_set():
                count += 1
                self.run.set(self._key(self.node, "beat"), str(count))
                self._hear()
                self._answered = time.monotonic()
                self._ended.wait(BEAT)
        except Lost:
            self.failure = self.failure or "the launcher of host 0, which serves the store, has ended"

    def _hear(self) -> None:
        try:
            failure = first_failure(self.run)
        except SecretError as error:
            self.failure = self.failure or str(error)
        else:
            self.failure = self.failure if failure is None else failure[1]

    def look(self) -> bool:
        """Whether the run has failed, here or elsewhere."""
        if time.monotonic() - self._answered > SILENCE:
            self.failure = self.failure or f"host 0, which serves the store, has not answered for {SILENCE:g} s"
        return self.failure is not None

    def tell(self, rank: int, why: str) -> None:
        """Report a rank's failure to the others, unless one failed before."""
        if self.failure is None:
            self.failure = f"rank {rank} {why}"
            self._ask(lambda: tell_failure(self.run, rank, why))
            self._ask(self._hear)

    def ended(self, rank: int, how: str) -> None:
        """Record that the process of a rank of this host has exited, and `how` it failed, if it did."""
        self._ask(lambda: tell_end(self.run, rank, how))

    def _ask(self, action: Callable[[], object]) -> None:
        """Access the store, with a timeout."""

        def run() -> None:
            with contextlib.suppress(*Lost, SecretError):
                action()

        thread = threading.Thread(target=run, name="weft-hosts", daemon=True)
        thread.start()
        thread.join(ANSWER)

    def end(self, patience: float) -> None:
        """After the ranks of this host have ended: host 0 stays while others run; after a failure, for `patience` s."""
        self._ended.set()
        self._thread.join(ANSWER)
        self._ask(lambda: self.run.set(self._key(self.node, "beat"), ENDED.decode()))
        end = math.inf
        while self.node == 0 and time.monotonic() < end:
            running = self._running()  # before the check for failures, so that those of the last to end are seen
            self._hear()
            if not running:
                break
            if self.failure is not None:
                end = min(end, time.monotonic() + patience)
            time.sleep(BEAT / 10)

    def _running(self) -> bool:
        """Whether another launcher's ranks still run, by its own report."""
        now, running = time.monotonic(), False
        for node in range(1, self.nodes):
            key = self._key(node, "beat")
            try:
                beat = self.run.get(key) if self.run.check([key]) else b""
            except SecretError:  # not written by that launcher
                beat = b""
            last, since = self._expanded.get(node, (None, now))
            self._expanded[node] = beat, since if beat == last else now
            running = running or (beat != ENDED and now - self._expanded[node][1] < SILENCE)
        return running
