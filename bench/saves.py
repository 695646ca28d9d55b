"""Kill saves, and flip bits of files: how many checkpoints are lost, how many flips are detected.

python -m bench.saves [n]
"""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import weft as flow
from bench.ports import free_port
from weft.core.errors import CheckpointError

AT_ONCE = 4
SIZES = (5, 300_000, 20_000)  # of the tensors; one is larger than a checksum's chunk


def flipped_saves(n: int) -> dict[str, int]:
    """Flip one bit of a checkpoint, n times, spread evenly over its header and over its data."""
    file = io.BytesIO()
    flow.save({"weights": [flow.arange(100 * k) for k in (1, 3, 9)], "step": 3, "name": "run"}, file)
    data = bytearray(file.getvalue())
    begin = 8 + int.from_bytes(data[:8], "little")
    noticed = 0
    for i in range(n):
        first, last = ((0, begin), (begin, len(data)))[i % 2]
        bit = 8 * first + 8 * (last - first) * i // n + i // 2 % 8
        data[bit // 8] ^= 1 << bit % 8
        try:
            flow.load(io.BytesIO(data))
        except CheckpointError:
            noticed += 1
        data[bit // 8] ^= 1 << bit % 8
    return {"flipped": n, "noticed": noticed}


def torn_saves(n: int, ranks: int = 1) -> dict[str, int]:
    """Kill n saves that overwrite a checkpoint, each in a new process; of several ranks, each is the victim in turn.

    Half of them kill themselves after some of the calls that Python makes in a save, the others are killed from outside
    after some of the time that a save takes, both evenly spread. Saves that `ended` before the kill don't count.
    `lost`: neither the old nor the new checkpoint can be loaded. `left`: an unfinished file stayed, which the next save
    should clear; `leftovers`: it didn't.
    """
    command = [sys.executable, "-m", "weft.launch.call", "bench.saves:torn", str(n), str(ranks)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parent.parent)
    return json.loads(done.stdout.splitlines()[-1])


def state(step: int, ranks: int = 1) -> dict[str, Any]:
    where: Any = {"placement": flow.placement("cpu", list(range(ranks))), "sbp": flow.sbp.split(0)} if ranks > 1 else {}
    return {"step": step, "weights": [flow.full((size,), float(step), **where) for size in SIZES]}


def found(path: Path) -> int:
    """The step of a saved state; -1 if the state isn't complete."""
    back = flow.load(path)
    whole = [tuple(w.shape) for w in back["weights"]] == [(size,) for size in SIZES]
    return back["step"] if whole and all((w.to_torch() == back["step"]).all() for w in back["weights"]) else -1


class Count:
    """A profile function: counts calls and returns, C's included, and kills the process at the `last`-th."""

    def __init__(self, last: int) -> None:
        self.count, self.last = 0, last

    def __call__(self, *_: Any) -> None:
        self.count += 1
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def save_once(step: int, path: Path, rank: int, ranks: int, port: int, last: int | None, say: int) -> None:
    """Save in this process, as one of `ranks`; write how many calls and seconds it took to the pipe `say`."""
    if ranks > 1:
        world = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": port}
        world["WEFT_DEADLINE"] = 30
        os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)  # rank 0 serves the store
        os.environ.update({name: str(value) for name, value in world.items()}, MASTER_ADDR="127.0.0.1")
    value = state(step, ranks)
    flow.save(value, io.BytesIO())  # warm up, and let the ranks meet, before the kill
    count = Count(last or 0)
    os.write(say, f"[{rank}]\n".encode())
    start = time.perf_counter()
    sys.setprofile(None if last is None else count)
    flow.save(value, path)
    sys.setprofile(None)
    os.write(say, f"{json.dumps([rank, count.count, time.perf_counter() - start])}\n".encode())


def forked(task: Callable[[], None]) -> int:
    """Run a task in a forked child, silently; it exits without cleaning up."""
    child = os.fork()
    if child:
        return child
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1), os.dup2(nowhere, 2)
    code = 1
    try:
        task()
        code = 0
    finally:
        os._exit(code)


def trial(step: int, path: Path, ranks: int, victim: int = 0, last: int | None = None, after: float | None = None):
    """Let ranks save, and kill the victim at its `last` call or `after` seconds; returns reports and exit codes."""
    hear, say = os.pipe()
    port = free_port() if ranks > 1 else 0
    children = [
        forked(lambda r=r: save_once(step, path, r, ranks, port, last if r == victim else None, say))
        for r in range(ranks)
    ]
    os.close(say)
    reported: dict[int, list[Any]] = {}
    codes = {}
    with os.fdopen(hear) as lines:
        for line in lines:
            rank, *rest = json.loads(line)
            if rest:
                reported[rank] = rest
            elif rank == victim and after is not None:
                time.sleep(after)
                os.kill(children[victim], signal.SIGKILL)
    for rank, child in enumerate(children):
        codes[rank] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return reported, codes


def torn(n: str, ranks: str) -> None:
    """Print the counts of `torn_saves`, made by a few processes at once, as survivors of a kill take a while to end."""
    torch.set_num_threads(1)  # a forked child has no OpenMP threads, and would wait for them
    # A kill loses nothing that was handed to the kernel, so a folder in memory shows the same as one on a disk.
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="torn-saves-", dir=memory if memory.is_dir() else None))
    try:
        whole = [
            [trial(0, folder / "whole", int(ranks), r, last)[0][r] for last in (0, None, None)]
            for r in range(int(ranks))
        ]
        moments = [(counted[0], min(a[1], b[1])) for counted, a, b in whole]
        hear, say = os.pipe()
        workers = []
        for worker in range(AT_ONCE):
            (folder / str(worker)).mkdir()
            share = range(worker, int(n), AT_ONCE)

            def work(share: range = share, path: Path = folder / str(worker) / "checkpoint") -> None:
                os.write(say, f"{json.dumps(killed(share, int(n), path, moments))}\n".encode())

            workers.append(forked(work))
        os.close(say)
        with os.fdopen(hear) as lines:
            reported = [json.loads(line) for line in lines]
        assert [os.waitpid(worker, 0)[1] for worker in workers] == [0] * AT_ONCE
        print(json.dumps({name: sum(counts[name] for counts in reported) for name in reported[0]}))
    finally:
        shutil.rmtree(folder)


def killed(share: range, n: int, path: Path, moments: list[tuple[int, float]]) -> dict[str, int]:
    """Kill saves at this share of n points; `moments` has the calls and seconds that a save takes, by rank."""
    counts = dict.fromkeys(("torn", "ended", "lost", "left", "leftovers"), 0)
    starter, number = os.getppid(), 0
    flow.save(state(0), path)
    for i in itertools.cycle(share):
        if counts["torn"] == len(share) or os.getppid() != starter:
            break
        number += 2
        turn = number // 2
        victim, (steps, seconds) = turn // 2 % len(moments), moments[turn // 2 % len(moments)]
        part = (i + 0.5) / n
        how: Any = {"after": seconds * part} if turn % 2 else {"last": 1 + int(steps * part)}
        codes = trial(number - 1, path, len(moments), victim, **how)[1]
        counts["torn" if codes[victim] == -signal.SIGKILL else "ended"] += 1
        try:
            counts["lost"] += found(path) not in (number - 2, number - 1)
        except (CheckpointError, OSError):
            counts["lost"] += 1
        counts["left"] += len(os.listdir(path.parent)) > 1
        flow.save(state(number), path)
        counts["leftovers"] += len(os.listdir(path.parent)) > 1
    return counts


if __name__ == "__main__":
    n = int((sys.argv[1:] or ["1000"])[0])
    for name, run in (
        ("flipped", lambda: flipped_saves(n)), ("torn", lambda: torn_saves(n)),
        ("torn, one of two ranks", lambda: torn_saves(n, 2)),
    ):  # fmt: skip
        start = time.perf_counter()
        print(f"{name}: {run()}, {time.perf_counter() - start:.1f} s", flush=True)
