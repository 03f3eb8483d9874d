"""What objects take from outside: functions that every process has, on every target, and none of a compiler's."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from ops.kernels import kernel, out, tensor

import tilewright.language as pl
from tilewright.backends.cpu.backend import CPU
from tilewright.core.op import specs
from tilewright.dtypes import STORABLE, DataType
from tilewright.frontend.programs import as_program
from tilewright.native.elf import read
from tilewright.native.target import PRESETS
from tilewright.passes.manager import PassManager

HELD = [dtype for dtype in STORABLE if dtype.bits == 64 or (dtype.bits == 16 and dtype.is_float())]
"""Types that LLVM converts to each other by functions of its own library, where the processor does not."""
FUNCTIONS = [
    (s.name, len(s.data)) for s in specs() if s.family == "elementwise" and pl.FP16 in s.accepts and s.name != "lrelu"
]


def taken(lines: Iterable[str], target: str, **parameters: str) -> set[str]:
    """Return what the object of a kernel for a target needs of a compiler's own library, whose names begin alike."""
    program = as_program(kernel("\n".join(lines), **parameters))
    code = CPU().compile(PassManager.get_strategy().run_passes(program), target=PRESETS[target])
    return {symbol.name for symbol in read(code.object).undefined if symbol.name.startswith("__")}


@pytest.mark.parametrize("target", PRESETS)
@pytest.mark.parametrize("dtype", HELD, ids=str)
@pytest.mark.parametrize("columns", [1, 40])
def test_conversions_take_no_functions_of_a_compiler(dtype: DataType, target: str, columns: int) -> None:
    """Each is the second of a chain that begins with every other one, of tiles and of numbers."""
    made = {f"o{first}{second}": (first, second) for first in HELD for second in HELD}
    lines = [f"t = pl.load(x, [0, 0], [16, {columns}])", "n = pl.read(x, [3, 0])"]
    for name, (first, second) in made.items():
        chain = "pl.cast(pl.cast({}, pl." + first.symbol + "), pl." + second.symbol + ")"
        lines += [f"{name} = pl.store({chain.format('t')}, [0, 0], {name})"]
        lines += [f"{name} = pl.write({name}, [0, 0], {chain.format('n')})"]
    outputs = {name: out(second, 16, columns) for name, (_, second) in made.items()}
    assert not taken(lines, target, x=tensor(dtype, 16, columns), **outputs)


@pytest.mark.parametrize("target", PRESETS)
@pytest.mark.parametrize("inner", ["gelu", "atan", "exp"])
def test_functions_of_functions_of_lone_halves_take_none_either(inner: str, target: str) -> None:
    lines = ["t = pl.load(x, [0, 0], [16, 1])"]
    outputs = dict[str, str]()
    for name, count in FUNCTIONS:
        lines += [f"r = pl.{name}({', '.join([f'pl.{inner}(t)', *['t'] * (count - 1)])})"]
        lines += [f"o_{name} = pl.store(pl.cast(r, pl.FP16), [0, 0], o_{name})"]
        outputs[f"o_{name}"] = out(pl.FP16, 16, 1)
    assert not taken(lines, target, x=tensor(pl.FP16, 16, 1), **outputs)
