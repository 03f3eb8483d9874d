"""The export: a program as one function of PTO text.

Parameters are the program's own, tensors as pointers, and then the extents that only a call knows, by their names. A
program that is one parallel loop deals its turns out to the blocks of a launch; in any other the first block does all.
"""

from __future__ import annotations

from tilewright import dtypes as dt
from tilewright.core.enums import ForKind
from tilewright.core.expr import Expr, Var
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt, ReturnStmt
from tilewright.core.types import ScalarType, TensorType
from tilewright.errors import KernelError
from tilewright.passes.manager import PassManager
from tilewright.programs.pto_text.body import Body
from tilewright.programs.pto_text.readers import READERS
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import NoPtoError, Number, Tensor, element, located
from tilewright.programs.pto_text.writer import Writer


def as_pto(program: Program) -> str:
    """Return PTO text that computes what a program computes; NoPtoError names what it cannot say, with its line."""
    export = _Export(PassManager.get_strategy().run_passes(program))
    text = export.text()
    for read in READERS:
        try:
            read(text)
        except KernelError as error:
            line = error.spans[0].line if error.spans else 0
            raise located(f"PTO text cannot say this: {error.message}", export.w.origin(line)) from error
    return text


class _Export:
    """One program on its way to text."""

    def __init__(self, program: Program) -> None:
        if len(program.entries) != 1:
            names = ", ".join(f"`{entry.name}`" for entry in program.entries)
            raise NoPtoError(f"this export writes one entry, and this program has {names or 'none'}")
        (self.entry,) = program.entries
        self.w = Writer()
        self.body = Body(program, self.w)

    def text(self) -> str:
        """Return the whole module."""
        params = [f"{self._parameter(param)}: {self._type(param)}" for param in self.entry.params]
        for name in dict.fromkeys((*self.entry.symbols, *self.entry.solutions)):
            self.body.symbols[name] = Number(self.w.name(name), dt.INDEX)
            params.append(f"{self.body.symbols[name].name}: index")
        for param in self.entry.params:
            if isinstance(param.type, TensorType):
                self.body.values[param] = self._view(param, param.type)
        self._entry()
        return self.w.text(f"func.func @{self.entry.name}({', '.join(params)})")

    def _parameter(self, param: Var) -> str:
        name = self.w.name(param.name_hint)
        if isinstance(param.type, ScalarType):
            self.body.values[param] = Number(name, param.type.dtype)
        elif isinstance(param.type, TensorType):
            self.body.values[param] = Tensor(name, param.type.dtype, (), (), name, ())
        else:
            what = "which is neither a tensor nor a number"
            raise NoPtoError(f"this export has no words for the parameter `{param.name_hint}`, {what}")
        return name

    def _type(self, param: Var) -> str:
        assert isinstance(param.type, TensorType | ScalarType)
        if isinstance(param.type, TensorType) and param.type.dtype == dt.BOOL:
            raise NoPtoError(f"PTO's memory has no conditions, which `{param.name_hint}` holds")
        name = element(param.type.dtype)
        return f"!pto.ptr<{name}, gm>" if isinstance(param.type, TensorType) else name

    def _view(self, param: Var, type_: TensorType) -> Tensor:
        """Write the view of a whole tensor, whose elements lie one after the other."""
        pointer = self.body.values[param]
        assert isinstance(pointer, Tensor)
        shape = tuple(self._extent(extent) for extent in type_.shape)
        strides = [self.w.constant(1)]
        for extent in reversed(shape[1:]):
            strides.insert(0, computed(self.w, "mul", [extent, strides[0]], dt.INDEX))
        view, starts = self.w.name(f"{param.name_hint}_view"), (self.w.constant(0),) * len(shape)
        whole = Tensor(view, type_.dtype, shape, starts, pointer.pointer, tuple(strides))
        extents, steps = (", ".join(each.name for each in numbers) for numbers in (shape, strides))
        head = f"{whole.view} = pto.make_tensor_view {pointer.view}, shape = [{extents}], strides = [{steps}]"
        self.w.line(f"{head} : {whole.view_type}")
        return whole

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
            self.body.loop(loop, first, self._times(self._block("num"), step))
            return
        with self.w.block(f"scf.if {computed(self.w, 'eq', [block, self.w.constant(0)], dt.BOOL).name}"):
            self.body.write(self.entry.body)

    def _block(self, word: str) -> Number:
        name = self.w.name(f"block_{word}")
        self.w.line(f"{name} = pto.get_block_{word}")
        return converted(self.w, Number(name, dt.INT64), dt.INDEX)

    def _times(self, a: Number, b: Number) -> Number:
        return computed(self.w, "mul", [a, b], dt.INDEX)
