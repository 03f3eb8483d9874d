"""Sketches: kernels of tile ops made in Python, of tiles that are loaded, worked on and stored."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy
from unit.pto.rules.audit import LAYOUTS
from unit.pto.tiles.cases import ELEMENTS
from unit.pto.tiles.running import is_array
from unit.pto.vectors.running import built

from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np: Any = numpy
Array = Any


@dataclass(frozen=True)
class Piece:
    """A tile or a number: what it is called, its type, and of a tile how much is valid of which elements."""

    name: str
    type: str
    valid: tuple[int, int] = (0, 0)
    element: str = ""


@dataclass
class Sketch:
    """A kernel: tiles are `8x64xf32` with words behind commas, a layout of the rules' tables among them."""

    arch: str = "a5"
    heads: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    arrays: list[Any] = field(default_factory=list[Any])
    numbers: set[int] = field(default_factory=set[int])

    def tile(self, words: str, valid: tuple[int, int] | None = None) -> Piece:
        """Return a tile; how much of it is valid is said here where its type leaves it open."""
        shape, *others = words.split(", ")
        rows, cols, element = shape.split("x", 2)
        said = next((match for word in others if (match := re.fullmatch(r"valid=(\d+)x(\d+)", word))), None)
        extents = valid or ((int(said[1]), int(said[2])) if said else (int(rows), int(cols)))
        type = f"!pto.tile_buf<vec, {', '.join([shape, *(LAYOUTS.get(word, word) for word in others)])}>"
        piece = Piece(f"t{len(self.lines)}", type, extents, element)
        dims = f" valid_row = {self.index(extents[0])} valid_col = {self.index(extents[1])}" if valid else ""
        self.lines.append(f"%{piece.name} = pto.alloc_tile{dims} : {type}")
        return piece

    def given(self, array: Array, words: str, valid: tuple[int, int] | None = None) -> Piece:
        """Return a tile that holds an array."""
        piece = self.tile(words, valid)
        self._move("tload", piece, array)
        return piece

    def number(self, value: object, element: str) -> Piece:
        """Return an argument."""
        self.heads.append(f"%a{len(self.arrays)}: {element}")
        self.arrays.append(value)
        return Piece(self.heads[-1][1:].partition(":")[0], element)

    def op(self, name: str, ins: list[Piece], outs: list[Piece], words: str = "") -> None:
        """Add an op with its operands and what stands behind them."""
        sides = [
            f"{side}({', '.join(f'%{each.name}' for each in pieces)} : {', '.join(each.type for each in pieces)})"
            for side, pieces in (("ins", ins), ("outs", outs))
        ]
        self.lines.append(f"pto.{name} {' '.join(sides)} {words}".strip())

    def left(self, piece: Piece) -> int:
        """Store a tile; return the number of the array that it is stored in."""
        self._move("tstore", piece, np.zeros(piece.valid, ELEMENTS[piece.element]))
        return len(self.arrays) - 1

    def run(self, target: str) -> list[Any]:
        """Return what the arrays hold after the kernel, which the verifier takes."""
        indices = [f"%c{n} = arith.constant {n} : index" for n in sorted(self.numbers)]
        body = "\n    ".join([*indices, *self.lines, "return"])
        head = f'module attributes {{pto.target_arch = "{self.arch}"}} {{\n  func.func @k({", ".join(self.heads)}) {{'
        text = f"{head}\n    {body}\n  }}\n}}\n"
        verify(parse(text, "sketch.pto"))
        left: list[Any] = [np.copy(each) if is_array(each) else each for each in self.arrays]
        built(text, target, self.arch)(1, *(each.reshape(-1) if is_array(each) else each for each in left))
        return left

    def index(self, number: int) -> str:
        """Return a constant that counts."""
        self.numbers.add(number)
        return f"%c{number}"

    def _move(self, op: str, piece: Piece, array: Array) -> None:
        name = f"a{len(self.arrays)}"
        self.heads.append(f"%{name}: !pto.ptr<{piece.element}>")
        self.arrays.append(np.reshape(array, piece.valid))
        rows, cols = map(self.index, piece.valid)
        one, zero = self.index(1), self.index(0)
        view, part = (f"!pto.{kind}<{shape}x{piece.element}>" for kind, shape in (
            ("tensor_view", "?x?"), ("partition_tensor_view", f"{piece.valid[0]}x{piece.valid[1]}")
        ))  # fmt: skip
        sides = f"(%{name}p : {part})", f"(%{piece.name} : {piece.type})"
        ins, outs = sides if op == "tload" else sides[::-1]
        self.lines += [
            f"%{name}v = pto.make_tensor_view %{name}, shape = [{rows}, {cols}], strides = [{cols}, {one}] : {view}",
            f"%{name}p = pto.partition_view %{name}v, offsets = [{zero}, {zero}], sizes = [{rows}, {cols}]"
            f" : {view} -> {part}",
            f"pto.{op} ins{ins} outs{outs}",
        ]
