"""Reading: PTO text, or a file of it, as a module."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tilewright.pto.module import Module
from tilewright.pto.source import Origin, Text


def parse(source: str | os.PathLike[str]) -> Module:
    """Return the module that PTO text, or the file at a path, says; ParserError shows where it says none.

    A string is taken for text where it has several lines or opens a module; relative paths start where the process is.
    """
    given: Any = source
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"pto.parse takes PTO text or a path, got {type(given).__name__}")
    if isinstance(source, str):
        return module_of(Origin.of(source, Path.cwd()).read())
    path = Path(source)
    return module_of(Origin(str(path), path.resolve()).read())


def module_of(text: Text) -> Module:
    """Return the module that text says."""
    from tilewright.pto.text.parser import parse as parse_text

    return parse_text(text.text, text.label)
