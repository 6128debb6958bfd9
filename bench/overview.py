"""The README's picture and table, from the newest document in bench/results: `python bench/overview.py`.

`--check` says whether they are stale.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README, PICTURE = ROOT / "README.md", ROOT / "docs" / "images" / "ratios.png"
BEGIN, END = "<!-- written by bench/overview.py -->", "<!-- end of what bench/overview.py writes -->"

# What visitors know, and the slowest of all: name and element.
SHOWN = [
    ("swiglu backward", "f32"), ("softmax last axis", "f32"), ("layer_norm forward", "f32"), ("rms_norm forward", "bf16"),
    ("matmul 2048", "f32"), ("matmul 2048", "bf16"), ("attention causal forward", "f32"),
    ("decode over a paged cache", "bf16"), ("cross_entropy forward+backward", "f32"), ("AdamW, 1 tensor", "f32"),
    ("gather", "f32"), ("embedding_bag", "f32"), ("tiny Llama training step", "f32"), ("tiny Llama decoding", "f32"),
]  # fmt: skip
COLOURS = {"f32": "#1f4e79", "bf16": "#d9822b"}
OTHER = "#6b7280"

Row = dict[str, Any]


def newest() -> tuple[Path, dict[str, Any]]:
    found = [(p, json.loads(p.read_text())) for p in (ROOT / "bench" / "results").glob("*.json")]
    return max((f for f in found if not f[1]["quick"]), key=lambda f: f[1]["date"])


def measured(data: dict[str, Any]) -> list[Row]:
    return [r for r in data["rows"] if r["status"] == "measured" and r["ratio"]]


def group_of(row: Row) -> str:
    if row["name"].startswith("small:"):
        return "tensors of 1024"
    return {"call": "calls, 4x4 or empty", "llama": "tiny Llama"}.get(row["family"], row["family"])


def seconds(value: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(path: Path, data: dict[str, Any]) -> str:
    rows, machine = measured(data), data["machine"]
    slowest = min(rows, key=lambda r: r["ratio"]["median"])
    by_name = {(r["name"], r["element"]): r for r in rows}
    lines = ["| | shape | baracuda | PyTorch | ratio |", "|:--|:--|--:|--:|--:|"]
    for r in [*(by_name[key] for key in SHOWN), slowest]:
        times = [seconds(r[side]["median"]) for side in ("ours", "theirs")]
        lines.append(
            f"| {r['name']} {r['element']} | {r['shape']} | {times[0]} | {times[1]} | {r['ratio']['median']:.2f} |"
        )
    faster = sum(r["ratio"]["median"] > 1 for r in rows)
    lines += [
        "",
        f"Ratio: PyTorch's time / ours, median of paired runs. {machine['cpu']['model']}, {machine['threads']} threads, torch "
        f"{machine['versions']['torch']}, {data['date'][:10]}; {faster} of {len(rows)}",
        f"cases are above 1, and the last line is the slowest of all. [All of them]({path.relative_to(ROOT).with_suffix('.md')}).",
    ]
    return "\n".join(lines)


def readme(text: str, inside: str) -> str:
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{inside}\n{END}{tail}"


def digest(data: dict[str, Any]) -> str:
    """Of what the picture shows, and of how it is drawn."""
    shown = [[group_of(r), r["name"], r["element"], r["ratio"]] for r in measured(data)]
    return hashlib.sha256(json.dumps(shown).encode() + Path(__file__).read_bytes()).hexdigest()


def places(values: list[float]) -> list[float]:
    """Heights within a line, so that neighbouring dots do not hide each other."""
    heights: list[float] = []
    for i, value in enumerate(values):
        near = {h for v, h in zip(values[:i], heights, strict=True) if value / v < 1.09}
        heights.append(
            next(h for h in (0, 0.2, -0.2, 0.36, -0.36, 0.1, -0.1, 0.28, -0.28) if h not in near or len(near) > 8)
        )
    return heights


def draw(data: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = sorted(measured(data), key=group_of)
    groups = {name: sorted(part, key=lambda r: r["ratio"]["median"]) for name, part in groupby(rows, group_of)}
    order = sorted(groups, key=lambda name: median(r["ratio"]["median"] for r in groups[name]))
    figure, axes = plt.subplots(figsize=(9, 0.5 + 0.31 * len(order)), dpi=110, layout="constrained")
    axes.axvspan(0.1, 1, color="#f3e3e1", lw=0)
    axes.axvline(1, color="black", lw=0.9)
    for x, side, word in ((0.96, "right", "PyTorch is faster"), (1.04, "left", "baracuda is faster")):
        axes.text(x, len(order) - 0.42, word, ha=side, va="bottom", fontsize=8, color=OTHER)
    for line, name in enumerate(order):
        values = [r["ratio"]["median"] for r in groups[name]]
        colours = [COLOURS.get(r["element"], OTHER) for r in groups[name]]
        axes.scatter(values, [line + h for h in places(values)], s=17, c=colours, linewidths=0, zorder=3)
        axes.plot(median(values), line, "|", ms=15, mew=1.3, color="black", alpha=0.55, zorder=2)
    axes.set_yticks(range(len(order)), order, fontsize=9)
    axes.set(xscale="log", xlim=(0.12, 70), ylim=(-0.7, len(order) + 0.25))
    ticks = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()
    axes.grid(axis="x", alpha=0.25)
    axes.tick_params(length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    for name, colour in (*COLOURS.items(), ("integers", OTHER)):
        axes.scatter([], [], s=17, color=colour, label=name)
    axes.legend(loc="lower right", fontsize=9, frameon=False)
    machine = data["machine"]
    axes.set_title(
        f"PyTorch's time / baracuda's: a dot for each of {len(rows)} cases, a stroke at each line's median\n"
        f"{machine['cpu']['model']}, {machine['threads']} threads, torch {machine['versions']['torch']}, {data['date'][:10]}",
        fontsize=9.5,
        loc="left",
    )
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Source": digest(data), "Software": None})
    plt.close(figure)


def source_of(path: Path) -> str:
    """The digest that a drawn picture carries."""
    return path.read_bytes().partition(b"tEXtSource\0")[2][:64].decode("ascii", "replace") if path.exists() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    path, data = newest()
    text = README.read_text()
    wanted, drawn = readme(text, table(path, data)), source_of(PICTURE) == digest(data)
    if check:
        stale = [p.name for p, fresh in ((README, wanted == text), (PICTURE, drawn)) if not fresh]
        print(f"stale: {', '.join(stale)}: run python bench/overview.py" if stale else "fresh")
        return 1 if stale else 0
    README.write_text(wanted)
    if not drawn:
        draw(data, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
