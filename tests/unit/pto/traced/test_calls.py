"""Calls in traced bodies: helpers written out, functions of the module, and what is read from outside."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from unit.pto.traced.tracing import check, lines, traced

from tilewright import pto
from tilewright.keep.reads import Leaf
from tilewright.pto.text.printer import print_module

SIZES = SimpleNamespace(rows=8, cols=64)


def tile_of(rows: int, cols: int, *, dtype: Any = pto.f32) -> Any:
    """Return a tile; a docstring is no statement."""
    return pto.alloc_tile(shape=[rows, cols], dtype=dtype)


def clamped(value: Any, low: int = 0, high: int = 8) -> Any:
    if low == high:
        return low
    bounded = min(max(value, low), high)
    return bounded, low


@pto.jit(entry=False)
def scale(tile: pto.Tile, by: pto.f32) -> None:
    pto.tile.muls(tile, by, tile)


@pto.jit(entry=False)
def scale_twice(tile: pto.Tile, by: pto.f32) -> None:
    scale(tile, by)
    scale(tile, 2)


def test_helpers_are_written_out_where_they_are_called() -> None:
    def body(n: Any, w: Any) -> None:
        inside, low = clamped(n, high=4)
        pto.store_scalar(low, w, inside)
        pto.store_scalar(clamped(n, 3, 3), w, 0)

    assert lines(body) == [
        "%0 = arith.maxsi %n, %c0 : index",
        "%bounded = arith.minsi %0, %c4 : index",
        "pto.store_scalar %c0_i32, %w[%bounded] : !pto.ptr<i32, ub>, i32",
        "pto.store_scalar %c3_i32, %w[%c0] : !pto.ptr<i32, ub>, i32",
    ]


def test_functions_join_the_module_once_for_each_kind_of_argument() -> None:
    def body(x: Any) -> None:
        a, b = tile_of(8, 64), tile_of(8, 64)
        c = tile_of(16, 64)
        for tile in (a, b, c):
            scale_twice(tile, x)

    module = traced(body).module
    assert [func.name for func in module.funcs()] == ["scale", "scale_twice", "scale_1", "scale_twice_1", "body"]
    assert [func.private for func in module.funcs()] == [True, True, True, True, False]
    assert print_module(module).count("func.call @scale_twice(") == 2


def test_spans_point_into_the_text_of_the_author() -> None:
    def body(n: Any) -> None:
        tile = tile_of(8, 64)
        pto.tile.exp(tile, tile)

    func = next(traced(body).module.funcs())
    assert func.body is not None
    alloc, exp, _ = (op for op in func.body.ops)
    first = body.__code__.co_firstlineno
    assert exp.span.filename == __file__
    assert (exp.span.line, alloc.span.line) == (first + 2, tile_of.__code__.co_firstlineno + 2)
    assert alloc.span.caller is not None
    assert alloc.span.caller.line == first + 1
    assert func.arguments[0].span.line == first


def test_what_a_body_reads_is_recorded() -> None:
    steps = [2, 3]

    def body(n: Any) -> None:
        tile_of(SIZES.rows, SIZES.cols * steps[0])
        pto.const(math.floor(2.5) + len(steps))

    found = traced(body)
    names = {read.name for resolver in found.resolvers for read in resolver.leaves()}
    assert {"SIZES.rows", "SIZES.cols", "steps", "steps[0]", "tile_of", "math.floor", "dtype"} <= names
    assert [resolver.function for resolver in found.resolvers] == [body, tile_of]


def test_a_change_of_what_was_read_is_noticed() -> None:
    sizes = SimpleNamespace(rows=8, unread=1)

    def body(n: Any) -> None:
        tile_of(sizes.rows, 64)

    leaves = [Leaf(resolver, read) for resolver in traced(body).resolvers for read in resolver.leaves()]
    assert not any(leaf.drift() for leaf in leaves)
    sizes.unread = 2
    assert not any(leaf.drift() for leaf in leaves)
    sizes.rows = 16
    assert [drift.name for leaf in leaves if (drift := leaf.drift())] == ["sizes.rows"]


def test_constants_specialize_a_body() -> None:
    def body(n: Any, *, ROWS: Any = 8, dtype: Any = pto.f32) -> None:
        tile_of(ROWS, 64, dtype=dtype)

    assert "rows=16" in lines(body, ROWS=16, dtype=pto.f16)[0]
    assert "dtype=bf16" in lines(body, ROWS=16, dtype=pto.bf16)[0]


def test_entries_and_targets_are_attributes() -> None:
    from tilewright.pto.traced.trace import trace

    def body() -> None:
        pto.barrier("ALL")

    options: dict[str, Any] = {"name": "kernel", "target": "a3", "backend": "emitc", "kernel_kind": "vector"}
    module = trace(body, [], **options).module
    check(module)
    assert print_module(module).splitlines()[:2] == [
        'module attributes {pto.target_arch = "a3", pto.kernel_kind = #pto.kernel_kind<vector>} {',
        "  func.func @kernel() attributes {pto.entry} {",
    ]
    assert next(trace(body, [], entry=False).module.funcs()).attributes == {}
