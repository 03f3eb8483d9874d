"""Coming from elsewhere: which function of the language does what one of NumPy, torch, Triton or Numba does.

The names are those that declarations say. The page of them is generated, and the command line searches them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tilewright.language as pl
from tilewright.core.foreign_names import LIBRARIES, elsewhere
from tilewright.core.op import OpSpec, spec_of
from tilewright.ops.registry import specs
from tilewright.tools.markdown import generated, page, table
from tilewright.tools.signatures import other_names, signatures

OTHERS = [
    ("`a + b`, `a < b`, `~m`, `a @ b`", "the same operators, on tiles, tensors and masks"),
    ("`x[..., ::2]`, `x[:, None]`, `x[-1]`", "the same subscripts: a view of a tensor, a part of a tile"),
    ("`x.shape`, `x.ndim`, `x.size(0)`, `x.numel()`, `x.T`", "the same attributes"),
    ("`for i in range(n)`", "the same loop; `pl.parallel` where turns may run at the same time"),
    ("`kernel[grid](...)`, a grid of programs", "a call, and `for i in pl.parallel(...)` in the kernel"),
    ("`tl.constexpr`, template arguments", "every number, string, tuple and enum that a kernel is given"),
    ("an argument that changes from call to call", "`n: pl.Scalar[pl.INT32, pl.RUNTIME]`"),
    ("`@triton.jit`, `@numba.njit`, `@cuda.jit`", "`@pl.jit`; helpers are `@pl.jit.inline`"),
]
"""What has no name to look up."""


def named() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of the language that other libraries have too, each by the name to write."""
    for spec in sorted(specs(), key=lambda spec: spec.name):
        if elsewhere(spec.function) and spec.has_a_name:
            yield next(iter(signatures(spec))), spec.function
    for name, value in inspect.getmembers(pl):
        if callable(value) and elsewhere(value) and spec_of(value) is None:
            yield f"pl.{name}", value


def coming_from_page() -> str:
    """Return the page that says what to write for names of other libraries."""
    rows: list[list[str]] = []
    for name, function in named():
        spec = spec_of(function)
        doc = spec.doc if spec is not None else function.__doc__ or ""
        theirs = [", ".join(f"`{each}`" for each in elsewhere(function).get(library, ())) for library in LIBRARIES]
        rows.append([f"`{name}`", *theirs, doc.partition("\n")[0]])
    return page(
        generated("Coming from NumPy, torch, Triton, Numba", "the declarations of ops"),
        "What does here what a function does there. `tilewright ops NAME` finds any of these names and shows the "
        "signature, what it does and an example; a kernel that uses one of them by mistake is told so.",
        table(["Here", "NumPy", "torch", "Triton", "Numba", "What it does"], rows),
        "## Without a name",
        table(["There", "Here"], [[*row] for row in OTHERS]),
    )


def names_of(spec: OpSpec) -> set[str]:
    """Return every way to name an op, without `pl.`: its own names, and those it has elsewhere."""
    spelled = {name.removeprefix("pl.") for name in (*signatures(spec), *other_names(spec))}
    theirs = {form for names in elsewhere(spec.function).values() for name in names for form in _forms(name)}
    return {spec.name, *spelled, *(f"{kind.value}.{spec.name}" for kind in spec.kinds), *theirs}


def _forms(name: str) -> Iterator[str]:
    """Yield a name as it is written and without what stands before it."""
    parts = name.split(".")
    yield from (".".join(parts[start:]) for start in range(len(parts)))


def about(word: str) -> list[OpSpec]:
    """Return the ops whose names, or what is said of them, hold a word: those first that are called so."""
    low = word.lower()
    found = [spec for spec in specs() if spec.has_a_name and (_holds(spec, low) or low in spec.doc.lower())]
    return sorted(found, key=lambda spec: low not in spec.name)


def _holds(spec: OpSpec, word: str) -> bool:
    return any(word in name.lower() for name in names_of(spec))
