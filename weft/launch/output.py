"""The ranks' output: lines with the rank as a prefix on the launcher's stdout or stderr, in files, or both."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from weft.core.errors import ArgumentError
from weft.core.log import LABELLED
from weft.core.rank import entered

LAST = 2.0  # seconds for the rest of the output after the ranks have ended: their children may keep pipes open

STREAMS = ("stdout", "stderr")


def streams_of(words: str, option: str, ranks: int) -> list[frozenset[str]]:
    """The streams of an option, for each rank of this host. In torchrun's numbers, 0 is none, 1 stdout, 2 stderr and 3
    both: `--tee 3` for all ranks, `--tee 0:3,1:2` for some.

    >>> [sorted(streams) for streams in streams_of("0:3,2:1", "--tee", 3)]
    [['stderr', 'stdout'], [], ['stdout']]
    """
    try:
        if ":" in words:
            given = {int(rank): int(number) for rank, number in (part.split(":") for part in words.split(","))}
        else:
            given = dict.fromkeys(range(ranks), int(words))
    except ValueError:
        given = dict[int, int]()
    if not given or not all(0 <= rank < ranks and 0 <= number <= 3 for rank, number in given.items()):
        raise ArgumentError(
            f"{option} is 0 for none, 1 for stdout, 2 for stderr or 3 for both, or such numbers for some ranks of this "
            f"host, as in {option} 0:3,1:2; got {words!r} for {ranks}"
        )
    return [frozenset(name for i, name in enumerate(STREAMS) if given.get(rank, 0) >> i & 1) for rank in range(ranks)]


def shown_of(words: str | None, ranks: int) -> frozenset[int]:
    """The ranks of this host that `--local-ranks-filter 0,1` lets through to the terminal."""
    chosen = {str(rank) for rank in range(ranks)} if words is None else set(words.replace(" ", "").split(","))
    if not chosen <= set(map(str, range(ranks))):
        raise ArgumentError(f"--local-ranks-filter names ranks of this host, 0 to {ranks - 1}; got {words!r}")
    return frozenset(map(int, chosen))


class Output:
    """The destinations of the ranks' streams: files for those in `redirects`, files and terminal for those in `tee`; no
    terminal for ranks that aren't `shown`."""

    def __init__(
        self, folder: str, redirects: Sequence[frozenset[str]], tee: Sequence[frozenset[str]], shown: frozenset[int],
        labelled: bool, files: contextlib.ExitStack,
    ) -> None:  # fmt: skip
        self.folder, self.redirects, self.tee, self.shown = folder, redirects, tee, shown
        self.labelled, self.files = labelled, files
        self._lock, self._threads = threading.Lock(), list[threading.Thread]()

    def opened(self, local: int) -> list[IO[bytes] | int | None]:
        """A rank's stdout and stderr, as subprocess takes them."""
        found: list[IO[bytes] | int | None] = []
        for name in STREAMS:
            teed, shown = name in self.tee[local], local in self.shown
            if (teed or name in self.redirects[local]) and not (teed and shown):
                found.append(self._file(local, name))
            elif not shown:
                found.append(subprocess.DEVNULL)
            else:
                found.append(subprocess.PIPE if self.labelled or teed else None)
        return found

    def _file(self, local: int, name: str) -> IO[bytes]:
        """A rank's output file, as OneFlow's launcher names it: `folder/local_rank_i/stdout` or `stderr`."""
        place = Path(self.folder) / f"local_rank_{local}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            return self.files.enter_context((place / name).open("wb", buffering=0))
        except OSError as error:
            raise ArgumentError(f"--logdir {self.folder!r} can't hold what ranks write: {error}") from None

    def follow(self, started: Sequence[tuple[int, subprocess.Popen[bytes]]]) -> None:
        for local, (rank, process) in enumerate(started):
            for name, pipe in zip(STREAMS, (process.stdout, process.stderr), strict=True):
                if pipe is None:
                    continue
                file = self._file(local, name) if name in self.tee[local] else None
                label = f"[rank {rank}] ".encode() if self.labelled else b""
                thread = threading.Thread(
                    target=self._copy, args=(pipe, getattr(sys, name).buffer, label, file), daemon=True,
                    name=f"weft-{name}-{rank}",
                )  # fmt: skip
                self._threads.append(thread)
                thread.start()

    def _copy(self, pipe: IO[bytes], out: IO[bytes], label: bytes, file: IO[bytes] | None) -> None:
        for line in pipe:
            with self._lock, contextlib.suppress(OSError, ValueError):  # stdout is closed; ranks still write
                out.write(label + line if line.endswith(b"\n") or not label else label + line + b"\n")
                out.flush()
            if file is not None:
                file.write(line)

    def finish(self) -> None:
        for thread in self._threads:
            thread.join(LAST)


class Labelled:
    """A stream of a process whose ranks are threads: whole lines, each with the rank whose thread wrote it."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._lock, self._begun = stream, threading.Lock(), dict[int, str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        rank = entered()
        with self._lock:
            if rank is None:
                return self._stream.write(text)
            *lines, rest = (self._begun.pop(rank.index, "") + text).split("\n")
            self._begun[rank.index] = rest
            self._write(rank.index, lines)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def finish(self) -> None:
        with self._lock:
            for rank, rest in self._begun.items():
                self._write(rank, [rest] if rest else [])
            self._begun.clear()

    def _write(self, rank: int, lines: list[str]) -> None:
        if lines:
            self._stream.write("".join(f"[rank {rank}] {line}\n" for line in lines))
            self._stream.flush()


@contextlib.contextmanager
def labelled_threads() -> Iterator[None]:
    """Label what threads of ranks write to stdout and stderr."""
    before, known = (sys.stdout, sys.stderr), os.environ.get(LABELLED)
    sys.stdout, sys.stderr = made = Labelled(before[0]), Labelled(before[1])
    os.environ[LABELLED] = "1"
    try:
        yield
    finally:
        for stream in made:
            stream.finish()
        sys.stdout, sys.stderr = before
        if known is None:
            del os.environ[LABELLED]
