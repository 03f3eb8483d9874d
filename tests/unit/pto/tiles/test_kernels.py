"""Kernels: every `.pto` file beside this one, on every target, held to its NumPy reference."""

from __future__ import annotations

from typing import Any, cast
from zlib import crc32

import numpy
import pytest
from soon import soon
from unit.pto.tiles import elementwise_cases, movement_cases, program_cases, scalar_cases
from unit.pto.tiles.cases import ABSOLUTE, CASES, ELEMENTS, RELATIVE, Case
from unit.pto.tiles.running import KERNELS, is_array, launched, lowered, read

np = cast("Any", numpy)
MODULES = (elementwise_cases, movement_cases, program_cases, scalar_cases)
"""Where cases are noted, by being imported."""
WORDS = {np.dtype(dtype): word for word, dtype in ELEMENTS.items()}


def test_every_kernel_has_a_case() -> None:
    assert {path.stem for path in KERNELS.glob("*.pto")} == {case.kernel for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_kernel_gives_what_numpy_gives(case: Case, targets: list[str]) -> None:
    path = KERNELS / f"{case.kernel}.pto"
    module = read(case.text(path.read_text()), path.name)
    given, expected = case.given(), case.given()
    with np.errstate(all="ignore"):
        case.reference(**expected)
    before = [v for v in given.values() if is_array(v)]
    wanted = [v for v in expected.values() if is_array(v)]
    program = lowered(module, case.kernel, case.target)
    for target in targets:
        with soon(crc32(case.name.encode()) % 2 == 0):
            found = launched(program, case.kernel, target, case.grid, list(given.values()))
        for old, new, want in zip(before, found, wanted, strict=True):
            hold(case, f"{case.name} on {target}", old.reshape(-1), new, want.reshape(-1))


def hold(case: Case, what: str, old: Any, new: Any, want: Any) -> None:
    """Hold a result to what is wanted of it: what should be as before is, to the bit."""
    kept = bits(want) == bits(old)
    strayed = np.flatnonzero(kept & (bits(new) != bits(old)))
    touched = np.flatnonzero(~kept)
    assert not len(strayed) or close_enough(case, new[strayed], want[strayed]).all() and _inside(strayed, touched), (
        f"{what}: elements {strayed[:8]} must stay as they are"
    )
    close(case, what, new, want)


def _inside(strayed: Any, touched: Any) -> bool:
    """Return whether elements lie among others that change: a result can be what was there before."""
    return bool(len(touched) and touched[0] < strayed[0] and strayed[-1] < touched[-1])


def bits(array: Any) -> Any:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def close_enough(case: Case, new: Any, want: Any) -> Any:
    word = WORDS[want.dtype]
    if case.exact or word not in RELATIVE:
        return (bits(new) == bits(want)) | ((new == 0) & (want == 0))
    a, b = new.astype(np.float64), want.astype(np.float64)
    near = np.abs(a - b) <= case.slack * (ABSOLUTE[word] + RELATIVE[word] * np.abs(b))
    return near | (a == b) | (np.isnan(a) & np.isnan(b))


def close(case: Case, what: str, new: Any, want: Any) -> None:
    with np.errstate(all="ignore"):
        wrong = np.flatnonzero(~close_enough(case, new, want))
    assert not len(wrong), f"{what}: {len(wrong)} wrong, at {wrong[:8]}: {new[wrong[:8]]}, wanted {want[wrong[:8]]}"
