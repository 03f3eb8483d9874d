"""Communication of one rank: copies, signals and collectives over its own memory, held to NumPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, cast

import numpy
import pytest
from unit.pto.cube.writing import run

from tilewright.errors import ExecutionError

np = cast("Any", numpy)
W, G, S = "!pto.tensor_view<4x16xf32>", "!pto.tensor_view<12x16xf32>", "!pto.tensor_view<1x1xi32>"
T = "!pto.tile_buf<vec, 4x16xf32>"
MANY = ", ".join([W] * 3)
TEXT = f"""
module {{
  func.func @ranks(%x: !pto.ptr<f32>, %o: !pto.ptr<f32>, %sig: !pto.ptr<i32>, %wait: i32) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c12 = arith.constant 12 : index
    %c16 = arith.constant 16 : index
    %five = arith.constant 5 : i32
    VIEWS
    %vs = pto.make_tensor_view %sig, shape = [%c1, %c1], strides = [%c1, %c1] : {S}
    %sig1 = pto.addptr %sig, %c1 : !pto.ptr<i32> -> !pto.ptr<i32>
    %two = pto.make_tensor_view %sig, shape = [%c1, %c4], strides = [%c4, %c1] : !pto.tensor_view<1x4xi32>
    %t = pto.alloc_tile : {T}
    %ws = pto.castptr %sig : !pto.ptr<i32> -> !pto.ptr<i8>
    pto.comm.tput(%o0, %x0, buf(%t) : {W}, {W}, {T})
    pto.comm.tget(%o1, %x1, buf(%t, %t) : {W}, {W}, {T}, {T})
    pto.comm.tput(%o1, %x0, buf(%t) : {W}, {W}, {T}) {{atomicType = #pto<atomic_type atomic_add>}}
    pto.comm.tbroadcast(%x2, recv(%t), group(%o2, %o3, %o4) : {W}, {T}, {MANY}) {{root = 0 : i32}}
    pto.comm.tgather(%o5, recv(%t), group(%x2, %x0, %x1) : {G}, {T}, {MANY}) {{root = 1 : i32}}
    pto.comm.tscatter(%o5, recv(%t), group(%o8, %o9, %o10) : {G}, {T}, {MANY}) {{root = 2 : i32}}
    pto.comm.treduce(%o11, %t, recv(%t), group(%x0, %x1, %x2) : {W}, {T}, {T}, {MANY})
      {{reduceOp = #pto<reduce_op sum>}}
    pto.comm.treduce(%o12, %t, recv(%t), group(%x0, %x1, %x2) : {W}, {T}, {T}, {MANY})
      {{reduceOp = #pto<reduce_op max>}}
    pto.comm.treduce(%o13, %t, recv(%t), group(%x0, %x1, %x2) : {W}, {T}, {T}, {MANY})
      {{reduceOp = #pto<reduce_op min>}}
    %s = pto.comm.build_async_session(%t, %ws : {T}, !pto.ptr<i8>) -> !pto.async_session
    %e = pto.comm.tput_async(%o14, %x2, %s : {W}, {W}, !pto.async_session) -> !pto.async_event
    %f = pto.comm.tget_async(%o15, %x1, %s : {W}, {W}, !pto.async_session) -> !pto.async_event
    %done = pto.comm.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
    %ended = pto.comm.test_async_event(%f, %s : !pto.async_event, !pto.async_session) -> i1
    pto.comm.tnotify(%vs, %five : {S}, i32) {{notifyOp = #pto<notify_op set>}}
    pto.comm.tnotify(%vs, %five : {S}, i32) {{notifyOp = #pto<notify_op atomic_add>}}
    pto.comm.twait(%vs, %wait : {S}, i32) {{cmp = #pto<wait_cmp ge>}}
    %some = pto.comm.ttest(%two, %five : !pto.tensor_view<1x4xi32>, i32) {{cmp = #pto<wait_cmp gt>}} -> i1
    %both = arith.andi %done, %ended : i1
    %word = arith.extui %some : i1 to i32
    %yes = arith.extui %both : i1 to i32
    %total = arith.addi %word, %yes : i32
    %c5 = arith.constant 5 : index
    pto.store_scalar %total, %sig[%c5] : !pto.ptr<i32>, i32
    return
  }}
}}
"""


def views() -> str:
    made: list[str] = []
    for name, count in (("x", 3), ("o", 16)):
        for number in range(count):
            rows = 12 if (name, number) == ("o", 5) else 4
            made += [
                f"%at_{name}{number} = arith.constant {64 * number} : index",
                f"%p_{name}{number} = pto.addptr %{name}, %at_{name}{number} : !pto.ptr<f32> -> !pto.ptr<f32>",
                f"%{name}{number} = pto.make_tensor_view %p_{name}{number}, shape = [%c{rows}, %c16], "
                f"strides = [%c16, %c1] : {G if rows == 12 else W}",
            ]
    return "\n    ".join(made)


@pytest.mark.parametrize(("fourth", "result"), [(6, 2), (5, 1)])
def test_one_rank_reaches_its_own_memory(fourth: int, result: int, target: str) -> None:
    x = np.random.default_rng(0).integers(-9, 10, (3, 4, 16)).astype(np.float32)
    o, signals = np.zeros((16, 4, 16), np.float32), np.array([0, 7, 8, fourth, 0, 0], np.int32)
    run(TEXT.replace("VIEWS", views()), target, x, o, signals, 10)
    a, b, c = x
    wanted = [a, a + b, c, c, c, c, a, b, c, a, b, a + b + c, x.max(0), x.min(0), c, b]
    np.testing.assert_array_equal(o, np.stack(wanted))
    assert signals.tolist() == [10, 7, 8, fourth, 0, result]


def test_a_launch_alone_loads_what_signals_take() -> None:
    text = TEXT.replace("VIEWS", views())
    script = f"""
import numpy as np
from tilewright import pto

def ranks(x: pto.ptr(pto.f32, "gm"), o: pto.ptr(pto.f32, "gm"), sig: pto.ptr(pto.i32, "gm"), wait: pto.i32): ...

signals = np.zeros(6, np.int32)
given = np.zeros(192, np.float32), np.zeros(1024, np.float32), signals
pto.jit(source={text!r})(ranks)[1, None](*given, 10)
print(signals[0])
"""
    said = subprocess.run([sys.executable, "-c", script.strip()], capture_output=True, text=True)
    assert said.stdout == "10\n", said.stderr


def test_waiting_for_what_nobody_sets_is_an_error(target: str) -> None:
    with pytest.raises(ExecutionError, match="nobody sets: one rank runs here"):
        run(
            TEXT.replace("VIEWS", views()),
            target,
            *(np.zeros(n, np.float32) for n in (192, 1024)),
            np.zeros(6, np.int32),
            11,
        )
