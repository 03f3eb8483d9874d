"""Mutated kernels end in time: with a located mistake or a result, never with a bug of ours, a crash or a hang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from property.mutants import Subject, mutated, subjects
from property.survival import RAN, REFUSED, Fate, Mutant, fates

SUBJECTS = subjects()


def mutants(seed: int, count: int) -> Iterator[Mutant]:
    """Yield mutants of every kernel in turn."""
    random = Random(seed)
    order: list[Subject] = []
    for number in range(count):
        order = order or random.sample(SUBJECTS, len(SUBJECTS))
        subject = order.pop()
        yield Mutant(f"{subject.name}-{seed}-{number}", mutated(subject, random), subject.entry, subject.example)


def survived(found: Sequence[Fate]) -> Counter[str]:
    """Return how often each outcome was met; fail for the first that is not fine."""
    for fate in found:
        if not fate.is_fine:
            pytest.fail(f"{fate.mutant.name}: {fate.outcome}\n\n{fate.mutant.text}", pytrace=False)
    return Counter(fate.outcome for fate in found)


def test_the_kernels_to_mutate_run() -> None:
    whole = [Mutant(subject.name, subject.text, subject.entry, subject.example) for subject in SUBJECTS]
    wrong = [f"{fate.mutant.name}: {fate.outcome}" for fate in fates(whole) if fate.outcome != RAN]
    assert wrong == []


def test_a_mutated_kernel_is_refused_or_runs_in_time() -> None:
    outcomes = survived(list(fates(mutants(12, 220))))
    assert outcomes[RAN] > 30 and outcomes[REFUSED] > 50  # else this would try too little or too much
