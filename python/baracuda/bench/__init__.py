"""`python -m baracuda bench`: ours and a peer, side by side in one process, beside ceilings measured in that session.

See docs/benchmarks.md for the method. Needs torch, rich and matplotlib (`pip install '.[bench]'` in a clone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Runs the benchmark's command line; the result is the exit status."""
    from baracuda.bench.cli import main as run

    return run(list(argv))
