"""The cache commands."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.keep.payloads import KIND, age, everything, key, path_of

from tilewright.keep.store import Store
from tilewright.tools import cli

Run = Callable[..., str]
SOFTMAX, MATMUL = key(0), key(1)
"""5fec... and 6b86..."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with two artifacts and a manifest."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    store = Store(tmp_path, version="0.1.0")
    store.put(KIND, SOFTMAX, bytes(5000), "softmax")
    store.put("manifest", SOFTMAX, b"reads", "softmax")
    store.put(KIND, MATMUL, bytes(50), "matmul")
    return tmp_path


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what a command prints; it must succeed."""

    def run(*arguments: str) -> str:
        assert cli.main(["cache", *arguments]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what a command complains about; it must fail."""

    def run(*arguments: str) -> str:
        assert cli.main(["cache", *arguments]) == 1
        return capsys.readouterr().err

    return run


def damage(folder: Path) -> Path:
    path = path_of(folder, MATMUL)
    os.truncate(path, 100)
    return path


def test_path_prints_the_directory(folder: Path, printed: Run) -> None:
    assert printed("path") == f"{folder}\n"


@pytest.mark.parametrize("command", [["path"], ["ls"], ["show", "5f"], ["verify"], ["clear", "--yes"]], ids=" ".join)
def test_a_cache_that_is_off_is_told(command: list[str], refused: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    assert refused(*command) == "the cache is off\n    help: unset TILEWRIGHT_CACHE_DIR, or let it name a directory\n"


def test_ls_lists_every_entry(folder: Path, printed: Run) -> None:
    lines = printed("ls").splitlines()
    assert lines[0].split() == ["key", "kind", "size", "age", "name"]
    assert lines[1].split()[:4] == ["5feceb66ffc8", "artifact", "5.0", "KiB"]
    assert [line.split()[-1] for line in lines[1:-1]] == ["softmax", "softmax", "matmul"]
    assert lines[-1] == f"3 entries, 5.3 KiB, in {folder}"


def test_ls_has_everything_for_machines(folder: Path, printed: Run) -> None:
    found: list[dict[str, Any]] = json.loads(printed("ls", "--json"))
    path = path_of(folder, MATMUL)
    (matmul,) = (each for each in found if each["name"] == "matmul")
    assert abs(matmul.pop("created") - matmul.pop("used")) <= 1
    assert matmul == {
        "key": MATMUL.hex(),
        "kind": "artifact",
        "format": 1,
        "name": "matmul",
        "version": "0.1.0",
        "size": path.stat().st_size,
        "path": str(path),
        "problem": None,
    }


def test_ls_of_nothing_says_so(tmp_path: Path, printed: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "none"))
    assert printed("ls") == f"0 entries, 0 B, in {tmp_path / 'none'}\n"
    assert printed("ls", "--json") == "[]\n"
    assert not (tmp_path / "none").exists()


def test_ls_shows_what_cannot_be_read(folder: Path, printed: Run) -> None:
    path_of(folder, MATMUL).write_bytes(b"not an entry")
    assert "(it does not start like an entry)" in printed("ls")
    assert [each["problem"] for each in json.loads(printed("ls", "--json")) if each["problem"]] == ["magic"]


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines", "\ud800", "[bold]x[/bold]", "größe"])
def test_odd_names_do_not_reach_the_terminal(name: str, folder: Path, printed: Run) -> None:
    Store(folder).put(KIND, MATMUL, b"code", name)
    text = printed("ls") + printed("show", "6b")
    assert text.isascii() or name == "größe"
    assert "\x1b" not in text and len(text.splitlines()) == 5 + 9
    assert name in [each["name"] for each in json.loads(printed("ls", "--json"))]


def test_a_terminal_gets_a_table(folder: Path, printed: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = printed("ls")
    assert "\x1b[" in text and "softmax" in text


def test_show_tells_about_every_kind_under_a_key(folder: Path, printed: Run) -> None:
    text = printed("show", "5FEC")
    assert text.count(SOFTMAX.hex() + "\n") == 2
    assert "made by    tilewright 0.1.0\n" in text
    assert text.count("state      whole\n") == 2
    assert str(path_of(folder, SOFTMAX)) in text
    assert [each["kind"] for each in json.loads(printed("show", "5fec", "--json"))] == ["artifact", "manifest"]


def test_show_checks_the_entry(folder: Path, printed: Run) -> None:
    damage(folder)
    assert "state      it is cut off, or longer than it says\n" in printed("show", "6b")


def test_show_wants_one_key(folder: Path, refused: Run) -> None:
    assert refused("show", "") == "2 keys start with \n    help: give more digits of one: 5feceb66, 6b86b273\n"
    assert refused("show", "77") == "no key starts with 77\n    help: `tilewright cache ls` lists them\n"


def test_verify_counts_what_is_whole(folder: Path, printed: Run) -> None:
    assert printed("verify") == "3 entries checked, 0 damaged, 0 removed\n"
    assert json.loads(printed("verify", "--json")) == {"checked": 3, "removed": 0, "damaged": []}


def test_verify_names_what_is_damaged_and_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = damage(folder)
    assert cli.main(["cache", "verify"]) == 1
    out, err = capsys.readouterr()
    assert f"{path}  it is cut off, or longer than it says\n" in out
    assert out.endswith("3 entries checked, 1 damaged, 0 removed\n")
    assert err.startswith("1 damaged\n    help: none is used; `tilewright cache verify --delete` removes")
    assert path.exists()


def test_verify_removes_what_is_damaged_and_nothing_else(
    folder: Path, printed: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    path = damage(folder)
    assert cli.main(["cache", "verify", "--delete", "--json"]) == 1
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (report["checked"], report["removed"]) == (3, 1)
    assert [(each["path"], each["problem"]) for each in report["damaged"]] == [(str(path), "length")]
    assert not path.exists()
    assert printed("verify") == "2 entries checked, 0 damaged, 0 removed\n"


def test_verify_finds_links_and_keeps_them(folder: Path, refused: Run) -> None:
    path = path_of(folder, MATMUL)
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    assert refused("verify", "--delete") == "1 damaged\n"
    assert path.is_symlink() and (folder / "elsewhere").exists()


def test_verify_does_not_judge_other_versions(folder: Path, printed: Run) -> None:
    path = path_of(folder, MATMUL)
    path.rename(path.with_suffix(".2"))
    assert printed("verify") == "2 entries checked, 0 damaged, 0 removed\n"
    assert "(it has another format)" in printed("ls")


def test_a_format_that_only_the_content_claims_is_damage(folder: Path, refused: Run) -> None:
    path = path_of(folder, MATMUL)
    path.write_bytes(b"TWCE\x02" + path.read_bytes()[5:])
    assert refused("verify").startswith("1 damaged\n")


def test_clear_does_nothing_unless_told_twice(folder: Path, refused: Run) -> None:
    before = list(everything(folder))
    assert refused("clear") == f"would remove 3 files, 5.3 KiB, in {folder}\n    help: say --yes to remove them\n"
    assert list(everything(folder)) == before


def test_clear_removes_ours_and_leaves_the_rest(folder: Path, printed: Run) -> None:
    shard = path_of(folder, SOFTMAX).parent
    dead, alive = shard / "0123456789abcdef.tmp", shard / "0123456789abcdee.tmp"
    others = [folder / "notes", shard / "notes", shard / f"{SOFTMAX.hex()}", alive]
    for path in (dead, *others):
        path.write_bytes(b"x")
    age(dead, 4000)
    assert printed("clear", "--yes") == f"removed 4 of 4 files, 5.3 KiB, in {folder}\n"
    assert sorted(path for path, _ in everything(folder)) == sorted(others)
    assert not path_of(folder, MATMUL).parent.exists()


def test_clear_of_nothing_is_no_mistake(tmp_path: Path, printed: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "none"))
    assert printed("clear", "--yes") == f"removed 0 of 0 files, 0 B, in {tmp_path / 'none'}\n"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5 s"), (90, "1 min"), (7300, "2 h"), (200_000, "2 d"), (-500, "0 s")]
)
def test_ages_are_told_in_one_unit(
    seconds: int, shown: str, folder: Path, printed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (created,) = {each["created"] for each in json.loads(printed("ls", "--json")) if each["name"] == "matmul"}
    monkeypatch.setattr("tilewright.tools.cache.time", lambda: created + seconds)
    assert f"  {shown}" in next(line for line in printed("ls").splitlines() if line.endswith("matmul"))


@pytest.mark.parametrize(("size", "shown"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1 << 20, "1.0 MiB")])
def test_sizes_are_told_in_one_unit(size: int, shown: str, folder: Path, printed: Run) -> None:
    os.truncate(path_of(folder, MATMUL), size)
    assert f"  {shown}" in next(line for line in printed("ls").splitlines() if line.startswith(MATMUL.hex()[:12]))


@pytest.mark.parametrize("command", [[], ["ls"], ["show"], ["verify"], ["clear"], ["path"]], ids=" ".join)
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["cache", *command, "--help"])
    assert len(capsys.readouterr().out.splitlines()) > 4


def test_help_names_the_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["cache", "--help"])
    text = capsys.readouterr().out
    for name in ("DIR", "LIMIT"):
        assert f"TILEWRIGHT_CACHE_{name}" in text
    assert max(map(len, text.splitlines())) <= 120
