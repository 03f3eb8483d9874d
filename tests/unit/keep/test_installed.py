"""Installed files: whose noted digest stands for their content, and whose does not."""

from __future__ import annotations

import os
import shutil
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from time import sleep

import pytest

from tilewright.keep import installed
from tilewright.keep.fingerprint import library_digest
from tilewright.keep.installed import noted_sha256

LIBRARY, RECORD = "thing/binding/libthing.so", "thing-1.0.dist-info/RECORD"
OLD, NEW = b"machine code", b"other codes!"


def line(content: bytes, name: str = LIBRARY) -> str:
    digest = urlsafe_b64encode(sha256(content).digest()).decode().rstrip("=")
    return f"{name},sha256={digest},{len(content)}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder in which an installer wrote a package, and its note last."""
    written = {LIBRARY: OLD, "thing/__init__.py": b"", RECORD: (f"{RECORD},,\n" + line(OLD)).encode()}
    for name, content in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
        sleep(0.02)  # files of one tick of the clock have one time
    return tmp_path


def test_a_file_as_it_was_installed_has_the_noted_digest(site: Path) -> None:
    assert noted_sha256(str(site / LIBRARY)) == sha256(OLD).digest()


def keep_time(site: Path) -> None:
    """Change the library to one of the same size and time."""
    times = os.stat(site / LIBRARY)
    (site / LIBRARY).write_bytes(NEW)
    os.utime(site / LIBRARY, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace_by_older(site: Path) -> None:
    """Move another library there that was made earlier."""
    (site / "made").write_bytes(NEW)
    os.utime(site / "made", ns=(1, 1))
    os.replace(site / "made", site / LIBRARY)


def copy(site: Path) -> None:
    """Copy it all with its times, library first, as archives and images do, and change it on the way."""
    for name in (LIBRARY, RECORD):
        os.utime(site / name, ns=(1, 1))  # which some systems' stores set
        shutil.copy2(site / name, site / "copied")
        os.replace(site / "copied", site / name)


def install_again(site: Path) -> None:
    """Leave the note of another version beside."""
    other = site / "thing-0.9.dist-info/RECORD"
    other.parent.mkdir()
    other.write_text(line(NEW))


def note(text: str) -> Callable[[Path], None]:
    def write(site: Path) -> None:
        (site / RECORD).write_text(text)

    return write


def library(content: bytes) -> Callable[[Path], None]:
    def write(site: Path) -> None:
        (site / LIBRARY).write_bytes(content)

    return write


def remove_note(site: Path) -> None:
    (site / RECORD).unlink()


CHANGES: dict[str, Callable[[Path], None]] = {
    "grown": library(OLD + NEW),
    "changed": library(NEW),
    "changed at the same time": keep_time,
    "replaced by an older one": replace_by_older,
    "copied": copy,
    "noted twice": install_again,
    "not noted": note(line(OLD, "thing/libthing.so")),
    "noted with another size": note(line(OLD + NEW)),
    "noted by another hash": note(line(OLD).replace("sha256", "sha384")),
    "noted without a hash": note(f"{LIBRARY},,\n"),
    "noted in two lines": note(line(OLD) + line(NEW)),
    "noted in part": note(line(OLD)[:40]),
    "noted with a damaged hash": note(line(OLD).replace("=", "=ä")),
    "no note": remove_note,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_may_be_another_is_read(site: Path, change: str) -> None:
    CHANGES[change](site)
    assert noted_sha256(str(site / LIBRARY)) is None
    assert library_digest(site / LIBRARY) == sha256((site / LIBRARY).read_bytes()).digest()


def test_a_note_that_was_written_long_after_a_file_is_not_of_its_installation(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "WHILE", -1)
    assert noted_sha256(str(site / LIBRARY)) is None


def test_a_file_of_no_package_has_no_note(tmp_path: Path) -> None:
    (tmp_path / "alone.so").write_bytes(OLD)
    assert noted_sha256(str(tmp_path / "alone.so")) is None
