"""The plot: how many times faster than torch eager, a bar for each contender."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contest import EAGER, INDUCTOR, OURS, Outcome

PATH = Path(__file__).with_name("results.svg")
COLOURS = {OURS: "#2f6fb7", INDUCTOR: "#b9c2cc"}
INK, FAINT, GOAL = "#24292f", "#8c959f", "#e0723a"
HEIGHT = 0.36
STYLE = {
    "svg.hashsalt": "tilewright",  # the same results give the same file
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "xtick.color": FAINT,
    "ytick.color": INK,
}


def plot(outcomes: Sequence[Outcome], path: Path = PATH) -> None:
    """Draw the contests that are held against torch eager, a panel for each number of threads."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    panels = _by_threads([o for o in outcomes if o.contest.against == EAGER])
    rows = max(map(len, panels.values()))
    with pyplot.rc_context(STYLE):
        size = (1.5 + 4 * len(panels), 1.2 + 0.6 * rows)
        figure, grid = pyplot.subplots(
            1, len(panels), figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
        )
        for axes, (threads, shown) in zip(grid[0], panels.items(), strict=True):
            _draw(axes, f"{threads} thread{'s' if threads > 1 else ''}", shown)
        figure.supxlabel("times as fast as torch eager", fontsize=10)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)


def _by_threads(outcomes: Sequence[Outcome]) -> dict[int, list[Outcome]]:
    return {n: [o for o in outcomes if o.threads == n] for n in sorted({o.threads for o in outcomes})}


def _draw(axes: Any, title: str, outcomes: Sequence[Outcome]) -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.axvline(1, color=INK, linewidth=0.8)
    for place, who in enumerate(COLOURS):
        _bars(axes, who, {row + (place - 0.5) * HEIGHT: o for row, o in enumerate(outcomes) if who in o.timings})
    goals = {row: o.contest.target for row, o in enumerate(outcomes) if o.contest.target is not None}
    ends = [[row - HEIGHT for row in goals], [*goals]]
    axes.vlines([*goals.values()], *ends, colors=GOAL, linewidth=2.5, label="target", zorder=3)
    axes.set_yticks(range(len(outcomes)), [o.contest.name for o in outcomes])
    axes.set_ylim(len(outcomes) - 0.4, -0.6)
    axes.margins(x=0.14)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _bars(axes: Any, who: str, placed: dict[float, Outcome]) -> None:
    """Draw a contender's medians, whiskers from quartile to quartile."""
    ratios = [o.ratio(who, EAGER) for o in placed.values()]
    reach = [[r.middle - r.low for r in ratios], [r.high - r.middle for r in ratios]]
    whiskers = {"ecolor": INK, "elinewidth": 0.8}
    middles = [r.middle for r in ratios]
    axes.barh([*placed], middles, HEIGHT * 0.94, xerr=reach, color=COLOURS[who], error_kw=whiskers, label=who, zorder=2)
    frame = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    for (place, outcome), ratio in zip(placed.items(), ratios, strict=True):
        at, gap = (_clear(ratio.high, outcome.contest.target), place), (6, 0)
        axes.annotate(f"{ratio.middle:.2f}", at, gap, textcoords="offset points", va="center", fontsize=9, bbox=frame)


def _clear(end: float, target: float | None) -> float:
    """Return where a number can stand behind a bar without covering the target or the line at 1."""
    return max([end, *(mark for mark in (1.0, target) if mark is not None and mark < end + 0.3)])
