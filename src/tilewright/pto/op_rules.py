"""Op rules: what the text alone decides about one op, beyond how many operands it has.

Kinds and shared element types come from the op's form (see `operand_rules`); what only some ops ask stands in a table
of rules here. A rule raises without a place: the verifier knows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright.errors import (
    PtoAttributeError,
    PtoOperandError,
    PtoTypeMismatchError,
    PtoValidShapeError,
)
from tilewright.pto.module import Enumerated, Op
from tilewright.pto.text.form import Form
from tilewright.pto.text.standard_forms import INTEGER_CASTS
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import I1, INDEX, Mask, Ptr, Scalar, Space, TensorView, TileBuf, Type, VReg

Rule: TypeAlias = Callable[[Op], None]

PIPES = frozenset(
    f"PIPE_{word}" for word in (*"SVM", "MTE1", "MTE2", "MTE3", "MTE4", "MTE5", "ALL", "V2", "FIX", "UNASSIGNED")
) | {"VIRTUAL_PIPE_MTE2_L1A", "VIRTUAL_PIPE_MTE2_L1B"}
EVENTS = frozenset(f"EVENT_ID{i}" for i in range(8))
_WORDS = {"pipe": PIPES, "event": EVENTS}
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"),
    "true",
)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def refuse_slots(op: Op, form: Form) -> None:
    """Raise where a static token is no word of its enumeration."""
    for slot in form.slots:
        value = op.attributes.get(slot.name)
        known = _WORDS.get(slot.family)
        if known is None or value is None:
            continue
        if not isinstance(value, Enumerated) or value.word not in known:
            word = value.word if isinstance(value, Enumerated) else str(value)
            raise PtoAttributeError(f"`{word}` is no {slot.family}", help=nearest(word, known))


def refuse_reach(op: Op) -> None:
    """Raise where a pointwise op would read beyond a source to fill its output."""
    target = op.outs[0].type
    assert isinstance(target, TileBuf)
    for value in op.ins:
        source = value.type
        if not isinstance(source, TileBuf):
            continue
        if (target.valid_rows or 0) > source.rows or (target.valid_cols or 0) > source.cols:
            reach = f"{target.valid_rows or '?'}x{target.valid_cols or '?'}"
            message = f"`{op.name}` fills {reach} elements, `%{value.name}` holds {source.rows}x{source.cols}"
            raise PtoValidShapeError(message, help="make the source as large as the output's valid region")


def _alloc(op: Op) -> None:
    tile = op.results[0].type
    assert isinstance(tile, TileBuf)
    for word, key, extent in (("valid_row", "v_row", tile.valid_rows), ("valid_col", "v_col", tile.valid_cols)):
        given = op.clause(word) is not None
        if extent is None and not given:
            raise PtoValidShapeError(f"`{key}` is `?`: `pto.alloc_tile` needs `{word}`", help=f"add `{word} = %n`")
        if extent is not None and given:
            message = f"`{key}` is {extent}: `pto.alloc_tile` takes no `{word}`"
            raise PtoValidShapeError(message, help=f"write `{key}=?`, or drop `{word}`")


def _cast(op: Op) -> None:
    source, target = op.operands[0].type, op.results[0].type
    if isinstance(source, Ptr) and isinstance(target, Ptr) and source.space is not target.space:
        raise PtoTypeMismatchError(
            f"`pto.castptr` keeps the memory space, got {source} to {target}", help="copy between spaces instead"
        )
    for type in (source, target):
        if isinstance(type, Scalar) and type.name not in ("i64", "ui64", "si64", "index"):
            raise PtoTypeMismatchError(f"an address is i64, not {type}", help="widen it with `arith.extui` first")
    if isinstance(source, Scalar) and isinstance(target, Scalar):
        raise PtoTypeMismatchError("`pto.castptr` needs a pointer on one side", help="use `arith.index_cast`")


def _same_type(op: Op) -> None:
    _equal(op, "result", op.results[0].type, op.operands[0].type)


def _equal(op: Op, what: str, found: Type, expected: Type) -> None:
    if found != expected:
        raise PtoTypeMismatchError(f"the {what} of `{op.name}` is {brief_text(expected)}, got {brief_text(found)}")


def _load(op: Op) -> None:
    pointer = op.operands[0].type
    assert isinstance(pointer, Ptr)
    _equal(op, "result", op.results[0].type, pointer.element)


def _store(op: Op) -> None:
    value, pointer = op.operands[0].type, op.operands[1].type
    assert isinstance(pointer, Ptr)
    _equal(op, "value", value, pointer.element)


def _element_of(type: Type) -> Scalar:
    assert isinstance(type, TensorView | TileBuf | Ptr | VReg)
    return type.element


def _make_view(op: Op) -> None:
    view = op.results[0].type
    assert isinstance(view, TensorView)
    shape, strides = op.clause("shape") or (), op.clause("strides") or ()
    if len(shape) != len(strides):
        raise PtoOperandError(f"{len(shape)} extents in `shape` but {len(strides)} in `strides`")
    is_rank = len(view.shape) == 1 and view.shape[0] == len(shape)  # old text counts dims instead of listing them
    if len(shape) != len(view.shape) and not is_rank:
        raise PtoOperandError(f"{len(shape)} extents in `shape` but {len(view.shape)} in {view}")
    _equal(op, "element type", view.element, _element_of(op.operands[0].type))


def _partition(op: Op) -> None:
    view, part = op.operands[0].type, op.results[0].type
    assert isinstance(view, TensorView) and isinstance(part, TensorView)
    offsets, sizes = op.clause("offsets") or (), op.clause("sizes") or ()
    if len(offsets) != len(sizes):
        raise PtoOperandError(f"{len(offsets)} offsets but {len(sizes)} sizes")
    is_rank = len(view.shape) == 1 and view.shape[0] == len(sizes)
    if len(sizes) != len(view.shape) and not is_rank:
        raise PtoOperandError(f"{len(sizes)} sizes for {view}", help="give one for each of its extents")
    is_rank = len(part.shape) == 1 and part.shape[0] == len(sizes)
    if len(sizes) != len(part.shape) and not is_rank:
        raise PtoOperandError(f"{len(sizes)} sizes make no {part}", help="the result has one extent for each size")
    _equal(op, "element type", part.element, view.element)


def _window(op: Op) -> None:
    tile, window = op.operands[0].type, op.results[0].type
    assert isinstance(tile, TileBuf) and isinstance(window, TileBuf)
    sizes = op.attributes["sizes"]
    if not isinstance(sizes, tuple) or len(sizes) != 2 or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise PtoAttributeError(f"`sizes` of `{op.name}` are two positive numbers")
    rows, cols = sizes
    assert isinstance(rows, int) and isinstance(cols, int)
    if rows > tile.rows or cols > tile.cols:
        raise PtoValidShapeError(f"a window of {rows}x{cols} does not fit in {tile.rows}x{tile.cols}")
    _equal(op, "element type", window.element, tile.element)
    _equal_space(op, window.space, tile.space)


def _equal_space(op: Op, found: Space, expected: Space) -> None:
    if found is not expected:
        raise PtoTypeMismatchError(f"the result of `{op.name}` stays in {expected.loc}, got {found.loc}")


def _reshape(op: Op) -> None:
    tile, other = op.operands[0].type, op.results[0].type
    assert isinstance(tile, TileBuf) and isinstance(other, TileBuf)
    _equal_space(op, other.space, tile.space)
    if _bits(tile) != _bits(other):
        raise PtoTypeMismatchError(f"`{op.name}` keeps the bytes, got {_bits(tile) // 8} and {_bits(other) // 8}")


def _bits(tile: TileBuf) -> int:
    return tile.rows * tile.cols * tile.element.bits


def _address(op: Op) -> None:
    tile, pointer = op.operands[0].type, op.results[0].type
    assert isinstance(tile, TileBuf) and isinstance(pointer, Ptr)
    _equal(op, "result", pointer, Ptr(tile.element, tile.space))


def _set_valid(op: Op) -> None:
    tile = op.operands[0].type
    assert isinstance(tile, TileBuf)
    if tile.valid_rows is not None or tile.valid_cols is not None:
        raise PtoValidShapeError("`pto.set_validshape` needs a tile whose valid region is `?x?`")


def _transfer(op: Op) -> None:
    """Refuse a load or store between elements of different widths; an accumulator converts as it is stored."""
    source, target = op.ins[0].type, op.outs[0].type
    if isinstance(source, TileBuf) and source.space is Space.ACC:
        return
    a, b = _element_of(source), _element_of(target)
    if a.bits != b.bits:
        raise PtoTypeMismatchError(f"`{op.name}` moves {a} to {b}", help="convert with `pto.tcvt`")


def _matmul(op: Op) -> None:
    a, b = (op.ins[1:] if op.name.endswith(".acc") else op.ins)[:2]
    lhs, rhs, out = a.type, b.type, op.outs[0].type
    assert isinstance(lhs, TileBuf) and isinstance(rhs, TileBuf) and isinstance(out, TileBuf)
    if lhs.valid_cols is not None and lhs.valid_cols > rhs.rows:
        raise PtoValidShapeError(f"`%{a.name}` has {lhs.valid_cols} columns, `%{b.name}` {rhs.rows} rows")
    if (lhs.valid_rows or 0) > out.rows or (rhs.valid_cols or 0) > out.cols:
        product = f"{lhs.valid_rows or '?'}x{rhs.valid_cols or '?'}"
        raise PtoValidShapeError(f"the product is {product}, `%{op.outs[0].name}` holds {out.rows}x{out.cols}")


def _get_value(op: Op) -> None:
    _equal(op, "result", op.results[0].type, _element_of(op.ins[0].type))


def _predicate(known: Sequence[str]) -> Rule:
    def rule(op: Op) -> None:
        word = op.attributes["predicate"]
        if word not in known:
            raise PtoAttributeError(f"`{word}` is no comparison", help=nearest(str(word), known))

    return rule


def _choices(op: Op) -> None:
    """Refuse a selection between values of two types."""
    _equal(op, "second choice", op.operands[2].type, op.operands[1].type)
    _equal(op, "result", op.results[0].type, op.operands[1].type)


def _convert(op: Op) -> None:
    source, target = op.operands[0].type, op.results[0].type
    assert isinstance(source, Scalar) and isinstance(target, Scalar)
    name = op.name.removeprefix("arith.")
    if name.startswith("index_cast") and (source == INDEX) == (target == INDEX):
        raise PtoTypeMismatchError(f"`{op.name}` goes to or from index, got {source} to {target}")
    if not name.startswith("index_cast") and INDEX in (source, target):
        raise PtoTypeMismatchError(f"`{op.name}` takes no index", help="use `arith.index_cast`")
    a, b = (1 if type == I1 else type.bits for type in (source, target))
    if (name.startswith("ext") and a >= b) or (name.startswith("trunc") and a <= b) or (name == "bitcast" and a != b):
        raise PtoTypeMismatchError(f"`{op.name}` cannot go from {source} to {target}")


def _masks_of(width: int) -> Rule:
    def rule(op: Op) -> None:
        for value in (*op.operands, *op.results):
            if isinstance(value.type, Mask) and value.type.bits != width:
                raise PtoTypeMismatchError(f"`{op.name}` works on !pto.mask<b{width}>, got {value.type}")

    return rule


def _rest(op: Op) -> None:
    width = int(op.name.rpartition("b")[2])
    _masks_of(width)(op)
    _equal(op, "second result", op.results[1].type, op.operands[0].type)


_WIDTHS = (8, 16, 32)
RULES: dict[str, Rule] = {
    "pto.alloc_tile": _alloc,
    "pto.castptr": _cast,
    "pto.addptr": _same_type,
    "pto.load": _load,
    "pto.load_scalar": _load,
    "pto.store": _store,
    "pto.store_scalar": _store,
    "pto.make_tensor_view": _make_view,
    "pto.partition_view": _partition,
    "pto.subview": _window,
    "pto.subset": _window,
    "pto.treshape": _reshape,
    "pto.tile_buf_addr": _address,
    "pto.set_validshape": _set_valid,
    "pto.tload": _transfer,
    "pto.tstore": _transfer,
    "pto.tgetval": _get_value,
    **{f"pto.{name}{form}": _matmul for name in ("tmatmul", "tgemv") for form in ("", ".acc", ".bias")},
    "arith.cmpi": _predicate(INTEGER_PREDICATES),
    "arith.cmpf": _predicate(FLOAT_PREDICATES),
    "pto.vcmp": _predicate(COMPARISONS),
    "pto.vcmps": _predicate(COMPARISONS),
    "arith.select": _choices,
    **{
        f"arith.{name}": _convert for name in (*INTEGER_CASTS, "extf", "truncf", "sitofp", "uitofp", "fptosi", "fptoui")
    },
    "arith.bitcast": _convert,
    **{f"pto.{name}_b{width}": _masks_of(width) for name in ("pset", "pge", "pintlv", "pdintlv") for width in _WIDTHS},
    **{f"pto.plt_b{width}": _rest for width in _WIDTHS},
}
"""What one op asks beyond its form."""
