"""Foreign names: what authors who come from NumPy, torch or Triton call something that the language has."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.op import OPS

_FULL = "pl.tile_full(shape, dtype=pl.FP32, value={}) is a tile of one number, pl.full a tensor"
_REDUCED = "pl.row_{0} folds each row to one element, pl.col_{0} each column"
_CHOSEN = "pl.sel(pl.cmp(a, b, cmp_type=pl.CmpType.GT), x, y) chooses element by element"
_CONVERTED = "pl.cast(x, pl.FP16) converts elements"
_BOUNDED = "pl.minimum(pl.maximum(x, low), high) keeps elements within bounds"
_BLOCK = "the index of `for i in pl.parallel(...)` says which turn this is, pl.get_block_idx() which block of pl.spmd"
_POWER = "multiply it with itself, or use pl.exp(pl.log(x) * y)"

_MEANT: Mapping[str, str] = {
    "amax": _REDUCED.format("max"),
    "amin": _REDUCED.format("min"),
    "astype": _CONVERTED,
    "atomic_add": "pl.store(..., atomic=pl.AtomicType.Add) adds to what is there",
    "cdiv": "write (a + b - 1) // b",
    "clamp": _BOUNDED,
    "clip": _BOUNDED,
    "dot": "pl.matmul(a, b) is the matrix product",
    "max": _REDUCED.format("max") + ", pl.maximum takes two tiles",
    "mean": "divide pl.row_sum(x) or pl.col_sum(x) by the number of elements",
    "min": _REDUCED.format("min") + ", pl.minimum takes two tiles",
    "ones": _FULL.format("1.0"),
    "ones_like": _FULL.format("1.0"),
    "pow": _POWER,
    "power": _POWER,
    "prod": _REDUCED.format("prod"),
    "program_id": _BLOCK,
    "sigmoid": "write 1.0 / (pl.exp(-x) + 1.0)",
    "sum": _REDUCED.format("sum"),
    "to": _CONVERTED,
    "where": _CHOSEN,
    "zeros": _FULL.format("0.0"),
    "zeros_like": _FULL.format("0.0"),
}
"""What to write for each name; a name that is also one of ours is another thing here."""


def meant(name: str, of: str = "x") -> str:
    """Return a help line for a name of another library: what does it here to the value `of`, or nothing."""
    if name in _MEANT:
        return _MEANT[name]
    return f"write pl.{name}({of})" if f"tile.{name}" in OPS else ""
