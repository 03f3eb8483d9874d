"""JIT functions: what `@pl.jit` makes of a Python function."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from operator import is_not
from types import FunctionType as PythonFunction
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.call.rerouting import reroute
from tilewright.call.torch_state import has_shards, is_recorded, is_watched
from tilewright.collector import paused_collection
from tilewright.core.enums import Level
from tilewright.frontend.kernels import UNBOUND, KernelKind
from tilewright.frontend.references import Referred
from tilewright.frontend.tracebacks import brief
from tilewright.jit.bound_methods import bound
from tilewright.jit.hosts import beside_others
from tilewright.jit.torch_kernels import Followed
from tilewright.jit.variants import CacheInfo

if TYPE_CHECKING:
    from tilewright.core.program import Program
    from tilewright.frontend.entries import Specialization
    from tilewright.jit.detours import CallInfo
    from tilewright.jit.session import Session
    from tilewright.jit.traced import Traced
    from tilewright.programs.config import RunConfig
    from tilewright.programs.program import CompiledProgram

_MISSING = {
    KernelKind.EXTERN: "kernels written in C++",
}
_INSTEAD = "write it with @pl.jit, and its kernels with @pl.jit.incore"


class JITFunction(Followed, Referred):
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
        gradient: JITFunction | None = None,
        config: RunConfig | None = None,
    ) -> None:
        super().__init__(function, kind, level, owner)
        functools.update_wrapper(self, function)
        self.auto_scope = auto_scope
        self.drift = drift
        """What to do about a changed global, `raise` or `recompile`; None leaves that to the settings."""
        self.gradient: JITFunction | None = gradient
        """The kernel that gives autograd the gradients of this one."""
        self.config = config
        """How calls run that say nothing else; only host functions that torch follows have one."""
        self.traced: Traced
        """Its calls as torch traces them; there once `_make_traceable` was called."""
        self._make_traceable = _tracer(self, lambda: self._session)
        self._methods: dict[int, JITFunction] = {}
        """The kernel as a method of each instance that has no room for it, by identity."""

    def __repr__(self) -> str:
        return f"JITFunction({self.name!r}, func_type={self.kind.value!r})"

    def __get__(self, instance: object, owner: type | None = None) -> JITFunction:
        """Return the kernel as a method of `instance`, the same one each time."""
        if instance is None:
            return self
        found = bound(self, instance, lambda: self._bound(instance))
        if found is None:
            found = self._methods.get(id(instance)) or self._methods.setdefault(id(instance), self._bound(instance))
        return found

    def _bound(self, instance: object) -> JITFunction:
        return JITFunction(
            self.function, self.kind, self.level, self.auto_scope, instance, self.drift, self._gradient_of(instance)
        )

    def _is_method_of(self, instance: object) -> bool:
        return getattr(type(instance), self.function.__name__, None) is self

    def _gradient_of(self, instance: object) -> JITFunction | None:
        return None if self.gradient is None else self.gradient.__get__(instance)

    def __reduce__(self) -> Any:
        """Return where the kernel is found: in its module, or by its name in the instance that it is a method of."""
        return super().__reduce__() if self.owner is UNBOUND else (getattr, (self.owner, self.function.__name__))

    def __deepcopy__(self, memo: dict[int, Any]) -> JITFunction:
        """Return the kernel itself, and a method as that of a copy of its instance."""
        return self if self.owner is UNBOUND else self.__get__(copy.deepcopy(self.owner, memo))

    @brief
    def __call__(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> Any:
        """Run the kernel on tensors and numbers, compiling it first where these are new."""
        if self.kind not in (KernelKind.ENTRY, KernelKind.HOST):
            self._check_there()
            return super().__call__(*args, **kwargs)
        if args and self.owner is UNBOUND and self._is_method_of(args[0]):
            return self.__get__(args[0])(*args[1:], config=config, **kwargs)  # as in `Class.method(instance, x)`
        config = config or self.config
        if self.kind is KernelKind.HOST:
            with beside_others(config):
                return self._called(args, kwargs, config)
        return self._called(args, kwargs, config)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], config: RunConfig | None) -> Any:
        values = (*args, *kwargs.values())
        is_traced = is_watched(values)
        if is_traced and self.kind is KernelKind.HOST and has_shards(values):
            return self._on_shards(args, kwargs, config)
        if is_traced or (self.gradient is not None and is_recorded(values)):
            if config is not None and self.kind is KernelKind.HOST and self.config is None:
                return self.on(config)(*args, **kwargs)
            if config is not self.config:
                raise TypeError(f"kernel `{self.name}`: torch follows this call, which takes no config=")
            self._make_traceable()
            return self.traced(*args, **kwargs) if is_traced else self.traced.record(*args, **kwargs)
        return self._session.run(args, kwargs, config)

    def __getitem__(self, grid: Any) -> NoReturn:
        """Raise TypeError: a kernel has no launch grid."""
        help = "it says itself what runs at the same time, in its pl.parallel loops and pl.spmd scopes"
        raise TypeError(f"a @pl.jit kernel is called without a grid, as {self.name}(...): {help}")

    def backward(self, function: Callable[..., Any], /) -> JITFunction:
        """Make a function, or another kernel, the one that gives autograd the gradients of this one.

        Its parameters say what it takes and gives: names of this kernel's parameters are what was passed and written,
        `dy` is the gradient of an output `y`, and an output `dx` that of an input `x`.
        """
        self._check_entry()
        if not isinstance(function, (JITFunction, PythonFunction)):
            kind = type(function).__name__
            raise TypeError(f"kernel `{self.name}`: a backward is a kernel or a function, got {kind}")
        made = function if isinstance(function, JITFunction) else JITFunction(function, self.kind)
        made._check_entry()
        self.gradient = made
        return made

    @brief
    def compile(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> CompiledProgram:
        """Return the program for sample tensors, or for the annotations alone when there are none."""
        self._check_entry()
        return self._session.program(args, kwargs, config)

    @brief
    def lower(self, *args: Any, config: RunConfig | None = None, **kwargs: Any) -> Program:
        """Return the program after all passes; nothing is compiled, kept or counted."""
        from tilewright.passes.manager import PassManager

        strategy = [config.strategy] if config is not None else []
        return PassManager.get_strategy(*strategy).run_passes(self.specialize(*args, **kwargs).program)

    @brief
    def specialize(self, *args: Any, **kwargs: Any) -> Specialization:
        """Return the program as the front end makes it for some arguments, before any pass."""
        self._check_entry()
        return self._session.specialized(args, kwargs)

    @brief
    def debug(
        self,
        *args: Any,
        config: RunConfig | None = None,
        seed: int | None = None,
        at: Mapping[str, int] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run the kernel line by line on eager tiles, for `breakpoint()`, pdb and an IDE to follow; return its results.

        Turns of parallel loops run in order, or as a `seed` shuffles them. With `at={"i": 5}` the loop over `i` runs
        unseen up to that turn, where the debugger opens. A host function runs on the ranks of a `config`, one after the
        other from wait to wait; nothing else of that matters here.
        """
        self._check_entry()
        return self._session.steps.run(self._session.binder, args, kwargs, seed, at, config)

    def cache_info(self) -> CacheInfo:
        """Return how often a call found its program, did not, how many were compiled, and how many there are."""
        return self._session.info()

    def call_info(self) -> CallInfo:
        """Return how many calls found their program directly, how many through Python, and why those did."""
        return self._session.calls()

    def cache_clear(self) -> None:
        """Forget every compiled program of this process."""
        self._session.clear()

    def explain_miss(self, *args: Any, **kwargs: Any) -> str:
        """Return which part of what a program is found by keeps these arguments from one, with old and new value.

        Where there is one, and such calls go through Python to it, say why.
        """
        self._check_entry()
        return self._session.explain(args, kwargs)

    @property
    def _session(self) -> Session:
        """What a kernel needs once it is called: decorating one loads none of it."""
        found = self.__dict__.get("_held")
        if found is not None:
            return found
        with paused_collection():  # undivided: a fork would leave the child with modules that are half imported
            return self.__dict__.setdefault("_held", self._new_session())

    def _new_session(self) -> Session:
        from tilewright.jit.session import Session

        return Session(self, self.drift, functools.partial(JITFunction.__call__, self), self._enter)

    def _enter(self, call: Any) -> None:
        """Let calls of this kernel go to `call` first; None for the way through Python again."""
        if call is not None:
            from tilewright.jit.torch_compiler import tell

            tell(self, self._session)
        reroute(self, call)

    def _check_there(self) -> None:
        """Raise for the kinds of functions that can be declared and nothing more."""
        if self.kind in _MISSING:
            raise NotImplementedError(f"{self!r}: {_MISSING[self.kind]} cannot be compiled yet; {_INSTEAD}")

    def _check_entry(self) -> None:
        self._check_there()
        if self.kind not in (KernelKind.ENTRY, KernelKind.HOST):
            raise TypeError(f"{self!r} is called by kernels: only a @pl.jit function can be compiled on its own")


def _tracer(kernel: JITFunction, session: Callable[[], Session]) -> Callable[[], None]:
    """Return a function that makes a kernel traceable: operators for its calls, the same until its defaults change."""
    made_of: list[object] = []

    def make_traceable() -> None:
        from tilewright.jit.traced import traced

        function = kernel.function
        parts = [function.__code__, function.__defaults__, function.__kwdefaults__, kernel.gradient]
        if len(made_of) != len(parts) or any(map(is_not, made_of, parts)):
            kernel.traced = traced(kernel, session(), kernel.gradient)
            made_of[:] = parts

    vars(make_traceable)["_dynamo_marked_constant"] = True  # torch's compiler calls it, and reads other functions
    return make_traceable
