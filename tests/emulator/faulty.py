"""A cuda or metal module with one op, made from sources or from a .metal text with a passage replaced: what a wrong
kernel does to the tests."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from emulator import build as emulator

ROOT = Path(__file__).resolve().parents[2]

# The kernels of one op and direction; the module's list of families has this slice of this name only (simt_families.inc).
UNIT = """\
#include <string_view>
{text}#include "ops/{family}/{launcher}.h"
namespace baracuda::probe {{
constexpr bool chosen(const Row& r) {{
  return r.backend == Backend::{backend} && r.direction == Direction::{direction} && std::string_view(r.op) == "{op}" &&
         (r.proof == Proof::Emulated || {library});
}}
template <class... Tags, size_t... I>
constexpr auto kernels(const Table<Tags...>&, std::index_sequence<I...>) {{
  return std::array<Kernel, sizeof...(Tags)>{{simt_kernel_of<Tags, chosen({family}::kTable.rows[I])>()...}};
}}
template <class... Tags, size_t... I>
constexpr auto prepares(const Table<Tags...>&, std::index_sequence<I...>) {{
  return std::array<Prepare, sizeof...(Tags)>{{prepare_of<Tags, chosen({family}::kTable.rows[I])>()...}};
}}
using Every = std::make_index_sequence<{family}::kTable.rows.size()>;
static constexpr auto kChosen = kernels({family}::kTable, Every());
static constexpr auto kPrepares = prepares({family}::kTable, Every());
extern const FamilyKernels kSimtSlice0;
constinit const FamilyKernels kSimtSlice0 = {{"{family}", kChosen.data(), int32_t(kChosen.size()), kPrepares.data()}};
}}
"""


TEXT = "the .metal text"
# Tests that find what the generated ones' check does not: the end of a file's name, and the test.
TESTS = {
    "far": ("far", "test_elements_far_apart"),
    "indices": ("indices", "test_indices_out_of_range"),
    "offsets": ("indices", "test_offsets_of_bags"),
    "mma": ("mma", "test_every_layout"),
}
# What finds a fault in what calls a library; the module has no kernels of other ops.
LIBRARY_TESTS = {"matmul": "tf32 or layouts or batches or long_sums or added or belongs", "scaled_matmul": "8_bit"}
EMULATED_METAL = ["-DBCU_SIMT_BACKEND=Metal", "-DBCU_HAS_F64=0", "-DBCU_METAL_LAUNCHERS"]


@dataclass(frozen=True)
class Fault:
    """One passage of a source, and what takes its place. Without a file: the sources as they are.

    Passages are found by their tokens. The sources hold no marks for them: a mark would say nothing to who reads a kernel, and
    stay where it is when the line beside it no longer means the same.
    """

    name: str
    family: str
    op: str
    direction: str = "forward"
    file: str = ""  # in csrc; TEXT is the family's flattened .metal text
    right: str = ""
    wrong: str = ""
    says: str = ""  # what the report has to match; empty for sources without a fault
    element: str = "f32"
    test: str = ""  # what finds it, if not the generated tests' check: "far", "indices", "offsets", "mma", "cublaslt"
    nth: int = 0  # which occurrence of `right`; there may be no others unless it is said
    also: tuple[tuple[str, str, str], ...] = ()  # further files and passages, which are no faults by themselves
    backend: str = "cuda"

    def changed(self, file: str, text: str) -> str:
        """A file's text with what is replaced in it."""
        if file == self.file:
            text = replaced(file, text, self.right, self.wrong, self.nth)
        for _, right, wrong in (a for a in self.also if a[0] == file):
            text = replaced(file, text, right, wrong)
        return text

    def apply(self, folder: Path) -> None:
        """Writes the changed files as they would be included."""
        for file in {self.file, *(a[0] for a in self.also)} - {"", TEXT}:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(self.changed(file, (ROOT / "csrc" / file).read_text()))


def passage(text: str) -> re.Pattern[str]:
    """Finds a passage by its tokens, however its lines are broken and indented."""
    tokens = re.findall(r"\w+|[^\w\s]", text)
    apart = [r"\s+" if a[-1:].isalnum() and b[:1].isalnum() else r"\s*" for a, b in pairwise(tokens)]
    return re.compile("".join(re.escape(t) + s for t, s in zip(tokens, [*apart, ""], strict=True)))


def replaced(file: str, text: str, right: str, wrong: str, nth: int = 0) -> str:
    found = list(passage(right).finditer(text))
    assert len(found) > nth, f"{file} has no longer: {right}"
    assert nth or len(found) == 1, f"{file} has {len(found)} times: {right}"
    return text[: found[nth].start()] + wrong.strip() + text[found[nth].end() :]


def module(fault: Fault, folder: Path, variant: str = "race") -> Path:
    """Compiles the op's kernels with the fault and links them with the objects that the emulator's probes are made of."""
    metal = fault.backend == "metal"
    device = "probe_metal" if metal else "probe_device"
    library = fault.test == "cublaslt"
    parts = (device, "engine", *(["libraries"] if library else []))
    for target in ("emulator_probes", *parts):
        emulator.build(variant, target)
    built = ROOT / "build" / f"emulator-{variant}"
    fault.apply(folder)
    list_of_kernels = f'#include "ops/{fault.family}/metal.metal"\n' if metal else ""
    unit = UNIT.format(
        family=fault.family,
        op=fault.op,
        direction=fault.direction.title(),
        backend=fault.backend.title(),
        text=list_of_kernels,
        launcher=fault.test if library else "simt_launch",
        library=str(library).lower(),
    )
    (folder / "unit.cpp").write_text(unit)
    entries = json.loads((built / "compile_commands.json").read_text())
    like = next(e for e in entries if e["file"].endswith("emulator/main.cpp"))
    words = [w for w in shlex.split(like["command"]) if w != "ccache"]
    words = [*words[: words.index("-o")], "-O1", "-w"]
    units = {"unit": words}
    if metal:  # the text has the bodies: what launches them is not instrumented
        metal_text(fault, folder)
        launchers = [w for w in words if not w.startswith(("-fsanitize", "--param=tsan"))]
        units = {"unit": launchers + EMULATED_METAL, "text": words}
    for name, flags in units.items():
        command = [flags[0], f"-I{folder}", *flags[1:]]
        run([*command, "-o", folder / f"{name}.o", "-c", folder / f"{name}.cpp"], built)
    objects = [p for part in parts for p in built.glob(f"CMakeFiles/{part}.dir/**/*.o")]
    out = folder / "lib" / f"libfaulty_{fault.backend}_emulated.so"
    out.parent.mkdir(exist_ok=True)
    link([*objects, *(folder / f"{name}.o" for name in units)], built, out)
    return out


def flattened(family: str) -> str:
    """The family's .metal text."""
    with TemporaryDirectory() as folder:
        run([sys.executable, ROOT / "csrc/backends/metal/flatten.py", folder, family], Path(folder))
        return (Path(folder) / f"{family}.metal").read_text()


def link(objects: list[Path], built: Path, out: Path) -> None:
    """Makes an emulated module of objects, with the emulator."""
    libraries = ["-ldl", "-lpthread", *(["-lgnustep-base", "-l:libobjc.so.4"] if "_metal_" in out.name else [])]
    flags = ["-shared", "-Wl,--no-undefined", "-Wl,-Bsymbolic"]
    flags += ["-fsanitize=address,undefined"] if built.name.endswith("sanitize") else []
    run(["g++", *flags, *objects, *emulator.archives(built), *libraries, "-o", out], built)


def metal_text(fault: Fault, folder: Path) -> None:
    """Writes the kernels of the family's .metal text as host C++, with the text's fault, of the fault's element only."""
    path, translate = folder / "metal" / f"{fault.family}.metal", ROOT / "tests/harness/emulator/msl2host.py"
    path.parent.mkdir()  # beside lib, where the module looks for it
    text = fault.changed(TEXT, flattened(fault.family))
    others = {"f32", "f16", "bf16"} - {fault.element}
    listed = re.compile(r"^BCU_METAL_KERNEL\((\w+),.*\n", re.M)
    path.write_text(listed.sub(lambda m: "" if others & set(m[1].split("_")) else m[0], text))
    run([sys.executable, translate, "probe", path, folder / "text.cpp", "0", "1"], folder)


def run(command: list[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


# The generated tests' own check, case by case until something is wrong.
CHECK = """
import sys, numpy as np
from baracuda.describe.elements import Element
from baracuda.prove.verify import Report, candidates, compare, execute
from baracuda.choose.plan import plan
from baracuda.prove.reference import reference_module
from baracuda.choose.sku import PlanPreference
op, direction, element, device = sys.argv[1], sys.argv[2], Element[sys.argv[3].upper()], sys.argv[4]
cases = 0
for variant in candidates(op, direction, element, device):
    limit = PlanPreference(sku=variant)
    for case in reference_module(op).cases(op, direction, element, np.random.default_rng(0)):
        if not type(case.descriptor).plan_class.query(case.descriptor, device, limit):
            continue
        made = plan(case.descriptor, device, limit)
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
    env |= {f"BARACUDA_{fault.backend.upper()}_MODULE": str(module)} | emulator.METAL_SETTINGS
    command = [sys.executable, "-c", CHECK, fault.op, fault.direction, fault.element, fault.backend]
    env["BARACUDA_CUBLASLT_LIBRARY"] = str(module)  # which has one only where it is asked for
    if fault.test == "cublaslt":
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", LIBRARY_TESTS[fault.op]]
        command.append(f"{ROOT}/tests/device/test_device_cublaslt.py")
    elif fault.test:
        file, name = TESTS[fault.test]
        of_the_op = f"{fault.backend}-{fault.op}-{fault.direction}"
        case = {"mma": "size2-turned1-bf16", "offsets": f"{fault.backend}-{fault.direction}"}.get(fault.test, of_the_op)
        which = f"{ROOT}/tests/device/test_device_{file}.py::{name}[{case}]"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", which]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    return done.stdout + done.stderr
