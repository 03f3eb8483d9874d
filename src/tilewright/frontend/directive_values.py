"""Directive values: what loops and scopes of the language are where Python itself runs them, as in a script.

A loop counts, its carried values staying what they start as; a scope is entered and left, and remembers what it was
given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from tilewright.core.annotations import outside_kernel
from tilewright.records import record


@record
class Count:
    """What `pl.range` and its kin are in plain Python: the numbers from start to stop by step."""

    start: Any
    stop: Any
    step: Any
    init_values: tuple[Any, ...] | None = None
    pipeline_stages: int | None = None

    def __iter__(self) -> Iterator[Any]:
        for number in range(self.start, self.stop, self.step):
            yield number if self.init_values is None else (number, self.init_values)


def counted(word: str, bounds: Sequence[Any], init_values: Sequence[Any] | None, stage: Any = None) -> Count:
    """Return the numbers that a loop counts; ValueError for a wrong number of bounds or a wrong depth."""
    if not 1 <= len(bounds) <= 3:
        raise ValueError(f"pl.{word}() takes 1 to 3 bounds, got {len(bounds)}")
    if word == "pipeline" and (not isinstance(stage, int) or isinstance(stage, bool) or stage < 1):
        raise ValueError(f"stage= of pl.pipeline() must be an integer >= 1, got {stage!r}")
    start, stop, step = [(0, *bounds, 1), (*bounds, 1), tuple(bounds)][len(bounds) - 1]
    return Count(start, stop, step, None if init_values is None else tuple(init_values), stage)


class ScopeObject:
    """What a scope of the language is in plain Python: something to enter, with what it was given as attributes."""

    def __init__(self, name: str, given: dict[str, Any]) -> None:
        self.name = name
        self.__dict__.update(given)

    def __getattr__(self, attribute: str) -> Any:
        raise AttributeError(f"{self.name} was not given `{attribute}`")

    def __enter__(self) -> ScopeObject:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        """Raise: blocks and lanes are there in a kernel only."""
        outside_kernel(self.name)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if name != "name")
        return f"{self.name}({given})"
