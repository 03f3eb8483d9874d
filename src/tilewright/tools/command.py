"""Commands: what one is called, what it says of itself, what it takes and what it does."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright.records import record

if TYPE_CHECKING:
    from argparse import _SubParsersAction  # pyright: ignore[reportPrivateUsage]

Takes: TypeAlias = Callable[[argparse._ActionsContainer], object]  # pyright: ignore[reportPrivateUsage]
"""Lets a parser, or a group of one, take something."""


def option(*names: str, offers: Callable[[], Iterable[str]] | None = None, **how: Any) -> Takes:
    """Return an option or an argument, as argparse describes them; shells complete it to what is offered."""
    return lambda parser: vars(parser.add_argument(*names, **how)).update(completer=offers)


def switch(name: str, help: str) -> Takes:
    """Return an option that is there or not."""
    return option(name, action="store_true", help=help)


@record
class Command:
    """A command, or a group of them, which does nothing by itself."""

    name: str
    help: str
    about: str
    run: Callable[[argparse.Namespace], None] | None = None
    takes: Sequence[Takes] = ()
    epilog: str = ""
    json: str = "print JSON"
    """What its --json does; nothing where it has none."""
    inner: Sequence[Command] = ()

    @property
    def examples(self) -> list[tuple[str, str]]:
        """The examples of its help, and what each of them does."""
        lines = self.epilog.partition("examples:\n")[2].partition("\n\n")[0].splitlines()
        return [(text, does.strip()) for text, _, does in (line.strip().partition("  ") for line in lines)]

    def add_to(self, commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
        """Add the command to those of a parser."""
        raw = argparse.RawDescriptionHelpFormatter
        parser = commands.add_parser(
            self.name, help=self.help, description=self.about, epilog=self.epilog, formatter_class=raw
        )
        if self.inner:
            add_all(parser, self.inner)
            return
        for each in (*self.takes, *[switch("--json", self.json)] * bool(self.json)):
            each(parser)
        parser.set_defaults(command=self.run)


def add_all(parser: argparse.ArgumentParser, commands: Sequence[Command]) -> None:
    """Let a parser take one of several commands."""
    found = parser.add_subparsers(required=True, metavar="COMMAND")
    for each in commands:
        each.add_to(found)
