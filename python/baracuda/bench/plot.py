"""The picture: rooflines for f32 and bf16, and every row's ratio to its peer beside its goal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baracuda.bench.report import SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

_SLOPES = (
    ("memory", "memory, 4 KB pages", "-"),
    ("nt_copy_huge", "memory, huge pages", "--"),
    ("copy_l3", "last-level cache", ":"),
)
_OURS, _PEER, _ROOF = "#1f4e79", "#d9822b", "#8a8f98"


def _roofline(axes: Any, rows: list[tuple[int, dict[str, Any]]], ceilings: dict[str, float], element: str) -> None:
    """Log-log: operations per byte against GFLOP/s, with numbers that the bars on the right explain."""
    peak = ceilings.get("bf16" if element == "bf16" else "f32", ceilings.get("f32", 1.0))
    points = [
        (n, r["flops"] / r["bytes"], [r["flops"] / r[s]["median"] / 1e9 for s in ("ours", "theirs")]) for n, r in rows
    ]
    low_x, high_x = 0.04, max([2 * peak / ceilings["memory"] * 4, *(2 * p[1] for p in points)])
    for name, label, style in _SLOPES:
        if name in ceilings:
            knee = peak / ceilings[name]
            axes.plot([low_x, knee], [low_x * ceilings[name], peak], color=_ROOF, lw=1.2, ls=style,
                      label=f"{label} {ceilings[name]:.0f} GB/s")  # fmt: skip
    knee = peak / max(ceilings.get(n, 0.0) for n, _, _ in _SLOPES)
    axes.plot([knee, high_x], [peak, peak], color=_ROOF, lw=1.2)
    axes.text(high_x, peak * 1.06, f"multiply-add {element} {peak:.0f} GFLOP/s ", ha="right", fontsize=7, color=_ROOF)
    axes.set(xscale="log", yscale="log", xlim=(low_x, high_x), title=element, ylabel="GFLOP/s")
    floor = min([v for p in points for v in p[2]], default=1.0)
    axes.set_ylim(floor / 2.5, peak * 2.5)
    for _, x, (ours, theirs) in points:
        axes.plot([x, x], [theirs, ours], color=_OURS, lw=0.8, alpha=0.5)
        axes.plot(x, theirs, "o", ms=4, mfc="white", mec=_PEER, mew=1.2)
        axes.plot(x, ours, "o", ms=4.5, color=_OURS)
    _place_numbers(axes, points)
    axes.grid(which="major", alpha=0.25)


def _place_numbers(axes: Any, points: list[tuple[int, float, list[float]]]) -> None:
    """A number beside each of our points, in the first free place around it."""
    taken: list[tuple[float, float]] = []
    marks = [tuple(axes.transData.transform((x, v))) for _, x, y in points for v in y]
    spots = [axes.transData.transform((x, y[0])) for _, x, y in points]

    def is_free(x: float, y: float) -> bool:
        clear = all(abs(x - a) > 18 or abs(y - b) > 12 for a, b in taken)
        return clear and all(abs(x - a) > 12 or abs(y - b) > 10 for a, b in marks)

    for (number, x, values), (px, py) in sorted(zip(points, spots, strict=True), key=lambda p: float(p[1][1])):
        y = values[0]
        for radius in (14, 22, 30, 40, 52, 66, 82, 100, 120):
            d = radius * 0.7
            around = ((radius, 0), (-radius, 0), (d, d), (-d, d), (d, -d), (-d, -d), (0, radius), (0, -radius))
            free = [p for p in around if is_free(px + p[0], py + p[1])]
            if free:
                break
        dx, dy = free[0] if free else (14.0, 0.0)
        taken.append((px + dx, py + dy))
        arrow = {"arrowstyle": "-", "lw": 0.4, "color": _ROOF, "shrinkA": 0, "shrinkB": 2} if radius > 14 else None
        points_per_pixel = 72 / axes.figure.dpi
        axes.annotate(
            str(number), (x, y), xytext=(dx * points_per_pixel, dy * points_per_pixel), textcoords="offset points",
            ha="center", va="center", fontsize=6.5, color=_OURS, arrowprops=arrow,
        )  # fmt: skip


def _bars(axes: Any, rows: list[tuple[int, dict[str, Any]]]) -> None:
    """Ratios on a log scale, the quartiles as whiskers, the goal as a mark."""
    places = range(len(rows))
    for place, (_, row) in zip(places, rows, strict=True):
        r = row["ratio"]
        failed = row["met"] is False or (row["met"] is None and row["met_required"] is False)
        colour = "#7b96b2" if failed else _OURS
        axes.barh(place, r["median"] - 0.01, left=0.01, color=colour, height=0.66)
        axes.plot([r["q1"], r["q3"]], [place, place], color="black", lw=0.8)
        for key, mark in (("goal", "D"), ("required", "|")):
            if row[key]:
                axes.plot(row[key], place, mark, color="#b3261e", ms=3.5 if mark == "D" else 7, mew=1.2)
        axes.text(0.995, place, f"{r['median']:.2f}", ha="right", va="center", fontsize=6.5, color="#333333",
                  transform=axes.get_yaxis_transform())  # fmt: skip
    labels = [f"{n}  {r['name'].removeprefix('call: ')} {r['element']}" for n, r in rows]
    axes.set_yticks(list(places), labels, fontsize=6.5)
    values = [v for _, r in rows for v in (r["ratio"]["median"], r["ratio"]["q1"], r["goal"] or 1.0)]
    axes.set(xscale="log", xlim=(min([0.5, *(v * 0.8 for v in values)]), max(values) * 3), ylim=(len(rows) - 0.4, -0.6))
    axes.axvline(1, color="black", lw=0.8)
    axes.set_title("speed relative to the peer (peer time / our time)", fontsize=9)
    axes.grid(axis="x", alpha=0.25)
    ticks = [t for t in (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()


def draw(data: dict[str, Any], path: Path) -> None:
    """Draws a results document (schema 1) to a file; the format follows from the name."""
    if data.get("schema") != SCHEMA:
        raise ValueError(f"results: got schema {data.get('schema')!r}, want {SCHEMA}")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [(n, r) for n, r in enumerate((r for r in data["rows"] if r["status"] == "measured" and r["ratio"]), 1)]
    height = max(8.0, 2.0 + 0.155 * len(rows))
    figure = plt.figure(figsize=(15, height), dpi=130)
    room = {"left": 0.05, "right": 0.985, "top": 1 - 0.85 / height, "bottom": 0.55 / height, "wspace": 0.42}
    grid = figure.add_gridspec(2, 2, width_ratios=(1.3, 1), hspace=0.12, **room)
    ceilings = data["ceilings"]["values"]
    for place, element in enumerate(("f32", "bf16")):
        axes = figure.add_subplot(grid[place, 0])
        drawn = [(n, r) for n, r in rows if r["element"] == element and r["flops"] and r["bytes"]]
        _roofline(axes, drawn, ceilings, element)
        if place:
            axes.set_xlabel("operations per byte moved")
        axes.plot([], [], "o", color=_OURS, ms=4.5, label="baracuda")
        axes.plot([], [], "o", mfc="white", mec=_PEER, ms=4, label="peer")
        axes.legend(loc="lower right", fontsize=7)
    _bars(figure.add_subplot(grid[:, 1]), rows)
    machine = data["machine"]
    quick = "QUICK RUN, the numbers mean nothing.  " if data["quick"] else ""
    figure.suptitle(
        f"{quick}baracuda {machine['versions']['baracuda']} beside torch {machine['versions'].get('torch', '?')} on "
        f"{machine['cpu']['model']}, {machine['threads']} threads, {data['date'][:10]}\n"
        "diamonds: goals, red strokes: required ratios, black lines: quartiles; pale bars: missed",
        fontsize=10,
        y=1 - 0.12 / height,
    )
    figure.savefig(path)
    plt.close(figure)
