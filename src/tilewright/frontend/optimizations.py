"""Optimizations: what `optimizations=[...]` lists. They are hints, and never change a result."""

from __future__ import annotations

import warnings
from typing import TypeAlias

from tilewright.core.enums import SplitMode
from tilewright.records import record

__all__ = ["CrossCoreSlot", "Optimization", "Split", "cross_core_slot", "split"]


@record
class Split:
    """How a kernel's work is split between vector lanes."""

    mode: SplitMode
    slot_num: int | None = None


@record
class CrossCoreSlot:
    """How many buffers cross between cores."""

    slot_num: int


Optimization: TypeAlias = Split | CrossCoreSlot
"""A hint."""


def split(mode: SplitMode, *, slot_num: int | None = None) -> Split:
    """Hint how a kernel's work is split between vector lanes."""
    if slot_num is not None:
        warnings.warn("slot_num= of pl.split is pl.cross_core_slot(slot_num=...) now", DeprecationWarning, stacklevel=2)
        check_slots("pl.split", slot_num)
    return Split(mode, slot_num)


def cross_core_slot(*, slot_num: int) -> CrossCoreSlot:
    """Hint how many buffers cross between cores."""
    check_slots("pl.cross_core_slot", slot_num)
    return CrossCoreSlot(slot_num)


def check_slots(name: str, slot_num: object) -> None:
    """Raise ValueError unless a number of buffers is a positive integer."""
    if not isinstance(slot_num, int) or isinstance(slot_num, bool) or slot_num <= 0:
        raise ValueError(f"slot_num of {name} must be a positive integer, got {slot_num!r}")
