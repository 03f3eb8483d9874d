"""Programs: one PTO function as native code, in as many variants as launches share memory in.

A variant is found in this process, then among kept programs, then made. It is kept like a program of `pl.jit`, by its
IR; a manifest leads there from the module's text, so that whoever finds one neither lowers nor needs LLVM. Text is
taken as it is printed: comments, spaces and the place of the file do not matter, and errors point to where their ops
stand now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tilewright import settings
from tilewright.collector import paused_collection
from tilewright.core.expr import Var
from tilewright.core.types import ScalarType, TensorType
from tilewright.dtypes import INDEX, UINT8, DataType
from tilewright.errors import InternalError
from tilewright.forks import Lock, computed_once
from tilewright.jit.variants import Store
from tilewright.keep.manifest import Listed
from tilewright.keep.programs import KeptPrograms
from tilewright.programs import loading
from tilewright.programs.code_options import DEFAULT_OPTIONS
from tilewright.programs.platforms import DEFAULT, backend_for
from tilewright.pto.module import Func, Module
from tilewright.pto.op_spans import OpSpans
from tilewright.pto.types import Ptr, Scalar

if TYPE_CHECKING:
    from tilewright.core.program import Program
    from tilewright.programs.program import CompiledProgram

Shared: TypeAlias = tuple[int, ...] | None
"""The group of each pointer; None where no two share memory."""


@dataclass(eq=False)
class Programs:
    """The variants of one function of a module."""

    module: Module
    func: Func
    target: str
    key: object
    """What tells this function from others in `store`."""
    store: Store[CompiledProgram]

    def __post_init__(self) -> None:
        self.lock = Lock()
        self._lowered: dict[Shared, Program] = {}

    def lowered(self, shared: Shared = None) -> Program:
        """Return the function as a program of the tile IR; KernelError for what cannot be one."""
        from tilewright.pto.lower import lower

        with self.lock, paused_collection():
            if shared not in self._lowered:
                program = lower(self.module, self.func, target=self.target, shared=shared)
                _check_entry(program, self.func, shared)
                self._lowered[shared] = program
            return self._lowered[shared]

    def check(self) -> None:
        """Raise what is wrong with the function, unless a program of it has been kept."""
        kept = self._kept()
        if not kept.listed(kept.key(lambda: self._known(None))):
            self.lowered()

    def get(self, shared: Shared = None) -> CompiledProgram:
        """Return a variant ready to run; of several threads that want it, one makes it."""
        kinds = self.key, shared, settings.checked()
        found = self.store.find(kinds, ())
        if found:
            self.store.hits += 1
            return found[0]
        with self.lock, paused_collection():
            found = self.store.find(kinds, ())
            if found:
                return found[0]
            self.store.misses += 1
            program = self._made(shared)
            self.store.add(kinds, (), (), program)
            return program

    def _made(self, shared: Shared) -> CompiledProgram:
        """Return a variant that this process has not made yet; another may have."""
        kept, spans = self._kept(), OpSpans(self.module)
        manifest = kept.key(lambda: self._known(shared))
        found = kept.find(manifest, lambda _: spans)
        if found is not None:
            return found.program
        key = kept.key(lambda: self._said(shared))
        program = kept.made(key, spans, lambda: self._compiled(shared))
        kept.list(manifest, Listed(key))
        return program

    def _compiled(self, shared: Shared) -> CompiledProgram:
        from tilewright.programs.compiler import compile

        self.store.compiles += 1
        return compile(self.lowered(shared))

    # between processes

    def _kept(self) -> KeptPrograms[CompiledProgram]:
        return KeptPrograms(self.func.name, backend_for(DEFAULT), [settings.checked(), *DEFAULT_OPTIONS], loading)

    @computed_once
    def _text(self) -> str:
        from tilewright.pto.text.printer import print_module

        return print_module(self.module)

    def _known(self, shared: Shared) -> list[object]:
        """Return what is known before anything is lowered: the text, and which function of it in which variant."""
        return [self._text, self.func.name, self.target, shared]

    def _said(self, shared: Shared) -> list[object]:
        """Return what a program says, and the text that it was made from."""
        from tilewright.core.serialize import serialize

        return [serialize(self.lowered(shared)), [self._text]]


# the calling convention between lowering and launches


def _check_entry(program: Program, func: Func, shared: Shared) -> None:
    """Raise InternalError where a lowered function does not take what launches pass."""
    (entry,) = [each for each in program.entries if each.name == func.name] or [None]
    wanted = [_plain(type_) for type_ in entry_types(func, shared)]
    if entry is None or [_dtype(param) for param in entry.params] != wanted or entry.return_types:
        raise InternalError(f"@{func.name} was lowered to {entry}, which launches cannot call")


def entry_types(func: Func, shared: Shared) -> list[tuple[DataType, bool]]:
    """Return the element type of each parameter of a lowered function, and whether it is a buffer."""
    pointers = [a.type for a in func.arguments if isinstance(a.type, Ptr)]
    buffers = [] if shared is None else [(UINT8, True)] * len(set(shared))
    types: list[tuple[DataType, bool]] = [(INDEX, False), *buffers]
    for argument in func.arguments:
        if isinstance(argument.type, Ptr):
            types.append((argument.type.element.dtype, True) if shared is None else (INDEX, False))
        else:
            assert isinstance(argument.type, Scalar), argument.type
            types.append((argument.type.dtype, False))
    assert shared is None or len(shared) == len(pointers)
    return types


def _plain(type_: tuple[DataType, bool]) -> tuple[str, bool]:
    return type_[0].name, type_[1]


def _dtype(param: Var) -> tuple[str, bool]:
    if isinstance(param.type, ScalarType):
        return param.type.dtype.name, False
    is_buffer = isinstance(param.type, TensorType) and len(param.type.shape) == 1
    return (param.type.dtype.name if isinstance(param.type, TensorType) else "", is_buffer)
