"""The Metal kernels as text, which is what ships: legal Metal, and the same as the sources it is made of."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from metal import legality

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = sorted(p.parent.name for p in (ROOT / "csrc" / "ops").glob("*/metal.metal"))
SNIPPETS = sorted((ROOT / "tests" / "metal" / "bad").glob("*.metal"))
needs_clang = pytest.mark.skipif(not legality.available(), reason=f"no {legality.CLANG}: apt-get install it")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("metal")
    script = ROOT / "csrc" / "backends" / "metal" / "flatten.py"
    subprocess.run([sys.executable, str(script), str(folder), *FAMILIES], check=True)
    return {family: folder / f"{family}.metal" for family in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_packages_that_can_use_it_have_the_text(family, texts):
    """Those of macOS; and builds in place, so that their texts are those of the sources."""
    package = Path(str(resources.files("baracuda")))
    packaged = package / "metal" / f"{family}.metal"
    if sys.platform == "darwin" or package.is_relative_to(ROOT / "python"):
        assert packaged.read_text() == texts[family].read_text()
    else:
        assert not packaged.parent.exists()


@needs_clang
@pytest.mark.parametrize("family", FAMILIES)
def test_the_text_is_legal(family, texts):
    assert legality.problems(texts[family]) == []


def tokens(path: Path, *include: Path) -> list[str]:
    """What is left of a file after preprocessing, with nested namespaces in their C++17 spelling."""
    command = [legality.CLANG, *legality.LANGUAGE, *(f"-I{folder}" for folder in include), "-E", "-P", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = re.sub(r"namespace (\w+(?:::\w+)+) (?=\{)", lambda m: m[0].replace("::", " { namespace "), text)
    return re.findall(r"\w+|[^\w\s]", text)


@needs_clang
@pytest.mark.parametrize("family", FAMILIES)
def test_the_text_is_the_sources(family, texts):
    source = tokens(ROOT / "csrc" / "ops" / family / "metal.metal", ROOT / "csrc", ROOT / "include")
    flat = tokens(texts[family])
    # A namespace of several names is closed once in the sources and once per name in the text.
    assert [t for t in flat if t != "}"] == [t for t in source if t != "}"]


@needs_clang
def test_legal_spellings_are_accepted():
    assert legality.problems(ROOT / "tests" / "metal" / "good.metal") == []


@needs_clang
@pytest.mark.parametrize("path", SNIPPETS, ids=[p.stem for p in SNIPPETS])
def test_illegal_spellings_are_refused(path):
    reason = path.read_text().splitlines()[0].removeprefix("// refused: ")
    found = [what.partition(": ")[2] for what in legality.problems(path)]
    assert any(re.search(reason, what) for what in found), found


# Slips in real kernels: what is replaced (its last occurrence), by what, and what the check says then.
SLIPS = [
    ("BCU_THREAD const C* in, ", "const C* in, ", "without an address space"),
    ("BCU_GLOBAL void* data[kIn + kOut];", "void* data[kIn + kOut];", "without an address space"),
    ("*(BCU_GLOBAL const Words4*)from", "*(BCU_SHARED const Words4*)from", "address space"),
    ("return {a * Gate::g(b)};", "return {a * Gate::g(b) * 0.5};", "a float literal without f"),
    ("return {a * Gate::g(b)};", "double half_y = 0.5f;\n    return {C(half_y)};", "double"),
]


@needs_clang
@pytest.mark.parametrize(("right", "wrong", "says"), SLIPS, ids=range(len(SLIPS)))
def test_slips_in_a_body_are_found(right, wrong, says, texts, tmp_path):
    before, found, after = texts["gated"].read_text().rpartition(right)
    assert found
    path = tmp_path / "gated.metal"
    path.write_text(before + wrong + after)
    assert any(says in what for what in legality.problems(path))
