"""Compiled kernels: programs as a kernel's calls see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.backends.cpu.dispatch import LAUNCH_WORDS, MAX_PARAMS, RESULT_WORDS
from tilewright.backends.cpu.native import scalar_word
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.types import ScalarType, TensorType
from tilewright.frontend.signature import DynDim, Given, Known, TensorMeta
from tilewright.jit.guards import Guards
from tilewright.jit.reads import ReadSet
from tilewright.jit.tables import Target, key_words
from tilewright.runtime.program import CompiledProgram


@dataclass(eq=False)
class Compiled:
    """A compiled program: which of the kernel's arguments it takes, and what it was compiled from."""

    program: CompiledProgram
    parameters: tuple[str, ...]
    metas: Mapping[str, Given]
    reads: ReadSet
    guards: Guards | None = field(default=None)
    """What the native dispatcher tests before it runs the program; None where it does not know it."""
    _attempts: int = 0
    _waits: int = 0

    def run(self, values: Mapping[str, Any]) -> Any:
        """Run the program on a call's arguments."""
        return self.program(*(values[name] for name in self.parameters if name in values))

    def is_due(self) -> bool:
        """Return whether to try and let the dispatcher know the program as everything is now.

        Where that keeps failing, or what it tests keeps changing, each try waits for one call more than the last did.
        """
        if self.guards is not None and self.guards.hold():
            return False
        self._waits += 1
        if self._waits <= self._attempts:
            return False
        self._waits, self._attempts = 0, self._attempts + 1
        return True

    def forget_guards(self) -> None:
        """Start anew: the dispatcher that knew the program is gone."""
        self.guards, self._attempts, self._waits = None, 0, 0

    @property
    def written(self) -> set[str]:
        """The parameters that the program writes."""
        directions = self.program.directions()
        names = zip(self.parameters, directions, strict=True)
        return {name for name, direction in names if direction is not ParamDirection.In}

    def target(self, given: Sequence[tuple[str, Given]]) -> Target | None:
        """Return the program as an entry of the dispatcher for a call's arguments, None where it cannot be one."""
        native, key = self.program.native, key_words([one for _, one in given])
        (entry,) = self.program.program.entries
        self.guards = None
        if native is None or key is None or not self._is_settled(entry) or not _has_room(entry, len(given)):
            return None
        self.guards = Guards.of(self.reads)
        if self.guards is None:
            return None
        axes = self._axes(given)
        mask = [-1] * len(key)
        for places in axes.values():
            for place in places:
                mask[place] = 0
        same = [(places[0], other) for places in axes.values() for other in places[1:]]
        return Target(key, mask, native.address(entry.name), self.guards, self._scalars(given), same, [self])

    def _is_settled(self, entry: Any) -> bool:
        """Return whether a call with every argument gives nothing back, and every extent is a number or a name."""
        has_output = any(d is ParamDirection.Out for d in entry.param_directions)
        tensors = [p.type for p in entry.params if isinstance(p.type, TensorType)]
        if not all(isinstance(p.type, (TensorType, ScalarType)) for p in entry.params):
            return False
        plain = all(isinstance(e, (int, Symbol)) for t in tensors for e in t.shape)
        return plain and (has_output or not entry.return_types)

    def _axes(self, given: Sequence[tuple[str, Given]]) -> dict[str, list[int]]:
        """Return the places in the key of the axes that go by each name."""
        found: dict[str, list[int]] = {}
        at = 0
        for name, one in given:
            if isinstance(one, TensorMeta):
                meta = self.metas[name]
                dims = meta.shape if isinstance(meta, TensorMeta) else ()
                for axis, dim in enumerate(dims):
                    if isinstance(dim, DynDim):
                        found.setdefault(dim.name, []).append(at + 1 + axis)
                at += 1 + len(one.shape)
            else:
                at += 1 if isinstance(one, Known) and one.value is None else 2
        return found

    def _scalars(self, given: Sequence[tuple[str, Given]]) -> list[tuple[int, int]]:
        """Return which launch words numbers are, and their values."""
        (entry,) = self.program.program.entries
        types = dict(zip(self.parameters, (p.type for p in entry.params), strict=True))
        found: list[tuple[int, int]] = []
        at = 0
        for name, one in given:
            if isinstance(one, TensorMeta):
                at += 1 + 2 * len(one.shape)
            elif isinstance(one, Known) and one.value is not None:
                type_ = types[name]
                assert isinstance(type_, ScalarType)
                found.append((at, scalar_word(type_.dtype, one.value)))
                at += 1
        return found


def _has_room(entry: Any, count: int) -> bool:
    """Return whether the dispatcher's tables hold a call's arguments and results."""
    types = [*(p.type for p in entry.params), *entry.return_types]
    words = sum(1 + 2 * len(t.shape) if isinstance(t, TensorType) else 1 for t in types)
    return count <= MAX_PARAMS and words <= LAUNCH_WORDS + RESULT_WORDS
