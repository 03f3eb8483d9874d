"""Bisection: which stage first changes what a program computes, on as little of it as shows that."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from tilewright.arrays import np
from tilewright.call.frameworks import array_of, is_tensor
from tilewright.core.program import Program
from tilewright.errors import TilewrightError
from tilewright.frontend.programs import as_program
from tilewright.frontend.text import parse
from tilewright.passes.manager import PassManager
from tilewright.programs.compiler import compile
from tilewright.programs.smaller_texts import smaller, statement_count
from tilewright.programs.validate import NATIVE, WrongPassError, validate_ir
from tilewright.records import record

SECONDS = 20.0
"""How long a program is cut down for."""


@record
class Bisection:
    """A stage that is wrong, and the smallest program and arguments that were found to show it."""

    name: str
    stage: str
    message: str
    text: str
    arguments: Mapping[str, Any]
    statements: tuple[int, int]
    """How many statements the program had, and has."""
    tried: int

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write a file that shows the mistake when it is run; return its path."""
        place = Path(path)
        place.write_text(self._script(), encoding="utf-8")
        return place

    def _script(self) -> str:
        first = self.message.partition("\n")[0].replace('"""', "'''").replace("\\", "\\\\")
        values = {name: _literal(value) for name, value in self.arguments.items()}
        is_native, is_odd = self.stage == NATIVE, any("ml_dtypes." in text for text in values.values())
        lines = [
            f'"""{first}',
            "",
            "Written by `tilewright bisect`: running it raises WrongPassError as long as that is so.",
            '"""',
            "",
            *["import ml_dtypes"] * is_odd,
            "import numpy as np",
            "",
            *["from tilewright.ir import compile"] * is_native,
            "from tilewright.runtime import validate_ir",
            self.text.rstrip(),
            "",
            "",
            f"PROGRAM = {self.name}",
            "ARGUMENTS = {",
            *(f"    {name!r}: {text}," for name, text in values.items()),
            "}",
            "",
            'if __name__ == "__main__":',
            f"    validate_ir({'compile(PROGRAM)' if is_native else 'PROGRAM'}, ARGUMENTS)",
        ]
        return "\n".join(lines) + "\n"


def _literal(value: Any) -> str:
    if not hasattr(value, "dtype"):
        return repr(value)
    kind = value.dtype
    named = f"np.{kind.name}" if kind.isbuiltin == 1 else f"ml_dtypes.{kind.name}"
    flat = value.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return f"np.full({value.shape}, {flat[0].item()!r}, {named})"
    return f"np.array({value.tolist()!r}, {named}).reshape({value.shape})"


def bisected(
    program: Program,
    arguments: Mapping[str, Any],
    *,
    manager: PassManager | None = None,
    is_native: bool = True,
    seconds: float = SECONDS,
) -> Bisection | list[str]:
    """Return the first stage that changes the answer, cut down as far as time allows; else all stages, which agree.

    Passes are those of `manager`; native code is the last stage, unless it is left out. ValueError where the program
    does not run as it was read.
    """
    trial = _Trial(manager, is_native)
    given = {name: np.array(array_of(value)) if is_tensor(value) else value for name, value in arguments.items()}
    found = trial.run(program, given)
    if not isinstance(found, WrongPassError):
        return found
    if found.stage == "frontend":
        raise ValueError(str(found)) from found
    trial = replace(trial, is_native=found.stage == NATIVE)
    cut = _Cut(trial, found, program.as_python(concise=True), given, monotonic() + seconds)
    before = statement_count(cut.text)
    cut.shrink()
    cut.simplify_arguments()
    sizes = before, statement_count(cut.text)
    return Bisection(program.name, found.stage, str(cut.error), cut.text, cut.given, sizes, cut.tried)


@record
class _Trial:
    """What is done with a program to see whether it is right."""

    manager: PassManager | None
    is_native: bool

    def run(self, program: Program, given: Mapping[str, Any]) -> WrongPassError | list[str]:
        """Return the first stage that is wrong, or all of them."""
        try:
            done = validate_ir(program, given, manager=self.manager)
            if not self.is_native:
                return done
            return validate_ir(compile(program), given)
        except WrongPassError as error:
            return error


class _Cut:
    """A program that is wrong, and gets smaller."""

    def __init__(self, trial: _Trial, error: WrongPassError, text: str, given: Mapping[str, Any], until: float) -> None:
        self.trial, self.error, self.text, self.given, self.until = trial, error, text, dict(given), until
        self.tried = 0

    def shrink(self) -> None:
        """Take away what does not matter, the largest pieces first, until nothing more can go."""
        first = 0
        while monotonic() < self.until:
            found = self._smaller(first)
            if found is None and first == 0:
                return
            first, self.text = (0, self.text) if found is None else found

    def _smaller(self, first: int) -> tuple[int, str] | None:
        """Return the first smaller text that is wrong, and which one it is; those before were tried on a larger one."""
        for number, text in enumerate(smaller(self.text)):
            if monotonic() > self.until:
                return None
            if number >= first and self._is_wrong(text, self.given):
                return number, text
        return None

    def simplify_arguments(self) -> None:
        """Let each tensor hold simpler numbers where that shows the same."""
        for name, value in list(self.given.items()):
            for other in _simpler(value) if isinstance(value, np.ndarray) else ():
                if monotonic() < self.until and self._is_wrong(self.text, {**self.given, name: other}):
                    self.given[name] = other
                    break

    def _is_wrong(self, text: str, given: Mapping[str, Any]) -> bool:
        """Return whether a program is wrong at the same stage; one that is refused is not."""
        self.tried += 1
        try:
            found = self.trial.run(as_program(parse(text, {}, "<smaller>")), given)
        except (TilewrightError, TypeError, ValueError, AssertionError):
            return False
        if not isinstance(found, WrongPassError) or found.stage != self.error.stage:
            return False
        self.error = found
        return True


def _simpler(value: Any) -> Iterator[Any]:
    """Yield tensors like one with simpler numbers, the simplest first."""
    yield np.zeros_like(value)
    yield np.ones_like(value)
    if value.dtype.kind not in "biu":
        yield np.rint(4 * value.astype(np.float64)).astype(value.dtype)
