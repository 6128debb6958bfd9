"""Graphs as pictures: rows of boxes from above to below."""

from __future__ import annotations

from html import escape

from baracuda.graph.draw import FILL, Boxes, Edges

_WIDE, _HIGH, _GAP, _ASIDE = 214, 48, 40, 26
_MOST = 5  # leaves that only one node reads are drawn one by one; more of them are one box
_NEAR = 3  # rows that a line reaches over; what comes from further above is named below the box


def _grouped(boxes: Boxes, edges: Edges) -> tuple[Boxes, Edges]:
    """Many leaves and captured tensors of one reader as one box."""
    readers: dict[str, set[str]] = {}
    for a, b, _ in edges:
        readers.setdefault(a, set()).add(b)
    of_one: dict[tuple[str, str], list[str]] = {}
    for name, (_, kind) in boxes.items():
        if kind in ("leaf", "constant") and len(readers.get(name, ())) == 1:
            of_one.setdefault((next(iter(readers[name])), kind), []).append(name)
    group = {name: f"g{names[0]}" for names in of_one.values() if len(names) > _MOST for name in names}
    found: Boxes = {}
    for name, (text, kind) in boxes.items():
        if name not in group:
            found[name] = (text, kind)
        elif group[name] not in found:
            more = sum(g == group[name] for g in group.values()) - 1
            found[group[name]] = (f"{text.split(chr(10))[0]}\nand {more} more", kind)
    return found, list(dict.fromkeys((group.get(a, a), b, "" if a in group else label) for a, b, label in edges))


def _ranks(boxes: Boxes, edges: Edges) -> dict[str, int]:
    """Rows: what reads something comes below it, and what reads nothing right above its first reader."""
    ranks = dict.fromkeys(boxes, 0)
    for a, b, _ in edges:  # in the order of the nodes, so that what is read has its place already
        ranks[b] = max(ranks[b], ranks[a] + 1)
    first: dict[str, int] = {}
    for a, b, _ in edges:
        first[a] = min(first.get(a, ranks[b]), ranks[b])
    reads = {b for _, b, _ in edges}
    return ranks | {name: row - 1 for name, row in first.items() if name not in reads}


def _places(boxes: Boxes, edges: Edges, ranks: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Rows and columns: each box in the free column that is nearest to what it reads, sources behind those that read."""
    sources: dict[str, list[str]] = {}
    for a, b, _ in edges:
        sources.setdefault(b, []).append(a)
    rows: dict[int, list[str]] = {}
    for name in boxes:
        rows.setdefault(ranks[name], []).append(name)
    column: dict[str, int] = {}
    for row in sorted(rows):
        taken: set[int] = set()
        for name in sorted(
            rows[row], key=lambda n: (n not in sources, list(boxes).index(n) if n not in sources else 0)
        ):
            above = [column[a] for a in sources.get(name, ()) if a in column and boxes[a][1] in ("node", "fused")]
            want = min(above, default=0 if name in sources else 1)
            free = (c for c in range(len(taken) + want + 2) if c not in taken)
            column[name] = min(free, key=lambda c: abs(c - want))
            taken.add(column[name])
    return {name: (row, column[name]) for row in rows for name in rows[row]}


def picture(boxes: Boxes, edges: Edges) -> str:
    """Each box with what it makes; lines from nearby, and the names of what comes from further above."""
    boxes, edges = _grouped(boxes, edges)
    ranks = _ranks(boxes, edges)
    at = {
        name: (20 + column * (_WIDE + _ASIDE), 20 + row * (_HIGH + _GAP))
        for name, (row, column) in _places(boxes, edges, ranks).items()
    }
    width = 20 + max((x for x, _ in at.values()), default=-_ASIDE) + _WIDE + _ASIDE
    height = 20 + max((y for _, y in at.values()), default=-_HIGH) + _HIGH + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#777"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    far: dict[str, dict[str, None]] = {}
    for a, b, _ in edges:
        if ranks[b] - ranks[a] > _NEAR:
            far.setdefault(b, {})[" ".join(boxes[a][0].split("\n")[0].split())] = None
        else:
            lines.append(_line(at[a], at[b], ranks[b] == ranks[a] + 1))
    for name, (text, kind) in boxes.items():
        lines += _box(at[name], text, FILL[kind], ", ".join(far.get(name, ())))
    return "\n".join([*lines, "</svg>"])


def _line(above: tuple[int, int], below: tuple[int, int], next_row: bool) -> str:
    (x0, y0), (x1, y1) = above, below
    if next_row:
        x0, y0, x1 = x0 + _WIDE // 2, y0 + _HIGH, x1 + _WIDE // 2
        middle = (y0 + y1) // 2
        curve = f"M{x0} {y0} C{x0} {middle} {x1} {middle} {x1} {y1}"
    else:  # past other boxes: from one's right side to the other's
        x0, y0, x1, y1 = x0 + _WIDE, y0 + _HIGH // 2, x1 + _WIDE, y1 + _HIGH // 2
        aside = max(x0, x1) + _ASIDE - 4
        curve = f"M{x0} {y0} C{aside} {y0} {aside} {y1} {x1} {y1}"
    return f'<path d="{curve}" fill="none" stroke="#777" marker-end="url(#a)"/>'


def _box(at: tuple[int, int], text: str, fill: str, far: str) -> list[str]:
    x, y = at
    lines = [f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="5" fill="{fill}" stroke="#456"/>']
    for i, part in enumerate(text.split("\n")[:3]):
        style = 'font-weight="bold"' if i == 0 else 'font-size="10"'
        lines.append(
            f'<text x="{x + 8}" y="{y + 15 + 13 * i}" {style}>{escape(_cut(part, 29 if i == 0 else 35))}</text>'
        )
    if far:
        words = escape(_cut(far, 40))
        for pen in (
            'fill="#fff" stroke="#fff" stroke-width="3"',
            'fill="#777"',
        ):  # on a white ground, where lines cross it
            lines.append(f'<text x="{x + 8}" y="{y + _HIGH + 11}" font-size="9" {pen}>\u2190 {words}</text>')
    return lines


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"
