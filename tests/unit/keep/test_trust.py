"""What is planted in a directory is neither followed, nor waited for, nor used."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.keep.payloads import KIND, everything, key, path_of

from tilewright.errors import CacheWarning
from tilewright.keep.miss import Miss
from tilewright.keep.store import Store
from tilewright.keep.sweep import sweep

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def store(folder: Path) -> Store:
    """A store with an entry that is good until a test plants something in its place."""
    store = Store(folder)
    store.put(KIND, key(1), b"code")
    return store


def into_link(entry: Path) -> None:
    entry.rename(entry.parents[1] / "elsewhere")
    entry.symlink_to(entry.parents[1] / "elsewhere")


def into_dangling_link(entry: Path) -> None:
    entry.unlink()
    entry.symlink_to(entry.parents[1] / "target")


def into_loop(entry: Path) -> None:
    entry.unlink()
    entry.symlink_to(entry)


def into_pipe(entry: Path) -> None:
    entry.unlink()
    os.mkfifo(entry)


def into_socket(entry: Path) -> None:
    entry.unlink()
    here = Path.cwd()
    os.chdir(entry.parent)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind("s")
    os.chdir(here)
    (entry.parent / "s").rename(entry)


def into_folder(entry: Path) -> None:
    entry.unlink()
    entry.mkdir()


def into_linked_shard(entry: Path) -> None:
    entry.parent.rename(entry.parents[2] / "shard")
    entry.parent.symlink_to(entry.parents[2] / "shard")


def into_file_for_shard(entry: Path) -> None:
    shutil.rmtree(entry.parent)
    entry.parent.write_bytes(b"mine")


def into_huge(entry: Path) -> None:
    os.truncate(entry, 1 << 40)


def into_other_entry(entry: Path) -> None:
    other = Store(entry.parents[1])
    other.put(KIND, key(2), b"other code")
    path_of(entry.parents[1], key(2)).rename(entry)


def into_other_kind(entry: Path) -> None:
    Store(entry.parents[1]).put("manifest", key(1), b"reads")
    path_of(entry.parents[1], key(1), "manifest").rename(entry)


PLANTED: dict[str, tuple[Callable[[Path], None], Miss]] = {
    "a link": (into_link, Miss.LINK),
    "a dangling link": (into_dangling_link, Miss.LINK),
    "a link to itself": (into_loop, Miss.LINK),
    "a pipe": (into_pipe, Miss.NOT_A_FILE),
    "a socket": (into_socket, Miss.NOT_A_FILE),
    "a folder": (into_folder, Miss.NOT_A_FILE),
    "a linked shard": (into_linked_shard, Miss.LINK),
    "a file for a shard": (into_file_for_shard, Miss.LINK),
    "a huge file": (into_huge, Miss.TOO_LARGE),
    "another entry": (into_other_entry, Miss.KEY),
    "another kind": (into_other_kind, Miss.KEY),
    "writable by the group": (lambda entry: entry.chmod(0o660), Miss.WRITABLE),
    "writable by all": (lambda entry: entry.chmod(0o602), Miss.WRITABLE),
}
planted = pytest.mark.parametrize(("plant", "reason"), PLANTED.values(), ids=PLANTED)


@planted
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
def test_it_is_a_miss_with_a_reason(
    plant: Callable[[Path], None], reason: Miss, shared: bool, store: Store, folder: Path
) -> None:
    plant(path_of(folder, key(1)))
    reader = Store(None, shared=[folder]) if shared else store
    assert reader.get(KIND, key(1)) is None
    assert reader.misses == {reason: 1}


@planted
def test_keeping_replaces_it_or_warns_and_touches_nothing_else(
    plant: Callable[[Path], None], reason: Miss, store: Store, folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    plant(path_of(folder, key(1)))
    outside = [pair for pair in everything(folder.parent) if pair[0] != path_of(folder, key(1))]
    kept = store.put(KIND, key(1), b"new code")
    assert store.get(KIND, key(1)) == (b"new code" if kept else None)
    assert [each.category for each in recwarn] == ([] if kept else [CacheWarning])
    assert not (folder / "target").exists()
    assert [pair for pair in everything(folder.parent) if pair[0] != path_of(folder, key(1))] == outside


@planted
def test_sweeping_survives_it_and_removes_nothing_of_others(
    plant: Callable[[Path], None], reason: Miss, store: Store, folder: Path
) -> None:
    store.put(KIND, key(3), b"code")
    plant(path_of(folder, key(1)))
    others = [path for path, _ in everything(folder.parent) if not path.name.endswith(".1") or "shard" in path.parts]
    assert store.directory
    sweep(store.directory, 0)
    assert store.get(KIND, key(3)) is None
    assert all(path.exists() for path in others)


@as_root
@pytest.mark.parametrize("shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize(("owner", "found"), [(0, True), (1, False)])
def test_files_of_others_are_not_used(owner: int, shared: bool, found: bool, store: Store, folder: Path) -> None:
    os.chown(path_of(folder, key(1)), owner, owner)
    reader = Store(None, shared=[folder]) if shared else store
    assert (reader.get(KIND, key(1)) is not None) is found
    assert reader.misses == ({} if found else {Miss.OWNER: 1})


@pytest.mark.parametrize(("owner", "shared", "found"), [(0, True, True), (0, False, False), (1, True, False)])
def test_root_may_fill_shared_directories_for_users(
    owner: int, shared: bool, found: bool, store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def status(fd: int) -> os.stat_result:
        fields = list(real(fd))
        fields[stat.ST_UID] = owner
        return os.stat_result(fields)

    real = os.fstat
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    monkeypatch.setattr(os, "fstat", status)
    reader = Store(None, shared=[folder]) if shared else store
    assert (reader.get(KIND, key(1)) is not None) is found


def test_a_link_to_the_directory_itself_is_the_users_choice(store: Store, folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    linked = Store(folder.parent / "link")
    assert linked.get(KIND, key(1)) == b"code"
    assert linked.put(KIND, key(2), b"code")
    assert store.get(KIND, key(2)) == b"code"


@pytest.mark.parametrize("plant", [into_link, into_dangling_link, into_loop, into_folder, into_pipe])
def test_a_planted_lock_is_not_followed(plant: Callable[[Path], None], store: Store, folder: Path) -> None:
    with store.lock(key(1)) as held:
        assert held
    lock = folder / "locks" / key(1)[:2].hex()
    plant(lock)
    before = list(everything(folder))
    with store.lock(key(1), timeout=0.1) as held:
        assert held is (plant is into_pipe)  # which locks like a file
    assert list(everything(folder)) == before


@pytest.mark.parametrize("plant", [into_link, into_dangling_link, into_loop])
def test_a_planted_folder_of_locks_is_not_followed(plant: Callable[[Path], None], store: Store, folder: Path) -> None:
    (folder / "x").mkdir()
    plant_at = folder / "x" / "locks"
    plant_at.touch()
    plant(plant_at)
    plant_at.rename(folder / "locks")
    with store.lock(key(1)) as held:
        assert not held
    assert not (folder / "target").exists()
