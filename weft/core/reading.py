"""Reading untrusted input: files that may not be files, JSON that may not be JSON."""

from __future__ import annotations

import difflib
import json
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, Final, NoReturn

# What Python raises on malformed text; parsers convert it to one error.
MALFORMED: Final = (ArithmeticError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError)
KINDS: Final = {
    stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link that leads in a circle",
}  # fmt: skip


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: a suggestion, if there is a close match."""
    near = difflib.get_close_matches(name, known, 1, 0.7)
    return f". Did you mean {near[0]!r}?" if near else ""


class Near:
    """In an AttributeError, stands for a module with more names than Python looks through to suggest one."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name, self.known = name, known

    def __dir__(self) -> list[str]:
        return difflib.get_close_matches(self.name, self.known)


def other_than_file(mode: int) -> str:
    """What is in the place of a regular file; empty if it is one."""
    return "" if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "no file")


def opened(path: str | os.PathLike[str], error: type[Exception]) -> BinaryIO:
    """A regular file, opened for reading. Anything else is refused unread: a fifo would never end, and opening a device
    may have effects."""

    def checked(mode: int) -> None:
        kind = other_than_file(mode)
        if kind:
            raise error(f"{os.fspath(path)} is {kind}, not a file; give the path of a file")

    checked(os.stat(path).st_mode)
    file = open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")  # noqa: SIM115
    try:
        checked(os.fstat(file.fileno()).st_mode)  # it may have been replaced meanwhile
    except BaseException:
        file.close()
        raise
    return file


def parsed(text: str | bytes, refuse: Callable[[str], Exception], constants: bool = False) -> Any:
    """Strict JSON: no duplicate keys, no deep nesting, and no NaN or Infinity, unless `constants`. `refuse` makes the
    error from a reason."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            twice = next(k for k, _ in pairs if k in seen or seen.add(k))
            raise ValueError(f"the key {shortened(twice)} occurs twice")
        return made

    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a JSON number")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=None if constants else constant)
    except json.JSONDecodeError as cause:
        raise refuse(f"it is not JSON: {cause}") from None
    except UnicodeDecodeError as cause:
        raise refuse(f"it is not text: {cause}") from None
    except RecursionError:
        raise refuse("it is nested too deeply") from None
    except ValueError as cause:  # raised above, or for an int of thousands of digits
        raise refuse(str(cause)) from None


def shortened(value: Any, most: int = 80) -> str:
    """A value that may be huge, as short text."""
    try:
        text = repr(value)
    except RecursionError:
        return "a deeply nested value"
    return text if len(text) <= most else f"{text[: most - 3]}..."
