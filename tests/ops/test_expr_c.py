"""Fused kernels as C: compiled by this machine's compiler, against the plans."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.expr.c_functions import FLOATS, WHOLE
from baracuda.expr.c_text import c_text
from baracuda.ops.expr import expr_ref
from baracuda.prove.reference import round_to, to_reference
from conftest import FULL, SEED

CC = next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")
REALS = [e for e in Element if (e.is_float and e.bits >= 16) or e.is_integer or e is Element.BOOL]
# In a usual run two elements, and one that is drawn.
ELEMENTS = REALS if FULL else [Element.F32, Element.I32, REALS[SEED % len(REALS)]]
# C's library has nothing to make them of, or no way that is as good.
WITHOUT = {
    "erfinv", "erfinv_backward", "lgamma_backward", "digamma", "digamma_backward", "round_decimals", "bitwise_left_shift",
    "bitwise_right_shift",
}  # fmt: skip
# Where functions have their kinks, too.
SPECIAL = np.array([*expr_ref.SPECIAL, 3, -3, 6, 2, -2, 0.5, -0.5, 20, -20])


def compiled(texts: list[str], where: Path) -> ctypes.CDLL:
    """One library of all texts, of which each is a file; warnings are errors."""
    names = []
    for k, text in enumerate(texts):
        (where / f"{k}.c").write_text(text)
        names.append(f"{k}.c")
    flags = ["-std=c11", "-O1", "-Wall", "-Werror", "-ffp-contract=off", "-shared", "-fPIC", "-o", "lib.so"]
    done = subprocess.run([str(CC), *flags, *names, "-lm"], cwd=where, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(where / "lib.so"))


def run(function: Any, desc: bc.ExprDescriptor, tensors: dict[str, np.ndarray]) -> tuple[list[Any], list[Any]]:
    """What C gives, and the plan."""
    signature, inputs = desc.signature(), [np.array(x, order="C") for x in tensors.values()]
    got, want = ([bc.zeros(p.shape, p.element) for p in signature.outputs] for _ in range(2))
    plan = bc.plan(desc)
    workspace = bc.empty(plan.workspace_size, "u8") if plan.workspace_size else None
    plan.run(*inputs, *want, workspace=workspace)
    held = [bc.asarray(x) for x in inputs]
    function(*(ctypes.c_void_p(x.address) for x in (*held, *got)))
    return got, want


def close(got: Any, want: Any, what: str, rounds: float = 32, where: Any = ...) -> None:
    a, b, element = to_reference(got.numpy())[where], to_reference(want.numpy())[where], got.element
    if not element.is_float:
        np.testing.assert_array_equal(a, b, what)
        return
    eps = 2.0 ** -{Element.F64: 52, Element.F32: 23, Element.F16: 10, Element.BF16: 7}[element]
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= rounds * eps * (np.abs(b) + 1))
    assert same.all(), (what, a[~same][:4], b[~same][:4])


def programs(e: Element) -> Iterator[tuple[list[str], str, bool]]:
    """Eight functions with an output each."""
    table = FLOATS if e.is_float else WHOLE
    known = [f for f in expr_ref.functions(e) if f[0] in table]
    for answers in (False, True):
        some = [f for f in known if expr_ref.answers(f[0]) is answers]
        for few in range(0, len(some), 8):
            text, outs, at = ["inputs 4;"], [], 4
            for name, arrays, numbers in some[few : few + 8]:
                text += [f"number {e} {n};" for n in numbers]
                operands = [*range(arrays), *range(at, at + len(numbers))]
                at += len(numbers) + 1
                text.append(f"{name} {e} {' '.join(map(str, operands))};")
                outs.append(f"out {at - 1};")
            yield [name for name, _, _ in some[few : few + 8]], " ".join(text + outs), answers


def values(e: Element, rng: np.random.Generator) -> list[np.ndarray]:
    """Numbers of any size, and for floats each special one with each other one."""
    shape = (len(SPECIAL) ** 2 + 400,)
    made = [expr_ref._values(e, shape, rng, nonzero=k == 1) for k in range(4)]
    if e.is_float:
        x, y = np.meshgrid(SPECIAL, SPECIAL)
        for k, special in enumerate((x, y, x[::-1], y[::-1])):
            made[k][: x.size] = special.ravel()
    return [round_to(x, e) if e.is_float else x.astype(e.numpy) for x in made]


@pytest.mark.parametrize("e", ELEMENTS, ids=str)
def test_every_function(e: Element, tmp_path: Path) -> None:
    """Against its own kernel, of numbers and of zeros; but for gradients, whose limits are the kernels', of infinities and NaN."""
    inputs = values(e, np.random.default_rng(SEED))
    shape, finite = inputs[0].shape, np.all([np.isfinite(to_reference(x)) for x in inputs], 0)
    todo = []
    for names, text, answers in programs(e):
        desc = bc.ExprDescriptor(text, shape, (shape,) * 4, (e,) * 4, (Element.BOOL if answers else e,) * len(names))
        todo.append((names, desc, c_text(desc, f"f{len(todo)}")))
    library = compiled([text for *_, text in todo], tmp_path)
    for k, (names, desc, _) in enumerate(todo):
        got, want = run(getattr(library, f"f{k}"), desc, {f"x{i}": x for i, x in enumerate(inputs)})
        for name, a, b in zip(names, got, want, strict=True):
            close(a, b, name, where=finite if "_backward" in name else ...)


def test_what_has_no_text_is_known() -> None:
    for e in REALS:
        table = FLOATS if e.is_float else WHOLE
        assert {name for name, *_ in expr_ref.functions(e)} - {*table} <= WITHOUT
    for name in WITHOUT:
        assert name not in FLOATS and name not in WHOLE
    with pytest.raises(bc.UnsupportedError, match="source: got digamma of float, which has no text in C"):
        bc.expr.fuse(lambda x: F.digamma(x) + 1).source(bc.TensorSpec((3,)), dialect="c")
    with pytest.raises(bc.InvalidProblemError, match="dialect: got 'wgsl', want one of program, c, cuda, metal"):
        bc.expr.fuse(lambda x: x + 1).source(bc.TensorSpec((3,)), dialect="wgsl")
    with pytest.raises(bc.UnsupportedError, match="source: got a size n, want numbers"):
        c_text(
            bc.ExprDescriptor(
                "inputs 1; neg f32 0; out 1;", (bc.Dim("n", 4),), ((bc.Dim("n", 4),),), ("f32",), ("f32",)
            ),
            "f",
        )


@pytest.mark.parametrize("e", ELEMENTS, ids=str)
def test_shapes_reductions_and_mixed_elements(e: Element, tmp_path: Path) -> None:
    """The reference's cases: broadcasting, several outputs, casts, sums of rows and what is made of them."""
    todo, names = [], {name for name, *_ in expr_ref.functions(e)}
    for case in expr_ref.cases("expr", "forward", e, np.random.default_rng(SEED)):
        desc: Any = case.descriptor
        if case.note.split(",")[0] in names:  # every function among others
            continue
        tensors = {n: round_to(x, kind) for (n, x), kind in zip(case.tensors.items(), desc.elements, strict=True)}
        # A norm divides by as little as the root of 0.001, and so do roundings.
        todo.append((desc, tensors, 32 if "norm" in case.note else 1, c_text(desc, f"f{len(todo)}")))
    assert len(todo) > 10
    library = compiled([text for *_, text in todo], tmp_path)
    for k, (desc, tensors, grown, _) in enumerate(todo):
        got, want = run(getattr(library, f"f{k}"), desc, tensors)
        length = np.prod(desc.shape[len(desc.shape) - max(map(abs, desc.reduced or (0,))) :], dtype=float)
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            close(a, b, f"{desc.program} {desc.shape} y{i}", 32 * grown * max(1.0, float(length) ** 0.5))


def test_c_of_a_function(tmp_path: Path) -> None:
    """As docs/expr.md has it: one function in C for each kernel, in the order of `explain`; a view is an argument as it is."""
    gate = bc.expr.fuse(lambda x, w, b: F.sigmoid(x * w + b) * x)
    spec = bc.TensorSpec((8, 24)), bc.TensorSpec((24,)), bc.TensorSpec((8, 1), "f16")
    text = gate.source(*spec, dialect="c")
    assert "void expression(const float* x0, const float* x1, const uint16_t* x2, float* y0)" in text
    rng = np.random.default_rng(SEED)
    x, w, b = (rng.normal(size=s.shape).astype(bc.Element(s.element).numpy) for s in spec)
    y = np.zeros((8, 24), np.float32)
    compiled([text], tmp_path).expression(*(ctypes.c_void_p(a.ctypes.data) for a in (x, w, b, y)))
    np.testing.assert_allclose(y, gate(x, w, b), rtol=2e-6, atol=1e-7)
    several = bc.expr.fuse(lambda x: F.cumsum(x * 2, 0) + 1).source(bc.TensorSpec((4, 4)), dialect="c")
    assert "void expression_0(" in several and "void expression_1(" in several
    assert gate.source(*spec, dialect="cuda") == gate.source(*spec, device="cuda")
    assert gate.source(*spec, dialect="program") == gate.source(*spec) != gate.source(*spec, device="cpu", dialect="c")
    assert bc.Engine().tang.dialect() == "c"


def drawn(rng: np.random.Generator) -> tuple[Any, dict[str, np.ndarray]]:
    """A program of exact functions: several elements, casts, broadcasting, outputs, and reductions whose values are whole."""
    every = ("f32", "f64", "f16", "bf16", "i8", "i32", "u8", "i64", "bool")
    some = every, every, ("f32", "f16", "bf16"), ("f64",)
    kinds = [Element.coerce(x) for x in some[int(rng.integers(0, len(some)))]]
    rank = int(rng.integers(0, 4))
    shape = tuple(int(n) for n in rng.integers(1, 5, rank))
    axes = int(rng.integers(0, rank + 1))
    count = int(rng.integers(1, 5))
    elements = [kinds[k] for k in rng.integers(0, len(kinds), count)]
    shapes = [
        tuple(int(n) if rng.random() < 0.7 else 1 for n in shape)[int(rng.integers(0, rank + 1)) :]
        for _ in range(count)
    ]
    shapes[0], lines = shape, [f"inputs {count};"]
    values, per_row = list(elements), [False] * count

    def add(line: str, element: Element, row: bool) -> int:
        lines.append(line)
        values.append(element)
        per_row.append(row)
        return len(values) - 1

    for _ in range(int(rng.integers(2, 14))):
        a = int(rng.integers(0, len(values)))
        e = values[a]
        b = int(rng.choice([v for v, other in enumerate(values) if other is e]))
        row = per_row[a] and per_row[b]
        what = int(rng.integers(0, 6))
        if what == 0:
            e = kinds[int(rng.integers(0, len(kinds)))]
            add(f"cast {e} {a};", e, per_row[a])
        elif what == 1 and e.is_float and axes and not per_row[a]:
            add(f"{['amax', 'amin'][int(rng.integers(0, 2))]} {e} {a} {axes};", e, True)
        elif what == 2:
            add(f"gt {e} {a} {b};", Element.BOOL, row)
        elif what == 3 and e is not Element.BOOL:
            name = ("neg", "abs", "relu", "floor")[int(rng.integers(0, 4))]
            add(f"{name} {e} {a};", e, per_row[a])
        else:
            name = ("maximum", "minimum", "mul" if e is Element.BOOL else "add")[int(rng.integers(0, 3))]
            add(f"{name} {e} {a} {b};", e, row)
    outs = sorted({int(x) for x in rng.integers(count, len(values), 3)})
    text = " ".join([*lines, *(f"out {v};" for v in outs)])
    reduced = tuple(-axes if per_row[v] else 0 for v in outs)
    desc = bc.ExprDescriptor(text, shape, tuple(shapes), tuple(elements), tuple(values[v] for v in outs), reduced)
    tensors = {
        f"x{k}": round_to(rng.integers(0, 9, s), e) for k, (s, e) in enumerate(zip(shapes, elements, strict=True))
    }
    return desc, tensors


def test_drawn_programs(tmp_path: Path) -> None:
    """Bit for bit, since their functions are exact: 600 where everything is asked, else 24."""
    rng = np.random.default_rng(SEED)
    todo: list[Any] = []
    while len(todo) < (600 if FULL else 24):
        made = drawn(rng)
        with suppress(bc.UnsupportedError):  # reductions are of one type, and of few rows' values
            bc.plan(made[0])
            todo.append(made)
    assert any(desc.reduced != (0,) * len(desc.reduced) for desc, _ in todo)
    library = compiled([c_text(desc, f"f{k}") for k, (desc, _) in enumerate(todo)], tmp_path)
    for k, (desc, tensors) in enumerate(todo):
        for i, (got, want) in enumerate(zip(*run(getattr(library, f"f{k}"), desc, tensors), strict=True)):
            np.testing.assert_array_equal(to_reference(got.numpy()), to_reference(want.numpy()), f"{desc} y{i}")
