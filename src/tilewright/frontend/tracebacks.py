"""Brief tracebacks: a mistake shows its author's own line, not the frames of the compiler that found it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tilewright.errors import DroppedWriteWarning, InternalError, TilewrightError

P = ParamSpec("P")
R = TypeVar("R")


def brief(function: Callable[P, R]) -> Callable[P, R]:
    """Let mistakes leave `function` without the frames below it: the message shows the author's own line."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except InternalError:
            raise
        except (TilewrightError, DroppedWriteWarning) as error:
            raise error.with_traceback(None) from error.__cause__

    return call
