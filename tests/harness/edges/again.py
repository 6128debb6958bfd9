"""Makes one call again, by the function, the seed and the number that a test names."""

from __future__ import annotations

import sys

from edges import judge, points
from edges.excuses import excused

if __name__ == "__main__":
    name, seed, number = sys.argv[1:]
    made = points.make(name, (int(seed), int(number)))
    print(made)
    for finding in judge.judge(made)[1]:
        print(finding.kind, excused(finding) or "not excused", finding)
