"""Fingerprints: what changes with which source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.keep import fingerprint


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two sources, one of them in a folder, that is older than this process for all it knows."""
    (tmp_path / "package/native").mkdir(parents=True)
    for name in ("whole.py", "native/part.py"):
        (tmp_path / "package" / name).write_text(name)
    monkeypatch.setattr(fingerprint, "PACKAGE", str(tmp_path / "package"))
    monkeypatch.setattr(fingerprint, "_started", lambda: float("inf"))
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "package"


def digests() -> tuple[bytes, bytes]:
    """Return what all is known by, and what the folder is."""
    return fingerprint.toolchain.__wrapped__(), fingerprint.toolchain.__wrapped__(part="native")


@pytest.mark.parametrize(("name", "changes"), [("whole.py", (True, False)), ("native/part.py", (True, True))])
def test_a_part_is_known_by_its_own_sources(package: Path, name: str, changes: tuple[bool, bool]) -> None:
    before = digests()
    (package / name).write_text(f"{name}, changed")
    assert tuple(old != new for old, new in zip(before, digests(), strict=True)) == changes


def test_a_part_and_the_whole_are_told_apart(package: Path) -> None:
    whole, part = digests()
    assert whole != part
