"""ci/new_op.py: what it writes compiles, fits the sources as they are now, and is nothing that was there before."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EDITED = (
    "CMakeLists.txt", "csrc/ops/unary/math.h",
    "csrc/ops/unary/ops.def", "python/baracuda/ops/unary/unary_kinds.py",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the script reads and writes."""
    shutil.copytree(ROOT / "ci", tmp_path / "ci")
    for file in EDITED:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def new_op(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, tree / "ci/new_op.py", *arguments], capture_output=True, text=True)


def added(tree: Path, file: str) -> list[str]:
    """The lines that a file has more than the sources; it lacks none of theirs."""
    before, after = ((at / file).read_text().splitlines() for at in (ROOT, tree))
    rest = iter(after)
    assert all(any(line == other for other in rest) for line in before), f"{file} lost a line"
    return [line for line in after if line not in before]


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_a_new_family_compiles(tree: Path) -> None:
    done = new_op(tree, "family", "trial_product")
    assert done.returncode == 0, done.stderr
    rooms = tree / "csrc/ops/trial_product"
    assert sorted(p.name for p in rooms.iterdir()) == [
        "cpu.cpp",
        "math.h",
        "metal.metal",
        "shapes.h",
        "simt_launch.h",
        "skus.h",
    ]
    texts = [
        *rooms.iterdir(),
        *tree.glob("python/baracuda/ops/trial_product/*.py"),
        tree / "tests/ops/test_trial_product.py",
    ]
    assert len(texts) == 10
    for path in texts:
        assert "@" not in path.read_text().replace("@frame", "").replace("@descriptor", "").replace("@function", "")
        if path.suffix == ".py":
            compile(path.read_text(), path, "exec")
    launch = tree / "launch.cpp"  # for the emulator, as the build would for nvcc
    slices = "#define BCU_SLICE 0\n#define BCU_SLICES 1\n"
    launch.write_text(f'{slices}#include "ops/trial_product/simt_launch.h"\nBCU_SIMT_FAMILY(trial_product)\n')
    shapes = tree / "shapes.cpp"
    shapes.write_text('#include "ops/trial_product/shapes.h"\n')
    folders = [
        f"-I{tree}/csrc",
        *(f"-I{ROOT / f}" for f in ("csrc", "include", "tests/harness", "tests/harness/emulator")),
    ]
    for source in (rooms / "cpu.cpp", launch, shapes):
        subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", *folders, source], check=True)
    assert added(tree, "CMakeLists.txt") == ["  trial_product"]
    again = new_op(tree, "family", "trial_product")
    assert again.returncode == 1 and "is there already: want another name" in again.stderr


def test_a_new_function_is_three_edits(tree: Path) -> None:
    text = {"value": "x * T(2)", "gradient": "dy * T(2)", "reference": "x * 2", "derivative": "2", "says": "y = 2 x"}
    options = [word for name, value in text.items() for word in (f"--{name}", value)]
    done = new_op(tree, "unary", "trial_double", *options, "--ulp", "1", "1", "--own")
    assert done.returncode == 0, done.stderr
    assert added(tree, "csrc/ops/unary/ops.def") == ['BCU_UNARY_FLOATS(TrialDouble, "trial_double", x, ulp(1), ulp(1))']
    assert added(tree, EDITED[3]) == ['    "trial_double": Kind("y = 2 x", "x * 2", "2", (-4, 4), of_torch=False),']
    assert "struct TrialDouble {" in added(tree, "csrc/ops/unary/math.h")
    assert not any(added(tree, file) for file in EDITED[:1])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("family", "Not-A-Name"), "want lower case words with _ between, such as soft_abs"),
        (("unary", "trial_double"), "a unary op wants --value"),
        (("reduction", "trial"), "invalid choice"),
    ],
)
def test_refusals_change_nothing(tree: Path, arguments: tuple[str, ...], said: str) -> None:
    done = new_op(tree, *arguments)
    assert done.returncode == 2 and said in done.stderr
    assert not any(added(tree, file) for file in EDITED)
