"""What a package says of itself: addresses, licences, classifiers, and links that lead somewhere from an index."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
URL = "https://example.org/somebody/baracuda"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
in_git = pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="not a checkout: which files are tracked is git's to say"
)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index") / "tree"
    subprocess.run([sys.executable, str(ROOT / "ci" / "for_index.py"), URL + "/", str(folder)], check=True)
    return folder


@in_git
def test_links_on_an_index_are_absolute_and_lead_to_files(staged: Path) -> None:
    was, now = ((root / "README.md").read_text() for root in (ROOT, staged))
    found = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", now)
    assert len(found) == len(re.findall(r"\]\([^)\s]+\)", was)) > 10
    for mark, target in found:
        name = target.removeprefix(f"{URL}/{'raw' if mark else 'blob'}/HEAD/")
        assert name != target and (ROOT / name).exists(), target
    assert re.sub(r"\]\([^)]*\)", "", was) == re.sub(r"\]\([^)]*\)", "", now)


@in_git
def test_addresses_are_added_and_nothing_else_changes(staged: Path) -> None:
    settings = tomllib.loads((staged / "pyproject.toml").read_text())
    urls = settings["project"].pop("urls")
    assert settings == SETTINGS
    assert urls["Homepage"] == URL and all(u.startswith(URL) for u in urls.values())
    for page in urls.values():
        _, blob, name = page.partition("/blob/HEAD/")
        assert not blob or (ROOT / name).exists()
    assert (staged / "tests" / "test_packaging.py").read_bytes() == Path(__file__).read_bytes()


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    script = str(ROOT / "ci" / "for_index.py")
    done = subprocess.run(
        [sys.executable, script, "baracuda", str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1 and "want an address such as" in done.stderr


def test_the_licence_names_what_is_bundled() -> None:
    table = re.findall(r"^\| [^|]+\| [^|]+\| ([^|]+) \|", (ROOT / "THIRD_PARTY_NOTICES.md").read_text(), re.M)[2:]
    named = set(re.findall(r"BSD-3-Clause|GPL-3\.0|Apache-2\.0|\bMIT\b|MPL|Zlib|LGPL", " ".join(table)))
    expression = SETTINGS["project"]["license"]
    assert {re.sub(r"-or-later WITH GCC-exception-3\.1", "", part) for part in expression.split(" AND ")} == named
    assert all("GCC Runtime Library Exception" in t for t in table if "GPL" in t)


def test_the_wheels_have_one_version() -> None:
    """The cuda backend's wheel wants the package of its own version, and CMake tells both to the compiler."""
    other = tomllib.loads((ROOT / "packaging/cuda13/pyproject.toml").read_text())["project"]
    version = SETTINGS["project"]["version"]
    assert f"project(baracuda VERSION {version} " in (ROOT / "CMakeLists.txt").read_text()
    assert other["version"] == version and other["dependencies"] == [f"baracuda=={version}"]
    assert SETTINGS["project"]["optional-dependencies"]["cuda13"] == [f"baracuda-cuda13[libraries]=={version}"]
    for link in (ROOT / "packaging/cuda13/licenses").iterdir():
        assert link.read_text(), "the texts are those of the main package"


def test_no_system_is_claimed_that_was_not_built_on() -> None:
    systems = [c for c in SETTINGS["project"]["classifiers"] if c.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


def test_warnings_are_errors_in_ci_and_not_for_who_installs() -> None:
    lists = [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")]
    for path in lists:
        for found in re.finditer(r"^.*-Werror.*$", path.read_text(), re.M):
            before = path.read_text()[: found.start()].rstrip().rsplit("\n", 1)[-1]
            assert "BARACUDA_WERROR" in before + found[0], f"{path.name}: {found[0]}"
    assert re.search(r'option\(BARACUDA_WERROR "[^"]+" \$\{BARACUDA_INPLACE\}\)', lists[0].read_text())
    assert "BARACUDA_WERROR=ON" in (ROOT / "ci" / "build.sh").read_text()
    assert "BARACUDA_WERROR" not in (ROOT / "ci" / "demo.sh").read_text() + str(SETTINGS["tool"]["scikit-build"])
