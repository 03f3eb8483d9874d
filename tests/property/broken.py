"""Broken kernels: kernels that work, taken apart.

Statements are dropped, doubled, swapped and moved, expressions and names replaced, arguments removed, annotations
exchanged, and things inserted that no kernel has.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

TESTS = Path(__file__).parents[1]
WRITTEN = [TESTS.parent / "examples", TESTS / "unit" / "jit" / "round_trip"]
DECORATORS = ("pl.program", "pl.function", "pl.inline")

SMALL = {
    "branches": """
@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [64, 64])
    if n > 0 and not n == 3:
        r = pl.yield_(pl.exp(t))
    else:
        if n < -4:
            q = pl.mul(t, 2.0)
        else:
            q = t
        r = pl.yield_(q)
    s = pl.const(1, pl.INT32)
    if n > 5:
        s = s + n
    out = pl.store(pl.adds(r, pl.cast(s, pl.FP32)), [0, 0], out)
    return out
""",
    "loops": """
N = 4


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT64], out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
    acc = pl.tile.full([16, 64], dtype=pl.FP32, value=0.0)
    for i in pl.range(N):
        t = pl.load(x, [i * 16, 0], [16, 64])
        if i > n:
            break
        acc = pl.add(acc, t)
    for j, (total, last) in pl.range(0, N, 2, init_values=(acc, acc)):
        part = total * 2.0
        total, last = pl.yield_(part, total)
    k = pl.const(0, pl.INT32)
    while k < 10:
        k += 1
        if k == 4:
            continue
    for (m,) in pl.while_(init_values=(k,)):
        pl.cond(m > 0)
        m = pl.yield_(m - 1)
    for u in pl.unroll(2):
        total = pl.maximum(total, last)
    for p in pl.pipeline(2, stage=2):
        out = pl.store(total, [p * 16, 0], out)
    return out
""",
    "windows": """
M = pl.dynamic("M")


@pl.function
def kernel(x: pl.Tensor[[M, 64], pl.FP16], out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]) -> pl.Tensor[[M, 64], pl.FP32]:
    rows, cols = x.shape
    pl.static_assert(cols % 16 == 0, f"cols is {cols}")
    for r in pl.parallel(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="copy") as task:
            size = pl.min(16, rows - r)
            t = pl.load(x, [r, 0], [16, 64], valid_shape=[size, 64])
            wide: pl.Tile[[16, 64], pl.FP32] = pl.cast(t, pl.FP32)
            out = pl.store(wide, [r, 0], out)
    first = x[0, 0]
    window = x[0:16, 8:24]
    pl.write(out, [0, 0], pl.cast(first, pl.FP32))
    return out
""",
    "program": """
Matrix = pl.Tensor[[64, 64], pl.FP32]


@pl.inline
def twice(t, factor=2.0):
    return pl.mul(t, factor)


@pl.function(type=pl.FunctionType.InCore)
def copy(source: Matrix, target: pl.Out[Matrix]) -> Matrix:
    return pl.store(pl.load(source, [0, 0], [64, 64]), [0, 0], target)


@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.InCore)
    def both(self, a: Matrix, s: pl.Scalar[pl.FP32], p: pl.Out[Matrix], q: pl.Out[Matrix]) -> pl.Tuple[Matrix, Matrix]:
        t = twice(pl.load(a, [0, 0], [64, 64]), factor=s)
        p = pl.store(t, [0, 0], p)
        q[0:64, :] = t
        return p, q

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: Matrix, out: pl.Out[Matrix]) -> Matrix:
        p = pl.create_tensor([64, 64], dtype=pl.FP32)
        q = pl.create_tensor([64, 64], dtype=pl.FP32)
        p, q = self.both(a, 0.5, p, q)
        with pl.manual_scope():
            p, task = pl.submit(copy, q, p)
            tasks = pl.array.create(2, pl.TASK_ID)
            tasks[0] = task
            for b in pl.spmd(4, name_hint="blocks"):
                tile = pl.load(p, [b * 16, 0], [16, 64])
                out = pl.store(tile, [b * 16, 0], out)
        return out
""",
}


def by_hand() -> Iterator[tuple[str, str]]:
    """Yield each program that is written out as a class, as a text of its own, without the Python around it."""
    for path in sorted(path for folder in WRITTEN for path in folder.glob("*.py")):
        kept = list(language_only(ast.parse(path.read_text(encoding="utf-8"))))
        for program in (node for node in kept if isinstance(node, ast.ClassDef)):
            used = {program.name} | names_in(program)
            body = [node for node in kept if isinstance(node, ast.Assign) or getattr(node, "name", None) in used]
            yield f"{path.stem}-{program.name}", ast.unparse(ast.Module(body, []))


def language_only(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the definitions that need nothing but the language and each other."""
    known = {"pl"}
    for node in tree.body:
        if isinstance(node, ast.Assign) and known.issuperset(names_in(node.value)):
            known.update(name for target in node.targets for name in names_in(target))
            yield node
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            node.decorator_list = [d for d in node.decorator_list if ast.unparse(d).startswith(DECORATORS)]
            if node.decorator_list:
                yield node


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


TEXTS = SMALL | dict(by_hand())

NAMES = [
    "x", "t", "out", "n", "i", "acc", "pl", "self", "range", "len", "None_", "undefined", "M", "task", "_", "print",
]  # fmt: skip
ATTRIBUTES = [
    "load", "store", "add", "exp", "matmul", "tile", "tensor", "range", "yield_", "FP32", "INT32", "shape", "at",
]  # fmt: skip
CONSTANTS: list[Any] = [
    0, 1, -1, 2, 3, 16, 63, 64, 65, 1 << 40, -(1 << 63), 0.5, -0.0, 1e400, True, None, "text", b"b", ...,
]  # fmt: skip
EXPRESSIONS = [
    *("x", "t", "n + 1", "-n", "not n", "~n", "x[0]", "x[0:8, :]", "x[n, 0]", "x[::2]", "x[-1]", "x[None]"),
    *("x[...]", "[0, 0]", "()", "(1,)", "[[0]]", "{}", "{1: 2}", "{1}", "lambda: 0", "[i for i in x]"),
    *("(i for i in x)", "(y := 1)", "x.shape", "x.shape[0]", "x.dtype", "x.T", "pl", "pl.tile", "pl.FP32"),
    *("pl.Level.CORE_GROUP", "pl.dynamic('K')", "pl.load(x, [0, 0], [16, 16])", "pl.load(*x)", "pl.load(**x)"),
    *("pl.exp()", "pl.const(1, pl.INT8)", "pl.yield_(n)", "pl.range(4)", "pl.at(level=pl.Level.CORE_GROUP)"),
    *("pl.cond(n > 0)", "pl.spmd(4)", "pl.tile.get_block_idx()", "1 if n else 2", "1 if True else x"),
    *("0 < n < 4", "n is None", "n in (1, 2)", "n ** 2", "1 // 0", "1 << -1", "x @ x", "x and x", "1 and n > 0"),
    *("f'{n} {x}'", "'a' 'b'", "min(n, 4)", "max()", "len(x)", "int(n)", "sum([1, 2])", "abs(-1)"),
    *("self.both(x)", "self", "self.nothing()", "self.main", "twice(t)", "twice", "copy(x, out)", "print(x)"),
    *("int", "type(x)", "pl.Tensor[[64, 64], pl.FP32]", "pl.Tensor[[M], pl.INT8]", "pl.Tile[[8, 8], pl.FP16]"),
    *("pl.Scalar[pl.INT32]", "pl.Out[pl.Tensor[[4], pl.FP32]]", "pl.Out[pl.Scalar[pl.INT32]]"),
    *("pl.Tuple[int, int]", "tuple[pl.INT32]", "pl.Tensor", "pl.Array[4, pl.INT32]", "pl.Array[0, 0]"),
    *("'pl.Tensor[[4], pl.FP32]'", "'not a type'", "pl.Tensor[[-1], pl.FP32]", "pl.submit(self.both, x)"),
    *("pl.submit(copy, x, out)", "pl.submit()", "pl.array.create(4, pl.INT32)", "await x", "*x", "pl.min(1, n)"),
    *("pl.cast(x, pl.FP16)", "pl.cast(n, pl.FP32)", "pl.slice(x, [8, 8], [0, 0])", "pl.full([4], dtype=pl.FP32)"),
    *("(yield)", "x if x else x", "pl.reshape(x, [-1])", "pl.transpose(x, 0, 1)", "pl.row_sum(t)"),
    "pl.create_tensor([n], dtype=pl.FP32)",
]  # fmt: skip
STATEMENTS = [
    *("pass", "return", "return x", "return x, n", "break", "continue", "del x", "global n", "nonlocal n"),
    *("import math", "assert n", "raise ValueError", "x", "x = n", "n = x", "a = b = n", "a, b = x.shape"),
    *("a, *b = x.shape", "a, (b, c) = 1, (2, 3)", "x[0] = 1", "x[0, 0] = n", "x[:] = t", "x[0:8, 0:8] = t"),
    *("x.y = 1", "x: int", "y: pl.Scalar[pl.INT8] = 300", "x += 1", "x **= 2", "n += 1", "n //= 0", "t = t + t"),
    *("pl.yield_()", "pl.yield_(x)", "r = pl.yield_(n)", "a, b = pl.yield_(n, n)", "[a] = [1]", "pl.cond(n > 0)"),
    *("pl.static_print(x, n)", "pl.static_assert(n > 0)", "pl.static_assert(True, n)", "pl.func_attr({'a': 1})"),
    *("pl.write(x, [0, 0], 1)", "pl.write(t, [0, 0], 1.0)", "tid = pl.submit(self.both)"),
    "_, tid = pl.submit(self.both, predicate=x[0, 0] > 0)",
    *("pl.store(t, [0, 0], x)", "self = 1", "pl = 1"),
    "try:\n    pass\nexcept ValueError:\n    pass",
    "def inner():\n    pass",
    "class Inner:\n    pass",
    "async def inner():\n    pass",
    "match n:\n    case 1:\n        pass",
    "with open('f') as g:\n    pass",
    "with pl.at(level=pl.Level.CORE_GROUP) as a, pl.cluster():\n    pass",
    "with pl.spmd(4) as a:\n    pass",
    "with pl.scope(mode=pl.ScopeMode.MANUAL):\n    pass",
    "with pl.at(level=pl.Level.HOST, role=pl.Role.SubWorker):\n    pass",
    "for i in range(4):\n    pass",
    "for i in [1, 2]:\n    pass",
    "for i in pl.range(4):\n    pass\nelse:\n    pass",
    "for i, in pl.range(4):\n    pass",
    "for i in pl.spmd(0):\n    pass",
    "for i in pl.split_aiv(2):\n    n = i",
    "for a.b in pl.range(4):\n    pass",
    "for i, (a, b) in pl.range(4, init_values=(n, None)):\n    a, b = pl.yield_(a, a)",
    "for (a,) in pl.while_(init_values=(n,)):\n    pass",
    "for a in pl.while_(init_values=n):\n    pl.cond(True)",
    "while n:\n    pass",
    "while True:\n    break",
    "while False:\n    n = x",
    "while n > 0:\n    n = n - 1\nelse:\n    pass",
    "if True:\n    y = 1\nelse:\n    y = x",
    "if n > 0:\n    return x\nelse:\n    return n",
    "if n > 0:\n    y = 1\ny",
    "if n > 0:\n    pl.yield_(n)",
]  # fmt: skip
OPERATORS: list[type[ast.operator]] = [
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.BitAnd, ast.MatMult,
]  # fmt: skip
COMPARISONS: list[type[ast.cmpop]] = [ast.Eq, ast.NotEq, ast.Lt, ast.GtE, ast.In, ast.Is]


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    """Return the lists of statements inside functions; what stands outside them runs as Python."""
    inside = [node for function in functions(tree) for node in ast.walk(function)]
    found = [getattr(node, name, None) for node in inside for name in ("body", "orelse")]
    return [body for body in found if isinstance(body, list) and body]


def nodes(tree: ast.AST, *kinds: type[ast.AST]) -> list[Any]:
    """Return the nodes of some kinds inside functions, signatures included; an f-string stays in one piece."""
    pieces = {id(piece) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for piece in node.values}
    inside = [node for function in functions(tree) for node in ast.walk(function) if isinstance(node, kinds)]
    return [node for node in inside if id(node) not in pieces]


def replace_expression(tree: ast.AST, old: ast.expr, new: ast.expr) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(element is old for element in value):  # pyright: ignore[reportUnknownVariableType]
                setattr(parent, name, [new if element is old else element for element in value])  # pyright: ignore[reportUnknownVariableType]


def drop_statement(tree: ast.AST, random: Random) -> None:
    body = random.choice(bodies(tree))
    body.pop(random.randrange(len(body)))
    if not body:
        body.append(ast.Pass())


def double_statement(tree: ast.AST, random: Random) -> None:
    body = random.choice(bodies(tree))
    body.insert(random.randrange(len(body) + 1), copy.deepcopy(random.choice(body)))


def move_statement(tree: ast.AST, random: Random) -> None:
    source, target = random.choice(bodies(tree)), random.choice(bodies(tree))
    statement = random.choice(source)
    target.insert(random.randrange(len(target) + 1), copy.deepcopy(statement))
    source.remove(statement)
    if not source:
        source.append(ast.Pass())


def wrap_statement(tree: ast.AST, random: Random) -> None:
    body = random.choice(bodies(tree))
    at = random.randrange(len(body))
    outer = ast.parse(
        random.choice(
            [
                "for i in pl.range(4): pass",
                "for q in pl.parallel(n): pass",
                "for q in pl.unroll(2): pass",
                "while n > 0: pass",
                "if n > 0: pass",
                "with pl.at(level=pl.Level.CORE_GROUP): pass",
                "with pl.spmd(2): pass",
                "for q in pl.spmd(2): pass",
            ]
        )
    ).body[0]
    assert isinstance(outer, (ast.For, ast.While, ast.If, ast.With))
    outer.body = [body[at]]
    body[at] = outer


def insert_statement(tree: ast.AST, random: Random) -> None:
    body = random.choice(bodies(tree))
    at = random.randrange(len(body) + 1)
    body[at:at] = ast.parse(random.choice(STATEMENTS)).body


def swap_expressions(tree: ast.AST, random: Random) -> None:
    one, other = random.choice(nodes(tree, ast.expr)), random.choice(nodes(tree, ast.expr))
    replace_expression(tree, one, copy.deepcopy(other))


def new_expression(tree: ast.AST, random: Random) -> None:
    new = ast.parse(f"f({random.choice(EXPRESSIONS)})").body[0]
    assert isinstance(new, ast.Expr) and isinstance(new.value, ast.Call)
    replace_expression(tree, random.choice(nodes(tree, ast.expr)), new.value.args[0])


def rename(tree: ast.AST, random: Random) -> None:
    known = [node.id for node in nodes(tree, ast.Name)]
    match random.choice(nodes(tree, ast.Name, ast.Attribute, ast.arg, ast.keyword, ast.FunctionDef)):
        case ast.Name() as node:
            node.id = random.choice([*NAMES, *known])
        case ast.Attribute() as node:
            node.attr = random.choice([*ATTRIBUTES, *(a.attr for a in nodes(tree, ast.Attribute))])
        case ast.FunctionDef() as node:
            node.name = random.choice([*NAMES, *known])
        case node:
            node.arg = random.choice([*NAMES, *known])


def change_constant(tree: ast.AST, random: Random) -> None:
    for node in random.sample(found := nodes(tree, ast.Constant), min(1, len(found))):
        node.value = random.choice(CONSTANTS)


def change_operator(tree: ast.AST, random: Random) -> None:
    for node in random.sample(found := nodes(tree, ast.BinOp, ast.AugAssign, ast.Compare), min(1, len(found))):
        if isinstance(node, ast.Compare):
            node.ops[0] = random.choice(COMPARISONS)()
        else:
            node.op = random.choice(OPERATORS)()


def change_arguments(tree: ast.AST, random: Random) -> None:
    call = random.choice(nodes(tree, ast.Call) or [ast.Call(ast.Name("f"), [], [])])
    match random.randrange(4):
        case 0 if call.args:
            call.args.pop(random.randrange(len(call.args)))
        case 1 if call.keywords:
            call.keywords.pop(random.randrange(len(call.keywords)))
        case 2 if call.args:
            call.keywords.append(ast.keyword(random.choice(NAMES), call.args.pop()))
        case _:
            call.args.append(copy.deepcopy(random.choice(nodes(tree, ast.expr))))


def swap_annotations(tree: ast.AST, random: Random) -> None:
    args = nodes(tree, ast.arg)
    if len(args) > 1:
        one, other = random.sample(args, 2)
        one.annotation, other.annotation = other.annotation, one.annotation


MUTATIONS: list[Callable[[ast.AST, Random], None]] = [
    *(drop_statement, double_statement, move_statement, wrap_statement, insert_statement, swap_expressions),
    *(new_expression, rename, change_constant, change_operator, change_arguments, swap_annotations),
]


def mutated(text: str, random: Random) -> str:
    """Return a text with one to four things wrong, or at least different."""
    tree = ast.parse(text)
    for _ in range(random.randint(1, 4)):
        random.choice(MUTATIONS)(tree, random)
    return ast.unparse(ast.fix_missing_locations(tree))
