"""Processes: several that run one script together, as torchrun launches them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 400.0
"""Seconds after which processes hang; on a machine that others use they may take a while."""
LATE = 100.0
"""Seconds after which a call has waited for something in vain; whoever says so lets calls wait for longer."""


def launched(ranks: int, cache: Path, worker: Path, transport: str = "memory", *args: str) -> list[str]:
    """Return what each process printed; they are launched as torchrun launches them, and share a cache."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    told = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    told["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    told |= {"TILEWRIGHT_CACHE_DIR": str(cache), "TILEWRIGHT_TRANSPORT": transport}
    processes = [
        subprocess.Popen(
            [sys.executable, str(worker), *args],
            env={**os.environ, **told, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        return [process.communicate(timeout=LIMIT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()


def note(name: str) -> None:
    """Tell the processes that share a cache with this one that something has happened."""
    _noted(name).touch()


def await_note(name: str) -> None:
    """Wait until one of them has told so; TimeoutError where none does, which may have ended."""
    until = time.monotonic() + 2 * LATE
    while not _noted(name).exists():
        if time.monotonic() > until:
            raise TimeoutError(f"no process has told {name!r}")
        time.sleep(0.01)


def noted(name: str) -> int:
    """Return the number that a process has told behind a name."""
    folder = Path(os.environ["TILEWRIGHT_CACHE_DIR"])
    return next(int(path.stem.split()[1]) for path in folder.glob(f"{name} *.noted"))


def _noted(name: str) -> Path:
    return Path(os.environ["TILEWRIGHT_CACHE_DIR"]) / f"{name}.noted"
