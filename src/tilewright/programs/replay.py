"""Replays: a folder's program run again, on inputs that were saved or on random ones.

This is what the `run.py` of a folder does. Random inputs are the same in every run with the same seed; of dynamic
extents and of numbers it has to be told where what it takes for them does not do.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from tilewright.arrays import np
from tilewright.call.binding import shape_of
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.types import ScalarType, TensorType
from tilewright.dtypes import DataType, round_to
from tilewright.programs import inputs
from tilewright.programs.entry import Entry
from tilewright.programs.folder import FILES, META
from tilewright.programs.inputs import INPUTS
from tilewright.programs.platforms import INTERPRETER
from tilewright.programs.program import CompiledProgram

EXTENT = 64
"""What a dynamic extent is unless somebody says otherwise."""


def main(folder: Path, argv: Sequence[str], parse: Callable[[str], Program | Function]) -> int:
    """Run a folder's program as the command line says; return the exit status. `parse` reads programs as text."""
    options = _parser(folder).parse_args(argv)
    try:
        entry = _entry(_program(folder, parse), options.entry)
        given = _given(entry, options, folder)
        start = perf_counter()
        result = entry(**given)
        took = perf_counter() - start
    except (OSError, TypeError, ValueError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 1
    print(f"{entry!r} took {1e3 * took:.3f} ms")
    outputs = dict(_named(entry, given, result))
    for name, value in outputs.items():
        print(f"  {name}: {_summary(value)}")
    if options.save is not None:
        np.savez(options.save, **outputs)
    return 0


def _parser(folder: Path) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description=f"Run the program in {folder} again.")
    parser.add_argument("--inputs", type=Path, help=f"an .npz file of arrays by parameter; {INPUTS} where there is one")
    parser.add_argument("--random", action="store_true", help="random inputs even where some were saved")
    parser.add_argument("--seed", type=int, default=0, help="of random inputs")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an extent or a number")
    parser.add_argument("--entry", help="which entry, where there are several")
    parser.add_argument("--save", type=Path, metavar="FILE", help="an .npz file to write the outputs to")
    return parser


def _program(folder: Path, parse: Callable[[str], Program | Function]) -> CompiledProgram:
    """Return the program: its code, or on the interpreter its source read again."""
    platform = json.loads((folder / META).read_bytes()).get("platform")
    if platform != INTERPRETER:
        return CompiledProgram.load(folder)
    from tilewright.programs.compiler import compile

    return compile(parse((folder / FILES["program"]).read_text(encoding="utf-8")), platform=platform)


def _entry(program: CompiledProgram, name: str | None) -> Entry:
    if name is None and len(program.entry_names) > 1:
        raise ValueError(f"there are several entries: pass --entry with one of {', '.join(program.entry_names)}")
    return program[name or program.entry_names[0]]


def _given(entry: Entry, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    path: Path | None = options.inputs or (folder / INPUTS if (folder / INPUTS).exists() else None)
    chosen = {name: json.loads(value) for name, _, value in (each.partition("=") for each in options.set)}
    if path is None or options.random:
        return _random(entry, chosen, options.seed)
    return {**inputs.read(path, entry), **chosen}


def _random(entry: Entry, chosen: Mapping[str, Any], seed: int) -> dict[str, Any]:
    rng, found = np.random.default_rng(seed), dict[str, Any]()
    extents = {symbol: int(chosen.get(symbol, EXTENT)) for symbol in entry.function.symbols}
    for param, direction in zip(entry.function.params, entry.function.param_directions, strict=True):
        name, type_ = param.name_hint, param.type
        if isinstance(type_, ScalarType):
            default = param.bounds[0] if param.bounds is not None else type_.dtype.is_float() and 1.0
            found[name] = chosen.get(name, entry.specialized.get(name, _plain(default, type_.dtype)))
        elif isinstance(type_, TensorType) and direction is not ParamDirection.Out:
            found[name] = _random_array(rng, shape_of(type_.shape, extents), type_.dtype)
    return found


def _plain(value: float, dtype: DataType) -> int | float | bool:
    return float(value) if dtype.is_float() else int(value) if dtype.is_int() else bool(value)


def _random_array(rng: Any, shape: tuple[int, ...], dtype: DataType) -> Any:
    if dtype.is_float():
        return round_to(rng.standard_normal(shape), dtype)
    low, high = (max(dtype.limits[0], -8), min(dtype.limits[1], 8))
    return rng.integers(low, high, shape, endpoint=True).astype(dtype.numpy)


def _named(entry: Entry, given: Mapping[str, Any], result: Any) -> list[tuple[str, Any]]:
    """Return what a call wrote and returned: inputs it may have changed, then its results."""
    written = zip(entry.param_names, entry.directions, strict=True)
    changed = [(name, given[name]) for name, direction in written if direction is ParamDirection.InOut]
    results = cast("tuple[Any, ...]", result) if isinstance(result, tuple) else () if result is None else (result,)
    outputs = [entry.param_names[i] for i in entry.output_indices]
    names = outputs if len(outputs) == len(results) else [f"result{i}" for i in range(len(results))]
    return [*changed, *zip(names, results, strict=True)]


def _summary(value: Any) -> str:
    array = np.asarray(value)
    if array.size == 0 or array.ndim == 0:
        return f"{value}"
    wide = array.astype(np.float64)
    return f"{array.dtype}{list(array.shape)} min {wide.min():g} max {wide.max():g} mean {wide.mean():g}"
