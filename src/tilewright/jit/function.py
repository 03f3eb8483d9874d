"""JIT functions: what `@pl.jit` makes of a Python function."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType as PythonFunction
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tilewright.core.enums import Level
from tilewright.errors import brief
from tilewright.frontend.kernels import UNBOUND, Kernel, KernelKind
from tilewright.frontend.signature import Alike, DynDim, TensorMeta
from tilewright.jit.calls import Binder, Call
from tilewright.jit.store import CacheInfo, Store
from tilewright.runtime.buffers import buffer_of

if TYPE_CHECKING:
    from tilewright.core.program import Program
    from tilewright.frontend.entries import Specialization
    from tilewright.runtime.config import RunConfig
    from tilewright.runtime.program import CompiledProgram


_MISSING = {
    KernelKind.HOST: "orchestration over several devices",
    KernelKind.EXTERN: "kernels written in C++",
}
_INSTEAD = "write it with @pl.jit, and its kernels with @pl.jit.incore"


@dataclass(frozen=True)
class Compiled:
    """A compiled program, and which of the kernel's arguments it takes, in order."""

    program: CompiledProgram
    parameters: tuple[str, ...]

    def run(self, values: Mapping[str, Any]) -> Any:
        """Run the program on a call's arguments."""
        return self.program(*(values[name] for name in self.parameters if name in values))


class JITFunction(Kernel):
    """A kernel that is specialized and compiled at its first call, and found again at every later one.

    Called with all its parameters it writes outputs in place; called with its inputs alone it returns them.
    """

    def __init__(
        self,
        function: PythonFunction,
        kind: KernelKind = KernelKind.ENTRY,
        level: Level | None = None,
        auto_scope: bool = True,
        owner: object = UNBOUND,
    ) -> None:
        super().__init__(function, kind, level, owner)
        functools.update_wrapper(self, function)
        self.auto_scope = auto_scope
        self._store: Store[Compiled] = Store()
        self._lock = threading.RLock()
        self._methods: WeakKeyDictionary[Any, JITFunction] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"JITFunction({self.name!r}, func_type={self.kind.value!r})"

    def __get__(self, instance: object, owner: type | None = None) -> JITFunction:
        """Return the kernel as a method of `instance`, the same one each time."""
        if instance is None:
            return self
        bound = self._methods.get(instance)
        if bound is None:
            bound = JITFunction(self.function, self.kind, self.level, self.auto_scope, instance)
            self._methods[instance] = bound
        return bound

    def __call__(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> Any:
        """Run the kernel on tensors and numbers, compiling it first where these are new."""
        if self.kind is not KernelKind.ENTRY:
            self._check_there()
            return super().__call__(*args, **kwargs)
        call = self._binder.call(args, kwargs)
        return self._compiled(call, config).run(call.values)

    def compile(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> CompiledProgram:
        """Return the program for sample tensors, or for the annotations alone when there are none."""
        return self._compiled(self._described(args, kwargs), config).program

    @brief
    def lower(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> Program:
        """Return the program after all passes; nothing is compiled, kept or counted."""
        from tilewright.passes.manager import PassManager

        strategy = [config.strategy] if config is not None else []
        return PassManager.get_strategy(*strategy).run_passes(self.specialize(*args, **kwargs).program)

    @brief
    def specialize(self, *args: Any, **kwargs: Any) -> Specialization:
        """Return the program as the front end makes it for some arguments, before any pass."""
        return self._specialized(self._described(args, kwargs))

    def cache_info(self) -> CacheInfo:
        """Return how often a call found its program, did not, how many were compiled, and how many there are."""
        return self._store.info()

    def cache_clear(self) -> None:
        """Forget every compiled program."""
        with self._lock:
            self._store = Store()

    @cached_property
    def _binder(self) -> Binder:
        return Binder(self)

    def _described(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        self._check_entry()
        if any(buffer_of(value) is not None for value in (*args, *kwargs.values())):
            return self._binder.call(args, kwargs)
        return self._binder.signature(args, kwargs)

    def _check_there(self) -> None:
        """Raise for the kinds of functions that can be declared and nothing more."""
        if self.kind in _MISSING:
            raise NotImplementedError(f"{self!r}: {_MISSING[self.kind]} cannot be compiled yet; {_INSTEAD}")

    def _check_entry(self) -> None:
        self._check_there()
        if self.kind is not KernelKind.ENTRY:
            raise TypeError(f"{self!r} is called by kernels: only a @pl.jit function can be compiled on its own")

    @brief
    def _compiled(self, call: Call, config: RunConfig | None) -> Compiled:
        kinds = (call.kinds, config)
        found = self._store.find(kinds, call.extents)
        return found if found is not None else self._missed(kinds, call, config)

    def _missed(self, kinds: object, call: Call, config: RunConfig | None) -> Compiled:
        """Compile what no call has asked for yet; of several threads that want it, one does."""
        from tilewright.runtime.compiler import compile

        with self._lock:
            variants = self._store.variants.get(kinds)
            found = variants.find(call.extents) if variants is not None else None
            if found is not None:
                return found
            made = self._specialized(call)
            options: dict[str, Any] = (
                {} if config is None else {"platform": config.platform, "strategy": config.strategy}
            )
            compiled = Compiled(compile(made.program, **options), made.parameters)
            self._store.add(kinds, _dynamic_positions(made), call.extents, compiled)
            return compiled

    def _specialized(self, call: Call) -> Specialization:
        from tilewright.frontend.entries import specialize

        made = specialize(self, call.given)
        for name, given in call.given.items():
            if isinstance(given, Alike) and name not in call.values:
                self._check_guess(made, name)
        return made

    def _check_guess(self, made: Specialization, name: str) -> None:
        """Raise where an output that was taken to be like the inputs cannot be."""
        from tilewright.frontend.outputs import unreached_axis

        axis = unreached_axis(made.program, made.program[self.name], made.parameters.index(name))
        if axis is not None:
            raise TypeError(
                f"@pl.jit function '{self.name}': cannot tell the shape of the output `{name}`, which is not written "
                f"as far as the inputs go along axis {axis}: pass it, or annotate it, "
                "for example pl.Out[pl.Tensor[[M, 1], pl.FP32]]"
            )


def _dynamic_positions(made: Specialization) -> list[int]:
    """Return which of all the tensors' extents, one after the other, the program takes as they come."""
    dims = [d for meta in made.metas.values() if isinstance(meta, TensorMeta) for d in meta.shape]
    return [position for position, dim in enumerate(dims) if isinstance(dim, DynDim)]
