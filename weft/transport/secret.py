"""Authentication: values in the run's store are signed (HMAC) with the run's secret.

c10d's store has no authentication. So every value in it carries a signature, and one without is an error and never
used. The launcher makes a secret for each run. Other ranks use WEFT_SECRET or, without it, a file that only their user
can read, for all runs of the user on hosts that share it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import cast

import torch.distributed as dist

from weft.core.errors import SecretError

VARIABLE = "WEFT_SECRET"
SHORTEST = 16  # characters of a secret: shorter ones could be found from a signature by brute force
PROOF = 32  # bytes of the signature before a value
HOW = (
    f"A launcher gives its ranks one; ranks that are started otherwise on several hosts, or as several users, need the "
    f"same value of {VARIABLE}. This makes one: python -c 'import secrets; print(secrets.token_hex(32))'"
)


def fresh() -> str:
    return secrets.token_hex(32)


def known() -> str:
    """The secret of the run that this process belongs to."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return _of_user()
    if len(given) < SHORTEST:
        raise SecretError(f"{VARIABLE} has {len(given)} characters, too few to be a secret. {HOW}")
    return given


def _of_user() -> str:
    """The user's secret, from a file in the cache folder, or in the folder for temporary files without a home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    home = Path("~").expanduser()
    cache = given if given.is_absolute() else home / ".cache"
    failed: OSError | None = None
    for folder in (cache / "weft", Path(tempfile.gettempdir()) / f"weft-{os.geteuid()}"):
        try:
            if folder.is_relative_to(home) and not home.is_dir():
                raise FileNotFoundError(f"there is no home {home}")  # and none is made
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _only_mine(folder)
            return _kept(folder / "secret")
        except OSError as error:
            failed = error
    raise SecretError(f"no file can be kept for the secret of runs: {failed}. {HOW}")


def _kept(file: Path) -> str:
    if not file.exists():
        number, name = tempfile.mkstemp(dir=file.parent)  # readable by its owner alone
        try:
            with open(number, "w") as new:
                new.write(fresh())
            with contextlib.suppress(FileExistsError):  # another rank came first
                os.link(name, file)
        finally:
            os.unlink(name)
    _only_mine(file, private=True)
    found = file.read_text().strip()
    if len(found) < SHORTEST:
        raise SecretError(f"{file} is too short to be a secret: delete it, and the next run writes a new one")
    return found


def _only_mine(path: Path, private: bool = False) -> None:
    """Check that nobody else can write the path; nor read it, if it is `private`."""
    found = path.lstat()
    others = 0o077 if private else 0o022
    if found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode) or found.st_mode & others:
        raise SecretError(
            f"{path} belongs to user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):o}; what ranks believe must "
            f"be this user's ({os.geteuid()}) alone: chmod go-rwx {path}, or set {VARIABLE}"
        )


class Signed(dist.Store):
    """A part of a store in which each value is signed with the secret.

    Counters, which `add` makes, aren't signed: they are only hints.
    """

    def __init__(self, inner: dist.Store, secret: str, prefix: str = "") -> None:
        super().__init__()
        self._inner, self._secret, self._prefix = inner, secret, prefix
        self._key = hashlib.sha256(secret.encode()).digest()

    def under(self, prefix: str) -> Signed:
        return Signed(self._inner, self._secret, f"{self._prefix}{prefix}/")

    def over(self, connection: dist.Store) -> Signed:
        """The same part over another connection to the store, for another thread."""
        return Signed(connection, self._secret, self._prefix)

    def plain(self) -> dist.Store:
        """The same part of the store, without signatures."""
        return dist.PrefixStore(self._prefix.removesuffix("/"), self._inner)

    def _proven(self, name: str, value: bytes) -> bytes:
        """The value with its signature, which is valid for this key only."""
        return hmac.digest(self._key, f"{len(name)}:{name}".encode() + value, "sha256") + value

    def _believed(self, name: str, found: bytes) -> bytes:
        value = found[PROOF:]
        if not hmac.compare_digest(self._proven(name, value), found):
            raise SecretError(
                f"{name!r} in the run's store was not written by one who knows this run's secret: some rank was "
                f"started with another {VARIABLE} or as another user, or somebody else writes there. {HOW}"
            )
        return value

    def set(self, key: str, value: bytes | str) -> None:
        name = self._prefix + key
        data = value.encode() if isinstance(value, str) else bytes(value)
        self._inner.set(name, cast(str, self._proven(name, data)))

    def get(self, key: str) -> bytes:
        name = self._prefix + key
        return self._believed(name, bytes(self._inner.get(name)))

    def first(self, key: str, value: str) -> bytes:
        """Set a key unless it is set already; returns its value."""
        name = self._prefix + key
        proven = self._proven(name, value.encode())
        return self._believed(name, bytes(self._inner.compare_set(name, "", cast(str, proven))))

    def add(self, key: str, value: int) -> int:
        return self._inner.add(self._prefix + key, value)

    def check(self, keys: Sequence[str]) -> bool:
        return self._inner.check([self._prefix + key for key in keys])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = [self._prefix + key for key in keys]
        if timeout is None:
            self._inner.wait(names)
        else:
            self._inner.wait(names, timeout)

    def set_timeout(self, timeout: timedelta) -> None:
        self._inner.set_timeout(timeout)
