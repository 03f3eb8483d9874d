"""The language reference: a page read off the op declarations, the types and the enums."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from functools import partial
from itertools import groupby
from typing import Any

import tilewright.language as pl
from tilewright import dtypes as dt
from tilewright.core import enums
from tilewright.core.foreign_names import elsewhere
from tilewright.core.op import Kind, OpSpec, Role
from tilewright.dtypes import DataType
from tilewright.frontend import directives
from tilewright.frontend.operators import BINARY, UNARY
from tilewright.jit.torch_kernels import Followed
from tilewright.ops.declare import ANY, FLOATS, INTEGERS, NUMBERS
from tilewright.ops.registry import specs
from tilewright.tools.markdown import code, generated, page, table
from tilewright.tools.signatures import LEGEND, directive, kinds, other_names, signatures
from tilewright.tune.function import TunedFunction

ACCURACY = """An ulp is a unit of the last place of the exact result. Of sums, running ones and those of products among
them, it is one of the sum of the magnitudes that are added: where large numbers cancel, what is left may be off by many
units of its own."""

GROUPS = {"any": ANY, "numbers": NUMBERS, "floats": FLOATS, "integers": INTEGERS}
"""Names for sets of element types, the widest first."""

EXAMPLE = """Examples are statements of a kernel in which `x` and `y` are tensors of 16 by 32, `a` and `b` tiles with
their elements, `out` a tensor like them and `square` one of 16 by 16."""


def language_page() -> str:
    """Return the whole reference."""
    nouns = {noun: list(group) for noun, group in groupby(sorted(specs(), key=noun_of), noun_of)}
    return page(
        generated("The language", "the declarations in src/tilewright"),
        "Everything below is a name of `pl`: `import tilewright.language as pl`. "
        "`tilewright ops NAME` shows one entry of it in a terminal.",
        _contents(nouns),
        *_kernels(),
        *_programs(),
        *_types(),
        "## Ops",
        _legend(),
        ACCURACY,
        *(section(noun, members) for noun, members in nouns.items()),
        *_enums(),
    )


def _contents(nouns: Iterable[str]) -> str:
    parts = ("Kernels", "Programs", "Loops", "Scopes", "Directives", "Types", "Element types", "Ops", "Enums")
    links = [f"[{part}](#{part.lower().replace(' ', '-')})" for part in parts]
    ops = ", ".join(f"[{noun}](#{noun})" for noun in nouns)
    return "\n".join(f"- {link}: {ops}" if "#ops" in link else f"- {link}" for link in links)


def noun_of(spec: OpSpec) -> str:
    """Return the name of the file that declares an op."""
    return spec.function.__module__.rpartition(".")[2]


def heading(noun: str) -> str:
    """Return what the file of a noun says it is about."""
    return inspect.getdoc(sys.modules[f"tilewright.ops.{noun}"]) or noun


def section(noun: str, members: list[OpSpec]) -> str:
    """Return the entries of one file: operators as a table, everything else in full."""
    operators = [spec for spec in members if spec.symbol]
    entries = [entry(spec) for spec in members if spec.has_a_name]
    return page(f"### {noun.title()}", heading(noun), _operators(operators) if operators else "", *entries)


def entry(spec: OpSpec) -> str:
    """Return what the reference says about one op."""
    spelled = signatures(spec)
    blocks = [f"#### `{next(iter(spelled))}`", code("\n".join(spelled.values())), spec.doc, "  \n".join(facts(spec))]
    if spec.example:
        blocks.append(code(spec.example.replace("{name}", spec.name)))
    return page(*blocks)


def facts(spec: OpSpec) -> Iterator[str]:
    """Yield what a caller should know beyond the docstring, one line a fact."""
    if spec.kinds[0].is_data:
        yield f"On {kinds(spec)}{_elements(spec)}."
    if others := other_names(spec):
        yield f"Also called {' and '.join(f'`{name}`' for name in others)}."
    if theirs := [f"`{name}`" for names in elsewhere(spec.function).values() for name in names]:
        yield f"Elsewhere: {', '.join(theirs)}."
    if spec.ulp:
        double = f", {spec.accuracy(dt.FP64):g} as a double" if dt.FP64 in spec.accepts else ""
        yield f"Within {spec.ulp:g} ulp of the exact result{double}."
    if spec.control_plane and spec.kinds != (Kind.SCALAR,):
        yield "Also in orchestration functions, outside kernels."


def _elements(spec: OpSpec) -> str:
    """Return the accepted element types, for ops that look at elements."""
    looks = any(p.role in (Role.VALUE, Role.EITHER) or p.name == "dtype" for p in spec.parameters)
    return f"; elements: {element_types(spec.accepts)}" if looks and Kind.ARRAY not in spec.kinds else ""


def element_types(accepts: Collection[DataType]) -> str:
    """Return a set of element types in as few words as there are."""
    words, left = list[str](), set(accepts)
    for name, group in GROUPS.items():
        if group <= left:
            words.append(name)
            left -= group
    return ", ".join(words + [f"`{t}`" for t in dt.ALL if t in left])


def _operators(members: list[OpSpec]) -> str:
    shaped = {scalar: name for scalar, name in (*BINARY.values(), *UNARY.values()) if scalar and name}
    rows = [(f"`{_written(spec)}`", _shaped(shaped.get(spec.name)), spec.doc) for spec in members]
    rows += [
        (f"`{ast.unparse(ast.BinOp(ast.Name('lhs'), operator(), ast.Name('rhs')))}`", _shaped(name), "")
        for operator, (scalar, name) in BINARY.items()
        if name and not scalar
    ]
    return table(("Written", "On tiles and tensors", "Between scalars"), rows)


def _written(spec: OpSpec) -> str:
    """Return an operator with its operands; words keep a space."""
    lhs, *rhs = (p.name for p in spec.operands)
    if rhs:
        return f"{lhs} {spec.symbol} {rhs[0]}"
    return f"{spec.symbol} {lhs}" if spec.symbol.isalpha() else f"{spec.symbol}{lhs}"


def _shaped(name: str | None) -> str:
    return f"`pl.{name}`" if name else ""


def _legend() -> str:
    groups = "; ".join(f"*{name}*: {', '.join(f'`{t}`' for t in dt.ALL if t in g)}" for name, g in GROUPS.items())
    return page(
        "In signatures:",
        "\n".join(f"- `{name}`: {meaning}" for name, meaning in LEGEND.items()),
        "Parameters whose type is none of these and no tensor, tile, array or scalar are static: the compiler must "
        "know them. `pl.x` picks the op by its operands; `pl.tile.x` and `pl.tensor.x` insist. "
        "`pld` is `import tilewright.language.distributed as pld`.",
        f"Element types have collective names. {groups}.",
        "An op's NumPy reference defines it: floats are computed exactly and rounded once. Where an accuracy is "
        "given, a back end may differ by that much; where none is, it may not.",
        EXAMPLE,
    )


def _kernels() -> Iterator[str]:
    jit = pl.jit
    rows = [
        (f"`@{each.word}`", ", ".join(f"`{option}=`" for option in each.takes) or "-", inspect.getdoc(each) or "")
        for each in (jit, jit.incore, jit.inline, jit.opaque, jit.host, jit.extern)
    ]
    yield page(
        "## Kernels",
        table(("Decorator", "Options", "Meaning"), rows),
        inspect.getdoc(pl.JITFunction) or "",
        _method(pl.JITFunction, "__call__"),
        *_methods(pl.JITFunction),
        *_methods(Followed),
    )
    yield page(
        "## Tuned kernels",
        _plain("autotune"),
        _plain("Config"),
        inspect.getdoc(TunedFunction) or "",
        *_methods(TunedFunction),
        "See [tuning](tuning.md).",
    )


def _methods(kind: type) -> Iterator[str]:
    names = [name for name, value in vars(kind).items() if inspect.isfunction(value) and name[0] != "_"]
    return (_method(kind, name) for name in names)


def _method(kind: type, name: str) -> str:
    method = getattr(kind, name)
    called = "kernel" if name == "__call__" else f"kernel.{name}"
    return page(code(directive(called, partial(method, None))), inspect.getdoc(method) or "")


def _programs() -> Iterator[str]:
    yield page("## Programs", *map(_plain, ("program", "function", "inline", "parse", "loads", "dynamic")))
    yield page("## Loops", *map(_plain, directives.LOOPS.values()))
    yield page("## Scopes", *map(_plain, directives.SCOPES.values()))
    named = (*directives.LOOPS.values(), *directives.SCOPES.values())
    others = [name for name, value in vars(directives).items() if getattr(pl, name, None) is value]
    yield page("## Directives", *(_plain(n) for n in others if n not in named and inspect.isfunction(getattr(pl, n))))


def _plain(name: str) -> str:
    function: Callable[..., Any] = getattr(pl, name)
    return page(code(directive(f"pl.{name}", function)), inspect.getdoc(function) or "")


def _types() -> Iterator[str]:
    classes = (pl.Tensor, pl.Tile, pl.Scalar, pl.Array)
    rows = [(f"`pl.{c.__name__}`", inspect.getdoc(c) or "") for c in classes]
    rows += [(f"`pl.{c.__name__}`", inspect.getdoc(c) or "") for c in _annotations()]
    yield page("## Types", table(("Annotation", "Meaning"), rows))
    columns = ("Name", "Text", "Bits", "Family", "NumPy", "C")
    found = [
        (f"`pl.{t.symbol}`", f"`{t}`", f"{t.bits}", t.family.value, f"`{t.numpy_name or '-'}`", f"`{t.c_name}`")
        for t in dt.ALL
    ]
    yield page("## Element types", table(columns, found))


def _annotations() -> Iterator[type]:
    """Yield the annotations that type checkers know as something else."""
    yield from (value for name in ("Out", "InOut", "Tuple") if isinstance(value := vars(pl)[name], type))


def _enums() -> Iterator[str]:
    yield "## Enums"
    for enum in (v for v in vars(enums).values() if isinstance(v, type) and issubclass(v, Enum)):
        name = next((f"{n}.{enum.__name__}" for n, m in {"pl": pl, "pl.tile": pl.tile}.items() if _has(m, enum)), None)
        if name is not None and list(enum):
            members = ", ".join(f"`{_member(enum, member)}`" for member in enum.__members__)
            yield page(f"**`{name}`**: {inspect.getdoc(enum)}  \n{members}")


def _has(module: Any, enum: type[Enum]) -> bool:
    return getattr(module, enum.__name__, None) is enum


def _member(enum: type[Enum], name: str) -> str:
    value = enum[name]
    if value.name != name:
        return f"{name} = {value.name}"
    return f"{name} = {value.value}" if isinstance(value, int) else name
