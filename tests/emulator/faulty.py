"""A cuda module with one op, made from sources with one passage replaced: what a wrong kernel does to the tests."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from emulator import build as emulator

ROOT = Path(__file__).resolve().parents[2]

# The kernels of one op and direction; the module's list of families has this slice of this name only (simt_families.inc).
UNIT = """\
#include <string_view>
#include "ops/{family}/simt_launch.h"
namespace baracuda::probe {{
static constexpr auto kChosen = []<class... Tags, size_t... I>(const Table<Tags...>&, std::index_sequence<I...>) {{
  constexpr auto& rows = {family}::kTable.rows;
  return std::array<Kernel, sizeof...(Tags)>{{
      simt_kernel_of<Tags, rows[I].backend == Backend::{backend} && rows[I].direction == Direction::{direction} &&
                               std::string_view(rows[I].op) == "{op}">()...}};
}}({family}::kTable, std::make_index_sequence<{family}::kTable.rows.size()>());
extern const FamilyKernels kSimtSlice0;
constinit const FamilyKernels kSimtSlice0 = {{"{family}", kChosen.data(), int32_t(kChosen.size())}};
}}
"""


@dataclass(frozen=True)
class Fault:
    """One passage of a source, and what takes its place. Without a file: the sources as they are."""

    name: str
    family: str
    op: str
    direction: str = "forward"
    file: str = ""
    right: str = ""
    wrong: str = ""
    says: str = ""  # what the report has to match; empty for sources without a fault
    element: str = "f32"
    test: str = ""  # what finds it, if not the generated tests' check: "far", "indices"
    nth: int = 0  # which occurrence of `right`; there may be no others unless it is said

    def apply(self, folder: Path) -> None:
        """Writes the faulty file as it would be included."""
        if not self.file:
            return
        parts = (ROOT / "csrc" / self.file).read_text().split(self.right)
        assert len(parts) > self.nth + 1, f"{self.file} has no longer: {self.right}"
        assert self.nth or len(parts) == 2, f"{self.file} has {len(parts) - 1} times: {self.right}"
        target = folder / self.file
        target.parent.mkdir(parents=True)
        target.write_text(self.right.join(parts[: self.nth + 1]) + self.wrong + self.right.join(parts[self.nth + 1 :]))


def module(fault: Fault, folder: Path, variant: str = "race") -> Path:
    """Compiles the op's kernels with the fault and links them with the objects that the emulator's probes are made of."""
    emulator.build(variant, "emulator_probes")
    emulator.build(variant, "engine")
    built = ROOT / "build" / f"emulator-{variant}"
    fault.apply(folder)
    unit = folder / "unit.cpp"
    unit.write_text(UNIT.format(family=fault.family, op=fault.op, direction=fault.direction.title(), backend="Cuda"))
    entries = json.loads((built / "compile_commands.json").read_text())
    like = next(e for e in entries if e["file"].endswith("emulator/main.cpp"))
    words = [w for w in shlex.split(like["command"]) if w != "ccache"]
    words = words[: words.index("-o")]
    run([words[0], f"-I{folder}", *words[1:], "-O1", "-w", "-o", folder / "unit.o", "-c", unit], built)
    objects = [*built.glob("CMakeFiles/probe_device.dir/**/*.o"), *built.glob("CMakeFiles/engine.dir/**/*.o")]
    flags = ["-shared", "-Wl,--no-undefined", "-Wl,-Bsymbolic"]
    out = folder / "libfaulty_cuda_emulated.so"
    run([words[0], *flags, folder / "unit.o", *objects, built / "libemulator.a", "-ldl", "-lpthread", "-o", out], built)
    return out


def run(command: list[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


# The generated tests' own check, case by case until something is wrong.
CHECK = """
import sys, numpy as np
from baracuda.elements import Element
from baracuda.verify import Report, candidates, compare, execute
from baracuda.plan import plan
from baracuda.reference import reference_module
from baracuda.sku import PlanPreference
op, direction, element = sys.argv[1], sys.argv[2], Element[sys.argv[3].upper()]
cases = 0
for variant in candidates(op, direction, element, "cuda"):
    limit = PlanPreference(sku=variant)
    for case in reference_module(op).cases(op, direction, element, np.random.default_rng(0)):
        if not type(case.descriptor).plan_class.query(case.descriptor, "cuda", limit):
            continue
        made = plan(case.descriptor, "cuda", limit)
        report = Report("", "")
        for layout in ("aligned", "transposed"):
            compare(case, execute(case, made, layout), made, report, f"{case.note} {case.descriptor} {layout}")
        cases += 1
        if report.problems:
            sys.exit("\\n".join(report.problems))
print("kept", cases)
"""


def outcome(fault: Fault, module: Path) -> str:
    """What the generated tests' check says of a module: "kept" and the number of cases, or what is wrong."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("BARACUDA_")}
    env["BARACUDA_CUDA_MODULE"] = str(module)
    command = [sys.executable, "-c", CHECK, fault.op, fault.direction, fault.element]
    if fault.test:
        name = {"far": "test_elements_far_apart", "indices": "test_indices_out_of_range"}[fault.test]
        which = f"{ROOT}/tests/test_device_{fault.test}.py::{name}[cuda-{fault.op}-{fault.direction}]"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", which]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    return done.stdout + done.stderr
