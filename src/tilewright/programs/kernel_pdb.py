"""The kernel's pdb: steps from line to line of a kernel, over everything that computes them."""

from __future__ import annotations

from pdb import Pdb
from types import FrameType, TracebackType

from tilewright.frontend.tracebacks import STEPPER, is_ours


class KernelPdb(Pdb):
    """A pdb that stops in kernels, helpers and what they call of Python's, and not in what stands between these."""

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop in a frame."""
        return not is_ours(frame) and super().stop_here(frame)

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[tuple[FrameType, int]], int]:
        """Return the frames that `where`, `up` and `down` go through, those that stand between kernels left out."""
        stack, current = super().get_stack(f, t)
        kept = [number for number, (frame, _) in enumerate(stack) if number == current or not is_ours(frame)]
        return [stack[number] for number in kept], kept.index(current) if current in kept else len(kept) - 1

    def do_args(self, arg: str) -> None:
        """Print the arguments of the current function, as its author has them."""
        assert self.curframe is not None, "pdb asks for commands in frames"
        code, local = self.curframe.f_code, self.curframe_locals
        names: list[str] = [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        for name in names:
            if name != STEPPER:
                self.message(f"{name} = {local[name]!r}" if name in local else f"{name} = *** undefined ***")

    do_a = do_args
