"""What the documents say works: their Python examples run, their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    """The blocks of a page are one program, in a process of their own; warnings are errors there too."""
    program = tmp_path / f"{page.stem}.py"
    program.write_text("\n".join(blocks(page)))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-W", "error", str(program)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_page_on_ops_shows_the_tree_as_it_is() -> None:
    """What it quotes stands where it says; files and names that it speaks of are there."""
    text = (ROOT / "docs" / "adding-an-op.md").read_text()
    quotes = re.findall(r"\(`([\w/.]+)`[^`]*?(?:`[^`\n]+`[^`]*?)*?```\w*\n(.*?)^```", text, re.M | re.S)
    assert len(quotes) == 3
    for path, quoted in quotes:
        assert quoted in (ROOT / path).read_text(), path
    for path in re.findall(r"`((?:csrc|python|tests|include|ci)/[\w/.]+\.\w+)", text):
        assert (ROOT / path).exists(), path
    for name, path in (("kMaxOperands = 24", "csrc/host/tile_plan.h"), ("of_torch: bool", "python/baracuda/ops/unary/unary_kinds.py"),
                       ("OWN: dict", "tests/ops/test_unary.py"), ("alone: Mapping", "python/baracuda/prove/facts.py"),
                       ("drawn: Mapping", "python/baracuda/prove/facts.py"), ("BARACUDA_SLICES_unary 6", "CMakeLists.txt"),
                       ("BCU_CPU_FAMILY(scan)", "csrc/ops/scan/cpu.cpp")):  # fmt: skip
        assert name in (ROOT / path).read_text(), name


def test_readme_shows_what_was_measured() -> None:
    """Table and picture are those of the newest committed results."""
    command = [sys.executable, str(ROOT / "bench" / "overview.py"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "fresh\n"), done.stdout + done.stderr


def test_hosted_ci_runs_what_a_person_runs() -> None:
    steps = re.findall(r"^ +- run: bash (\S+)$", (ROOT / ".github" / "workflows" / "ci.yml").read_text(), re.M)
    assert steps == ["ci/test.sh", "ci/demo.sh"]
    assert [s for s in steps if not (ROOT / s).exists()] == []


def test_no_path_of_a_developers_machine() -> None:
    texts = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "THIRD_PARTY_NOTICES.md", *(ROOT / "ci").iterdir()]
    named = [p.name for p in texts if p.is_file() and re.search(r"(?<![\w.])/(work|home|Users)/\w", p.read_text())]
    assert named == []
