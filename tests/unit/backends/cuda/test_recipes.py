"""Recipes: what each op is written as, and that every op without one is refused by its name."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from ops.kernels import kernel, out, scalar, tensor
from ops.test_every_op import example, title
from pages import ROOT
from unit.backends.cuda.written import without_places, written

import tilewright.language as pl
from tilewright.backends.cpu.host.program import HANDLERS as PROCESSOR
from tilewright.backends.cuda.ttir.recipes import RARE, REASONS, RECIPES, SCALARS, reason_for, recipe_of
from tilewright.core.op import OPS, Kind, Op, OpSpec, specs
from tilewright.errors import UnsupportedFeatureError


@pytest.mark.parametrize("spec", [s for s in specs() if Kind.TILE in s.kinds and s.example], ids=title)
def test_an_op_is_written_or_refused_by_name(spec: OpSpec) -> None:
    try:
        assert written(example(spec)).kernels
    except UnsupportedFeatureError as error:
        assert re.search(r"no CUDA recipe for .+( yet|: )", str(error))


def text_of(body: str, dtype: str = "FP32", to: str = "") -> str:
    """Return the text of a kernel that computes `r` of tiles `a` and `b` and a number `n`."""
    kind, result = getattr(pl, dtype), getattr(pl, to or dtype)
    parameters = {"x": tensor(kind, 16, 32), "y": tensor(kind, 16, 32), "n": scalar(kind), "out": out(result, 16, 32)}
    head = "a, b = pl.load(x, [0, 0], [16, 32]), pl.load(y, [0, 0], [16, 32])"
    function = kernel(f"{head}\n{body}\nout = pl.store(r, [0, 0], out)", **parameters)
    (found,) = written(function).kernels
    return without_places(found.aligned)


@pytest.mark.parametrize(
    ("body", "dtype", "wanted"),
    [
        ("r = a - b", "FP32", r"arith\.subf"),
        ("r = a * b", "INT16", r"arith\.muli .* tensor<16x32xi16>"),
        ("r = a / b", "FP32", r"tt\.precise_divf"),
        ("r = a + n", "BF16", r"tt\.splat %\d+ : bf16 -> tensor<16x32xbf16>"),
        ("r = pl.sqrt(a)", "FP32", r"tt\.precise_sqrt"),
        ("r = pl.tanh(a)", "FP16", r'symbol = "__nv_tanhf"'),
        ("r = pl.pow(a, b)", "FP32", r'arith\.extf .*f64>[\s\S]*symbol = "__nv_pow"[\s\S]*arith\.truncf'),
        ("r = pl.maximum(a, b)", "UINT8", r"arith\.maxui"),
        ("r = pl.fmod(a, b)", "INT32", r"arith\.select[\s\S]*arith\.remsi"),
        ("r = pl.row_expand(a, pl.row_sum(b))", "FP32", r"arith\.addf %\d+, %\d+ : f64\n\s+tt\.reduce\.return"),
        ("r = pl.col_expand(a, pl.col_max(b))", "INT8", r"axis = 0 : i32}> \({\n[\s\S]*arith\.maxsi %\d+, %\d+ : i8"),
        ("r = pl.sel(pl.cmp(a, b, cmp_type=2), a, b)", "FP32", r"arith\.cmpf olt[\s\S]*arith\.select"),
        ("r = pl.tile.transpose_view(pl.tile.transpose_view(a))", "FP32", r"tt\.trans %\d+ {order = array<i32: 1, 0>}"),
        ("r = pl.reshape(pl.reshape(a, [8, 64]), [16, 32])", "FP32", r"tt\.reshape .* -> tensor<8x64xf32>"),
        (
            "r = pl.concat(pl.slice(a, [16, 16], [0, 8]), pl.slice(b, [16, 16], [0, 0]))",
            "FP32",
            r"tt\.gather .*axis = 1",
        ),
        ("r = pl.assemble(a, pl.slice(b, [8, 8], [4, 4]), [8, 0])", "INT16", r"tt\.gather[\s\S]*arith\.select"),
        (
            "r = pl.where((a > b) & (a < n), a, 0.0)",
            "FP32",
            r"arith\.cmpf ogt[\s\S]*arith\.andi .*xi1>[\s\S]*arith\.select",
        ),
        ("r = pl.tri(0, [16, 32], dtype=pl.FP32)", "FP32", r"arith\.cmpi sle"),
        (
            "r = pl.cumsum(a, axis=0, reverse=True)",
            "INT32",
            r"tt\.scan.*axis = 0 : i32, reverse = true.*\n.*\n.*arith\.addi",
        ),
        ("r = pl.cumsum(a)", "FP16", r"arith\.addf %\d+, %\d+ : f64\n\s+tt\.scan\.return"),
        ("r = pl.sort(a)", "FP32", r"scf\.for[\s\S]*scf\.for[\s\S]*tt\.gather .*xi64>[\s\S]*tt\.gather .*xf32>"),
        ("r = pl.sort(a)", "INT64", r"scf\.for[\s\S]*tt\.gather .*xi64>, .*\n[\s\S]*tt\.gather .*xi32>, .*xi32>"),
        ("r = pl.col_expand(a, pl.col_sum(b))", "FP16", r"scf\.for[\s\S]*tt\.gather[\s\S]*arith\.truncf .*x32xf16>"),
        ("r = pl.fillpad(pl.set_validshape(a, 5, 7))", "FP32", r"arith\.constant 5 : i64[\s\S]*arith\.select"),
        ("r = a\nfor i in pl.range(3):\n    r = r + b", "FP32", r"scf\.for [\s\S]*iter_args[\s\S]*scf\.yield"),
        (
            "if n > 0.0:\n    r = a\nelse:\n    r = b",
            "FP32",
            r"arith\.cmpf ogt[\s\S]*scf\.if[\s\S]*else[\s\S]*scf\.yield",
        ),
        (
            "r = pl.load(x, [0, 0], [16, 32], valid_shape=[5, 7])",
            "FP32",
            r"arith\.andi[\s\S]*tt\.load %\d+, %\d+, %\d+",
        ),
        ("r = a * b", "FP64", r"arith\.mulf .* tensor<16x32xf64>"),
        ("r = pl.exp(a)", "FP64", r'symbol = "__nv_exp"'),
        ("r = pl.iota([16, 32], axis=0, start=n, step=2.0, dtype=pl.FP32)", "FP32", r"math\.fma"),
        ("r = pl.rand(7, [16, 32])", "FP32", r"tt\.mulhiui[\s\S]*arith\.uitofp"),
        ("r = pl.reinterpret_view(pl.reinterpret_view(a, pl.INT16), pl.FP32)", "FP32", r"tt\.join[\s\S]*tt\.split"),
        ("r = pl.part_add(a, pl.set_validshape(b, 5, 7))", "FP32", r"arith\.addf[\s\S]*arith\.select"),
        (
            "r = a\nwhile pl.read(x, [0, 0]) > n:\n    r = r + b\n    n = n + 1.0",
            "FP32",
            r"scf\.while [\s\S]*scf\.condition",
        ),
        (
            "r = a\nfor i in pl.range(9):\n    if pl.read(x, [i, 0]) > n:\n        break\n    r = r + b",
            "FP32",
            r"scf\.while [\s\S]*scf\.condition[\s\S]*scf\.if [\s\S]*arith\.addf",
        ),
    ],
)
def test_recipes_by_their_text(body: str, dtype: str, wanted: str) -> None:
    assert re.search(wanted, text_of(body, dtype))


@pytest.mark.parametrize(
    ("source", "target", "mode", "wanted"),
    [
        ("FP32", "BF16", "rint", r"arith\.truncf .*xbf16>"),
        ("INT32", "FP16", "rint", r"arith\.sitofp .*xf16>"),
        ("FP32", "INT32", "floor", r"math\.floor[\s\S]*cvt\.rzi\.s32\.f32"),
        ("FP32", "INT8", "rint", r"__nv_rintf[\s\S]*cvt\.rzi\.s32\.f32 .*xi32>[\s\S]*arith\.minsi[\s\S]*arith\.trunci"),
        ("FP32", "UINT64", "trunc", r"__nv_truncf[\s\S]*cmpf uno[\s\S]*cvt\.rzi\.u64\.f32"),
        ("UINT8", "INT32", "rint", r"arith\.extui"),
        ("FP64", "BF16", "rint", r"arith\.truncf .*xf64> to tensor<16x32xbf16>"),
        ("FP32", "FP8E4M3FN", "rint", r"arith\.addf[\s\S]*arith\.subf[\s\S]*arith\.trunci .* to tensor<16x32xi8>"),
        ("FP8E5M2", "FP32", "rint", r"arith\.extui[\s\S]*arith\.shli[\s\S]*arith\.mulf"),
        ("INT32", "INT4", "rint", r"arith\.shli[\s\S]*arith\.shrsi"),
    ],
)
def test_casts_by_their_text(source: str, target: str, mode: str, wanted: str) -> None:
    assert re.search(wanted, text_of(f'r = pl.cast(a, pl.{target}, mode="{mode}")', source, target))


INDEXED = "i = pl.cast(a, pl.INT32)\n"


@pytest.mark.parametrize(
    ("body", "dtype", "wanted"),
    [
        ("r = pl.take(out, i, axis=None)", "FP32", r"arith\.cmpi ult[\s\S]*scf\.if[\s\S]*tt\.load %\d+, %\d+, %\d+"),
        ("pl.atomic_add(out, i, 1.0, axis=None)\nr = a", "FP32", r"tt\.atomic_rmw fadd, relaxed, gpu"),
        (
            "pl.atomic_max(out, i, b, axis=None)\nr = a",
            "FP32",
            r"scf\.while[\s\S]*arith\.cmpf ogt[\s\S]*atomic_cas .*i32>",
        ),
        ("pl.atomic_min(out, i, b, axis=None)\nr = a", "UINT32", r"tt\.atomic_rmw umin"),
        (
            "pl.atomic_add(out, i, b, axis=None)\nr = a",
            "INT8",
            r"tt\.int_to_ptr[\s\S]*scf\.while[\s\S]*atomic_cas .*i32>",
        ),
        ("r = pl.atomic_add(out, i, b, axis=None)", "INT32", r"scf\.for[\s\S]*tt\.atomic_rmw add[\s\S]*gpu\.barrier"),
    ],
)
def test_places_by_their_text(body: str, dtype: str, wanted: str) -> None:
    assert re.search(wanted, text_of(f"{INDEXED}{body}", dtype))


def test_single_rows_are_gathered_in_the_layout_they_have() -> None:
    """Triton 3.5 to 3.9 end in an assertion over the layout that they would choose themselves."""
    text = text_of("r = pl.slice(pl.sort(a), [16, 32], [0, 0])")
    gathers = [line for line in text.splitlines() if "tt.gather" in line]
    assert gathers and all("efficient_layout" in line for line in gathers)


def test_short_products_are_not_left_to_the_matrix_units() -> None:
    body = (
        "c = pl.load(x, [0, 0], [16, 8])\nd = pl.load(y, [0, 0], [8, 32])\np = pl.matmul(c, d)\nr = pl.cast(p, pl.BF16)"
    )
    text = text_of(body, "BF16")
    assert re.search(r"tt\.dot .*inputPrecision = ieee : tensor<16x8xf32> \* tensor<8x32xf32>", text)


def test_every_op_has_a_recipe_or_a_reason() -> None:
    unknown = {op.name for op in OPS.values() if has_code(op) and not reason_for(op) and not is_written(op)}
    assert not unknown
    assert not [op.name for op in OPS.values() if reason_for(op) and is_written(op)]


def has_code(op: Op) -> bool:
    """Return whether programs that have been lowered have this op: the processor has code for it."""
    return PROCESSOR.found(op) is not None


def is_written(op: Op) -> bool:
    return recipe_of(op) is not None or (op.kind is Kind.SCALAR and op.spec.name in SCALARS)


def test_the_page_lists_the_reasons() -> None:
    page = (ROOT / "docs" / "cuda.md").read_text(encoding="utf-8")
    for why, names in REASONS.items():
        assert f"- {', '.join(f'`{name}`' for name in names)}: {why}." in re.sub(r"\n  ", " ", page)


def test_no_recipe_of_a_family_hides_one_that_is_loaded_late() -> None:
    for module in RARE:
        import_module(module)
    for op in OPS.values():
        own, family = RECIPES.get(op.name), RECIPES.get(f"{op.kind.value}:{op.spec.family}")
        if own is not None and family is not None and own.__module__ in RARE:
            assert own.__module__ == family.__module__, op.name
