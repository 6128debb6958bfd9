"""The files of a new op, complete and working, for its author to put the arithmetic in.

python ci/new_op.py family NAME
    A family with one op, y = x w with its gradients: table, CPU kernels, GPU bodies and launchers, spec, reference and
    test, and its line in CMakeLists.txt. It builds, and all generated tests pass.
python ci/new_op.py unary signed_square --own --says "y = x |x|" --ulp 1 1 \\
        --value "x < T(0) ? -x * x : x * x" --gradient "dy * (x < T(0) ? T(-2) * x : T(2) * x)" \\
        --reference "x * abs(x)" --derivative "2 * abs(x)"
    An elementwise function: its functor, row and spec. Value and gradient are C++, reference and derivative NumPy, of x.

docs/adding-an-op.md says what each place is for.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEMPLATES = Path(__file__).resolve().parent / "scaffold" / "family"


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def insert(file: str, before: str, text: str) -> None:
    """Puts a text before the first lines that are `before`; nothing is written where there are none."""
    path = ROOT / file
    held = path.read_text()
    at = held.find(f"\n{before}")
    if at < 0:
        sys.exit(f"{file} has no lines {before!r} any more: this script is to follow it")
    path.write_text(held[: at + 1] + text + held[at + 1 :])
    print(f"changed {file}")


def family(name: str) -> None:
    """Copies the templates, with the name in them, and lists the family."""
    python = ROOT / "python/baracuda/ops" / name
    targets = {t: ROOT / "csrc/ops" / name / t.stem for t in sorted((TEMPLATES / "csrc").iterdir())}
    targets |= {
        TEMPLATES / "python/spec.py.in": python / f"{name}.py",
        TEMPLATES / "python/reference.py.in": python / f"{name}_ref.py",
        TEMPLATES / "python/facts.py.in": python / f"{name}_facts.py",
        TEMPLATES / "tests/test.py.in": ROOT / "tests/ops" / f"test_{name}.py",
    }
    if taken := [t for t in targets.values() if t.exists()]:
        sys.exit(f"{taken[0].relative_to(ROOT)} is there already: want another name")
    for template, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(template.read_text().replace("@name@", name).replace("@Name@", camel(name)))
        print(f"wrote {target.relative_to(ROOT)}")
    if clang_format := shutil.which("clang-format"):  # lines break where the name lets them
        subprocess.run([clang_format, "-i", *(t for t in targets.values() if t.suffix in (".h", ".cpp"))], check=True)
    lists = ROOT / "CMakeLists.txt"
    text = lists.read_text()
    found = re.search(r"set\(BARACUDA_FAMILIES\n((?:  \w+\n)+)\)", text)
    if not found:
        sys.exit("CMakeLists.txt does not list BARACUDA_FAMILIES as this script knows it")
    names = sorted({*found[1].split(), name})
    lists.write_text(text[: found.start(1)] + "".join(f"  {n}\n" for n in names) + text[found.end(1) :])
    print("changed CMakeLists.txt")


def unary(name: str, options: argparse.Namespace) -> None:
    """The three edits of an elementwise function."""
    functor = f"""struct {camel(name)} {{
  template <class T>
  BCU_FN T f(T x) {{
    return {options.value};
  }}
  template <class T>
  BCU_FN T df(T dy, T x) {{
    return {options.gradient};
  }}
}};

"""
    insert("csrc/ops/unary/math.h", "}  // namespace baracuda::unary", functor)
    forward, backward = options.ulp
    row = f'BCU_UNARY_FLOATS({camel(name)}, "{name}", x, ulp({forward:g}), ulp({backward:g}))\n'
    insert("csrc/ops/unary/ops.def", "#undef BCU_UNARY_COUNT", row)
    own = ", of_torch=False" if options.own else ""
    entry = f'    "{name}": Kind("{options.says}", "{options.reference}", "{options.derivative}", (-4, 4){own}),\n'
    insert("python/baracuda/ops/unary/unary_kinds.py", "}  # fmt: skip", entry)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["family", "unary"])
    parser.add_argument("name")
    for option in ("value", "gradient", "reference", "derivative", "says"):
        parser.add_argument(f"--{option}")
    parser.add_argument("--own", action="store_true", help="torch has no function of this name")
    parser.add_argument("--ulp", nargs=2, type=float, default=(2, 4), help="bounds of value and gradient")
    options = parser.parse_args()
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", options.name):
        parser.error(f"name: got {options.name!r}, want lower case words with _ between, such as soft_abs")
    if options.kind == "family":
        family(options.name)
    else:
        lacking = [o for o in ("value", "gradient", "reference", "derivative", "says") if not getattr(options, o)]
        if lacking:
            parser.error(f"a unary op wants --{lacking[0]}")
        unary(options.name, options)
    print("next: build, python ci/generate.py, then the tests (docs/adding-an-op.md)")


if __name__ == "__main__":
    main()
