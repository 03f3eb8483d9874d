"""Which files have the code for ops, and when they are loaded."""

from __future__ import annotations

from types import ModuleType

from tilewright.backends.cpu.emit.function import HANDLERS
from tilewright.backends.cpu.host import rare_ops
from tilewright.ops.registry import OPS


def test_code_that_is_loaded_late_stands_behind_none_that_is_loaded_early() -> None:
    """An op is looked up by its name, then by its family: a family found early would hide a name signed in late."""
    late = {value.__name__ for value in vars(rare_ops).values() if isinstance(value, ModuleType)}
    assert len(late) > 20
    for name, code in HANDLERS.ops.items():
        if code.__module__ in late and name in OPS:
            family = HANDLERS.ops.get(f"{OPS[name].kind.value}:{OPS[name].spec.family}")
            assert family is None or family.__module__ in late, name
