"""Forms of numbers: what they say is what C's `printf` says."""

from __future__ import annotations

import ctypes
import math
import random

import pytest

from tilewright.dtypes import FP64, INT64, UINT64, DataType
from tilewright.ops.number_forms import FLOAT, SIGNED, UNSIGNED, number_form

NUMBERS: dict[str, tuple[DataType, list[float]]] = {
    SIGNED: (INT64, [0, 1, -1, 15, -200, 2**63 - 1, -(2**63)]),
    UNSIGNED: (UINT64, [0, 1, 8, 255, 2**64 - 1]),
    FLOAT: (FP64, [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 1e300, -1e-300, 123456.789, 0.1]),
}


def in_c(form: str, number: float, letters: str) -> str:
    """Return what C writes."""
    made = ctypes.create_string_buffer(4096)
    kinds = {SIGNED: ctypes.c_longlong, UNSIGNED: ctypes.c_ulonglong, FLOAT: ctypes.c_double}
    write = ctypes.CDLL(None).snprintf
    write.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]
    write(made, len(made), form.encode(), kinds[letters](number))  # pyright: ignore[reportArgumentType]
    return made.value.decode()


@pytest.mark.parametrize("letters", NUMBERS)
def test_a_form_says_what_c_says(letters: str) -> None:
    rng, (dtype, numbers) = random.Random(letters), NUMBERS[letters]
    for _ in range(3000):
        flags, number = "".join(rng.sample("-+ #0", rng.randint(0, 3))), rng.choice(numbers)
        text = f"%{flags}{rng.choice(['', '3', '12'])}{rng.choice(['', '.', '.0', '.3', '.10'])}{rng.choice(letters)}"
        form = number_form(text, dtype)
        assert form is not None
        said = form.said(number)
        assert said == in_c(form.in_c(), number, letters), text
        assert len(said) < form.room


@pytest.mark.parametrize("text", ["d", "%", "%s", "%lld", "%1000d", "%d ", "%-d%d", "%f"])
def test_what_is_no_form_of_an_integer(text: str) -> None:
    assert number_form(text, INT64) is None
