"""The frame: the kernel around an example's lines, which makes what they are given and stores what they give.

Tiles are loaded from global memory, registers from local memory; a tile called `out` is only stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tilewright.pto.elements import SMALL_FLOATS
from tilewright.pto.module import Value
from tilewright.pto.shorthand import written
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import I1, INDEX, Mask, Ptr, Scalar, Space, TensorView, TileBuf, VReg

_POINTED, _REGISTER, _MASK = 1024, 256, 32
"""Bytes of local memory for each pointer, register and mask."""
_THROUGH_MAT = (Space.LEFT, Space.RIGHT, Space.BIAS)
"""The memories that tiles reach from mat."""


@dataclass(slots=True)
class Frame:
    """A kernel while it is being written around lines."""

    params: list[str] = field(default_factory=list[str])
    values: list[str] = field(default_factory=list[str])
    """What the command line gives each parameter."""
    before: list[str] = field(default_factory=list[str])
    scope: list[str] = field(default_factory=list[str])
    """What stands before the lines where registers live."""
    leaving: list[str] = field(default_factory=list[str])
    after: list[str] = field(default_factory=list[str])
    has_registers: bool = False
    used: int = 0
    """Bytes of local memory that are taken."""

    def param(self, name: str, type: object, value: str) -> str:
        """Add a parameter; return what it is called."""
        self.params.append(f"%{name}: {type}")
        self.values.append(f"{name}={value}")
        return f"%{name}"

    def take(self, value: Value, fill: str, is_written: bool) -> None:
        """Make what lines are given."""
        name, kind = value.name, value.type
        if isinstance(kind, Scalar):
            self.param(name, kind, fill or _number(kind, len(self.params)))
        elif isinstance(kind, Ptr) and kind.space is Space.GM:
            self.param(name, kind, _filled(fill, "64"))
        elif isinstance(kind, Ptr):
            gm = self._local(name, name, kind, _POINTED, fill)
            self._copy_in(name, gm, kind, _POINTED)
            self._copy_out(name, gm, kind, _POINTED)
        elif isinstance(kind, TensorView):
            self._window(name, "", [extent or 1 for extent in kind.shape], kind.element, fill)
        elif isinstance(kind, TileBuf):
            self._tile(name, kind, fill, is_written)
        elif isinstance(kind, VReg):
            self.has_registers = True
            pointer = Ptr(kind.element, Space.VEC)
            gm = self._local(name, f"{name}_ub", pointer, _REGISTER, fill)
            self._copy_in(f"{name}_ub", gm, pointer, _REGISTER)
            self.scope.append(f"%{name} = pto.vlds %{name}_ub[%c0] : {pointer} -> {kind}")
        elif isinstance(kind, Mask):
            self.has_registers = True
            self.scope.append(f'%{name} = pto.pset_b{kind.bits} "{fill or _pattern(len(self.scope))}" : {kind}')

    def give(self, value: Value) -> None:
        """Store what lines give."""
        name, kind = value.name, value.type
        if isinstance(kind, Scalar):
            self._number_out(name, kind)
        elif isinstance(kind, VReg):
            pointer, bits = self._register_out(name, kind.element, _REGISTER), min(32, kind.element.bits)
            self.leaving += [
                f'%{name}_all = pto.pset_b{bits} "PAT_ALL" : !pto.mask<b{bits}>',
                f"pto.vsts %{name}, %{name}_ub[%c0], %{name}_all : {kind}, {pointer}, !pto.mask<b{bits}>",
            ]
        elif isinstance(kind, Mask):
            pointer = self._register_out(name, Scalar("ui8"), _MASK)
            self.leaving.append(f'pto.psts %{name}, %{name}_ub[%c0], "NORM" : {kind}, {pointer}, index')
        elif isinstance(kind, TileBuf):
            self._store(name, kind, self._window_of(name, kind, "zeros"))

    def _number_out(self, name: str, kind: Scalar) -> None:
        held = f"%{name}"
        if kind in (I1, INDEX):
            word, wide = ("arith.extui", "i8") if kind == I1 else ("arith.index_cast", "i64")
            self.leaving.append(f"%{name}_wide = {word} %{name} : {kind} to {wide}")
            held, kind = f"%{name}_wide", Scalar(wide)
        place = self.param(f"{name}_gm", f"!pto.ptr<{kind}, gm>", "zeros:1")
        self.leaving.append(f"pto.store_scalar {held}, {place}[%c0] : !pto.ptr<{kind}, gm>, {kind}")

    def _register_out(self, name: str, element: Scalar, size: int) -> Ptr:
        """Make local memory that something leaves through."""
        self.has_registers = True
        pointer = Ptr(element, Space.VEC)
        gm = self._local(name, f"{name}_ub", pointer, size, "zeros")
        self._copy_out(f"{name}_ub", gm, pointer, size)
        return pointer

    def _local(self, name: str, local: str, kind: Ptr, size: int, fill: str) -> str:
        """Make a pointer to local memory; return the one to global memory that goes with it."""
        self.before.append(f"%{local} = pto.castptr %n{self.used} : i64 -> {kind}")
        self.used += size
        count = str(size // kind.element.nbytes)
        return self.param(f"{name}_gm", f"!pto.ptr<{kind.element}, gm>", _filled(fill, count))

    def _copy_in(self, local: str, gm: str, kind: Ptr, size: int) -> None:
        types = f"!pto.ptr<{kind.element}, gm>, {kind}, i64, i64, i64, i64, i64"
        self.before.append(f"pto.mte_gm_ub {gm}, %{local}, %n0, {_burst(size)} : {types}")

    def _copy_out(self, local: str, gm: str, kind: Ptr, size: int) -> None:
        types = f"{kind}, !pto.ptr<{kind.element}, gm>, i64, i64, i64, i64"
        self.after.append(f"pto.mte_ub_gm %{local}, {gm}, {_burst(size)} : {types}")

    def _tile(self, name: str, kind: TileBuf, fill: str, is_written: bool) -> None:
        if kind.element.name in SMALL_FLOATS:
            self._tile_of_bytes(name, kind, fill)
            return
        self.before.append(f"%{name} = pto.alloc_tile : {brief_text(kind)}")
        if name == "out" and not is_written:
            return
        window = self._window_of(name, kind, "zeros" if name == "out" else fill)
        if name != "out":
            self._load(name, kind, window)
        if is_written:
            self._store(name, kind, window)

    def _tile_of_bytes(self, name: str, kind: TileBuf, fill: str) -> None:
        """Make a tile of floats that nothing moves: their bytes are moved, and then seen as what they are."""
        held = replace(kind, element=Scalar("ui8"))
        self.before.append(f"%{name}_bytes = pto.alloc_tile : {brief_text(held)}")
        self._load(f"{name}_bytes", held, self._window_of(name, kind, fill))
        types = f"{brief_text(held)} -> {brief_text(kind)}"
        self.before.append(f"%{name} = pto.bitcast %{name}_bytes : {types}")

    def _load(self, name: str, kind: TileBuf, window: str) -> None:
        if kind.space not in _THROUGH_MAT:
            self.before.append(f"pto.tload ins({window}) outs(%{name} : {brief_text(kind)})")
            return
        layout = ("row_major", "none_box") if kind.space is Space.BIAS else ("col_major", "row_major")
        mat = brief_text(replace(kind, space=Space.MAT, blayout=layout[0], slayout=layout[1]))
        self.before += [
            f"%{name}_mat = pto.alloc_tile : {mat}",
            f"pto.tload ins({window}) outs(%{name}_mat : {mat})",
            f"pto.tmov ins(%{name}_mat : {mat}) outs(%{name} : {brief_text(kind)})",
        ]

    def _window_of(self, name: str, kind: TileBuf, fill: str) -> str:
        """Make a window of global memory as large as a tile's valid part; return it with its type."""
        extents = [kind.valid_rows or kind.rows, kind.valid_cols or kind.cols]
        return self._window(name, "_part", extents, kind.element, fill)

    def _window(self, name: str, suffix: str, extents: Sequence[int], element: Scalar, fill: str) -> str:
        gm = self.param(f"{name}_gm", f"!pto.ptr<{element}, gm>", _filled(fill, "x".join(map(str, extents))))
        if element.name in SMALL_FLOATS:
            self.before.append(f"{gm}_bytes = pto.castptr {gm} : !pto.ptr<{element}, gm> -> !pto.ptr<ui8, gm>")
            gm, element = f"{gm}_bytes", Scalar("ui8")
        view = f"!pto.tensor_view<{'?x' * len(extents)}{element}>"
        part = TensorView(tuple(extents), element, partition=True)
        steps = [prod(extents[place + 1 :]) for place in range(len(extents))]
        shape, strides = (", ".join(f"%c{n}" for n in numbers) for numbers in (extents, steps))
        offsets = ", ".join("%c0" for _ in extents)
        place = f"offsets = [{offsets}], sizes = [{shape}]"
        self.before += [
            f"%{name}_view = pto.make_tensor_view {gm}, shape = [{shape}], strides = [{strides}] : {view}",
            f"%{name}{suffix} = pto.partition_view %{name}_view, {place} : {view} -> {part}",
        ]
        return f"%{name}{suffix} : {part}"

    def _store(self, name: str, kind: TileBuf, window: str) -> None:
        self.after.append(f"pto.tstore ins(%{name} : {brief_text(kind)}) outs({window})")

    def around(self, lines: Sequence[str]) -> str:
        """Return the whole text, whose first line says how it is run."""
        inside = [*self.scope, *lines, *self.leaving]
        if self.has_registers:
            wait = "pto.barrier #pto.pipe<PIPE_ALL>"
            inside = [wait, "pto.vecscope {", *inside, "}", wait]
        head = f"func.func @example({', '.join(self.params)}) attributes {{pto.kernel}} {{"
        body = written([head, *self.before, *inside, *self.after, "return", "}"])
        module = "\n".join(['module attributes {pto.target_arch = "a5"} {', *body, "}", ""])
        return runnable(module, " ".join(self.values))


def runnable(module: str, arguments: str) -> str:
    """Return the text of a module below the command that runs it."""
    return f"// tilewright pto run example.pto {arguments}\n{module}"


def _burst(size: int) -> str:
    """Return the operands that copy so many bytes at once."""
    return f"%n{size} nburst(%n1, %n{size}, %n{size})"


def _number(kind: Scalar, place: int) -> str:
    """Return a number for a parameter, another one than for those before it."""
    if kind == I1:
        return "1"
    return ("1.5", "0.4", "2.5")[place % 3] if kind.is_float else ("77", "3", "5")[place % 3]


def _pattern(place: int) -> str:
    return ("PAT_H", "PAT_M4", "PAT_M3")[place % 3]


def _filled(fill: str, count: str) -> str:
    return fill if ":" in fill else f"{fill or 'random'}:{count}"
