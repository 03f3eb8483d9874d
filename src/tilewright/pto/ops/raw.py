"""Raw machine ops: loads, products and registers as the machine's instructions have them, several numbers in a word.

Words that say how large something is are constants here. What nothing here reads is not run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.core.expr import Expr, constant
from tilewright.dtypes import FP32, INT64
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.example import Example
from tilewright.pto.examples.cube import CONTROL, RAW, UNALIGNED
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.matrices import BLOCK, FRACTAL, extents
from tilewright.pto.machine.pairs import reinterpreted
from tilewright.pto.machine.settings import ATOMIC_AT, bits, note, setters, setting
from tilewright.pto.machine.tiles import moved
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import declare, element_type, unmeant, within
from tilewright.pto.ops.accumulator_stores import Leaving, row_at, word, words_at
from tilewright.pto.ops.cube import Layout, Product, multiplies, multiply, refuse_small, stage
from tilewright.pto.ops.cube_loads import load_fractals
from tilewright.pto.ops.fixpipe import Out, refuse_packed
from tilewright.pto.ops.quantizations import BY_NUMBER, Quantization, misfit, quantization
from tilewright.pto.ops.vector_memory import load
from tilewright.pto.text.form import Typing, free
from tilewright.pto.tile_laws import plain
from tilewright.pto.types import F32, I64, SCALARS, Scalar, Space, VReg

_L1, _L0A, _L0B, _L0C = Space.MAT, Space.LEFT, Space.RIGHT, Space.ACC
_FRACTAL_BYTES = FRACTAL * BLOCK


def _field(op: Op, value: Expr, first: int, last: int) -> int:
    """Return the bits of a word that must be known before the program runs."""
    found = known(value)
    if found is None:
        message = f"the words of `{op.name}` are constants here"
        raise UnsupportedFeatureError(message, help="compute them of constants")
    return found >> first & ((1 << (last - first + 1)) - 1)


# registers

_ATOMIC = {0: "", 1: "f32", 2: "f16", 3: "i16", 4: "i32", 5: "i8", 6: "bf16"}
"""What bits 6 to 8 of the control word say is combined in global memory; the next two say how."""
_COMBINED = ("add", "max", "min")
_WORDS = "set_quant_pre set_fpc set_fix_clip_relu set_channel_para set_mte2_nz_para set_ctrl"


@declare(setters(f"pto.{_WORDS}"), free("i"), counts=I64)
def _set(m: Machine, op: Op, value: Expr) -> None:
    """A word that the ops behind it read."""
    note(m, op.name.removeprefix("pto."), m.b.cast(value, INT64))


@declare(setters("pto.set_relu_alpha"), free("s"))
def _set_slope(m: Machine, op: Op, value: Expr) -> None:
    """What negative elements are multiplied with as they leave an accumulator: an f32, or its bits."""
    type_ = op.operands[0].of(Scalar)
    number = reinterpreted(m, op, m.b.cast(value, FP32), F32, SCALARS["i32"])[0] if type_.is_float else value
    note(m, "set_relu_alpha", m.b.cast(number, INT64))


@declare(setters("pto.set_loop3_para"), free("ii"), counts=I64)
def _set_repetition(m: Machine, op: Op, low: Expr, high: Expr) -> None:
    """How often a matrix leaves an accumulator, and how far apart on either side: 40 bits of a word, and the rest."""
    rest = m.b.scalar("shl", m.b.cast(high, INT64), constant(40, INT64))
    note(m, "set_loop3_para", m.b.scalar("bit_or", m.b.cast(low, INT64), rest))


_ADDED = """
pto.copy_gm_to_cbuf_multi_nd2nz %x, %x1, %n0, %n32, %n0, %n16, %n32, %n0, %no
pto.load_cbuf_to_ca_s4 %x1, %a, %n0, %n0, %n1, %n1, %n1, %n1, %n0
pto.load_cbuf_to_cb_s4 %x1, %b, %n0, %n0, %n1, %n1, %n1, %n1, %n0
%fresh = arith.constant {word} : i64
pto.mad_raw %a, %b, %c, %fresh
pto.set_quant_pre %n1065353216
{{op}}
pto.copy_matrix_cc_to_gm %c, %out, %n{size}, %n{way}
"""


def _sum(op: str, x: Any, out: Any) -> Any:
    return out + x.astype("i4") @ x.astype("i4").T


def _added(element: str, mode: int) -> Example:
    """Return a kernel that adds a product of bytes to what is in global memory."""
    word, size = (16 | 32 << 12 | 16 << 24) - (1 << 63), 16 << 4 | 16 << 16 | 16 << 32
    lines = _ADDED.format(word=word, size=size, way=16 | mode << 34 | 1 << 43)
    para = f"pto.set_mte2_nz_para %n{1 | 1 << 16 | 16 << 32}"
    return Example(
        f"x: i8 16x32 in -1..1, out: {element} 16x16 in -9..9",
        f"{para}\n{lines}",
        _sum,
        "x1: i8 l1 0, a: i8 l0a 0, b: i8 l0b 0, c: i32 l0c 0",
    )


_ADDITIONS = {"set_atomic_s32": _added("i32", 0), "set_atomic_s8": _added("i8", 9)}


@declare(setters("pto.set_atomic_s32 set_atomic_s8"), free(""), example=_ADDITIONS)
def _set_atomic(m: Machine, op: Op) -> None:
    """Let what accumulators bring to global memory be added to integers of 32 or 8 bits there, until `set_ctrl`."""
    (control,) = setting(m, "set_ctrl")
    kept = m.b.scalar("bit_and", m.b.cast(control, INT64), constant(~(0x1F << ATOMIC_AT), INT64))
    element = f"i{op.name.rpartition('_s')[2]}"
    kind = next(number for number, name in _ATOMIC.items() if name == element)
    note(m, "set_ctrl", m.b.scalar("bit_or", kept, constant(kind << ATOMIC_AT, INT64)))


@declare("pto.get_ctrl", free("", "i", typing=Typing.RESULT, phrase=": i64"), example=CONTROL)
def _get_control(m: Machine, op: Op) -> Expr:
    """The word that controls how the machine computes."""
    return m.b.cast(setting(m, "set_ctrl")[0], op.results[0].of(Scalar).dtype)


@declare("pto.sbitset0 sbitset1", free("ii", "i", phrase="%value, %bit : # -> i64"), counts=I64)
def _set_bit(m: Machine, op: Op, value: Expr, which: Expr) -> Expr:
    """A number with one bit clear, or set."""
    dtype = op.results[0].of(Scalar).dtype
    bit = m.b.scalar("shl", constant(1, dtype), m.b.cast(which, dtype))
    if op.name.endswith("1"):
        return m.b.scalar("bit_or", value, bit)
    return m.b.scalar("bit_and", value, m.b.scalar("bit_xor", bit, constant(-1, dtype)))


@declare("pto.uvld", free("pi", "u", phrase="%ptr'['%offset']' : #ptr"), example=UNALIGNED)
def _load_lanes(m: Machine, op: Op, pointer: Pointer, offset: Expr) -> Expr:
    """A register of elements from anywhere on."""
    lanes = op.results[0].of(VReg).lanes
    return load(m, moved(m, pointer, m.b.index(offset)), (1, lanes), (lanes, 1))


# staging and products


@declare("pto.copy_gm_to_cbuf_multi_nd2nz", free("ppiiiiiii"), rule=within(Space.GM, _L1), is_by_bytes=True, counts=I64)
@declare("pto.copy_gm_to_cbuf_multi_dn2nz", free("ppiiiiiii"), rule=within(Space.GM, _L1), is_by_bytes=True, counts=I64)
def _stage(m: Machine, op: Op, source: Pointer, target: Pointer, *numbers: Expr) -> None:
    """Matrices of global memory, by rows or by columns, into blocks of columns that `set_mte2_nz_para` lays out."""
    _, inner, _, rows, cols, outer = map(m.b.index, numbers[:6])
    refuse_small(op, numbers[6])
    groups, down, across, apart = (bits(m, setting(m, "set_mte2_nz_para")[0], 16 * i, 16) for i in range(4))
    size = m.b.index(source.element.nbytes)
    come = (outer, inner, size) if op.name.endswith("nd2nz") else (outer, size, inner)
    stage(m, source, target, Layout(groups, rows, cols, come, (apart, down, across)))


@declare("pto.load_cbuf_to_ca_s4", free("ppiiiiiii"), rule=within(_L1, _L0A), is_by_bytes=True, counts=I64)
@declare("pto.load_cbuf_to_cb_s4", free("ppiiiiiii"), rule=within(_L1, _L0B), is_by_bytes=True, counts=I64)
def _load_halves(m: Machine, op: Op, source: Pointer, target: Pointer, *numbers: Expr) -> None:
    """Fractals of elements of four bits, two in a byte, as they are: the last number, which would turn them, is 0."""
    if known(numbers[-1]) != 0:
        message = f"`{op.name}` turns no fractals of four bits here"
        raise UnsupportedFeatureError(message, help="pass 0, and stage the matrix by its columns with `dn2nz`")
    _load(m, op, source, target, *numbers[:-1])


_LOADED = free(
    "ppiiiiii", phrase="%src, %dst, %m_start, %k_start, %m_step, %k_step, %src_stride, %dst_stride {transpose} : #"
)


@declare("pto.load_cbuf_to_ca", _LOADED, rule=within(_L1, _L0A), is_by_bytes=True, counts=I64)
@declare("pto.load_cbuf_to_cb", _LOADED, rule=within(_L1, _L0B), is_by_bytes=True, counts=I64)
def _load(m: Machine, op: Op, source: Pointer, target: Pointer, *numbers: Expr) -> None:
    """Fractals from a row and column of them on, so many down and across; `transpose` turns each, and their places."""
    load_fractals(m, op, source, target, numbers)


@declare("pto.mad_raw", free("pppi"), rule=multiplies(_L0A, _L0B, _L0C), counts=I64, knows_packed=True, example=RAW)
@declare(
    "pto.mad_bias_raw",
    free("ppppi"),
    rule=multiplies(_L0A, _L0B, _L0C, Space.BIAS),
    counts=I64,
    knows_packed=True,
    example=RAW,
)
def _multiply(m: Machine, op: Op, a: Pointer, b: Pointer, c: Pointer, *rest: Pointer | Expr) -> None:
    """The product of two matrices, as a word says: from zero, from a bias, or from what the accumulator holds."""
    how, sizes = told_product(m, op, a, *rest)
    multiply(m, how, a, b, c, sizes)


def told_product(m: Machine, op: Op, a: Pointer, *rest: Pointer | Expr) -> tuple[Product, tuple[int, ...]]:
    """Return how a word says to multiply, and its rows, columns and depth."""
    *bias, told = rest
    assert isinstance(told, Expr)
    rows, depth, cols = (_field(op, told, first, first + 11) for first in (0, 12, 24))
    added = bias[0] if bias and isinstance(bias[0], Pointer) else None
    is_fresh, is_biased = _field(op, told, 63, 63), _field(op, told, 62, 62)
    (control,) = setting(m, "set_ctrl")
    tf32 = ("", "round_even", "", "round_away")[_field(op, control, 46, 47)] if a.element == F32 else ""
    how = Product(False, tf32, not is_fresh and not is_biased, added if is_biased else None)
    return how, extents(op, *map(m.b.index, (rows, cols, depth)))


# what leaves


@declare("pto.copy_matrix_cc_to_gm", free("ppii"), rule=within(_L0C, Space.GM), counts=I64, knows_packed=True)
@declare("pto.copy_matrix_cc_to_cbuf", free("ppii"), rule=within(_L0C, _L1), counts=I64, knows_packed=True)
@declare("pto.copy_matrix_cc_to_ub", free("ppii"), rule=within(_L0C, Space.VEC), counts=I64, knows_packed=True)
def _bring_out(m: Machine, op: Op, source: Pointer, target: Pointer, size: Expr, way: Expr) -> None:
    """A matrix of an accumulator, as two words and the registers say."""
    refuse_packed(op, target)
    cols, rows, stride = (_field(op, size, *span) for span in ((4, 15), (16, 31), (32, 63)))
    rows, cols = extents(op, *map(m.b.index, (rows, cols)))
    is_by_columns, is_by_rows = _field(op, way, 62, 62), _field(op, way, 43, 43)
    if not is_by_columns and not is_by_rows:
        message = f"`{op.name}` into blocks of columns cannot be run here"
        raise UnsupportedFeatureError(message, help="set bit 43 for rows, or 62 for columns")
    pitch, how = _field(op, way, 0, 15), _leaving(m, op, way, cols)
    combine = _combination(m, op, target)
    out = Out(source, target, rows, cols, m.b.index(pitch), m.b.index(stride), how, bool(is_by_columns), combine)
    if op.name.endswith("ub"):
        _to_vector_cores(m, op, out, way)
    else:
        _repeat(m, out)


def _repeat(m: Machine, out: Out) -> None:
    """Bring a matrix out as often as `set_loop3_para` says, once where nobody says it."""
    (told,) = setting(m, "set_loop3_para")
    count, come, go = bits(m, told, 0, 16), bits(m, told, 16, 16), bits(m, told, 32, 32)
    out.repeated(m, m.b.scalar("max", count, m.b.index(1)), come, go)


def _combination(m: Machine, op: Op, target: Pointer) -> str:
    """Return how the control word lets results meet what is in global memory, nothing where they replace it."""
    (control,) = setting(m, "set_ctrl")
    kind = _ATOMIC.get(_field(op, control, ATOMIC_AT, ATOMIC_AT + 2))
    if not kind or target.space is not Space.GM:
        return ""
    if plain(target.element) != kind:
        message = f"the control word combines {kind} in global memory, and `{op.name}` writes {target.element}"
        raise PtoTypeMismatchError(message, help=f"write {kind}, or clear bits 6 to 10 with `pto.set_ctrl`")
    return _COMBINED[min(_field(op, control, ATOMIC_AT + 3, ATOMIC_AT + 4), 2)]


def _to_vector_cores(m: Machine, op: Op, out: Out, way: Expr) -> None:
    split, which = _field(op, way, 16, 17), _field(op, way, 18, 18)
    if split == 0:
        _repeat(m, replace(out, target=m.memory.lane(out.target, m.b.index(which))))
        return
    out.halves(m, is_by_rows=split == 1)


def _quantization(op: Op, number: int) -> Quantization | None:
    """Return the way to scale of a number, None for zero; refuse one that is not for these elements."""
    if number == 0:
        return None
    come, go = (element_type(value.type) for value in op.operands[:2])
    way = quantization(BY_NUMBER[number].name if number in BY_NUMBER else str(number), come)
    if error := misfit(way, op, come, go):
        raise error
    return way


def _leaving(m: Machine, op: Op, way: Expr, cols: int) -> Leaving:
    """Return what a word and the registers do to elements."""
    (control,), (places,) = setting(m, "set_ctrl"), setting(m, "set_fpc")
    told = known(control) or 0
    how = Leaving(saturates=not told >> 48 & 1, keeps_nan=bool(told >> 50 & 1))
    mode = _quantization(op, _field(op, way, 34, 38) | _field(op, way, 29, 29) << 5)
    if mode is not None and not mode.is_plain and not mode.is_by_column:
        scale, offset = word(m, setting(m, "set_quant_pre")[0])
        how = replace(how, scale=scale, offset=offset)
    elif mode is not None and mode.is_by_column:
        start = m.memory.pointer(Space.SCALING, F32, m.b.mul(bits(m, places, 8, 8), 128))
        scale, offset = words_at(m, start, cols)
        how = replace(how, scale=scale, offset=offset)
    relu = _field(op, way, 39, 41)
    how = replace(how, is_rectified=relu > 0)
    if relu == 2:
        alpha = m.b.cast(setting(m, "set_relu_alpha")[0], SCALARS["i32"].dtype)
        how = replace(how, slope=reinterpreted(m, op, alpha, SCALARS["i32"], F32)[0])
    elif relu == 3:
        start = m.memory.pointer(Space.SCALING, F32, m.b.mul(bits(m, places, 0, 8), 64))
        how = replace(how, slope=row_at(m, start, cols))
    if not _field(op, way, 30, 30):
        return how
    clip = m.b.cast(setting(m, "set_fix_clip_relu")[0], SCALARS["ui16"].dtype)
    is_half = element_type(op.operands[1].type).is_float
    return replace(how, clip=reinterpreted(m, op, clip, SCALARS["ui16"], SCALARS["f16"])[0] if is_half else clip)


unmeant(
    "pto.vselrv2",
    free("x*", "x*"),
    "machine ops that nobody describes",
    "documents disagree: it looks lanes up, or chooses by a mask that it is not given: say `pto.vselr` or `pto.vsel`",
)
unmeant(
    "pto.vaddreluconv vmulconv",
    free("x*", "x*"),
    "machine ops that nobody describes",
    "how it rounds, and which lanes of the result it writes, is written down nowhere: say it with `pto.vcvt`",
)
unmeant(
    "pto.chistv2 dhistv2",
    free("x*", "x*"),
    "machine ops that nobody describes",
    "which of 256 bins its 128 lanes count is written down nowhere: say it with `pto.thistogram`",
)
unmeant(
    "pto.sprsti sprsts pltm_b8 pltm_b16 pltm_b32",
    free("x*", "x*"),
    "machine ops that nobody describes",
    "documents name it and do not say what it does: `pto.vstur` goes on behind `pto.vsqz`, `pto.plt_b32` makes masks",
)
