"""Memory: places that annotations name, which change no value."""

# pyright: basic, reportCallIssue=false, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir

KEPT = pl.MemRef("kept", slots=2)


@pl.function
def kernel(x: pl.Tensor[[8, 16, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(8):
            a: pl.Tile[[16, 16], pl.FP32, pl.MemRef("both", slots=2)[i % 2], pl.Mem.Vec] = pl.load(
                pl.reshape(x, [128, 16]), [i * 16, 0], [16, 16]
            )
            b: pl.Tile[[16, 16], pl.FP32, KEPT[0], pl.Mem.Vec] = pl.mul(a, 2.0)
            c: pl.Tile[[16, 16], pl.FP32, KEPT, pl.Mem.Vec] = pl.add(a, b)
            d: pl.Tile[[16, 16], pl.FP32, pl.MemRef(), pl.Mem.Vec] = pl.add(c, b)
            out = pl.store(d, [i, 0, 0], out)
    return out


def test_every_tile_keeps_its_own_content(target: str) -> None:
    x = np.random.default_rng(0).standard_normal((8, 16, 16), np.float32)
    out = np.zeros_like(x)
    ir.compile(kernel, platform=target)(x, out)
    np.testing.assert_allclose(out, 5 * x, rtol=1e-6)


def test_the_text_says_the_same() -> None:
    text = str(kernel)
    for place in ("MemRef('both', slots=2)[i % 2]", "MemRef('kept', slots=2)[0]", "MemRef('kept', slots=2),"):
        assert place in text
    again = pl.parse(text)
    assert ir.structural_equal(again, kernel) and str(again) == text
    assert ir.structural_equal(ir.deserialize(ir.serialize(kernel)), kernel)


@pytest.mark.parametrize(("slot", "other"), [("[0]", "[1]"), ("[i % 2]", "[i // 2]"), ("[i % 2]", "[i]")])
def test_another_slot_is_another_place(slot: str, other: str) -> None:
    assert f"slots=2){slot}" in str(kernel)
    changed = pl.parse(str(kernel).replace(f"slots=2){slot}", f"slots=2){other}"))
    assert not ir.structural_equal(changed, kernel) and ir.structural_hash(changed) != ir.structural_hash(kernel)


def test_a_slot_that_a_program_counts_is_the_same_under_another_name() -> None:
    renamed = pl.parse(
        str(kernel).replace("i % 2", "turn % 2").replace("for i in", "for turn in").replace("[i", "[turn")
    )
    assert "slots=2)[turn % 2]" in str(renamed) and ir.structural_equal(renamed, kernel)


@pytest.mark.parametrize("slots", [0, -1, 1.5, True])
def test_slots_are_counted(slots: object) -> None:
    with pytest.raises(ValueError, match="positive integer"):
        pl.MemRef("a", slots=slots)


@pytest.mark.parametrize("place", [(1,), (1, 2, 3, 4), (1.5,)])
def test_a_place_is_a_name_or_numbers(place: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match="a name, or an offset and a size"):
        pl.MemRef(*place)


def test_a_slot_is_an_integer() -> None:
    text = """
@pl.function
def kernel(x: pl.Tensor[[16, 16], pl.FP32]):
    t: pl.Tile[[16, 16], pl.FP32, pl.MemRef("a", slots=2)[0.5], pl.Mem.Vec] = pl.load(x, [0, 0], [16, 16])
"""
    with pytest.raises(pl.parser.ParserTypeError, match="a slot of pl.MemRef is an integer"):
        pl.parse(text)


@pytest.mark.parametrize("place", ['"a", slots=2)[2]', '"a", slots=2)[-1]', "0, 1024, slots=2)[2]"])
def test_a_slot_is_there(place: str) -> None:
    text = f"""
@pl.function
def kernel(x: pl.Tensor[[16, 16], pl.FP32]):
    t: pl.Tile[[16, 16], pl.FP32, pl.MemRef({place}, pl.Mem.Vec] = pl.load(x, [0, 0], [16, 16])
"""
    with pytest.raises(pl.parser.ParserTypeError, match="a slot that is not there: slots=2 are 0 to 1"):
        pl.parse(text)


LOCAL = """
@pl.function
def kernel(x: pl.Tensor[[16, 16], pl.FP32]):
    for i in pl.{loop}:
        t: pl.Tile[[16, 16], pl.FP32, pl.MemRef("a", slots=2)[i], pl.Mem.Vec] = pl.load(x, [0, 0], [16, 16])
        u: pl.Tile[[16, 16], pl.FP32, pl.MemRef("a", slots={slots}), pl.Mem.{memory}] = pl.move(t, pl.Mem.{memory})
"""


@pytest.mark.parametrize(
    ("loop", "slots", "memory", "message"),
    [
        ("pipeline(4, stage=2)", 2, "Vec", "whose turns overlap"),
        ("range(4)", 3, "Vec", "is one place"),
        ("range(4)", 2, "Mat", "is one place"),
    ],
)
def test_tiles_that_cannot_share_a_place_are_refused(loop: str, slots: int, memory: str, message: str) -> None:
    with pytest.raises(pl.parser.ParserTypeError, match=message):
        pl.parse(LOCAL.format(loop=loop, slots=slots, memory=memory))
    pl.parse(LOCAL.format(loop="pipeline(4, stage=1)", slots=2, memory="Vec"))


def test_text_that_a_compiler_wrote_names_its_allocations(target: str) -> None:
    text = """
@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    first: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 4096)
    t: pl.Tile[[16, 16], pl.FP32, pl.MemRef(first, 0, 1024), pl.Mem.Vec] = pl.tile.load(x, [0, 0], [16, 16])
    u: pl.Tile[[16, 16], pl.FP32, pl.MemRef(first, 1024, 1024, slots=2)[1], pl.Mem.Vec] = pl.tile.add(t, t)
    return pl.tile.store(u, [0, 0], out)
"""
    kernel = pl.parse(text)
    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    ir.compile(kernel, platform=target)(x, out)
    assert (out == 2).all()
    assert ir.structural_equal(pl.parse(str(kernel)), kernel)
    assert "MemRef('first', 0, 1024)," in str(kernel) and "MemRef('first', 1024, 1024, slots=2)[1]," in str(kernel)


@pytest.mark.parametrize("place", ['"kept")', '"kept", slots=2)', "0, 1024)", '"kept", slots=2)[i % 2]'])
def test_what_several_blocks_assign_is_one_variable(place: str, target: str) -> None:
    where = f"pl.Tile[[16, 16], pl.FP32, pl.MemRef({place}, pl.Mem.Vec]"
    kernel = pl.parse(f"""
@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 16])
    for i in pl.range(3):
        t: {where} = pl.add(t, t)
        if i == 2:
            t = t + 1.0
    return pl.store(t, [0, 0], out)
""")
    assert f"pl.MemRef({place}, ".replace('"', "'") in str(kernel)
    assert ir.structural_equal(pl.parse(str(kernel)), kernel)
    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    ir.compile(kernel, platform=target)(x, out)
    assert (out == 9).all()
