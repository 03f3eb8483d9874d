"""Programs: one PTO function as native code, in as many variants as launches share memory in.

A variant is found in this process, then on disk, then made. On disk it is kept like a program of `pl.jit`, by its IR; a
link leads there from the function's own text, so that whoever finds one neither lowers nor needs LLVM. Text is taken as
it is printed: comments, spaces and the place of the file do not matter, and errors point to where their ops stand now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tilewright import settings
from tilewright.backends.cpu.host.options import Options as CodeOptions
from tilewright.collector import paused_collection
from tilewright.core.expr import Var
from tilewright.core.types import ScalarType, TensorType
from tilewright.dtypes import INDEX, UINT8, DataType
from tilewright.errors import ArtifactError, InternalError, RunOnlyError
from tilewright.forks import Lock, computed_once
from tilewright.jit.persistent import ARTIFACT, FORMAT, PATIENCE
from tilewright.jit.store import Store
from tilewright.keep.digest import digest
from tilewright.keep.fingerprint import toolchain
from tilewright.keep.relocate import Error, Piece
from tilewright.keep.store import Store as Disk
from tilewright.keep.store import configured
from tilewright.native.target import fingerprint
from tilewright.programs.config import DEFAULT_OPTIONS
from tilewright.programs.loading import load
from tilewright.pto.module import Func, Module
from tilewright.pto.types import Ptr, Scalar
from tilewright.source import Span

if TYPE_CHECKING:
    from tilewright.core.program import Program
    from tilewright.programs.program import CompiledProgram

LINK = "pto"

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
        disk = _disk()
        if disk is None or disk.get(LINK, self._link(None)) is None:
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
        disk = _disk()
        if disk is None:
            return self._compiled(shared, b"")
        link = self._link(shared)
        known = disk.get(LINK, link)
        program = self._loaded(disk, known) if known is not None else None
        if program is not None:
            return program
        key = self._artifact_key(self.lowered(shared))
        with disk.lock(key, timeout=PATIENCE):
            program = self._loaded(disk, key)
            if program is None:
                program = self._compiled(shared, key)
                self._keep(disk, key, program)
        disk.put(LINK, link, key, self.func.name)
        return program

    def _compiled(self, shared: Shared, key: bytes) -> CompiledProgram:
        from tilewright.programs.compiler import compile

        if settings.run_only():
            raise RunOnlyError(self._not_kept(key))
        self.store.compiles += 1
        return compile(self.lowered(shared))

    def _not_kept(self, key: bytes) -> str:
        places = [str(d) for d in (settings.cache_dir(), *settings.shared_cache_dirs()) if d is not None]
        return (
            f"kernel `{self.func.name}` is not compiled, and TILEWRIGHT_RUN_ONLY is set: "
            f"no artifact {key.hex()[:16] or 'at all'} in {', '.join(places) or 'no cache'}\n"
            "    help: run it once without TILEWRIGHT_RUN_ONLY, with TILEWRIGHT_CACHE_DIR set to a place both can reach"
        )

    # on disk

    @computed_once
    def _text(self) -> str:
        from tilewright.pto.text.printer import print_module

        return print_module(self.module)

    @computed_once
    def _spans(self) -> list[Span]:
        """Where each op of the module stands, in an order that modules of the same text share."""
        funcs = [func for func in self.module.funcs() if func.body is not None]
        ops = (op for func in funcs if func.body is not None for each in func.body.ops for op in each.walk())
        return [*(func.span for func in funcs), *(op.span for op in ops)]

    def _link(self, shared: Shared) -> bytes:
        own = (self._text, self.func.name, self.target, None if shared is None else list(shared))
        return digest(LINK, FORMAT, toolchain(), fingerprint(), _options(), *own)

    def _artifact_key(self, program: Program) -> bytes:
        from tilewright.core.serialize import serialize

        return digest(FORMAT, toolchain(), fingerprint(), _options(), serialize(program), [self._text])

    def _keep(self, disk: Disk, key: bytes, program: CompiledProgram) -> None:
        if program.artifact is not None:
            numbers: dict[Any, int] = {span[:5]: number for number, span in reversed(list(enumerate(self._spans)))}
            errors = [(message, _freed(span, numbers)) for message, span in program.artifact.code.errors]
            kept = replace(program.artifact, code=replace(program.artifact.code, errors=errors))
            disk.put(ARTIFACT, key, kept.to_bytes(), self.func.name)

    def _loaded(self, disk: Disk, key: bytes) -> CompiledProgram | None:
        data = disk.get(ARTIFACT, key)
        try:
            program = load(data) if data is not None else None
        except ArtifactError:  # of another version, or for another processor: as good as none
            return None
        if program is not None and program.native is not None:
            code = program.native.code
            program.native.code = replace(code, errors=_placed(code.errors, self._spans))
        return program


def _disk() -> Disk | None:
    disk = configured()
    return disk if disk.directory is not None or disk.shared else None


def _options() -> list[object]:
    return [CodeOptions.current().checked, *DEFAULT_OPTIONS]


def _freed(span: Span, numbers: Mapping[Any, int]) -> Span:
    """Return a span that names an op by its number, not a file and a line."""
    caller = None if span.caller is None else _freed(span.caller, numbers)
    number = numbers.get(span[:5])
    if span.source is None or number is None:
        return span._replace(caller=caller)
    return Span(Piece(0, number, None), 0, 0, 0, 0, caller)


def _placed(errors: Sequence[Error], spans: Sequence[Span]) -> list[Error]:
    return [(message, _here(span, spans)) for message, span in errors]


def _here(span: Span, spans: Sequence[Span]) -> Span:
    caller = None if span.caller is None else _here(span.caller, spans)
    zero, separator, number = span.filename.partition(":")
    if span.source is None or not separator or zero != "0" or not number.isdecimal() or int(number) >= len(spans):
        return span._replace(caller=caller)
    return spans[int(number)]._replace(caller=caller)


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
