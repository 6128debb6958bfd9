"""Tensors of every framework, and everything that only looks like one."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import baracuda as bc
import baracuda.functional as F
from baracuda import _core

N = 6
PLAN = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 2 * N)))
BF16 = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 2 * N), element="bf16"))
X = np.random.default_rng(1).normal(size=(4, 2 * N)).astype(np.float32)


def swiglu(x: np.ndarray) -> np.ndarray:
    a, b = np.split(np.asarray(x, np.float64), 2, axis=-1)
    return a * b / (1 + np.exp(-b))


WANT = swiglu(X)


def out() -> np.ndarray:
    return np.full((4, N), 7, np.float32)


def accepted(x: Any) -> None:
    y = out()
    assert PLAN.can_implement(x, y)
    assert PLAN.run(x, y) is y
    np.testing.assert_allclose(y, WANT, rtol=1e-5)
    z = out()
    PLAN.bind(x, z)()
    assert z.tobytes() == y.tobytes()


def refused(code: str, x: Any, *, plan: Any = PLAN, cls: type[Exception] = bc.InvalidProblemError) -> bc.BaracudaError:
    y = out() if plan is PLAN else np.zeros((4, N), ml_dtypes.bfloat16)
    before = y.tobytes()
    for call in (plan.run, plan.bind):
        with pytest.raises(cls) as caught:
            call(x, y)
        error = caught.value
        assert isinstance(error, bc.BaracudaError)
        assert error.code == code, f"{error}"
        assert error.refusals[0].field == "x"
        assert error.refusals[0].got and error.refusals[0].want and error.refusals[0].hint
        assert "x: got" in str(error)
    assert y.tobytes() == before
    return error


def refused_as_output(code: str, y: Any, cls: type[Exception] = bc.InvalidProblemError) -> None:
    with pytest.raises(cls) as caught:
        PLAN.run(X, y)
    assert isinstance(caught.value, bc.BaracudaError)
    assert (caught.value.code, caught.value.refusals[0].field) == (code, "y")


# --- NumPy ------------------------------------------------------------------------------------------------------------


def test_numpy_layouts() -> None:
    accepted(X)
    accepted(np.asfortranarray(X))
    wide = np.zeros((8, 4 * N), np.float32)
    wide[::2, ::2] = X
    accepted(wide[::2, ::2])
    accepted(X[::-1, ::-1][::-1, ::-1])
    accepted(np.broadcast_to(X, (4, 2 * N)))


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
    assert refused("null_data", fake).refusals[0].got.startswith("a wrapped")
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


def test_own_tensors_of_foreign_memory() -> None:
    x = X.copy()
    address = x.ctypes.data
    accepted(bc.from_pointer(address, X.shape, "f32", nbytes=x.nbytes, owner=x))
    with pytest.raises(bc.BufferTooSmallError) as caught:
        bc.from_pointer(address, X.shape, "f32", nbytes=x.nbytes - 1)
    assert (caught.value.needed, caught.value.got) == (x.nbytes, x.nbytes - 1)
    with pytest.raises(bc.BufferTooSmallError):
        bc.from_pointer(address, X.shape, "f32", (-1, 1), nbytes=x.nbytes)
    for bad in ({"ptr": 0}, {"ptr": -1}, {"ptr": "x"}, {"ptr": 2**70}, {"shape": (-1, 2)}, {"shape": (1,) * 9}, {"shape": (2**62,)},
                {"strides": (1,)}, {"strides": (2**63, 1)}, {"strides": "ab"}, {"device": "cuda"}, {"element": "f31"}):  # fmt: skip
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
        bc.tensor.stand_in(bc.TensorSpec((4,))).__dlpack__()


# --- the protocol itself ----------------------------------------------------------------------------------------------


class Producer:
    """Hands on another tensor's capsules, in any broken way."""

    def __init__(self, make: Any) -> None:
        self.make = make

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.make(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Legacy:
    """A producer from before DLPack 1.0."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
rename_capsule = ctypes.pythonapi.PyCapsule_SetName
rename_capsule.restype, rename_capsule.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
NAME, OTHER = b"dltensor_versioned", b"something"
CONSUMED = b"used_dltensor_versioned"


def test_capsules() -> None:
    accepted(Producer(lambda **k: X.__dlpack__(**k)))
    accepted(Legacy(X))
    refused_as_output("read_only", Legacy(out()))
    capsule = X.__dlpack__(max_version=(1, 0))
    accepted(capsule)
    capsule = X.__dlpack__(max_version=(1, 0))
    rename_capsule(capsule, CONSUMED)
    assert "consumed" in str(refused("capsule", capsule))
    rename_capsule(capsule, OTHER)
    assert "something" in str(refused("capsule", capsule))
    rename_capsule(capsule, NAME)
    accepted(capsule)
    version = ctypes.c_uint32.from_address(capsule_pointer(capsule, NAME))
    version.value = 2
    assert "major version" in str(refused("capsule", capsule))
    version.value = 1
    refused("capsule", Producer(lambda **k: 5))
    refused("capsule", Producer(lambda **k: None))


def test_producers_that_raise() -> None:
    def fail(error: BaseException) -> Any:
        def make(**kwargs: Any) -> Any:
            raise error

        return make

    for error in (BufferError("no"), RuntimeError("broken"), TypeError("odd"), ValueError()):
        text = str(refused("capsule", Producer(fail(error))))
        assert type(error).__name__ in text
        assert not PLAN.can_implement(Producer(fail(error)), out())
    with pytest.raises(KeyboardInterrupt):
        PLAN.run(Producer(fail(KeyboardInterrupt())), out())
    with pytest.raises(KeyboardInterrupt):
        PLAN.can_implement(Producer(fail(KeyboardInterrupt())), out())


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", DLTensor),
    ]  # fmt: skip


HELD: list[Any] = []


def handmade(**changes: Any) -> Any:
    shape = (ctypes.c_int64 * 16)(*changes.pop("shape", (4, 2 * N)))
    strides = changes.pop("strides", None)
    steps = (ctypes.c_int64 * 16)(*strides) if strides else None
    v = Versioned(1, 0, None, None, 0)
    v.tensor = DLTensor(X.ctypes.data, (ctypes.c_int32 * 2)(1, 0), 2, 2, 32, 1, shape, steps, 0)
    for name, value in changes.items():
        setattr(v.tensor, name, value)
    HELD.append((v, shape, steps))
    return new_capsule(ctypes.addressof(v), NAME, None)


def test_handmade_dlpack() -> None:
    accepted(handmade())
    accepted(handmade(strides=(2 * N, 1)))
    accepted(handmade(data=X.ctypes.data - 8, byte_offset=8))
    refused("rank", handmade(ndim=-1))
    refused("rank", handmade(ndim=9))
    refused("element", handmade(lanes=4))
    refused("element", handmade(bits=24))
    refused("element", handmade(code=3))
    refused("device", handmade(device=(ctypes.c_int32 * 2)(14, 0)))
    refused("device", handmade(device=(ctypes.c_int32 * 2)(2, 0)))
    refused("null_data", handmade(data=None))
    refused("shape", handmade(shape=(-4, 2 * N)))
    refused("shape", handmade(shape=(2**40, 2**40)))
    refused("strides", handmade(strides=(2**62, 1)))
    refused("strides", handmade(strides=(-(2**63), 1)))


# --- references -------------------------------------------------------------------------------------------------------


def every_path() -> dict[str, Any]:
    x, y, t = X.copy(), out(), torch.from_numpy(X.copy())
    ty, own, legacy = torch.zeros(4, N), bc.asarray(X), Legacy(X.copy())
    grad = torch.zeros(4, 2 * N, requires_grad=True)
    sub = torch.from_numpy(X.copy()).as_subclass(type("Sub", (torch.Tensor,), {}))
    masked, swapped = np.ma.masked_array(X), X.astype(">f4")
    broken = Producer(lambda **k: 5)
    bound = PLAN.bind(x, y)

    def fails(call: Any) -> Any:
        def attempt() -> None:
            try:
                call()
            except bc.BaracudaError:
                return
            raise AssertionError("accepted")

        return attempt

    return {
        "run numpy": lambda: PLAN.run(x, y), "run keyword": lambda: PLAN.run(x=x, out=y), "run torch": lambda: PLAN.run(t, ty),
        "run own": lambda: PLAN.run(own, y), "run legacy": lambda: PLAN.run(legacy, y), "run subclass": lambda: PLAN.run(sub, y),
        "run shape": fails(lambda: PLAN.run(y, y)), "run missing": fails(lambda: PLAN.run(x)), "run grad": fails(lambda: PLAN.run(grad, y)),
        "run masked": fails(lambda: PLAN.run(masked, y)), "run swapped": fails(lambda: PLAN.run(swapped, y)),
        "run broken": fails(lambda: PLAN.run(broken, y)), "run unknown": fails(lambda: PLAN.run(x, y, nonsense=1)),
        "run none": fails(lambda: PLAN.run(None, y)), "run stream": fails(lambda: PLAN.run(x, y, stream=0)),
        "can": lambda: PLAN.can_implement(x, y), "cannot": lambda: PLAN.can_implement(y, x), "spec": lambda: PLAN.can_implement(bc.TensorSpec((4, 2 * N)), y),
        "bind": lambda: PLAN.bind(x, y)(), "bind legacy": lambda: PLAN.bind(legacy, y), "rebind": lambda: bound.rebind(x=x)(),
        "rebind fails": fails(lambda: bound.rebind(x=y)), "rebind unknown": fails(lambda: bound.rebind(nonsense=y)),
        "F numpy": lambda: F.swiglu(x), "F torch": lambda: F.swiglu(t), "F own": lambda: F.swiglu(own), "F fails": fails(lambda: F.swiglu(masked)),
        "F shape": fails(lambda: F.swiglu(x[:, :3])), "F grad": fails(lambda: F.swiglu(grad)), "export": lambda: np.from_dlpack(own),
        "borrow": lambda: bc.from_dlpack(t), "legacy export": lambda: own.__dlpack__(), "slice": lambda: own[1:],
    }  # fmt: skip


@pytest.fixture(scope="module")
def cheap_collections() -> Iterator[None]:
    """What torch and jax made at import is left out of the many collections below."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("cheap_collections")
@pytest.mark.parametrize("path", list(every_path()))
def test_nothing_leaks(path: str) -> None:
    call = every_path()[path]
    held = [c.cell_contents for c in call.__closure__ or ()]
    inner = [c.cell_contents for h in held if callable(h) and getattr(h, "__closure__", None) for c in h.__closure__]
    objects = [o for o in (*held, *inner) if not callable(o)] + [PLAN, np.dtype(np.float32), None, torch.float32]

    def loop(n: int) -> None:
        for _ in range(n):
            call()

    loop(50)
    gc.collect()
    before = [sys.getrefcount(o) for o in objects]
    blocks = sys.getallocatedblocks()
    loop(1000)
    gc.collect()
    grown = [(type(o).__name__, sys.getrefcount(o) - b) for o, b in zip(objects, before, strict=True)]
    assert not [g for g in grown if abs(g[1]) > 50], f"reference counts moved: {grown}"
    assert sys.getallocatedblocks() - blocks < 500, "memory blocks stay behind"


@pytest.mark.skipif(
    os.environ.get("BARACUDA_SANITIZER") is not None, reason="a sanitizer keeps what was freed for a while"
)
def test_memory_stays_the_same_over_all_paths() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc")
    paths = every_path().values()

    def loop(n: int) -> None:
        for _ in range(n):
            for call in paths:
                call()

    loop(100)
    gc.collect()
    before = resident()
    loop(300)
    gc.collect()
    pages = resident() - before
    assert pages < 200, f"{pages} pages more after 300 rounds"


def test_bound_plans_hold_their_tensors() -> None:
    x, y = X.copy(), out()
    counts = sys.getrefcount(x), sys.getrefcount(y)
    bound = PLAN.bind(x, y)
    assert sys.getrefcount(x) > counts[0] and sys.getrefcount(y) > counts[1]
    bound.rebind(x=X.copy())
    assert sys.getrefcount(x) == counts[0], "rebind lets go of what it replaces"
    del bound
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(y)) == counts


def test_describe_and_overlap_refuse_what_run_refuses() -> None:
    for bad in (None, "x", np.ma.masked_array(X)):
        with pytest.raises(bc.InvalidProblemError):
            _core.describe(bad)
        with pytest.raises(bc.InvalidProblemError):
            _core.overlap(X, bad)
