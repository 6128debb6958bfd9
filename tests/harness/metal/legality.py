"""Says what in a .metal text Metal would refuse, without Apple's compiler.

Two readings of the same text: clang's C++ for OpenCL with stub/metal_stdlib, whose address spaces, kernels and missing
features are nearly Metal's; then rules on clang's syntax tree for what OpenCL allows and Metal does not. What nothing here
sees: rules of Apple's front end that are nowhere written down, limits of registers, and what the compiled code does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLANG = "clang-19"  # the first whose x86 target has both half and bfloat in OpenCL is 17; CI has this one
STUB = HERE / "stub"
LANGUAGE = [
    *("-x", "clcpp", "-cl-std=clc++2021", "--target=x86_64-linux-gnu", "-cl-no-stdinc", "-D__METAL_VERSION__=310"),
    # The generic address space is on because without it clang cannot copy structs of structs; the rules refuse it.
    *("-Xclang", "-cl-ext=-all,+cl_khr_fp16,+__opencl_c_generic_address_space", f"-I{STUB}"),
]
# -Wpre-c++17-compat: Metal is C++14.
WARNINGS = ["-Wall", "-Wextra", "-Wpre-c++17-compat"]
QUIET = ["unknown-attributes", "unknown-pragmas", "unused-function", "unused-parameter", "undefined-inline"]
WARNINGS += [f"-Wno-{name}" for name in [*QUIET, "bitwise-conditional-parentheses"]]

SPACE = re.compile(r"\b(__global|__local|__private|__constant)\b")
ATTRIBUTES = {
    "kernel", "max_total_threads_per_threadgroup", "buffer", "threadgroup", "host_name", "function_constant",
    "thread_index_in_threadgroup", "thread_position_in_threadgroup", "thread_position_in_grid", "threads_per_grid",
    "threadgroup_position_in_grid", "threads_per_threadgroup", "threadgroups_per_grid", "threads_per_simdgroup",
    "thread_index_in_simdgroup", "simdgroup_index_in_threadgroup", "simdgroups_per_threadgroup",
}  # fmt: skip
FORBIDDEN = {
    "LambdaExpr": "a lambda",
    "GotoStmt": "goto",
    "GCCAsmStmt": "inline assembly",
    "MSAsmStmt": "inline assembly",
    "CXXDynamicCastExpr": "dynamic_cast",
    "CXXTypeidExpr": "typeid",
    "public": "a derived class",
    "private": "a derived class",
    "protected": "a derived class",
}
DECLARES = {"ParmVarDecl", "VarDecl", "FieldDecl", "TypedefDecl", "TypeAliasDecl"}
CASTS = {"CStyleCastExpr", "CXXFunctionalCastExpr", "CXXStaticCastExpr", "CXXReinterpretCastExpr", "CXXConstCastExpr"}
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXConversionDecl"}

NODE = re.compile(r"^([| `-]*)(\w+)(?: (0x[0-9a-f]+))?(.*)$")
PLACE = re.compile(r"line:(\d+):\d+|col:\d+|([^\s<>,:][^<>,:]*):(\d+):\d+")
RANGE = re.compile(r"^(?: (?:prev|parent) 0x\w+)* <([^>]*(?:<[^>]*>[^>]*)*)>(?: (line:\d+:\d+|col:\d+|\S+:\d+:\d+))?")


def available() -> bool:
    """Whether the check can run on this machine."""
    return shutil.which(CLANG) is not None


def problems(path: Path) -> list[str]:
    """What Metal would refuse in a flattened text, as `name:line: what`."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.name
        pre = _clang("-E", str(path), "-o", str(plain))
        if pre.returncode:
            return _messages(pre.stderr)
        done = _clang("-fsyntax-only", *WARNINGS, "-Xclang", "-ast-dump", "-fno-color-diagnostics", str(plain))
        tree = Tree(path)
        for line in done.stdout.splitlines():
            tree.read(line)
        # The rules first: where clang stumbles over the same, it says less.
        found = [*tree.report(), *_declarations(plain.read_text(), path), *_messages(done.stderr)]
    return list(dict.fromkeys(found))


def _clang(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CLANG, *LANGUAGE, *args], check=False, capture_output=True, text=True)


def _messages(stderr: str) -> list[str]:
    """Clang's errors, and its warnings but one: literals are the syntax tree's matter."""
    found = re.findall(r"^(?:.*/)?([^/\n]+:\d+):\d+: (?:fatal )?(?:error|warning): (.*)$", stderr, re.M)
    return [f"{where}: {what}" for where, what in found if not what.startswith("double precision constant")]


@dataclass
class Node:
    """One line of clang's textual syntax tree."""

    depth: int
    kind: str
    id: str
    line: int
    text: str
    before: str  # an earlier declaration of the same

    def type(self) -> str:
        quoted = re.search(r"'([^']*)'", self.text)
        return quoted[1] if quoted else ""


@dataclass
class Tree:
    """Reads the syntax tree line by line: families with hundreds of kernels have millions of them."""

    path: Path
    file: str = ""
    line: int = 0
    above: list[Node] = field(default_factory=list)
    found: dict[tuple[int, str], None] = field(default_factory=dict)
    calls: dict[str, set[str]] = field(default_factory=dict)
    names: dict[str, tuple[str, int]] = field(default_factory=dict)
    kernels: set[str] = field(default_factory=set)
    first: dict[str, str] = field(default_factory=dict)  # of a declaration, where it is not the first

    def read(self, text: str) -> None:
        match = NODE.match(text)
        if not match:
            return
        depth, rest = len(match[1]) // 2, match[4]
        line, rest = self._place(rest)
        del self.above[next((i for i, n in enumerate(self.above) if n.depth >= depth), len(self.above)) :]
        before = re.match(r" prev (0x[0-9a-f]+)", match[4])
        node = Node(depth, match[2], match[3] or "", line, rest, before[1] if before else "")
        outside = depth == 1 and self.file != str(self.path)
        implicit = re.match(r"\s*(?:referenced |used |constexpr )*implicit\b", rest) is not None
        hidden = bool(self.above) and self.above[-1].kind == "hidden"
        if outside or implicit or hidden:
            node.kind = "hidden"
        else:
            self._rules(node)
        self.above.append(node)

    def report(self) -> list[str]:
        for function, (name, line) in self.names.items():
            if self._reaches_itself(function):
                self._err(line, f"recursion through {name}")
        return [f"{self.path.name}:{line}: {what}" for line, what in self.found]

    def _place(self, rest: str) -> tuple[int, str]:
        """The line where a node starts, and what follows its place."""
        match = RANGE.match(rest)
        if not match:
            return self.line, rest
        start = 0
        for n, place in enumerate(PLACE.finditer(f"{match[1]} {match[2] or ''}")):
            if place[2]:
                self.file, self.line = place[2], int(place[3])
            elif place[1]:
                self.line = int(place[1])
            start = start if n else self.line
        return start or self.line, rest[match.end() :]

    def _err(self, line: int, what: str) -> None:
        self.found[line, what] = None

    def _rules(self, node: Node) -> None:
        if node.kind in FORBIDDEN:
            self._err(node.line, f"{FORBIDDEN[node.kind]} is not in Metal")
        if node.kind in DECLARES | CASTS | FUNCTIONS:
            self._pointers(node)
        if node.kind in FUNCTIONS:
            if node.before:
                self.first[node.id] = self.first.get(node.before, node.before)
            self.names[node.id] = (node.text.partition("'")[0].split()[-1], node.line)
        elif node.kind in ("OpenCLKernelAttr", "DeviceKernelAttr"):
            self.kernels.add(self.above[-1].id)
        elif node.kind in ("DeclRefExpr", "MemberExpr"):
            self._call(node)
        elif node.kind == "FloatingLiteral" and node.type() == "double":
            self._literal(node)
        self._method(node)

    def _pointers(self, node: Node) -> None:
        written = node.type()
        if node.kind in FUNCTIONS:
            written = written.partition("(")[0]
        if "long long" in written:
            self._err(node.line, "long long is not in Metal: int64_t")
        if re.search(r"\(\w* ?[*&]", written):
            self._err(node.line, f"a pointer to a function: {written}")
        elif any(not SPACE.search(part) for part in re.split(r"[*&]+", written)[:-1]):
            self._err(node.line, f"a pointer or reference without an address space: {written}")

    def _call(self, node: Node) -> None:
        target = re.search(r" (?:Function|CXXMethod) (0x[0-9a-f]+)|(?:->|\.)\S+ (0x[0-9a-f]+)", node.text)
        function = next((n for n in reversed(self.above) if n.kind in FUNCTIONS), None)
        if target and function:
            called = target[1] or target[2]
            caller = self.first.get(function.id, function.id)
            self.calls.setdefault(caller, set()).add(self.first.get(called, called))
            if called in self.kernels:
                self._err(node.line, "a call of a kernel")

    def _literal(self, node: Node) -> None:
        """An unsuffixed literal is a double on other targets, unless it is written T(0.5)."""
        for parent in reversed(self.above):
            if parent.kind in ("CXXFunctionalCastExpr", "CXXUnresolvedConstructExpr"):
                return
            if parent.kind not in ("ImplicitCastExpr", "UnaryOperator"):
                break
        self._err(node.line, "a float literal without f or T(...)")

    def _method(self, node: Node) -> None:
        """Member functions are of objects in thread memory, whatever clang can convert."""
        if len(self.above) < 2 or "AddressSpaceConversion" not in self.above[-1].text:
            return
        if "bound member function" in self.above[-2].text and "__private" not in node.type():
            self._err(node.line, "a member function of an object that is not in thread memory")

    def _reaches_itself(self, function: str) -> bool:
        todo, seen = list(self.calls.get(function, ())), set()
        while todo:
            now = todo.pop()
            if now == function:
                return True
            if now not in seen:
                seen.add(now)
                todo += self.calls.get(now, ())
        return False


def _declarations(text: str, path: Path) -> list[str]:
    """Rules on the words of kernel declarations."""
    text, found = text[text.index("stub_ends_here") :], []
    text = re.sub(r"^#.*$", "", text, flags=re.M)

    def err(what: str) -> None:
        found.append(f"{path.name}: {what}")

    for attribute in re.findall(r"\[\[([^\]]+)\]\]", text):
        for name in re.findall(r"([A-Za-z_]\w*)(?:\s*\([^)]*\))?", attribute):
            if name not in ATTRIBUTES:
                err(f"unknown attribute {name}")
    for name, parameters in re.findall(r"\bkernel\b[^;{}]*?\bvoid\s+(\w+)\s*\(([^{]*)\)\s*\{", text):
        indices = re.findall(r"\[\[\s*buffer\((\d+)\)", parameters)
        if len(indices) != len(set(indices)):
            err(f"kernel {name} has a buffer index twice")
        for parameter in re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", parameters)).split(","):
            if parameter.strip() and "[[" not in parameter:
                err(f"kernel {name} has a parameter without an attribute: {parameter.strip()}")
    return found


def main() -> int:
    """`python legality.py FILE...` prints what is wrong."""
    found = [what for name in sys.argv[1:] for what in problems(Path(name))]
    print("\n".join(found) or "nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
