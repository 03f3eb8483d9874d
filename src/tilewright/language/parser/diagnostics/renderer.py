"""Rendering: exceptions as people read them."""

from __future__ import annotations

import re
from typing import Final

from tilewright.errors import InternalError
from tilewright.language.parser.diagnostics.codes import get_error_code

BUG_CLASS_EXCEPTIONS: Final = (InternalError, AssertionError)
"""What is never taken for a mistake of the author: a bug in the compiler."""

_TRACES = ("\n\nC++ Traceback", "\n\nNo stack trace available")
_CHECK = "Check failed: "
_SPAN = r" \[[^\[\]]*:\d+:-?\d+\]$"
_INTERNAL = "an internal check failed; set PTO_BACKTRACE=1 to see where"


def concise_error_message(exc: BaseException, strip_trailing_span: bool = False) -> str:
    """Return what an exception says without the traces and checks of a native compiler at its end.

    Where nothing else was said it is one sentence. `strip_trailing_span` drops a closing ` [file:line:column]`, too,
    which stands before such a check.
    """
    text = str(exc)
    for trace in _TRACES:
        text = text.partition(trace)[0]
    if text.startswith(_CHECK):
        return _INTERNAL
    text, check, _ = text.rpartition(f"\n{_CHECK}") if f"\n{_CHECK}" in text else (text, "", "")
    if check and strip_trailing_span:
        text = re.sub(_SPAN, "", text.rstrip())
    return text.strip() or (_INTERNAL if check else "")


class ErrorRenderer:
    """Shows mistakes: where, what, the line itself, and what to try."""

    def __init__(self, use_color: bool = False) -> None:
        """Render in color, for terminals, or plainly."""
        self.use_color = use_color

    def render(self, error: BaseException) -> str:
        """Return a mistake with its code, as people read it."""
        head = f"error[{get_error_code(error).value}]"
        return f"\033[1;31m{head}\033[0m: {error}" if self.use_color else f"{head}: {error}"
