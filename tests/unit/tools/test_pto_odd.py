"""Odd files: each command on PTO text reads them, or says in a line that begins with the file why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.tools.cli import main

TEXT = b"module {\n  func.func @k(%x: i32, %p: !pto.ptr<i32, gm>) {\n    return\n  }\n}\n"
READ: dict[str, bytes] = {
    "crlf": TEXT.replace(b"\n", b"\r\n"),
    "lines that end in both ways": TEXT.replace(b"\n", b"\r\n", 2),
    "tabs": TEXT.replace(b"  ", b"\t"),
    "a mark of its order of bytes": b"\xef\xbb\xbf" + TEXT,
    "a name outside ASCII": TEXT.replace(b"@k", '@"größe 核"'.encode()),
    "a comment outside ASCII": "// größe 核 \u2028 \x0c \x85\n".encode() + TEXT,
    "no end of its last line": TEXT.rstrip(),
    "regions 60 deep": TEXT.replace(
        b"return", b"%c = arith.constant true\n" + b"scf.if %c {\n" * 60 + b"}\n" * 60 + b"return"
    ),
    "a long string": TEXT.replace(b"module", b'module attributes {a = "' + b"x" * 5_000 + b'"}'),
}
REFUSED: dict[str, bytes] = {
    "nothing": b"",
    "blanks": b" \n\t\n",
    "a comment alone": b"// nothing\n",
    "bytes": bytes(range(256)),
    "zeros": bytes(64),
    "UTF-16": TEXT.decode().encode("utf-16"),
    "a value outside ASCII": TEXT.replace(b"%x", "%größe".encode()),
    "an end before its time": TEXT[:40],
    "braces": b"{" * 50_000,
    "parentheses": b"(" * 50_000,
    "regions 3,000 deep": TEXT.replace(b"return", b"scf.if %x {\n" * 3_000 + b"}\n" * 3_000),
    "modules 3,000 deep": b"module {\n" * 3_000 + b"}\n" * 3_000,
    "attributes 20,000 deep": TEXT.replace(
        b"module", b"module attributes {a = " + b"[" * 20_000 + b"]" * 20_000 + b"}"
    ),
    "types 20,000 deep": TEXT.replace(b"i32", b"vector<2x" * 20_000),
    "a number of 10,000 digits": TEXT.replace(b"return", b"%c = arith.constant " + b"9" * 10_000 + b" : i32"),
    "a tile of 10,000 digits": TEXT.replace(b": i32", b": !pto.tile_buf<vec, " + b"9" * 10_000 + b"x64xf32>"),
    "digits outside ASCII": TEXT.replace(b"return", "%c = arith.constant ٣ : i32".encode()),
}
COMMANDS = {"fmt": ["--check"], "lint": [], "diff": ["{plain}"], "check": []}


def run(command: str, file: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the status of a command on a file, and all that it says."""
    plain = folder / "plain.pto"
    plain.write_bytes(TEXT)
    try:
        status = main(["pto", command, str(file), *(word.format(plain=plain) for word in COMMANDS[command])])
    except SystemExit as found:  # what a command finds is no mistake of its caller
        status = int(found.code or 0)
    said = capsys.readouterr()
    return status, said.out + said.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("odd", READ)
def test_what_is_odd_and_right_is_read(
    command: str, odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.pto"
    file.write_bytes(READ[odd])
    status, said = run(command, file, tmp_path, capsys)
    assert status in (0, 1) and "expected" not in said and "not UTF-8" not in said
    assert command != "check" or (status == 0 and "can be launched" in said)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("odd", REFUSED)
def test_what_is_no_text_is_refused_by_its_name(
    command: str, odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.pto"
    file.write_bytes(REFUSED[odd])
    status, said = run(command, file, tmp_path, capsys)
    assert status == 1 and said.startswith(f"{file}:")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("odd", "why"), [
    ("missing.pto", "No such file"), ("folder", "Is a directory"), ("file/x.pto", "Not a directory"),
])  # fmt: skip
def test_what_is_no_file_is_refused_by_its_name(
    command: str, odd: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(TEXT)
    status, said = run(command, tmp_path / odd, tmp_path, capsys)
    assert status == 1 and said.startswith(f"{tmp_path / odd}: {why}")


@pytest.mark.parametrize("odd", READ)
def test_a_file_that_is_laid_out_says_what_it_said_and_stays_so(
    odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, before = tmp_path / "odd.pto", tmp_path / "before.pto"
    for each in (file, before):
        each.write_bytes(READ[odd])
    assert main(["pto", "fmt", str(file)]) == 0
    assert main(["pto", "fmt", str(file), "--check"]) == 0
    assert main(["pto", "diff", str(before), str(file)]) == 0
    assert (b"\r\n" in file.read_bytes()) == (b"\r\n" in READ[odd])
    capsys.readouterr()


@pytest.mark.parametrize("name", ["", "pto.", "nosuch", "größe", "../x", "tadd tadd", "%x", "x" * 3_000, "\0"])
def test_an_op_there_is_not_is_not_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pto", "explain", name]) == 1
    assert capsys.readouterr().err.startswith("no op of PTO is called pto.")
