"""Telling: an error that is no bug of ours, as text for people and as facts for scripts."""

from __future__ import annotations

import sys

from tilewright.errors import KernelError, TilewrightError
from tilewright.source import UNKNOWN

MISTAKES = (OSError, TilewrightError, UnicodeError)
"""What is raised for kernels, files and commands that are wrong."""


def text_of(error: Exception) -> str:
    """Return an error as people read it."""
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)


def facts_of(error: Exception) -> dict[str, object]:
    """Return an error as scripts read it."""
    text = text_of(error)
    span, message = (error.place, error.message) if isinstance(error, KernelError) else (UNKNOWN, text)
    file = span.filename if span.is_known else getattr(error, "filename", None)
    return {"error": type(error).__name__, "message": message, "file": file, "line": span.line or None, "text": text}


def tell(error: Exception) -> None:
    """Print an error for people, beside the output."""
    print(text_of(error), file=sys.stderr)
