"""What scripts get of commands: JSON and nothing else on standard output, and statuses that tell failures apart."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.tools import cli

PRINTING = """
import tilewright.language as pl

@pl.jit
def told(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.print("the sum is", pl.sum(t))
        pl.store(t, [0, 0], out)
    return out
"""
RACING = """
import tilewright.language as pl

@pl.jit
def race(x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    for r in pl.parallel(0, 8, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [6, 8]), [r, 0], out)
    return out
"""
SILENT = """
import tilewright.language as pl

@pl.jit
def silent(x: pl.Tensor[[8, 8], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 8])
"""
ENDLESS = """
import tilewright.language as pl

@pl.jit
def endless(x: pl.Tensor[[4, 4], pl.INT32], out: pl.Out[pl.Tensor[[4, 4], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        n = pl.cast(0, pl.INT32)
        pl.print("began")
        while n >= 0:
            n = pl.read(x, [0, 0]) * 0
        pl.write(out, [0, 0], n)
    return out
"""


def written(folder: Path, text: str) -> str:
    path = folder / "kernel.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def run(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tilewright", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("command", [["bench", "--rounds", "2"], ["bisect"]], ids=lambda command: command[0])
def test_what_a_kernel_prints_is_no_part_of_json(command: list[str], tmp_path: Path) -> None:
    name, *rest = command
    out, err = run(name, written(tmp_path, PRINTING), "--json", *rest).communicate(timeout=120)
    assert json.loads(out)
    assert "the sum is" in err


def test_one_pass_is_one_stage_in_json_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = written(tmp_path, RACING)
    assert cli.main(["show", path, "--pass", "OutlineScopes", "--json"]) == 0
    assert [each["stage"] for each in json.loads(capsys.readouterr().out)] == ["OutlineScopes"]
    assert cli.main(["show", path, "--pass", "Outlined", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"] == "CommandError"


def test_a_word_finds_the_same_ops_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ops", "mask", "--json"]) == 0
    found = [each["name"] for each in json.loads(capsys.readouterr().out)]
    assert cli.main(["ops", "mask"]) == 0
    assert len(found) == len(capsys.readouterr().out.strip().splitlines()) - 1
    assert "mask" in found[0]
    assert cli.main(["ops", "nosuchop", "--json"]) == 1
    assert "nosuchop" in json.loads(capsys.readouterr().out)["message"]


@pytest.mark.parametrize(("text", "said"), [(RACING, "turn r = 0 writes it"), (SILENT, "silent has no outputs")])
def test_bisect_tells_no_answer_from_a_wrong_one(
    text: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["bisect", written(tmp_path, text)]) == 2
    assert said in capsys.readouterr().err


def test_an_interrupted_command_says_so_in_a_word(tmp_path: Path) -> None:
    started = run("bench", written(tmp_path, ENDLESS))
    assert started.stdout is not None and started.stdout.readline() == "began\n"
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (out, err, started.returncode) == ("", "interrupted\n", 130)


def test_a_closed_output_is_no_crash() -> None:
    script = "import sys; sys.stdout = None; from tilewright.tools import cli; sys.exit(cli.main(['passes']))"
    assert subprocess.run([sys.executable, "-c", script], check=False, capture_output=True).stderr == b""
