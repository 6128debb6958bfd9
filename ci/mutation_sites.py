"""Where a source can be changed into a wrong one: mutants of C++ and Python, found in their syntax trees.

A C++ mutant is compiled in beside the right code and chosen when a process starts (BCU_MUTANT=number), so that one build
serves hundreds; a Python mutant replaces its file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tree_sitter_cpp
import tree_sitter_python
from tree_sitter import Language, Node, Parser

SWAPPED = {
    "+": "-", "-": "+", "*": "+", "/": "*", "%": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "&&": "||", "||": "&&", "&": "|", "|": "&", "<<": ">>", ">>": "<<", "and": "or", "or": "and", "//": "*",
    "in": "not in", "not in": "in", "is": "is not", "is not": "is",
}  # fmt: skip
ASSIGNED = {"+=": "=", "-=": "+=", "*=": "=", "/=": "*=", "&=": "|=", "|=": "&=", ">>=": "<<=", "<<=": ">>="}
RENAMED = {"min": "max", "max": "min", "begin": "end", "first": "last", "lower_bound": "upper_bound"}
# What a compiler evaluates, or what names a type: nothing that a running kernel could do wrong.
FIXED = {
    "template_argument_list", "template_parameter_list", "static_assert_declaration", "enumerator", "requires_clause",
    "requires_expression", "sizeof_expression", "alignof_expression", "decltype", "attribute_declaration", "noexcept",
    "optional_parameter_declaration", "bitfield_clause", "preproc_if", "preproc_elif", "preproc_def", "string_literal",
    "alignas_qualifier", "field_initializer_list", "field_declaration", "constraint_conjunction", "concept_definition",
    "preproc_include", "template_declaration_head",
}  # fmt: skip
PYTHON_FIXED = {"decorator", "type", "import_statement", "import_from_statement", "string", "default_parameter"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A passage of a file, and what takes its place."""

    file: str  # below the root
    kind: str  # arithmetic, comparison, logic, constant, index, bound, statement, condition, assignment, name
    line: int
    start: int
    end: int
    right: str
    wrong: str
    form: str = "expression"  # statement: `wrong` and `right` are statements
    nth: int = 0  # which of the same passages in the same line's text

    @property
    def key(self) -> str:
        """Names the mutant while the passage stands in the file, wherever its line moves to."""
        text = "\0".join(
            (self.file, self.kind, " ".join(self.right.split()), " ".join(self.wrong.split()), str(self.nth))
        )
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def __str__(self) -> str:
        shorten = [re.sub(r"\s+", " ", t)[:90] for t in (self.right, self.wrong)]
        return f"{self.file}:{self.line} {self.kind}: {shorten[0]}  ->  {shorten[1] or '(nothing)'}"


@cache
def _parser(suffix: str) -> Parser:
    language = tree_sitter_python if suffix == ".py" else tree_sitter_cpp
    return Parser(Language(language.language()))


def mutants(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file, in the order of their places."""
    text = (root / file).read_bytes()
    suffix = Path(file).suffix
    tree = _parser(suffix).parse(text)
    walk, edit = (_walk_python, _of_python) if suffix == ".py" else (_walk_cpp, _of_cpp)
    found, seen = [], {}
    for node in walk(tree.root_node):
        for kind, at, right, wrong, form in edit(node, text):
            same = (kind, " ".join(right.split()), " ".join(wrong.split()))
            seen[same] = nth = seen.get(same, -1) + 1
            found.append(Mutant(file, kind, at.start_point[0] + 1, at.start_byte, at.end_byte, right, wrong, form, nth))
    return sorted(found, key=lambda m: (m.start, m.end, m.kind))


Edit = tuple[str, Node, str, str, str]


def _walk_cpp(node: Node) -> Iterator[Node]:
    """Nodes whose code runs."""
    if node.type in FIXED or (node.has_error and node.type == "ERROR"):
        return
    if node.type == "declaration" and re.match(
        rb"\s*((static|inline|extern)\s+)*(constexpr|constinit)\b", node.text or b""
    ):
        return
    yield node
    skipped = {
        "case_statement": node.child_by_field_name("value"),
        "array_declarator": node.child_by_field_name("size"),
    }
    if node.type == "if_statement" and any(c.type == "constexpr" for c in node.children):
        skipped["if_statement"] = node.child_by_field_name("condition")
    leave = skipped.get(node.type)
    for child in node.children:
        if leave is None or child.id != leave.id:
            yield from _walk_cpp(child)


def _walk_python(node: Node) -> Iterator[Node]:
    if node.type in PYTHON_FIXED:
        return
    yield node
    for child in node.children:
        yield from _walk_python(child)


def _text(node: Node, text: bytes) -> str:
    return text[node.start_byte : node.end_byte].decode()


def _binary(node: Node, text: bytes, wrap: Callable[[str], str]) -> Iterator[Edit]:
    operator = node.child_by_field_name("operator")
    sides = [node.child_by_field_name(n) for n in ("left", "right")]
    if operator is None or None in sides or operator.type not in SWAPPED:
        return
    kind = (
        "comparison" if operator.type in "<= >= == !=" else "logic" if operator.type in "&& || and or" else "arithmetic"
    )
    left, right = (_text(s, text) for s in sides if s)
    yield kind, node, _text(node, text), wrap(f"{left} {SWAPPED[operator.type]} {right}"), "expression"


def _number(node: Node, text: bytes) -> Iterator[Edit]:
    right = _text(node, text)
    if re.fullmatch(r"\d+", right):
        yield "constant", node, right, "1" if right == "0" else str(int(right) + 1), "expression"
    elif re.fullmatch(r"\d+\.\d+", right):
        yield "constant", node, right, f"({right} * 1.01)" if float(right) else "1.0", "expression"


def _of_cpp(node: Node, text: bytes) -> Iterator[Edit]:
    kind = node.type
    if kind == "binary_expression":
        yield from _binary(node, text, str)
    elif kind == "number_literal":
        yield from _number(node, text)
    elif kind == "subscript_expression":
        indices = node.child_by_field_name("indices")
        if indices is not None and indices.named_child_count == 1:
            at = indices.named_children[0]
            right = _text(at, text)
            yield "index", at, right, f"{right} + 1", "expression"
    elif kind == "for_statement":
        condition = node.child_by_field_name("condition")
        if condition is not None and condition.type == "binary_expression":
            bound = condition.child_by_field_name("right")
            if bound is not None:
                yield "bound", bound, _text(bound, text), f"({_text(bound, text)}) - 1", "expression"
    elif kind == "if_statement" and not any(c.type == "constexpr" for c in node.children):
        condition = node.child_by_field_name("condition")
        value = condition.child_by_field_name("value") if condition is not None else None
        if value is not None and value.type != "declaration":
            yield "condition", value, _text(value, text), f"!({_text(value, text)})", "expression"
    elif kind == "expression_statement":
        yield from _statement(node, text)
    elif kind == "call_expression":
        yield from _call(node, text)
    elif kind in ("true", "false"):
        yield "constant", node, kind, "false" if kind == "true" else "true", "expression"
    elif kind == "unary_expression" and node.children[0].type in "!-~":
        yield "logic", node, _text(node, text), f"({_text(node.children[1], text)})", "expression"


def _statement(node: Node, text: bytes) -> Iterator[Edit]:
    inner = node.named_children[0] if node.named_children else None
    if inner is None or inner.type not in ("assignment_expression", "call_expression", "update_expression"):
        return
    right = _text(node, text)
    if re.match(r"(BCU_|static_assert|assert)", right):
        return
    yield "statement", node, right, ";", "statement"
    operator = inner.child_by_field_name("operator")
    if inner.type == "assignment_expression" and operator is not None and operator.type in ASSIGNED:
        sides = [_text(s, text) for n in ("left", "right") if (s := inner.child_by_field_name(n)) is not None]
        yield "assignment", node, right, f"{sides[0]} {ASSIGNED[operator.type]} {sides[1]};", "statement"


def _call(node: Node, text: bytes) -> Iterator[Edit]:
    called = node.child_by_field_name("function")
    if called is None:
        return
    name = _text(called, text)
    head = re.match(r"((?:\w+::)*)(\w+)", name)
    if head and head[2] in RENAMED:
        wrong = head[1] + RENAMED[head[2]] + name[head.end() :]
        right = _text(node, text)
        yield "name", node, right, wrong + right[len(name) :], "expression"


def _of_python(node: Node, text: bytes) -> Iterator[Edit]:
    kind = node.type
    if kind in ("binary_operator", "boolean_operator"):
        yield from _binary(node, text, str)
    elif kind == "comparison_operator":
        operators = [c for c in node.children if c.type in SWAPPED]
        if len(operators) == 1:
            wrong = SWAPPED[operators[0].type]
            yield "comparison", operators[0], _text(operators[0], text), wrong, "expression"
    elif kind in ("integer", "float"):
        yield from _number(node, text)
    elif kind in ("true", "false"):
        yield "constant", node, kind.title(), "False" if kind == "true" else "True", "expression"
    elif kind == "not_operator":
        yield "logic", node, _text(node, text), f"({_text(node.named_children[0], text)})", "expression"
    elif kind == "if_statement":
        at = node.child_by_field_name("condition")
        if at is not None:
            yield "condition", at, _text(at, text), f"not ({_text(at, text)})", "expression"
    elif kind in ("expression_statement", "raise_statement"):
        inner = node.named_children[0] if node.named_children else None
        if inner is None or not (inner.type in ("string", "ellipsis") or _only_annotates(inner)):
            yield "statement", node, _text(node, text), "pass", "statement"


def _only_annotates(node: Node) -> bool:
    """`x: int` of a function, which no process evaluates."""
    inside = node
    while inside.parent is not None and inside.type not in ("function_definition", "class_definition"):
        inside = inside.parent
    bare = node.type == "assignment" and node.child_by_field_name("right") is None
    return bare and inside.type == "function_definition"


def with_switches(text: bytes, chosen: list[tuple[int, Mutant]]) -> bytes:
    """A C++ file in which the given mutants, none inside another, stand beside the right code."""
    for number, m in sorted(chosen, key=lambda c: -c[1].start):
        on = f"::bcu_mutation::on<{number}>()"
        statement = f"if ({on}) {{ {m.wrong} }} else {m.right}"
        beside = statement if m.form == "statement" else f"({on} ? ({m.wrong}) : ({m.right}))"
        text = text[: m.start] + beside.encode() + text[m.end :]
    return text


def replaced(text: bytes, m: Mutant) -> bytes:
    """A file with one mutant in place of the right code."""
    return text[: m.start] + m.wrong.encode() + text[m.end :]
