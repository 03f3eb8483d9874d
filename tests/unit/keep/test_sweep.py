"""Sweeping: a directory stays small, and what was used lately stays in it."""

from __future__ import annotations

import os
from pathlib import Path
from time import time

import pytest
from unit.keep.payloads import KIND, age, everything, key, path_of, payload, temporaries

from tilewright.keep.directory import Directory
from tilewright.keep.store import Store
from tilewright.keep.sweep import PARTS, WRITES, is_due, sweep

HOUR = 3600
SIZE = 1000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with ten entries, the first one used ten hours ago, the last one an hour ago."""
    store = Store(tmp_path)
    for number in range(10):
        store.put(KIND, key(number), bytes(SIZE))
        age(path_of(tmp_path, key(number)), (10 - number) * HOUR)
    return tmp_path


def kept(folder: Path) -> list[int]:
    return [number for number in range(10) if path_of(folder, key(number)).exists()]


def test_below_the_limit_everything_stays(folder: Path) -> None:
    sweep(Directory(folder), 20 * SIZE)
    assert kept(folder) == list(range(10))


def test_above_the_limit_what_was_unused_for_longest_goes(folder: Path) -> None:
    sweep(Directory(folder), 6 * SIZE)
    assert kept(folder) == [6, 7, 8, 9]


def test_what_is_read_stays(folder: Path) -> None:
    assert Store(folder).get(KIND, key(0)) is not None
    sweep(Directory(folder), 6 * SIZE)
    assert kept(folder) == [0, 7, 8, 9]


def test_reading_writes_to_the_disk_once_an_hour(folder: Path) -> None:
    def used() -> int:
        Store(folder).get(KIND, key(0))
        return path_of(folder, key(0)).stat().st_mtime_ns

    first = used()
    assert abs(first / 1e9 - time()) < 60
    age(path_of(folder, key(0)), 0.9 * HOUR)
    assert used() == used() < first
    age(path_of(folder, key(0)), 0.2 * HOUR)
    assert used() >= first


def test_an_entry_from_the_future_is_like_one_used_now(folder: Path) -> None:
    age(path_of(folder, key(0)), -1000 * HOUR)
    sweep(Directory(folder), 6 * SIZE)
    assert kept(folder) == [0, 7, 8, 9]
    assert Store(folder).get(KIND, key(0)) is not None
    assert path_of(folder, key(0)).stat().st_mtime < time() + 60


@pytest.mark.parametrize("hours", [-10_000, -2, 2, 10_000])
def test_a_clock_that_jumps_breaks_nothing(hours: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, limit_bytes=20 * SIZE)
    store.put(KIND, key(1), payload(key(1)))
    for module in ("shard", "store", "sweep"):
        monkeypatch.setattr(f"tilewright.keep.{module}.time", lambda: max(0.0, time() + hours * HOUR))
    assert store.get(KIND, key(1)) == payload(key(1))
    assert store.put(KIND, key(2), payload(key(2)))
    assert store.directory
    sweep(store.directory, store.limit_bytes)
    assert store.get(KIND, key(1)) == payload(key(1))
    assert store.get(KIND, key(2)) == payload(key(2))


def test_a_clock_before_1970_breaks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("shard", "store", "sweep"):
        monkeypatch.setattr(f"tilewright.keep.{module}.time", lambda: -5.0)
    store = Store(tmp_path)
    assert store.put(KIND, key(1), b"code")
    assert store.get(KIND, key(1)) == b"code"


@pytest.mark.parametrize(
    ("seconds", "stays"), [(0, True), (HOUR - 60, True), (HOUR + 60, False), (-HOUR, True), (-30 * HOUR, False)]
)
def test_a_temporary_file_goes_when_its_writer_must_be_dead(seconds: float, stays: bool, folder: Path) -> None:
    left = folder / "00" / "0123456789abcdef.tmp"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half an ent")
    age(left, seconds)
    sweep(Directory(folder), 20 * SIZE)
    assert left.exists() is stays
    assert kept(folder) == list(range(10))


def test_a_file_that_loses_its_temporary_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*names: str, **folders: int) -> None:
        for left in temporaries(tmp_path)[: turns.pop()]:
            left.unlink()  # as if the writer had been stopped for hours
        real(*names, **folders)

    real, turns = os.replace, [0, 1]
    monkeypatch.setattr(os, "replace", replace)
    store = Store(tmp_path)
    (tmp_path / key(1).hex()[:2]).mkdir()
    assert store.put(KIND, key(1), b"code")
    assert store.get(KIND, key(1)) == b"code"
    assert not turns


FOREIGN = ["notes.txt", "00/notes.txt", "00/ab.artifact.1", "zz/" + "0" * 64 + ".artifact.1", "00/x.tmp", "locks/0000"]


@pytest.mark.parametrize("name", [*FOREIGN, "01/" + "0" * 64 + ".artifact.1", "00/" + "0" * 64 + ".artifact.1.bak"])
def test_other_files_stay(name: str, folder: Path) -> None:
    other = folder / name
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(b"mine")
    age(other, 1000 * HOUR)
    sweep(Directory(folder), 0)
    assert kept(folder) == []
    assert other.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_entries_of_others_neither_count_nor_go(folder: Path) -> None:
    other = folder / "00" / f"{bytes(32).hex()}.artifact.1"
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(bytes(100 * SIZE))
    os.chown(other, 1, 1)
    sweep(Directory(folder), 20 * SIZE)
    assert other.exists()
    assert kept(folder) == list(range(10))


def test_entries_of_other_formats_count_and_go(folder: Path) -> None:
    other = folder / "00" / f"{bytes(32).hex()}.artifact.7"
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(bytes(SIZE))
    age(other, 1000 * HOUR)
    sweep(Directory(folder), 10 * SIZE)
    assert not other.exists()
    assert kept(folder) == list(range(2, 10))


def test_an_entry_that_was_replaced_since_it_was_listed_stays(folder: Path) -> None:
    directory = Directory(folder)
    files = list(directory.files())
    Store(folder).put(KIND, key(3), bytes(SIZE))
    assert sum(map(directory.remove, files)) == 9
    assert kept(folder) == [3]


def test_sweeping_a_directory_that_is_not_there_does_nothing(tmp_path: Path) -> None:
    sweep(Directory(tmp_path / "none"), 0)
    assert not (tmp_path / "none").exists()


def test_writes_sweep_in_proportion_to_their_size() -> None:
    limit = 1 << 30
    assert all(is_due(limit // PARTS, limit) for _ in range(100))
    small = sum(is_due(1, limit) for _ in range(20 * WRITES))
    assert 1 <= small < 100  # 20 on average
    half = sum(is_due(limit // PARTS // 2, limit) for _ in range(1000))
    assert 300 < half < 700


def test_a_directory_stays_near_its_limit(tmp_path: Path) -> None:
    limit = 100_000
    store = Store(tmp_path, limit_bytes=limit)
    sizes: list[int] = []
    for number in range(400):
        assert store.put(KIND, key(number), bytes(SIZE))
        assert store.get(KIND, key(number)) == bytes(SIZE)
        sizes.append(sum(len(data) for _, data in everything(tmp_path)) if number % 20 == 0 else 0)
    assert 0.5 * limit < max(sizes) < 2 * limit
