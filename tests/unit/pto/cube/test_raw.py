"""Raw machine ops: words and registers in place of clauses, held to NumPy."""

from __future__ import annotations

from typing import Any, cast

import numpy
import pytest
from unit.pto.cube.test_leaving import OFFSETS, SCALES, SLOPES, words
from unit.pto.cube.writing import kernel, run

from tilewright.errors import ExecutionError, UnsupportedFeatureError

np = cast("Any", numpy)
M, N, K = 32, 48, 32
QUANT_VEC, QUANT_SCALAR, PLAIN = 31, 32, 1
BY_ROWS, BY_COLUMNS = 1 << 43, 1 << 62


def product(rows: int, cols: int, depth: int, start: int = 63) -> int:
    return rows | depth << 12 | cols << 24 | (1 << start if start else 0)


def size(rows: int, cols: int, stride: int) -> int:
    return cols << 4 | rows << 16 | stride << 32


def way(pitch: int, quant: int = 0, relu: int = 0, clip: int = 0, rest: int = BY_ROWS) -> int:
    return pitch | (quant & 31) << 34 | (quant >> 5) << 29 | relu << 39 | clip << 30 | rest


def bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def test_products_and_what_leaves(target: str) -> None:
    outs = {"o": "f32", "p": "f32", "q": "f16", "r": "f16", "s": "f16", "t": "f32", "v": "i8"}
    arguments = {"x": "f16, gm", "y": "f16, gm", "w": "f32, gm"} | {
        name: f"{type_}, gm" for name, type_ in outs.items()
    }
    places = {
        "x1": ("f16, l1", 0), "y1": ("f16, l1", 4096), "w1": ("f32, l1", 16384), "bias1": ("f32, l1", 16896),
        "slopes1": ("f32, l1", 17152), "a": ("f16, l0a", 0), "b": ("f16, l0b", 0), "c": ("f32, l0c", 0),
        "bt": ("f32, bt", 0), "words": ("f32, fb", 256), "slopes": ("f32, fb", 128),
    }  # fmt: skip
    clip = int(np.float16(3).view(np.uint16))
    lines = [
        f"set_mte2_nz_para %n{1 | 1 << 16 | M << 32}",
        f"copy_gm_to_cbuf_multi_nd2nz %x, %x1, %n0, %n{2 * K}, %n0, %n{M}, %n{K}, %n0, %no",
        f"copy_gm_to_cbuf_multi_nd2nz %y, %y1, %n0, %n{2 * N}, %n0, %n{K}, %n{N}, %n0, %no",
        "copy_gm_to_cbuf %w, %w1, %n1, %n896, %n0, %n0",
        "copy_cbuf_to_fbuf %w1, %words, %n1, %n6, %n0, %n0", "copy_cbuf_to_fbuf %slopes1, %slopes, %n1, %n2, %n0, %n0",
        "copy_cbuf_to_bt %bias1, %bt, %no, %n1, %n8, %n0, %n0",
        "load_cbuf_to_ca %x1, %a, %n0, %n0, %n2, %n2, %n2, %n2",
        "load_cbuf_to_cb %y1, %b, %n0, %n0, %n2, %n3, %n2, %n3 {transpose}",
        f"mad_raw %a, %b, %c, %n{product(M, N, K)}",
        f"mad_raw %a, %b, %c, %n{product(M, N, K, 0)}",
        f"copy_matrix_cc_to_gm %c, %o, %n{size(M, N, N)}, %n{way(M)}",
        f"mad_bias_raw %a, %b, %c, %bt, %n{product(M, N, K, 62)}",
        f"copy_matrix_cc_to_gm %c, %p, %n{size(M, N, M)}, %n{way(M, rest=BY_COLUMNS)}",
        f"set_quant_pre %n{bits(0.5)}", "set_relu_alpha %n" + str(bits(0.25)),
        f"copy_matrix_cc_to_gm %c, %q, %n{size(M, N, N)}, %n{way(M, QUANT_SCALAR, 2)}",
        f"set_fpc %n{2 | 2 << 8}", f"set_fix_clip_relu %n{clip}",
        f"copy_matrix_cc_to_gm %c, %r, %n{size(M, 32, N)}, %n{way(M, QUANT_VEC, 3, 1)}",
        f"set_loop3_para %n{2 | 16 << 16 | (16 * N & 0xFF) << 32}, %n{16 * N >> 8}",
        f"copy_matrix_cc_to_gm %c, %s, %n{size(16, 16, N)}, %n{way(M, PLAIN, 1)}",
        "set_loop3_para %n0, %n0",
        f"copy_matrix_cc_to_gm %c, %v, %n{size(M, 32, N)}, %n{way(M, 23)}",
        "%control = pto.get_ctrl : i64", "%some = pto.sbitset1 %control, %n46 : i64, i64 -> i64",
        "%more = pto.sbitset1 %some, %n3 : i64, i64 -> i64", "%less = pto.sbitset0 %more, %n46 : i64, i64 -> i64",
        "pto.set_ctrl %less : i64", "%now = pto.get_ctrl : i64", "%float = arith.sitofp %now : i64 to f32",
        "pto.store_scalar %float, %t[%zero] : !pto.ptr<f32, gm>, f32",
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((M, K), (K, N)))
    bias = np.arange(N, dtype=np.float32)
    w = np.concatenate([words().view(np.float32), np.zeros(64, np.float32), bias, np.zeros(16, np.float32), SLOPES])
    found = {
        name: np.zeros((M, N), {"f32": np.float32, "f16": np.float16, "i8": np.int8}[e]) for name, e in outs.items()
    }
    run(kernel(arguments, places, lines), target, x, y, w, *found.values())
    acc = x.astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_array_equal(found["o"], 2 * acc)
    acc += bias
    np.testing.assert_array_equal(found["p"].reshape(N, M), acc.T)
    np.testing.assert_array_equal(found["q"], np.where(acc >= 0, acc / 2, acc / 8).astype(np.float16))
    scaled = acc[:, :32] * SCALES
    np.testing.assert_array_equal(
        found["r"][:, :32], np.minimum(np.where(scaled >= 0, scaled, scaled * SLOPES), 3).astype(np.float16)
    )
    np.testing.assert_array_equal(found["s"][:, :16], np.maximum(acc[:, :16], 0).astype(np.float16))
    np.testing.assert_array_equal(found["v"][:, :32], np.clip(np.rint(scaled) + OFFSETS, -128, 127))
    assert found["t"][0, 0] == 8
    assert not found["r"][:, 32:].any() and not found["s"][:, 16:].any()


def test_copies_between_memories_and_loops_around_them(target: str) -> None:
    """Two outer loops around bursts, in one number each or in two; bursts with gaps; a register from anywhere."""
    arguments = {"x": "i16, gm", "o": "i16, gm", "p": "i16, gm"}
    places = {
        "l": ("i16, l1", 32), "m": ("i16, l1", 4096), "u": ("i16, ub", 0), "v": ("i16, ub", 2048),
        "k": ("i16, ub", 4096),
    }  # fmt: skip
    lines = [
        f"set_loop_size_outtol1 %n{2 | 3 << 21}", f"set_loop1_stride_outtol1 %n{64 | 128 << 40}",
        "set_loop2_stride_outtol1 %n128, %n256",
        "copy_gm_to_cbuf %x, %l, %n2, %n32, %n32, %n64",
        "copy_cbuf_to_ubuf %l, %u, %n0, %n6, %n2, %n2, %n1",
        "copy_ubuf_to_ubuf %u, %v, %n0, %n1, %n20, %n0, %n0",
        "copy_ubuf_to_cbuf %v, %m, %n0, %n1, %n20, %n0, %n0",
        "copy_cbuf_to_ubuf %m, %k, %n0, %n1, %n20, %n0, %n0",
        "mte_ub_gm %k, %o, %n640 nburst(%n1, %n0, %n0)",
        "%three = arith.constant 3 : index",
        "%all = pto.pset_b16 \"PAT_ALL\" : !pto.mask<b16>",
        "%row = pto.uvld %k[%three] : !pto.ptr<i16, ub> -> !pto.vreg<128xi16>",
        "pto.vsts %row, %u[%zero], %all : !pto.vreg<128xi16>, !pto.ptr<i16, ub>, !pto.mask<b16>",
        "mte_ub_gm %u, %p, %n256 nburst(%n1, %n0, %n0)",
    ]  # fmt: skip
    x, o, p = np.arange(1, 193, dtype=np.int16), np.zeros(320, np.int16), np.zeros(128, np.int16)
    run(kernel(arguments, places, lines), target, x, o, p)
    staged = np.zeros(1024, np.int16)
    for outer in range(3):
        for inner in range(2):
            for burst in range(2):
                at = outer * 64 + inner * 32 + burst * 16
                go = outer * 128 + inner * 64 + burst * 32
                staged[go : go + 16] = x[at : at + 16]
    wanted = np.zeros(1024, np.int16)
    for burst in range(6):
        wanted[burst * 48 : burst * 48 + 32] = staged[burst * 64 : burst * 64 + 32]
    np.testing.assert_array_equal(o, wanted[:320])
    np.testing.assert_array_equal(p, wanted[3:131])


def test_columns_staged_and_matrices_to_local_memories(target: str) -> None:
    arguments = {"x": "f16, gm", "o": "f32, gm", "p": "f32, gm", "q": "f16, gm"}
    places = {
        "x1": ("f16, l1", 0), "l": ("f32, l1", 8192), "a": ("f16, l0a", 0), "b": ("f16, l0b", 0), "c": ("f32, l0c", 0),
        "u": ("f32, ub", 0), "v": ("f32, ub", 8192), "h": ("f16, ub", 16384),
    }  # fmt: skip
    one = int(np.float16(1).view(np.uint16))
    lines = [
        f"set_mte2_nz_para %n{1 | 1 << 16 | 16 << 32}", "set_channel_para %n0", "set_pad_val_outtol1 %n0",
        "copy_gm_to_cbuf_multi_dn2nz %x, %x1, %n0, %n32, %n0, %n16, %n16, %n0, %no",
        "load_cbuf_to_ca %x1, %a, %n0, %n0, %n1, %n1, %n1, %n1",
        "load_cbuf_to_cb %x1, %b, %n0, %n0, %n1, %n1, %n1, %n1",
        f"mad_raw %a, %b, %c, %n{product(16, 16, 16)}",
        f"copy_matrix_cc_to_ub %c, %u, %n{size(16, 16, 16)}, %n{way(16)}",
        f"copy_matrix_cc_to_cbuf %c, %l, %n{size(16, 16, 16)}, %n{way(16, relu=1)}",
        "copy_cbuf_to_ubuf %l, %v, %n0, %n1, %n32, %n0, %n0",
        "mte_ub_gm %u, %o, %n1024 nburst(%n1, %n0, %n0)", "mte_ub_gm %v, %p, %n1024 nburst(%n1, %n0, %n0)",
        f"set_mov_pad_val %n{one}",
        "copy_gm_to_ubuf %x, %h, %n0, %n2, %n20, %n1, %n5, %no, %n0, %n32, %n64",
        "mte_ub_gm %h, %q, %n128 nburst(%n1, %n0, %n0)",
    ]  # fmt: skip
    x = np.random.default_rng(0).integers(-4, 5, (16, 16)).astype(np.float16)
    o, p, q = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32), np.zeros((2, 32), np.float16)
    run(kernel(arguments, places, lines), target, x, o, p, q)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(o, wide.T @ wide)
    np.testing.assert_array_equal(p, np.maximum(wide.T @ wide, 0))
    wanted = np.ones((2, 32), np.float16)
    wanted[:, 1:11] = x[:2, :10]
    np.testing.assert_array_equal(q, wanted)


def test_how_many_records_a_merge_takes(target: str) -> None:
    """All of them; or, where it stops as soon as one list has no more, those that came before."""
    lists = ([9, 5, 1], [7, 6], [8, 4, 3, 2], [0])
    arguments = {"x": "f32, gm", "o": "i32, gm", "p": "i32, gm"}
    places = {"m": ("f32, ub", 4096), **{f"u{i}": ("f32, ub", 128 * i) for i in range(4)}}
    counts = sum(len(each) << 16 * i for i, each in enumerate(lists))
    lines = ["mte_gm_ub %x, %u0, %n0, %n512 nburst(%n1, %n0, %n0)"]
    for name, stops in (("o", 0), ("p", 1)):
        config, results = 1 | 15 << 8 | stops << 12, ", ".join(f"%{name}{i}" for i in range(4))
        lines += [
            f"vmrgsort4 %m, %u0, %u1, %u2, %u3, %n{counts}, %n{config}",
            f"{results} = pto.get_vms4_sr : i16, i16, i16, i16",
        ]
        for i in range(4):
            lines += [
                f"%{name}w{i} = arith.extsi %{name}{i} : i16 to i32", f"%{name}i{i} = arith.constant {i} : index",
                f"pto.store_scalar %{name}w{i}, %{name}[%{name}i{i}] : !pto.ptr<i32, gm>, i32",
            ]  # fmt: skip
    x = np.zeros((4, 16, 2), np.float32)
    for row, keys in zip(x, lists, strict=True):
        row[: len(keys), 0] = keys
    o, p = np.zeros((2, 4), np.int32)
    run(kernel(arguments, places, lines), target, x, o, p)
    assert o.tolist() == [3, 2, 4, 1]
    assert p.tolist() == [1, 2, 1, 0]  # 9, 8, 7, 6: then the second list has no more


def turned(stride: str) -> str:
    """Return a kernel that turns 2 x 3 fractals to where they lie three apart, or less."""
    places = {"x1": ("f16, l1", 0), "a": ("f16, l0a", 0)}
    line = f"load_cbuf_to_ca %x1, %a, %n0, %n0, %n2, %n3, %n2, {stride} {{transpose}}"
    return kernel({"s": "i64"}, places, [line])


def test_turned_fractals_do_not_lie_on_each_other(target: str) -> None:
    run(turned("%n3"), target, 3)
    with pytest.raises(UnsupportedFeatureError, match="lie on each other"):
        run(turned("%n2"), target, 3)
    run(turned("%s"), target, 3)
    with pytest.raises(ExecutionError, match="lie on each other"):
        run(turned("%s"), target, 2)


def test_a_control_word_of_the_run_is_not_passed_over(target: str) -> None:
    """How it rounds factors must be known; whether copies add to global memory stops those that would."""
    places = {"a": ("f32, l0a", 0), "b": ("f32, l0b", 0), "c": ("f32, l0c", 0)}
    lines = ["set_ctrl %word", f"mad_raw %a, %b, %c, %n{product(16, 16, 8)}"]
    with pytest.raises(UnsupportedFeatureError, match="words of `pto.mad_raw` are constants here"):
        run(kernel({"word": "i64"}, places, lines), target, 0)
    lines = ["set_ctrl %word", "mte_ub_gm %u, %o, %n32 nburst(%n1, %n0, %n0)"]
    text, o = kernel({"word": "i64", "o": "f32, gm"}, {"u": ("f32, ub", 0)}, lines), np.ones(8, np.float32)
    run(text, target, 1 << 48, o)
    assert not o.any()
    with pytest.raises(ExecutionError, match="lets a copy add to global memory"):
        run(text, target, 1 << 6, o)


def test_turned_columns_do_not_lie_on_each_other(target: str) -> None:
    o, places = np.zeros(512, np.float32), {"c": ("f32, l0c", 0)}
    run(kernel({"o": "f32, gm"}, places, ["mte_l0c_gm %c, %o, %n16, %n16, %n16, %n16, %n0, %n0, nz2dn"]), target, o)
    lines = ["mte_l0c_gm %c, %o, %n16, %n16, %n16, %n15, %n0, %n0, nz2dn"]
    with pytest.raises(UnsupportedFeatureError, match="lie on each other"):
        run(kernel({"o": "f32, gm"}, places, lines), target, o)


@pytest.mark.parametrize("op", ["copy_matrix_cc_to_gm %c, %o", "copy_matrix_cc_to_ub %c, %u"])
@pytest.mark.parametrize("order", [BY_ROWS, BY_COLUMNS])
def test_matrices_leave_as_often_as_the_register_says(op: str, order: int, target: str) -> None:
    places = {
        "w1": ("f32, l1", 0), "bt": ("f32, bt", 0), "a": ("f16, l0a", 0), "b": ("f16, l0b", 0), "c": ("f32, l0c", 0),
        "u": ("f32, ub", 0),
    }  # fmt: skip
    lines = [
        "copy_gm_to_cbuf %w, %w1, %n1, %n128, %n0, %n0", "copy_cbuf_to_bt %w1, %bt, %no, %n1, %n4, %n0, %n0",
        f"mad_bias_raw %a, %b, %c, %bt, %n{product(16, 32, 16, 62)}",
        f"set_loop3_para %n{2 | 16 << 16 | 0 << 32}, %n1",  # 256 elements further
        f"{op}, %n{size(16, 16, 16)}, %n{way(16, rest=order)}",
        *(["mte_ub_gm %u, %o, %n2048 nburst(%n1, %n0, %n0)"] if "ub" in op else []),
    ]  # fmt: skip
    w, o = np.arange(1, 33, dtype=np.float32), np.zeros((2, 16, 16), np.float32)
    run(kernel({"w": "f32, gm", "o": "f32, gm"}, places, lines), target, w, o)
    halves = np.broadcast_to(w.reshape(2, 1, 16), (2, 16, 16))
    np.testing.assert_array_equal(o, halves if order == BY_ROWS else halves.transpose(0, 2, 1))
