"""Linked objects: what LLVM's own loader makes of one, where ours does not apply.

LLVM ends the process over a name that it cannot find, so whoever calls has looked them all up before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.errors import ArtifactError
from tilewright.forks import Lock
from tilewright.native.elf import ALLOC, LISTED_SYMBOLS, Object
from tilewright.native.target import host, llvm

_lock = Lock()


def linked(found: Object, outside: Mapping[str, int]) -> tuple[object, dict[str, int]]:
    """Return what keeps an object's code mapped, and where its symbols lie."""
    with _lock:
        for name, address in outside.items():
            llvm().add_symbol(name, address)
        engine = llvm().create_mcjit_compiler(llvm().parse_assembly(f'target triple = "{host().triple}"'), _machine())
        try:
            engine.add_object_file(llvm().ObjectFileRef.from_data(found.data))
            engine.finalize_object()
        except RuntimeError as error:
            raise ArtifactError(f"broken object: {error}") from error
        names = {symbol.name: engine.get_global_value_address(symbol.name) for symbol in _defined(found)}
        return engine, names


def _defined(found: Object) -> list[Any]:
    loaded = {number for number, section in enumerate(found.sections) if section.flags & ALLOC}
    return [each for each in found.symbols if each.name and each.section in loaded and each.kind in LISTED_SYMBOLS]


def _machine() -> Any:
    """Return a machine of LLVM's, which the engine that it is given to owns."""
    target = host()
    return (
        llvm()
        .Target.from_triple(target.triple)
        .create_target_machine(cpu=target.cpu, features=target.features, reloc="pic", codemodel="default", jit=True)
    )
