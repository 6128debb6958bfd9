"""Writes the files that are derived from specs and tables; `--check` says whether they are stale.

python/baracuda/_index.py   which module holds which descriptor, functional function and op
python/baracuda/functional.pyi, _descriptors.pyi   signatures of functions and descriptors for type checkers and editors
docs/skus.md   the SKU tables
docs/functions.md, docs/operators.md   all functions; names of ONNX and aten (ci/functions.py)
csrc/ops/quant/grids.h   the tables of GGUF's IQ formats, from python/baracuda/ops/quant/quant_grids_ref.py
docs/engine.md   the tables of other systems' names, behind the page's own text

They are in the repository, and no step of the build: what they say comes from importing the whole package with its built table,
which a build for another machine or with sanitizers cannot do, while a reader, a type checker and `ruff` want them without any build.
Whoever adds an op runs this once for all three.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from functions import functions_text, operators_text
from stubs import descriptors_text, stub_text

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "baracuda"


def use_this_tree() -> None:
    """Specs come from this tree: directly where its libraries were built in place, else from an install of the same sources."""
    if any(PACKAGE.glob("_core*.so")):
        sys.path.insert(0, str(PACKAGE.parent))
        return
    import baracuda

    installed = Path(baracuda.__file__).parent
    for path in PACKAGE.rglob("*.py"):
        other = installed / path.relative_to(PACKAGE)
        if not other.exists() or other.read_bytes() != path.read_bytes():
            sys.exit(f"{path.relative_to(ROOT)} differs from the installed package: install this tree first")


def bootstrap() -> None:
    """An index must exist for the package to be imported at all."""
    if not (PACKAGE / "_index.py").exists():
        (PACKAGE / "_index.py").write_text(
            "DESCRIPTORS: dict[str, str] = {}\nFUNCTIONS: dict[str, str] = {}\nOPS: dict[str, str] = {}\n"
            "STEPS: dict[str, tuple[tuple[str, str], ...]] = {}\nCATEGORIES: dict[str, str | None] = {}\n"
        )


def families() -> list[ModuleType]:
    import baracuda.ops

    (folder,) = baracuda.ops.__path__
    modules: dict[str, str] = {}
    for path in sorted(Path(folder).glob("*/*.py")):
        name = f"baracuda.ops.{path.parent.name}.{path.stem}"
        if modules.setdefault(path.stem, name) != name:  # they are sorted, and told apart in tests, by their stems
            sys.exit(f"{name}: {modules[path.stem]} has the same stem: choose another")
    return [import_module(modules[stem]) for stem in sorted(modules) if not stem.endswith(("_ref", "_kinds", "_facts"))]


def index_text(modules: list[ModuleType]) -> str:
    from baracuda.call.steps import Steps, declared_steps
    from baracuda.choose.sku import rows
    from baracuda.describe.spec import Descriptor
    from baracuda.prove.facts import facts

    tables: dict[str, dict[str, str]] = {"DESCRIPTORS": {}, "FUNCTIONS": {}, "OPS": {}}
    steps: dict[str, Steps] = {}
    table = {(r["op"], r["direction"]) for r in rows()}
    for module in modules:
        for name, value in vars(module).items():
            if name.startswith("_"):
                continue
            mine = getattr(value, "__module__", None) == module.__name__
            if mine and inspect.isclass(value) and issubclass(value, Descriptor) and hasattr(value, "plan_class"):
                tables["DESCRIPTORS"][name] = module.__name__
            elif is_functional(value, module):
                tables["FUNCTIONS"][name] = module.__name__
                steps[name] = declared_steps(name, value, table)
                if not steps[name]:
                    sys.exit(
                        f"{module.__name__}.{name} has no row of its own: say with @made_of which ops it is made of"
                    )
        for op in getattr(module, "OPS", ()):
            tables["OPS"][op.name] = module.__name__
    lines = ['"""Which module holds what; written by ci/generate.py."""', ""]
    for title, table in tables.items():
        lines.append(f"{title}: dict[str, str] = {{")
        lines += [f'    "{k}": "{v}",' for k, v in sorted(table.items())]
        lines.append("}")
    lines += [
        "# Functions that are no ops: of which ops' rows they are made.",
        "STEPS: dict[str, tuple[tuple[str, str], ...]] = {",
    ]
    for name, made_of in sorted(steps.items()):
        if name not in tables["OPS"]:
            lines.append(
                f'    "{name}": ({", ".join(f"({chr(34)}{op}{chr(34)}, {chr(34)}{way}{chr(34)})" for op, way in made_of)},),'
            )
    lines += ["}", "# What kernel libraries call a family's ops.", "CATEGORIES: dict[str, str | None] = {"]
    lines += [f'    "{family}": {quoted(found.category)},' for family, found in facts().items()]
    lines.append("}")
    return "\n".join(lines) + "\n"


def quoted(text: str | None) -> str:
    return "None" if text is None else f'"{text}"'


def is_functional(value: object, module: ModuleType) -> bool:
    """A Function, or a plain function marked with @composite, that this module defines."""
    from baracuda.call.op import Function

    if isinstance(value, Function):
        return getattr(value, "defined_in", module.__name__) == module.__name__
    return getattr(value, "is_functional", False) and getattr(value, "defined_in", None) == module.__name__


SKUS_HEAD = """# SKU tables

Written by `ci/generate.py` from `csrc/ops/*/skus.h`: which elements each op takes, and the least that its kernels promise. `exact`;
`n ulp`: units in the last place of the element computed in; `sum(n)`: n eps sqrt(K) sum |terms| ([guarantees](guarantees.md)).
`python -m baracuda capabilities OP` lists its kernels one by one, with layouts, levels, architectures and promises; `bc.capabilities`
answers the same. *floats*: f16 bf16 f32 f64; *integers*: u8 u16 u32 u64 i8 i16 i32 i64; cuda rows marked ° were compiled
and never run, the other cuda and metal rows were run by the emulator of the tests, cpu rows on the machine.
"""
GROUPS = {"floats": "f16 bf16 f32 f64", "integers": "u8 u16 u32 u64 i8 i16 i32 i64"}
BACKENDS = ("cpu", "cuda", "metal")


def bound_text(row: dict[str, Any]) -> str:
    return {"exact": "exact", "ulp": f"{row['bound_c']:g} ulp", "sum": f"sum({row['bound_c']:g})"}[row["bound"]]


def cell(found: list[dict[str, Any]]) -> str:
    """Rows of one op, direction and backend: for each promise its elements, the loosest where rows differ."""
    from baracuda.describe.elements import Element

    loosest: dict[Element, str] = {}
    for row in sorted(found, key=lambda r: (r["bound"] != "exact", r["bound_c"])):
        mark = "°" if row["proof"] == "compiled" else ""
        loosest |= {Element(e): bound_text(row) + mark for e in row["elements"]}
    parts = []
    for bound in dict.fromkeys(loosest.values()):
        elements = [str(e) for e, b in sorted(loosest.items()) if b == bound]
        for group, members in GROUPS.items():
            if set(members.split()) <= set(elements):
                elements = [e for e in elements if e not in members.split()] + [f"*{group}*"]
        parts.append(f"{' '.join(elements)}: {bound}")
    return "; ".join(parts)


def skus_text(modules: list[ModuleType]) -> str:
    from baracuda.choose.sku import rows

    table = rows()
    lines = [SKUS_HEAD]
    for family in sorted({m.__name__.split(".")[-2] for m in modules if m.OPS}):
        lines += [f"## {family}", "", "| op | direction | cpu | cuda | metal |", "|---|---|---|---|---|"]
        for op in (o for m in modules if m.__name__.split(".")[-2] == family for o in m.OPS):
            title = f"`{op.name}`: {op.summary}".replace("|", "\\|")
            for direction in ("forward", "backward"):
                found = [r for r in table if (r["op"], r["direction"]) == (op.name, direction)]
                cells = [cell([r for r in found if r["backend"] == backend]) for backend in BACKENDS]
                if any(cells):
                    lines.append(f"| {title} | {direction} | {' | '.join(cells)} |")
                    title = ""
        lines.append("")
    return "\n".join(lines)


NAMES_HEAD = "### Tables of names"


def names_text(page: str) -> str:
    """The page with its tables of names: everything from their heading on."""
    from baracuda.engine import ztensor
    from baracuda.engine.names import described
    from baracuda.engine.tang import Tang

    lines = [
        NAMES_HEAD,
        "",
        "Written by `ci/generate.py` from `python/baracuda/engine/`. A `?` marks what may be left out.",
    ]
    types = (ztensor.Ops, ztensor.TensorArena, ztensor.TensorPool, ztensor.MemoryTracker, ztensor.TestableEngine)
    for system in (Tang, ztensor.Ztensor, *types):
        lines += ["", f"`{system.system}`", "", "| name | is | what differs |", "|---|---|---|"]
        lines += [f"| `{row.shown(name)}` | {described(row)} | {row.differs} |" for name, row in system.names.items()]
    lines += ["", "Names of ztensor that are not here:", "", "| name | there is |", "|---|---|"]
    lines += [f"| `{name}` | {instead} |" for name, instead in ztensor.Ztensor.absent.items()]
    return page.partition(NAMES_HEAD)[0] + "\n".join(lines) + "\n"


GRIDS_HEAD = """// The tables of GGUF's IQ formats: 8 values of 2 bits or, of IQ3, 4 of 4 bits, the first in the lowest. Written by
// ci/generate.py from python/baracuda/ops/quant/quant_grids_ref.py, which says where they come from. Portable.
#pragma once
#include "baracuda/portable.h"

// Tables lie where kernels run; the host's half of what nvcc compiles reads none.
#if defined(__METAL_VERSION__)
#define BCU_GRID constant
#elif defined(__CUDACC__)
#define BCU_GRID static __device__ const
#else
#define BCU_GRID static constexpr
#endif
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define BCU_GRID_ENTRY(table, at) 0u
#else
#define BCU_GRID_ENTRY(table, at) table[at]
#endif

namespace baracuda::quant {

// clang-format off
"""
GRIDS_TAIL = """#undef BCU_GRID
#undef BCU_GRID_ENTRY

}  // namespace baracuda::quant
"""


def grids_text() -> str:
    from baracuda.ops.quant.quant_grids_ref import GRIDS, grid

    text, functions = GRIDS_HEAD, ""
    for name in GRIDS:
        words = [f"0x{word:04x}," for word in grid(name)]
        text += f"BCU_GRID uint16_t kGrid{name}[{len(words)}] = {{\n"
        text += "".join(f"    {' '.join(words[i : i + 14])}\n" for i in range(0, len(words), 14)) + "};\n"
        functions += f"BCU_FN uint32_t grid_{name.lower()}(uint32_t at) {{ return BCU_GRID_ENTRY(kGrid{name}, at); }}\n"
    return text + "// clang-format on\n\n" + functions + GRIDS_TAIL


def main() -> int:
    check = "--check" in sys.argv[1:]
    use_this_tree()
    bootstrap()
    modules = families()
    index = index_text(modules)
    exec(index, vars(import_module("baracuda._index")))  # the docs ask about ops that are new, too
    wanted = {
        PACKAGE / "_index.py": index,
        PACKAGE / "functional.pyi": stub_text(modules, is_functional),
        PACKAGE / "_descriptors.pyi": descriptors_text(),
        ROOT / "docs" / "skus.md": skus_text(modules),
        ROOT / "docs" / "functions.md": functions_text(modules, is_functional, cell),
        ROOT / "docs" / "operators.md": operators_text(),
        ROOT / "csrc" / "ops" / "quant" / "grids.h": grids_text(),
        ROOT / "docs" / "engine.md": names_text((ROOT / "docs" / "engine.md").read_text()),
    }
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if check:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run python ci/generate.py")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(wanted[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
