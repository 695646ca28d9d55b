"""Whom ranks believe: the secret of a run, where it is kept, and whose memory is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from weft.core.errors import RankError, SecretError
from weft.transport import secret
from weft.transport.memory import Segment, available
from weft.transport.peers import started


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(secret.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(secret.tempfile, "tempdir", str(tmp_path))
    return tmp_path / "cache" / "weft"


def test_a_users_secret_is_made_once_and_for_the_user_alone(cache: Path) -> None:
    first = secret.known()
    assert first == secret.known() == (cache / "secret").read_text() and len(first) >= 64
    assert (cache / "secret").stat().st_mode & 0o777 == 0o600 and cache.stat().st_mode & 0o777 == 0o700
    assert os.listdir(cache) == ["secret"]


def test_a_secret_that_others_can_read_or_write_is_none(cache: Path) -> None:
    secret.known()
    for path, mode in ((cache / "secret", 0o640), (cache, 0o777)):
        path.chmod(mode)
        with pytest.raises(SecretError, match=rf"mode {mode:o}.*chmod go-rwx {path}"):
            secret.known()
        path.chmod(0o700)
    (cache / "secret").rename(cache / "other")
    (cache / "secret").symlink_to(cache / "other")
    with pytest.raises(SecretError, match="chmod"):
        secret.known()


def test_short_secrets_are_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret.known()
    (cache / "secret").write_text("1234")
    with pytest.raises(SecretError, match="delete it"):
        secret.known()
    monkeypatch.setenv(secret.VARIABLE, "1234")
    with pytest.raises(SecretError, match=r"4 characters, too few.*python -c"):
        secret.known()
    monkeypatch.setenv(secret.VARIABLE, "as long as it has to be")
    assert secret.known() == "as long as it has to be"


def test_without_a_home_it_is_among_temporary_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.parent.write_text("no folder")
    assert secret.known() == (cache.parents[1] / f"weft-{os.geteuid()}" / "secret").read_text()
    monkeypatch.setattr(secret.tempfile, "tempdir", str(cache))
    with pytest.raises(SecretError, match="no file can be kept"):
        secret.known()


def test_a_missing_home_is_not_made_and_a_folder_has_a_full_path(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(cache.parents[1] / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "not/from/the/root")
    assert secret.known() == (cache.parents[1] / f"weft-{os.geteuid()}" / "secret").read_text()
    assert not Path("not").exists() and not (cache.parents[1] / "home").exists()
    (cache.parents[1] / "home").mkdir()
    assert secret.known() == (cache.parents[1] / "home" / ".cache" / "weft" / "secret").read_text()


def test_where_proc_shows_other_processes_no_memory_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available() and started(os.getpid())
    monkeypatch.setattr(os, "readlink", lambda _: str(os.getpid() + 1))
    assert not available() and started(os.getpid()) == 0


def test_memory_is_opened_if_it_is_the_users_own_and_of_the_process_that_was_meant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = Segment.make("weft-test", 4096)
    pid, since, number, size = (int(part) for part in mine.handle.split(b":"))
    Segment.open(mine.handle)
    before = len(os.listdir("/proc/self/fd"))
    for handle in (f"{pid}:{since + 1}:{number}:{size}", f"{pid}:{since}:{number}:{2 * size}"):
        with pytest.raises(SecretError, match="WEFT_TRANSPORT=c10d"):
            Segment.open(handle.encode())
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(SecretError, match=rf"of user {me} and begun at .* of this user \({me + 1}\)"):
        Segment.open(mine.handle)
    assert len(os.listdir("/proc/self/fd")) == before
    mine.forget()
    with pytest.raises(RankError, match="can't be opened"):
        Segment.open(mine.handle)
