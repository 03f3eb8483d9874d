"""Every command's help, and what it prints for a small kernel, as golden files: with times and places masked."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import GOLDEN, Golden
from unit.keep.payloads import KIND, key
from unit.tools.test_cli import JIT, RACING
from unit.tools.test_pto import SCALE

from tilewright.keep.store import Store
from tilewright.native import peaks
from tilewright.programs import bench, timings
from tilewright.tools import cache, cli
from tilewright.tools.completion import commands_of

HERE = GOLDEN / "commands"
RING = """
import tilewright.language as pl
import tilewright.language.distributed as pld

Row = pl.Tensor[[1, 8], pl.FP32]
Rows = pl.Tensor[[pl.dynamic("N"), 1, 8], pl.FP32]
Window = pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]]
Signal = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]

@pl.jit
def pass_on(x: Row, y: pl.Out[Row], inbox: Window, signal: Signal):
    with pl.at(level=pl.Level.CORE_GROUP):
        following = (pld.rank(pld.get_comm_ctx(inbox)) + 1) % pld.nranks(pld.get_comm_ctx(inbox))
        pld.tensor.put(inbox, peer=following, src=x)
        pld.system.notify(signal, peer=following, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
        pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.load(inbox, [0, 0], [1, 8]), [0, 0], y)
    return y

@pl.jit.host
def ring(x: Rows, y: pl.Out[Rows]):
    rows = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
    signals = pld.alloc_window_buffer(pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        inbox = pld.window(rows, [1, 8], dtype=pl.FP32)
        signal = pld.window(signals, [1, 1], dtype=pl.INT32)
        pass_on(x[r], y[r], inbox, signal, device=r)
    return y
"""
COMMANDS = {
    "show": "show scale.py; show scale.py --pass OutlineScopes; show scale.py --launches; show scale.py --pto; "
    "show scale.py --json; show scale.py:scal; show ring.py --launches",
    "explore": "explore scale.py; explore wrong.py; explore ring.py -o page.html",
    "access": "access race.py; access scale.py M=20 --json; access ring.py",
    "bench": "bench scale.py M=20 --rounds 3; bench scale.py --rounds 2 --json; bench ring.py --ranks 3 --rounds 2",
    "explain": "explain scale.py M=20; explain scale.py M=20 --json; explain ring.py",
    "bisect": "bisect scale.py M=20 --passes-only; bisect scale.py M=20 --passes-only --json; bisect ring.py",
    "ops": "ops row_max; ops logarithm; ops row_max --json; ops torch.svd",
    "passes": "passes; passes --json",
    "cache ls": "cache ls; cache ls --json",
    "cache show": "cache show 5fec; cache show 0000",
    "cache verify": "cache verify; cache verify --json",
    "cache clear": "cache clear; cache clear --yes",
    "cache path": "cache path",
    "pto check": "pto check scale.pto; pto check scale.pto --show",
    "pto run": "pto run scale.pto x=arange:64 y=zeros:64 by=2 --compare; pto run scale.pto",
    "pto fmt": "pto fmt wide.pto --check; pto fmt wide.pto",
    "pto lint": "pto lint scale.pto; pto lint --list",
    "pto diff": "pto diff scale.pto scale.pto; pto diff scale.pto other.pto",
    "pto explain": "pto explain tadds; pto explain tad",
    "completion": "completion bash; completion zsh; completion fish",
}
"""What is run of each command; `doctor`, which says what this machine is, has a golden of its own."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels and a cache, on a machine of two threads where calls take a millisecond and nothing ages."""
    texts = {"scale.py": JIT, "wrong.py": JIT.replace("times(pl", "tims(pl"), "race.py": RACING, "ring.py": RING}
    other = SCALE.replace("pto.tmuls", "pto.tadds")
    pto = {"scale.pto": SCALE, "wide.pto": SCALE.replace("%c0 =", "%c0   ="), "other.pto": other}
    for name, text in (texts | pto).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    store = Store(tmp_path / "shelf", version="0.1.0")
    store.put(KIND, key(0), bytes(5000), "softmax")
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "2")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    for module in (timings, bench):
        monkeypatch.setattr(module, "timed", timed)
    monkeypatch.setattr(cache, "time", lambda: 0.0)  # entries stay new, however long the commands before take
    monkeypatch.setattr(peaks, "peaks", lambda threads: peaks.Peaks(100e9, 10e9, threads))
    return tmp_path


def timed(run: Callable[[], object], rounds: int, elapsed: object, **_: object) -> list[float]:
    run()
    return [1e-3 if elapsed is timings.wall else 5e-4] * rounds


MASKED: dict[str, Callable[[str], str]] = {
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?": lambda _: "DATE",
    r'("(created|used)": )\d{10}\b(?!\.)': lambda _: '"time": N',
    r"\b\d+ s\b": lambda _: "N s",
    r"[0-9a-f]{64}": lambda _: "KEY",
    r"(vectors of|keeps) \d+": lambda found: f"{found.rsplit(' ', 1)[0]} N",
}


def said(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return a command line, what it prints, and how it ends."""
    try:
        status = cli.main(line.split())
    except SystemExit as left:
        status = left.code
    printed = capsys.readouterr()
    text = (printed.out + printed.err).replace(str(folder), "FOLDER")
    for pattern, masked in MASKED.items():
        text = re.sub(pattern, lambda found, masked=masked: masked(found[0]), text)
    return f"$ tilewright {line}\n{text}" + (f"(ends with {status})\n" if status else "")


def test_every_command_has_a_golden() -> None:
    leaves = {" ".join(path) for path, parser in commands_of(cli.parser("")) if not has_commands(parser)}
    assert leaves == {*COMMANDS, "doctor"}


def has_commands(parser: argparse.ArgumentParser) -> bool:
    return parser._subparsers is not None  # pyright: ignore[reportPrivateUsage]


def test_what_commands_print_is_golden(
    folder: Path, capsys: pytest.CaptureFixture[str], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command, lines in COMMANDS.items():
        kept = "shelf" if command.startswith("cache") else "cache"
        monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(folder / kept))
        text = "\n".join(said(line, folder, capsys) for line in lines.split("; "))
        golden(f"{command.replace(' ', '_')}.txt", text, HERE / "printed")


def test_every_help_is_golden(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    golden("helps.txt", "\n".join(helps()), HERE)


def helps() -> Iterator[str]:
    every = cli.parser("")
    for path, parser in [((), every), *commands_of(every)]:
        text = parser.format_help()
        assert "%%" not in text
        usage, *rest = text.split("\n\n")
        whole = "\n\n".join([" ".join(usage.split()), *map(aligned, rest)])  # lines that Pythons break elsewhere
        yield f"$ tilewright {' '.join([*path, '--help'])}\n{whole}"


def aligned(part: str) -> str:
    """Return a list of options as no Python lays it out, and other text as it is."""
    if not part.startswith(("options:", "positional arguments:")):
        return part
    part = re.sub(r"(-\w) [A-Z]+, (--[\w-]+ [A-Z]+)", r"\1, \2", part)
    return re.sub(r"(?<=\S) {2,}", "  ", re.sub(r"\n {6,}", "  ", part))
