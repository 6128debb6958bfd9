"""Writes a plan as bytes, and what it computes, for run_plan.c: `python write_plan.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import baracuda as bc


def main(folder: Path) -> None:
    """A softmax whose number of rows is known only when it runs."""
    rows = bc.Dim("rows", max=1024)
    plan = bc.plan(bc.SoftmaxDescriptor("softmax", (rows, 257)))
    x = np.random.default_rng(0).normal(size=(37, 257)).astype(np.float32)
    y = np.empty_like(x)
    plan.run(x=x, y=y)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "softmax.json").write_bytes(plan.to_bytes())
    x.tofile(folder / "x.f32")
    y.tofile(folder / "y.f32")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
