"""The export: a program as PTO text, a function for each entry.

Parameters are the program's own, tensors as pointers, then the extents that only a call knows, by their names, and then
room for the tensors that the program makes; those that nothing uses have names that begin with `_`. An entry that is
one parallel loop deals its turns out to the blocks of a launch; in any other the first block does all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tilewright import dtypes as dt
from tilewright.core.enums import ForKind
from tilewright.core.expr import Expr, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import ForStmt, ReturnStmt
from tilewright.core.types import ScalarType, TensorType
from tilewright.errors import KernelError
from tilewright.frontend.tracebacks import brief
from tilewright.passes.manager import PassManager
from tilewright.programs.pto_text.body import Body
from tilewright.programs.pto_text.pipes import refuse_around
from tilewright.programs.pto_text.readers import READERS
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import NoPtoError, Number, dtype_of, element, kept
from tilewright.programs.pto_text.writer import HEAD, Writer
from tilewright.source import UNKNOWN, Span


@brief
def as_pto(program: Program) -> str:
    """Return PTO text that computes what a program computes; NoPtoError names what it cannot say, with its line."""
    lowered = PassManager.get_strategy().run_passes(program)
    if not lowered.entries:
        raise NoPtoError(
            "this program has no entry", help="export a program with a function that is called from Python"
        )
    exports = [_Export(lowered, entry) for entry in lowered.entries]
    functions = [export.lines() for export in exports]
    text = "\n".join([HEAD, *(line for lines in functions for line in lines), "}", ""])
    for read in READERS:
        try:
            read(text)
        except KernelError as error:
            origin = _origin(exports, functions, error.spans[0].line if error.spans else 0)
            message = f"PTO text cannot say this: {error.message}"
            raise NoPtoError(message, spans=(origin,), help=_in_pl(error.help)) from error
    return text


SMALLER = "make it smaller, and take several"
"""What the reader says of a tile that no memory has room for."""
_CONVERTED = re.compile(r"convert (\S.*?) to (\w+) with `pto\.tcvt`")


def _in_pl(help: str) -> str:
    """Return what a reader of the text would have its author do, as the author of the program does it.

    That is nothing where it is about the text, which nobody wrote.
    """
    if help == SMALLER:
        return "take smaller tiles, several of them, in a loop"
    found = _CONVERTED.fullmatch(help)
    if found is None or (dtype := dtype_of(found[2])) is None:
        return ""
    return f"convert {found[1]} with `pl.cast(..., pl.{str(dtype).upper()})`"


def _origin(exports: Sequence[_Export], functions: Sequence[list[str]], line: int) -> Span:
    """Return the place in the program that a line of the module was written for, the first being 1."""
    line -= 1
    for export, lines in zip(exports, functions, strict=True):
        if line <= len(lines):
            return export.w.origin(line)
        line -= len(lines)
    return UNKNOWN


class _Export:
    """One entry of a program on its way to text."""

    def __init__(self, program: Program, entry: Function) -> None:
        self.entry = entry
        self.w = Writer()
        self.w.entry = entry.name
        self.body = Body(program, self.w)
        self.body.aliases = self.body.footprints.aliases(entry.name)

    def lines(self) -> list[str]:
        """Return the function, a line each; NoPtoError at the function where no statement has said its place."""
        try:
            return self._lines()
        except NoPtoError as error:
            error.locate([self.entry.span])
            raise

    def _lines(self) -> list[str]:
        params = [self._declared(param) for param in self.entry.params]
        for name in dict.fromkeys((*self.entry.symbols, *self.entry.solutions)):
            self.body.symbols[name] = Number(self.w.name(name), dt.INDEX)
            params.append((self.body.symbols[name].name, "index"))
        for param, (name, _) in zip(self.entry.params, params, strict=False):
            if isinstance(param.type, TensorType):
                shape = [self._extent(extent) for extent in param.type.shape]
                self.body.values[param] = self.w.view(param.name_hint, param.type.dtype, name, shape)
        self._entry()
        used = self.w.prune()
        if self.w.pipes:
            refuse_around(self.w)
        shown = [f"{name if name in used else f'%_{name[1:]}'}: {kind}" for name, kind in (*params, *self.w.rooms)]
        return self.w.function(f"func.func @{self.entry.name}({', '.join(shown)})")

    def _declared(self, param: Var) -> tuple[str, str]:
        """Return the name and the type of a parameter; NoPtoError at its place."""
        try:
            return self._parameter(param), self._type(param)
        except NoPtoError as error:
            error.locate([param.span])
            raise

    def _parameter(self, param: Var) -> str:
        name = self.w.name(param.name_hint)
        if isinstance(param.type, ScalarType):
            self.body.values[param] = Number(name, param.type.dtype)
        elif not isinstance(param.type, TensorType):
            what = "which is neither a tensor nor a number"
            raise NoPtoError(f"this export has no words for the parameter `{param.name_hint}`, {what}")
        return name

    def _type(self, param: Var) -> str:
        assert isinstance(param.type, TensorType | ScalarType)
        if param.type == ScalarType(dt.FP64):
            help = "pass it as pl.FP32, or in a tensor of one element"
            raise NoPtoError(f"PTO's launches pass no double, as `{param.name_hint}` is", help=help)
        if isinstance(param.type, TensorType):
            return f"!pto.ptr<{element(kept(param.type.dtype))}, gm>"
        return element(param.type.dtype)

    def _extent(self, extent: object) -> Number:
        if isinstance(extent, int):
            return self.w.constant(extent)
        if isinstance(extent, Expr):
            return self.body.number(extent)
        raise NoPtoError("this export needs every extent of a parameter")

    def _entry(self) -> None:
        """Write the entry, whose turns go to the blocks of a launch where it is one loop of turns side by side."""
        doing = [stmt for stmt in self.entry.body if not isinstance(stmt, ReturnStmt)]
        block = self._block("idx")
        if len(doing) == 1 and isinstance(doing[0], ForStmt) and doing[0].kind is ForKind.Parallel:
            loop = doing[0]
            step = self.body.number(loop.step)
            first = computed(self.w, "add", [self.body.number(loop.start), self._times(block, step)], dt.INDEX)
            self.w.share = block
            self.w.begin()
            self.body.loop(loop, first, self._times(self._block("num"), step))
            return
        with self.w.block(f"scf.if {computed(self.w, 'eq', [block, self.w.constant(0)], dt.BOOL).name}"):
            self.body.write(self.entry.body)

    def _block(self, word: str) -> Number:
        name = self.w.name(f"block_{word}")
        self.w.line(f"{name} = pto.get_block_{word}")
        return replace(converted(self.w, Number(name, dt.INT64), dt.INDEX), counts=True)

    def _times(self, a: Number, b: Number) -> Number:
        return computed(self.w, "mul", [a, b], dt.INDEX)
