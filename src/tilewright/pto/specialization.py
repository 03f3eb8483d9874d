"""Specializations: what one compiled kernel is told from others by."""

from __future__ import annotations

from typing import NamedTuple


class SpecializationKey(NamedTuple):
    """Everything that two compilations of a kernel may differ in; it means the same in every process."""

    kind: str
    """`source` or `traced`."""
    path: str | None
    digest: str
    """Of the text."""
    name: str
    entry: bool
    target: str
    kernel_kind: str | None
    backend: str
    mode: str
    insert_sync: bool | None
    abi: tuple[tuple[str, str, str], ...]
    constexprs: tuple[tuple[str, object], ...]
