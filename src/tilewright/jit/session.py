"""Sessions: a kernel's life in this process, from its first call on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright import settings
from tilewright.call.ranges import APART
from tilewright.call.written_calls import Configured, Written, taken
from tilewright.collector import paused_collection
from tilewright.errors import DriftError
from tilewright.forks import Lock, computed_once, undivided
from tilewright.frontend.kernels import Kernel, KernelKind
from tilewright.frontend.signature import Known
from tilewright.frontend.tracebacks import brief
from tilewright.jit.calls import Binder, Call
from tilewright.jit.compiled import Compiled
from tilewright.jit.detours import COMPILED, FIRST, CallInfo, Detours, lasting_reason
from tilewright.jit.explanations import conditions, explained
from tilewright.jit.hosts import host_program, is_one_process, ranks_of
from tilewright.jit.kept import KeptCall
from tilewright.jit.specializing import NotAlike, read, returned, specialized
from tilewright.jit.variants import CacheInfo, Store
from tilewright.jit.warm_calls import WarmCalls
from tilewright.keep.reads import Drift, ReadSet
from tilewright.passes.strategy import OptimizationStrategy
from tilewright.programs.code_options import code_options
from tilewright.programs.platforms import DEFAULT, Unsaid, platform_for
from tilewright.programs.stages import Remade

if TYPE_CHECKING:
    from tilewright.frontend.entries import Specialization
    from tilewright.jit.steps import Steps
    from tilewright.programs.config import RunConfig
    from tilewright.programs.program import CompiledProgram

FOLLOW = "    help: restore it, or let the kernel follow with @pl.jit(drift='recompile') or TILEWRIGHT_DRIFT=recompile"


class Session:
    """The programs of one kernel, and the calls that find them.

    `slow` is the kernel's call through Python; `enter` lets its calls go elsewhere first, or with None no longer.
    """

    def __init__(
        self, kernel: Kernel, drift: str | None, slow: Callable[..., Any], enter: Callable[[Any], None]
    ) -> None:
        self.kernel = kernel
        self.drift = drift
        self._binder = Binder(kernel)
        self.store: Store[Compiled] = Store()
        self.warm_calls = self._new_warm_calls(slow, enter)
        self._uncounted = 0
        """How many calls did without the session when programs were forgotten."""
        self.lock = Lock()
        self._makers: dict[object, Lock] = {}
        """Held by those who compile, by what their programs are found by."""
        self.detours = Detours()

    @property
    def binder(self) -> Binder:
        """What sorts arguments to parameters, made anew where annotations mean something else by now."""
        drift = self._binder.parameters.reads.drift()
        if drift is not None:
            if self.store.variants:
                self._refuse(drift)
            with self.lock:
                self.warm_calls.forget()
                self._binder = Binder(self.kernel)
        return self._binder

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> Any:
        """Run the kernel on a call's arguments."""
        if settings.debug() and (self.kernel.kind is not KernelKind.HOST or is_one_process(config)):
            return self.steps.run(self.binder, args, kwargs, config=config)
        (config, told), call = taken(config), lying(self.kernel, self.binder.call(args, kwargs))
        return self._run(call, config, Written(args, kwargs, told), untold(config, told))

    def _run(self, call: Call, config: RunConfig | None, written: Written, apart: str) -> Any:
        """Run the kernel on a call that was `written` so; `apart` is why all calls like it come here, or nothing."""
        hits, found = self.store.hits, self._compiled(call, placed(call, config))
        if config is not None and config.writes_folder:
            found.program.configured(config)
        written = written._replace(trace=None if config is None else config.trace)
        result = found.run(call, written.trace)
        was_found = self.store.hits > hits
        self.detours.note(apart or lasting_reason(self.kernel, call, found) or FIRST if was_found else COMPILED)
        if not apart and was_found and self.warm_calls.can_be:
            self._hasten(call, found, result, written)
        return result

    def program(self, args: Sequence[Any], kwargs: Mapping[str, Any], config: RunConfig | None) -> CompiledProgram:
        """Return the program for some arguments."""
        call = self.binder.described(args, kwargs)
        if code_options(config)[0] == DEFAULT:  # a program for another place can be made anywhere
            config = placed(call, config)
        return self._compiled(call, config).program.configured(config)

    @computed_once
    def steps(self) -> Steps:
        """What runs the kernel line by line."""
        from tilewright.jit.steps import Steps

        return Steps(self.kernel)

    def specialized(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Specialization:
        """Return the kernel as the front end makes it for some arguments."""
        return read(self.kernel, self.binder, self.binder.described(args, kwargs))[1]

    def info(self) -> CacheInfo:
        """Return what the cache has done."""
        info = self.store.info()
        return info._replace(hits=info.hits + self.warm_calls.count - self._uncounted)

    def calls(self) -> CallInfo:
        """Return how calls went."""
        return self.detours.info(self.warm_calls.count)

    def clear(self) -> None:
        """Forget every program."""
        with self.lock:
            self.warm_calls.forget()
            self._uncounted = self.warm_calls.count
            self.store = Store()

    def explain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Return why no program is found for some arguments, or that one is."""
        call = lying(self.kernel, self.binder.described(args, kwargs))
        kinds = self._kinds(call, placed(call, None))
        programs = self.store.find(kinds, call.extents)
        drifts = [drift for program in programs if (drift := program.reads.drift()) is not None]
        current = next((program for program in programs if program.reads.drift() is None), None)
        if current is not None:
            reason = lasting_reason(self.kernel, call, current)
            return f"a program is found for these arguments{f', through Python: {reason}' if reason else ''}"
        if drifts:
            return str(drifts[0])
        return explained(self.kernel.name, list(call.described.items()), kinds, self.store)

    def _kinds(self, call: Call, config: RunConfig | None) -> tuple[object, ...]:
        """Return everything that a program is found by but its extents."""
        return call.kinds, code_options(config), settings.code_settings(), call.device, ranks_of(config)

    @brief
    def _compiled(self, call: Call, config: RunConfig | None) -> Compiled:
        """Return the program for a call, compiled where there is none; of several threads that want it, one does."""
        kinds = self._kinds(call, config)
        found = self._found(kinds, call)
        if found is not None:
            return found
        with self.lock:
            maker = self._makers.setdefault(kinds, Lock())
        with maker:
            found = self._found(kinds, call)
            return found if found is not None else self._made(kinds, call, config)

    def _found(self, kinds: object, call: Call) -> Compiled | None:
        """Return a program whose reads still hold; DriftError where one's do not and the kernel is not to recompile."""
        drifted = None
        for candidate in self.store.find(kinds, call.extents):
            drift = candidate.reads.drift()
            if drift is None:
                self.store.hits += 1
                return candidate
            drifted = drifted or (None if drift.is_own else drift)  # another instance's, so to speak
        if drifted is not None:
            self._refuse(drifted)
        return None

    def _refuse(self, drift: Drift) -> None:
        """Raise that something has changed, unless the kernel is to follow."""
        if (self.drift or settings.drift()) == "raise":
            raise DriftError(f"kernel `{self.kernel.name}`: {drift}\n{FOLLOW}")

    @paused_collection()
    def _made(self, kinds: object, call: Call, config: RunConfig | None) -> Compiled:
        """Return the program for a call that this process has not made yet; another may have."""
        self.store.misses += 1
        kept = KeptCall(self.kernel, call, config)
        compiled = kept.find()
        if compiled is None:
            try:
                made = specialized(self.kernel, call)
            except NotAlike as output:
                call = self._binder.apart(call, output.name)
                kinds = self._kinds(call, config)
                return self._found(kinds, call) or self._made(kinds, call, config)
            reads = ReadSet(made.reads)
            for known in self.store.find(kinds, call.extents):
                if known.reads.value_keys == reads.value_keys:  # it has changed since the program was looked for
                    return known
            back = returned(self.kernel, made)
            if self.kernel.kind is KernelKind.HOST:  # what it dispatches is kept, and not how
                self.store.compiles += 1
                compiled = Compiled(host_program(made, config, reads), made.parameters, made.metas, reads, back)
            else:
                compiled = kept.made(made, reads, back, lambda: self._code(made, config))
        self._add(kinds, call, config, compiled)
        return compiled

    def _add(self, kinds: object, call: Call, config: RunConfig | None, compiled: Compiled) -> None:
        """Keep a program in this process; one that was loaded shows its stages all the same."""
        program = compiled.program
        program.specialized.update(_numbers(call, compiled.parameters))
        program.found_by = partial(conditions, call.described, self._kinds(call, config), compiled.reads)
        if "ir" not in program.stages:
            strategy = OptimizationStrategy.Default if config is None else config.strategy
            made = Remade(program.loaded.code.backend, lambda: specialized(self.kernel, call).program, strategy)
            program.stages = program.stages.joined(made)
        with self.lock:
            self.store.add(kinds, compiled.dynamic, call.extents, compiled)

    def _code(self, made: Specialization, config: RunConfig | None) -> CompiledProgram:
        from tilewright.programs.compiler import compile

        self.store.compiles += 1
        return compile(made.program, **(config.compile_kwargs() if config is not None else {}))

    @undivided()
    def _hasten(self, call: Call, found: Compiled, result: Any, written: Written) -> None:
        """Let later calls like one that gave `result` find their program without the session."""
        if not self.lock.acquire(blocking=False):  # somebody compiles, which is no reason to wait
            return
        try:
            self.warm_calls.learn(call, found, result, written, self._binder.outputs)
        finally:
            self.lock.release()

    def _new_warm_calls(self, slow: Callable[..., Any], enter: Callable[[Any], None]) -> WarmCalls:
        return WarmCalls(self.kernel, slow, enter)

    def set_back(self) -> None:
        """Let calls come to the session again, unless it is busy."""
        if self.lock.acquire(blocking=False):
            try:
                self.warm_calls.forget()
            finally:
                self.lock.release()


def lying(kernel: Kernel, call: Call) -> Call:
    """Return a call as kernels are compiled for it; what a host function hands on lies as usual."""
    return call if kernel.kind is KernelKind.HOST else call.as_it_lies()


def untold(config: RunConfig | None, told: Configured | None) -> str:
    """Return why all calls with a configuration, or without one, go through Python, or nothing."""
    if config is not None and told is None:
        return "its config= has a folder written, or names ranks or a place that may change"
    return APART if settings.ranges() else ""


def placed(call: Call, config: RunConfig | None) -> RunConfig | None:
    """Return a configuration whose back end takes the tensors of a call: the caller's own, unless that names none."""
    target, *_ = code_options(config)
    is_said = config is not None and config.platform == DEFAULT and not isinstance(config.platform, Unsaid)
    platform = platform_for(call.device, target, is_said=is_said)
    if platform == target:
        return config
    from tilewright.programs.config import RunConfig

    return replace(config or RunConfig(), platform=platform)


def _numbers(call: Call, parameters: Sequence[str]) -> dict[str, int | float]:
    """Return the numbers that a program was made for."""
    known = {name: one.value for name, one in call.given.items() if isinstance(one, Known)}
    return {n: value for n in parameters if isinstance(value := known.get(n), (int, float))}
