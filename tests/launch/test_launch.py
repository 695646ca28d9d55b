"""The launcher as a user calls it, and programs that are started in other ways."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.ports import free_port
from tests.launch.conftest import Here
from tests.worlds import Start, started
from weft.core.errors import ArgumentError
from weft.core.rank import current
from weft.launch import spawn, spawn_threads
from weft.launch.__main__ import main

PROGRAM = """
import sys, torch
from weft.core.rank import current
from weft.transport import transport_of

me, transport = current(), transport_of()
t = torch.tensor([1.0 + me.index])
transport.group(range(me.world_size)).all_reduce(t)
assert __name__ == "__main__" and sys.modules["__main__"]
where = f"{type(transport).__name__} rank {me.index} of {me.world_size}"
print(f"{where}: {t.item()} {sys.argv[1:]}\\n", end="", flush=True)
if "fail" in sys.argv and me.index == 1:
    raise ValueError("on purpose")
if "fail" in sys.argv or "hang" in sys.argv:
    transport.note("op relu, step 7")
    transport.recv(t, (me.index + 1) % me.world_size)
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def launch(*words: str) -> tuple[int, str]:
    """The code of what is started so, and what it said."""
    with started([sys.executable, "-m", *words]) as process:
        said = process.communicate(timeout=250)[0]
        return process.returncode, said


def test_processes_and_their_files(tmp_path: Path, launch_here: Here) -> None:
    program, log = tmp_path / "program.py", tmp_path / "log"
    program.write_text('import os, sys; print(os.environ["RANK"], sys.argv[1:])')
    words = ("--nproc_per_node", "2", "--redirect_stdout_and_stderr", "--logdir", str(log), str(program), "--a", "b")
    assert launch_here(*words) == (0, "", "")
    for i in range(2):
        assert (log / f"local_rank_{i}" / "stdout").read_text() == f"{i} ['--a', 'b']\n"


def test_threads_and_modules(program: str, launch_here: Here) -> None:
    sys.path.insert(0, str(Path(program).parent))
    code, out, err = launch_here("--threads", "--nproc_per_node", "3", "-m", "program", "x")
    assert code == 0, err
    assert sorted(out.splitlines()) == [f"[rank {i}] LocalTransport rank {i} of 3: 6.0 ['x']" for i in range(3)]


def test_a_failing_rank_ends_the_others(program: str, launch_here: Here) -> None:
    code, _, err = launch_here("--nproc_per_node", "2", program, "fail")
    assert code == 1
    assert "weft.launch: rank 1 raised ValueError: on purpose; every other rank was ended" in err


def test_a_failing_thread_ends_the_others(program: str, launch_here: Here) -> None:
    with pytest.raises(ValueError, match="on purpose") as caught:
        launch_here("--threads", "--nproc_per_node", "3", program, "fail")
    assert caught.value.__notes__ == ["raised on rank 1 of 3"]


def test_nothing_outlives_the_launcher(tmp_path: Path) -> None:
    """Not even where it has no chance to end anybody; tests/faults interrupts it."""
    program = tmp_path / "program.py"
    program.write_text('import time; print("is there", flush=True); time.sleep(1000)')
    with started([sys.executable, "-u", "-m", "weft.launch", "--nproc_per_node", "2", str(program)]) as process:
        assert process.stdout is not None
        assert sorted(process.stdout.readline() for _ in range(2)) == [f"[rank {i}] is there\n" for i in range(2)]
        process.kill()
        process.stdout.read()  # ends when the last process that can write to it has ended
        assert process.wait(60) == -signal.SIGKILL


def by_hand(program: str, port: str) -> None:
    """As if a shell had told this process these variables, and no others."""
    for name in [
        n for n in os.environ if n.startswith(("TORCHELASTIC", "LOCAL_WORLD", "GROUP_")) or n == "WEFT_SECRET"
    ]:
        del os.environ[name]
    os.environ["MASTER_PORT"] = port
    runpy.run_path(program, run_name="__main__")


def test_by_hand(program: str, tmp_path: Path, world: Start) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}  # the ranks know each other by a file there
    said = world("by_hand", 2, "auto", program, str(free_port()), env=cache).well()
    assert said == [f"ShmTransport rank {i} of 2: 3.0 []\n" for i in range(2)]
    assert (tmp_path / "cache" / "weft" / "secret").exists()


def test_by_torchrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over what suits, and over c10d."""
    monkeypatch.delenv("WEFT_SECRET", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "program.py"
    again = 'current().close()\nos.environ["WEFT_TRANSPORT"] = "c10d"\n'
    path.write_text(f"import os\n{PROGRAM}\n{again}{PROGRAM}")
    kept = ("--redirects", "3", "--log-dir", str(tmp_path / "log"))  # a file for each stream of each rank
    code, said = launch("torch.distributed.run", "--standalone", "--nproc_per_node", "2", *kept, str(path))
    assert code == 0, said
    for i in range(2):
        out, err = (next(tmp_path.glob(f"log/*/attempt_0/{i}/{name}.log")).read_text() for name in ("stdout", "stderr"))
        assert out.splitlines() == [f"{kind} rank {i} of 2: 3.0 []" for kind in ("ShmTransport", "C10dTransport")], out
        assert err.count("torchrun's store at ") == (i == 0), err  # which asks nobody for a secret


def test_spawn_threads_returns_in_order() -> None:
    assert spawn_threads(4, lambda k: current().index * k, 10) == [0, 10, 20, 30]


def test_mistakes(launch_here: Here) -> None:
    with pytest.raises(ArgumentError, match="one rank or more"):
        spawn_threads(0, print)
    with pytest.raises(ArgumentError, match="one rank or more"):
        spawn(0, "x.py")
    for given in ((print,), ("x.py", 8)):
        with pytest.raises(ArgumentError, match=r"take strings.*spawn_threads\(2, function"):
            spawn(2, *given)
    with pytest.raises(ArgumentError, match=r"there is no program 'missing\.py'"):
        launch_here("--threads", "missing.py")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--no_python", "/no/such/program"], "'/no/such/program' can't be run: No such file"),
        (["--redirect_stdout_and_stderr", "--logdir", "/dev/null", "x.py"], "--logdir '/dev/null' can't hold"),
    ],
)
def test_the_launchers_mistakes_are_named(words: list[str], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        main(words)


def test_a_command_tells_mistakes_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.py"
    own.write_text("import weft as flow\nflow.ones('x')")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["weft.launch", "--nproc_per_node", "2", "--tee", "5", "x.py"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("weft.launch.__main__", run_name="__main__")
    assert ended.value.code == 2 and "error: --tee is 0 for none, 1 for stdout" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["weft.launch", "--threads", str(own)])
    with pytest.raises(ArgumentError, match="ones"):  # the program's own
        runpy.run_module("weft.launch.__main__", run_name="__main__")


@pytest.mark.parametrize("given", ["2", 2.0, True, 0, -1, None])
def test_a_world_is_counted(given: Any) -> None:
    for start in (lambda: spawn_threads(given, print), lambda: spawn(given, "x.py")):
        with pytest.raises(ArgumentError, match="one rank or more; got"):
            start()


@pytest.mark.parametrize("given", ["x", float("nan"), float("inf"), 0, -1])
def test_a_deadline_is_a_time(given: Any) -> None:
    for start in (lambda: spawn_threads(1, print, deadline=given), lambda: spawn(1, "x.py", deadline=given)):
        with pytest.raises(ArgumentError, match="deadline is how many seconds a wait may take"):
            start()
