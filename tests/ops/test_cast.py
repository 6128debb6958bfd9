"""Conversion against torch, and rounding where a second rounding would be wrong."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.ops.cast.cast import CastDescriptor

torch = pytest.importorskip("torch")


def test_f64_to_bf16_rounds_once() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    # Just above the middle of 1 and 1 + 2^-7; through f32 it would become the middle, and then 1.
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40])
    y = np.empty(3, ml_dtypes.bfloat16)
    bc.plan(CastDescriptor((3,), "f64", "bf16")).run(x, y)
    assert y.astype(np.float64).tolist() == [1 + 2.0**-7, 1.0, 1.0]


def test_i64_to_bf16_rounds_once() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([2**62 + 2**54 + 1, 2**62 + 2**54, -(2**62) - 2**54 - 1], np.int64)
    y = np.empty(3, ml_dtypes.bfloat16)
    bc.plan(CastDescriptor((3,), "i64", "bf16")).run(x, y)
    assert y.astype(np.float64).tolist() == [2.0**62 + 2.0**55, 2.0**62, -(2.0**62) - 2.0**55]


def test_f32_to_halves_as_torch_at_every_exponent() -> None:
    low = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    bits = (np.arange(65536, dtype=np.uint32)[:, None] << 16 | low).ravel()
    x = torch.from_numpy(bits.view(np.float32))
    for dtype in (torch.float16, torch.bfloat16):
        got, want = F.cast(x, dtype), x.to(dtype)
        number = ~torch.isnan(x)
        assert torch.equal(got[number].view(torch.int16), want[number].view(torch.int16))
        assert torch.isnan(got[~number]).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_fused_loops_keep_subnormal_halves(dtype) -> None:
    tiny = torch.finfo(dtype).tiny
    x = (torch.arange(-500, 500) * 0.01 * tiny).to(dtype)
    x[::37] = torch.nan
    x[5::41] = 3.0
    y = torch.full_like(x, 0.75)
    for got, want in ((F.mul(x, y), x * y), (F.add(x, x), x + x), (F.relu(x), torch.relu(x))):
        assert torch.equal(got.nan_to_num(7.0), want.nan_to_num(7.0))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_floats_to_integers_as_torch(dtype) -> None:
    x = torch.tensor([0.0, -0.0, 0.9, -0.9, 1.5, 99.99, -99.99, 127.4])
    x = x.abs() if dtype is torch.uint8 else x
    assert torch.equal(F.cast(x, dtype), x.to(dtype))


def test_gradient_goes_back_to_the_first_element() -> None:
    x = torch.rand(4)
    y, pull = bc.vjp(F.cast, x, "bf16")
    assert y.dtype == torch.bfloat16
    assert pull(y).dtype == torch.float32


F8 = ("float8_e4m3fn", "float8_e5m2")


@pytest.mark.parametrize("name", F8)
def test_every_float_of_8_bits_as_torch(name: str) -> None:
    dtype = getattr(torch, name)
    x = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)
    for target in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        torch.testing.assert_close(F.cast(x, target), x.to(target), rtol=0, atol=0, equal_nan=True)
    for other in F8:
        got, want = F.cast(x, other), x.to(getattr(torch, other))
        assert got.dtype == want.dtype
        torch.testing.assert_close(got.float(), want.float(), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(F.cast(x, torch.bool), x.float() != 0)


@pytest.mark.parametrize("name", F8)
def test_to_8_bits_as_torch_and_ml_dtypes(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = getattr(torch, name)
    halves = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    for source in (torch.float16, torch.bfloat16):
        x = halves.view(source)
        got, want = F.cast(x, dtype), x.to(dtype)
        torch.testing.assert_close(got.float(), want.float(), rtol=0, atol=0, equal_nan=True)
        with np.errstate(all="ignore"):
            theirs = x.float().numpy().astype(getattr(ml_dtypes, name)).astype(np.float32)
        plan = bc.plan(CastDescriptor((65536,), source, name, saturate=False))
        mine = torch.empty(65536, dtype=dtype)
        plan.run(x, mine)
        np.testing.assert_array_equal(mine.float().numpy(), theirs)
    for whole in (torch.arange(-600, 600), torch.arange(-128, 128, dtype=torch.int8), torch.tensor([True, False])):
        torch.testing.assert_close(
            F.cast(whole, dtype).float(), whole.to(dtype).float(), rtol=0, atol=0, equal_nan=True
        )


@pytest.mark.parametrize(("name", "largest"), [("f8e4m3", 448.0), ("f8e5m2", 57344.0)])
def test_8_bits_saturate_by_default(name: str, largest: float) -> None:
    pytest.importorskip("ml_dtypes")
    x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, largest * 1.2, 2.0**-60], np.float32)
    plan = bc.plan(CastDescriptor((7,), "f32", name))
    y = np.empty(7, plan.signature["y"].element.numpy)
    plan.run(x, y)
    want = [largest, -largest, largest, -largest, np.nan, largest, 0.0]
    np.testing.assert_array_equal(y.astype(np.float64), want)


def test_f64_to_8_bits_rounds_once() -> None:
    x = torch.tensor([1 + 2.0**-4 + 2.0**-40, 1 + 2.0**-4, 1 + 2.0**-4 - 2.0**-40], dtype=torch.float64)
    assert F.cast(x, "f8e4m3").double().tolist() == [1.125, 1.0, 1.0]


_INTEGERS = ("bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64")


def _values(element: str, n: int) -> np.ndarray:
    """Ends, powers of two and what lies beside them, and random bits; as many as wanted."""
    size = 1 if element == "bool" else int(element[1:]) // 8
    near = [sign * (1 << k) + d for k in range(8 * size) for sign in (1, -1) for d in (-1, 0, 1)]
    known = np.array([v % (1 << 8 * size) for v in near], np.uint64)
    more = np.random.default_rng(size).integers(0, 1 << 63, max(n - len(known), 0), np.uint64) * np.uint64(3)
    bits = np.concatenate([known, more])[:n].astype(f"u{size}")
    return bits % 2 == 1 if element == "bool" else bits.view(f"{element[0]}{size}")


@pytest.mark.parametrize("to", [*_INTEGERS, "f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("of", _INTEGERS)
def test_integers_that_lie_together_as_those_that_do_not(of: str, to: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if of == to:
        return
    numbers = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "bool": np.bool_}
    dtype = np.dtype(numbers.get(to) or f"{to[0]}{int(to[1:]) // 8}")
    x = _values(of, 8 * 131)
    for got_shape in ((8 * 131,), (8, 131)):
        dense, wide = x.reshape(got_shape), np.zeros((*got_shape, 2), x.dtype)
        wide[..., 0] = dense
        got, want = np.zeros(got_shape, dtype), np.zeros(got_shape, dtype)
        bc.plan(CastDescriptor(got_shape, of, to)).run(dense, got)
        bc.plan(CastDescriptor(got_shape, of, to)).run(wide[..., 0], want)
        assert got.tobytes() == want.tobytes()
        if dtype.kind in "ui?":
            assert np.array_equal(got, dense.astype(dtype))
    rows, part = x.reshape(8, 131), np.full((8, 131), 7).astype(dtype)
    bc.plan(CastDescriptor((8, 100), of, to)).run(rows[:, 13:113], part[:, 31:])
    assert part[:, 31:].tobytes() == got.reshape(8, 131)[:, 13:113].tobytes()
    assert (part[:, :31] == np.full(1, 7).astype(dtype)).all()


@pytest.mark.parametrize(("to", "dtype"), [("i32", torch.int32), ("i8", torch.int8), ("bf16", torch.bfloat16)])
def test_integers_past_the_caches(to, dtype) -> None:
    n = (17 << 20) + 13
    x = torch.arange(n, dtype=torch.int16)
    y = torch.zeros(n + 3, dtype=dtype)
    bc.plan(CastDescriptor((n,), "i16", to)).run(x, y[3:])
    assert torch.equal(y[3:], x.to(dtype))
    assert not y[:3].any()
