"""The engine's enums have their names in one place: Python takes them from the extension and lists none again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import baracuda as bc
from baracuda import _core
from baracuda.choose import sku
from baracuda.describe import spec
from baracuda.describe.elements import Element
from baracuda.memory import device

PACKAGE = Path(bc.__file__).parent
NAMES = {
    name: tuple(getattr(_core, name))
    for name in (
        "backends",
        "directions",
        "verdicts",
        "roles",
        "scalar_kinds",
        "math_precisions",
        "bound_kinds",
        "cpu_levels",
    )
} | {"elements": tuple(name for name, _ in _core.element_table())}


def _listed(tree: ast.AST) -> Iterator[tuple[int, set[str]]]:
    """Texts that stand in one tuple, list or set, or are keys of one dict; whole numbers that are a dict's values."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            yield node.lineno, {e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)}
        elif isinstance(node, ast.Dict) and all(
            isinstance(v, ast.Constant) and isinstance(v.value, int) for v in node.values
        ):
            yield node.lineno, {k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_lists_them_again(path: Path) -> None:
    for line, texts in _listed(ast.parse(path.read_text())):
        for kind, names in NAMES.items():
            assert texts != set(names), f"line {line} lists the {kind}: take them from baracuda._core"


def test_a_list_would_be_seen() -> None:
    text = 'X = ("metal", "cpu", "cuda")\nY = {"float": 0, "int": 1, "unsigned": 2}'
    seen = [kind for _, texts in _listed(ast.parse(text)) for kind, names in NAMES.items() if texts == set(names)]
    assert seen == ["backends", "scalar_kinds"]


def test_python_has_all_of_them() -> None:
    assert {e.name.lower(): int(e) for e in Element} == {name: code for code, name in enumerate(NAMES["elements"])}
    assert tuple(NAMES[n] for n in ("backends", "directions", "math_precisions", "roles")) == (
        device.BACKENDS,
        sku.DIRECTIONS,
        sku.MATH,
        spec.ROLES,
    )
    assert all(len(set(names)) == len(names) for names in NAMES.values())
