"""Sums of columns in blocks, without a kernel around them; compiled on its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_parallel import FLAGS, NATIVE, ROOT, run

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def test_columns_are_summed_and_nothing_beside_them(tmp_path: Path) -> None:
    program = tmp_path / "block_sum_test"
    run("g++", *FLAGS, f"-I{ROOT / 'csrc'}", NATIVE / "block_sum_test.cpp", "-o", program)
    assert run(program).strip() == "ok"
