"""Validation by torch: the program after each pass, written down in torch and run on the same arguments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tilewright.call.frameworks import TORCH, framework_of
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.programs.golden import GoldenError, assert_golden
from tilewright.programs.metadata import entry_of
from tilewright.programs.torch_text.codegen import torch_codegen
from tilewright.programs.validate import LOOSE, WrongPassError, dumped

Given: TypeAlias = "Sequence[Any] | Mapping[str, Any]"


def validate_pass_ir_codegen_results(
    ir_dir: str | os.PathLike[str], tensors: Given, expected: Any, *, rtol: float = LOOSE, atol: float = LOOSE
) -> list[str]:
    """Return the passes whose programs, as torch text, compute what is expected: all that were dumped in a folder.

    `tensors` are a call's arguments, in order or by name, and are left as they are; `expected` are its outputs, in
    order, by name or alone, NaN where an element does not matter. FileNotFoundError where there is no such folder or
    file, ValueError where it holds no program or names are wrong, TypeError for what cannot be arguments, RuntimeError
    where a text does not run, and WrongPassError, an AssertionError, for the first pass whose results are others.
    """
    if not Path(ir_dir).exists():
        raise FileNotFoundError(f"there is no pass dump at {str(ir_dir)!r}")
    done: list[str] = []
    for stage, program in _programs(Path(ir_dir)):
        found = _outputs(stage, program, tensors)
        wanted = _wanted(expected, found)
        try:
            assert_golden({name: found[name] for name in wanted}, wanted, rtol, atol, skip_nan=True)
        except GoldenError as error:
            held = f"; it was right after {done[-1]}" if done else ""
            raise WrongPassError(f"{stage} changed the answer{held}: {error}") from error
        done.append(stage)
    return done


def _programs(place: Path) -> list[tuple[str, Program]]:
    try:
        return list(dumped(place))
    except FileNotFoundError as error:
        raise ValueError(str(error)) from error


def _outputs(stage: str, program: Program, tensors: Given) -> dict[str, Any]:
    """Return what a program's text computes from copies of the arguments: what it writes, or else returns, by name."""
    entry = entry_of(program)
    args = _arguments(entry, tensors)
    scope: dict[str, Any] = {}
    exec(torch_codegen(program), scope)
    try:
        returned: Any = scope[entry.name](*args)
    except Exception as error:
        raise RuntimeError(f"the text of the program after {stage} does not run: {error}") from error
    params = zip(entry.params, entry.param_directions, args, strict=True)
    written = {param.name_hint: value for param, direction, value in params if direction is not ParamDirection.In}
    return written or {f"result {number}": value for number, value in enumerate(_several(returned))}


def _arguments(entry: Function, tensors: Given) -> list[Any]:
    names = [param.name_hint for param in entry.params]
    if isinstance(tensors, Mapping):
        missing = [name for name in names if name not in tensors]
        if missing:
            raise ValueError(f"`{entry.name}` needs {', '.join(missing)} too; it takes {', '.join(names)}")
        return [_copied(tensors[name]) for name in names]
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"tensors are a list or a dict of arguments, got {type(tensors).__name__}")
    if len(tensors) != len(names):
        raise ValueError(f"`{entry.name}` takes {', '.join(names)}, got {len(tensors)} arguments")
    return [_copied(value) for value in tensors]


def _copied(value: Any) -> Any:
    """Return an argument of a text: a tensor of its own, or a number."""
    framework = framework_of(value)
    if framework is TORCH:
        return value.clone()
    if framework is not None:
        return TORCH.wrap(framework.argument(value).array)
    if not isinstance(value, (int, float, bool)):
        raise TypeError(f"a program takes tensors and numbers, got {type(value).__name__}")
    return value


def _wanted(expected: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is expected, by name."""
    if not isinstance(expected, Mapping):
        several = _several(expected)
        if len(several) != len(found):
            raise ValueError(f"{len(several)} outputs are expected, and the program gives {', '.join(found)}")
        return dict(zip(found, several, strict=True))
    named: dict[str, Any] = {str(name): value for name, value in expected.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if unknown := [name for name in named if name not in found]:
        raise ValueError(f"the program does not give {', '.join(unknown)}; it gives {', '.join(found)}")
    return named


def _several(values: Any) -> list[Any]:
    """Return values that came together or alone as a list."""
    return list(values) if isinstance(values, (list, tuple)) else [] if values is None else [values]  # pyright: ignore[reportUnknownArgumentType]
