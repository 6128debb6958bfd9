"""Draws a sweep: how ratios are distributed, and where the bad ones are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import log2, log10
from pathlib import Path
from typing import Any

from baracuda.bench.sweep.document import BEHIND, FAR_BEHIND, figures

_SPAN = 3.0  # of log2 of the ratios, on both sides of 1
_Row = dict[str, Any]


def decade(row: _Row) -> str:
    """The power of ten of its bytes."""
    return f"1e{int(log10(max(row['bytes'], 1)))}"


def table(
    rows: Sequence[_Row], across: Callable[[_Row], str]
) -> tuple[list[str], list[str], dict[tuple[str, str], Any]]:
    """Families, columns, and the figures of each field that has cells."""
    fields: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for row in rows:
        fields[row["family"], across(row)].append(row)
    families = sorted({f for f, _ in fields})
    return families, sorted({c for _, c in fields}), {k: figures(v) for k, v in fields.items()}


def _map(axes: Any, rows: Sequence[_Row], across: Callable[[_Row], str], title: str, *, named: bool) -> Any:
    import numpy as np

    families, columns, found = table(rows, across)
    shown = np.full((len(families), len(columns)), np.nan)
    for (family, column), f in found.items():
        shown[families.index(family), columns.index(column)] = np.clip(log2(f["mean"]), -_SPAN, _SPAN)
    picture = axes.imshow(shown, cmap="RdBu", vmin=-_SPAN, vmax=_SPAN, aspect="auto")
    for (family, column), f in found.items():
        place = columns.index(column), families.index(family)
        dark = abs(shown[place[1], place[0]]) > 1.8
        text = f"{f['mean']:.2g}\n{f['behind']:.0%} of {f['cells']}"
        axes.text(*place, text, ha="center", va="center", fontsize=5, color="white" if dark else "black")
    axes.set_xticks(range(len(columns)), columns, rotation=35, ha="right", fontsize=7)
    axes.set_yticks(range(len(families)), families if named else [], fontsize=7)
    axes.set_title(title, fontsize=8)
    return picture


def _histogram(axes: Any, rows: Sequence[_Row], summary: dict[str, Any]) -> None:
    import numpy as np

    ratios = np.clip([log2(r["ratio"]) for r in rows], -_SPAN * 1.5, _SPAN * 1.5)
    edges = np.linspace(-_SPAN * 1.5, _SPAN * 1.5, 55)
    for low, high, colour in (
        (-99, log2(FAR_BEHIND), "#b2182b"),
        (log2(FAR_BEHIND), log2(BEHIND), "#ef8a62"),
        (log2(BEHIND), 99, "#4393c3"),
    ):
        part = ratios[(ratios >= low) & (ratios < high)]
        axes.hist(part, bins=edges, color=colour)
    axes.axvline(0, color="black", lw=0.8)
    ticks = [-4, -3, -2, -1, 0, 1, 2, 3, 4]
    axes.set_xticks(ticks, [f"{2.0**t:g}" for t in ticks], fontsize=7)
    axes.set_xlabel("peer's time / ours (outermost bars: that and beyond)", fontsize=8)
    axes.set_ylabel("cells", fontsize=8)
    words = (
        f"{summary['cells']} cells, geometric mean {summary['mean']:.2f}; "
        f"below {BEHIND:g}: {summary['behind']:.1%}, below {FAR_BEHIND:g}: {summary['far_behind']:.1%}"
    )
    axes.set_title(words, fontsize=8)


def draw(data: dict[str, Any], path: Path) -> None:
    """Writes the picture: a histogram, and heat maps of families by size, layout and element."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [r for r in data["rows"] if r["status"] == "measured"]
    families = {r["family"] for r in rows}
    height = 4.5 + 0.42 * len(families)
    figure = plt.figure(figsize=(15, height), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(3, 0.42 * len(families) + 0.8))
    _histogram(figure.add_subplot(grid[0, :]), rows, data["summary"])
    maps: tuple[tuple[str, Callable[[_Row], str]], ...] = (
        ("bytes of the arguments", decade),
        ("layout", lambda r: str(r["layout"])),
        ("element", lambda r: str(r["element"])),
    )
    for i, (title, across) in enumerate(maps):
        picture = _map(figure.add_subplot(grid[1, i]), rows, across, f"by {title}", named=i == 0)
    bar = figure.colorbar(picture, ax=figure.axes[1:], shrink=0.6, pad=0.01)
    bar.set_ticks([-3, -2, -1, 0, 1, 2, 3], labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    options, machine = data["options"], data["machine"]
    peer = f"{options['peer']} {machine['versions'].get(options['peer'], '')}"
    figure.suptitle(
        f"baracuda {machine['versions']['baracuda']} beside {peer} on random calls{' with gradients' * options['gradients']}, "
        f"{machine['cpu']['model']}, {machine['threads']} threads, {data['date'][:10]}, seed {options['seed']}\n"
        "fields: geometric mean of the ratios, share of cells below 0.95",
        fontsize=9,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
