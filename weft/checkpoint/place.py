"""Atomic writing of files: to a temporary file beside the target, then renamed. The next save removes leftovers."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, BinaryIO, Final

from weft.core.errors import ArgumentError, CheckpointError
from weft.core.log import logger
from weft.core.reading import other_than_file

INSIDE: Final = "checkpoint.safetensors"  # the file's name in a folder, where one is given
UNFINISHED: Final = ".weft-unfinished-"  # prefix of temporary files
HABIT = SimpleNamespace(folders=False)  # whether new checkpoints are folders with the file in them: OneFlow's are


def named(path: Any) -> str:
    """A path as a string."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise ArgumentError(
            f"a checkpoint has a path, or something to read and write bytes; got {type(path).__name__}"
        ) from None
    if not text:
        raise ArgumentError("a checkpoint's path is empty; give the path of a file, or of a folder, such as '.'")
    if "\0" in text:
        raise ArgumentError(f"{text!r} is not a path: it holds a null character")
    return text


def begun(path: Any) -> Any:
    """The path of a checkpoint that is to be written; where new ones are folders, they are made, as are those above."""
    if HABIT.folders and not os.path.lexists(named(path)):
        os.makedirs(named(path), exist_ok=True)  # perhaps by another rank, meanwhile
    return path


def replace(path: Any, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` make the file, atomically: readers see the old one until the new one is complete and on the disk.
    A link stays, and its target is replaced; the new file keeps the mode of the old one."""
    start, (target, before) = time.perf_counter(), _target(path)
    folder = os.path.dirname(target)
    clear(folder)
    file, temporary = _temporary(folder, before)
    with naming(target), file:  # closed last: its lock shows that this save is still running
        try:
            write(file)
            file.flush()
            if before is not None:
                like(file.fileno(), before)
            os.fsync(file.fileno())
            size = os.fstat(file.fileno()).st_size
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        flush(folder)
    logger("checkpoint").info("%s written, %d bytes in %.3f s", target, size, time.perf_counter() - start)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the path in a system's error that names none: of a full disk, say."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = path
        raise


def flush(folder: str) -> None:
    """Bring the names in a folder to the disk, too."""
    directory = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _target(path: Any) -> tuple[str, os.stat_result | None]:
    """The file that a path refers to, links followed, and its current status."""
    target = named(path)
    if os.path.isdir(target):
        target = os.path.join(target, INSIDE)
    try:
        now = os.stat(target)
    except FileNotFoundError:
        target = os.path.realpath(target)
        folder = os.path.dirname(target)
        if not os.path.isdir(folder):
            why = f"no folder to save {target} to; os.makedirs makes it"
            raise FileNotFoundError(errno.ENOENT, why, folder) from None
        return target, None
    except OSError as cause:
        if cause.errno == errno.ELOOP:
            raise CheckpointError(f"can't save to {target}: the link leads in a circle") from None
        raise
    kind = other_than_file(now.st_mode)
    if kind:
        raise CheckpointError(f"can't save to {target}: {kind} is there, and stays; give the path of a file")
    return os.path.realpath(target), now


def _temporary(folder: str, before: os.stat_result | None) -> tuple[BinaryIO, str]:
    """A new temporary file in the folder, locked."""
    while True:
        path = os.path.join(folder, f"{UNFINISHED}{os.getpid()}-{secrets.token_hex(4)}")
        mode = 0o666 if before is None else 0o600  # a new file's is the umask's
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        except OSError as cause:
            assert cause.errno is not None
            raise OSError(cause.errno, f"no file can be made in this folder ({cause.strerror})", folder) from None
        file = open(number, "wb")  # noqa: SIM115
        if lock(file.fileno()) is not False and os.path.exists(path):
            return file, path
        file.close()  # another process removed it before it was locked


def clear(folder: str) -> None:
    """Remove temporary files of saves that died; running saves hold a lock."""
    try:
        found = [entry.path for entry in os.scandir(folder) if entry.name.startswith(UNFINISHED)]
    except PermissionError:
        return
    for path in found:
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if lock(handle):
                    os.unlink(path)
            finally:
                os.close(handle)


def lock(handle: int) -> bool | None:
    """Whether the lock was acquired; None if the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def like(handle: int, before: os.stat_result) -> None:
    """Give a file the owner, if permitted, and the mode of the one that it replaces."""
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))
