"""Compiled kernels: programs as a kernel's calls see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilewright.backends.host import scalar_word
from tilewright.core.enums import ParamDirection
from tilewright.core.types import ScalarType
from tilewright.forks import computed_once
from tilewright.frontend.signature import DynDim, Given, Known, TensorMeta
from tilewright.keep.reads import ReadSet
from tilewright.programs.program import CompiledProgram

if TYPE_CHECKING:  # the fast path, which a first call does without
    from tilewright.call.tables import Target


@dataclass(eq=False, repr=False)
class Compiled:
    """A compiled program: which of the kernel's arguments it takes, and what it was compiled from."""

    program: CompiledProgram
    parameters: tuple[str, ...]
    metas: Mapping[str, Given]
    reads: ReadSet
    returns: tuple[str, ...] | None
    """The parameters that it gives back where outputs are left out, None where it may give back something else."""

    def run(self, values: Mapping[str, Any]) -> Any:
        """Run the program on a call's arguments."""
        return self.program(*(values[name] for name in self.parameters if name in values))

    @property
    def dynamic(self) -> list[int]:
        """Which of all the tensors' extents, one after the other, the program takes as they come."""
        dims = [dim for meta in self.metas.values() if isinstance(meta, TensorMeta) for dim in meta.shape]
        return [position for position, dim in enumerate(dims) if isinstance(dim, DynDim)]

    @property
    def written(self) -> set[str]:
        """The parameters that the program writes."""
        directions = self.program.directions()
        names = zip(self.parameters, directions, strict=True)
        return {name for name, direction in names if direction is not ParamDirection.In}

    def target(self, given: Sequence[tuple[str, Given]]) -> Target | None:
        """Return the program as an entry of the dispatcher for a call's arguments, None where it cannot be one."""
        from tilewright.call.guards import Guards
        from tilewright.call.tables import Target, key_words
        from tilewright.jit.direct import fits, given_back

        native, key = self.program.native, key_words([one for _, one in given])
        (entry,) = self.program.program.entries
        if native is None or key is None or not fits(entry, len(given), self.returns):
            return None
        guards = Guards.of(self.reads)
        if guards is None:
            return None
        axes = self._axes(given)
        mask = [-1] * len(key)
        for places in axes.values():
            for place in places:
                mask[place] = 0
        same = [(places[0], other) for places in axes.values() for other in places[1:]]
        names = [name for name, _ in given]
        returns = [names.index(name) for name in given_back(entry, self.returns)]
        keep = [self, *(one.value for _, one in given if isinstance(one, Known))]  # some go by their identity
        return Target(key, mask, native.address(entry.name), guards, self._scalars(given), same, keep, returns)

    @computed_once
    def obstacle(self) -> str:
        """Why the dispatcher can call the program for no arguments at all, or nothing."""
        from tilewright.call.guards import Guards
        from tilewright.jit.direct import fits

        (entry,) = self.program.program.entries
        if self.program.native is None:
            return "it runs on the interpreter"
        if not fits(entry, len(self.metas), self.returns):
            known = self.returns is not None or not entry.return_types
            return "it has too many parameters, or computes an extent" if known else "it returns what it made itself"
        return Guards.obstacle(self.reads)

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
            elif isinstance(one, Known) and name in types:
                type_ = types[name]
                assert isinstance(type_, ScalarType)
                found.append((at, scalar_word(type_.dtype, one.value)))
                at += 1
        return found
