"""What rules let through runs: numbers of other types, pads of other elements, columns of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.sentences import words_of

from tilewright.pto.examples.lines import kernel
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify
from tilewright.tools.pto import entry_of, given_values, launch


def left(lines: str, arch: str, **numbers: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a kernel of lines is given and what it leaves, by name, natively as in the interpreter."""
    text = kernel(lines).replace('"a5"', f'"{arch}"')
    module = parse(text)
    verify(module)
    func = entry_of(module, None)
    words = [word.partition("=") for word in words_of(text)]
    said = [f"{name}={numbers.get(name, value)}" for name, _, value in words]
    names = [argument.name.removesuffix("_gm") for argument in func.arguments]
    given, (ours, theirs) = given_values(func, said, 0), (given_values(func, said, 0) for _ in range(2))
    launch(lower(module, func, target=arch), "cpu", 1, ours)
    launch(lower(module, func, target=arch), "interpret", 1, theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    return dict(zip(names, given, strict=True)), dict(zip(names, theirs, strict=True))


TWO = "(%x: t8x64x{}, %n: {}, %out: t8x64x{}); pto.{} ins({}) outs(%out)"


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_a_number_of_another_type_becomes_one_of_the_elements(arch: str) -> None:
    given, made = left(TWO.format("f32", "i32", "f32", "tadds", "%x, %n"), arch, n="3")
    np.testing.assert_array_equal(made["out"], given["x"] + 3)
    given, made = left(TWO.format("f32", "i64", "f32", "tdivs", "%n, %x"), arch, n="3")
    np.testing.assert_allclose(made["out"], 3 / given["x"], rtol=1e-6)
    given, made = left(TWO.format("i32", "f32", "i32", "tmuls", "%x, %n"), arch, n="-2.7")
    np.testing.assert_array_equal(made["out"], given["x"] * -2)


@pytest.mark.parametrize(("come", "go"), [("i32", "f32"), ("f16", "bf16"), ("ui8", "i8")])
def test_a_pad_of_other_elements_copies_bits(come: str, go: str) -> None:
    tiles = f"(%x: !pto.tile_buf<vec, 8x64x{come}, valid=5x19>, %out: !pto.tile_buf<vec, 8x64x{go}, pad=1>)"
    given, made = left(f"{tiles}; pto.tfillpad ins(%x) outs(%out)", "a5")
    wanted = np.pad(given["x"].reshape(5, 19).view(f"u{given['x'].itemsize}"), ((0, 3), (0, 45)))
    np.testing.assert_array_equal(made["out"].reshape(8, 64).view(wanted.dtype), wanted)


@pytest.mark.parametrize(("fold", "of_nothing"), [("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf)])
def test_columns_of_no_rows_fold_to_what_changes_nothing(fold: str, of_nothing: float) -> None:
    empty = "!pto.tile_buf<vec, 8x64xf32, valid=0x64>"
    lines = f"(%out: t1x64xf32); %t = pto.alloc_tile : {empty}; pto.tcol{fold} ins(%t : {empty}) outs(%out)"
    assert (left(lines, "a3")[1]["out"] == of_nothing).all()


def test_a5_compares_tiles_of_which_different_parts_are_valid() -> None:
    tiles = "(%x: !pto.tile_buf<vec, 8x64xf32, valid=7x64>, %y: t8x64xf32, %out: t8x64xui8)"
    given, made = left(f"{tiles}; pto.tcmp ins(%x, %y) outs(%out) {{cmpMode = #pto<cmp lt>}}", "a5")
    wanted = np.packbits(given["x"].reshape(7, 64) < given["y"].reshape(8, 64)[:7], 1, bitorder="little")
    np.testing.assert_array_equal(made["out"].reshape(8, 64)[:7, :8], wanted)
