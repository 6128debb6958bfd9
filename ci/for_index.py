"""ci/for_index.py URL FOLDER: the tracked files in FOLDER, as they go to a package index.

There the README stands alone: its links and its picture become absolute, below the address of the project, which the
package's metadata then names.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "Homepage": "",
    "Documentation": "/blob/HEAD/docs/README.md",
    "Changelog": "/blob/HEAD/CHANGELOG.md",
    "Issues": "/issues",
}


def absolute(readme: str, url: str) -> str:
    """The README with every relative link below an address."""

    def link(found: re.Match[str]) -> str:
        mark, text, target = found.groups()
        if "://" not in target:
            target = f"{url}/{'raw' if mark else 'blob'}/HEAD/{target}"
        return f"{mark}[{text}]({target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", link, readme)


def with_urls(settings: str, url: str) -> str:
    """pyproject.toml with the project's addresses."""
    lines = [f'{name} = "{url}{page}"' for name, page in PAGES.items()]
    head, mark, rest = settings.partition("[project.optional-dependencies]")
    return "\n".join([head + "[project.urls]", *lines, "", mark + rest])


def main() -> int:
    url, folder = sys.argv[1].rstrip("/"), Path(sys.argv[2])
    if not re.fullmatch(r"https://\S+/\S+", url):
        sys.exit(f"{url}: want an address such as https://github.com/owner/baracuda")
    shutil.rmtree(folder, ignore_errors=True)
    for name in subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")[:-1]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    for name, change in (("README.md", absolute), ("pyproject.toml", with_urls)):
        (folder / name).write_text(change((ROOT / name).read_text(), url))
    return 0


if __name__ == "__main__":
    sys.exit(main())
