"""Launches that machine code takes never run what a file said before it changed, in whatever way it does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import pto
from tilewright.call.files import UnchangedFile
from tilewright.errors import KernelError
from tilewright.pto.handle import SourceKernel
from tilewright.pto.launch import Launch

TEXT = """module {{
  func.func @k(%o: !pto.ptr<i32>) {{
    %c0 = arith.constant 0 : index
    %v = arith.constant {} : i32
    pto.store_scalar %v, %o[%c0] : !pto.ptr<i32>, i32
    return
  }}
}}
"""
I32: Any = pto.ptr(pto.i32, "gm")


def write(path: Path, number: int, *, age: float = 1.0) -> None:
    """Write a kernel that stores a number, as if some seconds ago."""
    path.write_text(TEXT.format(number))
    then = path.stat().st_mtime_ns - int(age * 1e9)
    os.utime(path, ns=(then, then))


def warmed(path: Path) -> tuple[Launch, Any]:
    """Return launches of a file's kernel that machine code takes by now, and where they store."""

    @pto.jit(source=str(path))
    def k(o: I32) -> None: ...  # pyright: ignore[reportUnknownParameterType]

    assert isinstance(k, SourceKernel)
    launch, out = k[1, None], np.zeros(1, np.int32)
    assert isinstance(launch, Launch)
    for _ in range(120):
        launch(out)
    return launch, out


def over(path: Path) -> None:
    write(path, 7)


def as_long(path: Path) -> None:
    write(path, 2, age=0.5)


def replaced(path: Path) -> None:
    other = path.with_name("other.pto")
    write(other, 7)
    other.replace(path)


def moved_folder(path: Path) -> None:
    folder = path.parent
    folder.rename(folder.with_name("before"))
    folder.mkdir()
    write(path, 7)


CHANGES: list[tuple[Callable[[Path], None], int]] = [(over, 7), (as_long, 2), (replaced, 7), (moved_folder, 7)]


@pytest.mark.parametrize(("change", "number"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])
def test_the_next_launch_runs_what_the_file_says(tmp_path: Path, change: Callable[[Path], None], number: int) -> None:
    path = tmp_path / "kernels" / "k.pto"
    path.parent.mkdir()
    write(path, 1)
    launch, out = warmed(path)
    assert launch.is_warm and out[0] == 1
    change(path)
    for _ in range(8):
        out[:] = 0
        launch(out)
        assert out[0] == number


def test_a_file_that_is_gone_is_missed_by_the_next_launch(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    write(path, 1)
    launch, out = warmed(path)
    path.unlink()
    with pytest.raises((KernelError, FileNotFoundError), match="cannot be read"):
        launch(out)
    write(path, 3)
    launch(out)
    assert out[0] == 3


def test_a_file_that_has_just_changed_is_left_to_python(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text(TEXT.format(1))
    assert UnchangedFile(str(path), None).guards() is None


def test_guards_are_of_the_file_as_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    write(path, 1)
    status = path.stat()
    known = UnchangedFile(str(path), (status.st_mtime_ns, status.st_size, status.st_ino))
    guards = known.guards()
    assert guards is not None and guards.hold()
    write(path, 10)
    assert not guards.hold() and known.guards() is None
