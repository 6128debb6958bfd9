"""The wheel of Linux aarch64, of this machine's wheel and what ci/arm64.sh has cross-built.

python packaging/aarch64.py dist/baracuda-*.whl build/arm64/site FOLDER

Python files, headers and licences are those of the wheel that is given; libraries are the cross-built ones.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

PLATFORM = "linux_aarch64"


def is_library(name: str) -> bool:
    """Whether a file depends on the platform."""
    return ".so" in Path(name).name


def tag_of(site: Path) -> str:
    """What the binding was built for: cp311-cp311-linux_aarch64."""
    found = [p.name for p in site.glob("baracuda/_core.cpython-*-aarch64-linux-gnu.so")]
    if len(found) != 1:
        sys.exit(f"{site} has {len(found)} cross-built bindings, want one: run BARACUDA_FULL=1 ci/arm64.sh first")
    python = f"cp{found[0].split('-')[1]}"
    return f"{python}-{python}-{PLATFORM}"


def retagged(wheel: bytes, tag: str) -> bytes:
    """The WHEEL file with another tag."""
    kept = [x for x in wheel.decode().splitlines() if x and not x.startswith("Tag:")]
    return "\n".join([*kept, f"Tag: {tag}", ""]).encode()


def contents(wheel: Path, site: Path, tag: str) -> dict[str, bytes]:
    """Files of the new wheel by name, without RECORD."""
    with zipfile.ZipFile(wheel) as given:
        files = {n: given.read(n) for n in given.namelist() if not n.endswith("/") and not is_library(n)}
    built = {p.relative_to(site).as_posix(): p.read_bytes() for p in site.rglob("*") if is_library(p.name)}
    (described,) = (n for n in files if n.endswith(".dist-info/WHEEL"))
    files[described] = retagged(files[described], tag)
    return {n: data for n, data in (files | built).items() if not n.endswith("/RECORD")}


def write(files: dict[str, bytes], path: Path) -> None:
    """Packs the files, with a RECORD of them."""
    (described,) = (n for n in files if n.endswith(".dist-info/WHEEL"))
    record = described.replace("/WHEEL", "/RECORD")
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(data)}")
            packed.writestr(name, data)
        packed.writestr(record, "\n".join([*lines, f"{record},,", ""]))


def main() -> None:
    """Writes the wheel and prints its path."""
    wheel, site, folder = map(Path, sys.argv[1:])
    tag = tag_of(site)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'-'.join(wheel.stem.split('-')[:2])}-{tag}.whl"
    write(contents(wheel, site, tag), path)
    print(path)


if __name__ == "__main__":
    main()
