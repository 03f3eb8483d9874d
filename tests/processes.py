"""Processes: several that run one script together, as torchrun launches them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path


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
    return [process.communicate(timeout=100)[0] for process in processes]
