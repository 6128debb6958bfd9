"""Products by cuBLASLt, on a library that works on the fake devices' memory: which calls it gets, which go elsewhere."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from fakecuda import MODULE, calls, failing, live, on_devices, raw_stream

import baracuda as bc

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def fake() -> ctypes.CDLL:
    library = ctypes.CDLL(MODULE)
    library.bcu_fake_cublaslt_handles.restype = ctypes.c_int64
    return library


def algorithm() -> tuple[int, int, int, int]:
    """Of the last product: parts of a sum, how they are added (2: in the accumulator's element), bytes that addresses
    are a multiple of, whether factors are cut to TF32."""
    out = (ctypes.c_int64 * 4)()
    fake().bcu_fake_cublaslt_last(out)
    return tuple(out)  # type: ignore[return-value]


@contextmanager
def without_algorithms() -> Iterator[None]:
    """The library finds an algorithm for nothing."""
    fake().bcu_fake_cublaslt_refuse(1)
    try:
        yield
    finally:
        fake().bcu_fake_cublaslt_refuse(0)


@contextmanager
def expect(products: int, heuristics: int = 0) -> Iterator[None]:
    """How often the library is called meanwhile."""
    names = ("cublasLtMatmul", "cublasLtMatmulAlgoGetHeuristic")
    before = [calls(n) for n in names]
    yield
    assert [calls(n) - b for n, b in zip(names, before, strict=True)] == [products, heuristics]


def select(a: Any, b: Any, *, sku: str = "cublaslt", **more: Any) -> Any:
    desc = bc.MatmulDescriptor(tuple(a), tuple(b), more.pop("element", "f32"), **more)
    return bc.plan(desc, "cuda", bc.PlanPreference(sku=sku, math_precision="tf32" if "tf32" in sku else "ieee"))


def put(x: Array, device: str = "cuda") -> Any:
    return bc.asarray(x, device=device)


def host(t: Any) -> Array:
    return np.asarray(t.to("cpu").numpy())


def run(plan: Any, **tensors: Any) -> Array:
    """Runs with an output and a workspace of its own, and waits."""
    if "out" not in tensors:
        out = plan.descriptor.signature().outputs[0]
        tensors["out"] = bc.zeros(out.shape, out.element, device=plan.device)
    room = bc.empty((plan.workspace_size,), "u8", device=plan.device) if plan.workspace_size else None
    plan.run(**tensors, workspace=room)
    bc.synchronize(plan.device)
    return host(tensors["out"])


def normal(*shape: int, dtype: Any = np.float32) -> Array:
    return RNG.normal(size=shape).astype(dtype)


def close(got: Array, want: Array, tolerance: float = 1e-5) -> bool:
    return bool(np.allclose(np.asarray(got, np.float64), want, rtol=tolerance, atol=tolerance * 10))


@on_devices
@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "f64"])
def test_it_is_taken_before_the_tiles_and_after_thin_products(element: str) -> None:
    def variant(m: int, **wish: Any) -> str:
        desc = bc.MatmulDescriptor((m, 64), (64, 48), element)
        return str(bc.plan(desc, "cuda", bc.PlanPreference(**wish)).sku.variant)

    assert [variant(32), variant(8)] == ["cublaslt", "simt_thin"]
    assert variant(32, max_error=8.0) == variant(32, batch_invariant=True) == "simt"
    assert variant(32, math_precision="tf32") == "cublaslt"
    if element == "f32":
        assert variant(32, math_precision="tf32", sku="cublaslt_tf32") == "cublaslt_tf32"
        with pytest.raises(bc.UnsupportedError, match="math_precision"):
            variant(32, sku="cublaslt_tf32")


@on_devices
def test_tf32_is_less_precise_and_only_where_it_is_asked_for() -> None:
    a, b = normal(24, 40), normal(40, 32)
    want = a.astype(np.float64) @ b
    strict, loose = (run(select(a.shape, b.shape, sku=s), a=put(a), b=put(b)) for s in ("cublaslt", "cublaslt_tf32"))
    assert algorithm() == (1, 0, 16, 1)
    assert close(strict, want) and not close(loose, want) and close(loose, want, 1e-2)


LAYOUTS = {
    "plain": (lambda x: put(x), 1),
    "transposed": (lambda x: put(np.ascontiguousarray(x.T)).transpose(), 1),
    "wider rows": (lambda x: put(np.pad(x, ((0, 0), (0, 8))))[:, : x.shape[1]], 1),
    "odd rows": (lambda x: put(np.pad(x, ((0, 0), (0, 3))))[:, : x.shape[1]], 1),
    "odd address": (lambda x: put(np.pad(x, ((0, 0), (3, 5))))[:, 3 : 3 + x.shape[1]], 1),
    "every second column": (lambda x: put(np.repeat(x, 2, 1))[:, ::2], 0),
    "backwards": (lambda x: put(np.ascontiguousarray(x[::-1]))[::-1], 0),
}


@on_devices
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
def test_layouts_that_it_knows_are_one_call_and_all_others_tiles(left: str, right: str, bias: bool) -> None:
    a, b, c = normal(24, 40), normal(40, 32), normal(24, 32)
    with expect(0, heuristics=8):
        plan = select(a.shape, b.shape, bias=bias, c_shape=c.shape)
    (lay_a, known_a), (lay_b, known_b) = LAYOUTS[left], LAYOUTS[right]
    vector = {"bias": normal(32)} if bias else {}
    with expect(known_a * known_b):
        got = run(
            plan, a=lay_a(a), b=lay_b(b), c=put(c), alpha=0.5, beta=-2.0, **{k: put(v) for k, v in vector.items()}
        )
    assert close(got, 0.5 * (a.astype(np.float64) @ b) - 2.0 * c + vector.get("bias", 0))


@on_devices
def test_outputs_and_c() -> None:
    a, b, c = normal(24, 40), normal(40, 32), normal(24, 32)
    product = a.astype(np.float64) @ b
    plan = select(a.shape, b.shape, c_shape=c.shape)
    x = {"a": put(a), "b": put(b)}
    with expect(4):
        assert close(run(plan, **x, c=put(np.full_like(c, np.nan)), beta=0.0), product)  # not read
        same = put(c)
        assert close(run(plan, **x, c=same, out=same), product + c)  # in place
        wide = bc.zeros((24, 50), device="cuda")
        assert close(run(plan, **x, c=put(c), out=wide[:, 5:37]), product + c)
        assert close(
            run(plan, **x, c=put(c.T.copy()).transpose(), out=bc.zeros((32, 24), device="cuda").transpose()),
            product + c,
        )
    assert not host(wide)[:, :5].any() and not host(wide)[:, 37:].any()
    with_bias = select(a.shape, b.shape, bias=True)
    vector = normal(33)
    for start, products in ((0, 1), (1, 0)):  # a bias that packs of 16 bytes do not divide
        with expect(products):
            got = run(with_bias, **x, bias=put(vector)[start : start + 32])
        assert close(got, product + vector[start : start + 32])
    with expect(0):  # C the other way round, a C that is scaled on the device, every second column
        assert close(run(plan, **x, c=put(c.T.copy()).transpose()), product + c)
        assert close(run(plan, **x, c=put(c), beta=put(np.float32(3)), alpha=put(np.float32(2))), 2 * product + 3 * c)
        assert close(run(plan, **x, c=put(c), out=bc.zeros((24, 64), device="cuda")[:, ::2]), product + c)
    row = select(a.shape, b.shape, c_shape=(32,))
    with expect(1):  # as a bias
        assert close(run(row, **x, c=put(c[0])), product + c[0])
    with expect(0):
        assert close(run(row, **x, c=put(c[0]), beta=2.0), product + 2 * c[0])


@on_devices
def test_batches_are_one_call_where_one_stride_reaches_them() -> None:
    a, b = normal(2, 3, 24, 16), normal(2, 3, 16, 20)
    want = a.astype(np.float64) @ b
    plan = select(a.shape, b.shape)
    heads = put(np.ascontiguousarray(a.transpose(0, 2, 1, 3))).transpose(0, 2, 1, 3)
    for left, right, products in ((put(a), put(b), 1), (heads, put(b), 2)):
        with expect(products):
            assert close(run(plan, a=left, b=right), want)
    one = select((3, 24, 16), (16, 20))  # rows of one product
    with expect(1):
        assert close(run(one, a=put(a[0]), b=put(b[0, 0])), a[0].astype(np.float64) @ b[0, 0])
    both = select((2, 1, 24, 16), (3, 16, 20))
    with expect(2):
        assert close(run(both, a=put(a[:, :1]), b=put(b[0])), a[:, :1].astype(np.float64) @ b[0])
    gradient = select((3, 24, 16), (3, 16, 20), batch_shape=())  # one long sum if A is stored the other way
    with expect(1):
        transposed = put(np.ascontiguousarray(a[0].transpose(0, 2, 1))).transpose(0, 2, 1)
        assert close(run(gradient, a=transposed, b=put(b[0])), (a[0].astype(np.float64) @ b[0]).sum(0))


@on_devices
@pytest.mark.parametrize(
    ("a", "b", "more", "want"),
    [
        ((0, 16), (16, 20), {}, "elements"), ((24, 0), (0, 20), {}, "terms"), ((9, 70000), (70000, 9), {}, "65536"),
        ((9, 40), (40, 16), {"c_shape": (9, 1)}, "c_shape"), ((9, 40), (40, 16), {"c_shape": (16,)}, ""),
        ((70, 1, 9, 9), (2, 70, 1, 9, 9), {}, ""), ((66, 1, 9, 9), (66, 9, 9), {}, "64 calls"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused_with_reasons(a: Any, b: Any, more: Any, want: str) -> None:
    desc = bc.MatmulDescriptor(a, b, **more)
    support = type(desc).plan_class.query(desc, "cuda", bc.PlanPreference(sku="cublaslt"))
    assert bool(support) == (not want) and want in str(support)
    assert type(desc).plan_class.query(desc, "cuda")


@on_devices
def test_long_sums_use_the_workspace_that_the_plan_asks_for() -> None:
    a, b = normal(24, 600), normal(600, 32)
    plan = select(a.shape, b.shape)
    assert plan.workspace_size > 2 * 24 * 32 * 4
    assert close(run(plan, a=put(a), b=put(b)), a.astype(np.float64) @ b, 1e-4)
    for start in (64, 128, 192):  # any multiple of 64 will do
        room = bc.empty((plan.workspace_size + start,), "u8", device="cuda")[start:]
        out = bc.zeros((24, 32), device="cuda")
        plan.run(a=put(a), b=put(b), out=out, workspace=room)
        assert close(host(out), a.astype(np.float64) @ b, 1e-4)
    with pytest.raises(bc.WorkspaceTooSmallError):
        plan.run(a=put(a), b=put(b), out=bc.zeros((24, 32), device="cuda"))
    wish = bc.PlanPreference(sku="cublaslt", max_workspace_bytes=0)
    small = bc.plan(plan.descriptor, "cuda", wish)
    assert small.workspace_size == 0 and close(run(small, a=put(a), b=put(b)), a.astype(np.float64) @ b, 1e-4)


@on_devices
@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "f64"])
def test_sums_are_never_added_in_the_outputs_element_or_in_an_order_of_chance(element: str) -> None:
    plan = select((24, 600), (600, 32), element=element)
    x = {n: bc.zeros(s, element, device="cuda") for n, s in (("a", (24, 600)), ("b", (600, 32)))}
    run(plan, **x)
    assert algorithm() == (2, 2, 16, 0)
    odd = bc.zeros((24, 616), element, device="cuda")[:, 1:601]
    run(plan, a=odd, b=x["b"])
    assert algorithm()[2] < 16


@on_devices
def test_sizes_that_vary_take_the_algorithm_of_the_largest() -> None:
    plan = bc.plan(bc.MatmulDescriptor((bc.Dim("m", max=64), 40), (40, 32)), "cuda", bc.PlanPreference(sku="cublaslt"))
    b = normal(40, 32)
    for m in (64, 33, 1, 0):
        a = normal(m, 40)
        with expect(int(m > 0)):
            got = run(plan, a=put(a), b=put(b), out=bc.zeros((m, 32), device="cuda"))
        assert close(got, a.astype(np.float64) @ b)


@on_devices
def test_a_plan_belongs_to_its_device_and_runs_in_the_stream_it_is_given() -> None:
    a, b = normal(24, 40), normal(40, 32)
    plan = bc.plan(bc.MatmulDescriptor(a.shape, b.shape), "cuda:1", bc.PlanPreference(sku="cublaslt"))
    x, y, out = put(a, "cuda:1"), put(b, "cuda:1"), bc.zeros((24, 32), device="cuda:1")
    with raw_stream(1) as stream:
        bc.synchronize("cuda:1")
        plan.run(a=x, b=y, out=out, stream=stream)
        assert live().pending == 1
        bc.synchronize("cuda:1")
        assert close(host(out), a.astype(np.float64) @ b)
    assert 1 <= fake().bcu_fake_cublaslt_handles() <= 2  # one a device, for the life of the process


@on_devices
@pytest.mark.parametrize(
    "function",
    ["cublasLtMatmulDescInit_internal", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutInit_internal",
     "cublasLtMatrixLayoutSetAttribute", "cublasLtMatmul"],
)  # fmt: skip
def test_a_launch_that_fails_names_function_and_status(function: str) -> None:
    plan = select((24, 40), (40, 32))
    x = {"a": put(normal(24, 40)), "b": put(normal(40, 32)), "out": bc.zeros((24, 32), device="cuda")}
    with failing(f"{function}:1"), pytest.raises(bc.DeviceError) as error:
        plan.run(**x)
    assert function.removesuffix("_internal") in str(error.value) and "EXECUTION_FAILED" in str(error.value)
    plan.run(**x)  # nothing is left of it


@on_devices
@pytest.mark.parametrize(
    "function",
    ["cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmulPreferenceInit_internal", "cublasLtMatmulPreferenceSetAttribute"],
)
def test_a_select_that_fails_names_function_and_status(function: str) -> None:
    with failing(f"{function}:1"), pytest.raises(bc.DeviceError) as error:
        select((24, 40), (40, 32))
    assert function.removesuffix("_internal") in str(error.value) and "EXECUTION_FAILED" in str(error.value)


@on_devices
def test_a_problem_without_an_algorithm_goes_to_the_next_row() -> None:
    desc = bc.MatmulDescriptor((24, 40), (40, 32))
    with without_algorithms():
        plan = bc.plan(desc, "cuda")
        with pytest.raises(bc.UnsupportedError, match="an algorithm of cuBLASLt"):
            bc.plan(desc, "cuda", bc.PlanPreference(sku="cublaslt"))
    assert plan.sku.variant == "simt" and "an algorithm of its library" in str(plan.explain())
    assert "an algorithm of its library" not in str(bc.plan(desc, "cuda").explain())


@on_devices
def test_activations_go_to_the_rows_that_apply_them() -> None:
    for element, variant in (("f32", "simt"), ("f64", "simt"), ("f16", "simt_mma"), ("bf16", "simt_mma")):
        desc = bc.MatmulDescriptor((24, 40), (40, 32), element, bias=True, activation="gelu")
        plan = bc.plan(desc, "cuda")
        assert plan.sku.variant == variant and "activation" in str(plan.explain())
        support = bc.MatmulPlan.query(desc, "cuda", bc.PlanPreference(sku="cublaslt"))
        assert not support and "promises nothing about its own" in str(support)


@on_devices
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_halves_that_it_cannot_take_go_to_tensor_cores(element: str) -> None:
    # Sums that cancel leave what rounding made of them, which tells one order of additions from another.
    dtype = bc.Element.coerce(element).numpy
    a, b, row = normal(24, 64, dtype=dtype), normal(64, 32, dtype=dtype), np.zeros(32, dtype)
    a[:, 32:], b[32:] = -a[:, :32], b[:32]
    x = {"a": put(a), "b": put(b), "c": put(row), "beta": 2.0}
    got = {v: run(select(a.shape, b.shape, element=element, c_shape=(32,), sku=v), **x).tobytes()
           for v in ("cublaslt", "simt_mma", "simt")}  # fmt: skip
    assert got["cublaslt"] == got["simt_mma"] != got["simt"]


def weight(b: Array) -> Any:
    """B as a linear layer's weight stores it: its columns contiguous."""
    return put(np.ascontiguousarray(np.swapaxes(b, -1, -2))).transpose(*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)


def integers(*shape: int) -> Array:
    return RNG.integers(-128, 128, shape, np.int8)


@on_devices
def test_8_bit_integers_are_one_call_in_its_layout_and_tiles_in_others() -> None:
    a, b = integers(3, 24, 40), integers(3, 40, 32)
    want = a.astype(np.int64) @ b.astype(np.int64)
    desc = bc.ScaledMatmulDescriptor(a.shape, b.shape, "i8", "i32")
    with expect(0, heuristics=1):
        plan = bc.plan(desc, "cuda")
    assert plan.sku.variant == "cublaslt" and plan.precision_guarantee.bound == "exact"
    wide = bc.zeros((3, 24, 44), "i32", device="cuda")
    odd = bc.zeros((3, 24, 33), "i32", device="cuda")
    shifted = put(np.pad(a, ((0, 0), (0, 0), (1, 7))))[..., 1:41]
    turned = bc.zeros((3, 32, 24), "i32", device="cuda").transpose(0, 2, 1)
    for left, right, out, products in (
        (put(a), weight(b), None, 1), (put(a), weight(b), wide[..., :32], 1), (put(a), weight(b), odd[..., :32], 0),
        (put(a), put(b), None, 0), (weight(a), weight(b), None, 0), (shifted, weight(b), None, 0),
        (put(a), weight(b), turned, 1), (weight(a), put(b), turned, 0),
    ):  # fmt: skip
        given = {} if out is None else {"out": out}
        with expect(products):
            assert (run(plan, a=left, b=right, **given) == want).all()


@on_devices
@pytest.mark.parametrize("output", ["f32", "f16", "bf16"])
def test_8_bit_floats_with_scales_that_lie_on_the_device(output: str) -> None:
    import ml_dtypes

    a, b = (normal(*s).astype(ml_dtypes.float8_e4m3fn) for s in ((24, 48), (48, 32)))
    biased = output != "f32"
    desc = bc.ScaledMatmulDescriptor(a.shape, b.shape, "f8e4m3", output, (), (1, 1), bias=biased)
    plan = bc.plan(desc, "cuda")
    assert plan.sku.variant == "cublaslt" and str(plan.precision_guarantee.accumulator) == "f32"
    vector = normal(32, dtype=desc.output_element.numpy)
    scales = np.float32(0.5), np.full((1, 1), 3, np.float32)
    x = {"scale_a": put(np.asarray(scales[0])), "scale_b": put(scales[1])} | ({"bias": put(vector)} if biased else {})
    want = 1.5 * (a.astype("f8") @ b.astype("f8")) + (vector.astype("f8") if biased else 0)
    for right, products in ((weight(b), 1), (put(b), 0)):
        with expect(products):
            assert close(run(plan, a=put(a), b=right, **x), want, 1e-5 if output == "f32" else 8e-3)


@on_devices
@pytest.mark.parametrize(
    ("a", "b", "element", "output", "more", "want"),
    [
        ((24, 40), (40, 30), "i8", "i32", {}, "multiples of 4"), ((24, 42), (42, 32), "i8", "i32", {}, "multiples of 4"),
        ((24, 40), (40, 32), "i8", "i32", {"bias": True}, "bias"), ((24, 40), (40, 32), "i8", "f32", {}, "aux_element"),
        ((24, 40), (40, 32), "f8e4m3", "f32", {}, "multiples of 16"),
        ((24, 48), (48, 32), "f8e4m3", "f32", {"bias": True}, "bias"),
        ((24, 48), (48, 32), "f8e4m3", "f16", {"scale_a_shape": (24, 1)}, "one scale"),
        ((24, 48), (48, 32), "f8e4m3", "f16", {"activation": "relu"}, "activation"),
        ((0, 48), (48, 32), "f8e4m3", "f16", {}, "elements and terms"),
        ((7, 48), (48, 32), "f8e4m3", "f16", {"bias": True}, ""), ((7, 4), (4, 4), "i8", "i32", {}, ""),
    ],
)  # fmt: skip
def test_8_bit_problems_that_it_cannot_take(
    a: Any, b: Any, element: str, output: str, more: dict[str, Any], want: str
) -> None:
    desc = bc.ScaledMatmulDescriptor(a, b, element, output, **more)
    support = bc.ScaledMatmulPlan.query(desc, "cuda", bc.PlanPreference(sku="cublaslt"))
    assert bool(support) == (not want) and want in str(support)
    assert bc.ScaledMatmulPlan.query(desc, "cuda")


def test_8_bit_floats_need_sm_89() -> None:
    from baracuda.choose.sku import rows

    found = {
        (r["elements"][0], r["min_arch"]) for r in rows() if (r["op"], r["variant"]) == ("scaled_matmul", "cublaslt")
    }
    assert found == {(int(bc.Element.I8), 80), (int(bc.Element.F8E4M3), 89)}


def python(code: str, **settings: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@on_devices
def test_without_the_library_the_tiles_serve_and_say_why() -> None:
    code = (
        "import baracuda as bc; p = bc.plan(bc.MatmulDescriptor((24, 40), (40, 32)), 'cuda'); print(p.sku, p.explain())"
    )
    said = python(code, BARACUDA_CUBLASLT_LIBRARY="/nowhere/libcublasLt.so.13")
    assert "matmul.forward.cuda.f32.simt" in said and "/nowhere/libcublasLt.so.13" in said


@on_devices
def test_a_handle_that_cannot_be_made_is_an_error_and_made_by_the_next_select() -> None:
    code = """
import baracuda as bc
desc = bc.MatmulDescriptor((24, 40), (40, 32))
try:
    bc.plan(desc, "cuda")
except bc.DeviceError as error:
    print(error)
print(bc.plan(desc, "cuda").sku.variant)
"""
    said = python(code, BARACUDA_FAKE_CUDA_FAIL="cublasLtCreate:1")
    assert "cublasLtCreate: CUBLAS_STATUS_EXECUTION_FAILED" in said and said.endswith("cublaslt\n")
