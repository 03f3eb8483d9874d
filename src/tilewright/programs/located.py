"""Located things: what is the path of its own folder, written when it is first used as one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from tilewright.programs.folder import Folder

if TYPE_CHECKING:
    from pathlib import Path


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
