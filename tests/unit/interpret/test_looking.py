"""Looking: what NumPy and Python make of the values of a kernel that is stepped through."""
# pyright: reportCallIssue=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.interpret.looking_kernels import (
    SEEN,
    catching,
    collecting,
    deciding,
    filling,
    hiding,
    leaving,
    looking,
    misspelling,
    rebinding,
    storing,
    using,
)

import tilewright.language as pl
from tilewright.errors import ParserError, UnknownAttributeError

pytestmark = pytest.mark.filterwarnings("ignore:divide by zero")


@pytest.mark.parametrize("dtype", [pl.FP32, pl.BF16, pl.INT32], ids=str)
def test_what_nobody_wrote_is_masked_in_all_that_is_computed_from_it(
    dtype: pl.DataType, capsys: pytest.CaptureFixture[str]
) -> None:
    SEEN.clear()
    x = np.arange(1, 7).reshape(2, 3).astype(dtype.numpy)
    with pytest.raises(AssertionError, match=r"there are 4"):
        looking.debug(x)
    *arrays, first = SEEN[:6]
    written = np.zeros((3, 4), bool)
    written[:2, :3] = True
    for found in arrays:
        np.testing.assert_array_equal(np.ma.getmaskarray(found), ~written)
    np.testing.assert_array_equal(arrays[0].compressed(), np.arange(2, 8))
    np.testing.assert_array_equal(arrays[3].compressed(), np.inf)  # a number that was computed, and no mask
    assert str(first).split()[-1] == "--]"
    top, total, along, missing, there, product = SEEN[6:]
    assert (top, total, along[0], str(missing), there) == (6, 21, 4, "--", 2)
    assert np.ma.getmaskarray(product).all()  # each row has a term that nobody wrote
    assert arrays[0].dtype == arrays[2].dtype == (dtype.numpy if dtype is not pl.BF16 else np.float32)
    assert len(capsys.readouterr().out.split("--")) == 7


def test_elements_print_as_short_as_their_type_allows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        looking.debug(np.full((2, 3), 0.1, np.float32))
    assert "[[0.1 0.1 0.1  --]" in capsys.readouterr().out


def test_looking_binds_no_name_that_the_kernel_reads() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(AttributeError, match="a tile has no attribute 'numbers': it has shape"):
        misspelling.debug(x)
    for refused in (rebinding, hiding):
        with pytest.raises(UnknownAttributeError, match="numpy"):
            refused.debug(x)


def test_what_the_language_refuses_and_no_line_of_the_kernel_uses_runs_as_python() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    SEEN.clear()
    np.testing.assert_array_equal(deciding.debug(x), x)
    top, sums, rows, v, first, row, more = SEEN
    assert (top, v, more, rows, first) == (5, 5, 6, x.tolist(), [0, 1, 2])
    np.testing.assert_array_equal(sums, x.sum(axis=0))
    np.testing.assert_array_equal(row, x[0])
    SEEN.clear()
    with pytest.raises(ValueError, match="all are large"):
        deciding.debug(x + 100)
    assert SEEN[0] == "large"


@pytest.mark.parametrize(
    ("kernel", "line"),
    [(using, "v = t.max()"), (storing, "np.abs(t)"), (collecting, "np.abs(tiles[0])"), (leaving, "x.numpy()")],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_line_of_the_kernels_is_refused_as_it_is_by_the_compiler(kernel: Any, line: str) -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ParserError) as stepped:
        kernel.debug(x)
    with pytest.raises(ParserError) as compiled:
        kernel(x)
    assert line in str(stepped.value)
    assert str(stepped.value) == str(compiled.value)


def test_the_line_that_is_refused_is_named_and_none_before_it_that_ran_as_python() -> None:
    with pytest.raises(UnknownAttributeError, match=r"while n < t.max\(\)"):
        catching.debug(np.ones((2, 3), np.float32))


def test_an_output_is_masked_where_nobody_has_written_it_yet() -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    SEEN.clear()
    out, other = filling.debug(x)
    np.testing.assert_array_equal(out[:, 1:], x[:, :3])
    assert not out[:, 0].any() and not other.any(), "it is read as zeros"
    masks = [np.ma.getmaskarray(seen) for seen in SEEN]
    for turn, (seen, before, rest) in enumerate(zip(masks[::3], masks[1::3], masks[2::3], strict=True)):
        written = np.zeros((4, 4), bool)
        written[: 2 * turn + 2, 1:] = True
        np.testing.assert_array_equal(seen, ~written)
        assert not before.any() and (~rest).sum() == 8 * turn
    assert SEEN[3].sum() == x[:, :3].sum()
    SEEN.clear()
    filling.debug(x, np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32))
    assert not any(np.ma.getmaskarray(seen).any() for seen in SEEN), "the caller has written those"
