"""Reading what anybody may have written: files that may be no files, JSON that may be no JSON."""

from __future__ import annotations

import difflib
import json
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO, Final, NoReturn

# What Python raises of text that doesn't hold together; a parser makes one error of its own of them.
MALFORMED: Final = (
    ArithmeticError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
KINDS: Final = {
    stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link that leads in a circle",
}  # fmt: skip


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that isn't there: the one that was meant, if it is near."""
    near = difflib.get_close_matches(name, known, 1, 0.7)
    return f". Did you mean {near[0]!r}?" if near else ""


def other_than_file(mode: int) -> str:
    """What stands in the place of a regular file; empty if one does."""
    return "" if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "no file")


def opened(path: str | os.PathLike[str], error: type[Exception]) -> BinaryIO:
    """A regular file, to be read. Anything else is refused before a byte of it is read: a fifo would never end, and to
    open a device may do something."""

    def checked(mode: int) -> None:
        kind = other_than_file(mode)
        if kind:
            raise error(f"{os.fspath(path)} is {kind}, not a file; give the path of a file")

    checked(os.stat(path).st_mode)
    file = open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")  # noqa: SIM115
    try:
        checked(os.fstat(file.fileno()).st_mode)  # it may have been exchanged meanwhile
    except BaseException:
        file.close()
        raise
    return file


def parsed(text: str | bytes, refuse: Callable[[str], Exception], constants: bool = False) -> Any:
    """JSON by the letter: no key twice, nothing too deep, and no NaN or Infinity, unless these `constants` are meant.
    What is wrong with it goes to `refuse`, which makes the error."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            seen: set[str] = set()
            twice = next(k for k, _ in pairs if k in seen or seen.add(k))
            raise ValueError(f"the key {shortened(twice)} stands there twice")
        return made

    def constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=None if constants else constant)
    except json.JSONDecodeError as cause:
        raise refuse(f"it is no JSON: {cause}") from None
    except UnicodeDecodeError as cause:
        raise refuse(f"it is no text: {cause}") from None
    except RecursionError:
        raise refuse("it nests too deep") from None
    except ValueError as cause:  # from above, or for an int of thousands of digits
        raise refuse(str(cause)) from None


def shortened(value: Any, most: int = 80) -> str:
    """What is told of a value that may be huge."""
    try:
        text = repr(value)
    except RecursionError:
        return "something very deep"
    return text if len(text) <= most else f"{text[: most - 3]}..."
