"""Accumulators brought out by micro-ops: to global memory, to the cube's own, or to the vector cores'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tilewright.core.expr import Const, Expr
from tilewright.dtypes import FP32
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import tile_type
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.examples.cube import LEAVING
from tilewright.pto.machine.formats import encoded
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.matrices import FRACTAL, Matrix, told
from tilewright.pto.machine.tiles import moved
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Constants, Rule, declare, element_type, within
from tilewright.pto.ops.accumulator_stores import Leaving, put, row_at, words_at
from tilewright.pto.ops.open_cube import pieces
from tilewright.pto.ops.quantizations import QUANTIZATIONS, misfit, quantization, ways_from
from tilewright.pto.ops.transfers import refuse_overlap
from tilewright.pto.text.form import Form, free
from tilewright.pto.text.free import Said, said
from tilewright.pto.tile_laws import plain
from tilewright.pto.types import F32, I64, SCALARS, Ptr, Scalar, Space
from tilewright.records import record

_WORD = SCALARS["ui64"]
"""What the factor of a column is, with its offset."""
RELUS = ("no_relu", "normal_relu", "scalar_relu", "vector_relu")
_WORDS = {
    "unit_flag": ("check_only", "check_and_clear"), "sat": ("", "preserve_nan"), "dst_mode": ("", "split_m", "split_n"),
}  # fmt: skip
_ALONE = "pre_quant pre_relu nz2dn nz2nz loop3".split()
_COMBINED = ("add", "max", "min")
_CLAUSES = """
    [, unit_flag($unit_flag)] [, pre_quant([%pre_quant, ]mode = $pre_quant_mode)]
    [, pre_relu([%pre_relu, ]mode = $pre_relu_mode[, clip = %clip])]
    [, $mode{nz2nd nz2dn nz2nz}=nz2nd [(%split)] [(%loop0)]] [, loop3(%loop3*)]
    [, $sat{ON:sat OFF:nosat PRESERVE_NAN:sat(preserve_nan) True:sat False:nosat}]
    [, atomic(type = $atomic_type, op = $atomic_op)] : #
"""


def _form(operands: str, more: str = "") -> Form:
    """Return the form of an op that brings an accumulator out."""
    return free(
        operands,
        words="unit_flag pre_quant pre_relu nz2nd nz2dn nz2nz loop3 sat nosat atomic dst_mode",
        phrase=f"%src, %dst, %m, %n, %src_stride, %dst_stride{more}{_CLAUSES}",
    )


CLIPPED = ("f16", "ui8", "i8", "i16", "si8", "si16")


def _leaves(target: Space) -> Rule:
    """Return the rule of an op that brings an accumulator to a memory."""
    lie = within(Space.ACC, target)

    def rule(op: Op, constants: Constants) -> None:
        lie(op, constants)
        words, (come, go) = said(op), (element_type(value.type) for value in op.operands[:2])
        for name, allowed in _WORDS.items():
            if name in words and words[name].first not in allowed:
                raise PtoAttributeError(f"`{name}` of `{op.name}` is {words[name].first}", help=" or ".join(allowed))
        _refuse_quantization(op, words, come, go)
        _refuse_relu(op, words, go)
        _refuse_blocks(op, words, go)
        if "atomic" in words and (target is not Space.GM or words["atomic"].word("op") not in _COMBINED):
            help = "to global memory, `op` is add, max or min"
            raise PtoAttributeError(f"`{op.name}` combines {words['atomic'].word('op')}", help=help)
        if "dst_mode" in words and words["dst_mode"].first:
            _refuse_split(op, words, constants)

    return rule


def _refuse_quantization(op: Op, words: Mapping[str, Said], come: Scalar, go: Scalar) -> None:
    given = words.get("pre_quant")
    if given is None:
        _refuse_unscaled(op, come, go)
        return
    way = quantization(given.word("mode"), come)
    _refuse_payload(op, "pre_quant", way.name, given.values, way.is_by_column, not way.is_plain)
    if error := misfit(way, op, come, go):
        raise error


def _refuse_unscaled(op: Op, come: Scalar, go: Scalar) -> None:
    """Refuse a destination that what an accumulator holds is only scaled to."""
    if go.bits < 16 or (go.is_integer and go.bits < 32):
        ways = [name for name in ways_from(come) if plain(go) in QUANTIZATIONS[name].made]
        message = f"`{op.name}` brings {come} to {go} without a scale"
        instead = f"say `pre_quant` with mode {' or '.join(ways)}" if ways else f"no mode makes {go} of {come}"
        raise PtoTypeMismatchError(message, help=instead)


def _refuse_blocks(op: Op, words: Mapping[str, Said], go: Scalar) -> None:
    """Refuse blocks of columns of other elements than f32, or again and again."""
    if "nz2nz" in words and (go.name != "f32" or "loop3" in words):
        what = "`loop3`" if "loop3" in words else str(go)
        raise PtoAttributeError(f"`nz2nz` of `{op.name}` is for f32, without `loop3`, got {what}", help="use `nz2nd`")


_FACTORS = ("f16", "bf16", "f32")
"""What factors are written as, whatever the words of channels hold."""


def _refuse_payload(op: Op, name: str, mode: str, values: tuple[Value, ...], is_row: bool, is_needed: bool) -> None:
    """Refuse factors that are not a number, or not a pointer to those of channels, as the mode has them."""
    type_ = values[0].type if values else None
    fits = isinstance(type_, Ptr) and type_.space is Space.SCALING if is_row else isinstance(type_, Scalar)
    held = type_.element if isinstance(type_, Ptr) else type_
    if (fits and str(held) in _FACTORS) or (not is_needed and not values):
        return
    wanted = f"a pointer to {', '.join(_FACTORS)} in fb" if is_row else f"a number of {', '.join(_FACTORS)}"
    found = f"got {type_}" if values else "and there is none"
    raise PtoTypeMismatchError(f"`{name}` with mode {mode} takes {wanted}, {found}", help=f"give `{op.name}` {wanted}")


def _refuse_relu(op: Op, words: Mapping[str, Said], go: Scalar) -> None:
    given = words.get("pre_relu")
    if given is None:
        return
    mode = given.word("mode")
    if mode not in RELUS:
        raise PtoAttributeError(f"`pre_relu` has no mode {mode!r}", help=f"one of {', '.join(RELUS)}")
    if mode in RELUS[2:]:
        _refuse_payload(op, "pre_relu", mode, given.values, mode == "vector_relu", True)
    elif given.values:
        raise PtoAttributeError(f"`pre_relu` with mode {mode} takes no factor", help="leave it out")
    if "clip" in given.named and go.name not in CLIPPED:
        raise PtoTypeMismatchError(f"`clip` is for {', '.join(CLIPPED[:4])}, got {go}", help="clip with `pto.tmins`")
    clip = given.named.get("clip")
    if isinstance(clip, Value):
        _refuse_clip(clip, go)


def _refuse_clip(clip: Value, go: Scalar) -> None:
    """Refuse a limit that is none of what it limits: 16 bits for ui8, else a number of that type."""
    is_long = go.name == "ui8"
    fits = clip.of(Scalar).bits == 16 if is_long else plain(clip.of(Scalar)) == plain(go)
    if not fits:
        wanted = "has 16 bits" if is_long else f"is {plain(go)}"
        message = f"`clip` of {go} {wanted}, `%{clip.name}` is {clip.type}"
        raise PtoTypeMismatchError(message, help=f"make it {'i16' if is_long else plain(go)}")


def _refuse_split(op: Op, words: Mapping[str, Said], constants: Constants) -> None:
    other = next((name for name in _ALONE if name in words), None)
    if other is not None:
        raise PtoAttributeError(f"`dst_mode({words['dst_mode'].first})` goes without `{other}`", help="leave one out")
    by_rows = words["dst_mode"].first == "split_m"
    unit, extent = 2 if by_rows else 32, constants.get(op.operands[2 if by_rows else 3])
    if extent is not None and extent % unit:
        noun = "rows" if by_rows else "columns"
        raise PtoAttributeError(f"{extent} {noun} are not split in halves", help=f"a multiple of {unit}")


@record
class Out:
    """A matrix on its way out: where it lies, where it goes, and how."""

    source: Pointer
    target: Pointer
    rows: int
    cols: int
    pitch: Expr
    stride: Expr
    how: Leaving
    is_turned: bool = False
    """Whether columns are stored as rows."""
    combine: str = ""
    ends: tuple[Expr, Expr] | None = None
    """Its rows and columns, where only the running program knows them."""
    at: Callable[[Expr, int], Leaving] | None = None
    """How so many columns leave from one on, where it does."""

    def emit(self, m: Machine, first: tuple[int, int] = (0, 0)) -> None:
        """Write its elements from a row and column on; a row starts where its first column would."""
        if self.ends is not None:
            pieces(m, self.source, self.pitch, self.ends, self._piece)
            return
        row, column = first
        start = moved(m, self.source, m.b.index(row * FRACTAL))
        held = Matrix(start, self.rows, column + self.cols, self.pitch).read(m)
        if column:
            held = m.b.tile("slice", held, (self.rows, self.cols), (0, column))
        self.store(m, held)

    def _piece(self, m: Machine, row: Expr, column: Expr, held: Expr) -> None:
        """Write some elements of a row, from a column on."""
        inner, outer = (row, column) if self.is_turned else (column, row)
        target = moved(m, self.target, m.b.add(m.b.scalar("mul", outer, self.stride), inner))
        assert self.at is not None
        replace(self, target=target, how=self.at(column, tile_type(held).shape[1])).store(m, held)

    def store(self, m: Machine, held: Expr) -> None:
        """Write elements of the accumulator as they arrive."""
        element = self.target.element
        value = self.how.apply(m, held, FP32 if element.is_packed else element.dtype)
        if element.is_packed:
            value = encoded(m, value, element.name, self.how.saturates)
        one = m.b.index(1)
        if self.is_turned and not self.combine:
            extents = [m.b.index(extent) for extent in tile_type(held).shape]
            refuse_overlap(extents, (one, self.stride), "let the stride step over a column")
        put(m, self.target, (one, self.stride) if self.is_turned else (self.stride, one), value, self.combine)

    def halves(self, m: Machine, *, is_by_rows: bool) -> None:
        """Write half of it to the memory of each vector core."""
        if self.ends is not None:
            self._open_halves(m, self.ends, is_by_rows=is_by_rows)
            return
        rows, cols = (self.rows // 2, self.cols) if is_by_rows else (self.rows, self.cols // 2)
        for lane in range(2):
            half = replace(self, target=m.memory.lane(self.target, m.b.index(lane)), rows=rows, cols=cols)
            half.emit(m, (lane * rows, 0) if is_by_rows else (0, lane * cols))

    def _open_halves(self, m: Machine, ends: tuple[Expr, Expr], *, is_by_rows: bool) -> None:
        rows, cols = ends
        half = m.b.scalar("floordiv", rows if is_by_rows else cols, m.b.index(2))
        beyond = m.b.mul(half, FRACTAL) if is_by_rows else m.b.scalar("mul", half, self.pitch)
        for lane, source in enumerate((self.source, moved(m, self.source, beyond))):
            target = m.memory.lane(self.target, m.b.index(lane))
            ends = (half, cols) if is_by_rows else (rows, half)
            replace(self, source=source, target=target, ends=ends).emit(m)

    def repeated(self, m: Machine, count: Expr, source: Expr, target: Expr) -> None:
        """Write several of them, so many rows of the accumulator and elements apart."""
        with m.b.loop(0, count) as i:
            come = moved(m, self.source, m.b.mul(m.b.scalar("mul", i, source), FRACTAL))
            replace(self, source=come, target=moved(m, self.target, m.b.scalar("mul", i, target))).emit(m)


def _taken(m: Machine, words: Mapping[str, Said], cols: int, first: Expr | None = None) -> Leaving:
    """Return what the words of an op do to elements of so many columns, from the first one or a later one on."""
    at = m.b.index(0) if first is None else first
    how = Leaving(saturates="nosat" not in words)
    if "sat" in words and words["sat"].first:
        how = replace(how, keeps_nan=True)
    for value in words["pre_quant"].values[:1] if "pre_quant" in words else ():
        found = m.values[value]
        if QUANTIZATIONS[words["pre_quant"].word("mode")].is_plain:
            _refuse_factor(words["pre_quant"].word("mode"), m.expr(value))
            continue
        scales = (
            words_at(m, _further(m, found, _WORD, at), cols)
            if isinstance(found, Pointer)
            else (m.b.cast(m.expr(value), FP32), None)
        )
        how = replace(how, scale=scales[0], offset=scales[1])
    given = words.get("pre_relu")
    if given is None:
        return how
    how = replace(how, is_rectified=given.word("mode") != "no_relu")
    for value in given.values[:1]:
        found = m.values[value]
        slope = (
            row_at(m, _further(m, found, F32, at), cols)
            if isinstance(found, Pointer)
            else m.b.cast(m.expr(value), FP32)
        )
        how = replace(how, slope=slope)
    clip = given.named.get("clip")
    return replace(how, clip=m.expr(clip)) if isinstance(clip, Value) else how


def _further(m: Machine, pointer: Pointer, element: Scalar, column: Expr) -> Pointer:
    """Return where the number of a column lies, behind those of the columns before it."""
    return moved(m, replace(pointer, element=element), column)


def _refuse_factor(mode: str, factor: Expr) -> None:
    """Refuse a factor of a way that does not scale, unless it is known to change nothing."""
    if not isinstance(factor, Const) or factor.value != 1:
        scaling = f"qf322{mode.removeprefix('f32_')}_pre_scalar"
        message = f"mode {mode} converts and does not scale: it has no use for a factor"
        raise PtoAttributeError(message, help=f"leave the factor out, or use mode {scaling}")


def refuse_packed(op: Op, target: Pointer) -> None:
    """Refuse elements that nothing here is converted to."""
    if target.element.is_packed and target.element.name != "hif8":
        message = f"`{op.name}` to {target.element} cannot be run here"
        raise UnsupportedFeatureError(message, help="bring out f16, and convert it elsewhere")


def _out(
    m: Machine, op: Op, words: Mapping[str, Said], source: Pointer, target: Pointer, numbers: tuple[Expr, ...]
) -> Out:
    refuse_packed(op, target)
    if "nz2nz" in words:
        message = f"`{op.name}` with `nz2nz` cannot be run here"
        raise UnsupportedFeatureError(message, help="store with `nz2nd`, and stage that with `pto.mte_gm_l1_frac`")
    combine = words["atomic"].word("op") if "atomic" in words else ""
    height, width, pitch, stride = map(m.b.index, numbers[:4])
    rows, cols = told(op, *numbers[:2]) or (1, 1)
    out = Out(source, target, rows, cols, pitch, stride, _taken(m, words, cols), "nz2dn" in words, combine)
    if told(op, *numbers[:2]) is not None:
        return out

    def at(column: Expr, count: int) -> Leaving:
        return _taken(m, words, count, column)

    return replace(out, ends=(height, width), at=at)


@declare("pto.mte_l0c_l1", _form("ppiiiix*"), rule=_leaves(Space.MAT), counts=I64, knows_packed=True, example=LEAVING)
@declare(
    "pto.mte_l0c_gm",
    _form("ppiiiiiix*", ", %sid=0, %l2_cache_ctrl=0"),
    rule=_leaves(Space.GM),
    counts=I64,
    knows_packed=True,
    example=LEAVING,
)
def _bring_out(m: Machine, op: Op, source: Pointer, target: Pointer, *numbers: Expr) -> None:
    """A matrix of an accumulator, scaled, rectified and converted, by rows or by columns."""
    words = said(op)
    _emit(m, _out(m, op, words, source, target, numbers), words)


def _emit(m: Machine, out: Out, words: Mapping[str, Said]) -> None:
    if "loop3" in words:
        out.repeated(m, *(m.index(value) for value in words["loop3"].values))
    else:
        out.emit(m)


@declare(
    "pto.mte_l0c_ub",
    _form("ppiiiix*", ", dst_mode([$dst_mode{single: split_m split_n}|%sub_blockid=0])"),
    rule=_leaves(Space.VEC),
    counts=I64,
    knows_packed=True,
    example=LEAVING,
)
def _bring_over(m: Machine, op: Op, source: Pointer, target: Pointer, *numbers: Expr) -> None:
    """A matrix of an accumulator, to the memory of one vector core or half of it to each."""
    words = said(op)
    out = _out(m, op, words, source, target, numbers)
    given = words.get("dst_mode", Said())
    if not given.first:
        which = m.index(given.values[0]) if given.values else m.b.index(0)
        _emit(m, replace(out, target=m.memory.lane(target, which)), words)
        return
    out.halves(m, is_by_rows=given.first == "split_m")
