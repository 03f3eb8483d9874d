"""The explorer's commands, the benchmark's, and what shells complete."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Golden
from pages import ROOT

from tilewright.explore.writer import unpacked
from tilewright.tools import cli

KERNELS = """
import tilewright.language as pl

@pl.jit
def scale(x: pl.Tensor, n: int, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, 24, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [16, 8]) * n, [r, 0], out)
    return out

@pl.jit
def wrong(x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    t = pl.load(x, [0, 0], [8, 8])
    pl.store(t, [0, 0], out)
    return out
"""


CALL = """
if __name__ == "__main__":
    import numpy as np

    x = np.ones((40, 8), np.float32)
    scale(x, 3, x.copy())
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return path


def test_explore_writes_a_page_for_arguments_that_are_said(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = kernels.with_name("page.html")
    said = ["x=fp16:40x8", "n=3", "out=fp16:40x8"]
    assert cli.main(["explore", f"{kernels}:scale", *said, "--access", "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}\n"
    data = unpacked(page.read_text(encoding="utf-8"))
    assert data["signature"] == "scale(x: tensor[40, 8, fp16], n: scalar[index], out: tensor[40, 8, fp16])"
    assert len(data["access"]["turns"]) == 3


def test_explore_shows_the_program_that_a_script_has_called_for(
    kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels.write_text(KERNELS + CALL, encoding="utf-8")
    assert cli.main(["explore", str(kernels), "--run", "-o", str(kernels.with_name("page.html"))]) == 0
    data = unpacked(kernels.with_name("page.html").read_text(encoding="utf-8"))
    assert data["title"] == "scale" and ["found by", "x"] in [[fact["group"], fact["name"]] for fact in data["facts"]]


def test_a_kernel_that_only_a_call_tells_about_gets_no_page(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explore", f"{kernels}:scale", "-o", str(kernels.with_name("page.html"))]) == 1
    assert "help: say x=fp32:64x128" in capsys.readouterr().err
    assert not kernels.with_name("page.html").exists()


def test_a_kernel_that_is_refused_gets_a_page_with_the_stage_that_refused_it(
    kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = kernels.with_name("page.html")
    assert cli.main(["explore", f"{kernels}:wrong", "-o", str(page)]) == 1
    assert "in kernel `wrong`" in capsys.readouterr().err
    data = unpacked(page.read_text(encoding="utf-8"))
    assert (data["refusal"]["stage"], data["refusal"]["kind"]) == ("CheckControlPlane", "ControlPlaneComputeError")
    assert data["refusal"]["place"] == 13 and [each["name"] for each in data["passes"]] == ["FrontEnd"]


def test_a_page_that_is_printed_is_json_also_of_a_kernel_that_is_refused_and_no_file(
    kernels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kernels.parent)
    assert cli.main(["explore", "kernels.py:wrong", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["refusal"]["stage"] == "CheckControlPlane" and "in kernel `wrong`" in said.err
    assert cli.main(["explore", "kernels.py:scale", "x=40x8", "n=3", "out=40x8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "scale"
    assert not list(kernels.parent.glob("*.html"))


def test_explore_reads_pto_text_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explore", str(ROOT / "examples/pto/softmax.pto"), "-o", str(tmp_path / "page.html")]) == 0
    data = unpacked((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert [source["name"] for source in data["sources"]] == ["softmax.pto"]
    (llvm,) = [text for text in data["code"] if text["name"] == "llvm"]
    assert len(set(llvm["places"])) > 10


def test_access_says_what_is_remarkable(kernels: Path, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    assert cli.main(["access", f"{kernels}:scale", "x=40x8", "n=3", "out=40x8"]) == 0
    golden("commands/access.txt", capsys.readouterr().out.replace(str(kernels), "kernels.py"))


TOUCHED = """
import tilewright.language as pl

M = pl.dynamic("M")

@pl.jit
def added(x: pl.Tensor[[M, 16], pl.FP32], out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]):
    for r in pl.parallel(M):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [1, 16]), [0, 0], out, atomic=pl.AtomicType.Add)
    return out

@pl.jit
def unwritten(x: pl.Tensor[[M, 16], pl.FP32], out: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
    s = pl.create_tensor([M, 16], dtype=pl.FP32)
    for i in pl.parallel(0, M // 2):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, 0], [1, 16]), [i, 0], s)
    for i in pl.parallel(0, M):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(s, [i, 0], [1, 16]) * 2.0, [i, 0], out)
    return out

@pl.jit
def failing(x: pl.Tensor[[M, 16], pl.FP32], out: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
    for i in pl.parallel(0, M):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, 0], [1, 16]) + pl.create_tile([1, 16], dtype=pl.FP32), [i, 0], out)
    return out
"""


def test_turns_that_add_to_one_element_are_counted_and_are_no_overlap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "touched.py"
    path.write_text(TOUCHED)
    assert cli.main(["access", f"{path}:added", "M=16"]) == 0
    said = capsys.readouterr().out
    assert "adds to 16 elements, 256 times in all" in said and "overlap" not in said


def test_what_nobody_wrote_is_a_finding_on_a_page_without_speed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, page = tmp_path / "touched.py", tmp_path / "page.html"
    path.write_text(TOUCHED)
    assert cli.main(["access", f"{path}:unwritten", "M=8", "-o", str(page)]) == 0
    assert "undefined" in capsys.readouterr().out
    data = unpacked(page.read_text(encoding="utf-8"))
    assert "undefined" in [each["kind"] for each in data["access"]["findings"]] and data["speed"] is None


def test_a_call_that_fails_gets_a_page_that_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "touched.py", tmp_path / "page.html"
    path.write_text(TOUCHED)
    assert cli.main(["explore", f"{path}:failing", "M=8", "--access", "-o", str(page)]) == 1
    said = capsys.readouterr()
    assert said.out == f"{page}: why the call failed\n" and "nobody wrote" in said.err
    data = unpacked(page.read_text(encoding="utf-8"))
    assert data["refusal"]["stage"] == "the call" and data["refusal"]["message"] in said.err
    assert data["launches"] and data["code"]
    assert [each["kind"] for each in data["access"]["findings"]] == ["undefined"], "what it never came to is no gap"


def test_a_page_says_why_it_has_no_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "touched.py", tmp_path / "page.html"
    path.write_text(TOUCHED)
    assert cli.main(["explore", f"{path}:added", "M=5000", "--access", "-o", str(page)]) == 0
    assert (
        "without a picture of what it touches: a picture shows arguments of 65536 elements" in capsys.readouterr().err
    )
    data = unpacked(page.read_text(encoding="utf-8"))
    assert data["access"] is None and data["speed"] is not None


def test_a_page_of_a_refused_kernel_is_called_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = TOUCHED.partition("@pl.jit\ndef unwritten")[0].replace("pl.load(", "pl.lode(")
    Path("file.py").write_text(text)
    assert cli.main(["explore", "file.py"]) == 1
    assert capsys.readouterr().out == "added.html: why it was refused\n"
    assert unpacked(Path("added.html").read_text(encoding="utf-8"))["title"] == "added"


def test_bench_prints_times_for_scripts(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", f"{kernels}:scale", "x=40x8", "n=3", "out=40x8", "--rounds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "scale" and len(found["call_us"]) == len(found["program_us"]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x"], "'x' is not NAME=VALUE"),
        (["x=fp33:4x4", "n=3"], "no element type is called fp33\n    help: did you mean fp32?"),
        (["x=4x-1", "n=3"], "extents must not be negative, got 4x-1"),
        (["x=40x8", "n=three"], "n=three is no number"),
    ],
)
def test_arguments_that_say_nothing_are_refused(
    kernels: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(["show", f"{kernels}:scale", *arguments]) == 1
    assert capsys.readouterr().err.startswith(message)


def test_json_has_what_show_ops_and_passes_print(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", f"{kernels}:scale", "x=40x8", "n=3", "out=40x8", "--all", "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)
    assert [stages[0]["stage"], stages[-1]["stage"]] == ["FrontEnd", "OutlineScopes"]
    assert cli.main(["ops", "row_max", "--json"]) == 0
    (op,) = json.loads(capsys.readouterr().out)
    assert op["name"] == "row_max" and "Tile" in op["signatures"][0]
    assert cli.main(["passes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["file"] == "passes/control_plane.py"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "explore" in script and "platform" in script
    if shell == "bash" and shutil.which("bash"):
        assert _completed(script, "access --j") == ["--json"]


def _completed(script: str, line: str, folder: Path | None = None) -> list[str]:
    words = f"tilewright {line}".split(" ")
    ask = (
        f'COMP_WORDS=({" ".join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _tilewright; echo "${{COMPREPLY[@]}}"'
    )
    found = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True, cwd=folder)
    assert found.stderr == ""
    return found.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_values_are_completed_and_files_only_where_there_may_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernel.py").touch()
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    for line, expected in [
        ("show kernel.py --pass Outl", ["OutlineScopes"]),
        ("bench kernel.py --platform i", ["interpret"]),
        ("ops row_mi", ["row_min"]),
        ("pto explain trowsu", ["trowsum"]),
        ("completion z", ["zsh"]),
        ("k", []),
        ("cache k", []),
        ("cache show k", []),
        ("show k", ["kernel.py"]),
        ("explore kernel.py -o k", ["kernel.py"]),
        ("pto check k", ["kernel.py"]),
    ]:
        assert _completed(script, line, tmp_path) == expected, line
    assert cli.main(["completion", "fish"]) == 0
    fish = capsys.readouterr().out.splitlines()
    assert any("-l pass -x -a 'CheckControlPlane" in line for line in fish)
    assert "complete -c tilewright -n '__fish_seen_subcommand_from passes' -f" in fish
