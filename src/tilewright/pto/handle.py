"""Kernel handles: what `@pto.jit` makes of a function."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.call.launch_items import NumberedItems
from tilewright.errors import KernelError
from tilewright.forks import Lock
from tilewright.frontend.references import Referred
from tilewright.frontend.tracebacks import brief
from tilewright.jit.variants import CacheInfo, Store
from tilewright.pto.abi import check_abi, entry_of
from tilewright.pto.compiled import CompiledKernelHandle
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoArgumentError, PtoNotLaunchableError
from tilewright.pto.grids import launch_spec
from tilewright.pto.module import Func, Module
from tilewright.pto.options import Options
from tilewright.pto.signature import Parameter, Signature, check_hashable
from tilewright.pto.source import Origin, Text
from tilewright.pto.specialization import Inspected, Specialization, SpecializationKey, verify_module
from tilewright.pto.types import Ptr, Scalar

if TYPE_CHECKING:
    from tilewright.call.files import UnchangedFile
    from tilewright.call.guards import Guards
    from tilewright.core.program import Program
    from tilewright.keep.reads import ReadSet
    from tilewright.programs.program import CompiledProgram
    from tilewright.pto.launch import Launcher


class KernelHandle(Inspected, Referred):
    """A kernel: compiled with `compile`, launched as `handle[grid, stream](*args)`.

    Every compilation gives the same object for as long as the text and the constants are the same.
    """

    def __init__(self, declared: Declared, options: Options, signature: Signature) -> None:
        functools.update_wrapper(self, declared.function)
        self.declared = declared
        self.options = options
        self.signature = signature
        self._specializations: dict[SpecializationKey, CompiledKernelHandle] = {}
        self._store: Store[CompiledProgram] = Store()
        self._lock = Lock()
        self._is_launched = False
        self._known = NumberedItems(self, functools.partial(KernelHandle.__getitem__, self))
        """Launches by their grids."""

    @property
    def function(self) -> Any:
        """The Python function."""
        return self.declared.function

    @property
    def name(self) -> str:
        """The symbol of the kernel."""
        return self.declared.name

    @property
    def is_entry(self) -> bool:
        """Whether it is launched, rather than called by other kernels."""
        return self.options.entry

    @property
    def kernel_kind(self) -> str | None:
        """The core that runs it, where it says one."""
        return self.options.kernel_kind

    @brief
    def compile(self, *args: Any, **constexprs: Any) -> CompiledKernelHandle:
        """Return the kernel compiled for some constants, given by name, the others being their defaults."""
        if args:
            help = "kernel.compile(NAME=value); arguments are for the launch, kernel[grid, stream](...)"
            raise self._refusal(PtoArgumentError, "compile takes constants, by name", help)
        if not self.is_entry:
            message = "a function with entry=False is not directly compilable"
            raise self._refusal(PtoNotLaunchableError, message, "compile the kernel that calls it")
        return self._compiled(self._bound(constexprs))

    def __getitem__(self, spec: Any) -> Callable[..., None]:
        """Return what launches the kernel, compiled with its defaults, on `[grid, stream]`, as it is then."""
        return self._known.find(spec) or self._launched(spec)

    @brief
    def _launched(self, spec: Any) -> Callable[..., None]:
        if not self.is_entry:
            message = "a function with entry=False is not launchable"
            raise self._refusal(PtoNotLaunchableError, message, "launch the kernel that calls it")
        grid = launch_spec(self.declared, spec)
        if not self._is_launched:
            self._current()
            self._is_launched = True  # what is wrong with it was said here, the first time
        launches = self._launches(grid)
        self._known.put(grid, launches)
        return launches

    @abstractmethod
    def _launches(self, grid: int) -> Callable[..., None]:
        """Return launches of the kernel on so many blocks, as it is then."""

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: kernels are launched, and other functions called by kernels."""
        if self.is_entry:
            raise self._refusal(
                PtoArgumentError, "a kernel is not called but launched", "write kernel[grid, stream](...)"
            )
        message = "a function with entry=False is called by kernels, not by Python"
        raise self._refusal(PtoNotLaunchableError, message, "call it in the body of a @pto.jit function")

    @abstractmethod
    def _compiled(self, constexprs: Mapping[str, object]) -> CompiledKernelHandle:
        """Return the specialization for constants."""

    @abstractmethod
    def _current(self) -> CompiledKernelHandle:
        """Return the specialization for a launch: the default constants, and the text as it is now."""

    def _bound(self, constexprs: Mapping[str, object]) -> dict[str, object]:
        """Return a value for each constant."""
        bound = {p.name: p.default for p in self.signature.constants}
        unknown = [name for name in constexprs if name not in bound]
        if unknown:
            has = f"it has {', '.join(bound)}" if bound else "it has none"
            message = f"no pto.const_expr parameter is called {', '.join(f'`{name}`' for name in unknown)}; {has}"
            raise self._refusal(PtoArgumentError, message)
        for name, value in constexprs.items():
            check_hashable(self.declared, name, value)
        return {**bound, **constexprs}

    def _refusal(self, kind: Any, message: str, help: str = "") -> Any:
        return self.declared.refusal(kind, message, help=help)

    def _key(self, kind: str, text: Text, constexprs: Mapping[str, object]) -> SpecializationKey:
        options = self.options
        return SpecializationKey(
            *(kind, None if text.path is None else str(text.path), text.digest, self.name, options.entry),
            *(options.target, options.kernel_kind, options.backend, options.mode, options.insert_sync),
            *(self.signature.abi, tuple(constexprs.items())),
        )

    def _added(
        self, key: SpecializationKey, module: Module, func: Func, text: Text, label: str = ""
    ) -> CompiledKernelHandle:
        """Return a new specialization, once it can be lowered."""
        about = self.declared, self.options, self.signature
        module.text = module.text or text.text
        made = CompiledKernelHandle(
            Specialization(*about, key, module, func, text.text, label or text.label), self._store
        )
        made.programs.check()
        self._specializations[key] = made
        return made

    # looking at it: as the compiled kernel with its defaults

    def cached_specializations(self) -> tuple[CompiledKernelHandle, ...]:
        """Return everything that was compiled so far, the oldest first."""
        return tuple(self._specializations.values())

    def cache_info(self) -> CacheInfo:
        """Return how often native code was found, was not, how much was compiled, and how much there is."""
        return self._store.info()

    @property
    def specialization(self) -> Specialization:
        """What the kernel is compiled from with its defaults."""
        return self.compile().specialization

    @property
    def text_digest(self) -> str:
        """What tells its text, as it is by now, from all others."""
        return self._current().text_digest

    def guards(self) -> Guards | None:
        """Return tests under which its text is the same, None where only Python can look at that."""
        from tilewright.call.backoff import guards_of

        return guards_of(self._read_from())

    @abstractmethod
    def _read_from(self) -> ReadSet | UnchangedFile | None:
        """Return what its text was read from, as it is now; None where that is always the same."""

    def for_grids(self, are_apart: bool) -> Program:
        """Return the kernel with its defaults as a function to be written out, with a number of blocks in front.

        KernelError for a function that other kernels call.
        """
        if not self.is_entry:
            message = "a function with entry=False is not launchable"
            raise self._refusal(PtoNotLaunchableError, message, "launch the kernel that calls it")
        return self._current().for_grids(are_apart)

    @property
    def ir_function_name(self) -> str:
        """The symbol of the kernel in its module."""
        return self.name

    @property
    def constexpr_bindings(self) -> Mapping[str, object]:
        """The default of each constant."""
        return {p.name: p.default for p in self.signature.constants}

    def __cache_signature__(self) -> tuple[object, ...]:
        """Return what a kernel that calls this one depends on, besides what is read of its body."""
        return self.function, self.name, self.is_entry, str(self.signature.abi)

    def __repr__(self) -> str:
        return f"KernelHandle({self.name!r}, entry={self.is_entry})"


class SourceKernel(KernelHandle):
    """A kernel whose body is PTO text; the Python function only declares it, and never runs."""

    def __init__(self, declared: Declared, options: Options, signature: Signature, origin: Origin) -> None:
        super().__init__(declared, options, signature)
        self.origin = origin
        self._latest: tuple[Text, CompiledKernelHandle] | None = None

    def _launches(self, grid: int) -> Callable[..., None]:
        if self.origin.path is None:
            return self._current().launcher.on(grid)
        from tilewright.pto.launch import Launch

        return Launch(self._launcher, grid)

    def _launcher(self) -> tuple[Launcher, UnchangedFile | None]:
        """Return what launches what the file says by now, and the file as it was read."""
        return self._current().launcher, self._read_from()

    def _read_from(self) -> UnchangedFile | None:
        if self.origin.path is None:
            return None
        from tilewright.call.files import UnchangedFile

        compiled, latest = self._current(), self._latest
        stamp = latest[0].stamp if latest is not None and latest[1] is compiled else None
        return UnchangedFile(str(self.origin.path), stamp)

    def _bound(self, constexprs: Mapping[str, object]) -> dict[str, object]:
        if constexprs:
            names = ", ".join(f"`{name}`" for name in constexprs)
            raise self._refusal(PtoArgumentError, f"a kernel with source= is compiled without constants, got {names}")
        return {}

    def _current(self) -> CompiledKernelHandle:
        latest = self._latest
        if latest is not None:
            text, compiled = latest
            if text.path is None or (text.stamp is not None and text.stamp == self.origin.stamp()):
                return compiled
        return self.compile()

    def _compiled(self, constexprs: Mapping[str, object]) -> CompiledKernelHandle:
        text = self.origin.read(self.declared)
        key = self._key("source", text, constexprs)
        with self._lock:
            found = self._specializations.get(key) or self._made(key, text)
            self._latest = text, found
            return found

    def _made(self, key: SpecializationKey, text: Text) -> CompiledKernelHandle:
        try:
            module = text.module()
            func = entry_of(module, self.declared, text.label)
            check_abi(func, self.signature, self.declared, text.label)
            verify_module(module, self.options.target)
            return self._added(key, module, func, text)
        except KernelError as error:
            error.function = error.function or self.name
            raise


class TracedKernel(KernelHandle):
    """A kernel whose body is Python in the embedded form of the same ops.

    It is read again where something that it read from outside has changed: what that makes is another specialization.
    """

    def __init__(self, declared: Declared, options: Options, signature: Signature) -> None:
        super().__init__(declared, options, signature)
        self._traces: dict[object, list[tuple[ReadSet, CompiledKernelHandle]]] = {}
        self._latest: tuple[ReadSet, CompiledKernelHandle] | None = None
        """What the last launch with the default constants was of."""

    def _launches(self, grid: int) -> Callable[..., None]:
        from tilewright.pto.launch import Launch

        return Launch(self._launcher, grid)

    def _launcher(self) -> tuple[Launcher, ReadSet]:
        """Return what launches the kernel by now, and what it was read from."""
        reads, compiled = self._traced()
        return compiled.launcher, reads

    def _read_from(self) -> ReadSet:
        return self._traced()[0]

    def _current(self) -> CompiledKernelHandle:
        return self._traced()[1]

    def _traced(self) -> tuple[ReadSet, CompiledKernelHandle]:
        """Return what the kernel was read from with its default constants, and what that was compiled to."""
        latest = self._latest
        if latest is not None and latest[0].drift() is None:
            return latest
        with self._lock:
            compiled = self.compile()
            known = (each for traces in self._traces.values() for each in traces)
            self._latest = found = next(each for each in known if each[1] is compiled)
            return found

    def _compiled(self, constexprs: Mapping[str, object]) -> CompiledKernelHandle:
        from tilewright.frontend.value_keys import value_key

        values = tuple((value_key(value), value) for value in constexprs.values())  # 1 is not True, nor 0.0 -0.0
        found = self._found(values)
        if found is not None:
            return found
        with self._lock:
            return self._found(values) or self._made(values, constexprs)

    def _found(self, values: object) -> CompiledKernelHandle | None:
        known = list(self._traces.get(values, ()))
        return next((compiled for reads, compiled in known if reads.drift() is None), None)

    def _made(self, values: object, constexprs: Mapping[str, object]) -> CompiledKernelHandle:
        from tilewright.keep.reads import ReadSet
        from tilewright.pto.text.printer import print_module
        from tilewright.pto.traced.trace import trace

        options = self.options
        traced = trace(
            self.function,
            [(p.name, _type_of(p)) for p in self.signature.runtime],
            constexprs,
            name=self.name,
            target=options.target,
            backend=options.backend,
            kernel_kind=options.kernel_kind,
        )
        verify_module(traced.module, options.target)
        text = Text(print_module(traced.module), None)
        key = self._key("traced", text, constexprs)
        found = self._specializations.get(key)
        if found is None:
            func = entry_of(traced.module, self.declared, text.label)
            found = self._added(key, traced.module, func, text, str(self.declared.span()))
        self._traces.setdefault(values, []).insert(0, (ReadSet(traced.resolvers), found))
        return found


def _type_of(parameter: Parameter) -> Ptr | Scalar:
    assert isinstance(parameter.annotation, (Ptr, Scalar))
    return parameter.annotation
