"""Many processes at once: whoever finds something finds the right thing, and what was kept stays."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from random import Random
from time import sleep

from unit.keep.payloads import KIND, belongs, key, payload, temporaries
from unit.keep.running import at_once, command

from tilewright.keep.store import Store

SAME_AND_DIFFERENT = """
from random import Random
from unit.keep.payloads import KIND, belongs, key, payload
from tilewright.keep.store import Store
def work(number):
    random, store = Random(number), Store(sys.argv[1])
    for turn in range(150):
        shared = key(random.randrange(8))
        own = key(1000 * (number + 1) + turn)
        for digest in (shared, own):
            if not store.put(KIND, digest, payload(digest, number, random.randrange(100, 20_000))):
                return False
            if not belongs(store.get(KIND, digest) or b"", digest):
                return False
    return not store.misses
"""


def test_sixteen_processes_write_and_read_the_same_and_different_keys(tmp_path: Path) -> None:
    at_once(16, SAME_AND_DIFFERENT, tmp_path)
    store = Store(tmp_path)
    for digest in [*map(key, range(8)), *(key(1000 * (n + 1) + turn) for n in range(16) for turn in range(150))]:
        assert belongs(store.get(KIND, digest) or b"", digest)
    assert not temporaries(tmp_path)


SWEPT_AND_CLEARED = """
import shutil
from random import Random
from unit.keep.payloads import KIND, belongs, key, payload
from tilewright.keep.store import Store
def work(number):
    random, store = Random(number), Store(sys.argv[1], limit_bytes=100_000)
    for turn in range(100):
        digest = key(random.randrange(40))
        found = store.get(KIND, digest)
        if found is not None and not belongs(found, digest):
            return False
        with store.lock(digest, timeout=0.01):
            store.put(KIND, digest, payload(digest, number, random.randrange(100, 20_000)))
        if number < 2 and turn % 10 == 0:
            sum(map(store.directory.remove, store.directory.files()))
            store.directory.prune()
        if number == 2 and turn % 20 == 0:
            shutil.rmtree(sys.argv[1], ignore_errors=True)
    return store.misses.keys() <= {Miss.ABSENT}
from tilewright.keep.miss import Miss
import warnings
warnings.simplefilter("ignore")  # a directory that is removed twice during one write is given up
"""


def test_sixteen_processes_write_while_others_sweep_clear_and_remove_the_directory(tmp_path: Path) -> None:
    at_once(16, SWEPT_AND_CLEARED, tmp_path / "cache")


WRITE_FOREVER = """
from unit.keep.payloads import KIND, key, payload
from tilewright.keep.store import Store
store = Store(sys.argv[1])
print("ready", flush=True)
variant = 0
while True:
    variant += 1
    for number in range(5):
        store.put(KIND, key(number), payload(key(number), variant % 1000, 200_000))
"""


def test_writers_that_are_killed_leave_whole_entries(tmp_path: Path) -> None:
    store, random = Store(tmp_path), Random(1)
    for number in range(5):
        store.put(KIND, key(number), payload(key(number)))
    for _ in range(12):
        with subprocess.Popen(command(WRITE_FOREVER, tmp_path), stdout=subprocess.PIPE) as writer:
            assert writer.stdout and writer.stdout.readline() == b"ready\n"
            sleep(random.random() * 0.02)
            writer.send_signal(signal.SIGKILL)
        assert all(belongs(store.get(KIND, key(number)) or b"", key(number)) for number in range(5))
    assert not store.misses
