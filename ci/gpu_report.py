"""ci/gpu_report.py FOLDER CARD [FAILED STEP...]: joins what ci/gpu.sh found into one JSON in bench/results/."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = 1


def tests(report: Path) -> dict[str, Any] | None:
    """Counts of a JUnit report, and which tests failed; None where the run did not come to its end."""
    if not report.exists():
        return None
    suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    counts = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
    bad = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return {**counts, "seconds": float(suite.get("time", "0")), "failed": bad}


def document(folder: Path, card: str, failed: list[str]) -> dict[str, Any]:
    """Everything that was found."""
    name, capability, driver = (part.strip() for part in card.split(","))
    nvcc = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release ([\d.]+)", nvcc)
    bench = folder / "bench.json"
    return {
        "schema": SCHEMA,
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip(),
        "card": {"name": name, "compute_capability": capability, "driver": driver},
        "versions": {n: version(n) for n in ("torch", "numpy")} | {"nvcc": found[1] if found else ""},
        "failed_steps": failed,
        "tests": tests(folder / "tests.xml"),
        "bench": json.loads(bench.read_text()) if bench.exists() else None,
    }


def main() -> int:
    """Writes the file, and says where."""
    folder, card, *failed = sys.argv[1:]
    made = document(Path(folder), card, failed)
    slug = re.sub(r"[^a-z0-9]+", "-", made["card"]["name"].lower()).strip("-")
    out = ROOT / "bench" / "results" / f"{slug}-{made['date'][:10]}.json"
    out.write_text(json.dumps(made, indent=1) + "\n")
    print(out.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
