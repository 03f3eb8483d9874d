"""Locks: others wait, but never for long."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

import pytest
from unit.keep.payloads import key
from unit.keep.running import at_once, command, output

from tilewright.keep.store import Store

HOLD = """
from tilewright.keep.store import Store
with Store(sys.argv[1]).lock(bytes.fromhex(sys.argv[2])) as held:
    print(held, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@contextmanager
def holder(folder: Path, digest: bytes) -> Generator[subprocess.Popen[str], None, None]:
    """Let another process hold a lock inside."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(HOLD, folder, digest.hex()), stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout and process.stdout.readline() == "True\n"
        try:
            yield process
        finally:
            process.kill()


def waited(store: Store, digest: bytes, timeout: float) -> tuple[bool, float]:
    """Return whether a lock could be had, and how long that took."""
    start = monotonic()
    with store.lock(digest, timeout) as held:
        return held, monotonic() - start


def test_a_lock_is_held_inside_only(store: Store) -> None:
    with store.lock(key(1)) as held:
        assert held
        assert waited(store, key(1), 0)[0] is False
        assert waited(store, key(2), 0)[0] is True
    assert waited(store, key(1), 0)[0] is True


@pytest.mark.parametrize("timeout", [0, -1, 0.2, float("nan"), float("-inf")])
def test_waiting_ends(timeout: float, store: Store) -> None:
    with store.lock(key(1)):
        held, seconds = waited(store, key(1), timeout)
    assert not held and seconds < 20


def test_nobody_waits_longer_than_the_longest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.keep.lock.LONGEST", 0.1)
    with store.lock(key(1)):
        held, seconds = waited(store, key(1), float("inf"))
    assert not held and seconds < 20


def test_a_waiter_goes_on_when_the_holder_is_done(store: Store, tmp_path: Path) -> None:
    with holder(tmp_path, key(1)) as process:
        start = monotonic()
        threading.Timer(0.2, process.kill).start()
        held, _ = waited(store, key(1), 30)
    assert held and monotonic() - start >= 0.2


def test_a_stopped_holder_stops_nobody_else(store: Store, tmp_path: Path) -> None:
    with holder(tmp_path, key(1)) as process:
        process.send_signal(signal.SIGSTOP)
        held, seconds = waited(store, key(1), 0.3)
        assert not held and 0.2 < seconds < 20
        assert store.put("artifact", key(1), b"code")
        assert store.get("artifact", key(1)) == b"code"


def test_an_error_inside_gives_the_lock_up(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.lock(key(1)):
        raise ZeroDivisionError
    assert waited(store, key(1), 0)[0] is True


def test_threads_take_turns(store: Store) -> None:
    def work() -> None:
        nonlocal inside, most
        for _ in range(10):
            with store.lock(key(1)) as held:
                assert held
                inside += 1
                most = max(most, inside)
                sleep(0.001)
                inside -= 1

    inside = most = 0
    threads = [threading.Thread(target=work) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == 1


TURNS = """
from tilewright.keep.store import Store
def work(number):
    path = sys.argv[1] + "/count"
    for _ in range(20):
        with Store(sys.argv[1]).lock(bytes(32)) as held:
            if not held:
                return False
            count = int(open(path).read())
            with open(path, "w") as file:
                file.write(str(count + 1))
    return True
"""


def test_processes_take_turns(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    at_once(8, TURNS, tmp_path)
    assert (tmp_path / "count").read_text() == "160"


FORK_HOLDS = """
import os, signal
from tilewright.keep.store import Store
store = Store(sys.argv[1])
with store.lock(bytes(32)):
    child = os.fork()
    if not child:
        signal.pause()
with store.lock(bytes(32), timeout=0) as held:
    print(held)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""
FORK_LEAVES = """
import os
from tilewright.keep.store import Store
store = Store(sys.argv[1])
with store.lock(bytes(32)):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        with store.lock(bytes(32), timeout=0) as held:
            print(held)
"""


@pytest.mark.parametrize(("code", "expected"), [(FORK_HOLDS, "True\n"), (FORK_LEAVES, "False\n")])
def test_a_forked_child_neither_keeps_nor_gives_up_its_parents_lock(code: str, expected: str, tmp_path: Path) -> None:
    assert output(code, tmp_path) == expected


def test_a_file_system_without_locks_is_no_failure(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr("fcntl.flock", unsupported)
    assert waited(store, key(1), 5) == (False, pytest.approx(0, abs=2))


def test_there_are_only_so_many_files(store: Store, tmp_path: Path) -> None:
    for number in range(100):
        with store.lock(bytes([7, 7, number, *bytes(29)])):
            pass
    assert os.listdir(tmp_path / "locks") == ["0707"]


def test_many_locks_are_held_at_once(store: Store) -> None:
    with ExitStack() as stack:
        assert all(stack.enter_context(store.lock(key(number), timeout=0)) for number in range(50))
