"""Exploration: a compiled program as a page that a browser or a notebook shows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.backends.abi import Number
from tilewright.backends.interface import Anatomy, Entries
from tilewright.core.program import Program
from tilewright.errors import ExecutionError
from tilewright.programs.declarations import is_declaration
from tilewright.programs.folder import Folder
from tilewright.programs.platforms import INTERPRETER
from tilewright.programs.profile import Profile
from tilewright.programs.stages import Stages

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.explore.page import Access, Fact, Page, Speed
    from tilewright.programs.entry import Entry
    from tilewright.source import Span

PAGE = "explore.html"


class Explored:
    """What a compiled program shows of itself."""

    ranks = 1
    """How many run it together."""
    declared: Program
    platform: str
    loaded: Entries
    profile: Profile
    stages: Stages
    specialized: dict[str, Number]
    _folder: Folder

    def __init__(self) -> None:
        self.found_by: Callable[[], Iterable[tuple[str, str, str]]] = tuple
        """Gives what calls find it by and what is looked at before each, by group and name; a kernel says so."""

    @property
    def entry(self) -> Entry:
        """The only function that a caller starts."""
        raise NotImplementedError

    @property
    def source(self) -> Program:
        """The program before any pass, read again for one that was kept; ValueError where only its code was saved."""
        if self.stages.remade is not None:
            return self.stages.remade.source
        if is_declaration(self.declared):
            name = self.declared.name
            raise ValueError(
                f"of {name} only the code was saved, not what it does: ask its kernel, or compile it again"
            )
        return self.declared

    def speed(self, *args: Any, **named: Any) -> Speed | None:
        """Return how long a call takes, held against what the machine can do, None where that is not known."""
        return None

    def anatomy(self, lowered: Program) -> Anatomy:
        """Return what its code is made of, which is compiled once more for that."""
        code = self.loaded.code
        return code.backend.anatomy(lowered, [entry.name for entry in lowered.entries], code.target)

    def explore(self, *args: Any, output: str | os.PathLike[str] | None = None, **named: Any) -> Path:
        """Write a page that shows the program at every stage, each line beside the one it came from; return its path.

        It is one file that needs no server and no network, `explore.html` in the program's folder unless `output`
        names another. With arguments the call is made and measured, and where it is small the page shows, too, which
        elements each turn reads and writes. Of a call that fails it shows why.
        """
        from tilewright.explore.writer import write

        page = self.page(*args, **named)
        return write(page, self._folder.written() / PAGE if output is None else output)

    def page(self, *args: Any, **named: Any) -> Page:
        """Return what the page shows, as data."""
        from tilewright.call.launch import on_host
        from tilewright.explore.gather import gathered
        from tilewright.explore.subject import Subject
        from tilewright.passes.stages import walked
        from tilewright.version import __version__

        source = self.source
        walk = walked(source)
        lowered = walk.stages[-1].after
        called = self.entry.bound(args, named).values if args or named else None
        speed, failure = (None, None) if called is None else self._tried(args, named)
        return gathered(
            Subject(
                source.name,
                source,
                walk.stages,
                self.platform,
                __version__,
                self.anatomy(lowered),
                self.stages["fusion"] if "fusion" in self.stages else "",
                [(record.name, record.start, record.end) for record in self.profile.records],
                [*self._facts()],
                refused_by="the call" if failure is not None else "",
                error=failure,
                speed=speed,
                watch=None if called is None else partial(self._watched, [*map(on_host, called)]),
            )
        )

    def _tried(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Speed | None, ExecutionError | None]:
        """Return how fast a call is, or what was wrong with it; neither on the interpreter, which is never fast."""
        if self.platform == INTERPRETER:
            return None, None
        try:
            return self.speed(*args, **named), None
        except ExecutionError as error:
            return None, error

    def _watched(self, values: Sequence[Any], place: Callable[[Span], int]) -> Access:
        """Return what a call touches, on its ranks where it is one of a host function."""
        from tilewright.explore.watched_turns import watched

        return watched(self.source, self.entry.name, values, place, self.ranks)

    def _facts(self) -> list[Fact]:
        from tilewright.explore.page import Fact

        found = [Fact(*fact) for fact in self.found_by()]
        found += [Fact("numbers in the code", name, repr(value)) for name, value in self.specialized.items()]
        target = self.loaded.code.target
        described = {name: str(getattr(target, name, "")) for name in ("triple", "cpu", "capability")}
        return found + [Fact("made for", name, value) for name, value in described.items() if value]

    def _repr_html_(self) -> str:
        """Return the program as a notebook shows it."""
        from tilewright.explore.writer import html_of
        from tilewright.notebook import framed

        return framed(html_of(self.page()), f"{self.declared.name} for {self.platform}")
