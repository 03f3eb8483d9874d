"""Printing: the text of every construct, and that it reads back as an equal program."""

from __future__ import annotations

import warnings
from dataclasses import replace
from textwrap import indent

import pytest
from unit.core.programs import everything, function

import tilewright.language as pl
from tilewright.core.build import scalar
from tilewright.core.enums import MemorySpace, TensorLayout
from tilewright.core.equality import assert_structural_equal
from tilewright.core.expr import (
    ABSENT,
    Expr,
    GlobalVar,
    MakeTuple,
    Submit,
    Symbol,
    TupleGetItem,
    Var,
    constant,
    integer,
)
from tilewright.core.printer import python_print, python_print_type
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import VOID, ArrayType, MemRef, ScalarType, TensorType, TupleType, Type, tensor, tile
from tilewright.dtypes import BF16, BOOL, FP16, FP32, INDEX, INT8, INT32, INT64, TASK_ID, UINT64, DataType
from tilewright.ops.registry import OPS as OPS  # declared: programs are made of them

HEAD = (
    "@pl.function\n"
    "def f(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]], "
    "b: pl.Scalar[pl.BOOL], h: pl.Scalar[pl.FP16], k: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INT32], "
    "s: pl.Scalar[pl.FP32]):\n"
)


def read(text: str) -> Function | Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some kernels here only rebind an output
        return pl.parse(text)


def reads_back(node: Function | Program) -> None:
    """Fail unless the text of `node` is an equal program, with the same text."""
    for concise in (False, True):
        text = node.as_python(concise=concise)
        copy = read(text)
        assert_structural_equal(node, copy)
        assert copy.as_python(concise=concise) == text


def printed(body: str) -> str:
    """Return the text of a kernel's body, having checked that it reads back."""
    original = read(HEAD + indent(body, "    "))
    assert isinstance(original, Function)
    reads_back(original)
    lines = original.as_python(concise=True).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line.removeprefix("    ") for line in lines[start + 1 :])


def built(*stmts: Stmt, params: tuple[Var, ...] = (), returns: tuple[Type, ...] = ()) -> Function:
    return Function("f", params, returns, SeqStmts(stmts))


STRAIGHT = {
    "an assignment": "a = s + 1.0\npl.tensor.write(y, [0, 0], a)",
    "tile ops": "t = pl.tile.load(x, [0, 0], [16, 64])\nu = pl.tile.add(t, t)\npl.tile.store(u, [k * 2, 0], y)",
    "a reassignment across blocks": "a = s\nif b:\n    a = s + 1.0\npl.tensor.write(y, [0, 0], a)",
    "nothing": "pass",
    "an early return": "if b:\n    return\npl.tensor.write(y, [0, 0], s)",
    "nested arithmetic": "a = ((k * 2) + 1) // (k - 3)\npl.tensor.write(y, [a % 4, 0], s)",
    "shifts": "a = (k << 2) >> 1\npl.tensor.write(y, [a, 0], s)",
    "unary operators": "a = -k\nc = not b\nif c:\n    pl.tensor.write(y, [a, 0], s)",
    "comparisons and logic": "c = (k < 3) and ((k == 5) or b)\nif c:\n    pl.tensor.write(y, [0, 0], s)",
    "minimum and maximum": "a = pl.max(pl.min(k, 3), 1)\npl.tensor.write(y, [a, 0], s)",
    "a cast of a scalar": "a = pl.cast(n, pl.INDEX)\npl.tensor.write(y, [a, 0], s)",
    "an option by name": "t = pl.tile.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)",
    "an absent operand": "t = pl.tile.load(x, [0, 0], [64, 64], clamp=True)",
    "an optional operand": "t = pl.tile.load(x, [0, 0], [16, 64], [k, 64])\npl.tile.store(t, [0, 0], y)",
    "a placed tile": (
        "t: pl.Tile[[16, 64], pl.FP32, pl.MemRef(0, 4096), pl.Mem.Vec] = pl.tile.load(x, [0, 0], [16, 64])"
    ),
    "an array": "a = pl.array.create(extent=4, dtype=pl.INT32)\na_1 = pl.array.update_element(a, 1, n)",
    "attributes of a function": (
        'pl.func_attr({"split": pl.SplitMode.UP_DOWN, "a": (1, 2.5), "e": (), "i": float("inf"), "t": True})'
    ),
}

CONTROL = {
    "a loop": "for i in pl.range(4):\n    pl.tensor.write(y, [i, 0], s)",
    "a loop downwards": "for i in pl.range(8, 0, -1):\n    pl.tensor.write(y, [i, 0], s)",
    "a loop of another type": (
        "for i in pl.range(pl.const(0, pl.INT32), pl.const(4, pl.INT32), pl.const(1, pl.INT32)):\n"
        "    pl.tensor.write(y, [i, 0], s)"
    ),
    "a parallel loop": "for i in pl.parallel(k):\n    pl.tensor.write(y, [i, 0], s)",
    "an unrolled loop": "for i in pl.unroll(3):\n    pl.tensor.write(y, [i, 0], s)",
    "a pipelined loop": "for i in pl.pipeline(k, stage=2):\n    pl.tensor.write(y, [i, 0], s)",
    "a loop with attributes": (
        'for i in pl.pipeline(k, stage=2, attrs={"note": 1, "mode": pl.SplitMode.UP_DOWN}):\n'
        "    pl.tensor.write(y, [i, 0], s)"
    ),
    "an unrolled loop that carries": (
        'for i, (a,) in pl.range(3, init_values=(s,), attrs={"unroll": True}):\n'
        "    r = pl.yield_(a + 1.0)\npl.tensor.write(y, [0, 0], r)"
    ),
    "an empty loop": "for i in pl.range(4):\n    pass",
    "state carried by assignment": "a = s\nfor i in pl.range(4):\n    a = a + 1.0\npl.tensor.write(y, [0, 0], a)",
    "state carried by a yield": (
        "for i, (a,) in pl.range(4, init_values=(s,)):\n    r = pl.yield_(a + 1.0)\npl.tensor.write(y, [0, 0], r)"
    ),
    "two values carried": (
        "for i, (a, j) in pl.range(4, init_values=(s, k)):\n"
        "    r, q = pl.yield_(a + 1.0, j + 2)\n"
        "pl.tensor.write(y, [q, 0], r)"
    ),
    "a constant carried": (
        "for i, (a,) in pl.range(4, init_values=(0.0,)):\n    r = pl.yield_(a + 1.0)\npl.tensor.write(y, [0, 0], r)"
    ),
    "break and continue": (
        "for i in pl.range(4):\n"
        "    if i > k:\n        break\n"
        "    if i == 2:\n        continue\n"
        "    pl.tensor.write(y, [i, 0], s)"
    ),
    "break with values": (
        "for i, (a,) in pl.range(8, init_values=(s,)):\n"
        "    if i > k:\n        pl.yield_(a)\n        break\n"
        "    r = pl.yield_(a + 1.0)\n"
        "pl.tensor.write(y, [0, 0], r)"
    ),
    "continue with values": (
        "for i, (a, j) in pl.range(8, init_values=(s, k)):\n"
        "    if i > k:\n        pl.yield_(a + 2.0, j)\n        continue\n"
        "    r, q = pl.yield_(a + 1.0, j + 1)\n"
        "pl.tensor.write(y, [q, 0], r)"
    ),
    "a loop that every path leaves": (
        "for i, (a,) in pl.range(8, init_values=(s,)):\n"
        "    if i > k:\n        pl.yield_(a + 2.0)\n        continue\n"
        "    else:\n        pl.yield_(a)\n        break\n"
        "pl.tensor.write(y, [0, 0], a_out)"
    ),
    "a loop left at once": (
        "for i, (a,) in pl.range(8, init_values=(s,)):\n"
        "    pl.yield_(a + 1.0)\n    break\n"
        "pl.tensor.write(y, [0, 0], a_out)"
    ),
    "a while": "i = 0\nwhile i < k:\n    i = i + 1",
    "a while forever": "i = 0\nwhile pl.const(True, pl.BOOL):\n    i = i + 1\n    if i > k:\n        break",
    "a while that carries": (
        "for (i, a) in pl.while_(init_values=(k, s)):\n"
        "    pl.cond(i < 10)\n"
        "    j, r = pl.yield_(i + 1, a * 2.0)\n"
        "pl.tensor.write(y, [j, 0], r)"
    ),
    "a while that carries and breaks": (
        "for (i,) in pl.while_(init_values=(k,)):\n"
        "    pl.cond(i < 10)\n"
        "    if b:\n        pl.yield_(i)\n        break\n"
        "    j = pl.yield_(i + 1)\n"
        "pl.tensor.write(y, [j, 0], s)"
    ),
    "a branch": "if b:\n    pl.tensor.write(y, [0, 0], s)\nelse:\n    pl.tensor.write(y, [1, 0], s)",
    "a branch on a constant": "if pl.const(True, pl.BOOL):\n    pl.tensor.write(y, [0, 0], s)",
    "an empty branch": "if b:\n    pass\nelse:\n    pl.tensor.write(y, [1, 0], s)",
    "a branch that yields": (
        "if b:\n    r, q = pl.yield_(s, 1)\nelse:\n    r, q = pl.yield_(s + 1.0, 2)\npl.tensor.write(y, [q, 0], r)"
    ),
    "a branch that yields or leaves": (
        "for i, (a,) in pl.range(8, init_values=(s,)):\n"
        "    if i > k:\n        pl.yield_(a)\n        break\n"
        "    else:\n        c = pl.yield_(a * 2.0)\n"
        "    r = pl.yield_(c)\n"
        "pl.tensor.write(y, [0, 0], r)"
    ),
}

SCOPES = {
    "a kernel": "with pl.at(level=pl.Level.CORE_GROUP):\n    pl.tensor.write(y, [0, 0], s)",
    "kernels with names and order": (
        'with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as tid:\n    pl.tensor.write(y, [0, 0], s)\n'
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]) as tid_1:\n    pl.tensor.write(y, [1, 0], s)"
    ),
    "another level": 'with pl.at(level=pl.Level.CHIP, role=pl.Role.SubWorker, name_hint="host") as tid:\n    pass',
    "a grid": "for i in pl.spmd(4):\n    pl.tensor.write(y, [i, 0], s)",
    "a grid with options": (
        "flags = pl.tensor.create([4], dtype=pl.INT32)\nflag = pl.tensor.read(flags, [1])\n"
        'for i in pl.spmd(k, sync_start=True, name_hint="grid", optimizations=[pl.split(pl.SplitMode.UP_DOWN)], '
        "allow_early_resolve=True, predicate=(flag > 0)):\n    pl.tensor.write(y, [i, 0], s)"
    ),
    "a grid without index": (
        "with pl.spmd(4) as tid:\n    i = pl.tile.get_block_idx()\n    pl.tensor.write(y, [i, 0], s)\n"
        "with pl.spmd(4, deps=[tid]) as tid_1:\n    i_1 = pl.tile.get_block_idx()\n    pl.tensor.write(y, [i_1, 0], s)"
    ),
    "clusters": 'with pl.cluster():\n    pass\nwith pl.cluster(name_hint="both"):\n    pl.tensor.write(y, [0, 0], s)',
    "runtime scopes": "with pl.scope(mode=pl.ScopeMode.MANUAL):\n    pl.tensor.write(y, [0, 0], s)",
    "a kernel with options": (
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT), "
        'pl.cross_core_slot(slot_num=4)], name_hint="all", no_dep_args=[x], dumps=[x, y], allow_early_resolve=True, '
        "windowize=True) as tid:\n    pl.tensor.write(y, [0, 0], s)"
    ),
}

NUMBERS = {
    "negative numbers": "a = k + -1\nc = -2 * a\npl.tensor.write(y, [c, 0], s)",
    "special floats": (
        "t = pl.tile.load(x, [0, 0], [16, 64])\n"
        't_1 = pl.tile.add(t, float("inf"))\n'
        't_2 = pl.tile.add(t_1, float("-inf"))\n'
        't_3 = pl.tile.add(t_2, float("nan"))\n'
        "t_4 = pl.tile.mul(t_3, -0.0)\n"
        "pl.tile.store(t_4, [0, 0], y)"
    ),
    "special floats between scalars": 'a = s + float("inf")\nc = h * -0.0\nd = a - float("nan")',
    "a literal takes the type it meets": "a = n + 1\nc = h * 2.5\nd = s + 0.5",
    "a constant of its own type": "return pl.const(7, pl.INT64), pl.const(1.5, pl.BF16), True, 7, 1.5",
}

EVERY = {**STRAIGHT, **CONTROL, **SCOPES, **NUMBERS}


@pytest.mark.parametrize("body", EVERY.values(), ids=EVERY)
def test_the_text_of_a_body_is_what_was_read(body: str) -> None:
    assert printed(body) == body


def test_one_of_everything_reads_back() -> None:
    reads_back(everything())


def test_a_program_is_a_module_with_a_class() -> None:
    text = """\
# tilewright.program: Pair
import tilewright.language as pl

M = pl.dynamic("M")
N = pl.dynamic("N")

@pl.program
class Pair:
    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.AIV, role=pl.Role.SubWorker)
    def kernel(self, x: pl.Tensor[[M // 2, (N + 3) * 4], pl.FP32], m: pl.Tensor[[M, N], pl.FP16], y: pl.Out[pl.Tensor[[M // 2, 1], pl.FP32]]) -> pl.Tensor[[M // 2, 1], pl.FP32]:
        t: pl.Tile[[16, 64], pl.FP32, pl.TileView(valid_shape=[None, None])] = pl.tile.load(x, [0, 0], [16, 64], [M, 64])
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M // 2, (N + 3) * 4], pl.FP32], m: pl.Tensor[[M, N], pl.FP16], y: pl.InOut[pl.Tensor[[M // 2, 1], pl.FP32]]):
        kernel: pl.Tuple[pl.Tensor[[M // 2, 1], pl.FP32], pl.Scalar[pl.TASK_ID]] = pl.submit(self.kernel, x, m, y, dumps=[x], allow_early_resolve=True)
        out: pl.Tensor[[M // 2, 1], pl.FP32] = kernel[0]
        tid: pl.Scalar[pl.TASK_ID] = kernel[1]
        kernel_1: pl.Tuple[pl.Tensor[[M // 2, 1], pl.FP32], pl.Scalar[pl.TASK_ID]] = pl.spmd_submit(self.kernel, x, m, out, deps=[tid], core_num=4, sync_start=True)
        last: pl.Tensor[[M // 2, 1], pl.FP32] = self.kernel(x, m, y)
        self.kernel(x, m, last)
"""  # noqa: E501
    program = read(text)
    assert str(program) == text
    reads_back(program)


def test_concise_text_leaves_out_the_types_of_locals() -> None:
    kernel = read(HEAD + "    t = pl.load(x, [0, 0], [16, 64])\n")
    assert "    t: pl.Tile[[16, 64], pl.FP32] = pl.tile.load(x, [0, 0], [16, 64])\n" in kernel.as_python()
    assert "    t = pl.tile.load(x, [0, 0], [16, 64])\n" in kernel.as_python(concise=True)


def test_another_prefix_is_used_throughout() -> None:
    text = everything().as_python("lang")
    assert "import tilewright.language as lang" in text
    assert "pl." not in text.replace("tilewright.language", "")
    assert_structural_equal(everything(), read(text))


def test_a_returned_tuple_is_annotated() -> None:
    signature = "def f(s: pl.Scalar[pl.FP32]) -> tuple[pl.Scalar[pl.FP32], pl.Scalar[pl.INDEX]]:"
    text = f"@pl.function\n{signature}\n    return s, 3\n"
    assert str(read(text)) == text
    reads_back(function(text))


@pytest.mark.parametrize("dtype", [FP16, BF16, FP32])
@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, 1e-30, 65504.0, float("inf"), float("-inf"), float("nan")])
def test_float_constants_read_back_to_the_bit(dtype: DataType, value: float) -> None:
    reads_back(built(ReturnStmt((constant(value, dtype),)), returns=(ScalarType(dtype),)))


@pytest.mark.parametrize("dtype", [INT8, INT32, INT64, UINT64, INDEX])
def test_the_least_and_largest_integers_read_back(dtype: DataType) -> None:
    limits = tuple(integer(int(limit), dtype) for limit in dtype.limits)
    reads_back(built(ReturnStmt(limits), returns=(ScalarType(dtype), ScalarType(dtype))))


@pytest.mark.parametrize(
    "hint", ["class", "None", "not a name", "", "pl", "self", "x", "v", "lambda", "f", "range", "match", "float", "ﬁ"]
)
def test_any_name_hint_gives_a_name_of_its_own(hint: str) -> None:
    x = Var("x", ScalarType(FP32))
    first, second = Var(hint, ScalarType(FP32)), Var(hint, ScalarType(FP32))
    stmts = (AssignStmt(first, scalar("add", x, x)), AssignStmt(second, scalar("mul", first, x)))
    total = scalar("add", scalar("add", first, second), x)
    infinity = constant(float("inf"))
    returns = (ScalarType(FP32), ScalarType(FP32))
    reads_back(built(*stmts, ReturnStmt((total, infinity)), params=(x,), returns=returns))


def test_colliding_names_are_numbered() -> None:
    x = Var("x", ScalarType(FP32))
    names = [Var(hint, ScalarType(FP32)) for hint in ("a_1", "a", "a", "class")]
    stmts = [AssignStmt(name, scalar("add", x, x)) for name in names]
    text = built(*stmts, params=(x,)).as_python(concise=True)
    assert [line.split(" = ")[0].strip() for line in text.splitlines()[2:]] == ["a_1", "a", "a_2", "v"]


def test_a_variable_called_like_a_symbol_gets_another_name() -> None:
    m = Var("M", tensor((Symbol("M"), 64), FP32))
    text = str(built(params=(m,)))
    assert text == 'M = pl.dynamic("M")\n\n@pl.function\ndef f(M_1: pl.Tensor[[M, 64], pl.FP32]):\n    pass\n'
    reads_back(built(params=(m,)))


@pytest.mark.parametrize("name", ["pl", "self", "float", "f", "x", "P", "None_"])
def test_any_symbol_reads_back(name: str) -> None:
    x = Var("x", tensor((Symbol(name), 64), FP32))
    kernel = built(
        ReturnStmt((Symbol(name), constant(float("inf")))), params=(x,), returns=(ScalarType(INDEX), ScalarType(FP32))
    )
    reads_back(kernel)
    reads_back(Program("P", (kernel,)))


def test_parameters_with_leading_underscores_read_back_in_a_class() -> None:
    hidden = Var("__x", ScalarType(FP32))
    reads_back(Program("P", (built(ReturnStmt((hidden,)), params=(hidden,), returns=(ScalarType(FP32),)),)))


def test_the_bounds_of_a_parameter_are_printed() -> None:
    i = Var("i", ScalarType(INDEX), bounds=(0, 192))
    copy = read(str(built(params=(i,))))
    assert isinstance(copy, Function)
    assert copy.params[0].bounds == (0, 192)


def test_results_of_a_branch_keep_their_names_apart() -> None:
    b, x, r, q = Var("b", ScalarType(BOOL)), *(Var(hint, ScalarType(FP32)) for hint in ("x", "x", "x"))
    branch = IfStmt(b, SeqStmts((YieldStmt((x, x)),)), SeqStmts((YieldStmt((constant(1.0), x)),)), (r, q))
    kernel = built(branch, ReturnStmt((r, q)), params=(b, x), returns=(ScalarType(FP32), ScalarType(FP32)))
    assert "x_1, x_2 = pl.yield_(x, x)" in str(kernel)
    reads_back(kernel)


TYPES: dict[str, Type] = {
    "pl.Scalar[pl.TASK_ID]": ScalarType(TASK_ID),
    "pl.Array[4, pl.INT32]": ArrayType(4, INT32),
    "pl.Tensor[[], pl.FP32]": tensor((), FP32),
    "pl.Tensor[[M, None, 64], pl.BF16]": tensor((Symbol("M"), None, 64), BF16),
    "pl.Tensor[[M // 2], pl.FP32]": tensor((scalar("floordiv", Symbol("M"), integer(2)),), FP32),
    "pl.Tensor[[64], pl.FP32, pl.NZ]": TensorType((64,), FP32, (64,), TensorLayout.NZ),
    "pl.Tensor[[64], pl.FP32, pl.TensorView(valid_shape=[M], stride=[], layout=pl.TensorLayout.ND)]": tensor(
        (64,), FP32, (Symbol("M"),)
    ),
    "pl.Tile[[16, 64], pl.FP16]": tile((16, 64), FP16),
    "pl.Tile[[16, 64], pl.FP16, pl.Mem.Acc]": tile((16, 64), FP16, memory=MemorySpace.Acc),
    "pl.Tile[[16, 64], pl.FP16, pl.TileView(valid_shape=[None, 8])]": tile((16, 64), FP16, (None, 8)),
    "pl.Tile[[8], pl.FP16, pl.MemRef(64, 16), pl.Mem.Vec]": replace(tile((8,), FP16), memref=MemRef(64, 16)),
    "pl.Tuple[pl.Scalar[pl.FP32], pl.Scalar[pl.BOOL]]": TupleType((ScalarType(FP32), ScalarType(BOOL))),
}


@pytest.mark.parametrize("text", TYPES)
def test_a_type_is_printed_as_its_annotation(text: str) -> None:
    assert python_print_type(TYPES[text]) == text


PARAMETERS = [type_ for type_ in TYPES.values() if not isinstance(type_, TupleType)]


@pytest.mark.parametrize("type_", PARAMETERS, ids=str)
def test_a_parameter_of_any_type_reads_back(type_: Type) -> None:
    sized = Var("sized", tensor((Symbol("M"),), FP32))
    reads_back(built(params=(Var("p", type_), sized)))


K = Var("k", ScalarType(INDEX))
EXPRESSIONS: dict[str, Expr] = {
    "k": K,
    "M": Symbol("M"),
    "1": integer(1),
    "pl.const(1, pl.INT32)": integer(1, INT32),
    "True": constant(True),
    "-0.0": constant(-0.0),
    "None": ABSENT,
    "[k, 1]": MakeTuple((K, integer(1))),
    "k[1]": TupleGetItem(K, 1, K.type),
    "pl.spmd_submit(f, k, deps=[k], core_num=4)": Submit(GlobalVar("f"), (K,), (K,), integer(4), VOID),
    "(k * 2) + (k % 3)": scalar("add", scalar("mul", K, integer(2)), scalar("mod", K, integer(3))),
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_can_be_printed_alone(text: str) -> None:
    assert python_print(EXPRESSIONS[text]) == text


def test_a_statement_can_be_printed_alone() -> None:
    assert python_print(AssignStmt(Var("a", K.type), scalar("add", K, K))) == "a: pl.Scalar[pl.INDEX] = k + k\n"
