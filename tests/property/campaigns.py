"""Campaigns: what `make fuzz` tries, each attempt from one number; the tests try a slice of the same.

A campaign is a function that takes a number and fails where something is wrong. One line in `CAMPAIGNS` makes it part
of `make fuzz`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from ops.streamed import take_for_large
from ops.test_uses import SHAPED, check_uses
from property import test_parser_survives as kernels
from property import undefined
from property.element_grids import element_grid
from property.folded_rows import folded_rows
from property.launched import check_launches
from property.mutations import FILES, TEXTS, characters_changed, mutated
from property.narrow import narrow
from property.native import check, check_errors, named, quietly
from property.online_folds import check_fold, fold
from property.product_grids import check_grid, grid, in_deep_tiles
from property.programs import program
from property.survival import fates
from property.surviving import GRID, fate, fate_as_text
from property.test_exports import check_export
from property.test_mutants import mutants, survived
from property.test_passes import check_idempotence, check_meaning
from property.test_round_trip import check_stage
from property.test_steps import check_steps
from property.ways import covered

from tilewright.errors import ExecutionError, KernelError
from tilewright.passes.pipeline import DEFAULT
from tilewright.pto.examples.lines import example
from tilewright.pto.ops.registry import OPS

Campaign = Callable[[int], object]


def _about_an_op(number: int) -> None:
    op = covered()[number % len(covered())]
    _with_program(check, 40, about=[op])(number)


def _product_grid(number: int) -> None:
    check_grid(grid(Random(number).randint), f"grid {number}")


def _matrix_tiles(number: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_AMX", "emulated")
        for ends in (False, True):
            text = fold(Random(number).randint, ("BF16",), widest=80, ends_with_rows=ends)
            check_fold(text, f"tiles {number}")
        text = grid(Random(number).randint, ("BF16", "INT8", "UINT8"), deepest=200)
        check_grid(text, f"tiles {number}", in_deep_tiles)


def _online_fold(number: int) -> None:
    check_fold(fold(Random(number).randint), f"fold {number}")
    check_fold(fold(Random(number).randint, ends_with_rows=True), f"fold {number} that ends with its rows")


def _launches(number: int) -> None:
    check_launches(Random(number).randint, f"<launches {number}>")


def _narrow(number: int) -> None:
    check(narrow(Random(number).randint), f"narrow {number}")


def _elements(number: int) -> None:
    with _maybe_streamed(number):
        check(element_grid(Random(number).randint), f"elements {number}")


def _rows(number: int) -> None:
    with _maybe_streamed(number):
        check(folded_rows(Random(number).randint), f"rows {number}")


def _streamed(number: int) -> None:
    with _maybe_streamed(0):
        _with_program(check, 40)(number)


@contextmanager
def _maybe_streamed(number: int) -> Generator[None]:
    """Take all outputs for large ones, which are written past the caches, every third time."""
    with pytest.MonkeyPatch.context() as patch:
        if number % 3 == 0:
            take_for_large(patch)
        yield


def _every_use(number: int) -> None:
    check_uses(SHAPED[number % len(SHAPED)], number, EVERY_PAIR, 4)


EVERY_PAIR = 1000
"""More pairs of element types than any op takes."""


def _with_program(action: Callable[[str, str], object], budget: int, **options: Any) -> Campaign:
    """Return what tries an action on the program that a number leads to."""

    def text_of(number: int) -> str:
        return program(Random(number).randint, budget, **options)

    def campaign(number: int) -> None:
        action(text_of(number), f"the program of {number}")

    vars(campaign)["text_of"] = text_of
    return campaign


def text_of(name: str, number: int) -> str:
    """Return the program that an attempt of a campaign is about, nothing where it is about something else."""
    found = vars(CAMPAIGNS[name]).get("text_of")
    return found(number) if found is not None else ""


def _quiet(action: Callable[[str], object]) -> Callable[[str, str], object]:
    """Return an action on a program's text that needs no native code."""

    def quiet(text: str, origin: str) -> None:
        with quietly(), named(text, origin):
            action(text)

    return quiet


def _risky(text: str, origin: str) -> None:
    """Check a program that may be wrong; one that already the compiler refuses tells nothing."""
    try:
        check_errors(text, origin)
    except ExecutionError:
        raise
    except KernelError:
        return


def _round_trip(number: int) -> None:
    def action(text: str) -> None:
        check_stage(text, number % (len(DEFAULT) + 1))

    _with_program(_quiet(action), 80)(number)


def _broken_kernel(number: int) -> None:
    rng = Random(number)
    text = kernels.mutated(rng.choice([*kernels.TEXTS.values()]), rng)
    with named(text, f"the broken kernel of {number}"):
        kernels.survive(text)


def _broken_pto(number: int) -> None:
    rng = Random(number)
    name = rng.choice(sorted(TEXTS))
    _survives(mutated(TEXTS[name], rng), name, number)


def _broken_characters(number: int) -> None:
    rng = Random(number)
    path = rng.choice(FILES)
    text = rng.choice((mutated, characters_changed))(path.read_text(encoding="utf-8"), rng)
    with named(text, f"the mutation of {path.name} from {number}"):
        found = fate_as_text(text)
    assert found.kind != "failed", found.how


def _broken_example(number: int) -> None:
    rng = Random(number)
    name = rng.choice(sorted(name for name, declared in OPS.items() if not declared.family))
    _survives(mutated(example(name), rng), name, number, grid=1)  # every block would write the same


def _survives(text: str, name: str, number: int, grid: int = GRID) -> None:
    with named(text, f"the mutation of {name} from {number}"):
        found = fate(text, number % (1 << 30), grid=grid)
    assert found.kind != "failed", found.how


CAMPAIGNS: dict[str, Campaign] = {
    "op": _about_an_op,  # random programs about each op: native code against the interpreter
    "program": _with_program(check, 80),  # large ones
    "risky": _with_program(_risky, 40, risk=12),  # programs whose indices may lie anywhere: the same errors
    "streamed": _streamed,  # with all outputs taken for large ones, which are written past the caches
    "grid": _product_grid,  # grids of products in the machine's tiles
    "tiles": _matrix_tiles,  # products and attention on matrix tiles that are emulated
    "launches": _launches,  # hand-written kernels in functions, on views that share memory: what NumPy does
    "narrow": _narrow,  # rows of a few columns, taken together
    "elements": _elements,  # grids of tiles, gone along rows of memory
    "rows": _rows,  # rows that are folded several times, a few of them in each pass
    "fold": _online_fold,  # attention in the machine's tiles
    "passes": _with_program(_quiet(check_meaning), 80),  # every pass keeps what a program computes
    "idempotence": _with_program(_quiet(check_idempotence), 80),  # passes leave their own result alone
    "export": _with_program(_quiet(check_export), 40),  # programs as PTO text, which computes the same bits
    "steps": _with_program(_quiet(check_steps), 80),  # programs run line by line
    "text": _round_trip,  # programs read back as they were, at every stage
    "kernel": _broken_kernel,  # mutated kernels: a located mistake, or a program
    "use": _every_use,  # every pair of element types, pairs of keywords: native code against the interpreter
    "undefined": undefined.check,  # tiles that nobody wrote all of: refused by both, or the same
    "mutant": lambda number: survived(list(fates(mutants(number, 1)))),  # mutated kernels, compiled and run
    "pto": _broken_pto,  # mutated PTO texts: a located mistake, or what the interpreter says
    "layout": _broken_characters,  # PTO texts, of which characters are missing: a located mistake, or the same laid out
    "example": _broken_example,  # the same of the example of each op of PTO
}
"""What is tried, by name."""
