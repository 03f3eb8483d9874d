"""Tables of sixteen floats, which are vectors where there is AVX-512: a permutation takes a float for each lane."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.storage import through
from tilewright.native.llvm import F32, I32, PTR, Builder, Value, lanes, vector
from tilewright.native.terms import Term, spelled

COUNT = 16


def looked_up(name: str, row: Sequence[float], place: Term) -> Term:
    """Return one of sixteen floats in each lane, by the lowest bits of integers."""
    b, count = place.b, lanes(place.type)
    listed = ", ".join(f"{F32} {spelled(F32, number)}" for number in row)
    if count == COUNT:
        return Term(b, _permuted(b, Value(vector(F32, COUNT), f"<{listed}>"), place.value))
    b.module.declare(f"@{name} = internal constant [{COUNT} x {F32}] [{listed}]")
    pointers = vector(PTR, count)
    where = b.value(pointers, f"getelementptr {F32}, {PTR} @{name}, {(place & (COUNT - 1)).value}")
    return Term(b, b.load(F32, where, 4) if count == 1 else through(b, where, vector(F32, count)))


def _permuted(b: Builder, table: Value, place: Value) -> Value:
    type_ = vector(I32, COUNT)
    name = b.module.intrinsic("llvm.x86.avx512.permvar.sf.512", table.type, table.type, type_)
    return b.call(table.type, name, table, place)
