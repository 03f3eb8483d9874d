"""Mutated PTO text: an error that says where, or a result the interpreter gives too; never anything else."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from property.native import named, quietly

from tilewright.core.program import Program
from tilewright.errors import ExecutionError, KernelError
from tilewright.pto.lower import lower
from tilewright.pto.module import Func
from tilewright.pto.text.parser import parse
from tilewright.pto.types import Ptr, Scalar
from tilewright.pto.verify import verify
from tilewright.runtime.compiler import compile

KERNELS = sorted((Path(__file__).parents[1] / "unit" / "pto").glob("*/kernels/*.pto"))
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in KERNELS}
MUTATIONS, RUNS = 40, 3
"""How many mutations of each file are lowered, and how many of them run."""

LENGTH, GRID = 4096, 2
NUMBERS = ("0", "1", "2", "3", "7", "8", "15", "16", "31", "32", "33", "64", "65", "128", "4096", "-1", "253952", "?")
TOKEN = re.compile(r"%[\w$]+|-?\d+(?:\.\d+)?|[\w.]+|\S")


def mutated(text: str, rng: Random) -> str:
    """Return a text with a few of its words changed: numbers for numbers, words for words of the same kind."""
    for _ in range(rng.randint(1, 3)):
        tokens = [m for m in TOKEN.finditer(text) if not m.group().startswith(("func", "module"))]
        chosen = tokens[rng.randrange(len(tokens))]
        text = text[: chosen.start()] + _other(chosen.group(), tokens, rng) + text[chosen.end() :]
    return text


def _other(word: str, tokens: list[re.Match[str]], rng: Random) -> str:
    if rng.random() < 0.1:
        return ""
    if re.fullmatch(r"-?\d+", word) and rng.random() < 0.7:
        return rng.choice(NUMBERS)
    alike = [m.group() for m in tokens if m.group()[0] == word[0] or m.group()[:4] == word[:4]]
    return rng.choice(alike)


def lowered(text: str) -> list[tuple[Func, Program]]:
    """Return the functions of a text that can be launched, as programs."""
    module = parse(text, "mutated.pto")
    verify(module)
    funcs = [f for f in module.funcs() if f.body is not None and not f.results]
    launchable = [f for f in funcs if all(isinstance(a.type, (Ptr, Scalar)) for a in f.arguments)]
    return [(f, lower(module, f, target="a5")) for f in launchable]


@pytest.mark.parametrize("name", TEXTS)
def test_a_mutated_text_is_lowered_or_refused_where_it_is_wrong(name: str) -> None:
    rng = Random(name)
    for _ in range(MUTATIONS):
        text = mutated(TEXTS[name], rng)
        try:
            with named(text, f"a mutation of {name}"):
                lowered(text)
        except KernelError as error:
            assert error.span.is_known, f"{error!r} says not where, in\n{text}"


def test_most_files_are_still_texts_when_a_word_is_changed() -> None:
    """Otherwise the tests here would try nothing but the parser."""
    rng, kept = Random(0), 0
    for text in TEXTS.values():
        try:
            lowered(mutated(text, rng))
            kept += 1
        except KernelError:
            pass
    assert kept > len(TEXTS) // 10


@pytest.mark.parametrize("name", [name for name in TEXTS if "scf.while" not in TEXTS[name]])
def test_a_mutated_text_runs_as_the_interpreter_says(name: str) -> None:
    rng, left = Random(f"{name} runs"), RUNS
    for _ in range(MUTATIONS):
        text = mutated(TEXTS[name], rng)
        try:
            programs = lowered(text)
        except KernelError:
            continue
        for func, program in programs:
            with quietly(), named(text, f"a mutation of {name}"):
                same(func, program, rng.randrange(1 << 30))
        left -= 1
        if not left:
            return


def same(func: Func, program: Program, seed: int) -> None:
    ours, theirs = (_outcome(func, program, platform, seed) for platform in ("cpu", "interpret"))
    if isinstance(ours, ExecutionError) or isinstance(theirs, ExecutionError):
        assert type(ours) is type(theirs), f"native: {ours}\ninterpreter: {theirs}"
        return
    for a, b in zip(ours, theirs, strict=True):
        wide = a.astype(np.float64), b.astype(np.float64)
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(*wide, rtol=2e-2, atol=1e-2)


def _outcome(func: Func, program: Program, platform: str, seed: int) -> list[Any] | ExecutionError:
    rng = np.random.default_rng(seed)
    values = [_argument(rng, a.type) for a in func.arguments]
    try:
        compile(program, platform=platform)(GRID, *values)
    except ExecutionError as error:
        assert error.span.is_known
        return error
    return [value for value in values if isinstance(value, np.ndarray)]


def _argument(rng: np.random.Generator, type_: object) -> Any:
    if isinstance(type_, Ptr):
        return rng.integers(0, 8, LENGTH).astype(type_.element.dtype.numpy)
    assert isinstance(type_, Scalar)
    return (
        float(rng.integers(1, 8))
        if type_.is_float
        else bool(rng.integers(2))
        if type_.name == "i1"
        else int(rng.integers(1, 8))
    )
