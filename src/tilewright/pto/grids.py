"""Grids: what stands between the brackets of `kernel[grid, stream]`."""

from __future__ import annotations

from typing import Any, cast

from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoArgumentError, PtoValueError

MAX_GRID = (1 << 31) - 1
_LAUNCH = "for example kernel[1, None](...): one block, in order with everything before it"


def launch_spec(declared: Declared, spec: Any) -> int:
    """Return the grid of `kernel[grid, stream]`, both checked."""
    if not isinstance(spec, tuple) or len(parts := cast("tuple[Any, ...]", spec)) != 2:
        message = f"a launch is written kernel[grid, stream](...), got [{spec!r}]"
        raise declared.refusal(PtoArgumentError, message, help=_LAUNCH)
    grid, stream = parts
    if stream is not None:
        check_stream(declared, stream)
    return grid if type(grid) is int and 0 < grid <= MAX_GRID else checked_grid(declared, grid)


def checked_grid(declared: Declared, grid: Any) -> int:
    """Return the number of blocks of a launch; PtoValueError for what is no positive number."""
    count = grid if type(grid) is int else _index(grid)
    if count is None or not 0 < count <= MAX_GRID:
        message = f"the grid of a launch is a positive int up to {MAX_GRID}, got {grid!r}"
        raise declared.refusal(PtoValueError, message, help=_LAUNCH)
    return count


def check_stream(declared: Declared, stream: Any) -> None:
    """Raise PtoArgumentError for what is no stream; on the CPU they order nothing, work is done when a call returns."""
    handle = stream if isinstance(stream, int) else getattr(stream, "value", stream)
    if isinstance(handle, bool) or not (handle is None or isinstance(handle, int)):
        message = (
            f"the stream of a launch is None, an int, a ctypes.c_void_p or an object with such a `value`, "
            f"got {type(stream).__name__}"
        )
        raise declared.refusal(PtoArgumentError, message, help=_LAUNCH)


def _index(grid: Any) -> int | None:
    return None if isinstance(grid, bool) or not hasattr(grid, "__index__") else int(grid.__index__())
