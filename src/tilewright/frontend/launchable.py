"""Launchables: kernels of another language, which functions of this one launch on the blocks of a grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tilewright.core.expr import Expr
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.core.program import Program


class Launchable(ABC):
    """A kernel that is launched as `kernel[grid, stream](...)`."""

    @property
    @abstractmethod
    def text_digest(self) -> str:
        """What tells its text, as it is by now, from all others."""

    @abstractmethod
    def guards(self) -> Any:
        """Return tests of Python's objects under which its text is the same (`call/guards.py`), None for none."""

    @abstractmethod
    def for_grids(self, are_apart: bool) -> Program:
        """Return a program whose last function, to be written out, takes a number of blocks and the kernel's arguments.

        Unless its tensors `are_apart`, they may share memory. KernelError for a kernel that is none.
        """


@record
class Launching:
    """A kernel on so many blocks, about to be called with its arguments."""

    kernel: Launchable
    text_digest: str
    """As the function has read it."""
    grid: Expr
