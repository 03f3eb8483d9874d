"""Grids of products: programs in which tiles of a matrix product are computed side by side, as people write them.

What varies is how the sum over the inner dimension is spelt, what happens to the operands before and to the sum after,
and how tiles meet the edges of tensors. Some do something that only tiles as they are written can do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from property.guards import guarded
from property.native import (
    are_refused,
    attempted,
    compiled_natively,
    guard_of,
    lowered,
    named,
    native_outcome,
    quietly,
)
from property.running import outcome, parsed

from tilewright.core.program import Program
from tilewright.passes import widen
from tilewright.passes.overwritten import overwritten_outputs
from tilewright.passes.product_grids import Wanted
from tilewright.passes.widen import Widened, widened

SMALL = Wanted(rows=24, columns=32, depth=12)
"""Tiles that leave several turns of each loop in small programs."""
DEEP = Wanted(rows=40, columns=64, depth=80)
"""The same, deep enough for matrix tiles, which take 32 or 64 products at a time."""
NARROW = Wanted(rows=64, columns=8, depth=48)
"""Tiles of fewer columns than most of these programs have."""

Draw = Callable[[int, int], int]

SEEDS = (0, 1, 3, 4)
"""Arguments of which there are nothing, few and many rows, columns and products where only calls know."""

DTYPES = ("FP32", "FP32", "FP16", "BF16", "INT8", "INT32")


def in_small_tiles(program: Program, wanted: Wanted) -> Widened:
    """Return a program with tiles that are small for a machine, and large beside those of these programs."""
    return widened(program, SMALL)


def in_deep_tiles(program: Program, wanted: Wanted) -> Widened:
    """Return a program with tiles that are about as large as blocks of matrix tiles."""
    return widened(program, DEEP)


def in_narrow_tiles(program: Program, wanted: Wanted) -> Widened:
    """Return a program with tiles that have fewer columns than those of most programs, and more rows."""
    return widened(program, NARROW)


def check_grid(text: str, origin: str, tiled: Callable[[Program, Wanted], Widened] = in_small_tiles) -> None:
    """Fail unless native code in other tiles leaves what the interpreter leaves, or refuses what that refuses."""
    program = parsed(text)
    with pytest.MonkeyPatch.context() as patch, quietly(), guarded(guard_of(text)):
        patch.setattr(widen, "widened", tiled)
        compiled, _ = lowered(program)
        native = compiled_natively(compiled, text, origin)
        filled = overwritten_outputs(compiled, compiled["main"])
        for seed in SEEDS:
            expected = attempted(outcome, program, seed)
            with named(text, f"{origin}, run on arguments of seed {seed}"):
                ours = attempted(native_outcome, program, native, seed, filled, strided=seed % 2 == 0)
            are_refused(program, seed, ours, expected)


def grid(draw: Draw, dtypes: Sequence[str] = DTYPES, deepest: int = 50, *, turned_few: bool = False) -> str:
    """Return the text of a program that multiplies elements of some types, up to so many of a row.

    One of `turned_few` has few rows, and a right matrix that lies on its side.
    """

    def choose(*options: str) -> str:
        return options[draw(0, len(options) - 1)]

    dtype = choose(*dtypes)
    total = "FP32" if dtype in ("FP32", "FP16", "BF16") else "INT32"
    tm, tn, tk = draw(1, 8 if draw(0, 2) == 0 else 13), draw(1, 17), draw(1, 9)
    most = 16 if turned_few else 8 if draw(0, 2) == 0 and tm <= 8 else 70
    m, n, k = _extent(draw, tm, most), _extent(draw, tn, 70), _extent(draw, tk, deepest)
    m, n, k = (choose("M", "N") if draw(0, 3) == 0 else extent for extent in (m, n, k))
    more = [draw(0, 40) if extent.isdigit() and draw(0, 3) == 0 else 0 for extent in (m, n)]
    rows, columns = (f"{extent} + {extra}" if extra else extent for extent, extra in zip((m, n), more, strict=True))
    is_even = not any(more) and _divides(m, tm) and _divides(n, tn) and _divides(k, tk)
    pad = choose("", "", ", pad=0") if is_even else ""
    is_turned = draw(0, 3) == 0 or turned_few
    left = f"pl.load(a, [i, {{k}}], [{tm}, {tk}]{pad})"
    right = f"pl.load(b, [{{k}}, j], [{tk}, {tn}]{pad})"
    turned = choose("tensor", "pl.transpose_view({})", "pl.transpose({}, 0, 1)", "{}.T") if is_turned else ""
    if turned == "tensor":
        right = right.replace("load(b,", "load(bt,")
    elif turned:
        right = turned.format(f"pl.load(b, [j, {{k}}], [{tn}, {tk}]{pad})")
    weights = dtype
    if dtype == "FP32" and draw(0, 2) == 0:
        weights, right = "INT8", f"pl.cast({right}, pl.FP32)"
    how = choose("peeled", "zeros", "added", "adding", "begun", "either", "sometimes")
    sums, zeros = (_sum(each, left, right, (tm, tn, tk), k, total) for each in (how, "zeros"))
    then = choose("nothing", "bias", "doubled", "rounded", "row_sum", "itself", "made first")
    after, bias, out = _after(then, (tm, tn), total)
    loops = [f"for i in pl.parallel(0, {m}, {tm}):", f"for j in pl.parallel(0, {n}, {tn}):"]
    if _divides(k, 2 * tk) and not pad and draw(0, 2) == 0:  # parts of sums that are added to memory
        sums = [line.replace(f"pl.range(0, {k},", f"pl.range(s * {2 * tk}, s * {2 * tk} + {2 * tk},") for line in zeros]
        loops.append(f"for s in pl.parallel({int(k) // (2 * tk)}):")
        after, bias, out = ["pl.store(acc, [i, j], c, atomic=pl.AtomicType.Add)"], total, total
    if m.isdigit() and draw(0, 3) == 0:  # a loop that counts tiles
        loops[0] = f"for i in pl.parallel({-(-int(m) // tm)}):"
        sums, after = ([line.replace("[i, ", f"[i * {tm}, ") for line in lines] for lines in (sums, after))
    nest = [*(loops if draw(0, 1) else loops[::-1]), "with pl.at(level=pl.Level.CORE_GROUP):"]
    sums = _more_terms(sums, choose("", "", "", "", "a turn", "behind"))
    b_shape = f"{columns}, {k}" if is_turned else f"{k}, {columns}"
    body = "        bt = pl.transpose(b, 0, 1)\n" if turned == "tensor" else ""
    body += "\n".join([f"        {'    ' * at}{line}" for at, line in enumerate(nest)])
    body += "".join(f"\n        {'    ' * len(nest)}{line}" for line in [*sums, *after])
    return f"""
import tilewright.language as pl
M, N = pl.dynamic("M"), pl.dynamic("N")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[{rows}, {k}], pl.{dtype}], b: pl.Tensor[[{b_shape}], pl.{weights}],
        bias: pl.Tensor[[1, {columns}], pl.{bias}], c: pl.InOut[pl.Tensor[[{rows}, {columns}], pl.{out}]],
    ):
{body}
"""


def _extent(draw: Draw, step: int, most: int) -> str:
    """Return an extent of at least one step: every other one of whole steps."""
    extent = draw(step, most)
    return str(extent // step * step if draw(0, 1) else extent)


def _divides(extent: str, step: int) -> bool:
    return extent.isdigit() and int(extent) % step == 0


def _sum(how: str, left: str, right: str, tile: tuple[int, int, int], k: str, total: str) -> Sequence[str]:
    """Return the statements that sum products over the inner dimension."""
    tm, tn, tk = tile
    start, loop = f"acc = pl.tile.full([{tm}, {tn}], dtype=pl.{total}, value=0)", f"for k in pl.range(0, {k}, {tk}):"
    at = {"left": left.format(k="k"), "right": right.format(k="k")}
    if how == "peeled" and k.isdigit() and not tk < int(k) < 2 * tk:  # a second step that is surely cut says so
        first = f"acc = pl.matmul({left.format(k=0)}, {right.format(k=0)})"
        again = f"for k in pl.range({tk}, {k}, {tk}):"
        return [first, again, "    acc = pl.matmul_acc(acc, {left}, {right})".format(**at)]
    if how == "zeros":
        return [start, loop, "    acc = pl.matmul_acc(acc, {left}, {right})".format(**at)]
    if how in ("added", "adding"):  # the first of two says how much is valid
        product = f"    product = pl.matmul({at['left']}, {at['right']})"
        return [start, loop, product, "    acc = product + acc" if how == "added" else "    acc = acc + product"]
    if how == "sometimes":
        return [start, loop, f"    if k != {tk}:", "        acc = pl.matmul_acc(acc, {left}, {right})".format(**at)]
    if how == "either":
        factors = [f"    x, y = {at['left']}, {at['right']}", "    if k == 0:", "        acc = pl.matmul(x, y)"]
        return [start, loop, *factors, "    else:", "        acc = pl.matmul_acc(acc, x, y)"]
    begun = f"acc = pl.tile.create([{tm}, {tn}], dtype=pl.{total}, target_memory=pl.Mem.Acc)"
    return [begun, loop, "    acc = pl.matmul_acc(acc, {left}, {right}, init_cond=k == 0)".format(**at)]


def _more_terms(sums: Sequence[str], where: str) -> Sequence[str]:
    """Return statements that sum products with one more a turn, or of what the first multiplies behind the loop."""
    terms = [line for line in sums if line.startswith("    acc = pl.matmul_acc(acc, ")]
    if not where or len(terms) != 1:
        return sums
    return [*sums, terms[0] if where == "a turn" else re.sub(r"\bk\b", "0", terms[0].strip())]


def _after(how: str, tile: tuple[int, int], total: str) -> tuple[Sequence[str], str, str]:
    """Return the statements that finish and store a sum, and the types of the row beside it and of the output."""
    tm, tn = tile
    row = f"row = pl.load(bias, [0, j], [1, {tn}])"
    store = "pl.store(acc, [i, j], c)"
    if how == "bias":
        return [row, "acc = pl.col_expand_add(acc, row)", store], total, total
    if how == "doubled":
        return ["acc = acc + acc", store], total, total
    if how == "rounded" and total == "FP32":
        return ["pl.store(pl.cast(pl.relu(acc), pl.BF16, mode='rint'), [i, j], c)"], total, "BF16"
    if how == "row_sum" and total == "FP32":
        return ["acc = pl.row_expand_sub(acc, pl.row_max(acc))", store], total, total
    if how == "made first":
        return [f"acc = pl.tile.full([{tm}, {tn}], dtype=pl.{total}, value=1) - acc", store], total, total
    if how == "itself":
        return [f"acc = acc + pl.load(c, [i, j], [{tm}, {tn}])", store], total, total
    return [store], total, total
