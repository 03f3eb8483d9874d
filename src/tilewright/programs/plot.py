"""Plots: every run of a benchmark as a dot, in a file that a browser shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tilewright.programs.timings import Timings

COLOURS = ("#2f6fb7", "#e0723a")
INK, FAINT = "#24292f", "#8c959f"
STYLE = {
    "svg.hashsalt": "tilewright",  # the same times give the same file
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
}


def plot(title: str, series: Mapping[str, Timings], path: str | os.PathLike[str]) -> None:
    """Draw times by round, with the median of each series as a line and its middle half as a band."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context(STYLE):
        figure = import_module("matplotlib.figure").Figure(figsize=(7, 3.2), layout="constrained")
        axes, top = figure.subplots(), max(map(_reach, series.values()))
        for colour, (name, timings) in zip(COLOURS, series.items(), strict=False):
            _draw(axes, colour, name, timings, top)
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlabel("round")
        axes.set_ylabel("microseconds")
        axes.set_ylim(0, top * 1.05)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside upper right", ncols=len(series), frameon=False, fontsize=9)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _reach(timings: Timings) -> float:
    """Return up to where times are worth showing: one run that the machine interrupted must not flatten the rest."""
    low, high = timings.quartiles
    return min(timings.max, max(high + 6 * (high - low), 1.5 * timings.median))


def _draw(axes: Any, colour: str, name: str, timings: Timings, top: float) -> None:
    rounds, beyond = range(1, timings.samples + 1), sum(time > top for time in timings.times)
    axes.scatter(rounds, [min(time, top) for time in timings.times], s=8, color=colour, alpha=0.6, linewidths=0)
    axes.axhspan(*timings.quartiles, color=colour, alpha=0.12, linewidth=0)
    label = f"{name}: median {timings.median:.2f} us" + (f", {beyond} runs above" if beyond else "")
    axes.axhline(timings.median, color=colour, linewidth=1, label=label)


def _matplotlib() -> Any:
    try:
        return import_module("matplotlib")
    except ImportError as error:
        raise ImportError("plotting a benchmark needs matplotlib: pip install matplotlib") from error
