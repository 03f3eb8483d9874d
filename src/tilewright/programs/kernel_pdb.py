"""The kernel's pdb: steps from line to line of a kernel, over everything that computes them."""

from __future__ import annotations

from pdb import Pdb
from types import FrameType, TracebackType

from tilewright.interpret.stepped_code import STEPPER


class KernelPdb(Pdb):
    """A pdb that stops in kernels, helpers and what they call of Python's, and not in what stands between these."""

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop in a frame."""
        return not _is_ours(frame) and super().stop_here(frame)

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[tuple[FrameType, int]], int]:
        """Return the frames that `where`, `up` and `down` go through, those that stand between kernels left out."""
        stack, current = super().get_stack(f, t)
        kept = [number for number, (frame, _) in enumerate(stack) if number == current or not _is_ours(frame)]
        return [stack[number] for number in kept], kept.index(current) if current in kept else len(kept) - 1


def _is_ours(frame: FrameType | None) -> bool:
    """Return whether a frame is of this package, or of what it calls: the next one around it that is known decides."""
    while frame is not None and STEPPER not in frame.f_code.co_varnames:
        if str(frame.f_globals.get("__name__", "")).startswith("tilewright."):
            return True
        frame = frame.f_back
    return False
