"""Writes the table of overloads in docs/torch-compile.md, from the rows of baracuda.torch; `--check` says whether it is stale.

Apart from ci/generate.py, because it needs torch.
"""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "torch-compile.md"
BEGIN, END = "<!-- written by ci/torch_table.py -->\n", "<!-- end of what ci/torch_table.py writes -->\n"


def core() -> list[str]:
    """The overloads that torch tags `core`."""
    import torch

    found = set()
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if space == "aten":
            op = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
            if op is not None and torch.Tag.core in op.tags:
                found.add(str(op))
    return sorted(found)


def table() -> str:
    from baracuda.torch.lowering import ROWS
    from baracuda.torch.missing import MISSING

    mapped = {str(op) for op in ROWS}
    tagged = core()
    if unsaid := [op for op in tagged if op not in mapped and op not in MISSING]:
        sys.exit(f"{unsaid}: no row, and no reason in baracuda/torch/missing.py")
    if both := sorted(mapped & MISSING.keys()):
        sys.exit(f"{both}: rows, and reasons why there is none")

    def listed(names: list[str]) -> str:
        return " ".join(f"`{name.removeprefix('aten.')}`" for name in names)

    rows = "".join(f"| `{op.removeprefix('aten.')}` | {MISSING[op]} |\n" for op in tagged if op in MISSING)
    own = [op for op in tagged if op in mapped]
    more = sorted(mapped - set(tagged))
    return (
        f"Of {len(tagged)} overloads that torch tags `core`, {len(own)} have a row. The others:\n\n| aten | why not |\n|---|---|\n{rows}\n"
        f"With a row: {listed(own)}\n\nAnd {len(more)} that are not tagged, most of them as AOTAutograd hands them over: "
        f"{listed(more)}\n"
    )


def main() -> None:
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    made = before + BEGIN + table() + END + after
    if "--check" in sys.argv[1:]:
        sys.exit(f"{PAGE.name} is stale: run python ci/torch_table.py" if made != text else 0)
    PAGE.write_text(made)


if __name__ == "__main__":
    main()
