"""Mutants: kernels that run, with a few things wrong, to be read, compiled and run.

The kernels are the `@pl.jit` functions of the examples, the example of every op, and the kernels that `broken.py` has.
What is done to them goes beyond its mutations: numbers become those at the edges of types, lists gain and lose axes,
element types and statements change places, blocks nest, and names are those that other libraries have.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from textwrap import indent

from property import broken
from property.kernels import ordered_specs

EXAMPLES = broken.TESTS.parent / "examples"
EDGES = [-1, 0, 1, 7, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 64, 10**30]
FLOATS = [0.5, -0.0, 1e-320, 1e39, 1e400, -1e400]
DTYPES = ["FP32", "FP16", "BF16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT32", "BOOL", "INDEX", "FP8E4M3FN"]
FOREIGN = ["where", "arange", "sum", "zeros", "dot", "T", "append", "item", "max", "print", "cumsum", "größe"]
HEAD = (
    "@pl.function(type=pl.FunctionType.InCore)\ndef kernel(x: {0}, y: {0}, out: pl.Out[{0}], square: pl.InOut[{1}]):\n"
)


@dataclass(frozen=True)
class Subject:
    """A text to mutate; `entry` is the `@pl.jit` function to call with the inputs of `example`, or there is none."""

    name: str
    text: str
    entry: str = ""
    example: str = ""


def of_examples() -> Iterator[Subject]:
    """Yield the `@pl.jit` functions of each example, without the Python around them."""
    for path in sorted(EXAMPLES.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kernels = [node for node in tree.body if isinstance(node, ast.FunctionDef) and _decorators(node)]
        entries = [node.name for node in kernels if "pl.jit" in _decorators(node)]
        if not entries:
            continue
        kept = [node for node in tree.body if isinstance(node, ast.Assign) or node in kernels or _imports(node)]
        text = ast.unparse(ast.Module(kept, []))
        yield from (Subject(f"{path.stem}-{entry}", text, entry, path.stem) for entry in entries)


def _decorators(node: ast.FunctionDef) -> list[str]:
    return [text for d in node.decorator_list if (text := ast.unparse(d)).startswith("pl.")]


def _imports(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom)) and "rich" not in ast.unparse(node)


def of_ops() -> Iterator[Subject]:
    """Yield the example of every op, as a kernel."""
    head = HEAD.format("pl.Tensor[[16, 32], pl.FP32]", "pl.Tensor[[16, 16], pl.FP32]")
    loads = "a = pl.load(x, [0, 0], [16, 32])\nb = pl.load(y, [0, 0], [16, 32])\n"
    for spec in ordered_specs():
        if spec.example:
            body = loads + spec.example.replace("{name}", spec.name)
            yield Subject(f"op-{spec.kinds[0].value}-{spec.name}", head + indent(body, "    ") + "\n")


def subjects() -> list[Subject]:
    """Return everything that is mutated."""
    return [*of_examples(), *of_ops(), *(Subject(f"text-{name}", text) for name, text in broken.TEXTS.items())]


def edge_number(tree: ast.AST, random: Random) -> None:
    found = [node for node in broken.nodes(tree, ast.Constant) if type(node.value) in (int, float)]
    for node in random.sample(found, min(1, len(found))):
        node.value = random.choice(FLOATS if isinstance(node.value, float) and random.random() < 0.7 else EDGES)


def other_rank(tree: ast.AST, random: Random) -> None:
    found = [node for node in broken.nodes(tree, ast.List, ast.Tuple) if isinstance(node.ctx, ast.Load)]
    for node in random.sample(found, min(1, len(found))):
        if node.elts and random.random() < 0.5:
            node.elts.pop(random.randrange(len(node.elts)))
        else:
            extra = copy.deepcopy(random.choice([*node.elts, ast.Constant(random.choice(EDGES))]))
            node.elts.insert(random.randrange(len(node.elts) + 1), extra)


def other_dtype(tree: ast.AST, random: Random) -> None:
    found = [node for node in broken.nodes(tree, ast.Attribute) if node.attr in DTYPES]
    for node in random.sample(found, min(1, len(found))):
        node.attr = random.choice(DTYPES)


def swap_statements(tree: ast.AST, random: Random) -> None:
    body = random.choice(broken.bodies(tree))
    at = random.randrange(len(body))
    body[at], body[at - 1] = body[at - 1], body[at]


def nest(tree: ast.AST, random: Random) -> None:
    for _ in range(random.randint(2, 6)):
        broken.wrap_statement(tree, random)


def foreign_name(tree: ast.AST, random: Random) -> None:
    found = broken.nodes(tree, ast.Attribute)
    for node in random.sample(found, min(1, len(found))):
        node.attr = random.choice(FOREIGN)


def double_argument(tree: ast.AST, random: Random) -> None:
    found = [node for node in broken.nodes(tree, ast.Call) if node.args]
    for call in random.sample(found, min(1, len(found))):
        call.args.insert(random.randrange(len(call.args) + 1), copy.deepcopy(random.choice(call.args)))


def swap_arguments(tree: ast.AST, random: Random) -> None:
    found = [node for node in broken.nodes(tree, ast.Call) if len(node.args) > 1]
    for call in random.sample(found, min(1, len(found))):
        random.shuffle(call.args)


SUBTLE: list[Callable[[ast.AST, Random], None]] = [
    *(edge_number, edge_number, other_rank, other_dtype, swap_statements, nest, foreign_name),
    *(double_argument, swap_arguments),
]


def mutated(subject: Subject, random: Random) -> str:
    """Return the text of a subject with one to three things changed; one alone often still compiles."""
    tree = ast.parse(subject.text)
    for _ in range(random.choice((1, 1, 2, 3))):
        random.choice([*SUBTLE, *SUBTLE, *broken.MUTATIONS])(tree, random)
    return ast.unparse(ast.fix_missing_locations(tree))
