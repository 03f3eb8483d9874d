"""Compiled kernels: programs as a kernel's calls see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.backends.cpu.native import scalar_word
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.types import ScalarType, TensorType
from tilewright.frontend.signature import DynDim, Given, Known, TensorMeta
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
    is_reachable: bool = field(default=False)
    """Whether the native dispatcher knows it."""

    def run(self, values: Mapping[str, Any]) -> Any:
        """Run the program on a call's arguments."""
        return self.program(*(values[name] for name in self.parameters if name in values))

    @property
    def written(self) -> set[str]:
        """The parameters that the program writes."""
        directions = self.program.directions()
        names = zip(self.parameters, directions, strict=True)
        return {name for name, direction in names if direction is not ParamDirection.In}

    def target(self, given: Sequence[tuple[str, Given]], number: int) -> Target | None:
        """Return the program as an entry of the dispatcher for a call's arguments, None where it cannot be one."""
        native, guards = self.program.native, self.reads.guards
        key = key_words([one for _, one in given])
        (entry,) = self.program.program.entries
        is_plain = all(isinstance(p.type, (TensorType, ScalarType)) for p in entry.params)
        if native is None or guards is None or key is None or not is_plain or not self._is_settled(entry):
            return None
        axes = self._axes(given)
        mask = [-1] * len(key)
        for places in axes.values():
            for place in places:
                mask[place] = 0
        same = [(places[0], other) for places in axes.values() for other in places[1:]]
        target = Target(key, mask, native.address(entry.name), number, guards.watched, guards.fields())
        target.scalars, target.same, target.probes = self._scalars(given), same, guards.probes
        target.keep += [guards, self]
        return target

    def _is_settled(self, entry: Any) -> bool:
        """Return whether a call with every argument gives nothing back, and every extent is a number or a name."""
        has_output = any(d is ParamDirection.Out for d in entry.param_directions)
        tensors = [p.type for p in entry.params if isinstance(p.type, TensorType)]
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
