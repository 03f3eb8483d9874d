"""Online folds: attention written block by block, in whatever tiles, spellings and lengths.

In other tiles weights are scaled to other maxima on the way, and rounded there: such programs are held to the
interpreter closely on numbers, which are small then, and what is no finite number there is none here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from property.guards import guarded
from property.native import compiled_natively, guard_of, lowered, native_outcome, quietly
from property.product_grids import Draw
from property.programs import inputs_for
from property.running import outcome, parsed

from tilewright.core.program import Program
from tilewright.passes import shared_prefixes, widen
from tilewright.passes.overwritten import overwritten_outputs
from tilewright.passes.product_grids import Wanted
from tilewright.passes.shared_prefixes import run as sharing
from tilewright.passes.widen import Widened, widened

SMALL = Wanted(queries=16, keys=16)
"""Tiles that leave several turns of each loop in small programs."""
TALL = Wanted(queries=96, keys=48)
"""The same for rows that share what comes before them: several tiles of a few rows."""


def in_small_tiles(program: Program, wanted: Wanted) -> Widened:
    """Return a program with tiles that are small for a machine, and large beside those of these programs."""
    return widened(program, SMALL)


def in_few_turns(program: Program, wanted: Wanted) -> tuple[Program, tuple[str, ...]]:
    """Return a program whose folds share what comes before as many rows as a small program has."""
    return sharing(program, TALL)


def check_fold(text: str, origin: str) -> None:
    """Fail unless a program's native code in small tiles leaves about what the interpreter leaves."""
    program, tolerance = parsed(text), 3e-2 if "BF16" in text else 1e-4
    with pytest.MonkeyPatch.context() as patch, quietly(), guarded(guard_of(text)):
        patch.setattr(widen, "widened", in_small_tiles)
        patch.setattr(shared_prefixes, "run", in_few_turns)
        patch.setattr(shared_prefixes, "FEWEST", 1)
        compiled, _ = lowered(program)
        native = compiled_natively(compiled, text, origin)
        filled = overwritten_outputs(compiled, compiled["main"])
        for seed in range(4):
            expected, ours = outcome(program, seed), native_outcome(program, native, seed, filled)
            wanted, found = np.float32(expected.tensors[-1]), np.float32(ours.tensors[-1])
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted), err_msg=text)
            if all(np.isfinite(np.asarray(given, np.float32)).all() for given in inputs_for(program, seed)):
                np.testing.assert_allclose(wanted, found, tolerance, tolerance, err_msg=text)


def fold(
    draw: Draw, dtypes: Sequence[str] = ("FP32", "FP32", "BF16"), widest: int = 17, *, ends_with_rows: bool = False
) -> str:
    """Return the text of a program that attends to elements of some types, up to so many of a row.

    Where each fold `ends_with_rows`, their number is one of which several are taken together.
    """

    def choose(*options: str) -> str:
        return options[draw(0, len(options) - 1)]

    rows, keys, dim = draw(1, 20), draw(1, 8 if draw(0, 2) == 0 else 20), draw(2, widest)
    most = 200 if ends_with_rows else 70
    if ends_with_rows:
        rows = (2, 12, 16, 24, 32)[draw(0, 4)]
        keys = rows * draw(1, 2) if draw(0, 1) else rows
    length = rows * draw(1, most // rows)  # what is carried has as many rows as somebody said
    others = length if length >= keys and (ends_with_rows or draw(0, 1)) else draw(keys, most)
    is_causal = ends_with_rows or draw(0, 1) == 1
    dtype = choose(*dtypes)
    stop = choose(f"pl.min(i + {rows}, {others})", str(others)) if is_causal else str(others)
    if is_causal and others >= length and (keys % rows == 0 or others >= length + rows):
        stop = f"i + {rows}"
    scores = f"pl.matmul(queries, {choose('pl.transpose_view(x)', 'x.T')}) * 0.25"
    hidden = (
        f"pl.arange(k, k + {keys}) {choose('<=', '<')} place" if draw(0, 3) else f"place >= pl.arange(k, k + {keys})"
    )
    weights = choose("pl.exp(scores - largest)", "pl.row_expand_expdif(scores, largest)")
    total = choose("total * kept + pl.row_sum(weights)", "pl.row_sum(weights) + kept * total")
    halves = "weights" if dtype == "FP32" else "pl.cast(weights, pl.BF16, mode='rint')"
    product = f"pl.matmul({halves}, y)"
    average = f"average * kept + {product}"
    if draw(0, 1):
        average = f"pl.matmul_acc(pl.row_expand_mul(average, kept), {halves}, y)"
    own = choose("", "", "", "weights = weights / pl.row_sum(weights)", "best = best * 0.5")
    lines = [
        f"queries = pl.load(q, [i, 0], [{rows}, {dim}])",
        f"place = pl.iota([{rows}, 1], axis=0) + i",
        f"best = pl.tile.full([{rows}, 1], dtype=pl.FP32, value=-1e30)",
        f"total = pl.tile.full([{rows}, 1], dtype=pl.FP32, value=0.0)",
        f"average = pl.tile.full([{rows}, {dim}], dtype=pl.FP32, value=0.0)",
        f"for k in pl.range(0, {stop}, {keys}):",
        f"    x, y = pl.load(a, [k, 0], [{keys}, {dim}]), pl.load(b, [k, 0], [{keys}, {dim}])",
        f"    scores = {scores}",
        *([f"    scores = pl.where({hidden}, scores, float('-inf'))"] if is_causal else []),
        "    largest = pl.maximum(best, pl.row_max(scores))",
        f"    weights, kept = {weights}, pl.exp(best - largest)",
        *([f"    {own}"] if own else []),
        f"    total = {total}",
        f"    average = {average}",
        "    best = largest",
        "pl.store(average / (total + 1e-6), [i, 0], c)",
    ]
    body = "\n".join("                " + line for line in lines)
    return f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, q: pl.Tensor[[{length}, {dim}], pl.{dtype}], a: pl.Tensor[[{others}, {dim}], pl.{dtype}],
        b: pl.Tensor[[{others}, {dim}], pl.{dtype}], c: pl.InOut[pl.Tensor[[{length}, {dim}], pl.FP32]],
    ):
        for i in pl.parallel(0, {length}, {rows}):
            with pl.at(level=pl.Level.CORE_GROUP):
{body}
"""
