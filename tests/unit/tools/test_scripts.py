"""What scripts get of commands: JSON and nothing else on standard output, and statuses that tell failures apart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from unit.tools.test_cli import RACING

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


DEFAULTED = """
import numpy as np
import tilewright.language as pl
M = pl.dynamic("M")
Rows = pl.Tensor[[M, 64], pl.FP32]

@pl.jit
def kernel(x: Rows, out: pl.Out[Rows], n: int = 3, mode: str = "none"):
    for r in pl.parallel(0, M, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [8, 64]) * float(n)
            pl.store(pl.relu(t) if mode == "relu" else t, [r, 0], out)
    return out

if __name__ == "__main__":
    kernel(np.ones((8, 64), np.float32))
    raise ValueError("its own mistake")
"""


@pytest.mark.parametrize("said", [["M=16"], ["x=16x64"], ["x=16X64", "n=5"], ["x=float32:16x64", "mode=relu"]])
def test_defaults_stand_for_what_is_not_said(
    said: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = written(tmp_path, DEFAULTED)
    assert cli.main(["bench", path, *said, "--rounds", "1"]) == 0, capsys.readouterr().err
    assert cli.main(["show", path, *said]) == 0
    assert ("relu" in capsys.readouterr().out) == ("mode=relu" in said)


OPEN = """
import tilewright.language as pl

@pl.jit
def twice(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + pl.load(x, [0, 0], x.shape), [0, 0], out)
    return out
"""


@pytest.mark.parametrize(
    ("name", "shown"), [("bf16", "BF16"), ("bfloat16", "BF16"), ("float16", "FP16"), ("FP16", "FP16")]
)
def test_element_types_go_by_all_their_names(
    name: str, shown: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["show", written(tmp_path, OPEN), f"x={name}:16x64"]) == 0
    assert f"x: pl.Tensor[[16, 64], pl.{shown}]" in capsys.readouterr().out


def test_a_script_that_fails_shows_what_it_had_called(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, page = written(tmp_path, DEFAULTED), tmp_path / "page.html"
    assert cli.main(["explore", path, "--run", "-o", str(page)]) == 0
    told = capsys.readouterr().err
    assert page.exists() and "its own mistake" in told and "tilewright" not in told.replace(str(tmp_path), "")


def test_nothing_is_written_over_what_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = written(tmp_path, DEFAULTED)
    assert cli.main(["explore", path, "M=16", "-o", path]) == 1
    assert "written over" in capsys.readouterr().err
    assert Path(path).read_text(encoding="utf-8") == DEFAULTED


def test_letters_that_a_terminal_does_not_have_are_escaped(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        DEFAULTED.replace(" t = pl", " \u03b1 = pl")
        .replace("relu(t)", "relu(\u03b1)")
        .replace("else t,", "else \u03b1,"),
    )
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "show", path],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "") and "\\u03b1" in done.stdout


def test_a_file_imports_what_lies_beside_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    helper = "import tilewright.language as pl\n\n@pl.jit.inline\ndef halved(t):\n    return t * 0.5\n"
    (tmp_path / "lying_beside.py").write_text(helper, encoding="utf-8")
    text = OPEN.replace("\n\n@pl.jit", "\nfrom lying_beside import halved\n\n@pl.jit").replace("out)", "out)  #")
    path = written(
        tmp_path, text.replace("pl.store(pl.load", "pl.store(halved(pl.load", 1).replace("x.shape) +", "x.shape)) +")
    )
    assert cli.main(["show", path, "x=4x4"]) == 0
    assert "0.5" in capsys.readouterr().out
    assert str(tmp_path) not in sys.path
