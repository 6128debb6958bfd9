"""Turns a flattened .metal text into host C++ whose kernels the emulator can run.

    python msl2host.py FAMILY TEXT OUTPUT SLICE SLICES
    python msl2host.py --prelude TEXT OUTPUT            # what texts begin with that are compiled while tests run
    python msl2host.py --behind PRELUDE TEXT OUTPUT     # such a text, which includes that output where it begins with it

The text is preprocessed with a <metal_stdlib> of the emulator's and stays as it is but for what C++ has no words for: address
spaces are erased, threadgroup variables become members of a struct in the block's shared memory, and for every kernel there
is a function that hands it what its attributes ask for. Each slice has every SLICES-th kernel, to keep compilations short;
its output defines `kMetalText_FAMILY_SLICE`, which lists them, and the hash of the text by which the fake Metal knows it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[1]
# What an attribute hands to a kernel: of a vector, all components or the first.
BUILTINS = {
    "thread_index_in_threadgroup": "at.tid",
    "thread_index_in_simdgroup": "at.tid % 32u",
    "simdgroup_index_in_threadgroup": "at.tid / 32u",
    "threadgroup_position_in_grid": "at.bid",
    "threadgroups_per_grid": "at.gdim",
    "threads_per_threadgroup": "at.bdim",
}
SHARED = re.compile(r"\bthreadgroup\s+([\w:]+(?:<[^;<>]*>)?)\s+(\w+)\s*((?:\[[^;]*?\])+)\s*;")
KERNEL = re.compile(r"(?:\[\[\s*kernel\b|\bkernel\b(?=\s+void))")


@dataclass(frozen=True)
class Kernel:
    """A kernel of the text: where its parts are, and what it asks for."""

    name: str
    attributes: str
    parameters: list[str]
    begin: int  # of the attributes
    open: int  # the brace of its body
    end: int


def closing(text: str, at: int, pair: str) -> int:
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if depth == 0:
            return i + 1
    raise SyntaxError(f"an unclosed {pair[0]}: {text[at : at + 80]}")


def split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([<") - (c in ")]>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def kernels(text: str) -> list[Kernel]:
    """All kernels of a text, first to last."""
    found = []
    for match in KERNEL.finditer(text):
        begin = match.start()
        after = closing(text, begin, "[]") if text[begin] == "[" else match.end()
        named = re.compile(r"\s*void\s+(\w+)\s*\(").match(text, after)
        if not named:
            raise SyntaxError(f"a kernel that is no void function: {text[begin : begin + 200]}")
        inside = closing(text, named.end() - 1, "()")
        brace = text.index("{", inside)
        parameters = split(text[named.end() : inside - 1])
        found.append(Kernel(named[1], text[begin:after], parameters, begin, brace, closing(text, brace, "{}")))
    return found


def argument(kernel: Kernel, parameter: str) -> str:
    """What is passed for one parameter."""
    match = re.fullmatch(r"(.*?)\[\[\s*(\w+)\s*(?:\((\d+)\))?\s*\]\]", parameter, re.S)
    if not match:
        raise SyntaxError(f"{kernel.name}: a parameter without an attribute: {parameter}")
    kind = re.sub(r"\w+\s*$", "", match[1]).strip()
    if match[2] == "buffer":
        if match[3] != "0" or not kind.endswith("&"):
            raise SyntaxError(f"{kernel.name}: buffers are one structure of parameters at index 0, not {parameter}")
        return f"*static_cast<{kind[:-1].strip()}*>(params)"
    value = BUILTINS[match[2]]
    if value in ("at.bid", "at.gdim"):
        return f"uint3{{{value}[0], {value}[1], {value}[2]}}" if kind == "uint3" else f"{value}[0]"
    if value == "at.bdim":
        return "uint3{at.bdim, 1u, 1u}" if kind == "uint3" else value
    return value


def host_kernel(kernel: Kernel, text: str) -> tuple[str, str]:
    """A kernel as C++, and its entry in the list."""
    members, body = [], text[kernel.open : kernel.end]

    def place(match: re.Match[str]) -> str:
        members.append(f"alignas(16) {match[1]} {match[2]}{match[3]};")
        return (
            f"auto& {match[2]} = static_cast<{kernel.name}_shared*>(baracuda::emulator::shared_memory())->{match[2]};"
        )

    body = SHARED.sub(place, body)
    plain = ", ".join(re.sub(r"\[\[.*?\]\]", "", p, flags=re.S).strip() for p in kernel.parameters)
    arguments = ", ".join(argument(kernel, p) for p in kernel.parameters)
    params = next((a for p in kernel.parameters if (a := argument(kernel, p)).startswith("*")), "")
    size = f"sizeof({params[len('*static_cast<') : params.index('*>')]})" if params else "0"
    most = re.search(r"max_total_threads_per_threadgroup(\(.*\))", kernel.attributes, re.S)
    threads = re.sub(r"\s*\]\]$", "", most[1]) if most else "baracuda::emulator::kMaxThreads"
    shared = f"struct {kernel.name}_shared {{ {' '.join(members)} }};\n" if members else ""
    code = (
        f"{shared}static void {kernel.name}({plain}) {body}\n"
        f"static void {kernel.name}_run(baracuda::emulator::Position at, void*, const void* params) {{ {kernel.name}({arguments}); }}"
    )
    bytes_shared = f"sizeof({kernel.name}_shared)" if members else "0"
    return code, f'{{"{kernel.name}", &{kernel.name}_run, {size}, {bytes_shared}, uint32_t({threads})}}'


def hash_of(source: bytes) -> int:
    """FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in source:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def translated(name: str, text: str, slice_: int = 0, slices: int = 1) -> tuple[str, list[str]]:
    """A preprocessed text as host C++, and a list of the kernels of one slice of it."""
    head, mark, body = text.partition("struct metal_stdlib_ends_here;")
    # Names of their own: the launchers are compiled from the same headers for another target.
    body = re.sub(r"\bbaracuda\b(?!/)", f"baracuda_metal_{name}", body)
    parts, entries, at = [], [], 0
    for i, kernel in enumerate(kernels(body)):
        parts.append(body[at : kernel.begin])
        at = kernel.end
        if i % slices == slice_:
            code, entry = host_kernel(kernel, body)
            parts.append(code)
            entries.append(entry)
    rest = re.sub(r"\bthreadgroup\b", "", "".join([*parts, body[at:]]))
    if re.search(r"\bthreadgroup\s+\w+\s+\w+\s*\[", rest):
        raise SyntaxError(f"{name}: threadgroup memory that is no kernel's")
    return f"{head}{mark}{rest}", entries


def host(family: str, text: str, hashed: int, slice_: int = 0, slices: int = 1) -> str:
    """The same with the list as the fake Metal finds it, and the hash of what was preprocessed."""
    name = f"{family}_{slice_}"
    code, entries = translated(name, text, slice_, slices)
    # Without a kernel the list is one entry that no name finds.
    listed = ",\n".join(entries or ['{"", nullptr, 0, 0, 0}'])
    return (
        f"{code}\nnamespace baracuda::emulator {{\n"
        f"extern const Kernel kMetalText_{name}[];\nextern const uint32_t kMetalTextCount_{name};\n"
        f"extern const uint64_t kMetalTextHash_{name};\nconst uint64_t kMetalTextHash_{name} = {hashed}u;\n"
        f"const Kernel kMetalText_{name}[] = {{\n{listed}}};\nconst uint32_t kMetalTextCount_{name} = {len(entries)};\n}}\n"
    )


def preprocessed(source: str, kept: bool) -> str:
    """A text as its compiler sees it; its own name is in there only where that is `kept`."""
    include = [f"-I{HARNESS / 'metal' / 'execute'}", f"-I{HARNESS}"]
    command = ["g++", "-std=c++20", "-E", "-x", "c++", "-D__METAL_VERSION__=310", *include, source if kept else "-"]
    text = None if kept else Path(source).read_text()
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, input=text).stdout


def behind(prelude: str, source: str) -> str:
    """A text whose kernels a library of its own hands out."""
    code, entries = translated("text", preprocessed(source, kept=False))
    known = Path(prelude).read_text().rstrip()
    if code.startswith(known):
        code = f'#include "{prelude}"\n{code[len(known) :]}'
    return (
        f"{code}\nstatic const baracuda::emulator::Kernel kKernels[] = {{{', '.join(entries)}}};\n"
        'extern "C" __attribute__((visibility("default"))) const baracuda::emulator::Kernel* kernels(uint32_t* count) '
        f"{{ return *count = {len(entries)}, kKernels; }}\n"
    )


def main() -> int:
    """The command line."""
    if sys.argv[1] == "--prelude":
        source, output = sys.argv[2:]
        made = translated("text", preprocessed(source, kept=False))[0]
    elif sys.argv[1] == "--behind":
        prelude, source, output = sys.argv[2:]
        made = behind(prelude, source)
    else:
        family, source, output, slice_, slices = sys.argv[1:]
        made = host(
            family, preprocessed(source, kept=True), hash_of(Path(source).read_bytes()), int(slice_), int(slices)
        )
    Path(output).write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
