"""Cautions: what this package warns of, each kind a class, so that it can be made an error or be silenced."""

from __future__ import annotations


class KernelWarning(UserWarning):
    """What the text of a kernel may not mean: it is told once the kernel has been read, and may be made an error."""


class DroppedWriteWarning(KernelWarning):
    """An Out parameter that is rebound or never written: the caller's buffer stays as it was."""


class WrittenInputWarning(KernelWarning):
    """A parameter that is no output, and is written: the caller's tensor changes all the same."""


class WholeQuotientWarning(KernelWarning):
    """A quotient of integers that only the running program knows, which is an integer, too."""


class DependentTurnsWarning(UserWarning):
    """Turns of a parallel loop that depend on each other: they run one after the other, or leave open which is last."""


class CacheWarning(UserWarning):
    """A cache on disk that cannot be written: code is compiled again in the next process."""
