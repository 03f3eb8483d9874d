"""The command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
import tilewright.language as pl
from tilewright import ir
from tilewright.frontend.programs import as_program
from tilewright.passes.pipeline import DEFAULT
from tilewright.tools import cli

KERNEL = """
@pl.function(type=pl.FunctionType.InCore)
def double(x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    t = pl.load(x, [0, 0], [8, 8])
    u = pl.load(x, [0, 0], [8, 8])
    out = pl.store(t + u, [0, 0], out)
    return out
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "double.py"
    path.write_text(KERNEL, encoding="utf-8")
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 1
    result = capsys.readouterr()
    assert result.out == ""
    return result.err


def test_show_prints_a_program_that_reads_back(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", str(kernel), "--types")
    assert ir.structural_equal(pl.parse(text), as_program(pl.loads(kernel)))


def test_show_leaves_types_of_locals_out_unless_asked(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "t = pl.tile.load" in printed(capsys, "show", str(kernel))
    assert "t: pl.Tile[[8, 8], pl.FP32] = pl.tile.load" in printed(capsys, "show", str(kernel), "--types")


def test_show_after_a_pass_has_what_the_pass_did(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "show", str(kernel)).count("pl.tile.load") == 2
    assert printed(capsys, "show", str(kernel), "--pass", "CommonSubexpressions").count("pl.tile.load") == 1


def test_show_all_has_the_passes_that_changed_something(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    titles = [line for line in printed(capsys, "show", str(kernel), "--all").splitlines() if line.startswith("# ")]
    names = [title[2:].partition(":")[0] for title in titles if "tilewright.program" not in title]
    assert names[0] == "front end"
    assert "CommonSubexpressions" in names and "UnrollLoops" not in names


JIT = """
import tilewright.language as pl

M = pl.dynamic("M")
Matrix = pl.Tensor[[M, 32], pl.FP32]

@pl.jit.inline
def times(t, factor):
    return t * factor

@pl.jit
def scale(x: Matrix, factor: pl.FP32, out: pl.Out[Matrix]):
    for row in pl.parallel(0, M, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(times(pl.load(x, [row, 0], [8, 32]), factor), [row, 0], out)
    return out
"""

SECOND = """
@pl.jit
def copy(x: pl.Tensor, n: int, out: pl.Out[Matrix]):
    return out
"""


@pytest.fixture
def jit(tmp_path: Path) -> Path:
    path = tmp_path / "scale.py"
    path.write_text(JIT, encoding="utf-8")
    return path


def test_show_reads_a_jit_kernel_by_its_annotations(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", str(jit))
    signature = "def scale(self, x: pl.Tensor[[M, 32], pl.FP32], factor: pl.Scalar[pl.FP32], "
    assert signature in text and "pl.tile.mul(load, factor)" in text
    assert printed(capsys, "show", str(jit), "--kernel", "scale") == text


def test_what_a_file_prints_is_no_part_of_what_is_shown(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", str(jit))
    jit.write_text(f"{JIT}\nprint('loaded')\n", encoding="utf-8")
    assert cli.main(["show", str(jit)]) == 0
    assert capsys.readouterr() == (text, "loaded\n")


BARE = """
@pl.jit
def product(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.matmul(pl.load(x, [0, 0], x.shape), pl.load(w, [0, 0], w.shape)), [0, 0], out)
"""


def test_an_output_that_nothing_tells_of_can_be_said(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jit.write_text(BARE, encoding="utf-8")
    given = ("show", str(jit), "x=16x32", "w=32x16")
    assert "help: behind the file, out=64x128 says its shape" in refused(capsys, *given)
    assert "out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]" in printed(capsys, *given, "out=16x16")


def test_show_reads_a_file_with_a_dataclass(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", str(jit))
    jit.write_text(
        "import dataclasses\n" + JIT + "\n@dataclasses.dataclass\nclass C:\n    n: int = 1\n", encoding="utf-8"
    )
    assert printed(capsys, "show", str(jit)) == text


def test_show_sends_pto_text_to_the_command_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "show", "kernel.pto")
    assert message == "kernel.pto is PTO text\n    help: tilewright pto check --show kernel.pto\n"


def test_show_asks_which_of_several_kernels(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jit.write_text(JIT + SECOND, encoding="utf-8")
    message = refused(capsys, "show", str(jit))
    assert "Multiple @pl.jit kernels found: scale, copy" in message and "as in FILE:scale" in message
    assert "def scale(" in printed(capsys, "show", str(jit), "--kernel", "scale")


def test_an_unknown_kernel_is_told_the_nearest_name(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "show", str(jit), "--kernel", "scal")
    assert message == "no @pl.jit kernel is called scal\n    help: did you mean scale?\n"
    assert refused(capsys, "show", str(jit), "--kernel", "x").endswith("help: the file has scale\n")


def test_show_says_which_annotations_a_kernel_lacks(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jit.write_text(JIT + SECOND, encoding="utf-8")
    message = refused(capsys, "show", str(jit), "--kernel", "copy")
    assert message.startswith(f"{jit}:19:10: in kernel `copy`: only a call tells the shape and dtype of `x`")
    assert "help: say x=fp32:64x128 behind the file" in message
    jit.write_text(JIT + SECOND.replace("x: pl.Tensor,", "x: Matrix,"), encoding="utf-8")
    assert "only a call tells the type of `n`" in refused(capsys, "show", str(jit), "--kernel", "copy")


def test_an_unknown_pass_is_told_the_nearest_name(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "show", str(kernel), "--pass", "DeadCod")
    assert message == "no pass is called DeadCod\n    help: did you mean DeadCode?\n"


def test_a_mistake_in_a_kernel_is_shown_without_a_traceback(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.write_text(KERNEL.replace("t + u", "t + v"), encoding="utf-8")
    message = refused(capsys, "show", str(kernel))
    assert message.startswith(f"{kernel}:6:")
    assert "out = pl.store(t + v" in message and "Traceback" not in message


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "show", str(tmp_path / "none.py")) == f"{tmp_path / 'none.py'}: No such file or directory\n"


def test_a_file_that_is_no_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "image.py").write_bytes(b"\xff\xfe\x00")
    assert "image.py is no text" in refused(capsys, "show", str(tmp_path / "image.py"))


def test_a_file_is_read_in_the_encoding_that_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\n# \xe9\n" + KERNEL.encode())
    assert "double" in printed(capsys, "show", str(path))
    path.write_bytes(b"# \xe9\n" + KERNEL.encode())
    assert f"{path} is no text: " in refused(capsys, "show", str(path))


def test_a_file_without_kernels_is_told_of_jit_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.py"
    path.write_text("x = 1\n")
    said = refused(capsys, "show", str(path))
    assert "No @pl.jit kernel found" in said and "help: decorate a function with @pl.jit" in said


def test_a_script_that_ends_while_it_is_read_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ends.py"
    path.write_text("import sys\nsys.exit(3)\n")
    assert f"{path}:2: it ends (SystemExit: 3) before its kernels are read" in refused(capsys, "show", str(path))


@pytest.mark.parametrize("command", ["show", "bench", "access", "bisect"])
@pytest.mark.parametrize("shape", ["99999999x9999999", "99999999999999999999x8"])
def test_a_tensor_that_fits_nowhere_is_refused(
    command: str, shape: str, jit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, command, f"{jit}:scale", f"x={shape}")
    assert f"a tensor of {shape} does not fit into memory: " in said and "Traceback" not in said


def test_what_is_wrong_is_an_object_where_scripts_ask(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = next(n for n, text in enumerate(kernel.read_text().splitlines(), start=1) if "pl.load" in text)
    kernel.write_text(kernel.read_text().replace("pl.load", "pl.laod"))
    assert cli.main(["show", str(kernel), "--json"]) == 1
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert (told["file"], told["line"], said.err) == (str(kernel), line, "")
    assert told["error"].endswith("Error") and told["message"] in told["text"] and "laod" in told["message"]
    assert cli.main(["show", str(kernel)]) == 1
    assert capsys.readouterr() == ("", f"{told['text']}\n")
    assert cli.main(["show", str(kernel.with_name("none.py")), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["error"], told["file"], told["line"]) == ("FileNotFoundError", str(kernel.with_name("none.py")), None)


@pytest.mark.parametrize("command", ["show", "bench", "cache ls", "pto check"])
def test_an_unknown_option_shows_the_usage_of_its_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = [] if command == "cache ls" else ["some.file"]
    with pytest.raises(SystemExit) as left:
        cli.main([*command.split(), *file, "--frobnicate"])
    said = capsys.readouterr().err
    assert left.value.code == 2 and said.startswith(f"usage: tilewright {command} ")
    assert f"tilewright {command}: error: unrecognized arguments: --frobnicate" in said


def test_ops_lists_every_op_with_its_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "ops").splitlines()
    assert any(line.split()[:3] == ["pl.exp", "Return", "e"] for line in lines)
    assert any(line.split()[0] == "pl.array.create" for line in lines if line)


@pytest.mark.parametrize("name", ["add", "adds", "pl.add", "tile.add", "pl.tensor.add"])
def test_ops_finds_an_op_under_any_of_its_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "pl.add(lhs: X | Number, rhs: X | Number) -> X" in printed(capsys, "ops", name)


def test_ops_shows_both_ops_that_share_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "ops", "create")
    assert "pl.create_tensor(" in text and "pl.create_tile(" in text


def test_an_unknown_op_is_told_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "ops", "rowmax") == "no op is called rowmax\n    help: did you mean row_max?\n"
    assert "help: pl.matmul(a, b) is the matrix product" in refused(capsys, "ops", "torch.einsum")
    assert "help: a tile has a fixed shape" in refused(capsys, "ops", "np.nonzero")
    assert "help: `tilewright ops` lists them" in refused(capsys, "ops", "torch.svd")


@pytest.mark.parametrize("name", ["np.concatenate", "torch.cat", "cat"])
def test_ops_finds_an_op_by_its_names_elsewhere(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "ops", name)
    assert "pl.concat(src0: X, src1: X) -> X" in text and "Elsewhere: `np.concatenate`" in text


def test_ops_lists_what_is_about_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "ops", "logarithm").splitlines()
    assert {"pl.log", "pl.log2", "pl.log10", "pl.log1p"} <= {line.split()[0] for line in lines if line}


def test_passes_are_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "passes").splitlines()
    assert [line.split()[1] for line in lines] == [each.name for each in DEFAULT]


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    assert "tilewright show kernel.py --all" in capsys.readouterr().out


def test_the_package_runs_as_a_command() -> None:
    run = subprocess.run([sys.executable, "-m", "tilewright", "--version"], check=True, stdout=subprocess.PIPE)
    assert run.stdout.decode().split() == ["tilewright", tilewright.__version__]


def test_show_launches_says_what_runs_side_by_side(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "show", str(jit), "--launches").split("\n")
    assert lines[1] == "scale. what it starts, in order"
    assert lines[2].split() == "1 parallel row [0:M:8] reads x; writes out".split()


def test_json_is_of_what_was_asked_for(jit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale = f"{jit}:scale"
    (launch,) = json.loads(printed(capsys, "show", scale, "--launches", "--json"))["scale"]
    assert launch == {"what": "parallel row [0:M:8]", "does": "reads x; writes out"}
    (text,) = json.loads(printed(capsys, "show", scale, "--pto", "--json"))
    assert text == {"stage": "PTO", "text": printed(capsys, "show", scale, "--pto")}


RACING = """
import tilewright.language as pl

@pl.jit
def race(x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
    for r in pl.parallel(0, 8, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [6, 8]), [r, 0], out)
    return out
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bench", "{}", "--rounds", "0"], "--rounds takes 1 or more, got 0"),
        (["bisect", "{}", "--seed", "-1"], "--seed must be 0 or more, got -1"),
        (["access", "{}", "y=3x3"], "no parameter or axis is called y\n    help: there are x, out"),
        (["show", "{}", "N=3"], "no parameter or axis is called N\n    help: there are x, out"),
        (["bench", "{}", "x=3x3"], "x"),
        (["explain", "{}", "x=8"], "x"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "race.py"
    path.write_text(RACING, encoding="utf-8")
    assert said in refused(capsys, *(text.format(path) for text in arguments))


def test_json_of_a_pass_is_what_that_pass_left(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "show", str(kernel), "--pass", "OutlineScopes")
    found = json.loads(printed(capsys, "show", str(kernel), "--pass", "OutlineScopes", "--json"))
    assert found == [{"stage": "OutlineScopes", "text": text}]
    assert cli.main(["show", str(kernel), "--pass", "Nope", "--json"]) == 1
    assert "no pass is called Nope" in json.loads(capsys.readouterr().out)["message"]


def test_json_of_ops_has_what_the_list_has(capsys: pytest.CaptureFixture[str]) -> None:
    listed = printed(capsys, "ops", "mask").splitlines()[2:]
    found = json.loads(printed(capsys, "ops", "mask", "--json"))
    assert len(found) == len(listed) > 3
    named = ["mask" in each["name"] for each in found]
    assert named == sorted(named, reverse=True), "those that are called so come first"
    assert cli.main(["ops", "nosuchop", "--json"]) == 1
    assert "no op is called nosuchop" in json.loads(capsys.readouterr().out)["message"]


def test_no_help_shows_how_it_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "explore", "access", "bench", "explain", "bisect", "cache", "doctor"):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        assert "%%" not in capsys.readouterr().out


def test_the_doctor_says_what_there_is_for_each_back_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name}. takes memory of" in said for name in ("cpu", "interpret", "cuda"))
    assert "processor" in said and "Triton" in said and "GPU" in said
