"""The store: what is kept is found, by its key only."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from unit.keep.payloads import KIND, age, everything, key, path_of, payload
from unit.keep.running import output

from tilewright import settings
from tilewright.errors import CacheWarning
from tilewright.keep import directory as directories
from tilewright.keep import payload as entry
from tilewright.keep.miss import Miss
from tilewright.keep.payload import Label, file_name
from tilewright.keep.shard import MAX_BYTES
from tilewright.keep.store import Store, configured


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "some" / "cache"


@pytest.fixture
def store(folder: Path) -> Store:
    return Store(folder, version="0.1.0")


def test_what_was_put_is_got_in_any_process(store: Store, folder: Path) -> None:
    assert store.put(KIND, key(1), payload(key(1)), "softmax")
    assert store.get(KIND, key(1)) == payload(key(1))
    assert Store(folder).get(KIND, key(1)) == payload(key(1))
    assert (store.hits, store.misses) == (1, {})


def test_nothing_else_is_found(store: Store) -> None:
    store.put(KIND, key(1), b"code")
    assert store.get(KIND, key(2)) is None
    assert store.get("manifest", key(1)) is None
    assert (store.hits, store.misses) == (0, {Miss.ABSENT: 2})


def test_kinds_do_not_replace_each_other(store: Store) -> None:
    store.put(KIND, key(1), b"code")
    store.put("manifest", key(1), b"reads")
    assert (store.get(KIND, key(1)), store.get("manifest", key(1))) == (b"code", b"reads")


def test_an_entry_is_replaced(store: Store, folder: Path) -> None:
    for variant in range(5):
        assert store.put(KIND, key(1), payload(key(1), variant))
        assert store.get(KIND, key(1)) == payload(key(1), variant)
    assert len(list(everything(folder))) == 1


def test_looking_up_makes_no_files(store: Store, folder: Path) -> None:
    assert store.get(KIND, key(1)) is None
    assert not folder.exists()


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_everything_is_for_the_owner_alone(mask: int, store: Store, folder: Path) -> None:
    before = os.umask(mask)
    store.put(KIND, key(1), b"code")
    with store.lock(key(1)):
        pass
    os.umask(before)
    modes = {each: stat.S_IMODE(each.stat().st_mode) for each in (folder.parent, folder, *folder.rglob("*"))}
    assert len(modes) == 6
    assert all(mode == (0o700 if each.is_dir() else 0o600) for each, mode in modes.items())


def test_a_mistake_in_calling_is_told(store: Store) -> None:
    with pytest.raises(ValueError, match="lower-case word"):
        store.get("../artifact", key(1))
    with pytest.raises(ValueError, match="31 bytes"):
        store.put(KIND, key(1)[:31], b"code")


def test_without_a_directory_nothing_is_kept() -> None:
    store = Store(None)
    assert not store.put(KIND, key(1), b"code")
    assert store.get(KIND, key(1)) is None
    with store.lock(key(1)) as held:
        assert not held


@pytest.mark.parametrize("name", ["with space", "größe", "new\nline", "-rf", "'\"$(x)", "a:b", "\x1b[31m", "x" * 200])
def test_directories_may_have_odd_names(tmp_path: Path, name: str) -> None:
    store = Store(tmp_path / name)
    assert store.put(KIND, key(1), b"code", name)
    assert store.get(KIND, key(1)) == b"code"


def test_a_relative_directory_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store("cache")
    monkeypatch.chdir("/")
    assert store.put(KIND, key(1), b"code")
    assert path_of(tmp_path / "cache", key(1)).exists()


def test_an_entry_larger_than_the_limit_is_not_kept(folder: Path) -> None:
    store = Store(folder, limit_bytes=1000)
    assert not store.put(KIND, key(1), bytes(1000))
    assert store.put(KIND, key(1), bytes(800))


def test_an_entry_that_could_not_be_read_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_BYTES == 1 << 28
    monkeypatch.setattr("tilewright.keep.store.MAX_BYTES", 1000)
    assert not Store(folder).put(KIND, key(1), bytes(1000))


def test_threads_share_a_store(store: Store) -> None:
    def work(thread: int) -> None:
        for turn in range(50):
            number = (thread + turn) % 5
            if store.put(KIND, key(number), payload(key(number))):
                found.append(store.get(KIND, key(number)) == payload(key(number)))

    found: list[bool] = []
    threads = [threading.Thread(target=work, args=(each,)) for each in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [True] * 400


# Shared directories


def test_shared_directories_are_read_in_order_and_never_written(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "first"), Store(tmp_path / "second")
    first.put(KIND, key(1), b"first")
    second.put(KIND, key(1), b"second")
    second.put(KIND, key(2), b"second")
    before = list(everything(tmp_path))
    for store in (Store(None, shared=[tmp_path / "first", tmp_path / "second"]), first):
        assert store.get(KIND, key(1)) == b"first"
    store = Store(tmp_path / "own", shared=[tmp_path / "none", tmp_path / "first", tmp_path / "second"])
    assert store.get(KIND, key(2)) == b"second"
    assert store.get(KIND, key(3)) is None
    assert list(everything(tmp_path)) == before
    store.put(KIND, key(1), b"own")
    assert store.get(KIND, key(1)) == b"own"


def test_a_damaged_entry_gives_way_to_a_shared_one(tmp_path: Path) -> None:
    store = Store(tmp_path / "own", shared=[tmp_path / "shared"])
    store.put(KIND, key(1), b"code")
    Store(tmp_path / "shared").put(KIND, key(1), b"code")
    path_of(tmp_path / "own", key(1)).write_bytes(b"damaged, and long enough to have a start")
    assert store.get(KIND, key(1)) == b"code"
    path_of(tmp_path / "shared", key(1)).unlink()
    assert store.get(KIND, key(1)) is None
    assert store.misses == {Miss.MAGIC: 1}


def test_reading_a_shared_directory_leaves_its_times(tmp_path: Path) -> None:
    Store(tmp_path).put(KIND, key(1), b"code")
    age(path_of(tmp_path, key(1)), 10_000)
    before = path_of(tmp_path, key(1)).stat().st_mtime_ns
    assert Store(None, shared=[tmp_path]).get(KIND, key(1)) == b"code"
    assert path_of(tmp_path, key(1)).stat().st_mtime_ns == before


def test_a_label_is_had_without_reading_the_payload(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(fd: int, size: int) -> bytes:
        assert size <= entry.LABEL_BYTES
        return real(fd, size)

    store.put(KIND, key(1), bytes(100_000), "softmax")
    real = os.read
    monkeypatch.setattr(os, "read", read)
    label = directories.Directory(folder).label(file_name(KIND, key(1)))
    assert isinstance(label, Label) and (label.name, label.version) == ("softmax", "0.1.0")


# Two versions of the format


def test_two_formats_share_a_directory(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KIND, key(1), b"format one")
    with monkeypatch.context() as other:
        other.setattr(entry, "FORMAT", 2)
        other.setattr(directories, "FORMAT", 2)
        assert store.get(KIND, key(1)) is None
        store.put(KIND, key(1), b"format two")
        assert store.get(KIND, key(1)) == b"format two"
        assert [file.is_foreign for file in Store(folder).directory.files()] in ([True, False], [False, True])  # pyright: ignore[reportOptionalMemberAccess]
        path_of(folder, key(1)).rename(folder / "two")
    assert store.get(KIND, key(1)) == b"format one"
    (folder / "two").rename(path_of(folder, key(1)))
    assert store.get(KIND, key(1)) is None
    assert store.misses == {Miss.ABSENT: 1, Miss.FORMAT: 1}


# Settings


def test_the_settings_say_which_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_SHARED_CACHE_DIRS", f"{tmp_path / 'a'}::{tmp_path / 'b'}:")
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", "10K")
    store = configured("0.1.0")
    assert store.directory and store.directory.path == str(tmp_path)
    assert [each.path for each in store.shared] == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert (store.limit_bytes, store.version) == (10 * 1024, "0.1.0")
    assert configured("0.1.0") is store
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    assert configured("0.1.0").directory is None


PLACES: dict[str, tuple[dict[str, str], str | None]] = {
    "set": ({"TILEWRIGHT_CACHE_DIR": "/a/b/../c"}, "/a/c"),
    "below home": ({"TILEWRIGHT_CACHE_DIR": "~/c", "HOME": "/h"}, "/h/c"),
    "off": ({"TILEWRIGHT_CACHE_DIR": "off"}, None),
    "shouted": ({"TILEWRIGHT_CACHE_DIR": " OFF "}, None),
    "zero": ({"TILEWRIGHT_CACHE_DIR": "0"}, None),
    "xdg": ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/tilewright"),
    "relative xdg": ({"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/tilewright"),
    "home": ({"HOME": "/h"}, "/h/.cache/tilewright"),
    "empty": ({"TILEWRIGHT_CACHE_DIR": "", "XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/tilewright"),
    "no home": ({"HOME": "nowhere"}, "/.cache/tilewright"),
}


@pytest.mark.parametrize(("variables", "place"), PLACES.values(), ids=PLACES)
def test_the_directory_comes_from_the_environment(
    variables: dict[str, str], place: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TILEWRIGHT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert settings.cache_dir() == place


def test_without_a_home_the_password_file_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TILEWRIGHT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    place = settings.cache_dir()
    assert place is not None and os.path.isabs(place) and place.endswith("/.cache/tilewright")


@pytest.mark.parametrize(("text", "limit"), [("", 2 << 30), ("0", 0), ("77", 77), ("3k", 3 << 10), (" 5M ", 5 << 20)])
def test_the_limit_is_in_bytes(text: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", text)
    assert settings.cache_limit() == limit


@pytest.mark.parametrize("text", ["many", "-1", "1.5G", "G", "1T", "1 G", "²", "٣"])
def test_other_limits_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_LIMIT", text)
    with pytest.raises(ValueError, match="TILEWRIGHT_CACHE_LIMIT must be a number of bytes"):
        settings.cache_limit()


@pytest.mark.parametrize(("text", "only"), [("", False), ("1", True), ("on", True), ("0", False)])
def test_run_only_is_off_unless_asked_for(text: str, only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_RUN_ONLY", text)
    assert settings.run_only() is only


# Cost


def test_importing_the_store_loads_little() -> None:
    before = "before = {*sys.modules}"  # what the environment loads by itself
    loaded = output(f"{before}; import tilewright.keep.store; print(*{{*sys.modules}} - before)").split()
    assert not {"dataclasses", "fcntl", "inspect", "json", "pathlib", "pickle", "random", "tempfile"}.intersection(
        loaded
    )


def test_the_warning_names_the_line_that_called(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(CacheWarning) as warned:
        assert not Store(tmp_path / "file").put(KIND, key(1), b"code")
    assert warned[0].filename == __file__
