"""ci/changed.py: what a change touches, and which tests are run for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ci"))

import changed
from mutation_rooms import ROOT, families


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ([], set()),
        (["docs/c.md", "README.md", "CHANGELOG.md", "bench/overview.py", "ci/mutate.py", "ci/whole_run.txt"], set()),
        (["csrc/ops/scan/cpu.cpp", "docs/c.md"], {"scan"}),
        (["python/baracuda/ops/norm/layer_norm.py", "csrc/ops/scan/skus.h"], {"norm", "scan"}),
        (["tests/test_capi.py", "tests/ops/test_rope.py"], {"tests/test_capi.py", "tests/ops/test_rope.py"}),
        (["tests/test_that_is_gone.py"], set()),
        (  # an op that was added
            [
                "csrc/ops/scan/skus.h",
                "csrc/ops/scan/math.h",
                "python/baracuda/ops/scan/scan.py",
                "python/baracuda/ops/scan/scan_ref.py",
                "python/baracuda/ops/scan/scan_facts.py",
                "tests/ops/test_scan.py",
                "python/baracuda/functional.pyi",
                "python/baracuda/_index.py",
                "docs/skus.md",
                "docs/functions.md",
            ],
            {"scan", "tests/ops/test_scan.py"},
        ),
        (
            ["tests/conformance/onnx_run.py"],
            {"tests/conformance/test_onnx.py", "tests/conformance/test_onnx_suite.py"},
        ),
        (
            ["python/baracuda/engine/memory.py"],
            {"tests/test_engine.py", "tests/test_engine_aliases.py", "tests/device/test_device_engine.py"},
        ),
        (["csrc/ops/scan/cpu.cpp", "csrc/core/plan.cpp"], None),
        (["csrc/host/tile.h"], None),
        (["csrc/backends/metal/flatten.py"], None),
        (["csrc/backends/metal/queues.mm", "csrc/core/device.h"], None),
        (["csrc/backends/cuda/queues.cu"], None),
        (["csrc/backends/modules.cpp"], None),
        (["csrc/simt/map.h"], None),
        (["csrc/ops/a_new_family/skus.h"], None),
        (["include/baracuda/math/exp.h"], None),
        (["python/baracuda/describe/spec.py"], None),
        (["tests/harness/calls.py"], None),
        (["tests/conftest.py"], None),
        (["ci/test.sh"], None),
        (["CMakeLists.txt"], None),
        (["something/never/seen.xyz"], None),
    ],
)
def test_what_files_concern(files: list[str], found: set[str] | None) -> None:
    assert changed.touched(files) == found


def test_a_room_that_no_other_needs_concerns_its_own_tests() -> None:
    found = changed.touched(["python/baracuda/graph/passes.py"])
    assert found == {
        *(p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").glob("test_graph*.py")),
        "tests/test_jit.py",
        "tests/device/test_device_trace.py",
        "tests/test_examples.py",
    }
    assert all(list(ROOT.glob(pattern)) for patterns in changed.ALONE.values() for pattern in patterns)


def test_the_metal_runtime_concerns_devices_and_what_it_is_built_with() -> None:
    found = changed.touched(["csrc/backends/metal/queues.mm", "csrc/backends/metal/runtime.h"]) or set()
    assert {"tests/device/test_device_metal.py", "tests/device/test_device_trace.py"} < found
    assert {"tests/emulator/test_metal_faults.py", "tests/test_metal_text.py", "tests/test_packaging.py"} < found
    assert "tests/device/test_device_guarantee.py" not in found, "kernels are the same"
    mentioning = {p for p in (ROOT / "tests").rglob("test_*.py") if "backends/metal" in p.read_text()}
    known = {ROOT / f for f in found} | {ROOT / "tests/test_changed.py"}
    assert mentioning <= known, "whoever looks into that room is asked"


def test_headers_concern_the_families_that_take_them_in() -> None:
    shared = [
        (family, header)
        for family in families()
        for p in (ROOT / "csrc/ops" / family).iterdir()
        for header in re.findall(r'^#include "(ops/(\w+)/\w+\.h)"', p.read_text(), re.M)
        if header[1] != family
    ]
    assert shared, "some families use what others have"
    for family, (header, owner) in shared:
        assert {family, owner} <= (changed.touched([f"csrc/{header}"]) or set())


FILES = [f"tests/{n}" for n in ("test_contract.py", "test_layers.py", "ops/test_scan.py", "ops/test_rope.py")]


def collected(*arguments: str) -> set[str]:
    """The tests that pytest would run."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *arguments]
    env = {k: v for k, v in os.environ.items() if k != "BARACUDA_FULL"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True, env=env)
    return {line for line in done.stdout.splitlines() if "::" in line}


def test_of_what_takes_long_each_run_takes_a_share() -> None:
    file = "tests/emulator/test_seeded_faults.py"
    everything = collected(file)
    first, second = (collected(file, "--touched=all", f"--share={k}/10") for k in (1, 2))
    assert 0 < len(first) < len(everything) / 2 and first != second and first | second <= everything
    assert collected(file, f"--touched={file}", "--share=none") == everything


def test_what_takes_long_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Changed families always, the others every now and then; all where nothing is known."""
    monkeypatch.delenv("BARACUDA_CI", raising=False)
    monkeypatch.setattr(changed, "RECORD", tmp_path / "none")
    assert changed.drawn(3) == families()
    monkeypatch.setattr(changed, "recorded", lambda: "a commit")
    monkeypatch.setattr(changed, "changed_since", lambda _: ["csrc/ops/scan/cpu.cpp", "csrc/core/plan.cpp"])
    found = []
    for count in range(30):
        monkeypatch.setattr(changed, "git", lambda *_, count=count: f"{count}\n")
        found.append(set(changed.drawn(3)))
    assert all("scan" in f for f in found) and set.union(*found) == set(families())
    assert sum(map(len, found)) < 30 * len(families()) / 2


def test_a_name_in_the_list_of_families_is_all_that_a_new_one_changes_there() -> None:
    text = (ROOT / "CMakeLists.txt").read_text()
    assert "  scan\n" in text and changed.without_families(text.replace("  scan\n", "")) == changed.without_families(
        text
    )
    assert changed.without_families(text + "option(X)") != changed.without_families(text)


def test_a_commit_that_is_not_here_is_everything() -> None:
    assert changed.changed_since("0" * 40) is None


def test_touched_families_and_files_are_tested_whole() -> None:
    """And of the rest a part: another one for each number."""

    everything = collected(*FILES)
    ops = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
    ours = {t for t in everything if "test_scan.py" in t or any(f"[{op}" in t for op in ops)}
    alone = collected(*FILES, "--touched=scan", "--share=none")
    assert alone == ours
    layers = {t for t in everything if "test_layers.py" in t}
    first, second = (collected(*FILES, "--touched=scan,tests/test_layers.py", f"--share={n}/10") for n in (1, 2))
    assert ours | layers < first < everything and ours | layers < second and first != second
    assert len(first - ours - layers) < len(everything - ours - layers) / 4
