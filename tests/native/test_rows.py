"""Tables with rows of several backends, compiled on their own: no baracuda build is needed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_parallel import FLAGS, NATIVE, ROOT, run

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def test_rows_of_unbuilt_backends(tmp_path: Path) -> None:
    names = (
        "core/registry.cpp",
        "core/evaluate.cpp",
        "core/devices.cpp",
        "backends/libraries.cpp",
        "backends/modules.cpp",
    )
    core = [ROOT / "csrc" / name for name in names]
    program = tmp_path / "rows_test"
    run("g++", *FLAGS, '-DBCU_VERSION="test"', f"-I{NATIVE / 'rows'}", NATIVE / "rows_test.cpp", *core, "-o", program)
    assert run(program).strip() == "ok"
