"""The generator itself: its programs parse, run, and depend on nothing unspecified."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from property.buffers import SCALARS
from property.programs import program, programs
from property.running import QUICK, SEEDS, assert_same, outcome, parsed
from property.writer import DTYPES

from tilewright.core import region
from tilewright.core.region import Array
from tilewright.dtypes import DataType
from tilewright.ops import load, registry


def other_blank(shape: Sequence[int], dtype: DataType) -> Array:
    """Return storage that holds something other than what the interpreter puts into unwritten elements."""
    return np.full(tuple(shape), 3, dtype.numpy)


@settings(QUICK, max_examples=60)
@given(text=programs())
def test_programs_give_the_same_whatever_unwritten_memory_holds(text: str) -> None:
    program = parsed(text)
    for seed in SEEDS:
        expected = outcome(program, seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(region, "blank", other_blank)
            patch.setattr(load, "blank", other_blank)
            assert_same(expected, outcome(program, seed))


BACKWARDS = """
import ast, importlib, sys
from random import Random

import tilewright.ops
names = [node.names[0].name for node in ast.parse(open(sys.argv[1]).read()).body if isinstance(node, ast.ImportFrom)]
for name in reversed([name for name in names if name.islower()]):
    try:
        importlib.import_module(f"tilewright.ops.{name}")
    except ModuleNotFoundError:
        pass
from property.programs import program
print(program(Random(11).randint), end="")
"""


def test_programs_do_not_depend_on_which_ops_were_declared_first() -> None:
    command = [sys.executable, "-c", BACKWARDS, str(registry.__file__)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == program(Random(11).randint)


FEATURES = {
    **{f"a {word} loop": rf"in pl\.{word}\(" for word in ("range", "parallel", "unroll", "pipeline", "while_", "spmd")},
    **{f"a {word}": rf"^ +{word}\b" for word in ("while", "if", "else", "break", "continue")},
    **{f"{d.symbol} tensors": rf"Tensor\[\[[^]]*\], pl\.{d.symbol}\]" for d in DTYPES},
    **{f"{d.symbol} scalars": rf"Scalar\[pl\.{d.symbol}\]" for d in SCALARS},
    **{f"{kind} helpers": rf"FunctionType\.{kind}" for kind in ("InCore", "Inline", "Opaque")},
    "one axis": r"Tensor\[\[\w+\], pl",
    "three axes": r"Tensor\[\[\w+, \w+, \w+\], pl",
    "dynamic first axes": r"Tensor\[\[[MN], ",
    "dynamic last axes": r", [MN]\], pl",
    "extents made of others": r"create_tensor\(\[[^]]*[MN] \+ \d",
    "offsets that the program computes": r"pl\.load\(\w+, \[[^]]*\b[a-z]+\d+\b",
    "parts that the program decides": r"valid_shape=\[[^]]*\b[a-z]+\d+\b",
    "carried tiles": r"init_values=\([^)]*\b[tv]\d+",
    "early returns": r"^            +return",
    **{word: re.escape(word) for word in ("init_values=", "pl.yield_(", "clamp=True", "drop_dims=", "target_memory=")},
    **{word: re.escape(word) for word in ("pl.submit(", "pl.spmd_submit(", "with pl.spmd(", "deps=[", "pl.cluster(")},
    **{word: re.escape(word) for word in ("pl.slice(", "pl.transpose(", "pl.reshape(", "atomic=pl.AtomicType.Add")},
}
"""What programs are made of besides ops, as it shows in their texts."""


def test_everything_the_language_has_comes_up() -> None:
    texts = [program(Random(number).randint) for number in range(250)]
    missing = [name for name, shape in FEATURES.items() if sum(bool(re.search(shape, t, re.M)) for t in texts) < 2]
    assert not missing
