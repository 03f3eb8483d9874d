"""The layers: imports point one way, and importing the language costs nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
LAYERS = (  # each imports from itself and from those before it; the package's own faces see everything
    *(
        "version",
        "notebook",
        "imported",
        "cautions",
        "named_tuples",
        "source",
        "arrays",
        "constructors",
        "records",
        "errors",
        "dtypes",
        "settings",
        "forks",
        "collector",
        "digests",
        "native",
    ),
    *(
        "core",
        "ops",
        "frontend",
        "passes",
        "interpret",
        "backends",
        "keep",
        "call",
        "explore",
        "programs",
        "jit",
        "tune",
        "pto",
    ),
    *("language", "ir", "runtime", "backend", "debug", "compat", "tools", "__init__", "__main__"),
)

ROOMS = ("emit", "compute", "host")
"""The rooms of the CPU back end: a function being emitted, what kernels compute, and the host function around them."""


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


PATHS = {dotted(path): path for path in sorted(SRC.glob("tilewright/**/*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """Return every module's syntax; read when a test asks, not by every process that collects tests."""
    return {module: ast.parse(path.read_bytes(), path) for module, path in PATHS.items()}


def imports(module: str, node: ast.AST) -> Iterator[str]:
    """Yield the dotted names an import statement may load: `from a import b` is `a.b`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        package = module.split(".") if PATHS[module].stem == "__init__" else module.split(".")[:-1]
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


def runs_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what executes when the module does: neither function bodies nor `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}:
            child = ast.Module(child.orelse, [])
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from runs_on_import(child)


def ours(name: str) -> str | None:
    """Return the module of this package that `name` is or is in, or None."""
    return next((module for module in (name, name.rpartition(".")[0]) if module in PATHS), None)


@cache
def graph() -> dict[str, set[str]]:
    """Return what every module imports."""
    return {
        module: {target for node in ast.walk(tree) for name in imports(module, node) if (target := ours(name))}
        for module, tree in trees().items()
    }


def layer(module: str) -> str:
    return [*module.split("."), "__init__"][1]


FACES = (
    "", "compat", "compat.ptodsl", "compat.pypto", "ir", "language", "language.distributed", "language.parser",
    "language.parser.diagnostics", "pto", "runtime",
)  # fmt: skip
"""The packages whose names are for callers."""


def test_packages_below_the_public_faces_say_what_they_are_and_load_nothing() -> None:
    faces = {".".join(filter(None, ["tilewright", face])) for face in FACES}
    packages = {module for module, path in PATHS.items() if path.stem == "__init__"} - faces
    assert not [m for m in packages if [ast.Expr] != [type(node) for node in trees()[m].body]]


def test_every_module_belongs_to_a_layer() -> None:
    assert not [module for module in graph() if layer(module) not in LAYERS]


def test_named_tuples_are_those_that_are_quick_to_declare() -> None:
    slow = {m for m, tree in trees().items() for n in runs_on_import(tree) if "typing.NamedTuple" in imports(m, n)}
    assert not slow


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_imports_point_to_the_same_layer_or_an_earlier_one() -> None:
    rank = {module: LAYERS.index(layer(module)) for module in graph()}
    assert not [f"{a} imports {b}" for a, targets in graph().items() for b in sorted(targets) if rank[b] > rank[a]]


def test_rooms_of_the_cpu_back_end_import_from_themselves_and_from_earlier_ones() -> None:
    inside = {module: module.split(".")[3] for module in graph() if module.startswith("tilewright.backends.cpu.")}
    rank = {module: ROOMS.index(room) for module, room in inside.items() if room in ROOMS}
    assert {rank[module] for module in rank} == set(range(len(ROOMS)))
    assert not [f"{a} imports {b}" for a in rank for b in sorted(graph()[a]) if rank.get(b, -1) > rank[a]]


def test_nothing_outside_of_backends_names_a_back_end() -> None:
    shared = {
        "tilewright.backends",
        *(f"tilewright.backends.{name}" for name in ("abi", "devices", "host", "interface")),
    }
    named = {a: {b for b in found if layer(b) == "backends"} - shared for a, found in graph().items()}
    assert not {a: found for a, found in named.items() if found and layer(a) != "backends"}


def test_no_module_loads_a_compiler_or_torch_when_imported() -> None:
    heavy = {"llvmlite", "torch", "triton"}
    loads = ((m, name) for m, tree in trees().items() for node in runs_on_import(tree) for name in imports(m, node))
    assert not [f"{module} imports {name}" for module, name in loads if name.split(".")[0] in heavy]


def test_importing_the_language_loads_neither_torch_nor_numpy_nor_rich() -> None:
    code = "import sys, tilewright.language; print({'torch', 'numpy', 'rich'} & sys.modules.keys())"
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert run.stdout.strip() == "set()"


def lines_over_the_limits() -> Iterator[tuple[str, int]]:
    for module, tree in trees().items():
        if (lines := len(PATHS[module].read_bytes().splitlines())) > 400:
            yield module, lines
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and (lines := (node.end_lineno or 0) - node.lineno + 1) > 200:
                yield f"{module}.{node.name}", lines


def test_files_have_400_lines_at_most_and_classes_200() -> None:
    assert not dict(lines_over_the_limits())
