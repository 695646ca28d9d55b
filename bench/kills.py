"""Kill one rank of a run in some phase, and watch the survivors: how soon they end, and what they report.

Most runs are forked from a process that has imported everything; some are started as users start them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bench import victims
from bench.ports import free_port
from weft.launch.processes import variables_of
from weft.transport.rendezvous import serve
from weft.transport.roll import run_of, tell_end
from weft.transport.secret import Signed, known

ROOT = Path(__file__).parent.parent
PROGRAM = str(ROOT / "bench" / "victims.py")
TRANSPORTS = ("shm", "c10d")
DEADLINE = 15  # seconds: WEFT_DEADLINE of these runs
ALONE = 3  # the same where no rank can know that the victim is dead
HANG = 25.0  # seconds after which a survivor counts as hanging
STARTING = 60.0  # seconds for a run to reach its phase
MOST_DELAY = 0.05  # seconds at most between reaching the phase and the kill
AFTER = 2.0  # seconds until a dead run's leftovers must be gone
EARLY = ("before the store", "registered")  # the victim dies before all ranks have met
MAY_END_WELL = ("at exit",)  # survivors may end normally, with all their work done
UNNOTED = (*EARLY, "met", "first collective", "at exit")  # no op under way that survivors could name
NOTED = tuple(phase for phase in victims.PHASES if phase not in UNNOTED)


@dataclass(frozen=True)
class Kill:
    """One kill to make. `start` is one of STARTS; the victim dies `delay` seconds after it has reached the phase."""

    phase: str
    start: str
    transport: str
    victim: int
    delay: float

    @property
    def ranks(self) -> int:
        return 3 if self.phase == "registered" else 2


@dataclass
class Outcome:
    """The outcome of a kill. By surviving rank: the seconds until it ended (None: it hung), and its output."""

    kill: Kill
    seconds: dict[int, float | None] = field(default_factory=dict)
    output: dict[int, str] = field(default_factory=dict)
    launcher: str = ""
    left: list[str] = field(default_factory=list)
    failed: str = ""  # why the run didn't reach its phase

    @property
    def hangs(self) -> int:
        return sum(s is None for s in self.seconds.values())

    @property
    def slowest(self) -> float:
        return max((HANG if s is None else s for s in self.seconds.values()), default=0.0)

    def well(self, rank: int) -> bool:
        """Whether a rank ended normally, where it may."""
        return (
            self.kill.phase in MAY_END_WELL and "Error" not in self.output[rank] and "Failed" not in self.output[rank]
        )

    def silenced(self, rank: int) -> bool:
        """Whether its launcher ended it before it could report anything: torchrun does so within 0.1 s."""
        return "SIGTERM" in self.launcher and not re.search(r"(Error|Failed): ", self.output[rank])

    def names_rank(self, rank: int) -> bool:
        """Whether a survivor's error, or the launcher that ended it first, names the victim."""
        name = rf"\brank\s*:? {self.kill.victim}\b"
        if self.silenced(rank):
            return bool(re.search(name, self.launcher))
        return self.well(rank) or bool(re.search(rf"(Error|Failed): .*{name}", self.output[rank]))

    def names_work(self, rank: int) -> bool:
        """Whether a survivor's error names the op that the victim was in."""
        return self.kill.phase not in NOTED or bool(
            re.search(rf"(Error|Failed): .*\brank {self.kill.victim}\b.*, at \w", self.output[rank])
        )


# ---- forked runs -------------------------------------------------------------------------------------------------


class Nursery:
    """A process that forks ranks (tests/nursery.py), new or given. One run at a time."""

    def __init__(self, process: subprocess.Popen[str] | None = None) -> None:
        if process is not None:
            self._process = process
            return
        command = [sys.executable, str(ROOT / "tests" / "nursery.py")]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )

    def fork(self, target: str, args: Sequence[str], environments: Sequence[dict[str, str]], folder: Path) -> list[int]:
        assert self._process.stdin is not None and self._process.stdout is not None
        ranks = [{"env": env, "log": str(folder / f"start{i}")} for i, env in enumerate(environments)]
        self._process.stdin.write(json.dumps({"target": target, "args": args, "ranks": ranks}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def reap(self, n: int) -> None:
        assert self._process.stdout is not None
        for _ in range(n):
            self._process.stdout.readline()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclass
class Run:
    """A running world. `port` is that of its rendezvous."""

    port: int
    sessions: set[int]
    end: Callable[[], str]  # kills what is left of it, and returns the launcher's output
    store: Signed | None = None  # where a launcher records exits


def forked(kill: Kill, folder: Path, nursery: Nursery) -> Run:
    """Start ranks as a launcher does: another process serves the store."""
    store = serve("127.0.0.1", 0, STARTING)
    variables = [variables_of(i, kill.ranks, host="127.0.0.1", port=store.port) for i in range(kill.ranks)]
    return _fork(kill, folder, nursery, variables, store.port, run_of(store, known()))


def forked_by_hand(kill: Kill, folder: Path, nursery: Nursery) -> Run:
    """Start ranks by environment variables alone: rank 0 serves the store."""
    port = free_port()
    return _fork(kill, folder, nursery, [by_hand_variables(kill, i, port) for i in range(kill.ranks)], port)


def by_hand_variables(kill: Kill, rank: int, port: int) -> dict[str, str]:
    variables = variables_of(rank, kill.ranks, host="127.0.0.1", port=port)
    return {name: value for name, value in variables.items() if not name.startswith("TORCHELASTIC")}


def _fork(
    kill: Kill,
    folder: Path,
    nursery: Nursery,
    variables: Sequence[dict[str, str]],
    port: int,
    run: Signed | None = None,
) -> Run:
    environments = [{**one, **common(kill, folder)} for one in variables]
    pids = nursery.fork(f"{PROGRAM}:main", arguments(kill, folder), environments, folder)

    def end() -> str:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        nursery.reap(len(pids))
        return ""

    return Run(port, set(pids), end, run)


def arguments(kill: Kill, folder: Path) -> list[str]:
    return [kill.phase, str(kill.victim), str(folder)]


def common(kill: Kill, folder: Path) -> dict[str, str]:
    return {
        "WEFT_TRANSPORT": kill.transport,
        "WEFT_DEADLINE": str(ALONE if kill.phase == "before the store" else DEADLINE),
        "TMPDIR": str(folder),
        "OMP_NUM_THREADS": "1",
    }


# ---- runs in new processes ----------------------------------------------------------------------------------------


def launched(kill: Kill, folder: Path, _: Nursery) -> Run:
    words = ["-m", "weft.launch", "--nproc_per_node", str(kill.ranks), PROGRAM]
    return _started(kill, folder, [(words + arguments(kill, folder), {})])


def torchrun(kill: Kill, folder: Path, _: Nursery) -> Run:
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(kill.ranks), PROGRAM]
    return _started(kill, folder, [(words + arguments(kill, folder), {})])


def spawned(kill: Kill, folder: Path, _: Nursery) -> Run:
    words = [
        "-c",
        f"from weft.launch import spawn; spawn({kill.ranks}, {PROGRAM + ':main'!r}, *{arguments(kill, folder)})",
    ]
    return _started(kill, folder, [(words, {})])


def by_hand(kill: Kill, folder: Path, _: Nursery) -> Run:
    port = free_port()
    words = [PROGRAM, *arguments(kill, folder)]
    return _started(kill, folder, [(words, by_hand_variables(kill, i, port)) for i in range(kill.ranks)], port)


def _started(kill: Kill, folder: Path, programs: Sequence[tuple[list[str], dict[str, str]]], port: int = 0) -> Run:
    environment = {**os.environ, **common(kill, folder), "PYTHONPATH": str(ROOT)}
    with (folder / "launcher").open("wb") as out:
        processes = [
            subprocess.Popen(
                [sys.executable, *words], env={**environment, **own}, cwd=folder, stdout=out, stderr=out,
                start_new_session=True, preexec_fn=interruptible,
            )
            for words, own in programs
        ]  # fmt: skip

    def end() -> str:
        limit = time.monotonic() + HANG
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return (folder / "launcher").read_text(errors="replace")

    return Run(port, {p.pid for p in processes}, end)


def interruptible() -> None:
    """Restore SIGINT's default in a new process: a shell's background jobs ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


FORKED = {"forked": forked, "forked by hand": forked_by_hand}
REAL = {"weft.launch": launched, "torchrun": torchrun, "spawn": spawned, "by hand": by_hand}
STARTS: dict[str, Callable[[Kill, Path, Nursery], Run]] = {**FORKED, **REAL}
THREADS = "spawn_threads"  # the victim raises instead: a thread can't be killed


# ---- one kill ----------------------------------------------------------------------------------------------------


def tried(kill: Kill, nursery: Nursery) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="weft-kill-"))
    seen = Outcome(kill)
    try:
        if kill.start == THREADS:
            _raise(kill, folder, nursery, seen)
            return seen
        run = STARTS[kill.start](kill, folder, nursery)
        sessions = set(run.sessions)
        try:
            pids = _come(kill, folder)
            sessions |= set(pids.values())
            time.sleep(kill.delay)
            _watch(kill, folder, pids, seen, run.store)
        except TimeoutError as error:
            seen.failed = str(error)
        finally:
            for pid in sessions - run.sessions:
                if seen.failed or seen.hangs:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            seen.launcher = run.end()
        for rank in range(kill.ranks):
            log = folder / f"rank{rank}"
            if rank != kill.victim:
                seen.output[rank] = log.read_text(errors="replace") if log.exists() else ""
        seen.left = left_behind(folder, sessions, run.port if run.store is None else 0)
        return seen
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _raise(kill: Kill, folder: Path, nursery: Nursery, seen: Outcome) -> None:
    (pid,) = nursery.fork(f"{PROGRAM}:threads", arguments(kill, folder), [common(kill, folder)], folder)
    nursery.reap(1)
    if not (folder / "ended").exists():
        seen.failed = (folder / "start0").read_text(errors="replace")
        seen.seconds, seen.output = {1 - kill.victim: None}, {1 - kill.victim: seen.failed}
        return
    for rank, (seconds, said) in json.loads((folder / "ended").read_text()).items():
        seen.seconds[int(rank)], seen.output[int(rank)] = max(seconds, 0.0), said
    seen.left = left_behind(folder, {pid}, 0)


def _come(kill: Kill, folder: Path) -> dict[int, int]:
    """Wait until the victim has reached its phase; returns the pids of all ranks."""
    names = [folder / f"pid{rank}" for rank in range(kill.ranks)]
    limit = time.monotonic() + STARTING
    while not all(name.exists() for name in (*names, folder / "marked")):
        if time.monotonic() > limit:
            raise TimeoutError(f"{kill} never reached its phase")
        time.sleep(0.002)
    return {rank: int(name.read_text()) for rank, name in enumerate(names)}


def _watch(kill: Kill, folder: Path, pids: dict[int, int], seen: Outcome, store: Signed | None) -> None:
    poller, held = select.poll(), {}
    for rank, pid in pids.items():
        if rank == kill.victim:
            continue
        try:
            held[os.pidfd_open(pid)] = rank
        except ProcessLookupError:  # it has ended already
            seen.seconds[rank] = 0.0
    for descriptor in held:
        poller.register(descriptor, select.POLLIN)
    start = time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pids[kill.victim], signal.SIGKILL)
    if store is not None:
        tell_end(store, kill.victim, "was killed by SIGKILL")
    (folder / victims.LATE).touch()
    try:
        while len(seen.seconds) < kill.ranks - 1 and (left := start + HANG - time.monotonic()) > 0:
            for descriptor, _ in poller.poll(left * 1000):
                poller.unregister(descriptor)
                seen.seconds[held[descriptor]] = time.monotonic() - start
    finally:
        for descriptor, rank in held.items():
            seen.seconds.setdefault(rank, None)
            os.close(descriptor)


# Files that may stay: ours, torchrun's, and a save's unfinished ones, which the next save clears (see bench.saves).
OURS = re.compile(
    r"(rank|start|pid)\d|marked|late|ended|launcher|checkpoint(\.safetensors)?$|torchelastic_|\.weft-unfinished-"
)


def left_behind(folder: Path, sessions: set[int], port: int) -> list[str]:
    """The processes, ports and files that a run leaves behind, AFTER seconds after its end."""
    limit = time.monotonic() + AFTER
    while True:
        found = [f"process {pid}: {words}" for pid, words in in_sessions(sessions)]
        found += [f"port {port}"] * (port in listening())
        found += [f"file {p.name}" for p in folder.iterdir() if not OURS.match(p.name)]
        if not found or time.monotonic() > limit:
            break
        time.sleep(0.05)
    for pid, _ in in_sessions(sessions):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def in_sessions(sessions: set[int]) -> Iterator[tuple[int, str]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                stat = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                if int(stat[3]) in sessions and stat[0] != "Z":
                    yield int(entry), Path("/proc", entry, "cmdline").read_text().replace("\0", " ")[:80]


def listening() -> set[int]:
    """The ports on which processes of this host listen."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A"}


def shared() -> set[str]:
    """Named shared memory of ended processes: Weft's, and that of torch's loader workers."""
    return {
        name
        for name in os.listdir("/dev/shm")
        if "weft" in name or ((owner := re.match(r"torch_(\d+)_", name)) and not Path("/proc", owner[1]).exists())
    }


# ---- many --------------------------------------------------------------------------------------------------------


def chosen(n: int, real: int, seed: int = 0) -> list[Kill]:
    """`n` kills of forked runs and `real` of others, evenly over phases, starts and transports."""
    draw = random.Random(seed)
    kills = []
    for starts, count in ((FORKED, n), (REAL, real)):
        every = list(itertools.product(victims.PHASES, starts, TRANSPORTS, (0, 1)))
        if starts is FORKED:
            every += list(itertools.product(victims.PHASES, (THREADS,), ("local",), (0, 1)))
        draw.shuffle(every)
        kills += [Kill(*one, draw.uniform(0, MOST_DELAY)) for one in itertools.islice(itertools.cycle(every), count)]
    return kills


def kills(
    n: int, real: int, workers: int = 4, seed: int = 0, on_seen: Callable[[Outcome], None] = lambda seen: None
) -> list[Outcome]:
    """Make the kills, several at a time; `on_seen` is called with each outcome."""
    nurseries: queue.SimpleQueue[Nursery] = queue.SimpleQueue()
    made = [Nursery() for _ in range(workers)]
    for nursery in made:
        nurseries.put(nursery)
    heavy, before = threading.Semaphore(2), shared()

    def one(kill: Kill) -> Outcome:
        nursery = nurseries.get()
        try:
            with heavy if kill.start in REAL else contextlib.nullcontext():
                seen = tried(kill, nursery)
        finally:
            nurseries.put(nursery)
        on_seen(seen)
        return seen

    try:
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(one, chosen(n, real, seed)))
    finally:
        for nursery in made:
            nursery.close()
    if found:
        found[-1].left += sorted(f"memory {name}" for name in shared() - before)
    return found


@dataclass(frozen=True)
class Figures:
    """Counts over some outcomes."""

    kills: int
    hangs: int
    median: float
    slowest: float
    survivors: int
    named: int
    noted: int
    notable: int
    silenced: int
    left: int


def counted(seen: Sequence[Outcome]) -> Figures:
    seconds = [HANG if s is None else s for one in seen for s in one.seconds.values()]
    every = [(one, rank) for one in seen for rank in one.seconds]
    notable = [(one, rank) for one, rank in every if one.kill.phase in NOTED and not one.silenced(rank)]
    return Figures(
        len(seen),
        sum(one.hangs for one in seen),
        statistics.median(seconds) if seconds else 0.0,
        max(seconds, default=0.0),
        len(every),
        sum(one.names_rank(rank) for one, rank in every),
        sum(one.names_work(rank) for one, rank in notable),
        len(notable),
        sum(one.silenced(rank) for one, rank in every),
        sum(len(one.left) for one in seen),
    )
