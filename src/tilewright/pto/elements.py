"""Element types: which of them each op on tiles takes, on A2/A3 and on A5. The reference page prints this table.

An integer's name stands for its width, whatever its sign. An op that is not here takes whatever its form and rule let
through; one without an entry for an architecture does not exist there.
"""

from __future__ import annotations

from functools import cache

from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.module import Op, Value
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
trandom | | i32
"""
_BY_RESULT = frozenset(["texpands", "tsel", "tsels", "ttri", "trandom", "mgather"])
"""The ops whose result decides, since what they read holds something else."""


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
    """Return what each op takes, by its full name."""
    found: dict[str, Taken] = {}
    for line in _TABLE.strip().splitlines():
        names, older, added = (part.split() for part in line.split("|"))
        taken = Taken(tuple(older), tuple(dict.fromkeys([*older, *added])))
        found.update({f"pto.{name}": taken for name in names})
    return found


def refuse_elements(op: Op, arch: str) -> None:
    """Raise where an op does not take the elements it is given on an architecture."""
    taken = table().get(op.name)
    value = _decisive(op) if taken else None
    if taken is None or value is None:
        return
    name = value.of(TileBuf).element.name
    allowed = taken.on(arch)
    if name.removeprefix("u").removeprefix("s") in allowed:
        return
    short = op.name.removeprefix("pto.")
    if not allowed:
        message = f"there is no {short} on {CALLED[arch]}"
    else:
        message = f"{CALLED[arch]} {short} takes {' '.join(allowed)}, `%{value.name}` holds {name}"
    raise PtoTypeMismatchError(message, help=_way_out(op, name, arch, allowed))


def _way_out(op: Op, name: str, arch: str, allowed: tuple[str, ...]) -> str:
    if arch == A3 and name.removeprefix("u").removeprefix("s") in table()[op.name].a5:
        return 'A5 takes it: say `pto.target_arch = "a5"` in the attributes of the module'
    return f"convert it to {allowed[-1]} with `pto.tcvt`" if allowed else "write the kernel without it"


def _decisive(op: Op) -> Value | None:
    """Return the tile whose elements an op is judged by."""
    written = op.outs if op.outs or op.ins else op.operands[-1:]
    read = op.ins if op.outs or op.ins else op.operands
    is_by_result = op.name.removeprefix("pto.") in _BY_RESULT
    tiles = (value for value in (written if is_by_result else read) if isinstance(value.type, TileBuf))
    return next(tiles, None)
