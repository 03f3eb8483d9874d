"""`tilewright pto`: checks files and runs their functions on given or generated inputs."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.pto.examples.lines import example
from tilewright.tools.cli import main
from tilewright.tools.naming import CommandError
from tilewright.tools.pto import _agree  # pyright: ignore[reportPrivateUsage]

SCALE = """module {
  func.func @scale(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %by: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = arith.constant 4 : index
    %cols = arith.constant 16 : index
    %vx = pto.make_tensor_view %x, shape = [%rows, %cols], strides = [%cols, %c1] : !pto.tensor_view<?x?xf32>
    %vy = pto.make_tensor_view %y, shape = [%rows, %cols], strides = [%cols, %c1] : !pto.tensor_view<?x?xf32>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<4x16xf32>
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<4x16xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 4x16xf32>
    pto.tload ins(%px : !pto.partition_tensor_view<4x16xf32>) outs(%t : !pto.tile_buf<vec, 4x16xf32>)
    pto.tmuls ins(%t, %by : !pto.tile_buf<vec, 4x16xf32>, f32) outs(%t : !pto.tile_buf<vec, 4x16xf32>)
    pto.tstore ins(%t : !pto.tile_buf<vec, 4x16xf32>) outs(%py : !pto.partition_tensor_view<4x16xf32>)
    return
  }
}
"""  # noqa: E501


COPY = """module {
  func.func @copy(%x: !pto.ptr<f8E5M2>, %y: !pto.ptr<f8E5M2>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c64 step %c1 {
      %e = pto.load_scalar %x[%i] : !pto.ptr<f8E5M2> -> f8E5M2
      pto.store_scalar %e, %y[%i] : !pto.ptr<f8E5M2>, f8E5M2
    }
    return
  }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "scale.pto"
    path.write_text(SCALE)
    return str(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["n=1", "n=2"], "n is given twice"),
        (["n=1", "o=1.5:4"], "o points to i32, which 1.5 is not"),
        (["n=1", "o=3000000000:4"], "o points to i32, which 3000000000 is not"),
    ],
)
def test_values_are_said_once_and_fit(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "k.pto"
    path.write_text("module {\n  func.func @k(%o: !pto.ptr<i32>, %n: i32) {\n    return\n  }\n}\n")
    assert main(["pto", "run", str(path), *words]) == 1
    assert said in capsys.readouterr().err


def test_check_names_what_can_be_launched(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pto", "check", file]) == 0
    assert capsys.readouterr().out == f"{file}: @scale can be launched\n"


LAUNCHED = """module attributes {pto.target_arch = "a5"} {
  func.func private @body(%out: !pto.ptr<i32>) attributes {pto.simt_entry} {
    %c0 = arith.constant 0 : index
    %yes = arith.constant true
    %b = pto.vote_ballot %yes : i1 -> i32
    pto.stg %b, %out[%c0] : !pto.ptr<i32>, i32
    return
  }
  func.func @k(%out: !pto.ptr<i32>) {
    %c1 = arith.constant 1 : i32
    pto.simt_launch @body<<<%c1, %c1, %c1>>>(%out) : (!pto.ptr<i32>) -> ()
    return
  }
}
"""


def test_functions_of_work_items_and_cores_are_checked_where_they_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items, cores = tmp_path / "items.pto", Path(__file__).parents[1] / "pto" / "cores" / "kernels" / "one_way.pto"
    items.write_text(LAUNCHED)
    assert main(["pto", "check", str(items), str(cores)]) == 0
    assert capsys.readouterr().out == f"{items}: @k can be launched\n{cores}: @one_way can be launched\n"
    assert main(["pto", "lint", str(items)]) == 0
    assert main(["pto", "run", str(items), "out=zeros:1"]) == 0
    assert "written" in capsys.readouterr().out


def test_check_shows_the_tile_ir(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pto", "check", "--show", file]) == 0
    assert "pl.tile.mul(t_2, by)" in capsys.readouterr().out


def test_check_shows_what_is_wrong_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.pto"
    path.write_text(SCALE.replace("pto.tmuls", "pto.tmulz"))
    assert main(["pto", "check", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:13:5: ")


def test_check_says_what_is_wrong_with_each_of_several_files(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, missing = tmp_path / "broken.pto", tmp_path / "missing.pto"
    broken.write_text(SCALE.replace("pto.tmuls", "pto.tmulls"))
    files = [str(broken), str(missing), file]
    with pytest.raises(SystemExit, match="1"):
        main(["pto", "check", *files])
    out, err = capsys.readouterr()
    assert out == f"{file}: @scale can be launched\n"
    assert f"{broken}:13:5: " in err and f"{missing}: No such file" in err
    with pytest.raises(SystemExit, match="1"):
        main(["pto", "check", *files, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert [each["file"] for each in said] == files
    assert [each.get("error") for each in said] == ["PtoUnknownOpError", "FileNotFoundError", None]
    assert said[0]["line"] == 13 and said[2]["launchable"] == ["scale"]


def test_run_reads_and_writes_arrays(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.reshape(np.arange(64, dtype=np.float32), (4, 16))
    np.save(tmp_path / "x.npy", x)
    given = [f"x={tmp_path / 'x.npy'}", "y=zeros:4x16", "by=2.5"]
    assert main(["pto", "run", file, *given, "--save", str(tmp_path / "out"), "--compare"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), x * 2.5)
    out = capsys.readouterr().out
    assert "y 4x16 float32" in out and "written" in out and out.endswith("the interpreter agrees\n")


def test_run_takes_and_saves_the_bits_of_what_numpy_has_no_type_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, x, out = tmp_path / "copy.pto", tmp_path / "x.npy", tmp_path / "out"
    path.write_text(COPY)
    given = ["pto", "run", str(path), f"x={x}", "y=zeros:64", "--platform", "interpret"]
    values = np.arange(64, dtype=np.uint8)
    np.save(x, values)
    assert main([*given, "--save", str(out)]) == 0
    assert np.load(out / "y.npy").tobytes() == values.tobytes()
    assert main([*given[:3], f"x={out / 'y.npy'}", *given[4:]]) == 0
    np.save(x, np.frombuffer(values.tobytes(), ml_dtypes.float8_e5m2))
    capsys.readouterr()
    assert main(given) == 1
    assert "help: x points to float8_e5m2: save values.view(np.uint8)" in capsys.readouterr().err
    np.save(x, values.astype(np.float32))
    assert main(given) == 1
    assert "x.npy holds float32 elements, and x points to float8_e5m2" in capsys.readouterr().err


def test_run_takes_arguments_behind_options(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--entry", "scale", "--grid", "1", "--compare"]
    assert main(["pto", "run", file, *options, "x=ones:4x16", "y=zeros:4x16", "by=2.5"]) == 0
    assert capsys.readouterr().out.endswith("the interpreter agrees\n")


def test_arguments_that_nothing_takes_are_refused(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["pto", "run", file, "--grids", "2"], ["pto", "check", "--show", file, "--entry", "x"]):
        with pytest.raises(SystemExit):
            main(arguments)
        assert "unrecognized arguments" in capsys.readouterr().err


def test_the_element_that_differs_is_named_where_others_are_no_numbers_in_both() -> None:
    ours = np.array([np.nan, np.inf, 1.0, -np.inf], np.float32)
    theirs = np.array([np.nan, np.inf, 1.0, 2.0], np.float32)
    with pytest.raises(CommandError, match=r"y\[3\] is -inf, and 2 in the interpreter"):
        _agree({"y": ours}, {"y": theirs})


@pytest.mark.parametrize(("value", "status"), [("1", 0), ("false", 0), ("2", 1), ("yes", 1)])
def test_run_takes_conditions(tmp_path: Path, value: str, status: int) -> None:
    path = tmp_path / "k.pto"
    path.write_text("module { func.func @k(%v: i1) { return } }")
    assert main(["pto", "run", str(path), f"v={value}"]) == status


def test_run_asks_which_of_two_functions_of_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"
    path.write_text("module { module { func.func @k() { return } } module { func.func @k() { return } } }")
    assert main(["pto", "run", str(path), "--entry", "k"]) == 1
    assert "which function? it has k, k" in capsys.readouterr().err


def test_a_file_that_is_no_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.pto"
    path.write_bytes(b"\xff\xfe")
    assert main(["pto", "check", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}: not UTF-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x=random:64"], "no value for y, by"),
        (["x=random:64", "y=zeros:64", "by=2", "z=1"], "no parameter is called z"),
        (["x=random:64", "y=zeros:64", "by=two"], "by is f32, and 'two' is no such number"),
        (["x=noise:64", "y=zeros:64", "by=2"], "neither a .npy file nor one of random, zeros, ones, arange"),
        (["x=random:8y8", "y=zeros:64", "by=2"], "'8y8' is no shape"),
        (["x=random:64", "y=zeros:32", "by=2"], "a view does not lie inside its buffer, `y`"),
        (["x=random:64", "y=zeros:64", "by=2", "--entry", "scales"], "did you mean scale?"),
        (["x=random:64", "y=zeros:64", "by=2", "--grid", "0"], "--grid must be 1 or more"),
        (["x=random:64", "y=zeros:64", "by=2", "--seed", "-1"], "--seed must be 0 or more, got -1"),
        (["x=missing.npy", "y=zeros:64", "by=2"], "missing.npy"),
        (["x=zeros:99999999999999", "y=zeros:64", "by=2"], "x=zeros:99999999999999: "),
        (["x=random:64", "y=zeros:64", "by=1e39"], "by is f32, which cannot hold 1e39"),
    ],
)
def test_run_says_what_is_wrong(
    file: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pto", "run", file, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_fmt_lays_files_out_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "untidy.pto"
    path.write_text(SCALE.replace("    ", " "))
    with pytest.raises(SystemExit, match="1"):
        main(["pto", "fmt", "--check", str(path)])
    assert "would be laid out anew" in capsys.readouterr().out and path.read_text() != SCALE
    assert main(["pto", "fmt", str(path)]) == 0 and path.read_text() == SCALE
    assert main(["pto", "fmt", "--check", str(path)]) == 0


def test_fmt_refuses_what_does_not_parse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.pto"
    path.write_text(text := SCALE.replace("[%rows, %cols]", "[%rows %cols]"))
    assert main(["pto", "fmt", str(path)]) == 1 and path.read_text() == text
    assert capsys.readouterr().err.startswith(f"{path}:7:")


def test_lint_shows_findings_and_ends_with_one(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pto", "lint", file]) == 0
    wanting = tmp_path / "wanting.pto"
    wanting.write_text(SCALE.replace("    return", "    %c9 = arith.constant 9 : index\n    return"))
    with pytest.raises(SystemExit, match="1"):
        main(["pto", "lint", str(wanting)])
    assert capsys.readouterr().out.startswith(f"{wanting}:15:11: nothing uses `%c9`")
    assert main(["pto", "lint", "--list"]) == 0 and "unused-value" in capsys.readouterr().out


def test_diff_is_by_structure(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.pto"
    other.write_text(SCALE.replace("%t", "%tile"))
    assert main(["pto", "diff", file, str(other)]) == 0 and capsys.readouterr().out == ""
    other.write_text(SCALE.replace("tmuls", "tadds"))
    with pytest.raises(SystemExit, match="1"):
        main(["pto", "diff", "--context", "0", file, str(other)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [["-", "pto.tmuls"], ["+", "pto.tadds"]]


def test_diff_shows_no_fewer_lines_than_none(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pto", "diff", "--context", "-3", file, file]) == 1
    assert capsys.readouterr().err == "--context must be 0 or more, got -3\n"


def test_every_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = example("pto.tneg")
    path = tmp_path / "example.pto"
    path.write_text(text, encoding="utf-8")
    commands: dict[tuple[str, ...], object] = {
        ("check",): [{"file": str(path), "launchable": ["example"]}],
        ("lint",): [],
        ("fmt", "--check"): {"changed": []},
        ("diff", str(path)): [],
    }
    for (word, *more), wanted in commands.items():
        assert main(["pto", word, *more, str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == wanted
    assert main(["pto", "run", str(path), "x_gm=0.5:8x64", "out_gm=zeros:8x64", "--compare", "--json"]) == 0
    _, out = json.loads(capsys.readouterr().out)
    assert out == {
        "name": "out_gm",
        "shape": [8, 64],
        "dtype": "float32",
        "holds": "-0.5 to -0.5, mean -0.5",
        "written": True,
    }
    assert main(["pto", "explain", "tneg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["example"] == text


def test_fmt_keeps_the_line_ends_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_bytes(b"module {\r\nfunc.func @k() {\r\n return\r\n}\r\n}\r\n")
    assert main(["pto", "fmt", str(path)]) == 0
    assert path.read_bytes() == b"module {\r\n  func.func @k() {\r\n    return\r\n  }\r\n}\r\n"
