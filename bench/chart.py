"""The charts of the benchmarks, as small PNG files beside the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure

from bench.results import FOLDER


def draw_append(rates: Mapping[str, Sequence[float]], folder: Path = FOLDER) -> Path:
    """One bar a side at its median, and a dot for each round."""
    figure = Figure(figsize=(7.5, 2.8), layout="constrained")
    axes = figure.add_subplot()
    names = list(rates)[::-1]
    bars = axes.barh(names, [median(rates[name]) / 1000 for name in names], height=0.55)
    axes.bar_label(bars, fmt="%.0f k", label_type="center", color="white")
    for place, name in enumerate(names):
        each = [rate / 1000 for rate in rates[name]]
        axes.plot(each, [place] * len(each), ".", color="black", markersize=4)
    axes.set_xlabel("thousand rows a second; each dot is a round")
    axes.spines[["top", "right"]].set_visible(False)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "bench_append.png"
    figure.savefig(file, dpi=150)
    return file
