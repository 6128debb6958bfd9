"""Products of 8-bit elements: what the generated tests do not see: torch's functions, layouts, threads, refusals."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F

torch = pytest.importorskip("torch")
Array = np.ndarray[Any, Any]


def variants(desc: bc.ScaledMatmulDescriptor) -> list[str]:
    """The rows that take a problem on this machine."""
    names = ("vnni", "vnni_scaled", "packed", "packed_scaled")
    return [n for n in names if bc.ScaledMatmulPlan.query(desc, preference=bc.PlanPreference(sku=n))]


def run(desc: bc.ScaledMatmulDescriptor, *args: object, **preference: object) -> None:
    made = bc.plan(desc, preference=bc.PlanPreference(**preference))
    made.run(*args, workspace=bc.empty(made.workspace_size, "u8") if made.workspace_size else None)


def bytes_of(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).integers(-128, 128, shape, np.int8)


def eighths(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(ml_dtypes.float8_e4m3fn)


def product(a: Array, b: Array) -> Array:
    return a.astype(np.int64) @ b.astype(np.int64)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (17, 8, 9), (33, 64, 70), (200, 301, 130), (40, 5000, 50)])
def test_int_mm_is_torchs_and_exact(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = bytes_of(m, k), bytes_of(k, n, seed=1)
    got = F.int_mm(torch.from_numpy(a), torch.from_numpy(b))
    assert got.dtype is torch.int32 and (got.numpy() == product(a, b)).all()
    if m > 16 and k % 8 == 0 and n % 8 == 0:
        assert (got == torch._int_mm(torch.from_numpy(a), torch.from_numpy(b))).all()
    out = np.empty((m, n), np.int32)
    assert F.int_mm(a, b, out=out) is out and (out == product(a, b)).all()


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 255, 1023, 2047, 2048, 2049, 2051, 6000])
def test_the_largest_numbers_do_not_saturate(k: int) -> None:
    # Two products of 128 and 128 do not fit 16 bits, where some instructions would leave them.
    for left, right in ((-128, -128), (-128, 127), (127, -128), (127, 127)):
        a, b = np.full((9, k), left, np.int8), np.full((k, 50), right, np.int8)
        desc = bc.ScaledMatmulDescriptor(a.shape, b.shape, "i8", "i32")
        for variant in variants(desc):
            out = np.empty((9, 50), np.int32)
            run(desc, a, b, out, sku=variant)
            assert (out == left * right * k).all(), variant


def test_long_sums_wrap_in_32_bits() -> None:
    k = 140_000
    a, b = np.full((9, k), -128, np.int8), np.full((k, 20), -128, np.int8)
    desc = bc.ScaledMatmulDescriptor(a.shape, b.shape, "i8", "i32")
    for variant in variants(desc):
        out = np.empty((9, 20), np.int32)
        run(desc, a, b, out, sku=variant)
        assert (out == np.int64(k * 2**14).astype(np.int32)).all(), variant
    with pytest.raises(bc.InvalidProblemError, match="131071"):
        bc.ScaledMatmulDescriptor(a.shape, b.shape, "i8", "f32")


def arranged(x: Array, how: str) -> Array:
    """The same values in another place: transposed, with gaps, reversed, all of them."""
    if how == "transposed":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if how == "gaps":
        wide = np.zeros((*x.shape[:-2], 2 * x.shape[-2], 3 * x.shape[-1]), x.dtype)
        wide[..., ::2, ::3] = x
        return wide[..., ::2, ::3]
    return np.ascontiguousarray(x[..., ::-1, ::-1])[..., ::-1, ::-1] if how == "reversed" else x


@pytest.mark.parametrize("sizes", [(1, 40, 30), (50, 61, 71), (9, 100, 2300)])
def test_layouts_in_all_combinations(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b, bias = bytes_of(2, m, k), bytes_of(2, k, n, seed=1), np.arange(n, dtype=np.int32)
    want = product(a, b) + bias
    desc = bc.ScaledMatmulDescriptor(a.shape, b.shape, "i8", "i32", bias=True)
    for variant in variants(desc):
        for how in itertools.product(("plain", "transposed", "gaps", "reversed"), repeat=3):
            out = arranged(np.zeros(want.shape, np.int32), how[2])
            run(desc, arranged(a, how[0]), arranged(b, how[1]), bias, out, sku=variant)
            assert (out == want).all(), (variant, how)


@pytest.mark.parametrize("output", ["f32", "bf16"])
@pytest.mark.parametrize("scales", [((), ()), ((70, 1), (1, 90)), ((3, 1, 1), (3, 1, 90)), (None, (90,))])
def test_scales_of_tensors_rows_and_columns(output: str, scales: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(5)
    sa, sb = (None if s is None else rng.uniform(1e-4, 1e-3, s).astype(np.float32) for s in scales)
    for make in (bytes_of, eighths):
        a, b = make(3, 70, 40), make(40, 90, seed=1)
        bias = rng.normal(size=90).astype(bc.Element.coerce(output).numpy)
        factors = [np.ones(()) if s is None else s.astype("f8") for s in (sa, sb)]
        sums = (a.astype("f8") @ b.astype("f8")) * factors[0] * factors[1] + bias.astype("f8")
        for activation in ("none", "gelu"):
            got = F.scaled_matmul(a, b, sa, sb, bias, out_dtype=output, activation=activation)
            want = sums if activation == "none" else torch.nn.functional.gelu(torch.from_numpy(sums)).numpy()
            assert got.dtype == bias.dtype
            assert np.allclose(got.astype("f8"), want, rtol=1e-5 if output == "f32" else 5e-3, atol=1e-5), make


@pytest.mark.parametrize("element", ["i8", "f8e4m3"])
def test_bits_do_not_depend_on_threads_or_batch(element: str) -> None:
    make = bytes_of if element == "i8" else eighths
    for a, b in (((130, 520), (520, 200)), ((7, 40, 30), (7, 30, 50)), ((300, 4200), (4200, 40))):
        x, y, scale = make(*a), make(*b, seed=1), np.float32(0.01)
        desc = bc.ScaledMatmulDescriptor(a, b, element, "f32", scale_a_shape=())
        for variant in variants(desc):
            made = []
            for threads in (1, 2, 5, 2):
                out = np.empty(desc.output_shape(), np.float32)
                run(desc, x, y, np.asarray(scale), out, sku=variant, threads=threads)
                made.append(out.tobytes())
            assert len(set(made)) == 1, f"{variant}: bits differ with threads"
            part = np.empty_like(out[..., :5, :])
            few = bc.ScaledMatmulDescriptor((*a[:-2], 5, a[-1]), b, element, "f32", scale_a_shape=())
            run(few, x[..., :5, :], y, np.asarray(scale), part, sku=variant)
            assert (part == out[..., :5, :]).all(), f"{variant}: bits differ with the batch"


def test_every_code_of_the_8_bit_float() -> None:
    codes = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).reshape(256, 1)
    one = np.ones((1, 9), ml_dtypes.float8_e4m3fn)
    got = F.scaled_matmul(codes, one)
    want = np.repeat(codes.astype(np.float32), 9, 1)
    assert ((got == want) | (np.isnan(got) & np.isnan(want))).all() and np.isnan(want).sum() == 18


def test_torchs_tensors_and_the_function_of_the_same_meaning() -> None:
    a = torch.randn(32, 64).to(torch.float8_e4m3fn)
    w = torch.randn(48, 64).to(torch.float8_e4m3fn)
    sa, sb = torch.tensor(0.5), torch.tensor(0.25)
    got = F.scaled_matmul(a, w.T, sa, sb, out_dtype=torch.bfloat16)
    want = a.double() @ w.double().T * 0.125
    assert got.dtype is torch.bfloat16 and torch.allclose(got.double(), want, rtol=5e-3, atol=1e-5)


def test_one_plan_serves_all_sizes_of_a_dim() -> None:
    tokens = bc.Dim("tokens", max=300)
    desc = bc.ScaledMatmulDescriptor((4, tokens, 70), (70, 90), "i8", "i32")
    made = bc.plan(desc)
    workspace = bc.empty(made.workspace_size, "u8")
    w = bytes_of(70, 90)
    for n in (0, 1, 2, 9, 100, 300):
        x, out = bytes_of(4, n, 70), np.empty((4, n, 90), np.int32)
        made.run(x, w, out, workspace=workspace)
        assert (out == product(x, w)).all()


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"element": "i16"}, "element"), ({"element": "f8e4m3", "output_element": "i32"}, "output_element"),
        ({"output_element": "i8"}, "output_element"), ({"b_shape": (5, 5)}, "b_shape"),
        ({"scale_a_shape": ()}, "None with an i32 output"), ({"activation": "relu"}, "activation"),
        ({"output_element": "f32", "scale_a_shape": (1, 5)}, "scale_a_shape"),
        ({"output_element": "f32", "scale_b_shape": (3, 1)}, "scale_b_shape"),
    ],
)  # fmt: skip
def test_wrong_problems_name_the_field(fields: dict[str, Any], named: str) -> None:
    right = {"a_shape": (3, 4), "b_shape": (4, 5), "element": "i8", "output_element": "i32"}
    with pytest.raises(bc.InvalidProblemError, match=named):
        bc.ScaledMatmulDescriptor(**(right | fields))


def test_functions_say_what_they_want() -> None:
    a, b = bytes_of(3, 4), bytes_of(4, 5)
    with pytest.raises(bc.InvalidProblemError, match="f32 tensor"):
        F.scaled_matmul(a, b, 0.5)
    with pytest.raises(bc.InvalidProblemError, match="f32 tensor"):
        F.scaled_matmul(a, b, np.ones((), np.float64))
    with pytest.raises(bc.InvalidProblemError, match="one element for both"):
        F.scaled_matmul(a, b.view(ml_dtypes.float8_e4m3fn))
    with pytest.raises(bc.InvalidProblemError, match="int_mm: got mat2 of i32"):
        F.int_mm(a, b.astype(np.int32))
    with pytest.raises(bc.InvalidProblemError, match="no gradient"):
        bc.vjp(F.scaled_matmul, a, b)
    assert F.scaled_matmul(a, b).dtype == np.int32
    assert F.scaled_matmul(a, b, np.ones((), np.float32)).dtype == np.float32
    assert F.scaled_matmul(eighths(3, 4), eighths(4, 5)).dtype == np.float32


@pytest.mark.parametrize("kinds", [(a, b) for a in (np.int8, np.uint8) for b in (np.int8, np.uint8)])
def test_zero_points_are_exact(kinds: Any, rng: np.random.Generator) -> None:
    limits = [np.iinfo(k) for k in kinds]
    a, b, za, zb = (
        rng.integers(i.min, i.max, shape, endpoint=True).astype(i.dtype)
        for i, shape in zip(limits * 2, ((3, 5, 70), (70, 9), (5, 1), (1, 9)), strict=True)
    )
    rates = rng.uniform(0.01, 0.1, (5, 1)).astype(np.float32), np.float32(0.5).reshape(1)
    bias = rng.normal(0, 1, 9).astype(np.float32)
    for left, right in ((za, zb), (za[:1], None), (None, zb), (None, zb[:, :1])):
        wide = [x.astype(np.int64) - (0 if z is None else z.astype(np.int64)) for x, z in ((a, left), (b, right))]
        wanted = wide[0] @ wide[1]
        y = F.scaled_matmul(a, b, zero_a=left, zero_b=right)
        assert y.dtype == np.int32 and np.array_equal(y, wanted)
        found = F.scaled_matmul(a, b, *rates, bias, left, right, activation="relu")
        exact = np.maximum(wanted * rates[0].astype(np.float64) * 0.5 + bias, 0)
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6 * np.abs(exact).max())
        half = F.scaled_matmul(a, b, *rates, None, left, right, out_dtype="f16")
        assert half.dtype == np.float16


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2", "i8", "u8"])
def test_scales_of_blocks(dtype: str, rng: np.random.Generator) -> None:
    """DeepSeek's granularity: tokens by 128, weights by 128 x 128; and groups of 32 on one side."""
    x, w = rng.normal(0, 1, (2, 6, 256)).astype(np.float32), rng.normal(0, 1, (256, 384)).astype(np.float32)
    for left, right in (((1, 1, 128), (128, 128)), ((1, 1, 32), (-1, 1)), ((1, 1, -1), (32, 1))):
        a, sa = F.dynamic_quantize(torch.from_numpy(x), left, dtype)
        b, sb = F.dynamic_quantize(torch.from_numpy(w), right, dtype)
        exact = F.dequantize_linear(a, sa).double() @ F.dequantize_linear(b, sb).double()
        for output, within in ((None, 1e-5), ("bf16", 8e-3), ("f16", 1e-3)):
            y = F.scaled_matmul(a, b, sa, sb, out_dtype=output)
            assert float((y.double() - exact).abs().max() / exact.abs().max()) < within
        flat = F.scaled_matmul(a, b, sa[0] if sa.shape[0] == 1 else sa, sb, torch.ones(384), activation="silu")
        torch.testing.assert_close(flat.double(), torch.nn.functional.silu(exact + 1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", ["f8e4m3", "i8"])
def test_blocks_of_columns_may_have_the_whole_depth(dtype: str, rng: np.random.Generator) -> None:
    x, w = rng.normal(0, 1, (6, 128)).astype(np.float32), rng.normal(0, 1, (128, 384)).astype(np.float32)
    a, sa = F.dynamic_quantize(torch.from_numpy(x), (1, 128), dtype)
    b, sb = F.dynamic_quantize(torch.from_numpy(w), (128, 128), dtype)
    assert sb.shape == (1, 3)
    exact = F.dequantize_linear(a, sa).double() @ F.dequantize_linear(b, sb).double()
    torch.testing.assert_close(F.scaled_matmul(a, b, sa, sb).double(), exact, rtol=1e-5, atol=1e-4)
    turned = F.scaled_matmul(b.T, a.T, sb.T, sa.T)
    torch.testing.assert_close(turned.double(), exact.T, rtol=1e-5, atol=1e-4)


def test_parts_that_do_not_fit_are_refused() -> None:
    a, b = np.ones((4, 8), np.int8), np.ones((8, 4), np.int8)
    with pytest.raises(bc.InvalidProblemError, match="zero_a: got i32 for factors of i8"):
        F.scaled_matmul(a, b, zero_a=np.zeros((4, 1), np.int32))
    with pytest.raises(bc.InvalidProblemError, match="want at most 33025 products"):
        F.scaled_matmul(np.ones((1, 33026), np.uint8), np.ones((33026, 1), np.uint8))
    with pytest.raises(bc.InvalidProblemError, match="out_dtype: got i32, want f32"):
        F.scaled_matmul(a, b, np.ones((), np.float32), zero_a=np.zeros((4, 1), np.int8), out_dtype="i32")
    with pytest.raises(bc.InvalidProblemError, match="got zero points, want none with scales for blocks"):
        F.scaled_matmul(a, b, np.ones((4, 2), np.float32), zero_a=np.zeros((4, 1), np.int8))
    with pytest.raises(bc.InvalidProblemError, match=r"zero_a: got \(1, 8\), want a shape that broadcasts to \(4, 1\)"):
        F.scaled_matmul(a, b, zero_a=np.zeros((1, 8), np.int8))
    with pytest.raises(bc.InvalidProblemError, match=r"scale_a_shape: got \(3, 1\)"):
        F.scaled_matmul(a, b, np.ones((3, 1), np.float32), zero_b=np.zeros((1, 4), np.int8))
    with pytest.raises(bc.InvalidProblemError, match=r"bias: got \(3,\), want \(4,\)"):
        F.scaled_matmul(a, b, None, None, np.ones(3, np.float32), np.zeros((4, 1), np.int8), out_dtype="f32")
