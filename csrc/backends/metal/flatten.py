"""Writes one self-contained .metal file per op family: what Apple's compiler is given, at build time or on the machine.

python flatten.py OUTPUT_FOLDER FAMILY...
python flatten.py --header cuda|metal HEADER OUTPUT_FILE   # of one header; into an .inc file as a C++ string

Quoted includes are pasted, once each. Branches that the Metal compiler never takes are left out, so that the text is what
it means to Metal and nothing else; `namespace a::b` becomes what C++14 accepts. For CUDA only Metal's branches are left
out: the tests compile the same text for the emulator, whose own headers stay included by name.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = [ROOT / "csrc", ROOT / "include"]
# What is known wherever the text is read; None is "not defined".
KNOWN: dict[str, int | None] = {
    "__METAL_VERSION__": 310,
    "__CUDACC__": None,
    "__CUDA_ARCH__": None,
    "__FMA__": None,
    "__aarch64__": None,
    "BCU_HAS_F64": 0,
    "BCU_HAS_FMA": 1,
}
KNOWN_FOR_CUDA: dict[str, int | None] = {"__METAL_VERSION__": None, "BCU_METAL_LAUNCHERS": None}
HOST = re.compile(r'"simt/\w+_host\.h"')  # headers of who compiles bodies as host C++


def truth(condition: str, known: dict[str, int | None]) -> bool | None:
    """The value of an #if condition, or None where it depends on what is not known."""
    names = set(re.findall(r"[A-Za-z_]\w*", condition)) - {"defined"}
    if not names <= known.keys():
        return None
    text = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?", lambda m: str(int(known[m[1]] is not None)), condition)
    text = re.sub(r"[A-Za-z_]\w*", lambda m: str(known[m[0]] or 0), text)
    if not re.fullmatch(r"[\d\s()!&|<>=+-]*", text):
        raise SyntaxError(f"a condition that the flattener does not understand: {condition}")
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    return bool(eval(text))


class Branches:
    """The #if blocks around a line: which are decided, and which stay in the text."""

    def __init__(self, known: dict[str, int | None]) -> None:
        self.known = known
        # Per open #if: is it kept as written, are its lines taken now, was a branch of it taken.
        self.open: list[tuple[bool, bool, bool]] = []

    def taken(self) -> bool:
        """Whether Metal sees the current line."""
        return all(now for _, now, _ in self.open)

    def directive(self, word: str, rest: str) -> str | None:
        """Follows one directive; what of it stays in the text."""
        if word in ("if", "ifdef", "ifndef"):
            condition = {"if": rest, "ifdef": f"defined({rest})", "ifndef": f"!defined({rest})"}[word]
            value = truth(condition.split("//")[0].strip(), self.known) if self.taken() else False
            self.open.append((value is None, value is not False, bool(value)))
            return f"#{word} {rest}" if value is None and self.taken() else None
        kept, _, before = self.open.pop()
        begins = False  # whether an #elif is the first branch that stays
        if word != "endif":
            value = not before
            if word == "elif" and value and not kept:
                decided = truth(rest.split("//")[0].strip(), self.known) if self.taken() else False
                begins = decided is None
                kept, value = begins, decided is not False
                before = before and not begins
            self.open.append((kept, kept or value, before or (value and not kept)))
        if not kept or not self.taken():
            return None
        return f"#if {rest}" if begins else f"#{word} {rest}".rstrip()


class Flattener:
    """The text of one .metal file with everything that it includes."""

    def __init__(self, known: dict[str, int | None]) -> None:
        self.known = known
        self.seen: set[Path] = set()
        self.out: list[str] = []

    def find(self, name: str, beside: Path) -> Path:
        """The file that an include in `beside` means."""
        for folder in [beside.parent, *INCLUDE]:
            if (folder / name).is_file():
                return (folder / name).resolve()
        raise FileNotFoundError(f"{beside}: no file {name}")

    def add(self, path: Path) -> None:
        """Appends a file, or nothing when it has #pragma once and is there."""
        if path in self.seen:
            return
        text = path.read_text()
        if re.search(r"^#pragma once$", text, re.M):
            self.seen.add(path)
        self.out.append(f"// ---- {path.relative_to(ROOT)}")
        branches = Branches(self.known)
        for line in text.splitlines():
            self.line(line, path, branches)
        if branches.open:
            raise SyntaxError(f"{path}: #if without #endif")

    def line(self, line: str, path: Path, branches: Branches) -> None:
        """Appends what a line means."""
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        if directive and directive[1] in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            if (stays := branches.directive(directive[1], directive[2])) is not None:
                self.out.append(stays)
        elif not branches.taken() or line == "#pragma once":
            return
        elif directive and directive[1] == "include" and HOST.match(directive[2]):
            self.out.append(line)
        elif directive and directive[1] == "include" and directive[2].startswith('"'):
            self.add(self.find(directive[2].split('"')[1], path))
        else:
            self.out.append(old_namespaces(line))


def old_namespaces(line: str) -> str:
    """`namespace a::b {` and its end, in C++14."""
    start = re.fullmatch(r"namespace (\w+(?:::\w+)+) \{", line)
    if start:
        return " ".join(f"namespace {name} {{" for name in start[1].split("::"))
    end = re.fullmatch(r"\}  // namespace (\w+(?:::\w+)+)", line)
    return "}" * (end[1].count("::") + 1) + line[1:] if end else line


def tidy(lines: list[str]) -> str:
    """At most one empty line in a row."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).strip()) + "\n"


def flatten(family: str) -> str:
    """The text of a family's kernels."""
    flattener = Flattener(KNOWN)
    flattener.add(ROOT / "csrc" / "ops" / family / "metal.metal")
    return tidy(flattener.out)


def flatten_header(target: str, header: str) -> str:
    """The text of a header and all that it includes."""
    flattener = Flattener({"cuda": KNOWN_FOR_CUDA, "metal": KNOWN}[target])
    flattener.add(ROOT / "csrc" / header)
    return tidy(flattener.out)


def literal(text: str) -> str:
    """A text as C++ string literals, of a length that every compiler takes."""
    parts = [""]
    for line in text.splitlines(keepends=True):
        if len(parts[-1]) + len(line) > 8000:
            parts.append("")
        parts[-1] += line
    return "".join(f'R"text({part})text"\n' for part in parts)


def put(file: Path, text: str) -> None:
    """Writes a file, unless that is what it holds: nothing that is made from it is made again then."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


def main() -> int:
    """Writes the texts of the families named, or of one header."""
    if sys.argv[1] == "--header":
        target, header, output = sys.argv[2:]
        text = flatten_header(target, header)
        Path(output).parent.mkdir(parents=True, exist_ok=True)
        put(Path(output), literal(text) if output.endswith(".inc") else text)
        return 0
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for family in sys.argv[2:]:
        put(folder / f"{family}.metal", flatten(family))
    return 0


if __name__ == "__main__":
    sys.exit(main())
