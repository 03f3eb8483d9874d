"""Paths: laws of moves between the memories of a core, on A2/A3 and on A5."""

from __future__ import annotations

from tilewright.pto.elements import A3, A5, CALLED, LEAVING
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError
from tilewright.pto.module import Constants, Op, Value, word_of
from tilewright.pto.tile_laws import NZ, ROWS, laid_out_as, plain, short
from tilewright.pto.types import INDEX, Scalar, Space, TileBuf


def _layout(tile: TileBuf) -> tuple[str, str]:
    return tile.blayout, tile.slayout


_MOVES = {
    Space.MAT: (Space.LEFT, Space.RIGHT, Space.BIAS, Space.SCALING),
    Space.VEC: (Space.VEC,),
    Space.ACC: (Space.MAT, Space.VEC),
}


_INTO_BOXES = ("pto.textract_fp", "pto.tinsert_fp")


def _refuse_move(op: Op, source: TileBuf, target: TileBuf, wanted: str) -> None:
    places = f"{source.space.loc} to {target.space.loc}"
    raise PtoOperandError(f"{short(op)}: nothing goes from {places}", help=wanted)


def moved(op: Op, constants: Constants) -> None:
    """Refuse a move that no path between memories does."""
    (source, *factors), target, arch = op.ins, op.outs[0].of(TileBuf), constants.arch
    tile = source.of(TileBuf)
    allowed = (*_MOVES.get(tile.space, ()), *((Space.MAT,) if arch == A5 and tile.space is Space.VEC else ()))
    if target.space not in allowed:
        names = ", ".join(space.loc for space in allowed)
        _refuse_move(op, tile, target, f"from {tile.space.loc} it goes to {names or 'nothing'}")
    is_whole = op.name in ("pto.tmov", "pto.tmov.fp")
    if is_whole and (tile.space is Space.MAT or arch == A3) and (tile.rows, tile.cols) != (target.rows, target.cols):
        shapes = f"{tile.rows}x{tile.cols} and {target.rows}x{target.cols}"
        message = f"{CALLED[arch]} {short(op)}: shapes must be equal, got {shapes}"
        raise PtoTypeMismatchError(message, help="move a part with `pto.textract`")
    relu = word_of(op.attributes.get("reluPreMode", "no_relu")).lower()
    is_plain = relu in ("no_relu", "norelu")
    if tile.space is not Space.ACC and (factors or not is_plain):
        message = f"{short(op)}: only an accumulator is scaled or rectified on its way"
        raise PtoOperandError(message, help="compute with `pto.tmuls` or `pto.trelu` before")
    if "accToVecMode" in op.attributes and (tile.space, target.space) != (Space.ACC, Space.VEC):
        message = f"{short(op)}: `accToVecMode` is for acc to vec"
        raise PtoAttributeError(message, help="leave it out")
    scales = [each for each in factors if isinstance(each.type, TileBuf)]
    mode = word_of(op.attributes.get("accToVecMode", "")).lower()
    if factors and mode.startswith("dual"):
        message = f"{short(op)}: halves for both vector cores ({mode}) are not scaled on their way"
        raise PtoAttributeError(
            message, help="leave the scale out, or move to each core with single_mode_vec0 and _vec1"
        )
    if arch == A3 and (tile.space, target.space) == (Space.ACC, Space.MAT):
        _refuse_fractal(op, target)
    if op.name in _INTO_BOXES or (op.name == "pto.tmov.fp" and target.space is Space.MAT and arch == A3):
        laid_out_as(op, op.outs[0], NZ)
    if scales or (tile.space is Space.ACC and not is_plain):
        _refuse_scales(op, tile, target, scales[:1], arch)


def _refuse_fractal(op: Op, target: TileBuf) -> None:
    """Refuse an accumulator's way into boxes of another size."""
    if target.fractal != 512:
        message = f"{CALLED[A3]} {short(op)}: boxes in mat have 512 bytes, `%{op.outs[0].name}` has {target.fractal}"
        raise PtoTypeMismatchError(message, help="write fractal=512 in its type")


def _refuse_scales(op: Op, source: TileBuf, target: TileBuf, scales: list[Value], arch: str) -> None:
    if _layout(source) != NZ:
        message = f"{short(op)}: an accumulator has blayout=col_major, slayout=row_major"
        raise PtoTypeMismatchError(message, help="write both in its type")
    for each in scales:
        if each.of(TileBuf).space is not Space.SCALING:
            found = each.of(TileBuf).space.loc
            raise PtoOperandError(f"{short(op)}: scales lie in scaling, `%{each.name}` is in {found}", help="move them")
        made, allowed = plain(target.element), LEAVING["tmov.fp"].on(arch).get(plain(source.element), ())
        if made not in allowed:
            ways = f"{CALLED[arch]} {short(op)} brings {source.element} to {' '.join(allowed) or 'nothing'}"
            raise PtoTypeMismatchError(f"{ways}, got {target.element}", help="choose one of these for the result")


def extracted(op: Op, constants: Constants) -> None:
    """Refuse a part of a tile that leaves it, or that no machine takes out."""
    source, target, arch = op.ins[0].of(TileBuf), op.outs[0].of(TileBuf), constants.arch
    _refuse_outside(op, constants, (target.rows, target.cols), (source.rows, source.cols))
    if source.element != target.element:
        message = f"{short(op)}: elements must be equal, got {source.element} and {target.element}"
        raise PtoTypeMismatchError(message, help="convert with `pto.tcvt`")
    ways = {Space.VEC: (Space.VEC, *((Space.MAT,) if arch == A5 else ()))}
    ways[Space.MAT] = (Space.LEFT, Space.RIGHT, *((Space.SCALING,) if arch == A5 else ()))
    if target.space not in ways.get(source.space, ()):
        _refuse_move(op, source, target, "it takes parts of vec for vec, and of mat for left and right")
    _refuse_counts(op)
    if arch == A3 and source.space is Space.MAT:
        _refuse_turned(op, source)
    outer = "col_major" if arch == A5 else "row_major"
    layouts = {Space.LEFT: (outer, "row_major"), Space.RIGHT: ("row_major", "col_major")}
    if target.space in layouts:
        laid_out_as(op, op.outs[0], layouts[target.space])
    if arch == A5 and source.space is target.space is Space.VEC:
        for value in (op.ins[0], op.outs[0]):
            laid_out_as(op, value, ROWS)


def _refuse_counts(op: Op) -> None:
    """Refuse places that are not counted in index."""
    for value in op.ins[1:3]:
        if isinstance(value.type, Scalar) and value.type != INDEX:
            message = f"{short(op)}: rows and columns are counted in index, `%{value.name}` is {value.type}"
            raise PtoTypeMismatchError(message, help="cast it with `arith.index_cast`")


def _refuse_turned(op: Op, source: TileBuf) -> None:
    """Refuse what A2/A3 takes no parts of: columns, but for those of boxes of rows."""
    if source.blayout != "row_major" and _layout(source) != NZ:
        found = f"blayout={source.blayout}, slayout={source.slayout}"
        message = f"{CALLED[A3]} {short(op)} takes no part of a tile in mat with {found}"
        raise PtoTypeMismatchError(message, help="write blayout=row_major, or slayout=row_major, in its type")


def _refuse_outside(op: Op, constants: Constants, part: tuple[int, ...], whole: tuple[int, ...]) -> None:
    for noun, value, extent, most in zip(("row", "column"), op.ins[1:], part, whole, strict=False):
        first = constants.get(value)
        if first is not None and (first < 0 or first + extent > most):
            message = f"{short(op)}: {noun}s {first} to {first + extent} do not lie in {most}"
            raise PtoOperandError(message, help=f"the first {noun} is 0 to {most - extent}")


def inserted(op: Op, constants: Constants) -> None:
    """Refuse a tile that leaves the one it is put into, or that no machine puts there."""
    source, target, arch = op.ins[0].of(TileBuf), op.outs[0].of(TileBuf), constants.arch
    held = source.valid_rows or 0, source.valid_cols or 0
    _refuse_outside(op, constants, held, (target.rows, target.cols))
    _refuse_counts(op)
    come, go = plain(source.element), plain(target.element)
    ways = {Space.ACC: (Space.MAT,), Space.VEC: (Space.VEC, *((Space.MAT,) if arch == A5 else ()))}
    if target.space not in ways.get(source.space, ()):
        _refuse_move(op, source, target, "it puts acc into mat, and vec into vec")
    allowed = LEAVING["tinsert"].on(arch).get(come, ()) if source.space is Space.ACC else (come,)
    if go not in allowed:
        message = f"{CALLED[arch]} {short(op)} puts {come} of {source.space.loc} into {' '.join(allowed) or 'nothing'}"
        raise PtoTypeMismatchError(f"{message}, got {go}", help="convert with `pto.tcvt`")
    if source.space is Space.ACC:
        for value in (op.ins[0], op.outs[0]):
            laid_out_as(op, value, NZ)
        if arch == A3:
            _refuse_fractal(op, target)
    elif target.space is Space.MAT:
        laid_out_as(op, op.ins[0], ROWS, NZ)
        laid_out_as(op, op.outs[0], NZ)
    elif arch == A5:
        for value in (op.ins[0], op.outs[0]):
            laid_out_as(op, value, ROWS)
