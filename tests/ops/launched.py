"""Launched programs: native entries run on NumPy arrays and numbers as they are, none of them checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.backends.host import HostProgram
from tilewright.call.argument import Argument, is_array
from tilewright.call.binding import Bound
from tilewright.call.frameworks import NUMPY
from tilewright.call.launch import run_native
from tilewright.core.enums import ParamDirection


def unchecked(native: HostProgram, name: str, args: Sequence[Any]) -> Bound:
    """Return arguments of an entry that may write all of them."""
    values = [Argument.of_array(arg) if is_array(arg) else arg for arg in args]
    return Bound(native.program[name], [ParamDirection.InOut] * len(values), list(args), values, NUMPY)


def launched(native: HostProgram, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return what an entry returns."""
    return run_native(native, unchecked(native, name, args))
