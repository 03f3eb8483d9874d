"""Tables: outcomes of contests as reports."""

from __future__ import annotations

from collections.abc import Sequence

from contest import Outcome
from harness import Report

CLOCKS = {"cpu": "CPU time", "wall": "wall clock"}


def tables(outcomes: Sequence[Outcome]) -> list[Report]:
    """Return a table for each group on each number of threads, groups first."""
    keys = dict.fromkeys((o.contest.group, o.threads) for o in outcomes)
    order = sorted(keys, key=lambda key: [group for group, _ in keys].index(key[0]))
    return [_table([o for o in outcomes if (o.contest.group, o.threads) == key]) for key in order]


def _table(outcomes: Sequence[Outcome]) -> Report:
    first = outcomes[0]
    contenders = [*dict.fromkeys(who for o in outcomes for who in (*o.timings, *o.missing))]
    others = [who for who in contenders if who != first.contest.subject]
    also_wall = [first.contest.against] if first.clock != "wall" else []
    columns = [
        "work",
        *contenders,
        "rate",
        *(f"vs {who}" for who in others),
        *(f"vs {who}, wall" for who in also_wall),
        "target",
    ]
    count = f"{first.threads} thread{'s' if first.threads > 1 else ''}"
    rows = [_row(o, contenders, others, also_wall) for o in outcomes]
    return Report(f"{first.contest.group}, {count}, {CLOCKS[first.clock]}", columns, rows)


def _row(o: Outcome, contenders: Sequence[str], others: Sequence[str], also_wall: Sequence[str]) -> list[str]:
    subject, work = o.contest.subject, o.contest.work
    times = [f"{o.milliseconds(who):.2f} ms" if who in o.timings else o.missing.get(who, "") for who in contenders]
    ratios = [str(o.ratio(subject, who)) if who in o.timings else "" for who in others]
    walls = [str(o.ratio(subject, who, "wall")) if who in o.timings else "" for who in also_wall]
    return [o.contest.name, *times, work.rate(o.milliseconds(subject)), *ratios, *walls, _verdict(o)]


def _verdict(o: Outcome) -> str:
    target = o.contest.target
    if target is None:
        return ""
    return f"≥ {target:g}x {'✓' if o.ratio(o.contest.subject, o.contest.against).middle >= target else '✗'}"
