"""Tensors of every framework, and everything that only looks like one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from imports import BF16, PLAN, WANT, N, X, accepted, out, refused, refused_as_output, swiglu

import baracuda as bc
from baracuda.memory.tensor import stand_in

# --- NumPy ------------------------------------------------------------------------------------------------------------


def test_numpy_layouts() -> None:
    accepted(X)
    accepted(np.asfortranarray(X))
    wide = np.zeros((8, 4 * N), np.float32)
    wide[::2, ::2] = X
    accepted(wide[::2, ::2])
    accepted(X[::-1, ::-1][::-1, ::-1])
    accepted(np.broadcast_to(X, (4, 2 * N)))


def test_the_first_of_eight_axes_may_go_backwards() -> None:
    held = np.arange(256, dtype=np.float32)
    strides = (-128, 64, 32, 16, 8, 4, 2, 1)
    made = bc.from_pointer(held[128:].ctypes.data, (2,) * 8, "f32", strides, owner=held)
    assert np.array_equal(np.from_dlpack(made), held.reshape((2,) * 8)[::-1])


def test_numpy_subclasses(tmp_path: Path) -> None:
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(X)
    accepted(matrix)
    path = tmp_path / "x.bin"
    X.tofile(path)
    accepted(np.memmap(path, np.float32, "r", shape=X.shape))
    refused_as_output("read_only", np.memmap(path, np.float32, "r", shape=(4, N)))

    class Mine(np.ndarray):
        pass

    accepted(X.view(Mine))
    y = out().view(Mine)
    assert PLAN.run(X, y) is y


def test_numpy_refusals() -> None:
    assert "newbyteorder" in str(refused("byte_order", X.astype(">f4")))
    raw = np.zeros(4 * 2 * N * 4 + 1, np.uint8)
    refused("misaligned", np.ndarray(X.shape, np.float32, raw, 1), cls=bc.MisalignedOperandError)
    refused("masked", np.ma.masked_array(X))
    refused("masked", np.ma.masked_array(X, mask=X > 0))
    refused("masked", np.ma.masked)
    refused(
        "masked",
        np.ma.mrecords.MaskedRecords((4,), dtype=[("a", "f4")])
        if hasattr(np.ma, "mrecords")
        else np.ma.masked_array(X),
    )
    refused("element", np.zeros((4, 2 * N), [("a", "f4")]))
    refused("element", np.zeros((4, 2 * N), object))
    refused("element", np.zeros((4, 2 * N), "S4"))
    refused("element", np.zeros((4, 2 * N), "U4"))
    refused("element", np.zeros((4, 2 * N), "m8[s]"))
    refused("element", np.zeros((4, 2 * N), np.longdouble))
    records = np.zeros((4, 2 * N), [("a", "f4"), ("b", "u1"), ("c", "u1")])
    refused("strides", records["a"])
    refused("rank", np.zeros((1,) * 10, np.float32))
    refused("not_a_tensor", np.float32(2))
    refused("not_a_tensor", X.tolist())
    huge = np.lib.stride_tricks.as_strided(X, X.shape, (2**61, 2**61))
    refused("strides", huge)
    refused("strides", np.lib.stride_tricks.as_strided(X, X.shape, (-(2**62), 4)))


def test_numpy_scalars_sizes_and_strides_that_do_not_matter() -> None:
    one = bc.plan(bc.GatedActivationDescriptor("swiglu", (), None))
    y = np.zeros((), np.float32)
    one.run(np.array(2, np.float32), np.array(3, np.float32), y)
    assert y == pytest.approx(6 / (1 + np.exp(-3)))
    empty = bc.plan(bc.GatedActivationDescriptor("swiglu", (0, 2 * N)))
    assert empty.run(np.zeros((0, 2 * N), np.float32), np.zeros((0, N), np.float32)).shape == (0, N)
    # A size of one never makes a stride matter, whatever it is.
    row = bc.plan(bc.GatedActivationDescriptor("swiglu", (1, 2 * N)))
    odd = np.lib.stride_tricks.as_strided(X[:1], (1, 2 * N), (3, 4))
    y = np.zeros((1, N), np.float32)
    row.run(odd, y)
    np.testing.assert_allclose(y, WANT[:1], rtol=1e-5)


def test_ml_dtypes() -> None:
    x = X.astype(ml_dtypes.bfloat16)
    y = np.zeros((4, N), ml_dtypes.bfloat16)
    BF16.run(x, y)
    np.testing.assert_allclose(y.astype(np.float64), swiglu(x), rtol=2**-7, atol=1e-6)
    for dtype, name in ((ml_dtypes.float8_e4m3fn, "f8e4m3"), (ml_dtypes.float8_e5m2, "f8e5m2")):
        error = refused("element", X.astype(dtype), plan=BF16)
        assert error.refusals[0].got == name
    refused("element", X.astype(ml_dtypes.float8_e4m3b11fnuz), plan=BF16)


# --- torch ------------------------------------------------------------------------------------------------------------


def test_torch_layouts_and_elements() -> None:
    accepted(torch.from_numpy(X))
    accepted(torch.from_numpy(X).t().contiguous().t())
    accepted(torch.nn.Parameter(torch.from_numpy(X), requires_grad=False))
    x = torch.from_numpy(X).bfloat16()
    y = torch.zeros(4, N, dtype=torch.bfloat16)
    assert BF16.run(x, y) is y
    np.testing.assert_allclose(y.double().numpy(), swiglu(x.double().numpy()), rtol=2**-7, atol=1e-6)
    refused("element", torch.zeros(4, 2 * N, dtype=torch.float8_e4m3fn))


def test_torch_grad_modes() -> None:
    x = torch.from_numpy(X.copy()).requires_grad_()
    refused("requires_grad", x)
    refused("requires_grad", torch.nn.Parameter(torch.from_numpy(X)))
    refused("requires_grad", x * 1)
    refused_as_output("requires_grad", torch.zeros(4, N, requires_grad=True))
    with torch.no_grad():
        accepted(x)
    with torch.inference_mode():
        accepted(x)
        accepted(torch.from_numpy(X) * 1)
        y = torch.zeros(4, N)
        PLAN.run(X, y)
        np.testing.assert_allclose(y.numpy(), WANT, rtol=1e-5)
    accepted(x.detach())
    PLAN.run(X, y)  # an inference tensor outside inference mode: it has no version counter


def test_torch_lazy_bits() -> None:
    pairs = torch.randn(4, 2 * N, dtype=torch.complex64)
    refused("negative", pairs.conj().imag)
    refused("negative", torch._neg_view(torch.from_numpy(X)))
    refused("element", pairs)
    refused("conjugate", pairs.conj())
    one = torch.randn(1, dtype=torch.complex64).conj().imag
    assert one.is_neg() and one.is_contiguous()
    single = bc.plan(bc.GatedActivationDescriptor("swiglu", (1,), None))
    with pytest.raises(bc.InvalidProblemError) as caught:
        single.run(one, one, np.zeros(1, np.float32))
    assert caught.value.code == "negative"
    accepted(torch._neg_view(torch.from_numpy(-X)).resolve_neg())


def test_torch_without_memory() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    dense = torch.from_numpy(X)
    refused("sparse", dense.to_sparse())
    with pytest.warns(UserWarning, match="CSR"):
        csr = dense.to_sparse_csr()
    refused("sparse", csr)
    refused("meta", torch.zeros(4, 2 * N, device="meta"))
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(dense)
    assert refused("null_data", fake).refusals[0].got.startswith("a fake torch tensor")
    for row in (0, 4):  # the second one's address is that of 4 rows after nothing
        whole = torch.tensor(np.tile(X, (2, 1)).tolist())
        rows = whole[row : row + 4]
        whole.untyped_storage().resize_(0)
        refused("null_data", rows)
    seen = []

    def inside(t: torch.Tensor) -> torch.Tensor:
        with pytest.raises(bc.InvalidProblemError) as caught:
            PLAN.run(t, out())
        seen.append(caught.value.code)
        return t * 1

    torch.vmap(inside)(torch.randn(3, 4, 2 * N))
    torch.func.grad(lambda t: inside(t).sum())(dense.clone())
    assert len(seen) == 2 and set(seen) <= {"null_data", "requires_grad"}


def test_torch_subclasses() -> None:
    class Plain(torch.Tensor):
        pass

    class Lying(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs or {})

    accepted(torch.from_numpy(X).as_subclass(Plain))
    accepted(torch.from_numpy(X).as_subclass(Lying))
    refused("negative", torch._neg_view(torch.from_numpy(X)).as_subclass(Plain))
    refused("requires_grad", torch.from_numpy(X.copy()).as_subclass(Plain).requires_grad_())
    y = torch.zeros(4, N).as_subclass(Plain)
    before = y._version
    PLAN.run(X, y)
    assert y._version > before
    np.testing.assert_allclose(y.numpy(), WANT, rtol=1e-5)


def test_torch_version_counters() -> None:
    y = torch.zeros(4, N)
    x = torch.from_numpy(X)
    versions = [y._version]
    PLAN.run(x, y)
    versions.append(y._version)
    PLAN.run(x=x, out=y)
    versions.append(y._version)
    bound = PLAN.bind(x, y)
    versions.append(y._version)
    bound()
    versions.append(y._version)
    bound()
    versions.append(y._version)
    steps = np.diff(versions)
    assert steps.tolist() == [1, 1, 0, 1, 1], versions
    assert x._version == 0, "an input is only read"
    # Torch then notices that what it saved for a backward pass was overwritten.
    w = torch.ones(4, N, requires_grad=True)
    loss = (w * y).sum()
    PLAN.run(x, y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# --- jax --------------------------------------------------------------------------------------------------------------


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(X)
    accepted(x)
    refused_as_output("read_only", jax.numpy.zeros((4, N), np.float32))
    shapes = [jax.ShapeDtypeStruct(s, np.float32) for s in ((4, 2 * N), (4, N))]
    assert PLAN.can_implement(*shapes)
    assert not PLAN.can_implement(shapes[1], shapes[0])
    x16 = x.astype(jax.numpy.bfloat16)
    y = np.zeros((4, N), ml_dtypes.bfloat16)
    BF16.run(x16, y)
    np.testing.assert_allclose(y.astype(np.float64), swiglu(np.asarray(x16)), rtol=2**-7, atol=1e-6)


# --- bc.Tensor --------------------------------------------------------------------------------------------------------


def test_own_tensors() -> None:
    accepted(bc.asarray(X))
    accepted(bc.from_dlpack(X))
    accepted(bc.from_dlpack(torch.from_numpy(X)))
    accepted(bc.asarray(np.ascontiguousarray(X.T)).transpose())
    frozen = X.copy()
    frozen.flags.writeable = False
    accepted(bc.from_dlpack(frozen))
    y = np.zeros((4, N), np.float32)
    y.flags.writeable = False
    refused_as_output("read_only", bc.from_dlpack(y))
    with pytest.raises(bc.InvalidProblemError, match="byte order"):
        bc.from_dlpack(X.astype(">f4"))
    with pytest.raises(bc.InvalidProblemError, match="masked"):
        bc.from_dlpack(np.ma.masked_array(X))
    with pytest.raises(bc.InvalidProblemError, match="multiple of the item size"):
        bc.from_dlpack(np.zeros((4, 2), [("a", "f4"), ("b", "u1")])["a"])
    with pytest.raises(bc.InvalidProblemError):
        bc.from_dlpack("nonsense")


TORCHS = [torch.bool, torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64]  # fmt: skip


@pytest.mark.parametrize("dtype", TORCHS, ids=str)
def test_own_tensors_are_copies_of_any_element_and_layout(dtype: torch.dtype) -> None:
    x = torch.arange(12).reshape(3, 4).to(dtype)
    for given in (x, x.T, x[:, ::2], x[1:, 1:], x[:1].expand(5, 4), x[:, :0], x[0, 3], torch.empty(0, dtype=dtype)):
        made = bc.asarray(given)
        assert made.shape == tuple(given.shape) and made.element == bc.Element.coerce(dtype)
        assert made.numpy().astype(np.complex128).tolist() == given.to(torch.complex128).tolist()


@pytest.mark.parametrize("code", ["i2", "u4", "i8", "f2", "f4", "f8"])
def test_own_tensors_are_copies_of_either_byte_order(code: str) -> None:
    for order in "<>":
        x = np.arange(6).reshape(2, 3).astype(order + code)
        assert np.array_equal(bc.asarray(x).numpy(), x) and np.array_equal(
            bc.asarray(x.T, "f32").numpy(), x.T.astype("f4")
        )


def test_own_tensors_of_foreign_memory() -> None:
    x = X.copy()
    address = x.ctypes.data
    accepted(bc.from_pointer(address, X.shape, "f32", nbytes=x.nbytes, owner=x))
    with pytest.raises(bc.BufferTooSmallError) as caught:
        bc.from_pointer(address, X.shape, "f32", nbytes=x.nbytes - 1)
    assert (caught.value.code, caught.value.needed, caught.value.got) == ("buffer_too_small", x.nbytes, x.nbytes - 1)
    with pytest.raises(bc.BufferTooSmallError):
        bc.from_pointer(address, X.shape, "f32", (-1, 1), nbytes=x.nbytes)
    for bad in ({"ptr": 0}, {"ptr": -1}, {"ptr": "x"}, {"ptr": 2**70}, {"shape": (-1, 2)}, {"shape": (1,) * 9}, {"shape": (2**62,)},
                {"strides": (1,)}, {"strides": (2**63, 1)}, {"strides": "ab"}, {"device": "tpu"}, {"element": "f31"}):  # fmt: skip
        with pytest.raises(bc.InvalidProblemError):
            bc.from_pointer(**({"ptr": address, "shape": X.shape, "element": "f32"} | bad))
    refused("strides", bc.from_pointer(address, X.shape, "f32", (2**61, 1)))
    refused("misaligned", bc.from_pointer(address + 1, X.shape, "f32"), cls=bc.MisalignedOperandError)


def test_own_tensors_export() -> None:
    t = bc.asarray(X)
    assert np.shares_memory(np.from_dlpack(t), t.numpy())
    assert torch.from_dlpack(t).data_ptr() == t.address
    with pytest.raises(BufferError):
        np.from_dlpack(t, copy=True)
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))
    legacy, versioned = t.__dlpack__(), t.__dlpack__(max_version=(1, 0))
    assert '"dltensor"' in repr(legacy) and '"dltensor_versioned"' in repr(versioned)
    frozen = X.copy()
    frozen.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        bc.from_dlpack(frozen).__dlpack__()
    assert not np.from_dlpack(bc.from_dlpack(frozen)).flags.writeable
    with pytest.raises(BufferError):
        stand_in(bc.TensorSpec((4,))).__dlpack__()


def test_what_raises_while_it_is_looked_at() -> None:
    """Errors of a tensor's own code that say nothing of it are passed over; those that end a program are not."""

    class Wrapped(torch.Tensor):
        @property
        def layout(self) -> Any:
            raise RuntimeError("no layout")

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise NotImplementedError

    with pytest.raises(bc.InvalidProblemError, match="a wrapped torch tensor"):
        bc.functional.neg(torch.Tensor._make_wrapper_subclass(Wrapped, (3,)))

    class Ended(torch.Tensor):
        def untyped_storage(self) -> Any:
            raise KeyboardInterrupt

    plan = bc.plan(bc.CatDescriptor(((3, 4), (3, 4)), 0))
    with pytest.raises(KeyboardInterrupt):
        plan.bind([torch.ones(3, 4).as_subclass(Ended)] * 2, np.empty((6, 4), np.float32))
