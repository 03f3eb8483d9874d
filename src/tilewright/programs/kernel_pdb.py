"""The kernel's pdb: steps from line to line of a kernel, over everything that computes them."""

from __future__ import annotations

import sys
from bdb import Bdb
from collections.abc import Generator
from contextlib import contextmanager
from pdb import Pdb
from types import FrameType, TracebackType
from typing import TypeAlias

from tilewright.frontend.tracebacks import STEPPER, is_ours

Stack: TypeAlias = tuple[list[tuple[FrameType, int]], int]
"""Frames, and which of them is the current one."""


class KernelPdb(Pdb):
    """A pdb that stops in kernels, helpers and what they call of Python's, and not in what stands between these."""

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop in a frame."""
        return not is_ours(frame) and super().stop_here(frame)

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> Stack:
        """Return the frames that `where`, `up` and `down` go through, those that stand between kernels left out."""
        return _without_ours(*super().get_stack(f, t))

    def do_args(self, arg: str) -> None:
        """Print the arguments of the current function, as its author has them."""
        assert self.curframe is not None, "pdb asks for commands in frames"
        code, local = self.curframe.f_code, self.curframe_locals
        names: list[str] = [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        for name in names:
            if name != STEPPER:
                self.message(f"{name} = {local[name]!r}" if name in local else f"{name} = *** undefined ***")

    do_a = do_args


@contextmanager
def followed(debugger: object) -> Generator[None]:
    """Have a debugger that was there before, as with `python -m pdb`, step the same way; any other is left alone."""
    if not isinstance(debugger, Bdb) or isinstance(debugger, KernelPdb):
        yield
        return
    stop_here, get_stack = debugger.stop_here, debugger.get_stack
    debugger.stop_here = lambda frame: not is_ours(frame) and stop_here(frame)
    debugger.get_stack = lambda f, t: _without_ours(*get_stack(f, t))
    try:
        yield
    finally:
        if getattr(debugger, "stoplineno", _RUNNING) != _RUNNING:  # whoever steps goes on where the kernel was called
            debugger.set_next(_caller())
        del debugger.stop_here, debugger.get_stack


_RUNNING = -1
"""The line that a debugger stops at which goes on to the next breakpoint."""


def _caller() -> FrameType:
    """Return the frame that called into this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while is_ours(frame) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def _without_ours(stack: list[tuple[FrameType, int]], current: int) -> Stack:
    kept = [number for number, (frame, _) in enumerate(stack) if number == current or not is_ours(frame)]
    return [stack[number] for number in kept], kept.index(current) if current in kept else len(kept) - 1
