"""A fused kernel as a function of C11: readable, of fixed sizes, compiled by any C compiler. No plan runs it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isinf, isnan
from typing import TYPE_CHECKING

from baracuda.describe.elements import Element
from baracuda.describe.errors import UnsupportedError
from baracuda.expr.c_functions import COMPARED, FLOATS, HELPERS, WHOLE
from baracuda.expr.stand_in import REDUCTIONS

if TYPE_CHECKING:
    from baracuda.describe.dims import Dim
    from baracuda.ops.expr.expr import ExprDescriptor

_C = {"bool": "bool", "f32": "float", "f64": "double", "f16": "uint16_t", "bf16": "uint16_t"}
_SHORT = {"float": "f32", "double": "f64", "int64_t": "i64", "uint64_t": "u64"}
_ANSWERS = {*COMPARED} - {"where"} | {"isnan", "isinf", "isfinite", "signbit", "isclose"}


def _stored(e: Element) -> str:
    """The type in memory."""
    name = str(e)
    return _C.get(name) or f"{'u' if name[0] == 'u' else ''}int{name[1:]}_t"


def _typed(e: Element) -> str:
    """The type between functions, as csrc/ops/expr/source.cpp has it."""
    if e.is_float:
        return "double" if e is Element.F64 else "float"
    return "bool" if e is Element.BOOL else "uint64_t" if str(e).startswith("u") else "int64_t"


def _computing(e: Element) -> str:
    return "uint64_t" if e is Element.BOOL else _typed(e)


def _size(n: int | Dim) -> int:
    if not isinstance(n, int):
        raise UnsupportedError(f"source: got a size {n}, want numbers where the dialect is C.")
    return n


@dataclass
class _Node:
    """A value of the program: see csrc/ops/expr/program.h."""

    name: str
    element: Element
    type: str
    args: list[int] = field(default_factory=list)
    number: str = ""
    axes: int = 0
    sweep: int = 0
    per_row: bool = False


class _Writer:
    def __init__(self, desc: ExprDescriptor, name: str) -> None:
        self.shape, *self.shapes = (tuple(map(_size, shape)) for shape in (desc.shape, *desc.shapes))
        self.desc, self.name = desc, name
        self.nodes: list[_Node] = [_Node("input", e, _typed(e)) for e in desc.elements]
        self.out: list[int] = []
        self.helpers: dict[str, None] = {}
        self.functions: dict[str, str] = {}
        for words in (part.split() for part in desc.program.rstrip(";").split(";")):
            if words[0] == "out":
                self.out.append(int(words[1]))
            elif words[0] != "inputs":
                self.nodes.append(self._node(words))
        used = set(self.out)
        for v in range(len(self.nodes) - 1, -1, -1):
            used |= set(self.nodes[v].args) if v in used else set()
        self.used = [(v, n) for v, n in enumerate(self.nodes) if v in used]
        self.axes = max(n.axes for _, n in self.used)

    def _node(self, words: list[str]) -> _Node:
        name, e, rest = words[0], Element.coerce(words[1]), words[2:]
        if name == "number":
            return _Node(name, e, _computing(e), number=_literal(rest[0], _computing(e)))
        reduces = name in REDUCTIONS
        args = [int(rest[0])] if reduces else [int(x) for x in rest]
        given = [self.nodes[a] for a in args]
        node = _Node(name, e, "bool" if name in _ANSWERS else _typed(e), args)
        node.axes = int(rest[1]) if reduces else 0
        varies = any(not x.per_row and x.name != "number" for x in given)
        node.per_row = reduces or (any(x.per_row for x in given) and not varies)
        node.sweep = max(x.sweep for x in given) + reduces
        return node

    # --- values

    def _cast(self, value: str, source: str, to: str) -> str:
        if source == to:
            return value
        if to == "bool":
            return f"{value} != 0"
        if to == "uint64_t" and source in ("float", "double"):
            self.helpers["to_u64"] = None
            return f"to_u64({value})"
        return f"({to}){value}" if re.fullmatch(r"\w+", value) else f"({to})({value})"

    def _through(self, value: str, source: str, e: Element) -> str:
        """A value as the element holds it: integers wrap, halves are rounded."""
        if e.is_half:
            return f"load_{e}({self._store(value, source, e)})"
        if e.is_float or e is Element.BOOL:
            return self._cast(value, source, _typed(e))
        return self._cast(self._cast(value, source, _typed(e)), "", _stored(e))

    def _store(self, value: str, source: str, e: Element) -> str:
        if e.is_half:
            self.helpers |= dict.fromkeys(("odd", f"load_{e}", f"store_{e}"))
            return f"store_{e}({f'odd({value})' if source != 'float' else value})"
        return self._cast(self._cast(value, source, _typed(e)), _typed(e), _stored(e))

    def _function(self, name: str, of: str, operands: int = 0) -> str:
        """The name of a function in C, which is written before the kernel."""
        table = FLOATS if of in ("float", "double") else WHOLE
        called = f"{name}_{ {'float': 'f32', 'double': 'f64', 'int64_t': 'i64', 'uint64_t': 'u64'}[of] }".replace(
            " ", ""
        )
        if called not in self.functions:
            if name not in table:
                raise UnsupportedError(f"source: got {name} of {of}, which has no text in C. fuse what is without it.")
            body = re.sub(r"@(\w+)", lambda m: self._function(m[1], of), table[name])
            operands = max([operands, *("abcde".index(x) + 1 for x in re.findall(r"\b[a-e]\b", body))])
            unsigned = "uint64_t" if of in ("int64_t", "uint64_t") else of
            text = body if "return" in body else f"return {body};"
            given = ", ".join(f"{of} {x}" for x in "abcde"[:operands])
            types = f"typedef {of} T;" + f" typedef {unsigned} U;" * bool(re.search(r"\bU\b", body))
            types *= bool(re.search(r"\b[TU]\b", text))
            result = "bool" if name in _ANSWERS else of
            self.functions[called] = f"static inline {result} {called}({given}) {{ {types}{' ' * bool(types)}{text} }}"
        return called

    def _made(self, v: int) -> str:
        node = self.nodes[v]
        if node.name == "cast":
            source = self.nodes[node.args[0]]
            return self._through(f"v{node.args[0]}", source.type, node.element)
        of = _computing(node.element)
        given = ", ".join(self._cast(f"v{a}", self.nodes[a].type, of) for a in node.args)
        value = f"{self._function(node.name, of, len(node.args))}({given})"
        if node.name in _ANSWERS or node.element.is_float:
            return value
        return self._through(value, of, node.element)

    # --- loops

    def _at(self, shape: tuple[int, ...], prefix: int) -> str:
        """The place of an element of an array of this shape, by the loops' indices; `prefix` axes are looped over."""
        terms, step = [], 1
        for i in range(len(shape) - 1, -1, -1):
            axis = prefix - len(shape) + i
            if shape[i] != 1:
                terms.append(f"i{axis}" if step == 1 else f"{step} * i{axis}")
            step *= shape[i]
        return " + ".join(reversed(terms)) or "0"

    def _loop(self, axes: range, body: list[str], indent: str) -> list[str]:
        lines = [f"for (int64_t i{a} = 0; i{a} < {self.shape[a]}; ++i{a})" for a in axes]
        if not lines:
            return [f"{indent}{{", *(f"{indent}  {x}" for x in body), f"{indent}}}"]
        return [
            *(f"{indent}{x}" for x in lines[:-1]),
            f"{indent}{lines[-1]} {{",
            *(f"{indent}  {x}" for x in body),
            f"{indent}}}",
        ]

    def _elements(self, wanted: set[int]) -> list[str]:
        """Statements for these values and what they are made of, one element each."""
        todo = sorted(wanted)
        while todo:
            for a in self.nodes[todo.pop()].args:
                if a not in wanted and not self.nodes[a].per_row and self.nodes[a].name != "number":
                    wanted.add(a)
                    todo.append(a)
        lines = []
        for v in sorted(wanted):
            node = self.nodes[v]
            if node.name == "input":
                value = f"x{v}[{self._at(self.shapes[v], len(self.shape))}]"
                if node.element.is_half:
                    self.helpers[f"load_{node.element}"] = None
                    value = f"load_{node.element}({value})"
            else:
                value = self._made(v)
            lines.append(f"const {node.type} v{v} = {value};")
        return lines

    def _sweep(self, sweep: int, inner: range) -> list[str]:
        """A pass over a row that folds, and what is known of the row after it."""
        folds = [v for v, n in self.used if n.name in REDUCTIONS and n.sweep == sweep]
        count = 1
        for a in inner:
            count *= self.shape[a]
        start, body, end = [], self._elements({self.nodes[v].args[0] for v in folds}), []
        for v in folds:
            node = self.nodes[v]
            x = self._cast(f"v{node.args[0]}", self.nodes[node.args[0]].type, node.type)
            if node.name in ("amax", "amin"):
                low, sign = ("-INFINITY", ">") if node.name == "amax" else ("INFINITY", "<")
                start.append(f"{node.type} s{v} = {low};")
                body.append(f"s{v} = {x} {sign} s{v} || {x} != {x} ? {x} : s{v};")
            else:
                start.append(f"double s{v} = {int(node.name == 'prod')};")
                body.append(f"s{v} {'*' if node.name == 'prod' else '+'}= {x};")
            mean = f" / {count}.0" if node.name == "mean" else ""
            end.append(f"const {node.type} v{v} = ({node.type})(s{v}{mean});")
        known = [v for v, n in self.used if n.per_row and n.name not in REDUCTIONS and n.sweep == sweep]
        end += [f"const {self.nodes[v].type} v{v} = {self._made(v)};" for v in known]
        return [*start, *self._loop(inner, body, ""), *end]

    def _written(self, k: int) -> str:
        v, e = self.out[k], self.desc.results[k]
        rank = len(self.shape)
        axes = abs((self.desc.reduced or (0,) * len(self.out))[k])
        shape = self.shape[: rank - axes]
        return f"y{k}[{self._at(shape, rank - axes)}] = {self._store(f'v{v}', self.nodes[v].type, e)};"

    def text(self) -> str:
        rank = len(self.shape)
        outer, inner = range(rank - self.axes), range(rank - self.axes, rank)
        row = [x for s in range(1, max(n.sweep for _, n in self.used) + 1) for x in self._sweep(s, inner)]
        single = [k for k in range(len(self.out)) if not self.nodes[self.out[k]].per_row]
        last = self._elements({self.out[k] for k in single}) + [self._written(k) for k in single] if single else []
        if row:
            row += [self._written(k) for k in range(len(self.out)) if k not in single]
            row += self._loop(inner, last, "") if last else []
        numbers = [f"  const {n.type} v{v} = {n.number};" for v, n in self.used if n.name == "number"]
        body = [*numbers, *self._loop(outer, row or last, "  ")]
        given = [f"const {_stored(e)}* x{k}" for k, e in enumerate(self.desc.elements)]
        given += [f"{_stored(e)}* y{k}" for k, e in enumerate(self.desc.results)]
        includes = [f"#include <{x}.h>" for x in ("stdbool", "stdint", "string", "tgmath")]
        helpers = [HELPERS[x] for x in HELPERS if x in self.helpers]
        lines = [f"// {self.desc.program}", *includes, "", *helpers, *self.functions.values(), ""]
        return "\n".join([*lines, f"void {self.name}({', '.join(given)}) {{", *body, "}"]) + "\n"


def _literal(text: str, of: str) -> str:
    """A number of the program in C, of this type."""
    if of in ("int64_t", "uint64_t"):
        if int(text) == -(2**63):
            return "INT64_MIN"
        return f"{'U' * (of[0] == 'u')}INT64_C({text})"
    x = float(text)
    if isnan(x) or isinf(x):
        return "NAN" if isnan(x) else "INFINITY" if x > 0 else "-INFINITY"
    return f"{x.hex()}{'f' * (of == 'float')}"


def c_text(desc: ExprDescriptor, name: str) -> str:
    """A kernel as a function of C11, of C-contiguous arrays of the descriptor's shapes.

    Args:
        desc: The kernel's descriptor.
        name: Of the function.

    Raises:
        UnsupportedError: A function has no text in C, or sizes are Dims.
    """
    return _Writer(desc, name).text()
