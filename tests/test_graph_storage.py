"""Compiled graphs as folders: what was saved is what runs, and folders that somebody changed are errors, never crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from conftest import FULL
from test_graph import RNG, W, X, own_numbers, same  # noqa: F401


def test_saved_and_loaded(tmp_path: Path) -> None:
    bias, counts = np.ones(10, np.float32), np.zeros(3, np.float32)

    def f(x: Any, scale: float, *, w: Any) -> Any:
        F.add(bc.from_dlpack(counts), 1.0, out=bc.from_dlpack(counts))
        y = F.add(F.matmul(F.dropout(x, 0.5), w), bias)
        return {"y": F.mul(y, scale), "part": y[1:3].T}, [F.copy(counts)], "text"

    plan = bc.trace(f, bc.TensorSpec((bc.Dim("n", max=40), 64)), 2.0, w=W).compile()
    plan.save(tmp_path / "saved")
    again = bc.ExecutionPlan.load(tmp_path / "saved")
    assert again.memory == plan.memory and again.explain() == plan.explain()
    for n in (8, 3):
        bc.manual_seed(n)
        want = plan.run(X[:n], 2.0, w=W)
        bc.manual_seed(n)
        same(again.run(X[:n], 2.0, w=W), want)  # its counts are its own, and as they were when it was saved
    with pytest.raises(bc.InvalidProblemError, match=r"traced with 2\.0"):
        again.run(X, 3.0, w=W)
    assert len(again.profile(X, 2.0, w=W, runs=1).launches) == again.launches
    with pytest.raises(bc.InvalidProblemError, match="save: got"):
        bc.trace(lambda x: (F.exp(x), object), X).compile().save(tmp_path / "other")
    (tmp_path / "saved/graph.json").write_text('{"kind": "graph", "schema": 99}')
    with pytest.raises(bc.InvalidProblemError, match="load: got schema 99"):
        bc.ExecutionPlan.load(tmp_path / "saved")


def test_folders_that_somebody_changed(tmp_path: Path) -> None:
    """Cut off, with bytes or numbers changed: an error of ours, or a plan that runs."""
    counts = np.zeros(3, np.float32)

    def f(x: Any, n: int, w: Any) -> Any:
        F.add(bc.from_dlpack(counts), 1.0, out=bc.from_dlpack(counts))
        return [F.softmax(F.matmul(x, w), 1)], {"x": F.relu(x)}

    folder = tmp_path / "saved"
    bc.trace(f, X, 2, W).compile().save(folder)
    whole = {p: p.read_bytes() for p in sorted(folder.iterdir())}
    refused = 0
    for _ in range(400 if FULL else 120):
        path = list(whole)[int(RNG.integers(len(whole)))]
        data = bytearray(whole[path])
        what = int(RNG.integers(4))
        at = int(RNG.integers(len(data)))
        if what == 0:
            data = data[:at]
        elif what == 1:
            data[at] ^= 1 << int(RNG.integers(8))
        elif what == 2:  # another number in the place of one
            digits = [i for i, c in enumerate(data) if 48 <= c < 58] or [0]
            data[digits[int(RNG.integers(len(digits)))]] = 48 + int(RNG.integers(10))
        else:
            del data[at : at + int(RNG.integers(1, 20))]
        path.write_bytes(bytes(data))
        try:
            bc.ExecutionPlan.load(folder).run(X, 2, W)
        except bc.BaracudaError:
            refused += 1
        path.write_bytes(whole[path])
    assert refused > 20
    same(bc.ExecutionPlan.load(folder).run(X, 2, W), f(X, 2, W))
    with pytest.raises(bc.InvalidProblemError, match=r"load: .*missing"):
        bc.ExecutionPlan.load(tmp_path / "missing")
