"""A generator: random PTO programs that are valid, with tiles that share bytes, loops, branches and calls.

Arithmetic is on integers and floats are only moved, so that every way to run a program must agree to the last bit.
Programs read one buffer of bytes, `x`, and write another, `y`; `n`, `k` and `c` are known at launch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from collections.abc import Generator as Yields
from contextlib import contextmanager
from dataclasses import dataclass, replace

SIZES = {"i8": 1, "ui8": 1, "i16": 2, "ui16": 2, "i32": 4, "ui32": 4, "f32": 4, "i64": 8}
"""The bytes of an element. Halves are left out: a signalling NaN among them may turn quiet where it is moved."""
INTEGERS = [name for name in SIZES if "f" not in name]
READ, WRITTEN = 1 << 14, 1 << 16
"""Bytes of `x` and of `y`."""
SHARED = 4096
"""Bytes at the end of `y` that a program stores to and loads from as it goes."""
REGION = 4096
"""Bytes of local memory that addresses are drawn from."""
RUNTIME = {"n": 5, "k": 3, "c": 1}
"""What the scalar parameters are at launch; the text never depends on it but for staying in bounds."""


@dataclass(frozen=True)
class Tile:
    """A tile in scope."""

    name: str
    element: str
    rows: int
    cols: int
    valid: tuple[int, int]
    """The valid extents while the program runs."""
    text: str
    plain: bool = True
    """Whether it has no boxes."""
    is_window: bool = False
    """Whether its rows may have gaps between them."""

    def reaches(self, rows: int, cols: int) -> bool:
        return self.rows >= rows and self.cols >= cols


class Generator:
    """One program."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 2
        self.count = 0
        self.constants: dict[tuple[int, str], str] = {}
        self.scope: list[Tile] = []
        self.shares = self.random.random() < 0.7
        self.stored = 0
        self.helpers: list[str] = []

    # text

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.indent + line)

    def name(self, hint: str = "v") -> str:
        self.count += 1
        return f"%{hint}{self.count}"

    def constant(self, value: int, type_: str = "index") -> str:
        return self.constants.setdefault((value, type_), f"%c{'m' if value < 0 else ''}{abs(value)}_{type_}")

    def program(self) -> str:
        """Return the text."""
        for _ in range(self.random.randint(2, 4)):
            self.load(self.tile(self.random.choice(list(SIZES))))
        for _ in range(self.random.randint(4, 14)):
            self.step()
        for tile in self.scope:
            self.store(tile)
        if self.shares and self.random.random() < 0.5:
            self.dump()
        constants = [f"    {name} = arith.constant {v} : {t}" for (v, t), name in self.constants.items()]
        arguments = ", ".join(["%x: !pto.ptr<ui8>", "%y: !pto.ptr<ui8>", *(f"%{name}: i32" for name in RUNTIME)])
        casts = [f"    %{name}i = arith.index_cast %{name} : i32 to index" for name in RUNTIME]
        head = ["module {", f"  func.func @main({arguments}) {{", *constants, *casts]
        return "\n".join([*head, *self.lines, "    return", "  }", *self.helpers, "}"]) + "\n"

    # tiles

    def tile(
        self, element: str, rows: int = 0, cols: int = 0, valid: tuple[int, int] | None = None, loc: str = "vec"
    ) -> Tile:
        """Allocate a tile, anywhere."""
        pick = self.random
        rows, cols = rows or pick.choice((1, 2, 3, 8, 16)), cols or pick.choice((1, 8, 16, 32, 40))
        kind = pick.choice(("row", "row", "row", "col", "boxed"))
        boxed = kind == "boxed" and rows % 16 == 0 and cols % 16 == 0 and cols * SIZES[element] % 32 == 0
        options = ", blayout=col_major" if kind == "col" else ""
        if boxed:
            options = pick.choice((", blayout=col_major, slayout=row_major", ", slayout=row_major"))
        clauses, extents = "", [str(rows), str(cols)]
        if self.shares:
            limit = (REGION - rows * cols * SIZES[element]) // 32
            clauses += f" addr = {self.address(pick.randint(0, max(0, limit)) * 32 if pick.random() < 0.6 else 0)}"
        if valid is None:
            valid = rows, cols
            if pick.random() < 0.5:
                valid = pick.randint(1, rows), pick.randint(1, cols)
            for axis, (word, have) in enumerate((("valid_row", rows), ("valid_col", cols))):
                runtime = pick.choice(("n", "k"))
                if pick.random() < 0.2 and have >= RUNTIME[runtime]:
                    valid = (RUNTIME[runtime], valid[1]) if axis == 0 else (valid[0], RUNTIME[runtime])
                    clauses += f" {word} = %{runtime}i"
                    extents[axis] = "?"
        shown = [e if e == "?" else str(v) for e, v in zip(extents, valid, strict=True)]
        text = f"!pto.tile_buf<{loc}, {rows}x{cols}x{element}, valid={shown[0]}x{shown[1]}{options}>"
        made = Tile(self.name("t"), element, rows, cols, valid, text, not boxed)
        self.emit(f"{made.name} = pto.alloc_tile{clauses} : {text}")
        self.scope.append(made)
        return made

    def address(self, value: int) -> str:
        """Return an address, sometimes one that only the running program knows."""
        if self.random.random() < 0.9:
            return self.constant(value, "i64")
        wide, total = self.name(), self.name()
        self.emit(f"{wide} = arith.extsi %c : i32 to i64")
        self.emit(f"{total} = arith.addi {wide}, {self.constant(value - RUNTIME['c'], 'i64')} : i64")
        return total

    def some(self, element: str | None = None, fits: Callable[[Tile], bool] = lambda t: True) -> Tile:
        """Return a tile in scope, or a new one with something in it."""
        found = [t for t in self.scope if element in (None, t.element) and fits(t)]
        if found and self.random.random() < 0.85:
            return self.random.choice(found)
        for _ in range(20):
            made = self.tile(element or self.random.choice(INTEGERS))
            if fits(made):
                self.load(made)
                return made
        raise LookupError

    def source(self, element: str, rows: int, cols: int) -> Tile:
        """Return a tile that has so many rows and columns to read."""
        found = [t for t in self.scope if t.element == element and t.reaches(rows, cols)]
        if found and self.random.random() < 0.85:
            return self.random.choice(found)
        made = self.tile(element, rows, cols, (rows, cols))
        self.load(made)
        return made

    # moving in and out

    def window(self, tile: Tile, pointer: str, start: str, pitch: int) -> str:
        """Return a window on a buffer, as large as a tile's valid part, from an element on."""
        typed, view, part = self.name("p"), self.name("w"), self.name("w")
        element, (rows, cols) = tile.element, tile.valid
        zero, one = self.constant(0), self.constant(1)
        self.emit(f"{typed} = pto.castptr {pointer} : !pto.ptr<ui8> -> !pto.ptr<{element}>")
        step = self.constant(pitch)
        total = self.constant((WRITTEN if pointer == "%y" else READ) // SIZES[element])
        self.emit(
            f"{view} = pto.make_tensor_view {typed}, shape = [{one}, {total}], strides = [{step}, {one}]"
            f" : !pto.tensor_view<?x?x{element}>"
        )
        self.emit(
            f"{part} = pto.partition_view {view}, offsets = [{zero}, {start}], sizes = [{self.constant(rows)},"
            f" {self.constant(cols)}] : !pto.tensor_view<?x?x{element}> -> !pto.partition_tensor_view<?x?x{element}>"
        )
        return part

    def load(self, tile: Tile) -> None:
        pitch = tile.cols + self.random.choice((0, 0, 3))
        room = READ // SIZES[tile.element] - tile.rows * pitch
        part = self.window(tile, "%x", self.constant(self.random.randint(0, room)), pitch)
        self.emit(
            f"pto.tload ins({part} : !pto.partition_tensor_view<?x?x{tile.element}>) outs({tile.name} : {tile.text})"
        )

    def store(self, tile: Tile) -> None:
        size = SIZES[tile.element]
        pitch = tile.cols + self.random.choice((0, 1))
        start = -(-self.stored // size)
        if (start + tile.rows * pitch) * size > WRITTEN - SHARED:
            return
        part = self.window(tile, "%y", self.constant(start), pitch)
        self.stored = (start + tile.rows * pitch) * size
        self.emit(
            f"pto.tstore ins({tile.name} : {tile.text}) outs({part} : !pto.partition_tensor_view<?x?x{tile.element}>)"
        )

    def revisit(self) -> None:
        """Store a tile where others are stored too, and load another from there."""
        for word in ("tstore", "tload"):
            tile = self.some(self.random.choice(list(SIZES)))
            view = f"!pto.partition_tensor_view<?x?x{tile.element}>"
            first, room = (n // SIZES[tile.element] for n in (WRITTEN - SHARED, SHARED))
            most = room - tile.rows * tile.cols
            if most < 0:
                return
            part = self.window(tile, "%y", self.constant(first + self.random.randint(0, most)), tile.cols)
            ends = (tile.name, tile.text), (part, view)
            source, target = ends if word == "tstore" else ends[::-1]
            self.emit(f"pto.{word} ins({source[0]} : {source[1]}) outs({target[0]} : {target[1]})")

    def dump(self) -> None:
        text = f"!pto.tile_buf<vec, 1x{REGION}xui8>"
        name = self.name("t")
        self.emit(f"{name} = pto.alloc_tile addr = {self.constant(0, 'i64')} : {text}")
        self.store(Tile(name, "ui8", 1, REGION, (1, REGION), text))

    # what happens

    def step(self, depth: int = 0) -> None:
        """Add one op, or a loop or branch of several."""
        steps = [self.arithmetic] * 6 + [self.movement] * 4 + [self.reduction, self.expansion] * 2
        steps += [self.conversion, self.selection, self.element, self.reshaping, self.product, self.filling]
        steps += [self.revisit] * 2
        if depth == 0:
            steps.append(self.resizing)
        if depth < 2:
            steps += [self.call]
            steps += [lambda: self.loop(depth), lambda: self.branch(depth), lambda: self.chosen_tile()]
        try:
            self.random.choice(steps)()
        except LookupError:
            return

    def op(self, name: str, ins: list[str], types: list[str], target: Tile, attributes: str = "") -> None:
        self.emit(
            f"pto.{name} ins({', '.join(ins)}{attributes} : {', '.join(types)}) outs({target.name} : {target.text})"
        )

    def tiles_op(self, name: str, sources: list[Tile], target: Tile, attributes: str = "") -> None:
        self.op(name, [s.name for s in sources], [s.text for s in sources], target, attributes)

    def arithmetic(self) -> None:
        target = self.some(self.random.choice(INTEGERS))
        sources = [self.source(target.element, *target.valid) for _ in "ab"]
        form = self.random.choice(("binary", "scalar", "unary", "shift", "fill"))
        if form == "unary":
            names = ("tneg", "tabs", "trelu", "tnot") if not target.element.startswith("u") else ("tnot",)
            self.tiles_op(self.random.choice(names), sources[:1], target)
        elif form == "binary":
            name = self.random.choice(("tadd", "tsub", "tmul", "tmax", "tmin", "tand", "tor"))
            self.tiles_op(name, sources, target)
        elif form == "fill":
            self.op("texpands", [self.constant(self.random.randint(0, 99), target.element)], [target.element], target)
        else:
            name = "tshls", "tshrs"
            if form == "scalar":
                name = "tadds", "tsubs", "tmuls", "tmaxs", "tmins", "tands", "tors"
            number = self.constant(self.random.randint(0, 7), target.element)
            self.op(self.random.choice(name), [sources[0].name, number], [sources[0].text, target.element], target)

    def movement(self) -> None:
        source = self.some(self.random.choice(list(SIZES)))
        element, pick = source.element, self.random
        form = pick.choice(("tmov", "tmov", "textract", "tinsert", "tconcat", "ttrans"))
        rows, cols = source.valid
        if form == "tmov":
            self.tiles_op("tmov", [source], self.some(element))
        elif form == "textract":
            target = self.some(element, lambda t: t.valid[0] <= source.rows and t.valid[1] <= source.cols)
            at = pick.randint(0, source.rows - target.valid[0]), pick.randint(0, source.cols - target.valid[1])
            self._placed("textract", source, target, at)
        elif form == "tinsert":
            target = self.some(element, lambda t: t.reaches(rows, cols))
            self._placed(
                "tinsert", source, target, (pick.randint(0, target.rows - rows), pick.randint(0, target.cols - cols))
            )
        elif form == "tconcat":
            other = self.some(element, lambda t: t.valid[0] == rows)
            width = cols + other.valid[1]
            self.tiles_op("tconcat", [source, other], self.some(element, lambda t: t.reaches(rows, width)))
        else:
            self.tiles_op("ttrans", [source], self.tile(element, source.cols, source.rows, (cols, rows)))

    def _placed(self, name: str, source: Tile, target: Tile, at: tuple[int, int]) -> None:
        numbers = [self.constant(at[0]), self.constant(at[1])]
        self.op(name, [source.name, *numbers], [source.text, "index", "index"], target)

    def reduction(self) -> None:
        source = self.some(self.random.choice(INTEGERS))
        axis, fold = self.random.choice(("row", "col")), self.random.choice(("sum", "max", "min", "argmax", "argmin"))
        shape = (source.valid[0], 1) if axis == "row" else (1, source.valid[1])
        element = "i32" if fold.startswith("arg") else source.element
        self.tiles_op(f"t{axis}{fold}", [source], self.some(element, lambda t: t.reaches(*shape)))

    def expansion(self) -> None:
        target = self.some(self.random.choice(INTEGERS))
        axis, name = self.random.choice(("row", "col")), self.random.choice(("", "add", "sub", "mul", "max", "min"))
        shape = (target.valid[0], 1) if axis == "row" else (1, target.valid[1])
        sources = [self.source(target.element, *shape)]
        if name:
            sources.insert(0, self.source(target.element, *target.valid))
        self.tiles_op(f"t{axis}expand{name}", sources, target)

    def conversion(self) -> None:
        target = self.some(self.random.choice(INTEGERS))
        element = self.random.choice([name for name in INTEGERS if name != target.element])
        self.tiles_op("tcvt", [self.source(element, *target.valid)], target)

    def selection(self) -> None:
        element = self.random.choice(("i8", "i16", "i32"))
        target = self.some(element, lambda t: t.valid[1] % 8 == 0)
        rows, cols = target.valid
        sources = [self.source(element, rows, cols) for _ in "ab"]
        width = max(32, cols // 8)
        mask = self.tile("ui8", rows, width, (rows, width))
        if "col_major" in mask.text or not mask.plain:
            return
        compared = self.tile(element, rows, cols, (rows, cols))
        self.load(compared)
        how = self.random.choice(("eq", "ne", "lt", "le", "gt", "ge"))
        self.tiles_op("tcmp", [compared, sources[0]], mask, f" {{cmpMode = #pto<cmp {how}>}}")
        scratch = self.tile("ui8", 1, 32, (1, 32)) if not self.shares else None
        used = [mask, *sources, *([scratch] if scratch else [])]
        self.tiles_op("tsel", used, target)

    def element(self) -> None:
        source = self.some(self.random.choice(INTEGERS))
        target = self.some(source.element)
        value = self.name("e")
        places = [self.constant(self.random.randrange(t.rows * t.cols)) for t in (source, target)]
        self.emit(
            f"{value} = pto.tgetval ins({source.name}, {places[0]} : {source.text}, index) outs : {source.element}"
        )
        self.op("tsetval", [places[1], value], ["index", source.element], target)

    def reshaping(self) -> None:
        tile = self.some(None, lambda t: t.plain)
        name, pick = self.name("t"), self.random
        if pick.random() < 0.5 and tile.plain:
            rows, cols = pick.randint(1, tile.rows), pick.randint(1, tile.cols)
            at = [self.constant(pick.randint(0, most)) for most in (tile.rows - rows, tile.cols - cols)]
            major = ", blayout=col_major" if "col_major" in tile.text else ""
            text = f"!pto.tile_buf<vec, {rows}x{cols}x{tile.element}{major}>"
            self.emit(
                f"{name} = pto.subview {tile.name}[{at[0]}, {at[1]}] sizes [{rows}, {cols}] : {tile.text} -> {text}"
            )
            self.scope.append(Tile(name, tile.element, rows, cols, (rows, cols), text, is_window=True))
            return
        if tile.is_window:
            return
        count = tile.rows * tile.cols * SIZES[tile.element]
        element = pick.choice([e for e, size in SIZES.items() if count % size == 0])
        rows = pick.choice([r for r in (1, 2, 4, 8) if count // SIZES[element] % r == 0])
        cols = count // SIZES[element] // rows
        text = f"!pto.tile_buf<vec, {rows}x{cols}x{element}>"
        self.emit(f"{name} = pto.treshape {tile.name} : {tile.text} -> {text}")
        self.scope.append(Tile(name, element, rows, cols, (rows, cols), text))

    def product(self) -> None:
        """A product of bytes, through the memories of the matrix unit."""
        rows, depth, cols = (self.random.randint(1, 16) for _ in "mkn")
        zero = self.constant(0, "i64")
        shapes = {
            "left": (rows, depth, "16x32xi8"),
            "right": (depth, cols, "32x32xi8"),
            "acc": (rows, cols, "16x32xi32"),
        }
        layouts = {
            "left": "blayout=col_major, slayout=row_major",
            "right": "slayout=col_major",
            "acc": "blayout=col_major, slayout=row_major, fractal=1024",
        }
        made: dict[str, Tile] = {}
        for loc, (r, c, shape) in shapes.items():
            text = f"!pto.tile_buf<{loc}, {shape}, valid={r}x{c}, {layouts[loc]}>"
            made[loc] = Tile(self.name(loc), shape.rpartition("x")[2], 16, 32, (r, c), text, False)
            self.emit(f"{made[loc].name} = pto.alloc_tile addr = {zero} : {text}")
        for loc in ("left", "right"):
            self.tiles_op("tmov", [self.source("i8", *made[loc].valid)], made[loc])
        self.tiles_op("tmatmul", [made["left"], made["right"]], made["acc"])
        if self.random.random() < 0.5:
            self.tiles_op("tmatmul.acc", [made["acc"], made["left"], made["right"]], made["acc"])
        self.tiles_op("tmov", [made["acc"]], self.some("i32"))

    def filling(self) -> None:
        source = self.some(self.random.choice(INTEGERS))
        pad = self.random.choice((1, 2, 3))
        target = self.tile(source.element, source.rows, source.cols, (source.rows, source.cols))
        padded = replace(target, name=self.name("t"), text=target.text[:-1] + f", pad={pad}>")
        self.emit(f"{padded.name} = pto.treshape {target.name} : {target.text} -> {padded.text}")
        self.tiles_op("tfillpad", [source], padded)

    def resizing(self) -> None:
        """A tile whose valid part grows to all of it, is used, and shrinks."""
        element, (rows, cols) = self.random.choice(INTEGERS), self.random.choice(((8, 16), (8, 8), (16, 8)))
        address = f" addr = {self.address(32 * self.random.randint(0, 60))}" if self.shares else ""
        text = f"!pto.tile_buf<vec, {rows}x{cols}x{element}, valid=?x?>"
        tile = Tile(self.name("t"), element, rows, cols, (RUNTIME["n"], RUNTIME["k"]), text)
        self.emit(f"{tile.name} = pto.alloc_tile{address} valid_row = %ni valid_col = %ki : {text}")
        self.load(tile)
        for _ in range(self.random.randint(1, 3)):
            valid = self.random.randint(1, rows), self.random.randint(1, cols)
            extents = f"{self.constant(valid[0])}, {self.constant(valid[1])}"
            self.emit(f"pto.set_validshape {tile.name}, {extents} : {text}")
            tile = replace(tile, valid=valid)
            self.tiles_op("tadd", [tile, self.source(element, *valid)], tile)
        self.scope.append(tile)

    def call(self) -> None:
        """A helper that changes its tiles, and has one of its own."""
        first = self.some(self.random.choice(INTEGERS), lambda t: "?" not in t.text)
        second = self.source(first.element, *first.valid)
        name = f"helper{len(self.helpers)}"
        self.emit(f"func.call @{name}({first.name}, {second.name}) : ({first.text}, {second.text}) -> ()")
        self.helpers.append(
            f"  func.func private @{name}(%a: {first.text}, %b: {second.text}) {{\n"
            f"    %own = pto.alloc_tile : {first.text}\n"
            f"    pto.tsub ins(%a, %b : {first.text}, {second.text}) outs(%own : {first.text})\n"
            f"    pto.tmul ins(%own, %a : {first.text}, {first.text}) outs(%a : {first.text})\n"
            "    return\n  }"
        )

    # control

    @contextmanager
    def inside(self) -> Yields[None]:
        outer = list(self.scope)
        self.indent += 1
        yield
        self.indent -= 1
        self.scope = outer

    def body(self, depth: int) -> None:
        for _ in range(self.random.randint(1, 4)):
            self.step(depth + 1)
        if self.random.random() < 0.3:
            self.emit("pto.barrier #pto.pipe<PIPE_ALL>")

    def loop(self, depth: int) -> None:
        stop = self.random.choice(("%ki", self.constant(2), self.constant(1), self.constant(0)))
        first, step = self.constant(0), self.constant(1)
        if self.random.random() < 0.5:
            self.emit(f"scf.for {self.name('i')} = {first} to {stop} step {step} {{")
            with self.inside():
                self.body(depth)
            self.emit("}")
            return
        self.pingpong(depth, stop)

    def pingpong(self, depth: int, stop: str) -> None:
        """A loop that hands two tiles on, each turn the other way round."""
        first = self.some(self.random.choice(INTEGERS))
        same = [t for t in self.scope if t.text == first.text]
        second = self.random.choice(same)
        names = [self.name("t") for _ in "abcd"]
        counter = self.name("i")
        self.emit(
            f"{names[2]}, {names[3]} = scf.for {counter} = {self.constant(0)} to {stop} step {self.constant(1)}"
            f" iter_args({names[0]} = {first.name}, {names[1]} = {second.name}) -> ({first.text}, {second.text}) {{"
        )
        extents = tuple(min(a, b) for a, b in zip(first.valid, second.valid, strict=True))
        with self.inside():
            made = replace(first, is_window=first.is_window or second.is_window)
            now = [replace(made, name=name) for name in names[:2]]
            if "?" not in first.text:
                self.scope += now
                self.body(depth)
            assert extents
            self.emit(f"scf.yield {names[1]}, {names[0]} : {first.text}, {first.text}")
        self.emit("}")
        if "?" not in first.text:
            self.scope += [replace(made, name=name) for name in names[2:]]

    def branch(self, depth: int) -> None:
        condition = self.condition()
        self.emit(f"scf.if {condition} {{")
        with self.inside():
            self.body(depth)
        if self.random.random() < 0.5:
            self.emit("} else {")
            with self.inside():
                self.body(depth)
        self.emit("}")

    def condition(self) -> str:
        condition = self.name("b")
        how, bound = self.random.choice(("slt", "sge", "eq")), self.constant(self.random.choice((0, 3, 9)))
        self.emit(f"{condition} = arith.cmpi {how}, %{self.random.choice('nk')}i, {bound} : index")
        return condition

    def chosen_tile(self) -> None:
        """A tile that a branch decides on."""
        first = self.some(None, lambda t: "?" not in t.text)
        second = self.random.choice([t for t in self.scope if t.text == first.text])
        condition, name = self.condition(), self.name("t")
        self.emit(f"{name} = scf.if {condition} -> ({first.text}) {{")
        self.emit(f"  scf.yield {first.name} : {first.text}")
        self.emit("} else {")
        self.emit(f"  scf.yield {second.name} : {first.text}")
        self.emit("}")
        self.scope.append(replace(first, name=name, is_window=first.is_window or second.is_window))
