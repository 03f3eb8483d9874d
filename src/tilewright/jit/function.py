"""JIT functions: what `@pl.jit` makes of a Python function."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import FunctionType as PythonFunction
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tilewright import settings
from tilewright.core.enums import Level
from tilewright.errors import DriftError, brief
from tilewright.frontend.kernels import UNBOUND, Kernel, KernelKind
from tilewright.frontend.signature import Alike, DynDim, TensorMeta
from tilewright.jit.calls import Binder, Call
from tilewright.jit.store import CacheInfo, Store
from tilewright.runtime.buffers import buffer_of

if TYPE_CHECKING:
    from tilewright.core.program import Program
    from tilewright.frontend.entries import Specialization
    from tilewright.jit.compiled import Compiled
    from tilewright.jit.fast import FastPath
    from tilewright.runtime.config import RunConfig
    from tilewright.runtime.program import CompiledProgram

_MISSING = {
    KernelKind.HOST: "orchestration over several devices",
    KernelKind.EXTERN: "kernels written in C++",
}
_INSTEAD = "write it with @pl.jit, and its kernels with @pl.jit.incore"


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
        drift: str | None = None,
    ) -> None:
        super().__init__(function, kind, level, owner)
        functools.update_wrapper(self, function)
        self.auto_scope = auto_scope
        self._drift = drift
        self._store: Store[Compiled] = Store()
        self._lock = threading.RLock()
        self._methods: WeakKeyDictionary[Any, JITFunction] = WeakKeyDictionary()
        self._fast: FastPath | None = None

    def __repr__(self) -> str:
        return f"JITFunction({self.name!r}, func_type={self.kind.value!r})"

    def __get__(self, instance: object, owner: type | None = None) -> JITFunction:
        """Return the kernel as a method of `instance`, the same one each time."""
        if instance is None:
            return self
        bound = self._methods.get(instance)
        if bound is None:
            bound = JITFunction(self.function, self.kind, self.level, self.auto_scope, instance, self._drift)
            self._methods[instance] = bound
        return bound

    def __call__(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> Any:
        """Run the kernel on tensors and numbers, compiling it first where these are new."""
        if self.kind is not KernelKind.ENTRY:
            self._check_there()
            return super().__call__(*args, **kwargs)
        call = self._binder.call(args, kwargs)
        hits = self._store.hits
        found = self._compiled(call, config)
        result = found.run(call.values)
        if config is None and self._store.hits > hits:
            self._hasten(call, found)
        return result

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
        info = self._store.info()
        return info._replace(hits=info.hits + (self._fast.hits if self._fast is not None else 0))

    def cache_clear(self) -> None:
        """Forget every compiled program."""
        with self._lock:
            self._store = Store()
            self._leave_fast_path()

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
        """Return the program for a call, compiled where there is none; of several threads that want it, one does."""
        kinds = (call.kinds, config, settings.checked())
        found = self._found(kinds, call)
        if found is not None:
            return found
        with self._lock:
            found = self._found(kinds, call)
            return found if found is not None else self._made(kinds, call, config)

    def _found(self, kinds: object, call: Call) -> Compiled | None:
        """Return a program whose reads still hold; DriftError where one's do not and the kernel is not to recompile."""
        drifted = None
        for candidate in self._store.find(kinds, call.extents):
            drift = candidate.reads.drift()
            if drift is None:
                self._store.hits += 1
                return candidate
            drifted = drifted or drift
        if drifted is not None and not drifted.is_own and (self._drift or settings.drift()) == "raise":
            raise DriftError(
                f"kernel `{self.name}`: {drifted}\n    help: restore it, "
                "or let the kernel follow with @pl.jit(drift='recompile') or TILEWRIGHT_DRIFT=recompile"
            )
        return None

    def _made(self, kinds: object, call: Call, config: RunConfig | None) -> Compiled:
        from tilewright.jit.compiled import Compiled
        from tilewright.jit.reads import ReadSet
        from tilewright.runtime.compiler import compile

        self._store.misses += 1
        made = self._specialized(call)
        options: dict[str, Any] = {} if config is None else {"platform": config.platform, "strategy": config.strategy}
        compiled = Compiled(compile(made.program, **options), made.parameters, made.metas, ReadSet(made.reads))
        self._store.compiles += 1
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

    # the native way in

    def _hasten(self, call: Call, found: Compiled) -> None:
        """Let later calls like this one find their program without Python."""
        from tilewright.jit.fast import FastPath

        if len(call.values) != len(self.parameters) or not FastPath.is_available():
            return
        if found.is_reachable and self._fast is not None and self._fast.is_current() and found.reads.is_same():
            return
        found.reads = found.reads.renewed()
        with self._lock:
            if self._fast is not None and not self._fast.is_current():
                self._leave_fast_path()
            if self._fast is None:
                self._fast = FastPath(len(self.parameters), self._slow_call)
            if self._fast.add(call, found):
                self.__class__ = self._fast.entered(JITFunction)  # pyright: ignore[reportAttributeAccessIssue]

    def _slow_call(self, *args: Any, **kwargs: Any) -> Any:
        return JITFunction.__call__(self, *args, **kwargs)

    def _leave_fast_path(self) -> None:
        if self._fast is not None:
            self._store.hits += self._fast.hits
        self._fast = None
        self.__class__ = JITFunction  # pyright: ignore[reportAttributeAccessIssue]
        for compiled in self._store.programs():
            compiled.is_reachable = False


def _dynamic_positions(made: Specialization) -> list[int]:
    """Return which of all the tensors' extents, one after the other, the program takes as they come."""
    dims = [d for meta in made.metas.values() if isinstance(meta, TensorMeta) for d in meta.shape]
    return [position for position, dim in enumerate(dims) if isinstance(dim, DynDim)]
