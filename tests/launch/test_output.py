"""Lines say which rank wrote them; files keep them beside; torchrun's flags are known, and a script's are its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launch.conftest import Here
from weft.core.errors import ArgumentError
from weft.launch.__main__ import main

PROGRAM = """
import os, sys
print("words", *sys.argv[1:])
sys.stderr.write("half a line")
"""


Launch = Callable[..., tuple[list[str], list[str], int]]


@pytest.fixture
def launch(tmp_path: Path, launch_here: Here) -> Launch:
    """What a launch of the program writes, line by line, and its code."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)

    def run(*words: str) -> tuple[list[str], list[str], int]:
        code, out, err = launch_here(*(str(program) if word == "program.py" else word for word in words))
        return sorted(out.splitlines()), sorted(err.splitlines()), code

    return run


def test_lines_have_ranks_and_arguments_are_the_scripts(launch: Launch) -> None:
    torchrun = ["--standalone", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=7", "--nnodes=1:1"]
    out, err, code = launch(*torchrun, "program.py", "--nproc_per_node", "9", "--", "-t")
    assert out == [f"[rank {i}] words --nproc_per_node 9 -- -t" for i in range(2)] and code == 0
    assert err == [f"[rank {i}] half a line" for i in range(2)]


def test_threads_are_labelled_too(launch: Launch) -> None:
    out, err, code = launch("--threads", "--nproc_per_node", "2", "program.py", "x")
    assert out == ["[rank 0] words x", "[rank 1] words x"] and code == 0
    assert err == [f"[rank {i}] half a line" for i in range(2)]
    out, err, _ = launch("--threads", "--nproc_per_node", "2", "--no_label", "program.py")
    assert out and not any("[rank" in line for line in out + err)


def test_what_is_shown_is_kept_too(launch: Launch, tmp_path: Path) -> None:
    out, err, _ = launch("--nproc_per_node", "2", "--tee", "1", "--logdir", str(tmp_path / "kept"), "program.py")
    assert out == ["[rank 0] words", "[rank 1] words"] and len(err) == 2
    assert [(tmp_path / f"kept/local_rank_{i}/stdout").read_text() for i in range(2)] == ["words\n"] * 2
    assert not (tmp_path / "kept/local_rank_0/stderr").exists()


def test_each_rank_may_go_elsewhere(launch: Launch, tmp_path: Path) -> None:
    """As torchrun's: of ranks that aren't shown the files are kept, if they are asked for."""
    where = ("--nproc_per_node", "3", "--log-dir", str(tmp_path), "-r", "1:3", "--tee", "0:3,2:1")
    out, err, _ = launch(*where, "--local-ranks-filter", "0", "program.py")
    assert (out, err) == (["[rank 0] words"], ["[rank 0] half a line"])
    found = {f"{file.parent.name[-1]}:{file.name}": file.read_text() for file in tmp_path.glob("local_rank_*/*")}
    kept = dict.fromkeys(("0:stdout", "1:stdout", "2:stdout"), "words\n")
    assert found == kept | dict.fromkeys(("0:stderr", "1:stderr"), "half a line")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nproc_per_node", "many", "program.py"], "a number of ranks, cpu, gpu or auto; got 'many'"),
        (["--nproc_per_node", "-1", "program.py"], "a number of ranks"),
        (["--nnodes", "two", "program.py"], "a number of hosts; got 'two'"),
        (["--max-restarts", "2", "program.py"], "goes on from its last checkpoint"),
        (["--standalone", "--nnodes", "2", "program.py"], "--standalone is one host"),
        (["--nnodes", "1:4", "program.py"], "keeps the hosts it began with"),
        (["--tee", "0:3,1:1", "program.py"], "got '0:3,1:1' for 1"),
        (["-r", "0:", "program.py"], "--redirects is 0 for none"),
        (["--local-ranks-filter", "1", "program.py"], "names ranks of this host, 0 to 0; got '1'"),
    ],
)
def test_what_is_not_done_is_told(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises((ArgumentError, SystemExit)) as told:
        main(words)
    assert said in f"{told.value} {capsys.readouterr().err}"
