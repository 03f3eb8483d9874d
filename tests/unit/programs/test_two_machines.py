"""Programs of many ranks on two machines: network namespaces with a wire between them, and names of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("machines_worker.py")
NAMES = [f"tilewright-{os.getpid()}-{number}" for number in range(2)]
ENDS = ["tilewright0", "tilewright1"]
ADDRESSES = ["10.213.77.1", "10.213.77.2"]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


@pytest.fixture
def machines() -> Iterator[list[list[str]]]:
    """Give what runs a command on each of two machines."""
    with ExitStack() as stack:
        try:
            for name in NAMES:
                ip("netns", "add", name)
                stack.callback(ip, "netns", "del", name)
            first, second = zip(ENDS, NAMES, strict=True)
            ip(
                "link",
                "add",
                first[0],
                "netns",
                first[1],
                "type",
                "veth",
                "peer",
                "name",
                second[0],
                "netns",
                second[1],
            )
            for name, end, address in zip(NAMES, ENDS, ADDRESSES, strict=True):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
                ip("-n", name, "link", "set", end, "up")
                ip("-n", name, "link", "set", "lo", "up")
            subprocess.run(["unshare", "--uts", "true"], check=True, capture_output=True, timeout=10)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"no network namespaces here: {error}")
        named = 'hostname "$0"; exec "$@"'
        yield [["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", named, name] for name in NAMES]


@pytest.mark.parametrize("places", [(0, 1), (0, 0, 1)], ids=["one on each", "two on one of them"])
def test_ranks_on_two_machines_send_each_other_what_they_write(
    machines: list[list[str]], places: tuple[int, ...], tmp_path: Path
) -> None:
    told = {"WORLD_SIZE": str(len(places)), "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1"}
    told["TILEWRIGHT_CACHE_DIR"] = str(tmp_path)
    processes = [
        subprocess.Popen(
            [*machines[place], sys.executable, str(WORKER)],
            env={**os.environ, **told, "RANK": str(rank), "GLOO_SOCKET_IFNAME": ENDS[place]},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank, place in enumerate(places)
    ]  # fmt: skip
    for place, process in zip(places, processes, strict=True):
        said, wrong = process.communicate(timeout=100)
        assert said.split("\n") == [
            f"shares memory: False, beside: {places.count(place)}",
            "ring_put: right",
            "all_reduce: right",
            "moe_dispatch: right",
            "",
        ], wrong
