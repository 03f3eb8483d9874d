"""Folders: a compiled program as files that a person opens.

    program.py                       the program as the front end made it
    passes_dump/NN_after_<Pass>.py   what each pass left of it
    ir.py program.ll program.s       after all passes, as LLVM IR, as assembly
    object.txt                       sections, symbols and relocations of its object code
    report/pipeline_profile.txt      how long each stage took, for people; `.json` for programs
    compiled_meta.json program.twar  what `CompiledProgram.load` reads
    run.py                           runs it again, on inputs that were saved or on random ones

A folder is written whole or not at all: files come together beside it, and one rename makes them appear.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, cast

from tilewright import settings
from tilewright.forks import Lock

if TYPE_CHECKING:
    from pathlib import Path


META = "compiled_meta.json"
ARTIFACT = "program.twar"
PROFILE = "report/pipeline_profile.json"
RUN = "run.py"
DUMPS = "passes_dump"

FILES = {
    "program": "program.py",
    "ir": "ir.py",
    "tiles": "tiles.txt",
    "fusion": "fusion.txt",
    "llvm": "program.ll",
    "assembly": "program.s",
    "object": "object.txt",
    "metadata": META,
    "profile": "report/pipeline_profile.txt",
}
"""The file of each stage; those of passes lie in a folder of their own."""

REPLAY = '''"""Runs this program again: `python run.py --help` says on what."""

import sys
from pathlib import Path

import tilewright.language as pl
from tilewright.programs.replay import main

if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent, sys.argv[1:], pl.parse))
'''

_lock = Lock()
_settled: set[Path] = set()


class Folder:
    """Where a program's files lie: the place is settled when it is first asked for, the files are written when used.

    A folder that has been deleted since is written again.
    """

    def __init__(
        self, name: str, directory: str | os.PathLike[str] | None, files: Callable[[], dict[str, bytes]]
    ) -> None:
        self._name = name
        self._path = None if directory is None else path_of(os.path.abspath(directory))
        self._files = files
        self._was_written = False

    @property
    def is_settled(self) -> bool:
        """Whether the place is known."""
        return self._path is not None

    @property
    def path(self) -> Path:
        """The place, chosen below the build directory where nobody has chosen one; nothing is written."""
        with _lock:
            if self._path is None:
                self._path = free_place(self._name)
            return self._path

    def written(self) -> Path:
        """Return the place once the files are there; OSError where it cannot be written."""
        is_here = self._was_written and self.path.is_dir()  # though half of it may be deleted, and the rest about to be
        if not is_here and not (self.path / META).exists():
            self.write()
        return self.path

    def write(self) -> None:
        """Write the files, over those of another program."""
        files = {**self._files(), RUN: REPLAY.encode()}
        publish(self.path, files, "; pass output_dir=, or set TILEWRIGHT_BUILD_DIR")
        self._was_written = True


def path_of(directory: str | os.PathLike[str]) -> Path:
    """Return a directory as a path, which programs that nobody saves do without."""
    from pathlib import Path

    return Path(directory)


def file_of(stage: str) -> str:
    """Return the name of a stage's file below the folder."""
    return FILES.get(stage) or f"{DUMPS}/{stage}.py"


def publish(directory: Path, files: Mapping[str, bytes], help: str = "") -> None:
    """Write files below a directory, other people's files there untouched; OSError names it, and says `help`."""
    try:
        _publish(directory, files)
    except OSError as error:
        raise type(error)(error.errno, f"cannot write {str(directory)!r}: {error.strerror}{help}") from error


def _publish(directory: Path, files: Mapping[str, bytes]) -> None:
    is_new = not directory.is_dir()
    place = directory.parent if is_new else directory
    place.mkdir(parents=True, exist_ok=True)
    scratch = place / f".{directory.name}.{os.urandom(4).hex()}"
    try:
        for name, data in files.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_bytes(data)
        if not (is_new and _renamed(scratch, directory)):
            _replace_each(scratch, directory, files)
    finally:
        _remove(scratch)


def _remove(folder: Path) -> None:
    from shutil import rmtree  # 2 ms that most programs, whose folder nobody asks for, do without

    rmtree(folder, ignore_errors=True)


def _renamed(scratch: Path, directory: Path) -> bool:
    """Make a new directory appear; return whether nobody else had made it by then."""
    if directory.exists() and not directory.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file")
    try:
        scratch.rename(directory)
    except OSError:
        if not directory.is_dir():
            raise
        return False
    return True


def _replace_each(scratch: Path, directory: Path, files: Mapping[str, bytes]) -> None:
    """Move files over those that are there, one by one: the one that says what the others are comes last."""
    if any(name.startswith(DUMPS) for name in files):
        _remove(directory / DUMPS)  # another program's passes have other names
    for name in sorted(files, key=META.__eq__):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).replace(directory / name)


def free_place(name: str) -> Path:
    """Return a place below the build directory that no program of this process has."""
    base, plain = path_of(os.path.abspath(settings.build_dir())), re.sub(r"\W", "_", name)
    while True:
        path = base / f"{plain}_{datetime.now():%Y%m%d_%H%M%S_%f}"
        if path not in _settled:
            _settled.add(path)
            return path


class Located(os.PathLike[str]):
    """Something with a folder. Two are equal when they are the same or have the same folder, and equal to its path.

    One whose folder nobody has asked for equals only itself.
    """

    _folder: Folder

    @property
    def output_dir(self) -> Path:
        """The program's folder, which holds its files from here on; OSError where they cannot be written.

        Without an `output_dir` of its own it lies below TILEWRIGHT_BUILD_DIR, or `build_output`. One that has been
        deleted is written again.
        """
        return self._folder.written()

    def write(self) -> None:
        """Write the folder now, over what is there."""
        self._folder.write()

    def __fspath__(self) -> str:
        return str(self.output_dir)

    def __str__(self) -> str:
        return str(self.output_dir)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Located):
            return self is other or (other._folder.is_settled and self == other._folder.path)
        if not isinstance(other, (str, os.PathLike)) or not self._folder.is_settled:
            return False
        return os.path.abspath(cast("str | os.PathLike[str]", other)) == str(self._folder.path)

    def __hash__(self) -> int:
        return hash(str(self._folder.path))  # as that of the equal string; the place is settled, nothing is written
