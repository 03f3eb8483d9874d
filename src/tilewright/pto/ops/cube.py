"""Cube micro-ops: matrices staged through the cube's memories and multiplied there. What leaves it is in `leaving`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import UINT32, DataType, finite_limits
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import element_of, known, tile_type
from tilewright.pto.errors import PtoAttributeError, PtoOperandError, PtoTypeMismatchError
from tilewright.pto.examples.cube import PRODUCTS
from tilewright.pto.machine.elements import cast, filled, where
from tilewright.pto.machine.formats import MOST_HIF8, decoded
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.matrices import FRACTAL, Matrix, as_bits, lanes, told, up
from tilewright.pto.machine.scales import GROUP, by_columns, by_rows, read_beside
from tilewright.pto.machine.tiles import bytes_view
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Rule, declare, element_type, within
from tilewright.pto.ops.open_cube import OpenProduct, multiply_open
from tilewright.pto.ops.transfers import refuse_overlap
from tilewright.pto.text.form import Form, free
from tilewright.pto.text.free import Said, said
from tilewright.pto.types import F32, I64, SCALARS, Scalar, Space
from tilewright.records import record

_GM, _L1, _L0A, _L0B, _L0C, _BT = Space.GM, Space.MAT, Space.LEFT, Space.RIGHT, Space.ACC, Space.BIAS

# staging


@record
class Layout:
    """Groups of matrices of `rows` x `cols` elements: byte strides where they come from, in blocks where they go."""

    groups: Expr
    rows: Expr
    cols: Expr
    come: tuple[Expr, Expr, Expr]
    """Between groups, rows and columns, in bytes."""
    go: tuple[Expr, Expr, Expr]
    """Between groups, rows and blocks of columns, in blocks of 32 bytes."""


_FRACTALS = free(
    "ppiiiiiiiiii?",
    words="nd2nz dn2nz shape src_layout dst_group ctrl",
    phrase="%src, %dst, $mode{nd2nz dn2nz}, shape(%shape*), src_layout(%src_layout*), dst_group(%dst_group*), "
    "ctrl(%ctrl*) : #src, #dst, $mode{nd2nz dn2nz}, shape #shape, src_layout(#src_layout), "
    "dst_group #dst_group, ctrl #ctrl",
)


_GM_TO_L1 = within(_GM, _L1)
_NUMBERS = {"shape": (2,), "src_layout": (1, 2), "dst_group": (4,), "ctrl": (2,)}
"""How many numbers stand behind each word of a staging."""


def _staged(op: Op, constants: Constants) -> None:
    """Refuse other memories and numbers of numbers, negative counts, no groups, and blocks of four of more columns."""
    _GM_TO_L1(op, constants)
    words = said(op)
    held = {name: len(words[name].values) if name in words else 0 for name in _NUMBERS}
    ways = [name for name in ("nd2nz", "dn2nz") if name in words]
    if any(count not in _NUMBERS[name] for name, count in held.items()) or len(ways) != 1:
        shown = ", ".join([*ways, *(f"{name} of {count}" for name, count in held.items())])
        help = "nd2nz or dn2nz, shape of 2 numbers, src_layout of 1 or 2, dst_group of 4, ctrl of 2"
        raise PtoOperandError(f"`{op.name}` has {shown}", help=help)
    shape, group, control = (
        [constants.get(value) for value in words[name].values] if name in words else []
        for name in ("shape", "dst_group", "ctrl")
    )
    if any(count is not None and count < 0 for count in (*shape, *group)) or (group and group[0] == 0):
        message = f"`{op.name}` has shape {shape} and groups {group}"
        raise PtoOperandError(message, help="counts are positive, and there is a group")
    if control[1:] == [True] and shape[1:] and shape[1] is not None and shape[1] > 4:
        message = f"`{op.name}` has blocks of four elements, and {shape[1]} columns"
        raise PtoOperandError(message, help="pass false, or stage at most 4 columns")


@declare("pto.mte_gm_l1_frac", _FRACTALS, rule=_staged, is_by_bytes=True, counts=I64)
def _stage(m: Machine, op: Op, source: Pointer, target: Pointer) -> None:
    """Matrices of global memory, by rows (`nd2nz`) or by columns (`dn2nz`), into blocks of columns."""
    words = said(op)
    shape, layout, group, control = (
        [m.b.index(m.expr(value)) for value in words[name].values]
        for name in ("shape", "src_layout", "dst_group", "ctrl")
    )
    refuse_small(op, control[1])
    inner, outer = (*layout, m.b.index(0))[:2]
    size = m.b.index(source.element.nbytes)
    come = (outer, inner, size) if "nd2nz" in words else (outer, size, inner)
    stage(m, source, target, Layout(group[0], shape[0], shape[1], come, (group[3], group[1], group[2])))


def refuse_small(op: Op, flag: Expr) -> None:
    """Refuse blocks of four elements."""
    if known(flag) != 0:
        message = f"`{op.name}` with blocks of four elements cannot be run here"
        raise UnsupportedFeatureError(message, help="pass false, and pad the columns")


def stage(m: Machine, source: Pointer, target: Pointer, layout: Layout) -> None:
    """Emit the staging of matrices, the rest of their last blocks as zeros.

    Blocks that may lie on each other are written in turn; those that do are refused.
    """
    width, size = lanes(source.element), source.element.nbytes
    steps = [m.b.scalar("floordiv", stride, m.b.index(size)) for stride in layout.come]
    come = bytes_view(m, source, (layout.groups, layout.rows, layout.cols), steps)
    blocks = m.b.scalar("floordiv", m.b.add(layout.cols, width - 1), m.b.index(width))
    group, row, block = (m.b.mul(stride, width) for stride in layout.go)
    go = bytes_view(m, target, (layout.groups, layout.rows, blocks, width), (group, row, block, 1))
    counts = [known(n) for n in (layout.groups, layout.rows, layout.cols)]
    refuse_overlap(
        (layout.groups, layout.rows, blocks), layout.go, "let each stride of dst_group step over what lies inside it"
    )
    if None not in counts and None not in map(known, layout.go):
        _stage_known(m, come, go, [n or 0 for n in counts], width)
        return
    zero = constant(0, target.element.dtype)
    with m.b.loop(0, layout.groups) as q, m.b.loop(0, layout.rows) as r, m.b.loop(0, blocks) as b:
        with m.b.loop(0, width) as lane:
            column = m.b.add(m.b.mul(b, width), lane)
            m.b.set(go, zero, q, r, b, lane)
            with m.b.when(m.b.scalar("lt", column, layout.cols)):
                m.b.set(go, m.b.get(come, q, r, column), q, r, b, lane)


def _stage_known(m: Machine, come: Expr, go: Expr, counts: Sequence[int], width: int) -> None:
    groups, rows, cols = counts
    if 0 in counts:
        return
    values = m.b.tile("reshape", m.b.load(come, (groups, rows, cols)), (groups * rows, cols))
    if cols % width:
        rest = m.b.tile("full", (groups * rows, -cols % width), element_of(values), constant(0, element_of(values)))
        values = m.b.tile("concat", values, rest)
    shape = (groups, rows, up(cols, width) // width, width)
    m.b.store(go, m.b.tile("reshape", values, shape))


# products


def product(operands: str, begins: str = "") -> Form:
    """Return the form of a product; with one more pointer, a bias comes behind the accumulator.

    Of one that may be told when it runs what it `begins` with, the other flags may be numbers, too.
    """
    bias = "%bias, " if operands.startswith("pppp") else ""
    flags = ("unit_flag_value", begins, "disable_gemv_value") if begins else ()
    told = "".join(f"[{word}(%{word})] " for word in flags)
    clauses = (
        f"[unit_flag($unit_flag)] {told}[$disable_gemv{{True:disable_gemv False:}}] "
        "[$sat{ON:sat OFF:nosat True:sat False:nosat}] [tf32_mode($tf32_mode)] [$n_dir{True:n_dir False:}]"
    )
    words = " ".join(("unit_flag disable_gemv sat nosat tf32_mode n_dir", *flags))
    return free(operands + "i?" * len(flags), words=words, phrase=f"%lhs, %rhs, %dst, {bias}%m, %n, %k {clauses} : #")


_SUMS = {"f32": ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "hif8"), "i32": ("i8",)}
_WORDS = {"unit_flag": ("check_only", "check_and_set"), "tf32_mode": ("round_even", "round_away")}


def multiplies(*spaces: Space) -> Rule:
    """Return the rule of a product: where its matrices lie, what they hold, and which words go with that."""
    lie = within(*spaces)

    def rule(op: Op, constants: Constants) -> None:
        lie(op, constants)
        a, b, c, *bias = (element_type(v.type) for v, _ in zip(op.operands, spaces, strict=False))
        names = [each.name.removeprefix("s") for each in (a, b)]
        taken = _SUMS.get(c.name.removeprefix("s"), ())
        is_small = all(element.nbytes == 1 for element in (a, b)) and "hif8" not in names
        if not all(name in taken for name in names) or (names[0] != names[1] and not is_small):
            help = "equal f16, bf16, f32 or hif8, or two fp8, make f32; i8 makes i32"
            raise PtoTypeMismatchError(f"`{op.name}` multiplies {a} by {b} into {c}", help=help)
        if bias and bias[0] != c:
            raise PtoTypeMismatchError(f"`{op.name}` adds a bias of {bias[0]} to {c}", help=f"make both {c}")
        _refuse_words(op, said(op), names[0])

    return rule


def _refuse_words(op: Op, words: dict[str, Said], element: str) -> None:
    for name, allowed in _WORDS.items():
        if name in words and words[name].first not in allowed:
            raise PtoAttributeError(f"`{name}` of `{op.name}` is {words[name].first}", help=" or ".join(allowed))
    if element == "i8" and "sat" in words:
        raise PtoAttributeError(f"`sat` of `{op.name}` is for floats", help="leave it out: integers wrap")
    if element != "f32" and "tf32_mode" in words:
        raise PtoAttributeError(f"`tf32_mode` of `{op.name}` is for f32, got {element}", help="leave it out")


@declare(
    "pto.mad mad_acc",
    product("pppiii", "acc_init"),
    rule=multiplies(_L0A, _L0B, _L0C),
    counts=I64,
    knows_packed=True,
    example=PRODUCTS,
)
def _multiply(m: Machine, op: Op, a: Pointer, b: Pointer, c: Pointer, rows: Expr, cols: Expr, depth: Expr) -> None:
    """The product of two matrices, or that and what the accumulator holds."""
    words = said(op)
    tf32 = words["tf32_mode"].first if "tf32_mode" in words else ""
    how = Product("sat" in words, tf32, op.name.endswith("_acc"))
    sizes = _sizes(m, op, rows, cols, depth)
    _as_flagged(m, words.get("acc_init"), how, lambda adds: multiply(m, replace(how, adds=adds), a, b, c, sizes))


@declare(
    "pto.mad_bias",
    product("ppppiii", "bias_init"),
    rule=multiplies(_L0A, _L0B, _L0C, _BT),
    counts=I64,
    knows_packed=True,
    example=PRODUCTS,
)
def _biased(
    m: Machine, op: Op, a: Pointer, b: Pointer, c: Pointer, bias: Pointer, rows: Expr, cols: Expr, depth: Expr
) -> None:
    """The product of two matrices, and a row added to each of its rows."""
    words = said(op)
    tf32 = words["tf32_mode"].first if "tf32_mode" in words else ""
    how, sizes = Product("sat" in words, tf32, bias=bias), _sizes(m, op, rows, cols, depth)

    def made(adds: bool) -> None:
        multiply(m, replace(how, adds=True, bias=None) if adds else how, a, b, c, sizes)

    _as_flagged(m, words.get("bias_init"), how, made)


def _as_flagged(m: Machine, flag: Said | None, how: Product, emit: Callable[[bool], None]) -> None:
    """Emit a product that goes on from what the accumulator holds where a flag, if there is one, is not set."""
    begins = m.expr(flag.values[0]) if flag is not None and flag.values else None
    if begins is None or known(begins) is not None:
        emit(how.adds if begins is None else not known(begins))
        return
    with m.b.block() as fresh:
        emit(False)
    with m.b.block() as added:
        emit(True)
    m.b.either(begins, fresh, added)


@record
class Product:
    """How matrices are multiplied: whether results are made finite, how f32 is rounded, and what is added."""

    saturates: bool = False
    tf32: str = ""
    adds: bool = False
    bias: Pointer | None = None
    is_scaled: bool = False
    """Whether the scales beside both matrices count."""


Sizes: TypeAlias = tuple[int, ...] | tuple[Expr, Expr, Expr]
"""Rows, columns and depth: as numbers, or as expressions where only the running program knows some of them."""


def _sizes(m: Machine, op: Op, rows: Expr, cols: Expr, depth: Expr) -> Sizes:
    return told(op, rows, cols, depth) or (m.b.index(rows), m.b.index(cols), m.b.index(depth))


def multiply(m: Machine, how: Product, a: Pointer, b: Pointer, c: Pointer, sizes: Sizes) -> None:
    """Emit the product of what lies at two pointers; sizes are rows, columns and depth."""
    rows, cols, depth = sizes
    if not (isinstance(rows, int) and isinstance(cols, int) and isinstance(depth, int)):
        multiply_open(m, _opened(m, how, c), a, b, c, (m.b.index(rows), m.b.index(cols), m.b.index(depth)))
        return
    pitch = up(rows, FRACTAL)
    left = _factor(m, how, a.element, Matrix(a, rows, depth, pitch).read(m))
    right = _factor(m, how, b.element, Matrix(b, cols, depth, up(cols, FRACTAL)).read(m, is_turned=True))
    if how.is_scaled:
        left, right = _scaled(m, left, right, a, b)
    out = Matrix(c, rows, cols, pitch)
    total = c.element.dtype
    product = cast(m, m.b.tile("matmul", left, right), total)
    if how.adds:
        product = m.b.tile("add", out.read(m), product)
    if how.bias is not None:
        row = m.b.load(bytes_view(m, how.bias, (1, cols), (cols, 1)), (1, cols))
        product = m.b.tile("col_expand_add", product, row)
    _write(m, out, finite(m, product, total) if how.saturates else product)


def _opened(m: Machine, how: Product, c: Pointer) -> OpenProduct:
    """Return how matrices of open extents are multiplied."""

    def factor(pointer: Pointer, value: Expr) -> Expr:
        return _factor(m, how, pointer.element, value)

    def finished(value: Expr) -> Expr:
        return finite(m, value, c.element.dtype)

    return OpenProduct(factor, finished if how.saturates else None, how.adds, how.bias)


def _scaled(m: Machine, left: Expr, right: Expr, a: Pointer, b: Pointer) -> tuple[Expr, Expr]:
    """Return factors times the powers of two beside them."""
    (rows, depth), cols = tile_type(left).shape, tile_type(right).shape[1]
    if depth % GROUP:
        message = f"scaled matrices are multiplied over {depth} elements, and {GROUP} share a scale"
        raise UnsupportedFeatureError(message, help=f"make it {up(depth, GROUP)}, and fill what is added with zeros")
    right_powers = read_beside(m, b, cols, depth, is_turned=True)
    return by_rows(m, left, read_beside(m, a, rows, depth)), by_columns(m, right, right_powers)


def _write(m: Machine, out: Matrix, value: Expr) -> None:
    """Write a product without touching the columns behind its last."""
    if out.shape[1] != out.cols:
        whole = replace(out, cols=out.shape[1]).read(m)
        value = m.b.tile("assemble", whole, value, (0, 0))
    out.write(m, value)


def _factor(m: Machine, how: Product, element: Scalar, value: Expr) -> Expr:
    """Return a factor as it is multiplied."""
    if element.is_packed:
        value = decoded(m, value, element.name)
        return limited(m, value, MOST_HIF8) if how.saturates else value
    held = element_of(value)
    if how.saturates:
        value = finite(m, value, held)
    if how.tf32:
        value = _short(m, value, how.tf32)
    return cast(m, value, F32.dtype) if held.is_float() and held.bits == 8 else value


def finite(m: Machine, value: Expr, dtype: DataType) -> Expr:
    """Return floats with the largest finite ones for infinities, and zero for what is no number."""
    return limited(m, value, finite_limits(dtype)[1])


def limited(m: Machine, value: Expr, most: float) -> Expr:
    """Return floats that are a number at most for what is larger, and zero for what is no number."""
    dtype = element_of(value)
    value = where(m, value, CmpType.EQ, value, value, filled(m, tile_type(value), 0))
    value = m.b.tile("minimum", value, constant(most, dtype))
    return m.b.tile("maximum", value, constant(-most, dtype))


def _short(m: Machine, value: Expr, mode: str) -> Expr:
    """Return floats of 32 bits with the last 13 of them rounded away."""
    bits = as_bits(m, value, SCALARS["ui32"])
    if mode == "round_even":
        last = m.b.tile("and_", m.b.tile("shr", bits, constant(13, UINT32)), constant(1, UINT32))
        bits = m.b.tile("add", m.b.tile("add", bits, constant(0xFFF, UINT32)), last)
    else:
        bits = m.b.tile("add", bits, constant(0x1000, UINT32))
    return as_bits(m, m.b.tile("and_", bits, constant(0xFFFFE000, UINT32)), F32)
