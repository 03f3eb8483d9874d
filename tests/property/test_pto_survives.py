"""Mutated PTO text: an error that says where, or a result the interpreter gives too, and soon; never anything else."""

from __future__ import annotations

import re
from collections.abc import Generator
from itertools import product
from random import Random

import pytest
from property.deadline import DidNotEnd, Elsewhere
from property.mutations import FILES, TEXTS, characters_changed, mutated
from property.native import named
from property.surviving import GRID, Fate, ends, fate, fate_as_text, lowered

from tilewright.errors import KernelError
from tilewright.pto.examples.lines import example
from tilewright.pto.ops.registry import OPS
from tilewright.pto.types import SPACES

MUTATIONS, RUNS = 20, 2
"""How many mutations of each file are lowered, and how many of them run."""
SECONDS = 120.0
"""What a text may take to be refused, or compiled and run: a hundred times what most take on a machine at rest."""

SLICES = 8
MEMORY = re.compile(rf"(?<=tile_buf<)\w+|(?<=loc=)\w+|(?<=, )(?:{'|'.join(SPACES)})(?=>)")
"""The memory of a tile or of a pointer."""

Survivor = Elsewhere[[str, int, bool, int], Fate]
Reader = Elsewhere[[str], Fate]


@pytest.fixture(scope="module")
def survivor() -> Generator[Survivor]:
    """What tries texts in a process of its own."""
    with Elsewhere(fate) as elsewhere:
        yield elsewhere


@pytest.fixture(scope="module")
def reader() -> Generator[Reader]:
    """What reads texts in a process of its own."""
    with Elsewhere(fate_as_text) as elsewhere:
        yield elsewhere


def _survive(survivor: Survivor, text: str, origin: str, seed: int, runs: bool, grid: int = GRID) -> Fate:
    with named(text, origin):
        try:
            found = survivor.within(SECONDS, text, seed, runs, grid)
        except DidNotEnd as error:
            pytest.fail(f"{origin}: {error}\n{text}", pytrace=False)
    assert found.kind != "failed", f"{origin}: {found.how}\n{text}"
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_a_mutated_text_is_refused_where_it_is_wrong_or_runs_as_the_interpreter_says(
    name: str, survivor: Survivor
) -> None:
    rng, left = Random(name), RUNS
    for number in range(MUTATIONS):
        text = mutated(TEXTS[name], rng)
        found = _survive(survivor, text, f"mutation {number} of {name}", number, left > 0)
        left -= found.kind in ("ran", "stopped")


@pytest.mark.parametrize("first", range(SLICES))
def test_the_mutated_example_of_an_op_is_refused_where_it_is_wrong_or_runs(first: int, survivor: Survivor) -> None:
    names = sorted(name for name, declared in OPS.items() if not declared.family)[first::SLICES]
    for number, name in enumerate(names):
        text = mutated(example(name), Random(name))
        _survive(survivor, text, f"the mutation of {name}", number, runs=number % 4 == 0, grid=1)


def test_an_example_whose_memories_are_others_is_refused_where_it_is_wrong_or_lowered(survivor: Survivor) -> None:
    for number, name in enumerate(sorted(OPS)):
        found = sorted({*MEMORY.findall(example(name))})
        rng = Random(name)
        memories = {word: rng.choice([*SPACES]) for word in found}
        text = MEMORY.sub(lambda word, memories=memories: memories[word[0]], example(name))
        if text and not OPS[name].family:
            _survive(survivor, text, f"other memories of {name}", number, runs=False)


@pytest.mark.parametrize("first", range(SLICES))
def test_a_mutated_text_is_laid_out_compared_and_linted_or_refused(first: int, reader: Reader) -> None:
    for path in FILES[first::SLICES]:
        rng, text = Random(path.name), path.read_text(encoding="utf-8")
        for change in (mutated, characters_changed):
            changed = change(text, rng)
            try:
                found = reader.within(SECONDS, changed)
            except DidNotEnd as error:
                pytest.fail(f"{path.name}: {error}\n{changed}", pytrace=False)
            assert found.kind != "failed", f"{path.name}: {found.how}\n{changed}"


def test_many_files_are_still_texts_when_something_is_changed() -> None:
    """Otherwise the tests here would try nothing but the parser."""
    kept = 0
    for number, text in product(range(3), TEXTS.values()):
        try:
            lowered(mutated(text, Random(f"{number} {text}")))
            kept += 1
        except KernelError:
            pass
    assert kept > 3 * len(TEXTS) // 5


def test_most_files_are_known_to_end() -> None:
    """Otherwise the tests here would run nothing."""
    assert sum(ends(text) for text in TEXTS.values()) > len(TEXTS) * 9 // 10
