"""Disks that fill up, vanish or fail, and processes that die: never a wrong payload, an exception, or a lost entry."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from unit.keep.faults import CALLS, at_every_step, failing, faulty
from unit.keep.payloads import KIND, age, everything, key, path_of, payload, temporaries
from unit.keep.running import output

from tilewright.errors import CacheWarning
from tilewright.keep.miss import Miss
from tilewright.keep.store import Store
from tilewright.keep.sweep import sweep

OLD, NEW = payload(key(1), 1), payload(key(1), 2)
NOBODY = 65534
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ESTALE, errno.EMFILE, errno.ENOENT)
SWEEPS = 12 * len(OLD)
"""A limit at which every write of such a payload sweeps, and nothing needs to go."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(params=[2 << 30, SWEEPS], ids=["large", "sweeping"])
def store(request: pytest.FixtureRequest, folder: Path) -> Store:
    return Store(folder, limit_bytes=request.param)


def quietly_put(store: Store, data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        return store.put(KIND, key(1), data)


# Calls that fail

each_error = pytest.mark.parametrize("code", ERRORS, ids=lambda code: errno.errorcode[code])


@each_error
def test_a_failing_call_while_writing_loses_nothing(code: int, store: Store) -> None:
    def turn(at: int) -> list[str]:
        assert store.put(KIND, key(1), OLD)
        with faulty(at, failing(code)) as calls:
            kept = quietly_put(store, NEW)
        assert store.get(KIND, key(1)) in ([NEW] if kept else [OLD, NEW]), calls
        return calls

    assert len(at_every_step(turn)) >= 6


@each_error
def test_a_failing_call_while_writing_the_first_entry_fails_nothing_later(
    code: int, store: Store, folder: Path
) -> None:
    def turn(at: int) -> list[str]:
        with faulty(at, failing(code)) as calls:
            kept = quietly_put(store, NEW)
        assert store.get(KIND, key(1)) in ([NEW] if kept else [None, NEW]), calls
        assert store.put(KIND, key(1), NEW)
        shutil.rmtree(folder)
        return calls

    assert len(at_every_step(turn)) >= 9


@each_error
def test_a_failing_call_while_reading_is_a_miss_or_does_not_matter(code: int, store: Store, folder: Path) -> None:
    def turn(at: int) -> list[str]:
        assert store.put(KIND, key(1), OLD)
        age(path_of(folder, key(1)), 10_000)  # so that reading touches it
        with faulty(at, failing(code)) as calls:
            found = store.get(KIND, key(1))
        harmless = calls[at : at + 1] in ([], ["utime"]) or ("read" in calls and calls[at:] == ["close"])
        assert found == (OLD if harmless else None), calls
        assert store.get(KIND, key(1)) == OLD
        return calls

    assert "utime" in at_every_step(turn)


def test_no_descriptor_leaks_when_calls_fail(store: Store) -> None:
    store.put(KIND, key(1), OLD)
    before = os.listdir("/proc/self/fd")
    for at in range(15):
        with faulty(at, failing(errno.EIO)):
            quietly_put(store, NEW)
        with faulty(at, failing(errno.EIO)), store.lock(key(1), timeout=0):
            store.get(KIND, key(1))
    assert os.listdir("/proc/self/fd") == before


def test_an_interrupt_while_writing_leaves_the_old_entry_and_no_file(store: Store, folder: Path) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    store.put(KIND, key(1), OLD)
    for at in range(8):
        with faulty(at, interrupted, ("write", "replace")) as calls:
            try:
                store.put(KIND, key(1), OLD)
            except KeyboardInterrupt:
                assert len(calls) == at + 1
        assert store.get(KIND, key(1)) == OLD
        assert not temporaries(folder)


def test_short_writes_and_reads_are_no_harm(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(fd: int, data: memoryview) -> int:
        return real_write(fd, data[:7])

    def read(fd: int, size: int) -> bytes:
        return real_read(fd, size // 2)

    real_write, real_read = os.write, os.read
    monkeypatch.setattr(os, "write", write)
    assert store.put(KIND, key(1), OLD)
    assert store.get(KIND, key(1)) == OLD
    monkeypatch.setattr(os, "read", read)
    assert store.get(KIND, key(1)) is None
    assert store.misses == {Miss.LENGTH: 1}


# Processes that die

DIES = """
import os
from itertools import count
from pathlib import Path
from unit.keep import faults
from unit.keep.payloads import KIND, key, payload
from tilewright.keep.store import Store

folder, fault, limit = Path(sys.argv[1]), getattr(faults, sys.argv[2]), int(sys.argv[3])
others = [key(number) for number in range(2, 7)]
for old in (None, payload(key(1), 1)):
    for at in count():
        here = folder / f"{old is None}{at}"
        store = Store(here, limit_bytes=limit)
        if old:
            assert all(store.put(KIND, each, payload(each)) for each in [key(1), *others])
        child = os.fork()
        if not child:
            with faults.faulty(at, fault):
                store.put(KIND, key(1), payload(key(1), 2))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = store.get(KIND, key(1))
        assert found == payload(key(1), 2) if status == 0 else found in (old and payload(key(1)), payload(key(1), 2))
        assert not old or all(store.get(KIND, each) == payload(each) for each in others)
        assert store.put(KIND, key(1), payload(key(1), 3)) and store.get(KIND, key(1)) == payload(key(1), 3)
        if status == 0:
            break
        assert status == 9
    print(at)
"""


@pytest.mark.parametrize("limit", [2 << 30, SWEEPS], ids=["large", "sweeping"])
@pytest.mark.parametrize("fault", ["dying_before", "dying_after", "dying_within"])
def test_a_process_may_die_at_any_step_of_writing(fault: str, limit: int, tmp_path: Path) -> None:
    first, again = map(int, output(DIES, tmp_path, fault, limit).split())
    assert first >= 9 and again >= 6  # steps, without and with an entry to replace
    left = temporaries_below(tmp_path)
    assert left
    for directory, path in left:
        age(path, 4000)
        swept = Store(directory).directory
        assert swept is not None
        sweep(swept, 1 << 30)
    assert not temporaries_below(tmp_path)


def temporaries_below(folder: Path) -> list[tuple[Path, Path]]:
    return [(directory, path) for directory in folder.iterdir() for path in temporaries(directory)]


# Damage


def test_truncated_files_are_misses_until_they_are_replaced(store: Store, folder: Path) -> None:
    store.put(KIND, key(1), b"some code", "softmax")
    path = path_of(folder, key(1))
    whole = path.read_bytes()
    for length in range(len(whole)):
        os.truncate(path, length)
        assert store.get(KIND, key(1)) is None
        path.write_bytes(whole)
    assert store.misses == {Miss.LENGTH: len(whole)}
    assert store.get(KIND, key(1)) == b"some code"


def test_flipped_bytes_are_misses_and_writing_again_mends_them(store: Store, folder: Path) -> None:
    store.put(KIND, key(1), b"some code", "softmax")
    path = path_of(folder, key(1))
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        assert store.get(KIND, key(1)) is None
    assert store.misses.total() == len(whole)
    assert store.put(KIND, key(1), b"some code")
    assert store.get(KIND, key(1)) == b"some code"


# Disks


def test_a_full_disk_warns_once_and_costs_nothing_that_was_there(
    store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: memoryview) -> int:
        if len(data) < 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data[:1000])

    store.put(KIND, key(1), OLD)
    real = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.warns(CacheWarning) as warned:
            assert [store.put(KIND, key(number), NEW) for number in range(5)] == [False] * 5
    help = "set TILEWRIGHT_CACHE_DIR to a directory that you can write to, or to `off`"
    message = f"compiled code is not kept in {folder}: No space left on device\n    help: {help}"
    assert [str(each.message) for each in warned] == [message]
    assert not temporaries(folder)
    assert store.get(KIND, key(1)) == OLD
    assert store.put(KIND, key(2), NEW)  # there is room again


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Generator[Path, None, None]:
    """A file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "tilewright-test", str(disk)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount a file system here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_really_is_full(tiny_disk: Path) -> None:
    store = Store(tiny_disk / "cache")
    with pytest.warns(CacheWarning, match="No space left on device") as warned:
        kept = [store.put(KIND, key(number), payload(key(number), size=10_000)) for number in range(20)]
    assert len(warned) == 1
    assert 3 <= sum(kept) < 10
    for number, is_kept in enumerate(kept):
        assert store.get(KIND, key(number)) == (payload(key(number), size=10_000) if is_kept else None)
    assert not temporaries(tiny_disk / "cache")


def test_a_limit_below_the_disk_leaves_room(tiny_disk: Path) -> None:
    store = Store(tiny_disk / "cache", limit_bytes=30_000)
    assert all(store.put(KIND, key(number), payload(key(number), size=5_000)) for number in range(50))
    assert store.get(KIND, key(49)) == payload(key(49), size=5_000)


def test_a_file_size_limit_is_like_a_full_disk(store: Store) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.warns(CacheWarning, match="File too large"):
            kept = store.put(KIND, key(1), OLD)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not kept and store.get(KIND, key(1)) is None


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder of a user whom permissions hold back, who we are until the end of the test."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    was = os.geteuid()
    if was == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield folder
    os.seteuid(was)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)
    shutil.rmtree(folder)


def test_a_read_only_directory_is_read(unprivileged: Path) -> None:
    store = Store(unprivileged / "cache")
    assert store.put(KIND, key(1), OLD)
    with store.lock(key(1)):
        pass
    age(path_of(unprivileged / "cache", key(1)), 10_000)
    for path in [*unprivileged.rglob("*"), unprivileged]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    with pytest.warns(CacheWarning, match="Permission denied") as warned:
        assert [store.put(KIND, key(number), NEW) for number in (1, 2, 3)] == [False] * 3
    assert len(warned) == 1
    assert store.get(KIND, key(1)) == OLD
    with store.lock(key(1), timeout=0) as held:
        assert not held


def test_an_unreadable_directory_is_a_miss(unprivileged: Path) -> None:
    store = Store(unprivileged / "cache")
    store.put(KIND, key(1), OLD)
    (unprivileged / "cache").chmod(0)
    assert store.get(KIND, key(1)) is None
    assert store.misses == {Miss.UNREADABLE: 1}


def test_a_place_where_nothing_can_be_made(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    store = Store(unprivileged / "a" / "b" / "cache")
    with pytest.warns(CacheWarning, match="Permission denied"):
        assert not store.put(KIND, key(1), OLD)
    with store.lock(key(1)) as held:
        assert not held
    assert store.get(KIND, key(1)) is None


@pytest.mark.parametrize(
    "place", ["file/cache", "dangling", "dangling/cache", "loop", "/proc/cache", "/dev/null", "x" * 300]
)
def test_an_impossible_place_warns_once(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "at all")
    (tmp_path / "loop").symlink_to("loop")
    store = Store(tmp_path / place)
    before = list(everything(tmp_path))
    with pytest.warns(CacheWarning) as warned:
        assert [store.put(KIND, key(number), OLD) for number in range(3)] == [False] * 3
    assert len(warned) == 1
    assert store.get(KIND, key(1)) is None
    with store.lock(key(1)) as held:
        assert not held
    assert list(everything(tmp_path)) == before


def test_a_warning_turned_into_an_error_is_raised_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CacheWarning):
            store.put(KIND, key(1), OLD)
        assert not store.put(KIND, key(1), OLD)


def test_a_directory_that_vanishes_is_made_again(store: Store, folder: Path) -> None:
    store.put(KIND, key(1), OLD)
    shutil.rmtree(folder)
    assert store.get(KIND, key(1)) is None
    assert store.put(KIND, key(1), NEW)
    shutil.rmtree(folder)
    with store.lock(key(1)) as held:
        assert held
        shutil.rmtree(folder)
    assert store.get(KIND, key(1)) is None


def test_a_shard_that_vanishes_while_it_is_written_is_made_again(store: Store, folder: Path) -> None:
    def vanish(call: object, args: tuple[int, ...], kwargs: object) -> int:
        shutil.rmtree(folder)
        return len(args[1:])

    store.put(KIND, key(1), OLD)
    with faulty(0, vanish, ("write",)) as calls:
        assert store.put(KIND, key(1), NEW)
    assert len(calls) > 1
    assert store.get(KIND, key(1)) == NEW


def test_the_faults_know_every_call() -> None:
    sources = (Path(Store.__init__.__code__.co_filename).parent).glob("*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    assert all(f"os.{name}(" in text for name in CALLS)
