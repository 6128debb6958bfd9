"""How elementwise launches cut what 32-bit indices do not reach; compiled on its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_parallel import FLAGS, NATIVE, ROOT, run

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def test_parts_reach_every_element(tmp_path: Path) -> None:
    program = tmp_path / "parts_test"
    include = [f"-I{ROOT / folder}" for folder in ("include", "tests/harness", "tests/harness/emulator")]
    run("g++", *FLAGS, *include, NATIVE / "parts_test.cpp", "-o", program)
    assert run(program).strip() == "ok"
