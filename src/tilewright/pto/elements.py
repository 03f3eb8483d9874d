"""Element types: which of them each op on tiles takes, on A2/A3 and on A5. The reference page prints this table.

An integer's name stands for its width, whatever its sign. An op that is not here takes whatever its form and rule let
through; one without an entry for an architecture does not exist there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.module import Op, Value, word_of
from tilewright.pto.types import TileBuf
from tilewright.records import record

A3, A5 = "a3", "a5"
CALLED = {A3: "A2/A3", A5: "A5"}
"""What messages call the architectures."""

_TABLE = """
tabs texp tlog tsqrt trsqrt trecip tlrelu tprelu | f16 f32 |
tcolexpandexpdif trowexpandexpdif tsort32 tmrgsort | f16 f32 |
tadd tmin tadds tsubs tmuls tmaxs tmins tneg tcolmax tcolmin tcolsum | i16 i32 f16 f32 | i8 bf16
tpartadd tpartmax tpartmin tpartmul tpartargmax tpartargmin | i16 i32 f16 f32 | i8 bf16
tsub tmax tdivs tcmps tsels | i16 i32 f16 f32 | i8
tcolexpandadd tcolexpandsub tcolexpandmul tcolexpandmax tcolexpandmin | i16 i32 f16 f32 | i8
trowexpandadd trowexpandsub trowexpandmul trowexpandmax trowexpandmin | i16 i32 f16 f32 | i8
tcolprod | i16 i32 f16 f32 | bf16
tmul tfmod tfmods trowmax trowmin trowsum trowprod trowargmax trowargmin | i16 i32 f16 f32 |
tdiv | f16 f32 | i16 i32
tcolexpanddiv trowexpanddiv | f16 f32 | i8 i16 i32
trem trems | i32 f32 | i16 f16
tand tor txor tands tors txors | i8 i16 | i32
tnot | i16 | i8 i32
tshl tshr | i8 i16 i32 |
tshls | i8 i16 i32 i64 |
tshrs | i16 i32 | i8
trelu | i32 f16 f32 |
taxpy | f16 f32 | bf16
texpands | i16 i32 f16 bf16 f32 | i8
tcmp | i32 f16 f32 | i8 i16 bf16
tsel | i16 i32 f16 bf16 f32 | i8
tcolexpand trowexpand tconcat tconcatidx ttrans tscatter | i8 i16 i32 f16 bf16 f32 |
ttri | i16 i32 f16 f32 | i8 bf16
textract | i8 f16 bf16 f32 | f8E4M3FN f8E5M2
mgather mscatter | | i8 i16 i32 f16 bf16 f32 f8E4M3FN f8E5M2
thistogram | | i16
tget_scale_addr | | f8E4M3FN f8E5M2
trandom | | i32
tload | i8 i16 i32 i64 f16 bf16 f32 | f64 f8E8M0FNU
tmov tmov>0 | i8 i16 i32 i64 f16 bf16 f32 f64 f8E8M0FNU |
tstore[vec] tstore[mat] | i8 i16 i32 i64 f16 bf16 f32 |
tstore[acc] tstore_fp tmov.fp textract_fp tinsert_fp | i32 f32 |
tinsert[vec] | i8 f16 bf16 f32 | i32 f8E4M3FN f8E5M2
tgather[index] | i16 i32 f16 f32 | i8
tgather[index]@1 | i32 | i16
tgather[mask] | i16 i32 f16 bf16 f32 | i8 f8E4M3FN f8E5M2
tgather[eq] | i32 f16 f32 | i16
tgather[gt] | f16 f32 | i16 i32
tgatherb>0 | i8 i16 i32 f16 bf16 f32 f8E4M3FN f8E5M2 |
mgather@1 mscatter@1 | i32 |
tmatmul tmatmul.acc@1 tmatmul.bias tgemv tgemv.acc@1 tgemv.bias | i8 f16 bf16 f32 |
tmatmul.mx tmatmul.mx.acc@1 tmatmul.mx.bias | f8E4M3FN f8E5M2 |
tgemv.mx tgemv.mx.acc@1 tgemv.mx.bias | | f8E4M3FN f8E5M2
tcolargmax tcolargmin | i8 i16 i32 f16 bf16 f32 |
tcolargmax>0 tcolargmin>0 trowargmax>0 trowargmin>0 tpartargmax@2 tpartargmin@2 | i32 |
tcmp>0 tcmps>0 tquant>0 | i8 |
tquant tquant@1 tquant@2 tdequant@1 tdequant@2 tdequant>0 | f32 |
tdequant | i8 i16 |
tci>0 | i16 i32 |
tconcatidx@2 tconcatidx@3 | i8 i16 i32 |
tprint | i8 i16 i32 f16 f32 |
"""
"""Ops, what they take on A2/A3, and what A5 adds. `tstore[vec]` is a form of an op, `mgather@1` its operand with that
number, from 0 on, and `tci>0` what it writes; an op alone stands for the first tile that it reads."""

_BY_RESULT = frozenset(["texpands", "tsel", "tsels", "ttri", "trandom", "mgather", "tload"])
"""The ops whose result decides, since what they read holds something else."""


SMALL_FLOATS = ("f8E4M3FN", "f8E5M2")
"""Floats of one byte, which products take and nothing moves but as bytes."""

_MOVES = ("pto.tload", "pto.tstore[", "pto.tmov")
"""The ops that only move what they are given."""


@record
class Leaving:
    """What an accumulator's elements may become on their way out, on each architecture."""

    a3: Mapping[str, tuple[str, ...]]
    a5: Mapping[str, tuple[str, ...]]

    def on(self, arch: str) -> Mapping[str, tuple[str, ...]]:
        """Return the ways of an architecture."""
        return self.a5 if arch == A5 else self.a3


_PLAIN = {"f32": ("i32", "f32", "f16", "bf16"), "i32": ("i32", "f32", "f16", "bf16")}
_SCALED = Leaving(
    {"f32": ("i8",), "i32": ("i8", "f16", "i16")},
    {"f32": ("i8", "f8E4M3FN", "f8E5M2", "f16", "bf16", "f32"), "i32": ("i8", "f16", "bf16")},
)
LEAVING = {
    "tstore": Leaving(_PLAIN, _PLAIN),
    "tstore_fp": Leaving(
        {"f32": ("i8",), "i32": ("i8", "f16")}, {"f32": ("i8", "f16", "bf16", "f32"), "i32": ("i8", "f16", "bf16")}
    ),
    "tinsert": Leaving({"f32": ("f16", "bf16")}, {"f32": ("f16", "bf16", "f32"), "i32": ("i32",)}),
    **dict.fromkeys(("tmov.fp", "textract_fp", "tinsert_fp"), _SCALED),
}
"""What leaves an accumulator, by the op; a `tstore` with a scale is as `tstore_fp`."""


@record
class Taken:
    """The element types that an op takes on each architecture."""

    a3: tuple[str, ...]
    a5: tuple[str, ...]

    def on(self, arch: str) -> tuple[str, ...]:
        """Return those of an architecture."""
        return self.a5 if arch == A5 else self.a3


@cache
def table() -> dict[str, Taken]:
    """Return what each op takes, by its full name and what of it is meant."""
    found: dict[str, Taken] = {}
    for line in _TABLE.strip().splitlines():
        names, older, added = (part.split() for part in line.split("|"))
        taken = Taken(tuple(older), tuple(dict.fromkeys([*older, *added])))
        found.update({f"pto.{name}": taken for name in names})
    return found


def is_on_a5(name: str, read: str, written: str) -> bool:
    """Return whether A5 has an op, by its name without the dialect, for what its first tile and its result hold."""
    taken, decisive = table().get(f"pto.{name}"), written if name in _BY_RESULT else read
    return taken is None or decisive.removeprefix("u").removeprefix("s") in taken.a5


def refuse_elements(op: Op, arch: str) -> None:
    """Raise where an op does not take the elements it is given on an architecture."""
    named = _asked().get(op.name)
    if named is None:
        return
    for key in named:
        value = _operand(op, key)
        if value is not None and isinstance(value.type, TileBuf):
            _refuse(op, value, key, arch)


@cache
def _asked() -> dict[str, list[str]]:
    """Return the entries of each op, by its full name."""
    found: dict[str, list[str]] = {}
    for key in table():
        found.setdefault(_NAME.split(key)[0], []).append(key)
    return found


_NAME = re.compile(r"[\[@>]")


def _operand(op: Op, key: str) -> Value | None:
    """Return the operand that an entry is about, None where it is about another form of the op, or there is none."""
    form = key.partition("[")[2].partition("]")[0]
    if form and form != _form(op):
        return None
    for mark, values in (("@", op.ins), (">", op.outs)):
        _, found, place = key.partition(mark)
        if found:
            return values[int(place)] if int(place) < len(values) else None
    return _decisive(op)


def _form(op: Op) -> str:
    """Return which form of an op this is, where it has several: the memory of what it reads, or how it gathers."""
    first = op.ins[0].type if op.ins else None
    if op.name != "pto.tgather":
        return first.space.loc if isinstance(first, TileBuf) else ""
    if "maskPattern" in op.attributes or "mask_pattern" in op.attributes:
        return "mask"
    is_index = len(op.ins) > 1 and isinstance(op.ins[1].type, TileBuf)
    return "index" if is_index else word_of(op.attributes.get("cmpMode", "eq")).lower()


def _refuse(op: Op, value: Value, key: str, arch: str) -> None:
    name = value.of(TileBuf).element.name
    allowed = table()[key].on(arch)
    if name.removeprefix("u").removeprefix("s") in allowed:
        return
    short = op.name.removeprefix("pto.")
    if not allowed:
        message = f"there is no {short} on {CALLED[arch]}"
    else:
        message = f"{CALLED[arch]} {short} takes {' '.join(allowed)}, `%{value.name}` holds {name}"
    raise PtoTypeMismatchError(message, help=_way_out(value, key, arch, allowed))


def _way_out(value: Value, key: str, arch: str, allowed: tuple[str, ...]) -> str:
    element = value.of(TileBuf).element
    if arch == A3 and element.name.removeprefix("u").removeprefix("s") in table()[key].a5:
        return 'A5 takes it: say `pto.target_arch = "a5"` in the attributes of the module'
    if not allowed:
        return "write the kernel without it"
    if element.name in SMALL_FLOATS and key.startswith(_MOVES):
        return f"move its bytes: let the tile hold ui8, and see it as {element} with `pto.bitcast` where it is used"
    alike = [each for each in allowed if each.startswith("i") == element.is_integer] or allowed
    nearest = next((each for each in ("f32", "i32") if each in alike), alike[-1])
    return f"convert it to {nearest} with `pto.tcvt`"


def _decisive(op: Op) -> Value | None:
    """Return the tile whose elements an op is judged by."""
    written = op.outs if op.outs or op.ins else op.operands[-1:]
    read = op.ins if op.outs or op.ins else op.operands
    is_by_result = op.name.removeprefix("pto.") in _BY_RESULT
    tiles = (value for value in (written if is_by_result else read) if isinstance(value.type, TileBuf))
    return next(tiles, None)
