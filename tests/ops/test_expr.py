"""Fused expressions: bits of the functions one after the other, whatever is fused; views, refusals, explanations."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import baracuda as bc
import baracuda.functional as F
from baracuda.describe.elements import Element
from baracuda.ops.expr.expr import ExprDescriptor
from baracuda.ops.expr.expr_ref import DIVISIONS, answers, functions, unfused

RNG = np.random.default_rng(5)


def floats(*shape: int, dtype: Any = np.float32) -> Any:
    return np.asarray(RNG.normal(size=shape) * 3, dtype)


def same(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.kind in "fV":
        a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[a == 0]))
    np.testing.assert_array_equal(a, b)


def sizes(e: Element, rng: np.random.Generator) -> Any:
    """Arrays of an element, with special values in between."""
    if e is Element.BOOL:
        return lambda shape: rng.integers(0, 2, shape).astype(bool)
    if e.is_integer:
        info = np.iinfo(e.numpy)
        return lambda shape: rng.integers(max(info.min, -1000), min(info.max, 1000), shape, endpoint=True).astype(
            e.numpy
        )
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40], e.compute.numpy)

    def made(shape: Any) -> Any:
        x = (rng.normal(size=shape) * 3).astype(e.compute.numpy)
        return np.where(rng.random(shape) < 0.1, rng.choice(odd, shape), x).astype(e.numpy)

    return made


# --- random programs ------------------------------------------------------------------------------------------------

REAL = [e for e in Element if e.is_float or e.is_integer or e is Element.BOOL]
REAL = [e for e in REAL if e.bits >= 8 and e not in (Element.F8E4M3, Element.F8E5M2)]
KNOWN = {e: [f for f in functions(e) if f[0] not in DIVISIONS and not f[0].startswith("where_backward")] for e in REAL}


@st.composite
def programs(draw: Any) -> tuple[str, list[Element], list[Element]]:
    """A program of one compute element, or with casts in between; its inputs' elements and its outputs'."""
    inputs = draw(st.lists(st.sampled_from(REAL), min_size=1, max_size=4))
    e = draw(st.sampled_from(REAL))
    of = {k: x for k, x in enumerate(inputs)}
    text = [f"inputs {len(inputs)};"]

    def add(line: str, result: Element) -> int:
        of[len(of)] = result
        text.append(line)
        return len(of) - 1

    def operand(wanted: Element, any_float: bool = True) -> int:
        at = draw(st.sampled_from(sorted(values)))
        fits = of[at] is wanted or (any_float and wanted.is_float and not of[at].is_float and of[at].bits <= 16)
        return at if fits else add(f"cast {wanted} {at};", wanted)

    values = set(of)
    for _ in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 5)) == 0:
            e = draw(st.sampled_from(REAL))
        name, arrays, numbers = draw(st.sampled_from(KNOWN[e]))
        args = [operand(e, "_backward" not in name) for _ in range(arrays)]
        if name == "where":
            args[0] = add(f"gt {e} {args[1]} {args[2]};", Element.BOOL)
        args += [add(f"number {e} {n};", e) for n in numbers]
        values.add(add(f"{name} {e} {' '.join(map(str, args))};", Element.BOOL if answers(name) else e))
    outputs = draw(st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=3))
    return " ".join([*text, *(f"out {k};" for k in outputs)]), inputs, [of[k] for k in outputs]


@settings(max_examples=250, deadline=None)
@given(
    programs(),
    st.sampled_from([(), (1,), (63,), (130,), (5, 70), (3, 1, 2, 1, 2, 1, 1, 3), (0, 3), (90, 66)]),
    st.data(),
)
def test_random_programs(made: tuple[str, list[Element], list[Element]], shape: Any, data: Any) -> None:
    text, inputs, results = made
    arrays, rng = [], np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))  # so that a failure happens again
    for e in inputs:
        own = tuple(1 if data.draw(st.integers(0, 3)) == 0 else n for n in shape)
        own = own[data.draw(st.integers(0, len(own))) :] if data.draw(st.booleans()) else own
        x = sizes(e, rng)(own)
        if own and data.draw(st.integers(0, 3)) == 0:  # any strides
            x = np.repeat(x, 2, axis=0)[::2] if data.draw(st.booleans()) else np.asfortranarray(x)[::-1]
        arrays.append(x)
    desc = ExprDescriptor(text, shape, tuple(x.shape for x in arrays), tuple(inputs), tuple(results))
    plan = bc.plan(desc)
    found = [np.empty(shape, e.numpy) for e in results]
    plan.run(*arrays, *found)
    with np.errstate(all="ignore"):
        wanted = unfused(text, arrays)
        for e, y, want in zip(results, found, wanted, strict=True):
            if not _unspecified(text):
                same(y, np.broadcast_to(want, shape).astype(e.numpy))


def _unspecified(text: str) -> bool:
    """Whether floats become integers, which may not hold them."""
    lines = [line.split() for line in text.rstrip(";").split(";")]
    return any(w[0] == "cast" and not Element.coerce(w[1]).is_float and w[1] != "bool" for w in lines)


# --- functions ------------------------------------------------------------------------------------------------------


def chain(x: Any, w: Any) -> Any:
    return F.sub(F.relu(F.mul(F.add(x, w), 0.5)), F.div(F.sigmoid(x), F.add(1, F.exp(F.neg(F.abs(w))))))


def test_operators() -> None:
    x, w = floats(7, 30), floats(30)
    fused = bc.expr.fuse(lambda x, w: F.relu((x + w) * 0.5) - F.sigmoid(x) / (1 + F.exp(-abs(w))))
    same(fused(x, w), chain(x, w))
    i, j = RNG.integers(0, 99, (4, 5)), RNG.integers(1, 9, 5)
    fused = bc.expr.fuse(
        lambda i, j: ((i % j) << 2) + (i // j >> 1) - (~i & j | i ^ j) + 2**j - (i > j) * (1 + (i == j))
    )
    same(fused(i, j), ((i % j) << 2) + (i // j >> 1) - (~i & j | i ^ j) + 2**j - (i > j) * (1 + (i == j)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", [((), ()), ((300,), (300,)), ((70, 1), (1, 90)), ((0, 4), (4,)), ((5000,), (1,))])
def test_bits_of_the_functions(dtype: Any, shapes: Any) -> None:
    x, w = (floats(*s, dtype=dtype) for s in shapes)
    same(bc.expr.fuse(chain)(x, w), chain(x, w))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_halves_are_rounded_once(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, w = (floats(90, 70).astype(kind) for _ in range(2))
    wanted = chain(x.astype(np.float32), w.astype(np.float32)).astype(kind)
    same(bc.expr.fuse(chain)(x, w), wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint16, np.int64])
def test_integers_wrap_after_every_function(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x, w = (RNG.integers(max(info.min, -(2**62)), min(info.max, 2**62), (40, 33)).astype(dtype) for _ in range(2))

    def fn(x: Any, w: Any) -> Any:
        return F.where((x * x + w > w) & (x != 0), F.bitwise_xor(x * 7, w) - 1, F.maximum(x, w))

    same(bc.expr.fuse(fn)(x, w), fn(x, w))


def test_mixed_elements() -> None:
    x, i, m = floats(30, 50), RNG.integers(-9, 9, 50), RNG.integers(0, 2, (30, 1)).astype(bool)

    def fn(x: Any, i: Any, m: Any) -> Any:
        return F.where(m, F.mul(x, i), F.add(F.cast(F.remainder(i, 4), "f64"), x)), F.add(F.mul(i, 3), m)

    for found, wanted in zip(bc.expr.fuse(fn)(x, i, m), fn(x, i, m), strict=True):
        same(found, wanted)


def test_views_of_arguments() -> None:
    x, w, b = floats(50, 30), floats(30, 50), floats(60)

    def fn(x: Any, w: Any, b: Any) -> Any:
        return F.tanh((x * 2).T + w) * b[10:] + x.transpose(0, 1)[:, None, :][:, 0] + w.mT.T

    def want(x: Any, w: Any, b: Any) -> Any:
        return F.add(F.add(F.mul(F.tanh(F.add(F.mul(x, 2).T, w)), b[10:]), x.T), w)

    same(bc.expr.fuse(fn)(x, w, b), want(x, w, b))
    turned = bc.expr.fuse(lambda x, w: F.relu((x.T + w) / 2))
    same(turned(x, w), F.relu(F.div(F.add(x.T, w), 2)))
    same(turned(x[::-1, ::2], w[1::2]), F.relu(F.div(F.add(x[::-1, ::2].T, w[1::2]), 2)))


def test_results_that_are_arguments() -> None:
    x, w = floats(7, 3), floats(3)
    made = bc.expr.fuse(lambda x, w: (x, w.expand(7, 3), x.T, x + w))(x, w)
    for found, wanted in zip(made, (x, np.broadcast_to(w, (7, 3)), x.T, x + w), strict=True):
        same(found, wanted)
        assert not np.shares_memory(found, x)


def test_what_is_not_of_elements_stays_a_call() -> None:
    x, w = floats(20, 30), floats(30)

    def fn(x: Any, w: Any) -> Any:
        return F.softmax(x * 2 + w, -1) * w + F.cumsum(F.square(x), -1)

    expr = bc.expr.fuse(fn)
    same(expr(x, w), fn(x, w))
    told = expr.explain(x, w)
    assert len(told.kernels) == 3
    assert [why.partition(":")[0] for why in told.not_fused] == ["softmax", "cumsum"]
    assert "softmax is not a function of single elements" in str(told)
    with pytest.raises(bc.InvalidProblemError, match="one kernel"):
        expr.plan(x, w)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", [(5, 40), (300, 700), (3, 50000), (1, 70001), (2, 3, 4), (0, 3), (4, 0)])
def test_reductions_behind_functions(shape: Any, keepdim: bool, dtype: Any) -> None:
    x, w = floats(*shape, dtype=dtype), floats(shape[-1], dtype=dtype)

    def fn(x: Any, w: Any) -> Any:
        y = F.tanh(F.mul(x, w))
        return F.sum(y, -1, keepdim), y, F.mean(F.square(y), -1, keepdim)

    expr = bc.expr.fuse(fn)
    told = expr.explain(x, w)
    assert len(told.kernels) == 1 and not told.not_fused
    for found, wanted in zip(expr(x, w), fn(x, w), strict=True):
        same(found, wanted)
    turned = bc.expr.fuse(lambda x: F.sum(F.exp(x.T), (-2, -1)))  # any strides
    same(turned(x), F.sum(F.exp(np.ascontiguousarray(x.T)), (-2, -1)))


def softmax_like(x: Any, w: Any) -> Any:
    y = F.mul(F.add(F.mul(x, 0.5), w), 1)
    e = F.exp(F.sub(y, F.amax(y, -1, keepdim=True)))
    total = F.sum(e, -1, keepdim=True)
    return F.div(e, total), F.log(total)


def norm_like(x: Any, w: Any) -> Any:
    centred = F.sub(x, F.mean(x, -1, keepdim=True))
    scale = F.rsqrt(F.add(F.mean(F.square(centred), -1, keepdim=True), 1e-5))
    return F.mul(F.mul(centred, scale), w), scale, F.amin(centred, -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 40), (300, 700), (3, 8000), (2, 3, 4), (0, 3), (9, 1)])
@pytest.mark.parametrize("fn", [softmax_like, norm_like])
def test_functions_of_what_is_reduced(fn: Any, shape: Any, dtype: Any) -> None:
    x, w = floats(*shape, dtype=dtype), floats(shape[-1], dtype=dtype)
    expr = bc.expr.fuse(fn)
    told = expr.explain(x, w)
    assert len(told.kernels) == 1 and not told.not_fused, told
    for found, wanted in zip(expr(x, w), fn(x, w), strict=True):
        same(found, wanted)


def test_in_place_behind_a_reduction() -> None:
    x = floats(40, 300)
    expr = bc.expr.fuse(lambda x: F.div(F.mul(x, 2), F.sum(F.square(x), -1, keepdim=True)))
    wanted = expr(x)
    same(expr(x, out=x), wanted)


def test_reductions_of_other_rows_go_on_from_memory() -> None:
    x, w = floats(30, 30), floats(4, 30, 30)
    for fn, kernels, why in (
        (lambda x, w: F.sub(F.mul(x, 2), F.mean(F.square(x), -1)), 2, ""),  # one for a column
        (lambda x, w: F.mul(F.sum(F.square(x), -1, keepdim=True), w), 2, ""),  # of rows that w has more of
        (lambda x, w: F.sum(F.mul(x, F.sum(F.square(x), -1, keepdim=True)), (-2, -1)), 2, ""),  # over other axes
        (lambda x, w: F.mul(x, F.sum(F.square(x), -1, keepdim=True)).T, 2, ""),  # seen in another way
        (lambda x, w: F.sum(F.mul(F.sum(F.square(w), -1, keepdim=True), 2), -1), 1, "call of its own"),
    ):
        expr = bc.expr.fuse(fn)
        told = expr.explain(x, w)
        same(expr(x, w), fn(x, w))
        assert len(told.kernels) == kernels or why in str(told), told
    long = floats(3, 20000)
    told = bc.expr.fuse(softmax_like).explain(long, long)
    assert "at most 8192 elements" in str(told) and "in a kernel before" in str(told), told


def test_reductions_that_are_not_fused_say_why() -> None:
    x = floats(3, 9000)
    for fn, why in (
        (lambda x: F.amax(F.exp(x), -1), "at most 8192 elements"),
        (lambda x: F.sum(F.exp(x), 0), "only the last axes"),
        (lambda x: F.sum(x, -1), "nothing is computed before"),
        (lambda x: F.sum(F.cast(F.exp(F.cast(x, "f64")), "f32"), -1), "one compute type"),
    ):
        expr = bc.expr.fuse(fn)
        same(expr(x), fn(x))
        assert why in str(expr.explain(x))


def test_fused_functions_inside_of_others() -> None:
    x, w = floats(4, 5), floats(5)
    inner = bc.expr.fuse(lambda x, w: F.relu(x + w))
    outer = bc.expr.fuse(lambda x, w: inner(x, w) * 2)
    assert len(outer.explain(x, w).kernels) == 1
    same(outer(x, w), F.mul(F.relu(F.add(x, w)), 2))


def test_common_subexpressions_are_computed_once() -> None:
    x = floats(10)
    expr = bc.expr.fuse(lambda x: F.exp(x) / (1 + F.exp(x)))
    told = expr.explain(x)
    assert told.shared == 1
    assert told.kernels[0].program.count("exp") == 1  # type: ignore[attr-defined]
    same(expr(x), F.div(F.exp(x), F.add(1, F.exp(x))))


def test_options_out_and_kinds_of_arrays() -> None:
    torch = pytest.importorskip("torch")

    def fn(x: Any, *, slope: float, name: str = "a") -> Any:
        """Leaks."""
        return F.leaky_relu(x, slope)

    expr, x = bc.expr.fuse(fn), floats(100)
    for slope in (0.5, 0.25, 0.5):
        same(expr(x, slope=slope), F.leaky_relu(x, slope))
    assert expr._cache_size == 2
    out = np.empty_like(x)
    assert expr(x, slope=2.0, out=out) is out
    same(out, F.leaky_relu(x, 2.0))
    y = expr(torch.from_numpy(x), slope=2.0)
    assert isinstance(y, torch.Tensor)
    same(y.numpy(), out)
    assert (expr.__name__, expr.__doc__ is not None) == ("fn", True)
    assert pickle.loads(pickle.dumps(bc.expr.fuse(chain)))(x, x).shape == (100,)


def test_in_place_with_several_outputs() -> None:
    x, w = floats(5000), floats(5000)
    plan = bc.expr.fuse(lambda x, w: (x + w, x * w, x - w)).plan(x, w)
    wanted, a, b = (x + w, x * w, x - w), x.copy(), np.empty_like(x)
    plan.run(a, w, a, b, w_out := np.empty_like(x))
    for found, want in zip((a, b, w_out), wanted, strict=True):
        same(found, want)


def test_threads_do_not_change_bits() -> None:
    x, w = floats(300, 1000), floats(1000)
    expr, found = bc.expr.fuse(chain), []
    for threads in (1, 2, 3):
        bc.set_num_threads(threads)
        found.append(expr(x, w))
    bc.set_num_threads(0)
    same(found[0], found[1])
    same(found[0], found[2])


def test_sixteen_inputs_and_eight_outputs() -> None:
    arrays = [floats(37, 41) if k % 2 else floats(41) for k in range(16)]
    names = [f"a{k}" for k in range(16)]
    space: dict[str, Any] = {"F": F}
    parts = ", ".join(f"F.tanh(a{2 * k} * a{2 * k + 1} + a{(5 * k) % 16})" for k in range(8))
    exec(f"def fn({', '.join(names)}): return ({parts})", space)
    for found, wanted in zip(bc.expr.fuse(space["fn"])(*arrays), space["fn"](*arrays), strict=True):
        same(found, wanted)
    over = bc.expr.fuse(lambda x: tuple(x + k for k in range(9)))
    with pytest.raises(bc.InvalidProblemError, match="results: got 9, want 1 to 8"):
        over(floats(3))


def test_division_by_zero_is_an_error() -> None:
    expr = bc.expr.fuse(lambda a, b: F.floor_divide(a + 1, b) * 2)
    a, b = np.arange(100), np.ones(100, np.int64)
    same(expr(a, b), (a + 1) * 2)
    b[77] = 0
    with pytest.raises(bc.IntegerDivisionError):
        expr(a, b)


def test_documents_name_functions() -> None:
    plan = bc.expr.fuse(chain).plan(bc.TensorSpec((4, 5)), bc.TensorSpec((5,)))
    data = plan.to_bytes()
    assert b"sigmoid f32" in data
    again = bc.Plan.from_bytes(data)
    assert again.sku == plan.sku and again.descriptor == plan.descriptor
    with pytest.raises((bc.InvalidProblemError, bc.UnsupportedError)):
        bc.Plan.from_bytes(data.replace(b"sigmoid f32", b"sigmoia f32"))


def test_sizes_may_be_symbols() -> None:
    n = bc.Dim("n", max=100)
    plan = bc.plan(ExprDescriptor("inputs 1; exp f32 0; out 1;", (n,), ((n,),), (Element.F32,), (Element.F32,)))
    for size in (0, 1, 77, 100):
        x = floats(size)
        y = np.empty_like(x)
        plan.run(x, y)
        same(y, F.exp(x))


# --- gradients ------------------------------------------------------------------------------------------------------


def test_gradients_are_those_of_the_functions() -> None:
    x, w, dy = floats(30, 40), floats(40), floats(30, 40)
    expr = bc.expr.fuse(lambda x, w: F.mul(F.tanh(F.mul(x, w)), F.sigmoid(x)))
    made = expr.grad
    assert len(made.explain(dy, x, x).kernels) == 1
    assert "sum" in str(made.explain(dy, x, w))  # of the array that is broadcast
    a, pull_a = bc.vjp(F.mul, x, w)
    t, pull_t = bc.vjp(F.tanh, a)
    s, pull_s = bc.vjp(F.sigmoid, x)
    _, pull_y = bc.vjp(F.mul, t, s)
    dt, ds = pull_y(dy)
    dx, dw = pull_a(pull_t(dt))
    found = made(dy, x, w)
    same(found[0], F.add(pull_s(ds), dx))
    same(found[1], dw)


def test_gradients_through_views_and_choices() -> None:
    x, m, dy = floats(6, 7, dtype=np.float64), floats(7, 6) > 0, floats(7, 6, dtype=np.float64)
    expr = bc.expr.fuse(lambda x, m, *, slope: F.where(m, F.exp(x.T), F.leaky_relu(x.T, slope) * F.floor(x.T)))
    found, step = expr.grad(dy, x, m, slope=0.1), 1e-6
    up, down = (expr(x + d, m, slope=0.1) for d in (step, -step))
    smooth = np.abs(x - np.round(x)) > 1e-3
    np.testing.assert_allclose(found[smooth], ((up - down) / (2 * step) * dy).T[smooth], rtol=1e-5, atol=1e-7)


def test_gradients_that_there_are_not() -> None:
    x = floats(3, 4)
    for fn, match in (
        (lambda x: (x, x), "several results"),
        (lambda x: F.cumsum(x, 0) * x[0:], "not pulled back"),
        (lambda x: F.add(F.floor(x), 1), "no gradient here"),
    ):
        with pytest.raises(bc.InvalidProblemError, match=match):
            bc.expr.fuse(fn).grad(x, x)
    with pytest.raises(bc.InvalidProblemError, match="dy: got shape"):
        bc.expr.fuse(lambda x: F.exp(x)).grad(floats(3), x)


# --- refusals -------------------------------------------------------------------------------------------------------

TEXTS = {
    "": "'inputs'",
    "add f32 0 0; out 0;": "'inputs'",
    "inputs 2; out 0;": "as many inputs",
    "inputs 17; out 0;": "1 to 16 inputs",
    "inputs 1; inputs 1; out 0;": "said once",
    "inputs 1;": "at least one output",
    "inputs 1; out 1;": "an output that is a value",
    "inputs 1; out 0": "';' at the end",
    "inputs 1; exq f32 0; out 1;": "functions that can be fused",
    "inputs 1; exp c64 0; out 1;": "an element",
    "inputs 1; exp i32 0; out 1;": "elements that its functions compute in",
    "inputs 1; exp f32 1; out 1;": "operands that are values before",
    "inputs 1; exp f32 -1; out 1;": "operands that are values before",
    "inputs 1; exp f32; out 1;": "operands that are values before",
    "inputs 1; exp f32 0 0; out 1;": "no more operands",
    "inputs 1; elu f32 0 0; out 1;": "numbers behind",
    "inputs 1; number f32 x; out 0;": "a number of its element",
    "inputs 1; number i32 0.5; out 0;": "a number of its element",
    "inputs 1; exp f64 0; out 1;": "outputs of its elements",
    "inputs 1;" + " exp f32 0;" * 65 + " out 1;": "at most 64 functions",
    "inputs 1;" + " number f32 1;" * 33 + " out 0;": "at most 32 numbers",
    "inputs 1;" + " cast f32 0;" * 97 + " out 0;": "at most 96",
    "inputs 1;" + " out 0;" * 9: "at most 8 outputs",
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_are_no_programs(text: str) -> None:
    desc = ExprDescriptor(text, (3,), ((3,),), (Element.F32,), (Element.F32,))
    assert not bc.ExprPlan.query(desc)
    with pytest.raises((bc.UnsupportedError, bc.InvalidProblemError), match=TEXTS[text]):
        bc.plan(desc)


def test_refusals_of_tracing() -> None:
    x = floats(3, 4)

    def refused(fn: Any, match: str, *args: Any) -> None:
        with pytest.raises(bc.InvalidProblemError, match=match):
            bc.expr.fuse(fn)(*(args or (x,)))

    refused(lambda x: F.exp(x) if x > 0 else x, "the truth of an array")
    refused(lambda x: F.add(x, floats(4)), "no argument of the fused function")
    refused(lambda x: 3, "got a int as a result")
    refused(lambda x: F.exp(x, out=x), "out: got a tensor, want None")
    refused(lambda x, y: F.add(x, y), "y: got a number, want an array", x, 2.0)
    refused(lambda x, y: F.add(x, y), "broadcast", x, floats(5))
    refused(lambda *x: x[0], "parameters with names")

    def long(x: Any) -> Any:
        for k in range(70):
            x = F.sin(x) + k
        return x

    refused(long, "at most 64 in one kernel")
