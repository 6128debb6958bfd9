"""The short examples run, say what they say they do, and are shown in the docs as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# What each prints; an example that is not here fails.
SAYS = {
    "softmax": r"softmax\.forward\.cpu\.f32\.\w+ \| .+, thread-invariant",
    "executor": r"(?:(?:1|7|256) rows, \d+ bytes of scratch, the first row adds up to (?:1\.0|0\.99999)\d*\n){3}",
    "paged_decode": r"lengths \[28 17\] in 6 pages of 16\n",
    "partitioner": "metal:apple9 runs matmul bf16, softmax bf16\ncuda:sm_90 runs sum f64, matmul f64\n"
    "metal:apple9 runs gelu f16, int_mm i8\n",
}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert re.fullmatch(SAYS[path.stem] + ".*\n?", done.stdout), done.stdout
    assert len(path.read_text().splitlines()) <= 35


@pytest.mark.parametrize("model", ["mixer", "convnet"])
def test_digits_are_read(model: str, tmp_path: Path) -> None:
    """Shorter trainings than the example's own, which read 98 and 99 % of the test pictures."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "BARACUDA_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "examples/digits"), "--model", model, "--epochs", "12"]
    command += ["--picture", "step.svg"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    read = re.findall(r"epoch +(\d+): loss 0\.\d+, ([\d.]+)% of 359 test pictures", done.stdout)
    assert read[-1][0] == "12" and float(read[-1][1]) > 95, done.stdout
    picture = (tmp_path / "step.svg").read_text()
    assert "adamw" in picture and ("batch_norm" in picture) == (model == "convnet")


def test_docs_show_each_example_as_it_is() -> None:
    page = (ROOT / "docs" / "examples.md").read_text()
    shown = re.findall(r"^`examples/(\w+)\.py`\n\n```python\n(.*?)^```", page, re.M | re.S)
    assert dict(shown) == {p.stem: p.read_text() for p in EXAMPLES}
    assert SAYS.keys() == dict(shown).keys()
