"""Functions that launch PTO kernels: what they compute, when they are read again, what is said to mistakes."""
# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir, pto
from tilewright.call.guards import Guards
from tilewright.errors import (
    ArgumentCountError,
    AttributeValueError,
    DriftError,
    DTypeMismatchError,
    ExecutionError,
    OperandError,
    UncallableError,
)
from tilewright.keep.reads import ReadSet
from tilewright.runtime import RunConfig

VIEW, WINDOW, TILE = (
    "!pto.tensor_view<?x64xf32>",
    "!pto.partition_tensor_view<8x64xf32>",
    "!pto.tile_buf<vec, 8x64xf32>",
)
TEXT = f"""
module {{
  func.func @scale_add(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %by: f32) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %id = pto.get_block_idx
    %block = arith.index_cast %id : i64 to index
    %first = arith.muli %block, %c8 : index
    %blocks = pto.get_block_num
    %count = arith.index_cast %blocks : i64 to index
    %rows = arith.muli %count, %c8 : index
    %vx = pto.make_tensor_view %x, shape = [%rows, %c64], strides = [%c64, %c1] : {VIEW}
    %vy = pto.make_tensor_view %y, shape = [%rows, %c64], strides = [%c64, %c1] : {VIEW}
    %px = pto.partition_view %vx, offsets = [%first, %c0], sizes = [%c8, %c64] : {VIEW} -> {WINDOW}
    %py = pto.partition_view %vy, offsets = [%first, %c0], sizes = [%c8, %c64] : {VIEW} -> {WINDOW}
    %a = pto.alloc_tile : {TILE}
    %b = pto.alloc_tile : {TILE}
    pto.tload ins(%px : {WINDOW}) outs(%a : {TILE})
    pto.tload ins(%py : {WINDOW}) outs(%b : {TILE})
    pto.tmuls ins(%a, %by : {TILE}, f32) outs(%a : {TILE})
    pto.tadd ins(%a, %b : {TILE}, {TILE}) outs(%b : {TILE})
    pto.tstore ins(%b : {TILE}) outs(%py : {WINDOW})
    return
  }}
}}
"""
Floats: Any = pto.ptr(pto.f32, "gm")
Cells: Any = pto.ptr(pto.i32, "gm")
Number: Any = pto.f32
Count: Any = pto.i32
FACTOR = 2.0
M = pl.dynamic("M")


@pto.jit(source=TEXT)
def scale_add(x: Floats, y: Floats, by: Number) -> None: ...


@pto.jit()
def scaled(x: Floats, out: Floats, rows: Count, *, COLS: pto.const_expr = 64) -> None:
    view = pto.make_tensor_view(x, shape=[rows, COLS], strides=[COLS, 1])
    target = pto.make_tensor_view(out, shape=[rows, COLS], strides=[COLS, 1])
    tile = pto.alloc_tile(shape=[8, COLS], dtype=pto.f32)
    for row in range(0, rows, 8):
        pto.tile.load(pto.partition_view(view, offsets=[row, 0], sizes=[8, COLS]), tile)
        pto.tile.muls(tile, FACTOR, tile)
        pto.tile.store(tile, pto.partition_view(target, offsets=[row, 0], sizes=[8, COLS]))


@pl.jit
def both(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
    rows, cols = x.shape
    t = pl.create_tensor([rows, cols], dtype=pl.FP32)
    scaled[1, None](x, t, rows)
    scale_add[rows // 8, None](t, y, 3.0)
    for r in pl.parallel(0, rows, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(y, [r, 0], [8, cols]) + 1.0, [r, 0], y)
    return y


def arrays(rows: int = 32) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 64)).astype(np.float32), rng.normal(size=(rows, 64)).astype(np.float32)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_kernels_stand_among_the_statements_of_a_function(platform: str) -> None:
    x, y = arrays()
    wanted = y + 3 * (2 * x) + 1
    both(x, y, config=RunConfig(platform=platform))
    np.testing.assert_allclose(y, wanted, rtol=1e-5)


def test_a_named_extent_may_say_how_many_blocks_there_are() -> None:
    @pl.jit
    def add(x: pl.Tensor[[M, 64], pl.FP32], y: pl.InOut[pl.Tensor[[M, 64], pl.FP32]]):
        scale_add[M // 8, None](x, y, 1.0)
        return y

    for rows in (8, 32, 64):
        x, y = arrays(rows)
        wanted = x + y
        add(x, y)
        np.testing.assert_allclose(y, wanted, rtol=1e-6)
    assert add.cache_info().compiles == 1


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_one_tensor_may_be_several_arguments(platform: str) -> None:
    @pl.jit
    def twice(x: pl.InOut[pl.Tensor]):
        flat = pl.reshape(x, [16, 128])
        scale_add[4, None](x, flat, 3.0)
        return x

    x, _ = arrays()
    wanted = 4 * x
    twice(x, config=RunConfig(platform=platform))
    np.testing.assert_allclose(x, wanted, rtol=1e-6)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_what_a_kernel_copies_may_be_written_behind_it_through_another_pointer(platform: str) -> None:
    @pto.jit()
    def shifted(x: Floats, y: Floats) -> None:
        first, second = (pto.alloc_tile(shape=[8, 64], dtype=pto.f32) for _ in range(2))
        there = [
            pto.make_tensor_view(x, shape=[8, 64], strides=[64, 1]),
            pto.make_tensor_view(y, shape=[8, 64], strides=[64, 1]),
        ]
        windows = [pto.partition_view(view, offsets=[0, 0], sizes=[8, 64]) for view in there]
        pto.tile.load(windows[0], first)
        pto.tile.muls(first, 5.0, second)
        pto.tile.store(second, windows[1])
        pto.tile.add(first, second, second)
        pto.tile.store(second, windows[1])

    @pl.jit
    def run(x: pl.InOut[pl.Tensor]):
        shifted[1, None](x, x)
        return x

    x, _ = arrays(8)
    wanted = 6 * x
    run(x, config=RunConfig(platform=platform))
    np.testing.assert_allclose(x, wanted, rtol=1e-6)


@pto.jit()
def guarded(x: Cells, n: Count) -> None:
    if n > 5:
        pto.trap()
        pto.scalar.store(1, x + 100)
    for i in range(8, n):
        pto.scalar.store(1, x + 100 + i)
    pto.scalar.store(n, x)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_what_a_kernel_does_not_reach_is_no_mistake(platform: str) -> None:
    @pl.jit
    def run(x: pl.InOut[pl.Tensor], n: pl.Scalar[pl.INT32]):
        guarded[1, None](x, n)
        guarded[1, None](x, 4)
        return x

    x = np.zeros(8, np.int32)
    run(x, 3, config=RunConfig(platform=platform))
    assert x[0] == 4
    with pytest.raises(ExecutionError, match="pto.trap was reached"):
        run(x, 7, config=RunConfig(platform=platform))


def test_a_compiled_kernel_keeps_its_constants() -> None:
    narrow = scaled.compile(COLS=32)

    @pl.jit
    def halves(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        narrow[1, None](x, y, 64)
        return y

    x, y = arrays()
    halves(x, y)
    np.testing.assert_allclose(y, 2 * x)


def test_programs_with_written_types_launch_kernels() -> None:
    @pl.program
    class Adding:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):
            scale_add[4, None](x, y, 3.0)
            return y

    x, y = arrays()
    wanted = y + 3 * x
    ir.compile(Adding)(x, y)
    np.testing.assert_allclose(y, wanted, rtol=1e-5)


def test_kernels_of_one_name_are_two_functions() -> None:
    other = pto.jit(name="scale_add", source=TEXT.replace("pto.tadd", "pto.tsub"))(scale_add.function)

    @pl.jit
    def back_and_forth(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        scale_add[4, None](x, y, 3.0)
        other[4, None](x, y, 5.0)
        return y

    x, y = arrays()
    wanted = 5 * x - (3 * x + y)
    back_and_forth(x, y)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


# what it was read from


def test_calls_go_without_python_while_nothing_changes() -> None:
    x, y = arrays()
    assert Guards.obstacle(ReadSet(both.specialize(x, y).reads)) == ""


def test_a_value_that_a_traced_kernel_reads_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    @pl.jit
    def doubled(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        scaled[1, None](x, y, 32)
        return y

    x, y = arrays()
    doubled(x, y)
    monkeypatch.setitem(globals(), "FACTOR", 7.0)
    with pytest.raises(DriftError, match=r"attribute `scaled.text_digest`, which `.*doubled`"):
        doubled(x, y)
    monkeypatch.undo()
    doubled(x, y)
    np.testing.assert_allclose(y, 2 * x)


@pytest.mark.parametrize("calls", [1, 200])
def test_an_edited_file_is_read_again(calls: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.pto"
    path.write_text(TEXT)
    filed = pto.jit(name="scale_add", source=str(path))(scale_add.function)

    @pl.jit(drift="recompile")
    def run(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        filed[4, None](x, y, 1.0)
        return y

    x, y = arrays()
    start = y.copy()
    for _ in range(calls):
        y[:] = start
        run(x, y)
    np.testing.assert_allclose(y, start + x, rtol=1e-6)
    time.sleep(0.01)
    path.write_text(TEXT.replace("pto.tadd", "pto.tsub"))
    y[:] = start
    run(x, y)
    np.testing.assert_allclose(y, x - start, rtol=1e-6)
    assert run.cache_info().compiles == 2


def test_a_file_that_changes_while_it_is_compiled_is_read_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernel.pto"
    path.write_text(TEXT)
    filed = pto.jit(name="scale_add", source=str(path))(scale_add.function)
    for_grids = filed.for_grids

    def edited(are_apart: bool) -> Any:
        path.write_text(TEXT.replace("pto.tadd", "pto.tsub"))
        return for_grids(are_apart)

    monkeypatch.setattr(filed, "for_grids", edited)

    @pl.jit
    def run(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
        filed[4, None](x, y, 1.0)
        return y

    x, y = arrays()
    wanted = x - y
    run(x, y)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
    run(x, y)  # which is no drift
    np.testing.assert_allclose(y, x - wanted, rtol=1e-6)


SCRIPT = """
import numpy as np
import tilewright.language as pl
from tilewright import pto

def declared(x: pto.ptr(pto.f32, "gm"), y: pto.ptr(pto.f32, "gm"), by: pto.f32): ...

filed = pto.jit(name="scale_add", source="kernel.pto")(declared)

@pl.jit
def run(x: pl.Tensor, y: pl.InOut[pl.Tensor]):
    filed[4, None](x, y, 1.0)
    return y

x, y = np.ones((32, 64), np.float32), np.full((32, 64), 5, np.float32)
run(x, y)
print(y[0, 0], run.cache_info().compiles)
"""


def test_another_process_finds_the_program_of_the_same_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    script, kernel = tmp_path / "script.py", tmp_path / "kernel.pto"
    script.write_text(SCRIPT)

    def said(text: str) -> str:
        kernel.write_text(text)
        return subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.strip()

    other = TEXT.replace("pto.tadd", "pto.tsub")
    assert [said(text) for text in (TEXT, TEXT, other, TEXT)] == ["6.0 1", "6.0 0", "-4.0 1", "6.0 0"]


# mistakes


def refused(launch: str, kind: type[Exception], message: str, x: Any = None) -> None:
    """Check what is said of a launch."""
    namespace = {"pl": pl, "scale_add": scale_add, "scaled": scaled}
    text = f"@pl.jit\ndef wrong(x: pl.Tensor, y: pl.InOut[pl.Tensor]):\n    {launch}\n    return y\n"
    given, y = arrays()
    with pytest.raises(kind, match=message):
        ir_of(text, namespace)(given if x is None else x, y)


def ir_of(text: str, namespace: dict[str, Any]) -> Any:
    import linecache

    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), namespace)
    return namespace["wrong"]


def test_a_launch_has_a_grid_and_a_stream() -> None:
    refused("scale_add[4](x, y, 3.0)", AttributeValueError, r"a grid and a stream in its brackets, got `4`")
    refused("scale_add[0, None](x, y, 3.0)", AttributeValueError, r"the grid of a launch is a positive integer, got 0")
    refused("scale_add[x, None](x, y, 3.0)", AttributeValueError, r"is a positive integer, got tensor\[32, 64, fp32\]")
    refused("scale_add(x, y, 3.0)", UncallableError, r"help: scale_add\[grid, None\]\(\.\.\.\)")


def test_arguments_come_by_position_and_have_the_types_of_the_declaration() -> None:
    refused("scale_add[4, None](x, y)", ArgumentCountError, r"takes 3 argument\(s\) \(x, y, by\), got 2")
    refused("scale_add[4, None](x, y, by=3.0)", ArgumentCountError, r"by position, got `by` by name")
    refused("scale_add[4, None](3.0, y, 3.0)", OperandError, r"`x` of `scale_add` is tensor.*, got scalar\[fp32\]")
    refused("scale_add[4, None](x, y, 'a')", OperandError, r"`by` of `scale_add` must be a value of the kernel")
    refused("scaled[1, None](x, y, 3000000000)", OperandError, r"3000000000 is not a number int32 can hold")
    refused(
        "scale_add[4, None](x, y, 1.0)", DTypeMismatchError, r"got tensor\[2048, fp16\]", np.ones((32, 64), np.float16)
    )


def test_a_launch_stands_outside_of_kernels() -> None:
    launch = "with pl.at(level=pl.Level.CORE_GROUP):\n        scale_add[4, None](x, y, 3.0)"
    refused(launch, UncallableError, r"stands in a kernel, and an orchestration function launches kernels")


def test_blocks_beyond_a_tensor_are_an_error_at_the_line_of_the_text() -> None:
    message = r"a view does not lie inside its buffer, `x`(.|\n)*pto.tload ins\(%px(.|\n)*called from"
    refused("scale_add[100, None](x, y, 3.0)", ExecutionError, message)


def test_gaps_between_rows_are_refused() -> None:
    wide = np.ones((32, 128), np.float32)[:, :64]
    refused("scale_add[4, None](x, y, 3.0)", ExecutionError, r"strided, partly valid or of another size", wide)
