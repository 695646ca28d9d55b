"""Shared memory segments between processes of one host.

They have no name in a file system: one process makes a segment, the others open its file descriptor as
`/proc/<pid>/fd/<number>`, and the kernel frees it with the last process that maps it, however that one ends. Flags in
it are 8-byte words, each with one writer.
"""

from __future__ import annotations

import mmap
import os
import platform
import re
import threading
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from weft.core.errors import RankError, SecretError
from weft.transport.peers import started, visible

WORD = 8
LINE = 64  # bytes of a cache line: words of different writers lie on different lines
PAGE = 4096


def page_bytes(world_size: int) -> int:
    """The size of the segment that a rank shows to all others: a page, and two words for each."""
    return PAGE + -(-2 * world_size * WORD // PAGE) * PAGE


def available() -> bool:
    return hasattr(os, "memfd_create") and hasattr(os, "pidfd_open") and visible()


class Segment:
    """A mapped shared memory segment. Processes of the same user open it by its `handle`."""

    def __init__(self, descriptor: int, size: int, keep: bool) -> None:
        self.size = size
        try:
            self.bytes = mmap.mmap(descriptor, size)
        except (OSError, ValueError) as error:
            raise RankError(f"{size} bytes of shared memory can't be mapped: {error}") from None
        finally:
            if not keep:
                os.close(descriptor)
        self._descriptor = descriptor if keep else None
        self.words = memoryview(self.bytes).cast("q")
        self.handle = handle_of(os.getpid(), started(os.getpid()), descriptor, size)

    @classmethod
    def make(cls, name: str, size: int) -> Segment:
        """A new segment, all zero. Its pages are allocated when first touched."""
        size = -(-size // PAGE) * PAGE
        try:
            descriptor = os.memfd_create(name[:200], os.MFD_CLOEXEC)
            os.ftruncate(descriptor, size)
        except OSError as error:
            raise RankError(
                f"no {size} bytes of shared memory for {name!r}: {error}. WEFT_TRANSPORT=c10d needs none"
            ) from None
        return cls(descriptor, size, keep=True)

    @classmethod
    def open(cls, handle: bytes) -> Segment:
        found = re.fullmatch(rb"(\d{1,9}):(\d{1,18}):(\d{1,9}):(\d{1,15})", handle)
        if found is None:
            raise RankError(f"{handle[:80]!r} is no handle of shared memory, which is process:began:descriptor:size")
        pid, since, number, size = map(int, found.groups())
        try:
            descriptor = os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise RankError(
                f"the memory that process {pid} shares can't be opened ({error}): it ended, or this process is in "
                "another container or belongs to another user. WEFT_TRANSPORT=c10d works between these"
            ) from None
        try:
            _is_of_user(pid, since, descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, size, keep=False)

    def tensor(self, offset: int, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A tensor over the bytes from `offset` on."""
        # Made outside inference mode, so that a buffer first used inside it can be used outside, too.
        with torch.inference_mode(False):
            count = prod(shape)
            if not count:
                return torch.empty(tuple(shape), dtype=dtype)
            return torch.frombuffer(self.bytes, dtype=dtype, count=count, offset=offset).view(tuple(shape))

    def write(self, offset: int, text: str, most: int) -> None:
        data = text.encode(errors="replace")[:most]
        self.bytes[offset : offset + len(data) + 1] = data + b"\0"

    def read(self, offset: int, most: int) -> str:
        """The text that `write` wrote there."""
        return self.bytes[offset : offset + most + 1].split(b"\0", 1)[0].decode(errors="replace")

    def forget(self) -> None:
        """Close the file descriptor: every process that needs this segment has mapped it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.forget()


def handle_of(pid: int, since: int, descriptor: int, size: int) -> bytes:
    return f"{pid}:{since}:{descriptor}:{size}".encode()


def _is_of_user(pid: int, since: int, descriptor: int, size: int) -> None:
    """Refuse memory of another user, or of another process than the expected one."""
    try:
        owner, began = os.stat(f"/proc/{pid}").st_uid, started(pid)
    except OSError:
        owner, began = None, None
    found = os.fstat(descriptor)
    if (owner, began, found.st_uid) != (os.geteuid(), since, os.geteuid()) or found.st_size < size:
        raise SecretError(
            f"process {pid}, of user {owner} and begun at {began}, offers {found.st_size} bytes of user "
            f"{found.st_uid}; {size} bytes of this user ({os.geteuid()}) were told, of a process begun at {since}. "
            "Ranks share memory with those of the same user only; WEFT_TRANSPORT=c10d shares none"
        )


_ordered = platform.machine() in ("x86_64", "AMD64")  # stores are seen in the order in which they are made
_lock = threading.Lock()


def publish(words: memoryview, index: int, value: int) -> None:
    """Write a flag, with release semantics: after everything that it announces."""
    if not _ordered:
        for _ in range(2):  # release, then acquire: nothing is reordered across the pair
            with _lock:
                pass
    words[index] = value
