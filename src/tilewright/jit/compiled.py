"""Compiled kernels: programs as a kernel's calls see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from tilewright.arrays import np
from tilewright.call.placement import MISSING
from tilewright.call.tracing import traced
from tilewright.core.enums import ParamDirection
from tilewright.core.types import ScalarType, Type
from tilewright.forks import computed_once
from tilewright.frontend.signature import DynDim, Given, Known, RuntimeScalar, TensorMeta, dynamic_extents
from tilewright.jit.calls import Call
from tilewright.keep.reads import ReadSet
from tilewright.programs.program import CompiledProgram
from tilewright.records import mutable

if TYPE_CHECKING:  # the fast path, which a first call does without
    from tilewright.call.guards import Guards
    from tilewright.call.targets import Callee, Learned, Slot


@mutable
class Compiled:
    """A compiled program: which of the kernel's arguments it takes, and what it was compiled from."""

    program: CompiledProgram
    parameters: tuple[str, ...]
    metas: Mapping[str, Given]
    reads: ReadSet
    returns: tuple[str, ...] | None
    """The parameters that it gives back where outputs are left out, None where it may give back something else."""

    def run(self, call: Call, trace: str | PathLike[str] | None = None) -> Any:
        """Run the program on a call's arguments, which are described already, on a timeline where one is named."""
        given = [call.values.get(name, MISSING) for name in self.parameters]
        with traced(trace, self.program.declared.name):
            return self.program.entry.run_described(given, call.arguments)

    def prepared(self, call: Call) -> Callable[[], object]:
        """Return a run of the program on a call's arguments, to be made again and again: hardly more than its code."""
        from tilewright.call.binding import bind_described
        from tilewright.call.launch import prepared

        native, entry = self.program.native, self.program.entry
        if native is None:
            return partial(self.run, call)
        given = [call.values.get(name, MISSING) for name in self.parameters]
        return prepared(native, bind_described(entry.function, entry.directions, given, call.arguments))

    def callee(self, device: str) -> Callee | None:
        """Return the program as dispatchers call it for tensors of a device, None on the interpreter."""
        from tilewright.call.targets import Callee

        native = self.program.native
        if native is not None and device not in self._callees:
            self._callees[device] = Callee(native.on(device), self.program.entry.function)
        return self._callees.get(device)

    @computed_once
    def _callees(self) -> dict[str, Callee]:
        return {}

    def learned(self, call: Call, result: Any) -> Learned | None:
        """Return a call that gave `result` as a dispatcher learns it, None where it cannot take calls like it."""
        from tilewright.call.targets import Learned, fits, given_back

        names, entry, callee = list(call.described), self.program.entry.function, self.callee(call.device)
        left_out = [name for name in names if name not in call.values]
        if callee is None or not fits(entry, len(names), self.returns):
            return None
        if left_out and (self.returns is None or not {*left_out} <= {*self.returns}):
            return None
        if not all(self.takes(name, one) for name, one in call.given.items() if isinstance(one, TensorMeta)):
            return None
        results = result if left_out and len(self.returns or ()) > 1 else (result,)
        made = dict(zip(self.returns or (), results, strict=False)) if left_out else {}
        slots = [self._slot(call, name, made.get(name) if name in left_out else None) for name in names]
        returns = (self.returns or ()) if left_out else given_back(entry, self.returns)
        written = sum(1 << place for place, name in enumerate(names) if name in self.written)
        return Learned(callee, slots, [names.index(name) for name in returns], written, self)

    def _slot(self, call: Call, name: str, made: Any) -> Slot:
        from tilewright.call.targets import Slot

        meta = self.metas[name]
        if isinstance(meta, RuntimeScalar):
            return self._number(call.values[name], name)
        shape = meta.shape if isinstance(meta, TensorMeta) else ()
        dims = [dim.name if isinstance(dim, DynDim) else None for dim in shape]
        given = call.passed(name) if made is None else TensorMeta(tuple(made.shape), meta.dtype)  # pyright: ignore
        callee = self.callee(call.device)
        is_filled = made is not None and callee is not None and callee.fills(name)
        return Slot(given, self.types.get(name), dims, made=made, is_filled=is_filled, device=call.device)

    def _number(self, value: Any, name: str) -> Slot:
        """Return the slot of a number that each call brings."""
        from tilewright.call.targets import Slot, open_bounds

        number: Any = cast("Any", value).item() if isinstance(value, np.generic) else value
        param = self.program.entry.function.params[self.parameters.index(name)]
        assert isinstance(param.type, ScalarType)
        return Slot(Known(number), param.type, bounds=open_bounds(param.type.dtype, number, param.bounds))

    def takes(self, name: str, given: TensorMeta) -> bool:
        """Return whether the program takes a tensor as it lies."""
        entry = self.program.entry.function
        return given.is_turned == (name in entry.turned) and given.step == entry.stepped.get(name, 1)

    @property
    def dynamic(self) -> list[int]:
        """Which of all the tensors' extents, one after the other, the program takes as they come."""
        return dynamic_extents(self.metas)

    @property
    def types(self) -> dict[str, Type]:
        """The types of the program's parameters."""
        params = self.program.entry.function.params
        return dict(zip(self.parameters, (param.type for param in params), strict=True))

    @computed_once
    def written(self) -> frozenset[str]:
        """The parameters that the program writes."""
        names = zip(self.parameters, self.program.directions(), strict=True)
        return frozenset(name for name, direction in names if direction is not ParamDirection.In)

    def guards(self) -> Guards | None:
        """Return what to test before it is run, as everything is now; None where only Python can."""
        from tilewright.call.guards import Guards

        return Guards.of(self.reads)

    @computed_once
    def obstacle(self) -> str:
        """Why the dispatcher can call the program for no arguments at all, or nothing."""
        from tilewright.call.guards import Guards
        from tilewright.call.targets import fits

        entry = self.program.entry.function
        if self.program.native is None:
            return "it runs on the interpreter"
        if not fits(entry, len(self.metas), self.returns):
            known = self.returns is not None or not entry.return_types
            return "it has too many parameters, or computes an extent" if known else "it returns what it made itself"
        return Guards.obstacle(self.reads)
