"""Subjects: a program as the explorer is told of it, by whoever has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from tilewright.backends.interface import Anatomy
from tilewright.core.program import Program
from tilewright.errors import TilewrightError
from tilewright.explore.page import Access, Fact, Speed
from tilewright.passes.stages import Stage
from tilewright.records import record
from tilewright.source import Span


@record
class Subject:
    """A program on its way: as it was read, after each pass, as code; whatever is not known is left out."""

    name: str
    source: Program | None
    stages: Sequence[Stage] = ()
    platform: str = ""
    version: str = ""
    anatomy: Anatomy = field(default_factory=Anatomy)
    fusion: str = ""
    profile: Sequence[tuple[str, float, float]] = ()
    """Each step of compiling: its name, and when it began and ended."""
    facts: Sequence[Fact] = ()
    refused_by: str = ""
    error: TilewrightError | None = None
    speed: Speed | None = None
    watch: Callable[[Callable[[Span], int]], Access] | None = None
    """Says what a call touches, its places as the page numbers them."""
