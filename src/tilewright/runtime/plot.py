"""Plots: every run of a benchmark as a dot, in a file that a browser shows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tilewright.runtime.timings import Timings

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
        axes = figure.subplots()
        for colour, (name, timings) in zip(COLOURS, series.items(), strict=False):
            _draw(axes, colour, name, timings)
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlabel("round")
        axes.set_ylabel("microseconds")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="upper right", frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw(axes: Any, colour: str, name: str, timings: Timings) -> None:
    rounds = range(1, timings.samples + 1)
    axes.scatter(rounds, timings.times, s=8, color=colour, alpha=0.6, linewidths=0)
    axes.axhspan(*timings.quartiles, color=colour, alpha=0.12, linewidth=0)
    axes.axhline(timings.median, color=colour, linewidth=1, label=f"{name}: median {timings.median:.2f} us")


def _matplotlib() -> Any:
    try:
        return import_module("matplotlib")
    except ImportError as error:
        raise ImportError("plotting a benchmark needs matplotlib: pip install matplotlib") from error
