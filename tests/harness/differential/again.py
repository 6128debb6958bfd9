"""One call of the differential fuzzing again: python tests/harness/differential/again.py FUNCTION SEED NUMBER."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from differential import calls
from differential.judge import judge
from differential.probe import Probe

if __name__ == "__main__":
    name, seed = sys.argv[1], tuple(map(int, sys.argv[2:4]))
    call = calls.make(name, seed)
    print(call)
    with Probe().installed() as probe:
        for finding in judge(call, probe, np.random.default_rng(seed)):
            print(f"{finding.kind}: {finding.detail}" + (f"\n    excused: {finding.excuse}" if finding.excuse else ""))
