"""Laws: what the machines ask of ops beyond their meaning, on A2/A3, on A5 or on both.

Text for a machine is held to them when it is verified; they say which type to write instead. A `?` breaks none.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilewright.pto.elements import A3, A5, CALLED, LEAVING
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.module import Constants, Op, word_of
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.tile_laws import (
    COLUMNS,
    NZ,
    ROWS,
    apart,
    by_rows,
    holds,
    lies_in,
    plain,
    shaped_alike,
    short,
    tiles_of,
    valid_alike,
)
from tilewright.pto.types import INDEX, Mask, Ptr, Scalar, Space, TensorView, TileBuf, VReg, show

LINE = 32
"""Bytes that the machines move at once."""

_BOXES = {1024: (16, 16), 32: (16, 2)}
"""The rows and columns of a box by its size in bytes, where its element does not matter."""


def _box(tile: TileBuf) -> tuple[int, int] | None:
    """Return the rows and columns of a boxed tile's boxes, None where the machines have no such boxes."""
    if tile.fractal != 512:
        return _BOXES.get(tile.fractal)
    if LINE % tile.element.nbytes:
        return None
    across = LINE // tile.element.nbytes
    return (16, across) if tile.slayout == "row_major" else (across, 16)


def laid_out(op: Op, _: Constants) -> None:
    """Refuse a tile whose rows, or boxes, do not fill the lines of its memory."""
    tile = op.results[0].of(TileBuf)
    if tile.slayout == "none_box":
        _refuse_broken_lines(op, tile)
        return
    box = _box(tile)
    if box is None:
        boxes = f"fractal={tile.fractal} and slayout={tile.slayout}"
        message = f"{short(op)}: no machine has boxes of {boxes} for {tile.element}"
        raise PtoTypeMismatchError(message, help="fractal is 512, 1024 for accumulators, or 32")
    is_exempt = tile.space is Space.VEC or tile.fractal == 32 or tile.rows == 1
    for noun, extent, inner in (("rows", tile.rows, 1 if is_exempt else box[0]), ("cols", tile.cols, box[1])):
        if extent % inner:
            message = f"{short(op)}: {noun} must be a multiple of {inner}, as a box has them, got {extent}"
            raise PtoTypeMismatchError(message, help=f"write {noun}={-(-extent // inner) * inner}")


def _refuse_broken_lines(op: Op, tile: TileBuf) -> None:
    is_by_rows, size = tile.blayout == "row_major", tile.element.nbytes
    noun, extent = ("cols", tile.cols) if is_by_rows else ("rows", tile.rows)
    if extent * size % LINE:
        line = "row" if is_by_rows else "column"
        message = f"{short(op)}: {line} bytes ({noun} x {size}) must be a multiple of {LINE}, got {extent * size}"
        whole = -(-extent * size // LINE) * LINE // size
        made = replace(tile, cols=whole) if is_by_rows else replace(tile, rows=whole)
        raise PtoTypeMismatchError(message, help=f"write {brief_text(made)}")


def alike(op: Op, _: Constants) -> None:
    """Refuse tiles that are not row-major, or of which different parts are valid; and precision of integers."""
    values = [*tiles_of(op.ins[:2]), *op.outs]
    by_rows(op, *values)
    for value in values[:-1]:
        valid_alike(op, value, values[-1])
    refuse_precision(op)


def refuse_precision(op: Op) -> None:
    """Refuse precision where there is none to choose: of integers."""
    element = op.outs[0].of(TileBuf).element
    if "precision_mode" in op.attributes and not element.is_float:
        message = f"{short(op)}: `precision_mode` is for floats, `%{op.outs[0].name}` holds {element}"
        raise PtoAttributeError(message, help="leave it out: integers are exact")


def in_vec(op: Op, constants: Constants) -> None:
    """Refuse tiles outside the vector memory, and such as are not valid alike; and precision of integers."""
    values = tiles_of((*op.ins, *op.outs))
    for value in values:
        lies_in(op, value, Space.VEC)
    for value in values[:-1]:
        valid_alike(op, value, values[-1])
    refuse_precision(op)


def by_numbers(op: Op, constants: Constants) -> None:
    """Refuse a number that only counts, and tiles as for every op on the vector memory."""
    number = next((value for value in op.ins if value.type == INDEX), None)
    if number is not None:
        message = f"{short(op)}: a number is an integer or a float, `%{number.name}` is index"
        raise PtoTypeMismatchError(message, help="make it i32 first: `arith.index_cast %n : index to i32`")
    in_vec(op, constants)


def equally_large(op: Op, constants: Constants) -> None:
    """Refuse a conversion between tiles of different shapes."""
    for value in tiles_of(op.ins):
        shaped_alike(op, value, op.outs[0])
        valid_alike(op, value, op.outs[0])


_SPACES = {A3: (Space.VEC, Space.MAT, Space.ACC), A5: (Space.VEC, Space.ACC)}
_LAYOUTS = (ROWS, COLUMNS, NZ)


def stored(op: Op, constants: Constants) -> None:
    """Refuse a store that no pipe to global memory does."""
    (source, *scales), view, arch = op.ins, op.outs[0].of(TensorView), constants.arch
    tile = source.of(TileBuf)
    _refuse_few_bits(op, tile, view)
    if tile.space not in _SPACES[arch]:
        places = " or ".join(space.loc for space in _SPACES[arch])
        message = f"{CALLED[arch]} tstore takes a tile in {places}, `%{source.name}` is in {tile.space.loc}"
        raise PtoOperandError(message, help=f"move it to {_SPACES[arch][0].loc} first")
    extents = (tile.valid_rows, tile.valid_cols)
    if 0 in (*extents, *view.shape):
        raise PtoValidShapeError("tstore: there is nothing to store", help="extents are positive")
    if None not in (*extents, *view.shape) and len(view.shape) > 1:  # old text has the number of dims for one of them
        _refuse_counts(op, prod(n or 0 for n in extents), prod(n or 0 for n in view.shape))
    relu = word_of(op.attributes.get("reluPreMode", "no_relu"))
    if tile.space is not Space.ACC:
        if scales or relu.lower() not in ("no_relu", "norelu"):
            where = f"`%{source.name}` is in {tile.space.loc}"
            message = f"tstore: only an accumulator is scaled or rectified on its way, {where}"
            raise PtoOperandError(message, help="compute with `pto.tmuls` or `pto.trelu` before")
        _refuse_plain_store(op, tile, arch)
    else:
        _refuse_accumulated(op, tile, view, arch)


def _refuse_few_bits(op: Op, tile: TileBuf, view: TensorView) -> None:
    """Refuse elements that no pipe between global memory and tiles knows."""
    for element in (tile.element, view.element):
        if element.is_packed:
            message = f"{short(op)} moves no {element}"
            raise PtoTypeMismatchError(message, help="move its bytes, as i8 with `pto.castptr`")


def _refuse_counts(op: Op, have: int, want: int) -> None:
    if have != want:
        message = f"tstore: the tile has {have} valid elements, and the view {want}"
        raise PtoValidShapeError(message, help="make the view as large as what is valid")


def _refuse_plain_store(op: Op, tile: TileBuf, arch: str) -> None:
    if arch == A5 and 1 not in (tile.rows, tile.cols) and (tile.blayout, tile.slayout) not in _LAYOUTS:
        message = f"A5 tstore takes no tile of blayout={tile.blayout}, slayout={tile.slayout}"
        raise PtoTypeMismatchError(message, help="move it into a row-major tile first")


def _refuse_accumulated(op: Op, tile: TileBuf, view: TensorView, arch: str) -> None:
    for scales in tiles_of(op.ins[1:]):
        lies_in(op, scales, Space.SCALING)
    source, target = plain(tile.element), plain(view.element)
    ways = LEAVING["tstore"] if len(op.ins) == 1 else LEAVING["tstore_fp"]
    allowed = ways.on(arch).get(source, ())
    if target not in allowed:
        message = (
            f"{CALLED[arch]} tstore brings {source} of an accumulator to {' '.join(allowed) or 'nothing'}, got {target}"
        )
        raise PtoTypeMismatchError(message, help="accumulators hold i32 or f32: choose a view of another type")
    if arch == A3 and not (0 < tile.cols <= 4095 and (tile.valid_cols is None or 0 < tile.valid_cols <= 4095)):
        raise PtoValidShapeError(
            f"A2/A3 tstore: an accumulator has 1 to 4095 columns, got {tile.cols}", help="split it"
        )


def filled(op: Op, _: Constants) -> None:
    """Refuse a padding that has nothing to pad with, or nowhere."""
    source, target = op.ins[0].of(TileBuf), op.outs[0].of(TileBuf)
    size = target.element.nbytes
    if source.element.nbytes != size or size not in (1, 2, 4):
        got = f"{source.element} and {target.element}"
        message = f"{short(op)}: elements must be equally large, of 1, 2 or 4 bytes, got {got}"
        raise PtoTypeMismatchError(message, help="convert one of them with `pto.tcvt`")
    if not target.pad:
        message = f"{short(op)}: `%{op.outs[0].name}` has no pad"
        raise PtoTypeMismatchError(message, help="write pad=1 (zero), 2 (max) or 3 (min) in its type")
    shapes = (source.rows, source.cols), (target.rows, target.cols)
    fits = all(a <= b for a, b in zip(*shapes, strict=True)) if op.name.endswith("_expand") else shapes[0] == shapes[1]
    if not fits:
        wanted = "no smaller than the source" if op.name.endswith("_expand") else "of the source's shape"
        message = f"{short(op)}: the result must be {wanted}, got {brief_text(source)} and {brief_text(target)}"
        raise PtoTypeMismatchError(message, help=f"write rows={source.rows}, cols={source.cols}")
    if op.name == "pto.tfillpad" and source.space is target.space is Space.MAT and source != target:
        fields = [key for key in ("valid_rows", "valid_cols", "pad") if getattr(source, key) != getattr(target, key)]
        said = ", ".join({"valid_rows": "v_row", "valid_cols": "v_col"}.get(key, key) for key in fields)
        raise PtoTypeMismatchError(
            f"tfillpad: in mat both types must be equal, they differ in {said}", help="make them equal"
        )


def bits_apart(op: Op, constants: Constants) -> None:
    """Refuse an op on bits that writes what it reads, and tiles that are not valid alike."""
    apart(op, op.ins[0], op.outs[0])
    alike(op, constants)


def loaded(op: Op, constants: Constants) -> None:
    """Refuse a load that no pipe from global memory does."""
    view, tile, arch = op.ins[0].of(TensorView), op.outs[0].of(TileBuf), constants.arch
    _refuse_few_bits(op, tile, view)
    if 0 in (*view.shape, tile.valid_rows, tile.valid_cols):
        raise PtoValidShapeError("tload: there is nothing to load", help="extents are positive")
    if arch == A5:
        if tile.space is Space.VEC and (tile.blayout, tile.slayout) not in _LAYOUTS:
            message = f"A5 tload takes no tile of blayout={tile.blayout}, slayout={tile.slayout} in vec"
            raise PtoTypeMismatchError(message, help="load it row-major, and move it with `pto.tmov`")
        if plain(tile.element) == "i64" and tile.pad > 1:
            message = f"A5 tload fills i64 with zeros or nothing, `%{op.outs[0].name}` has pad={tile.pad}"
            raise PtoTypeMismatchError(message, help="write pad=1 (zero) or pad=0 in its type")
        return
    if tile.space not in (Space.VEC, Space.MAT):
        message = f"A2/A3 tload fills a tile in vec or mat, `%{op.outs[0].name}` is in {tile.space.loc}"
        raise PtoOperandError(message, help="load it into mat, and move it with `pto.tmov`")


def comparable(op: Op, constants: Constants) -> None:
    """Refuse a comparison of tiles that are not alike, or into something else than bits."""
    a, b, target = op.ins[0].of(TileBuf), op.ins[1].of(TileBuf), op.outs[0].of(TileBuf)
    for value in (*op.ins[:2], op.outs[0]) if constants.arch == A3 else ():
        lies_in(op, value, Space.VEC)
    if constants.arch == A3:
        valid_alike(op, op.ins[0], op.ins[1])
    if constants.arch == A3 and None not in (a.valid_rows, target.valid_rows) and a.valid_rows != target.valid_rows:
        message = f"A2/A3 {short(op)}: the result has as many valid rows, got {a.valid_rows} and {target.valid_rows}"
        raise PtoValidShapeError(message, help=f"write v_row={a.valid_rows} in its type")
    if constants.arch == A5 and not (a.rows, a.cols) == (b.rows, b.cols) == (target.rows, target.cols):
        shapes = ", ".join(f"{tile.rows}x{tile.cols}" for tile in (a, b, target))
        raise PtoTypeMismatchError(f"A5 {short(op)}: shapes must be equal, got {shapes}", help="make them equal")
    if plain(target.element) != "i8":
        message = f"{short(op)} makes bits in bytes, `%{op.outs[0].name}` holds {target.element}"
        raise PtoTypeMismatchError(message, help="make it ui8")


def partly(op: Op, constants: Constants) -> None:
    """Refuse sources of which more is valid than of the result, or less than that of both."""
    target, count = op.outs[0].of(TileBuf), len(op.ins) // (2 if "arg" in op.name else 1)
    wanted = target.valid_rows, target.valid_cols
    sources = [(value, (value.of(TileBuf).valid_rows, value.of(TileBuf).valid_cols)) for value in op.ins[:count]]
    for value, extents in sources:
        pairs = zip(extents, wanted, strict=True)
        if any(have is not None and most is not None and have > most for have, most in pairs):
            shapes = f"{show(extents[0])}x{show(extents[1])} of `%{value.name}` and {show(wanted[0])}x{show(wanted[1])}"
            message = f"{short(op)}: the result is valid where its sources are, got {shapes}"
            raise PtoValidShapeError(message, help="make more of the result valid")
    for value, index in zip((*op.ins[:count], op.outs[0]), (*op.ins[count:], *op.outs[1:]), strict=False):
        holds(op, index, "i32")
        shaped_alike(op, index, value)
        valid_alike(op, index, value)
    needs_one = constants.arch == A3 or "arg" in op.name
    if needs_one and None not in wanted and all(None not in each and each != wanted for _, each in sources):
        message = f"{CALLED[constants.arch]} {short(op)}: one source must be valid where the result is"
        raise PtoValidShapeError(message, help=f"make {wanted[0]}x{wanted[1]} of one valid")


def counted(op: Op, _: Constants) -> None:
    """Refuse a row of numbers that no machine counts."""
    tile, start = op.outs[0].of(TileBuf), op.ins[0].of(Scalar)
    if plain(tile.element) not in ("i16", "i32"):
        message = f"tci takes i16 i32, `%{op.outs[0].name}` holds {tile.element}"
        raise PtoTypeMismatchError(message, help="count in i32, and convert with `pto.tcvt`")
    if start != tile.element:
        message = f"tci starts at {tile.element}, `%{op.ins[0].name}` is {start}"
        raise PtoTypeMismatchError(message, help=f"make it {tile.element}")
    if tile.cols == 1:
        raise PtoTypeMismatchError("tci fills a row of more than one element", help="use `pto.texpands`")


# registers


def rectifiable(op: Op, _: Constants) -> None:
    """Refuse lanes that no machine rectifies."""
    element = op.results[0].of(VReg).element.name
    if element not in ("i32", "si32", "f16", "f32"):
        message = f"vrelu takes i32 si32 f16 f32, `%{op.operands[0].name}` holds {element}"
        raise PtoTypeMismatchError(message, help="convert it with `pto.vcvt`")


def keeps_pointer(op: Op, _: Constants) -> None:
    """Refuse an updated pointer of another type than its base."""
    base = next(value for value in op.operands if isinstance(value.type, Ptr))
    for value in op.results:
        if isinstance(value.type, Ptr) and value.type != base.type:
            message = f"{short(op)}: the updated pointer is {base.type}, as `%{base.name}` is, got {value.type}"
            raise PtoTypeMismatchError(message, help=f"write {base.type} for it")
    strides = [value for value in op.operands if isinstance(value.type, Scalar)]
    wide = next((value for value in strides if value.type != Scalar("i16")), None) if op.name == "pto.vsstb" else None
    if wide is not None:
        raise PtoTypeMismatchError(f"vsstb: strides are i16, `%{wide.name}` is {wide.type}", help="truncate it to i16")


_PAIRS = """
f32: f16 RSP, bf16 RSP, s16 RSP, s64 RSP, s32 RS
f16: f32 P, s32 RP, s16 RS, s8 RSP, u8 RSP
bf16: f16 RS, f32 P, s32 RSP
u8: f16 P, u16 P, u32 P
s8: f16 P, s16 P, s32 P
u16: u8 SP, u32 P
s16: f16 R, f32 P, u32 P, s32 P, u8 SP
u32: u8 SP, u16 SP, s16 SP
s32: f32 R, u8 SP, u16 SP, s16 SP, s64 P
s64: f32 RP, s32 SP
"""
PAIRS = {
    (source, target): needed
    for line in _PAIRS.strip().splitlines()
    for source, _, rest in [line.partition(": ")]
    for target, _, needed in [pair.partition(" ") for pair in rest.split(", ")]
}
"""What a conversion of lanes must say, by its types: how it rounds (R), whether it saturates (S), which part (P)."""
_SAID = {"R": "rnd", "S": "sat", "P": "part"}
_ALIASES = {"rnd": "round_mode"}
_PREFIXES = {"rnd": "ROUND_", "part": "PART_"}


def _signed(element: Scalar) -> str:
    """Return an integer as `s` or `u` with its width; signless ones have a sign."""
    return f"{'u' if element.name[0] == 'u' else 's'}{element.bits}" if element.is_integer else element.name


def paired(op: Op, _: Constants) -> None:
    """Refuse a conversion of lanes that no machine has, and one that says too little or too much."""
    source, target = op.operands[0].of(VReg).element, op.results[0].of(VReg).element
    needed = PAIRS.get((_signed(source), _signed(target)))
    if needed is None:
        ways = [b for a, b in PAIRS if a == _signed(source)]
        raise PtoTypeMismatchError(
            f"vcvt cannot go from {source} to {target}", help=f"from {source} it goes to {', '.join(ways) or 'nothing'}"
        )
    _refuse_tokens(op, source, target)
    said = [letter for letter, name in _SAID.items() if {name, _ALIASES.get(name)} & op.attributes.keys()]
    for letter, name in _SAID.items():
        if (letter in needed) != (letter in said):
            verb = "needs" if letter in needed else "takes no"
            raise PtoAttributeError(f"vcvt from {source} to {target} {verb} `{name}`", help=_attributes(needed))


_TOKENS = {"rnd": "RAFCZO", "sat": ("SAT", "NOSAT", "RS_ENABLE", "RS_DISABLE")}


def _refuse_tokens(op: Op, source: Scalar, target: Scalar) -> None:
    """Refuse words that say nothing to a conversion of lanes, and a mask of other lanes than its source's."""
    parts = (
        ("EVEN", "ODD") if 2 in (source.bits // target.bits, target.bits // source.bits) else ("P0", "P1", "P2", "P3")
    )
    for name, allowed in (*_TOKENS.items(), ("part", parts)):
        given = op.attributes.get(name, op.attributes.get(_ALIASES.get(name, name)))
        words = [word for each in allowed for word in (each, f"{_PREFIXES.get(name, '')}{each}")]
        if given is not None and word_of(given).upper() not in words:
            message = f"vcvt from {source} to {target}: `{name}` is {word_of(given)}"
            raise PtoAttributeError(message, help=f"one of {', '.join(allowed)}")
    mask = next((value for value in op.operands[1:] if isinstance(value.type, Mask)), None)
    wanted = min(source.bits, 32)
    if mask is not None and mask.of(Mask).bits != wanted:
        message = f"vcvt from {source} takes !pto.mask<b{wanted}>, `%{mask.name}` is {mask.type}"
        raise PtoTypeMismatchError(message, help="make the mask with the width of the lanes that are read")


def _attributes(needed: str) -> str:
    return f"it has {', '.join(_SAID[letter] for letter in needed)}" if needed else "it has no attributes"
