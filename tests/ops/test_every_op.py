"""Every op: what its declaration promises, read from the registry. A new op is tested by being declared."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from enum import Enum
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ops.kernels import inout, kernel, launch, out, tensor

import tilewright.language as pl
import tilewright.ops
from tilewright.core.op import OPS, REQUIRED, Kind, OpSpec, Parameter, Role, spec_of, specs
from tilewright.core.operands import bind
from tilewright.core.program import Function
from tilewright.errors import AttributeValueError, OutsideKernelError

MODULES = [importlib.import_module(f"tilewright.ops.{m.name}") for m in pkgutil.iter_modules(tilewright.ops.__path__)]
FAMILIES = ("collective", "distributed", "elementwise", "pipe", "reduction", "scalar")
"""Families whose members need no example: `test_families.py` and `test_scalar.py` make one for each.

Pipes take two functions: `test_pipes.py` has examples. Ranks take windows: `examples/distributed` has some.
"""


def title(spec: OpSpec) -> str:
    return f"{spec.kinds[0].value}.{spec.name}"


every_example = pytest.mark.parametrize("spec", [s for s in specs() if s.family not in FAMILIES], ids=title)


def test_the_name_of_an_op_finds_its_function() -> None:
    for op in (op for op in OPS.values() if op.spec.has_a_name):
        namespace = pl if op.kind is Kind.SCALAR else getattr(pl, op.kind.value)
        assert getattr(namespace, op.spec.name, None) is op.spec.function, op.name


def test_the_docstring_opens_with_one_sentence() -> None:
    for spec in specs():
        first = spec.doc.split("\n\n")[0]
        assert re.fullmatch(r"[A-Z][a-z]+ [^\n]*\.", first) and ". " not in first, title(spec)


def test_every_parameter_is_annotated() -> None:
    for spec in specs():
        signature = inspect.signature(spec.function)
        annotations = [p.annotation for p in signature.parameters.values()] + [signature.return_annotation]
        assert inspect.Signature.empty not in annotations, title(spec)


def some(parameter: Parameter) -> Any:
    if parameter.is_dtype:
        return pl.FP32
    kind = parameter.takes[0] if parameter.takes else int
    return next(iter(kind)) if issubclass(kind, Enum) else kind()


def test_an_option_of_another_kind_is_refused() -> None:
    for spec in specs():
        needed = {p.name: some(p) for p in spec.parameters if p.default is REQUIRED}
        for p in (p for p in spec.options if p.takes):
            for wrong in ("add", 7, 0.5):
                with pytest.raises(AttributeValueError, match=f"^{p.name} cannot be {wrong!r}"):
                    bind(spec, (), {**needed, p.name: wrong})
    assert {p.name for spec in specs() for p in spec.options if p.takes} >= {"atomic", "keepdims", "set_pipe"}


def test_an_option_by_its_number_is_the_option_by_its_name() -> None:
    for spec in specs():
        for p in spec.parameters:
            named = {"int", "str"} <= {*re.findall(r"\w+", str(spec.function.__annotations__[p.name]))}
            assert not (named and p.role is Role.ATTRIBUTE) or p.codes, f"`{p.name}` of {title(spec)} needs codes"
            for number, name in enumerate(p.codes):
                given = {q.name: some(q) for q in spec.parameters}
                bound = bind(spec, (), given | {p.name: number})
                assert bound[p.name] == name


def test_calling_an_op_outside_a_kernel_is_an_error() -> None:
    for spec in specs():
        with pytest.raises(OutsideKernelError, match=re.escape(spec.function.__name__)):
            spec.function()


def test_what_an_op_aliases_or_writes_is_one_of_its_operands() -> None:
    for spec in specs():
        assert {spec.alias, spec.writes, spec.updates} <= {None, *(p.name for p in spec.operands)}, title(spec)


def test_a_module_exports_the_ops_it_declares_in_order() -> None:
    for module in MODULES:
        declared = {name for name, value in vars(module).items() if _is_exported(module, value)}
        exported: list[str] = getattr(module, "__all__", [])
        assert exported == sorted(exported), module.__name__
        assert set(exported) == declared, module.__name__


def _is_exported(module: ModuleType, value: object) -> bool:
    """Return whether `import *` should bring a value along: operators and `pl.system` have no name in `pl`."""
    spec = spec_of(value)
    if spec is None or spec.function.__module__ != module.__name__:
        return False
    return not spec.symbol and spec.kinds[0].is_data


def example(spec: OpSpec) -> Function:
    prelude = "a = pl.load(x, [0, 0], [16, 32])\nb = pl.load(y, [0, 0], [16, 32])\n"
    return kernel(
        prelude + spec.example.replace("{name}", spec.name),
        x=tensor(pl.FP32, 16, 32),
        y=tensor(pl.FP32, 16, 32),
        out=out(pl.FP32, 16, 32),
        square=inout(pl.FP32, 16, 16),
    )


@every_example
def test_an_example_uses_its_op_reads_back_and_stores_no_unspecified_data(spec: OpSpec) -> None:
    function = example(spec)
    text = str(function)
    assert is_used(spec, text)
    assert str(pl.parse(text)) == text
    rng = np.random.default_rng(1)
    x, y, result = (rng.uniform(0.5, 2.0, (16, 32)).astype(np.float32) for _ in range(3))
    square = np.ones((16, 16), np.float32)
    launch(function, x, y, result, square)
    assert np.isfinite(result).all() and np.isfinite(square).all()


def is_used(spec: OpSpec, text: str) -> bool:
    """Return whether an op is in the text of its example, or in the example itself where it is written out."""
    calls = [f"pl.{kind.value}.{spec.name}(" for kind in spec.kinds]
    used = spec.example.replace("{name}", spec.name)
    return any(call in text for call in calls) or bool((spec.fold or spec.expand) and f".{spec.name}(" in used)


def test_the_registry_has_every_op() -> None:
    script = (
        "import importlib, pkgutil, tilewright.ops.registry as registry\n"
        "known = set(registry.OPS)\n"
        "for each in pkgutil.iter_modules(importlib.import_module('tilewright.ops').__path__):\n"
        "    importlib.import_module(f'tilewright.ops.{each.name}')\n"
        "print(sorted(set(registry.OPS) - known))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
