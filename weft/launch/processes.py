"""Ranks as processes of this host, watched: when one fails, the others are ended and the failure is reported."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO

from weft.core.errors import ArgumentError, DeadlineError, RankError
from weft.transport.base import bounded
from weft.transport.hosts import world_of
from weft.transport.rendezvous import serve
from weft.transport.roll import first_failure, run_of, tell_end
from weft.transport.secret import VARIABLE as SECRET
from weft.transport.secret import Signed, fresh

GRACE = 5.0  # seconds for the others to detect a failure themselves, and again to obey SIGTERM
LOOK = 0.02  # seconds between polls of the processes

_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


@dataclass(frozen=True)
class Ended:
    """How a rank's process ended: negative codes are signals, as in subprocess."""

    rank: int
    code: int
    out: str
    err: str


class Processes:
    """The running processes of this host's ranks."""

    def __init__(
        self, command: Sequence[str], variables: Sequence[Mapping[str, str]],
        outputs: Sequence[Sequence[IO[bytes] | int | None]],
    ) -> None:  # fmt: skip
        self.started: list[tuple[int, subprocess.Popen[bytes]]] = []
        try:
            for own, (out, err) in zip(variables, outputs, strict=True):
                # A new session, so that a rank's children can be ended with it.
                process = subprocess.Popen(
                    command, env={**os.environ, **own}, stdout=out, stderr=err, start_new_session=True,
                    preexec_fn=partial(follow, os.getpid()),
                )  # fmt: skip
                self.started.append((int(own["RANK"]), process))
        except BaseException as error:
            self.end(0)
            if isinstance(error, OSError):
                raise ArgumentError(f"{command[0]!r} can't be run: {error.strerror}") from None
            raise

    def wait(
        self, deadline: float | None = None, enough: Callable[[], bool] | None = None,
        on_exit: Callable[[int, str], object] = lambda rank, how: None,
    ) -> list[tuple[int, int]]:  # fmt: skip
        """Wait for the processes: ranks and exit codes in order, up to the first failure, or until it is `enough`.

        `on_exit` is called with each rank, and how it failed, if it did.
        """
        running, ended = dict(self.started), []
        start = time.monotonic()
        while running:
            for rank, process in list(running.items()):
                code = process.poll()
                if code is not None:
                    ended.append((rank, code))
                    del running[rank]
                    on_exit(rank, said(rank, code).removeprefix(f"rank {rank} ") if code else "")
                    if code:
                        return ended
            if enough is not None and enough():
                return ended
            if deadline is not None and time.monotonic() - start > deadline:
                raise DeadlineError(f"ranks {sorted(running)} still ran after {deadline:g} s")
            time.sleep(LOOK)
        return ended

    def end(self, grace: float = GRACE) -> None:
        """End all processes and their children: wait, then SIGTERM, then SIGKILL."""
        for number, seconds in ((0, grace), (signal.SIGTERM, grace), (signal.SIGKILL, GRACE)):
            end = time.monotonic() + seconds
            if number:
                self.signal(number)
            while any(p.poll() is None for _, p in self.started) and time.monotonic() < end:
                time.sleep(LOOK)
        for _, process in self.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def signal(self, number: int) -> None:
        for _, process in self.started:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)


def follow(parent: int) -> None:
    """In the new process: ask the kernel to end it when its parent ends, even if that is killed."""
    if _prctl is not None:
        _prctl(1, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before
            os._exit(1)


def variables_of(
    local: int, per_node: int, node: int = 0, nodes: int = 1, *, host: str, port: int, secret: str | None = None,
    transport: str | None = None,
) -> dict[str, str]:  # fmt: skip
    """The environment variables of a rank's process, as torchrun sets them."""
    variables = {
        "RANK": str(node * per_node + local),
        "WORLD_SIZE": str(per_node * nodes),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(per_node),
        "GROUP_RANK": str(node),
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    if "OMP_NUM_THREADS" not in os.environ:
        variables["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // per_node))
    if secret:
        variables[SECRET] = secret
    if transport:
        variables["WEFT_TRANSPORT"] = transport
    return variables


def said(rank: int, code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"rank {rank} was killed by {signal.Signals(-code).name}"
    return f"rank {rank} failed with exit code {code}"


def blamed(run: Signed | None, rank: int, code: int) -> tuple[int, str]:
    """Which rank failed first, and how: a rank that failed because of another may exit before it."""
    failure = first_failure(run) if run is not None else None
    if failure is None or (failure[0] == rank and code < 0):
        return rank, said(rank, code)
    return failure


def spawn(
    n: int, target: str, *args: str, transport: str | None = None, env: Mapping[str, str] | None = None,
    deadline: float = 120.0, check: bool = True, watch: Callable[[Processes], None] | None = None,
) -> list[Ended]:  # fmt: skip
    """Run `target` as `n` processes of a new world, and return what they wrote.

    `target` is a script ("train.py"), or a function to call with `args`: "package.module:function" or
    "folder/file.py:function". A rank that fails raises RankError here with its last words, unless `check` is false.
    `watch` is called with the running processes.
    """
    world_of(n)
    bounded(deadline, "deadline")
    for each in (target, *args):
        if not isinstance(each, str):
            raise ArgumentError(
                f"spawn() starts processes, which find a function by its name and take strings: spawn({n}, "
                f'"package.module:function") or spawn({n}, "train.py:function", "8"); got {each!r:.60}. '
                f"spawn_threads({n}, function, ...) calls a function with any arguments, on threads"
            )
    command = [sys.executable]
    command += ["-m", "weft.launch.call", target, *args] if ":" in target else [target, *args]
    store, secret = serve("127.0.0.1", 0, deadline), fresh()
    run = run_of(store, secret)
    with contextlib.ExitStack() as files:
        outputs = [
            (files.enter_context(tempfile.TemporaryFile()), files.enter_context(tempfile.TemporaryFile()))
            for _ in range(n)
        ]
        variables = [
            variables_of(i, n, host="127.0.0.1", port=store.port, secret=secret, transport=transport) for i in range(n)
        ]
        processes = Processes(command, [{**t, **(env or {})} for t in variables], outputs)
        try:
            if watch is not None:
                watch(processes)
            ends = processes.wait(deadline, on_exit=partial(tell_end, run))
            first = next((e for e in ends if e[1]), None)
        except BaseException:
            processes.end(0)
            raise
        processes.end()
        ended = [
            Ended(rank, process.wait(), _read(out), _read(err))
            for (rank, process), (out, err) in zip(processes.started, outputs, strict=True)
        ]
    if first is not None and check:
        rank, why = blamed(run, *first)
        raise RankError(f"{why}, in {target}; its last words:\n{ended[rank].err[-3000:]}")
    return ended


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
