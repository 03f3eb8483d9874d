"""The screen: highlighted on a terminal, plain text everywhere else."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Generator, Iterable
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from threading import Timer
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

THEME = "ansi_dark"
"""The terminal's own colours, readable on a light background too."""
IS_TOLD = ContextVar("IS_TOLD", default=False)
"""Whether a command has printed its JSON: scripts read one object, or one list."""
_WAITING: ContextVar[list[str] | None] = ContextVar("_WAITING", default=None)
"""The JSON that is printed when a command has ended."""


def _console() -> Console | None:
    """Return something that draws, or None where nobody looks; rich is loaded only when somebody does."""
    if not _is_terminal(sys.stdout):
        return None
    from rich.console import Console

    return Console()


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether somebody looks at a stream; one that a shell has closed is None."""
    return stream is not None and stream.isatty()


def code(text: str) -> None:
    """Show Python text."""
    console = _console()
    if console is None:
        print(text, end="")
        return
    from rich.syntax import Syntax

    console.print(Syntax(text.rstrip(), "python", theme=THEME, background_color="default", word_wrap=True))


def titled(title: str, subtitle: str, text: str) -> None:
    """Show Python text below a line that says what it is; the whole stays Python."""
    console = _console()
    if console is None:
        print(f"# {title}: {subtitle}")
    else:
        console.rule(_title(title, subtitle), align="left", style="dim")
    code(text)


def markdown(text: str) -> None:
    """Show a piece of a documentation page."""
    console = _console()
    if console is None:
        print(text)
        return
    from rich.markdown import Markdown

    console.print(Markdown(text, code_theme=THEME))


def heading(title: str, subtitle: str) -> None:
    """Start a group of lines."""
    console = _console()
    if console is None:
        print(f"\n{title}. {subtitle}")
    else:
        console.print()
        console.print(_title(title, subtitle))


def as_json(value: object) -> None:
    """Print something as JSON: laid out for whoever looks, on one line for scripts."""
    IS_TOLD.set(True)
    waiting, text = _WAITING.get(), json.dumps(value)
    if waiting is None:
        _print_json(text)
    else:
        waiting.append(text)


def _print_json(text: str) -> None:
    console = _console()
    if console is None:
        print(text)
    else:
        console.print_json(text)


@contextmanager
def for_scripts() -> Generator[None]:
    """Let JSON be all that standard output gets: whatever kernels and files print meanwhile goes to stderr."""
    texts: list[str] = []
    token = _WAITING.set(texts)
    try:
        with redirect_stdout(sys.stderr), _native_output_to_stderr():
            yield
    finally:
        _WAITING.reset(token)
        for text in texts:
            _print_json(text)


@contextmanager
def _native_output_to_stderr() -> Generator[None]:
    """Let what machine code writes to standard output go to stderr, where both are open."""
    try:
        saved = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # one is closed: nobody reads it
        yield
        return
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def warned_once() -> Generator[None]:
    """Show each warning as errors are shown, by its own text, and no text twice."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        text = f"{category.__name__}: {message}"
        if text not in told:
            told.add(text)
            print(text, file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def working(what: str) -> Generator[None]:
    """Show that something is being done, where somebody looks and it takes longer than a second."""
    if not _is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.status import Status

    status = Status(f"{what} ...", console=Console(stderr=True))
    late = Timer(1.0, status.start)
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()
        status.stop()


def _title(title: str, subtitle: str) -> Text:
    from rich.text import Text

    return Text.assemble((title, "bold"), "  ", (subtitle, "dim"))


def columns(rows: Iterable[tuple[str, str]]) -> None:
    """Show names and what they mean, one pair a line."""
    console = _console()
    if console is None:
        print("\n".join(f"  {name:<32} {meaning}".replace("\n", "\n    ") for name, meaning in rows))
        return
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", overflow="fold", max_width=console.width // 2)
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))  # not markup: shapes have brackets too
    console.print(grid)
