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
from tilewright.forks import Lock, computed_once
from tilewright.jit.variants import Store
from tilewright.keep.manifest import Listed
from tilewright.keep.programs import KeptPrograms
from tilewright.keep.relocate import named
from tilewright.programs import loading
from tilewright.programs.code_options import DEFAULT_OPTIONS
from tilewright.programs.platforms import DEFAULT, backend_for
from tilewright.pto.module import Func, Module
from tilewright.source import Span

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
                self._lowered[shared] = lower(self.module, self.func, target=self.target, shared=shared)
            return self._lowered[shared]

    def meeting(self) -> Program:
        """Return the function as a program of the tile IR whose buffers may be parts of each other."""
        from tilewright.pto.lower import lower

        with paused_collection():
            return lower(self.module, self.func, target=self.target, may_meet=True)

    @property
    def is_lowered(self) -> bool:
        """Whether the function as a program of the tile IR costs nothing."""
        return None in self._lowered

    def check(self) -> None:
        """Raise what is wrong with the function, unless a program of it has been kept."""
        kept = self._kept()
        if not kept.listed(kept.key(lambda: self._known(None))):
            self.lowered()

    def get(self, shared: Shared = None, platform: str = DEFAULT) -> CompiledProgram:
        """Return a variant ready to run on a platform; of several threads that want it, one makes it."""
        kinds = self.key, shared, platform, settings.code_settings()
        found = self.store.find(kinds, ())
        if found:
            self.store.hits += 1
            return found[0]
        with self.lock, paused_collection():
            found = self.store.find(kinds, ())
            if found:
                return found[0]
            self.store.misses += 1
            program = self._made(shared, platform)
            self.store.add(kinds, (), (), program)
            return program

    def _made(self, shared: Shared, platform: str) -> CompiledProgram:
        """Return a variant that this process has not made yet; another may have."""
        kept, spans = self._kept(platform), OpSpans(self.module)
        manifest = kept.key(lambda: self._known(shared))
        found = kept.find(manifest, lambda _: spans)
        if found is not None:
            return found.program
        key = kept.key(lambda: self._said(shared))
        program = kept.made(key, spans, lambda: self._compiled(shared, platform))
        kept.list(manifest, Listed(key))
        return program

    def _compiled(self, shared: Shared, platform: str) -> CompiledProgram:
        from tilewright.programs.compiler import compile

        self.store.compiles += 1
        return compile(self.lowered(shared), platform=platform)

    # between processes

    def _kept(self, platform: str = DEFAULT) -> KeptPrograms[CompiledProgram]:
        options = [*settings.code_settings(), *DEFAULT_OPTIONS]
        return KeptPrograms(self.func.name, backend_for(platform), options, loading)

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


class OpSpans:
    """The functions and ops of one module."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def freed(self, span: Span) -> Span:
        """Return a span that names an op by its number."""
        number = self._numbers.get(span[:5])
        return span if number is None else named(0, number)

    def placed(self, span: Span, text: int, piece: int) -> Span:
        """Return where an op stands."""
        return self._spans[piece]

    @computed_once
    def _numbers(self) -> dict[tuple[object, ...], int]:
        return {span[:5]: number for number, span in reversed(list(enumerate(self._spans)))}

    @computed_once
    def _spans(self) -> list[Span]:
        funcs = [func for func in self._module.funcs() if func.body is not None]
        ops = (op for func in funcs if func.body is not None for each in func.body.ops for op in each.walk())
        return [*(func.span for func in funcs), *(op.span for op in ops)]
