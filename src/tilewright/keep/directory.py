"""Directories: entries as files that anybody may look at.

    <directory>/ab/ab34...ef.artifact.1      256 shards; 64 digits of the key, the kind, the format
    <directory>/ab/0123456789abcdef.tmp      being written, or left by a process that died
    <directory>/locks/ab34                   see `lock`

Whatever else lies there is somebody's own, and stays.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from tilewright.keep.miss import Miss, reason
from tilewright.keep.payload import FORMAT, LABEL_BYTES, Entry, Label, decode, file_name, peek
from tilewright.keep.shard import NAMES, TEMPORARY, Shard, make_folder
from tilewright.named_tuples import NamedTuple

_ENTRY = r"([0-9a-f]{64})\.([a-z]+)\.([0-9]+)"
_TEMPORARY = r"[0-9a-f]{16}" + re.escape(TEMPORARY)


class File(NamedTuple):
    """One of our files, by its name, as it was when somebody looked."""

    name: str
    shard: str
    status: os.stat_result

    @property
    def is_ours(self) -> bool:
        """Whether we may have written the file: a link or another user's file we have not."""
        return stat.S_ISREG(self.status.st_mode) and self.status.st_uid == os.geteuid()

    @property
    def is_temporary(self) -> bool:
        """Whether the file is being written, or was when its writer died."""
        return self.name.endswith(TEMPORARY)

    @property
    def key(self) -> str:
        """The 64 hex digits of an entry's key."""
        return self.name.partition(".")[0]

    @property
    def kind(self) -> str:
        """The kind of an entry."""
        return self.name.split(".")[1]

    @property
    def format(self) -> int:
        """The format that an entry's name claims."""
        return int(self.name.rpartition(".")[2])

    @property
    def is_foreign(self) -> bool:
        """Whether another version wrote this entry, which we can neither read nor judge."""
        return self.format != FORMAT


class Directory:
    """The entries below one path, which need not exist; in a shared one, root may have written them."""

    def __init__(self, path: str | os.PathLike[str], shared: bool = False) -> None:
        self.path = os.path.abspath(path)
        self.shared = shared

    def fetch(self, name: str, touch: bool = False) -> Entry | Miss:
        """Return an entry that is whole, trusted and under its own name, or why there is none."""
        data = self._read(name, touch=touch)
        found = data if isinstance(data, Miss) else decode(data)
        if isinstance(found, Miss):
            return found
        return found if _is_named(found.label, name) else Miss.KEY

    def label(self, name: str) -> Label | Miss:
        """Return what an entry says about itself, without reading all of it, or why it cannot."""
        data = self._read(name, LABEL_BYTES)
        return data if isinstance(data, Miss) else peek(data)

    def _read(self, name: str, *most: int, touch: bool = False) -> bytes | Miss:
        owners = (os.geteuid(), 0) if self.shared else (os.geteuid(),)
        try:
            with Shard(self.shard(name)) as shard:
                return shard.read(name, owners, *most, touch=touch)
        except OSError as error:
            return reason(error)

    def shard(self, name: str) -> str:
        """Return the path of the folder that a file belongs in."""
        return f"{self.path}/{name[:2]}"

    def publish(self, name: str, data: bytes) -> None:
        """Let an entry's file hold `data`; OSError where the directory cannot be written."""
        try:
            self._publish(name, data)
        except FileNotFoundError:  # the first entry of its shard, or the cache was cleared while we wrote
            make_folder(self.shard(name))
            self._publish(name, data)

    def _publish(self, name: str, data: bytes) -> None:
        with Shard(self.shard(name)) as shard:
            shard.publish(name, data)

    def files(self) -> Iterator[File]:
        """Yield everything that is named like a file of ours, other versions' entries too."""
        for each in self._shards():
            with suppress(OSError), Shard(f"{self.path}/{each}") as shard:
                for name, status in shard.statuses():
                    if name.startswith(each) and re.fullmatch(_ENTRY, name) or re.fullmatch(_TEMPORARY, name):
                        yield File(name, each, status)

    def _shards(self) -> list[str]:
        """Return the names of the folders that there are."""
        with suppress(OSError):
            return sorted(NAMES.intersection(os.listdir(self.path)))
        return []

    def remove(self, file: File) -> bool:
        """Remove a file unless it is not ours or was replaced since; return whether it is gone."""
        with suppress(OSError), Shard(f"{self.path}/{file.shard}") as shard:
            return shard.remove(file.name, file.status)
        return False

    def prune(self) -> None:
        """Remove the shards that are empty."""
        for each in self._shards():
            with suppress(OSError):  # something is in it
                os.rmdir(f"{self.path}/{each}")


def _is_named(label: Label, name: str) -> bool:
    with suppress(ValueError):
        return file_name(label.kind, label.digest) == name
    return False
