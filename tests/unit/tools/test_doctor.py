"""The doctor: each line says what there is, what follows from it, and what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import GOLDEN, Golden

from tilewright import settings
from tilewright.native import matrix_units
from tilewright.tools import cli, findings


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    assert cli.main(["doctor", "--json"]) == 0
    return {f"{each['group']} {each['name']}": each for each in json.loads(capsys.readouterr().out)}


def test_every_line_says_what_follows(
    capsys: pytest.CaptureFixture[str], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in settings.KNOWN:
        monkeypatch.delenv(settings.PREFIX + name, raising=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    found = said(capsys)
    assert [name for name, each in found.items() if not each["value"] or not each["follows"]] == []
    rows = [name for name in found if not re.match(r"cuda (driver|running|GPU)|settings", name)]
    golden("doctor.txt", "\n".join(rows) + "\n", GOLDEN / "commands")
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "unset TILEWRIGHT_CACHE_DIR to keep it" in text


def test_what_is_missing_or_too_old_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(package: str) -> str:
        if package == "torch":
            raise findings.PackageNotFoundError
        return "0.1"

    monkeypatch.setattr(findings, "version", version)
    found = said(capsys)
    assert (found["packages torch"]["value"], found["packages torch"]["help"]) == ("none", "pip install torch")
    assert found["packages NumPy"]["follows"] == "older than 1.26, which is the oldest known to work"


def test_amx_is_told_apart_from_the_permission_to_use_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "amx", lambda: ("amx_bf16", "amx_tile"))
    for is_permitted, wanted in ((True, "amx_bf16, amx_tile, permitted"), (False, "not asked for by this process")):
        monkeypatch.setattr(findings, "is_permitted", lambda allowed=is_permitted: allowed)
        assert wanted in said(capsys)["processor AMX"]["value"]
    assert isinstance(matrix_units.is_permitted(), bool)


@pytest.mark.parametrize(
    ("objection", "follows"),
    [
        ("", "products of BF16 and INT8 run on its tiles"),
        ("TILEWRIGHT_AMX is off", "products run on vectors: TILEWRIGHT_AMX is off"),
    ],
)
def test_amx_that_no_code_uses_is_said_with_the_reason(
    objection: str, follows: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "amx", lambda: ("amx_bf16", "amx_tile"))
    monkeypatch.setattr(findings, "objection", lambda: objection)
    assert said(capsys)["processor AMX"]["follows"] == follows


def test_a_damaged_cache_and_a_misspelt_setting_are_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / f"ab{'0' * 62}.artifact.{findings_format()}").write_bytes(b"broken")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_TREADS", "2")
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "4000")
    found = said(capsys)
    assert "1 looked at, 1 damaged" in found["cache entries"]["follows"]
    assert "cache verify --delete" in found["cache entries"]["help"]
    assert found["settings TILEWRIGHT_TREADS"]["follows"] == "nobody reads it"
    assert "wait for them" in found["threads threads"]["help"]


def findings_format() -> int:
    from tilewright.keep.payload import FORMAT

    return FORMAT


def test_the_settings_that_are_known_are_those_that_are_read() -> None:
    text = Path(settings.__file__).read_text(encoding="utf-8")
    read = {a or b for a, b in re.findall(r'PREFIX \+ "([A-Z_]+)"|_(?:choice|positive|switch)\("([A-Z_]+)"', text)}
    assert read == {*settings.KNOWN}


@pytest.mark.parametrize(
    ("name", "value"), [("NUM_THREADS", "abc"), ("CACHE_LIMIT", "xx"), ("DEBUG", "maybe"), ("PERF", "zz")]
)
def test_a_setting_that_cannot_be_read_is_found_and_stops_nothing(
    name: str, value: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.PREFIX + name, value)
    found = said(capsys)[f"settings {settings.PREFIX}{name}"]
    assert found["follows"].startswith("whoever reads it fails: ") and f"got {value!r}" in found["follows"]
    assert found["help"]


def test_a_directory_that_cannot_be_one_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, shared = tmp_path / "file", tmp_path / "shared"
    file.touch()
    shared.mkdir()
    shared.chmod(0o777)
    for path, wanted in ((file, "is no directory"), (file / "below", "is no directory"), (shared, "others can write")):
        monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(path))
        found = said(capsys)["cache directory"]
        assert wanted in found["follows"] and found["help"]
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(file))
    assert cli.main(["cache", "path"]) == 1
    assert f"{file} is no directory" in capsys.readouterr().err


def test_a_package_that_cannot_be_imported_is_found(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libtorch.so: cannot open')")
    script = "from tilewright.tools.findings import findings; print(*findings(), sep='\\n')"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert "it cannot be imported (OSError: libtorch.so: cannot open)" in done.stdout


def test_a_closed_output_is_no_crash() -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m tilewright passes >&-"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
