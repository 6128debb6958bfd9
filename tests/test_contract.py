"""Table, specs, references, docs and generated files agree; a new op is complete or this fails."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulated import is_run

from baracuda import _core, _index
from baracuda.call.op import Function, NotDifferentiable, Op
from baracuda.choose.sku import rows
from baracuda.describe.elements import Element
from baracuda.prove.reference import reference_module
from conftest import FULL, SEED

ROOT = Path(__file__).resolve().parent.parent


def test_bounds_of_an_op_can_be_compared() -> None:
    """`max_error` compares constants: rows of an op in one direction promise in ulp or in sum, or exactly."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for row in rows():
        kinds.setdefault((row["op"], row["direction"]), set()).add(row["bound"])
    assert not {op: found for op, found in kinds.items() if found >= {"ulp", "sum"}}


def test_every_row_has_a_spec_and_every_spec_a_row() -> None:
    declared = {r["op"] for r in rows()}
    assert declared - set(_index.OPS) == set(), "rows without a spec"
    assert set(_index.OPS) - declared == set(), "specs without a row"


GPU_ROWS = [r for r in rows() if r["proof"] == "emulated"]


@pytest.mark.parametrize(
    "row", GPU_ROWS, ids=[f"{r['backend']}-{r['op']}-{r['direction']}-{r['index']}" for r in GPU_ROWS]
)
def test_a_row_that_says_emulated_is_run(row: dict[str, Any]) -> None:
    """By test_device_guarantee; a row that is not may only say "compiled"."""
    assert is_run(row, FULL, SEED), (
        "none of the reference's cases reaches this row: add one, or declare the row compiled"
    )


def test_every_cpu_row_has_a_kernel() -> None:
    state = _core.backend_state("cpu")
    assert state["present"], state["reason"]


def test_generated_files_are_fresh() -> None:
    done = subprocess.run([sys.executable, ROOT / "ci" / "generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_op_is_complete(op_name: str, op_spec: Op) -> None:
    directions = {r["direction"] for r in rows() if r["op"] == op_name}
    assert "forward" in directions or op_spec.forward.direction == "backward"
    if isinstance(op_spec.backward, NotDifferentiable):
        assert "backward" not in directions
        assert op_spec.backward.why
    elif "backward" in directions:
        assert op_spec.backward.direction == "backward"
    assert op_spec.summary
    assert op_spec.forward.__doc__, "a descriptor needs a docstring"
    module = reference_module(op_name)
    assert callable(module.cases), "a reference needs cases()"
    assert callable(module.reference), "a reference needs reference()"
    assert module.__doc__, "a reference module needs a docstring"
    if op_name in _index.FUNCTIONS:
        found = getattr(import_module(_index.FUNCTIONS[op_name]), op_name)
        assert found.__doc__
        if isinstance(found, Function):
            parts = ("Elements, error bounds", op_spec.forward.__name__, "Gradient: ", "Raises:")
            missing = [
                p
                for p in parts
                if p not in found.__doc__ and not (p == "Gradient: " and "No gradient" in found.__doc__)
            ]
            assert not missing, f"the docstring of {op_name} has no {missing}"


def test_an_op_that_no_index_knows_yet_gets_its_docs() -> None:
    """The first run after a row and a spec were added; the index of this process has lost an op here."""
    code = (
        "import sys; sys.path.insert(0, 'ci'); sys.argv = ['generate', '--check']\n"
        "import generate; generate.use_this_tree()\n"
        "from baracuda import _index; del _index.OPS['exp'], _index.FUNCTIONS['exp']\n"
        "sys.exit(generate.main())"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_names_agree_with_the_table(op_name: str, op_spec: Op, direction: str) -> None:
    """Tensors, scalars and attributes have the names and the order that kernels know them by (BCU_ARGS, BCU_ATTRS)."""
    declared = [r for r in rows() if (r["op"], r["direction"]) == (op_name, direction)]
    cls = op_spec.forward if direction == "forward" else op_spec.backward
    if isinstance(cls, NotDifferentiable) or cls.direction != direction or not declared:
        return
    names, attributes = {(r["tensors"], r["scalars"]) for r in declared}, {tuple(r["attributes"]) for r in declared}
    assert len(names) == 1, f"rows of {op_name} name their arguments in several ways: {names}"
    assert len(attributes) == 1, f"rows of {op_name} have several lists of attributes: {attributes}"
    (tensors, scalars), listed = names.pop(), attributes.pop()
    element = Element(next(e for r in declared for e in r["elements"]))
    for case in reference_module(op_name).cases(op_name, direction, element, np.random.default_rng(0)):
        signature, values = case.descriptor.signature(), case.descriptor.attributes()
        assert ", ".join(p.name for p in signature.params) == tensors
        assert ", ".join(s.name for s in signature.scalars) == scalars
        assert list(values) == [name for _, name in listed]
        for kind, name in listed:
            assert isinstance(values[name], float) == (kind == "f64"), f"{op_name}.{name}: {values[name]!r} for {kind}"
