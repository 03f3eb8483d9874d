"""The gallery's picture: how fast its kernels are beside torch, and what one of them computes.

Every file of `examples/gallery` shows itself on one thread, measured in processor time; torch's results are in memory
that was there before, as ours are.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from time import process_time
from typing import Any

from contest import OURS
from memory import keep_pages
from plot import COLOURS, INK, STYLE

ROOT = Path(__file__).parents[1]
GALLERY, PICTURE = ROOT / "examples" / "gallery", ROOT / "docs" / "gallery.png"
SIZE, STEPS = 129, 6000


def main() -> None:
    """Measure all files, and draw."""
    os.environ["TILEWRIGHT_NUM_THREADS"] = "1"
    sys.path.insert(0, str(GALLERY))
    ratios, grid = measured(), heated()

    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.6), width_ratios=[1.5, 1], layout="constrained")
        draw_ratios(left, ratios)
        draw_grid(right, grid)
        figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


def measured() -> dict[str, float]:
    """Return how many times as fast as torch each kernel is."""
    import torch

    torch.set_num_threads(1)
    keep_pages()
    timing = importlib.import_module("timing")
    timing.clock = process_time
    for path in sorted(GALLERY.glob("*.py")):
        if path.stem != "timing":
            importlib.import_module(path.stem).main()
    return timing.shown


def heated() -> Any:
    """Return what Jacobi's iteration makes of a plate with two warm edges."""
    import torch

    x = torch.zeros(SIZE, SIZE)
    x[0] = torch.sin(torch.linspace(0, torch.pi, SIZE))
    x[:, 0] = torch.sin(torch.linspace(0, 2 * torch.pi, SIZE))
    return importlib.import_module("jacobi").jacobi(x, x.clone(), STEPS).numpy()


def draw_ratios(axes: Any, ratios: dict[str, float]) -> None:
    """Draw a bar for each kernel, on a scale of powers of two, from one: as fast as torch."""
    names = sorted(ratios, key=lambda name: ratios[name])
    values = [ratios[name] for name in names]
    axes.barh(names, [value - 1 for value in values], left=1, color=COLOURS[OURS], height=0.7)
    axes.axvline(1, color=INK, linewidth=0.8)
    for place, value in enumerate(values):
        axes.annotate(
            f"{value:.1f}", (max(value, 1), place), (4, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks([0.5, 1, 2, 4, 8, 16], ["0.5", "1", "2", "4", "8", "16"])
    axes.set_xlabel("times as fast as torch, one thread")
    axes.margins(x=0.1, y=0.01)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def draw_grid(axes: Any, grid: Any) -> None:
    """Draw temperatures, and lines along which they are equal."""
    axes.imshow(grid, cmap="RdBu_r", vmin=-1, vmax=1)
    levels = [eighth / 8 for eighth in range(-7, 8) if eighth]  # zero is an edge of the plate
    axes.contour(grid, levels=levels, colors=INK, linewidths=0.4, linestyles="solid")
    axes.set_title(f"jacobi.py: {STEPS} steps on {SIZE} x {SIZE}", fontsize=10)
    axes.set_axis_off()


if __name__ == "__main__":
    main()
