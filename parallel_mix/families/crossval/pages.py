"""Pictures of a comparison: errors, chosen settings, confusion, time per classifier, what the workers did."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from parallel_mix.evaluate.tables import told_apart
from parallel_mix.families.crossval.file import StoredComparison, StoredMethod, read_comparison
from parallel_mix.plots.figures import new_figure, save, tidy
from parallel_mix.plots.palette import COLOURS, GREY
from parallel_mix.store.results import read_record

MOST_CLASSES = 30
MOST_VALUES = 24


def draw(path: Path, folder: Path, formats: tuple[str, ...]) -> list[Path]:
    """All pictures of a result of `crossval`."""
    comparison = read_comparison(path)
    written = save(_draw_errors(comparison), folder, "errors", formats)
    chosen = [method for method in comparison.methods if method.settings[0]]
    if chosen:
        written += save(_draw_settings(chosen), folder, "settings", formats)
    for method in comparison.methods:
        if (method.predicted >= 0).any():
            name = "".join(c if c.isalnum() or c in "-_." else "-" for c in method.name)
            written += save(_draw_confusion(comparison, method), folder, f"confusion-{name}", formats)
    written += save(_draw_times(comparison), folder, "times", formats)
    workers = read_record(path).get("efficiency")
    if workers:
        written += save(_draw_workers(workers), folder, "efficiency", formats)
    return written


def _draw_errors(comparison: StoredComparison) -> Any:
    errors, count = 100.0 * comparison.errors, len(comparison.methods)
    figure = new_figure(8, 1.2 + 0.45 * count)
    axes = figure.add_subplot()
    random = np.random.default_rng(0)
    for k in range(count):
        known = errors[k][np.isfinite(errors[k])]
        if not len(known):
            axes.text(0, k, " failed", va="center", color=GREY)
            continue
        axes.boxplot(known, positions=[k], orientation="horizontal", widths=0.6, showfliers=False, manage_ticks=False,
                     medianprops={"color": COLOURS[5]})  # fmt: skip
        axes.plot(known, k + random.uniform(-0.18, 0.18, len(known)), "o", color=COLOURS[0], markersize=3.5, alpha=0.7)
        axes.plot(known.mean(), k, "D", color=COLOURS[5], markersize=5)
    axes.set_yticks(range(count), told_apart(comparison.names))
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"error in the test rows of each of {errors.shape[1]} partitions, % (diamond: mean)")
    axes.set_title(f"{comparison.name}: {len(comparison.y):,} rows, {len(comparison.classes)} classes")
    tidy(axes)
    return figure


def _draw_settings(methods: list[StoredMethod]) -> Any:
    panels = [(method, name) for method in methods for name in method.settings[0]]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(4.2 * columns, 2.6 * rows)
    for place, (method, name) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, place + 1)
        values = list(dict.fromkeys(str(setting[name]) for setting in method.settings))
        counts = Counter(str(method.settings[k][name]) for k in method.chosen if k >= 0)
        axes.bar(range(len(values)), [counts[value] for value in values], color=COLOURS[place % len(COLOURS)])
        step = -(-len(values) // MOST_VALUES)
        axes.set_xticks(range(0, len(values), step), values[::step], rotation=90, fontsize=7)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_title(f"{method.name}: {name}", fontsize=9)
        tidy(axes)
    figure.supylabel("partitions that chose it")
    return figure


def _draw_confusion(comparison: StoredComparison, method: StoredMethod) -> Any:
    G = len(comparison.classes)
    truth, told = comparison.y[comparison.tests], method.predicted
    known = told >= 0
    counts = np.zeros((G, G))
    np.add.at(counts, (truth[known], told[known]), 1)
    some = counts.sum(axis=1, keepdims=True) > 0  # classes that have test rows
    shares = np.where(some, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), np.nan)
    size = 3.2 + 0.35 * min(G, MOST_CLASSES)
    figure = new_figure(size + 1, size)
    axes = figure.add_subplot()
    image = axes.imshow(100.0 * shares, cmap="Blues", vmin=0, vmax=100)
    figure.colorbar(image, ax=axes, label="% of the rows of a class", shrink=0.8)
    if G <= MOST_CLASSES:
        names = [name if len(name) <= 14 else f"{name[:13]}…" for name in comparison.classes]
        axes.set_xticks(range(G), names, rotation=90 if G > 4 else 0, fontsize=8)
        axes.set_yticks(range(G), names, fontsize=8)
    if G <= 12:
        for i in range(G):
            for j in range(G):
                colour = "white" if shares[i, j] > 0.55 else "black"
                axes.text(
                    j,
                    i,
                    f"{100 * shares[i, j]:.0f}" if some[i] else "-",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=colour,
                )
    axes.set_xlabel("told")
    axes.set_ylabel("true")
    axes.set_title(f"{method.title}: all partitions together", fontsize=10)
    return figure


def _draw_times(comparison: StoredComparison) -> Any:
    count = len(comparison.methods)
    seconds = [method.seconds.mean() for method in comparison.methods]
    figure = new_figure(8, 1.2 + 0.35 * count)
    axes = figure.add_subplot()
    axes.plot(seconds, range(count), "o", color=COLOURS[0])
    axes.set_yticks(range(count), told_apart(comparison.names))
    axes.invert_yaxis()
    if max(seconds) > 50 * max(min(seconds), 1e-6):
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel("seconds a partition on one core: all folds, the refit and its predictions")
    axes.set_title("What each classifier took")
    tidy(axes)
    return figure


def _draw_workers(record: str) -> Any:
    efficiency = json.loads(record)
    workers = efficiency["workers"]
    figure = new_figure(8, 1.5 + 0.35 * len(workers))
    axes = figure.add_subplot()
    at = range(len(workers))
    busy, talking = [w["busy"] for w in workers], [w["talking"] for w in workers]
    whole = [efficiency["seconds"] * w["threads"] for w in workers]
    idle = [max(of - b - t, 0.0) for of, b, t in zip(whole, busy, talking, strict=True)]
    axes.barh(at, busy, color=COLOURS[2], label="computing")
    axes.barh(at, talking, left=busy, color=COLOURS[1], label="talking")
    axes.barh(at, idle, left=np.add(busy, talking), color=GREY, alpha=0.5, label="idle")
    axes.set_yticks(
        at, [f"{w['worker']} ({w['host']}): {w['tasks']:,} tasks, {w['received'] / 2**20:.1f} MiB in" for w in workers]
    )
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.set_title(f"Speed-up {sum(busy) / max(efficiency['seconds'], 1e-9):.1f} on {len(workers)} workers")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(axes)
    return figure
