"""Brief tracebacks: a mistake shows its author's own line, not the frames of the compiler that found it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dis import opmap
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from tilewright.errors import InternalError, KernelWarning, TilewrightError

P = ParamSpec("P")
R = TypeVar("R")

RAISE = opmap["RAISE_VARARGS"]
"""What a `raise` is compiled to."""
STEPPER = "__tilewright__"
"""What the lines of a kernel that is stepped through call, by which their frames are known."""


def brief(function: Callable[P, R]) -> Callable[P, R]:
    """Let mistakes leave `function` without the frames below it: the message shows the author's own line."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except InternalError:
            raise
        except (TilewrightError, KernelWarning) as error:
            raise error.with_traceback(_stepped(error.__traceback__)) from error.__cause__
        except Exception as error:
            if (seen := _stepped(error.__traceback__)) or _is_told(error):
                raise error.with_traceback(seen) from error.__cause__
            raise

    return call


def _is_told(error: Exception) -> bool:
    """Return whether a `raise` of ours says what is wrong with an argument; where Python does, a mistake is ours."""
    inner = error.__traceback__
    while inner is not None and inner.tb_next is not None:
        inner = inner.tb_next
    if inner is None or not isinstance(error, (TypeError, ValueError)) or not is_ours(inner.tb_frame):
        return False
    return inner.tb_frame.f_code.co_code[inner.tb_lasti] == RAISE


def is_ours(frame: FrameType | None) -> bool:
    """Return whether a frame is of this package, or of what it calls: the next one around it that is known decides."""
    while frame is not None and STEPPER not in frame.f_code.co_varnames:
        if str(frame.f_globals.get("__name__", "")).startswith("tilewright."):
            return True
        frame = frame.f_back
    return False


def _stepped(inner: TracebackType | None) -> TracebackType | None:
    """Return its author's frames of an error in a kernel that is stepped through, None of any other."""
    rows: list[TracebackType] = []
    while inner is not None:
        rows.append(inner)
        inner = inner.tb_next
    if not any(STEPPER in row.tb_frame.f_code.co_varnames for row in rows):
        return None
    for row in reversed([row for row in rows if not is_ours(row.tb_frame)]):
        inner = TracebackType(inner, row.tb_frame, row.tb_lasti, row.tb_lineno)
    return inner
