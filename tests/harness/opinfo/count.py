"""Counts the entries that all samples agree with: python tests/harness/opinfo/count.py [ENTRY ...].

Without names it takes some minutes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from differential.probe import Probe

from opinfo import entries
from opinfo.judge import wrong


def judged(entry: object, probe: Probe) -> tuple[int, list[str]] | None:
    """How many samples an entry has, and what is wrong with them; None for one without a function here."""
    fn = entries.function(entry)
    if fn is None:
        return None
    given = [g for e in entries.elements(entry) for g in entries.samples(entry, e)]
    return len(given), wrong(entry, fn, given, probe)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="entries to show whole; all by default")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    whole, absent, total = [], [], 0
    with Probe().installed() as probe:
        for entry in entries.table():
            name = entries.title(entry)
            if asked.names and name not in asked.names and entry.name not in asked.names:
                continue
            found, total = judged(entry, probe), total + 1
            if found is None:
                absent.append(name)
            elif not found[1] and found[0]:
                whole.append(name)
            else:
                print(f"{name}: {len(found[1])} of {found[0]}")
                shown = found[1] if asked.names else {w[:40]: w.partition("\n")[0][:200] for w in found[1]}.values()
                print(*(f"    {text}" for text in shown), sep="\n", flush=True)
    print("no function:", *absent)
    print(
        f"{len(whole)} of {total} entries agree whole; {total - len(whole) - len(absent)} do not, {len(absent)} have no function"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
