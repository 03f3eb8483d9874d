"""Outcomes: what measuring the configurations of a kernel has found, for calls of one tuning key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, cast

from tilewright.errors import ArtifactError
from tilewright.keep.relocate import Relocation
from tilewright.records import record
from tilewright.tune.config import Config

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("median us", "slower", "runs")


@record
class Measured:
    """One configuration: how often it was run, the median time in microseconds, or why it could not be."""

    config: Config
    runs: int = 0
    median: float = 0.0
    failure: str = ""


@record
class Outcome:
    """All configurations of a kernel as they were found, and which is best."""

    measured: Sequence[Measured]
    place: int

    @property
    def best(self) -> Config:
        """The configuration that calls are made with."""
        return self.measured[self.place].config

    def rows(self) -> list[tuple[str, ...]]:
        """Return the configurations as rows of text, the fastest first, those that failed last."""
        fastest = self.measured[self.place].median
        ran = sorted((each for each in self.measured if each.runs), key=lambda each: each.median)
        rows = [
            (each.config.text, f"{each.median:.2f}", f"{each.median / (fastest or 1.0):.2f}x", str(each.runs))
            for each in ran
        ]
        failed = [each for each in self.measured if not each.runs]
        return [*rows, *((each.config.text, "", "", each.failure.splitlines()[0]) for each in failed)]

    def __str__(self) -> str:
        """Return the numbers as a table."""
        rows = [("config", *COLUMNS), *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
        )

    def __rich__(self) -> Table:
        """Return the numbers as rich draws tables."""
        from rich.table import Table
        from rich.text import Text

        table = Table("config")
        for column in COLUMNS:
            table.add_column(column, justify="left" if column == COLUMNS[-1] else "right")
        for row in self.rows():
            table.add_row(*map(Text, row), style="bold" if row[0] == self.best.text else None)
        return table


def outcome(
    configs: Sequence[Config], times: Sequence[Sequence[float]], failures: dict[int, str], place: int
) -> Outcome:
    """Return what was found: seconds for each configuration, none for those that failed."""
    found = [
        Measured(config, len(each), 1e6 * median(each) if each else 0.0, failures.get(number, ""))
        for number, (config, each) in enumerate(zip(configs, times, strict=True))
    ]
    return Outcome(found, place)


@record
class Outcomes:
    """How outcomes of one kernel are kept: by the places of its configurations, which the key of all of them has."""

    configs: Sequence[Config]

    def dump(self, program: Outcome, relocation: Relocation) -> bytes:
        """Return an outcome as bytes."""
        known = {id(config): place for place, config in enumerate(self.configs)}
        rows = [[known[id(each.config)], each.runs, each.median, each.failure] for each in program.measured]
        return json.dumps([program.place, rows]).encode()

    def load(self, data: bytes, relocation: Relocation) -> Outcome:
        """Return an outcome from its bytes; ArtifactError for others."""
        try:
            place, rows = cast("tuple[int, list[tuple[int, int, float, str]]]", json.loads(data))
            found = [Measured(self.configs[at], int(runs), float(time), str(why)) for at, runs, time, why in rows]
            if not 0 <= place < len(found) or not found[place].runs:
                raise ValueError(f"no configuration has number {place}")
            return Outcome(found, place)
        except (ValueError, LookupError, TypeError) as error:
            raise ArtifactError(f"this is no outcome of tuning: {error}") from error
