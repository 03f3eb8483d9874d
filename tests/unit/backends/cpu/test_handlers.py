"""Which files have the code for ops, and when they are loaded."""

from __future__ import annotations

from importlib import import_module

from tilewright.backends.cpu.host.program import HANDLERS
from tilewright.backends.cpu.host.rare_ops import RARE
from tilewright.ops.registry import OPS


def test_code_for_an_op_is_loaded_before_that_for_its_family() -> None:
    """An op is looked up by its name, then by its family: a family found first would hide a name signed in after it."""
    assert HANDLERS.rare == RARE and len(RARE) > 20
    for module in RARE:
        import_module(module)
    place = {module: number for number, module in enumerate(RARE, start=1)}
    for name, code in HANDLERS.ops.items():
        if name in OPS:
            family = HANDLERS.ops.get(f"{OPS[name].kind.value}:{OPS[name].spec.family}", code)
            assert place.get(code.__module__, 0) <= place.get(family.__module__, 0), name
