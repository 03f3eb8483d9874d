"""Lowering: what cannot be told apart before running is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tilewright.errors import ExecutionError, KernelError, UnsupportedFeatureError
from tilewright.programs.compiler import compile
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.types import SCALARS, Scalar
from tilewright.pto.verify import verify

TILE = "!pto.tile_buf<vec, 1x8xf32>"


def program(parameters: str, *body: str) -> Any:
    text = f"module {{\n  func.func @k({parameters}) {{\n    " + "\n    ".join((*body, "return")) + "\n  }\n}\n"
    module = parse(text, "k.pto")
    verify(module)
    return lower(module, next(module.funcs()), target="a5")


def run(lowered: Any, *args: Any) -> None:
    """Run on the interpreter and natively, on copies, and leave what both agree on in the arguments."""
    copies: list[Any] = [a.copy() if hasattr(a, "copy") else a for a in args]
    compile(lowered, platform="interpret")(1, *copies)
    compile(lowered, platform="cpu")(1, *args)
    for ours, meaning in zip(args, copies, strict=True):
        np.testing.assert_array_equal(ours, meaning)


def moved_in(pointer: str, view: str, tile: str, type_: str, shape: tuple[int, int], element: str) -> list[str]:
    rows, cols = shape
    return [
        f"%{view}r = arith.constant {rows} : index",
        f"%{view}c = arith.constant {cols} : index",
        f"%{view}1 = arith.constant 1 : index",
        f"%{view} = pto.make_tensor_view %{pointer}, shape = [%{view}r, %{view}c], strides = [%{view}c, %{view}1] "
        f": !pto.tensor_view<?x?x{element}>",
        f"%{view}0 = arith.constant 0 : index",
        f"%{view}p = pto.partition_view %{view}, offsets = [%{view}0, %{view}0], sizes = [%{view}r, %{view}c] "
        f": !pto.tensor_view<?x?x{element}> -> !pto.partition_tensor_view<{rows}x{cols}x{element}>",
        f"%{tile} = pto.alloc_tile : {type_}",
        f"pto.tload ins(%{view}p : !pto.partition_tensor_view<{rows}x{cols}x{element}>) outs(%{tile} : {type_})",
    ]


POINTER = "!pto.ptr<f32, gm>"
YIELD_X, YIELD_Y = (f"scf.yield %{name} : {POINTER}" for name in "xy")
BRANCH = f"%t = scf.if %c -> ({POINTER}) {{\n {YIELD_X}\n }} else {{\n {YIELD_Y}\n }}"
SELECT = f"%t = arith.select %c, %x, %y : {POINTER}"
LOOP = f"""%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = scf.for %i = %c0 to %c1 step %c1 iter_args(%p = %x) -> ({POINTER}) {{
      {YIELD_Y}
    }}"""


@pytest.mark.parametrize("choice", [BRANCH, SELECT, LOOP], ids=["if", "select", "for"])
def test_a_choice_between_buffers_is_refused(choice: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="in one buffer or another") as caught:
        program("%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %c: i1", choice)
    assert caught.value.place.is_known and "choose an offset" in str(caught.value)


def test_a_choice_within_one_buffer_works() -> None:
    lowered = program(
        "%x: !pto.ptr<f32>, %out: !pto.ptr<f32>, %c: i1",
        "%c0 = arith.constant 0 : index",
        "%c2 = arith.constant 2 : index",
        "%y = pto.addptr %x, %c2 : !pto.ptr<f32> -> !pto.ptr<f32>",
        "%t = arith.select %c, %x, %y : !pto.ptr<f32, gm>",
        "%v = pto.load %t[%c0] : !pto.ptr<f32> -> f32",
        "pto.store %v, %out[%c0] : !pto.ptr<f32>, f32",
    )
    for condition, wanted in ((True, 1.0), (False, 3.0)):
        out = np.zeros(1, np.float32)
        run(lowered, np.array([1, 2, 3], np.float32), out, condition)
        assert out[0] == wanted


def test_an_address_at_run_time_reaches_no_tile_without_one() -> None:
    """A tile that needs bytes and has no address lies where no address leads."""
    lowered = program(
        "%x: !pto.ptr<f32>, %at: i64",
        *moved_in("x", "vx", "tx", TILE, (1, 8), "f32"),
        f"%p = pto.tile_buf_addr %tx : {TILE} -> !pto.ptr<f32, ub>",
        "%q = pto.castptr %at : i64 -> !pto.ptr<f32, ub>",
        "%v = pto.load %q[%vx0] : !pto.ptr<f32, ub> -> f32",
        "pto.store %v, %x[%vx0] : !pto.ptr<f32>, f32",
    )
    for target in ("interpret", "cpu"):
        x = np.full(8, 7, np.float32)
        compile(lowered, platform=target)(1, x, 248 * 1024 - 4)
        assert x[0] == 0
        for address in (248 * 1024, -4, 1 << 40):
            with pytest.raises(ExecutionError, match="view|bytes|cannot be"):
                compile(lowered, platform=target)(1, x, address)


def test_recursion_and_missing_bodies_are_refused() -> None:
    with pytest.raises(KernelError):
        program("%x: !pto.ptr<f32>", "func.call @k(%x) : (!pto.ptr<f32>) -> ()")


def test_a_scale_that_is_no_word_is_refused_and_not_ignored() -> None:
    acc, vec = "!pto.tile_buf<acc, 16x16xf32>", "!pto.tile_buf<vec, 16x16xf32>"
    move = f"pto.tmov ins(%a, %by : {acc}, f32) outs(%b : {vec})"
    with pytest.raises(KernelError, match=r"scale|operand"):
        program("%x: !pto.ptr<f32>, %by: f32", f"%a = pto.alloc_tile : {acc}", f"%b = pto.alloc_tile : {vec}", move)


def copied(*addresses: str) -> str:
    """Return the tile IR of a kernel that reads a number at each address and writes their sum to the first."""
    body = ["%c0 = arith.constant 0 : index", "%s0 = arith.constant 0.0 : f32"]
    for k, address in enumerate(addresses):
        at = "%at" if address == "?" else f"%a{k}"
        body += [] if address == "?" else [f"{at} = arith.constant {address} : i64"]
        body += [
            f"%p{k} = pto.castptr {at} : i64 -> !pto.ptr<f32, ub>",
            f"%v{k} = pto.load %p{k}[%c0] : !pto.ptr<f32, ub> -> f32",
            f"%s{k + 1} = arith.addf %s{k}, %v{k} : f32",
        ]
    last = f"pto.store %s{len(addresses)}, %p0[%c0] : !pto.ptr<f32, ub>, f32"
    return str(program("%at: i64", *body, last))


def buffers(text: str) -> dict[str, int]:
    """Return the local memories a text makes, and their bytes."""
    made = re.findall(r"(\w+): pl.Tensor\S* \S* = pl.(?:tensor.create|create_tensor)\(\[(\d+)\]", text)
    return {name: int(size) for name, size in made}


def test_stretches_of_memory_that_never_meet_are_buffers_of_their_own() -> None:
    assert buffers(copied("0", "4096", "4098")) == {"vec_0": 4, "vec_4096": 6}


def test_an_address_that_may_be_any_keeps_memory_whole() -> None:
    assert buffers(copied("0", "4096", "?")) == {"vec": 248 * 1024}


def test_an_offset_that_would_wrap_around_is_refused(target: str) -> None:
    lowered = program(
        "%x: !pto.ptr<f32>, %at: i64",
        "%o = arith.index_cast %at : i64 to index",
        "%v = arith.constant 7.0 : f32",
        "pto.store %v, %x[%o] : !pto.ptr<f32>, f32",
    )
    x = np.zeros(4, np.float32)
    compile(lowered, platform=target)(1, x, 2)
    for far in (1 << 62, -(1 << 62), 4, -1):
        with pytest.raises(ExecutionError):
            compile(lowered, platform=target)(1, x, far)
    assert x.tolist() == [0, 0, 7, 0]


@pytest.mark.parametrize("type_", [type_ for type_ in SCALARS.values() if not type_.is_launchable], ids=str)
def test_a_scalar_that_no_launch_can_pass_is_refused_by_whoever_compiles(type_: Scalar) -> None:
    with pytest.raises(UnsupportedFeatureError, match="which no launch can pass"):
        program(f"%n: {type_}")


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(("step", "turns"), [(1, 10), (3, 4), (0, None), (-1, None)])
def test_a_loop_counts_up_by_whatever_the_running_program_says(platform: str, step: int, turns: int | None) -> None:
    lowered = program(
        "%o: !pto.ptr<i32>, %n: index, %s: index",
        "%c0 = arith.constant 0 : index",
        "%z = arith.constant 0 : i32",
        "%one = arith.constant 1 : i32",
        "%r = scf.for %i = %c0 to %n step %s iter_args(%a = %z) -> (i32) {",
        "%b = arith.addi %a, %one : i32",
        "scf.yield %b : i32",
        "}",
        "pto.store_scalar %r, %o[%c0] : !pto.ptr<i32>, i32",
    )
    run, out = compile(lowered, platform=platform), np.zeros(1, np.int32)
    if turns is None:
        with pytest.raises(ExecutionError, match="its step must be positive"):
            run(1, out, 10, step)
    else:
        run(1, out, 10, step)
        assert out[0] == turns


@pytest.mark.parametrize(("said", "target", "fits"), [("a3", "a5", False), ("a5", "a3", True), ("", "a3", False)])
def test_memories_are_those_of_the_machine_that_the_text_names(said: str, target: str, fits: bool) -> None:
    named = f' attributes {{pto.target_arch = "{said}"}}' if said else ""
    tile = "!pto.tile_buf<vec, 1x50000xf32>"
    text = f"module{named} {{\n  func.func @k() {{\n    %a = pto.alloc_tile : {tile}\n    return\n  }}\n}}\n"
    module = parse(text, "k.pto")
    if fits:
        lower(module, next(module.funcs()), target=target)
    else:
        with pytest.raises(KernelError, match="more than the 196608 of `vec`"):
            lower(module, next(module.funcs()), target=target)


def test_a_gather_of_lanes_without_indices_is_a_mistake_at_its_line() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"k\.pto:5:10: .*takes a vector of indices"):
        program(
            "%at: i64",
            "%p = pto.castptr %at : i64 -> !pto.ptr<f32, ub>",
            '%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>',
            "%r = pto.vgather2 %p, %m : !pto.ptr<f32, ub>, !pto.mask<b32> -> !pto.vreg<64xf32>",
        )


@pytest.mark.parametrize("type_", [TILE, "!pto.tensor_view<8x64xf32>", "!pto.vreg<64xf32>", "!pto.pipe"])
def test_what_only_kernels_pass_is_no_argument_of_a_launch(type_: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"k\.pto:2:16: `%x` is !pto\..*, which no launch can pass"):
        program(f"%x: {type_}")
