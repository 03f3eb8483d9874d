"""Calls: functions are written out where they are called, each call with tiles of its own."""

from __future__ import annotations

import numpy as np
import pytest
from unit.pto.tiles.running import read, run

from tilewright.errors import KernelError, UnsupportedFeatureError
from tilewright.pto.errors import PtoNestingError
from tilewright.pto.lower import lower

TILE = "!pto.tile_buf<vec, 1x8xf32>"
POINTER = "(!pto.ptr<f32>) -> ()"


def stores(name: str, number: float) -> str:
    """Return a function that writes a number."""
    return f"""func.func @{name}(%p: !pto.ptr<f32>) {{
      %c0 = arith.constant 0 : index
      %v = arith.constant {number} : f32
      pto.store %v, %p[%c0] : !pto.ptr<f32>, f32
      return
    }}"""


def calls(name: str, *callees: str) -> str:
    """Return a function that calls others."""
    body = "\n".join(f"func.call @{callee}(%p) : {POINTER}" for callee in callees)
    return f"func.func @{name}(%p: !pto.ptr<f32>) {{\n{body}\nreturn\n}}"


def test_a_call_means_the_function_of_its_own_module(target: str) -> None:
    first, second = f"{stores('h', 1.0)} {calls('a', 'h')}", f"{stores('h', 2.0)} {calls('b', 'h')}"
    outer = f"{stores('h', 3.0)} {calls('c', 'h')}"
    module = read(f"module {{ module {{ {first} }} module {{ {second} }} {outer} }}")
    got = [run(module, entry, target, 1, [np.zeros(1, np.float32)])[0][0] for entry in "abc"]
    assert got == [1, 2, 3]


def test_a_declaration_stands_for_the_only_function_with_a_body(target: str) -> None:
    declared = f"func.func private @h(!pto.ptr<f32>) {calls('a', 'h')}"
    module = read(f"module {{ module {{ {declared} }} module {{ {stores('h', 2.0)} }} }}")
    assert run(module, "a", target, 1, [np.zeros(1, np.float32)])[0][0] == 2


@pytest.mark.parametrize(("bodies", "where"), [(0, "nowhere"), (2, "in 2 modules")])
def test_a_declaration_without_one_body_is_refused_at_its_call(bodies: int, where: str) -> None:
    others = f"module {{ {stores('h', 2.0)} }}" * bodies
    module = read(f"module {{ func.func private @h(!pto.ptr<f32>) {calls('a', 'h')} {others} }}")
    with pytest.raises(UnsupportedFeatureError, match=f"its body is {where}") as caught:
        lower(module, next(f for f in module.funcs() if f.name == "a"), target="a5")
    assert caught.value.place.is_known


def test_each_call_allocates_its_own_tile(target: str) -> None:
    module = read(f"""module {{
      func.func @full(%v: f32) -> {TILE} {{
        %t = pto.alloc_tile : {TILE}
        pto.texpands ins(%v : f32) outs(%t : {TILE})
        return %t : {TILE}
      }}
      func.func @a(%p: !pto.ptr<f32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c8 = arith.constant 8 : index
        %x = arith.constant 1.0 : f32
        %y = arith.constant 20.0 : f32
        %one = func.call @full(%x) : (f32) -> {TILE}
        %other = func.call @full(%y) : (f32) -> {TILE}
        pto.tadd ins(%one, %other : {TILE}, {TILE}) outs(%one : {TILE})
        %v = pto.make_tensor_view %p, shape = [%c1, %c8], strides = [%c8, %c1] : !pto.tensor_view<?x?xf32>
        %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c8]
          : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<1x8xf32>
        pto.tstore ins(%one : {TILE}) outs(%w : !pto.partition_tensor_view<1x8xf32>)
        return
      }}
    }}""")
    (out,) = run(module, "a", target, 1, [np.zeros(8, np.float32)])
    np.testing.assert_array_equal(out, np.full(8, 21, np.float32))


def chain(length: int, times: int) -> str:
    """Return functions of which each calls the next so many times."""
    links = [calls(f"f{i}", *[f"f{i + 1}"] * times) for i in range(length)]
    return f"module {{ {' '.join(links)} {stores(f'f{length}', 1.0)} }}"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (chain(1000, 1), PtoNestingError, "64 deep in each other"),
        (chain(40, 2), UnsupportedFeatureError, "more than 65536 ops"),
    ],
    ids=["deep", "many"],
)
def test_calls_that_would_be_written_out_without_end_are_refused(
    text: str, error: type[KernelError], message: str
) -> None:
    module = read(text)
    with pytest.raises(error, match=message) as caught:
        lower(module, next(module.funcs()), target="a5")
    assert caught.value.place.is_known
