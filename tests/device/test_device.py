"""Devices and tensors on them, on the emulated cuda module with two devices: memory, views, copies, DLPack, failures."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from fakecuda import calls, failing, live, needs_emulator, on_devices
from hypothesis import given, settings
from hypothesis import strategies as st

import baracuda as bc
import baracuda.functional as F
from baracuda import _core, info
from baracuda.describe.elements import Element
from baracuda.memory import views

PLACES = ("cuda:0", "cuda:1")
X = np.arange(24, dtype=np.float32).reshape(4, 6)


def host(t: bc.Tensor) -> np.ndarray[Any, Any]:
    return t.to("cpu").numpy()


# --- views: for every device, the cpu too --------------------------------------------------------------------------

_KEYS = st.one_of(
    st.integers(-4, 4),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-5, 5))] * 2, st.sampled_from([None, 1, 2, 3, -1, -2])),
    st.none(),
    st.just(Ellipsis),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=4), st.lists(_KEYS, max_size=5), st.booleans())
def test_index_is_numpys(shape: list[int], keys: list[Any], flip: bool) -> None:
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    x = x.T if flip else x
    t = bc.from_dlpack(x)
    key = keys[0] if len(keys) == 1 else tuple(keys)
    try:
        want = np.asarray(x[key] if isinstance(key, tuple) else x[(key,)])
    except IndexError:
        with pytest.raises(IndexError):
            t[key]
        return
    if want.ndim > 8:
        with pytest.raises(bc.InvalidProblemError, match="at most 8"):
            t[key]
        return
    got = t[key]
    assert got.shape == want.shape
    assert (got.numpy() == want).all()
    if want.size:
        assert np.shares_memory(got.numpy(), x)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=4), st.permutations(range(4)), st.data())
def test_transpose_and_reshape_are_numpys(shape: list[int], order: list[int], data: st.DataObject) -> None:
    base = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    axes = [a for a in order if a < len(shape)]
    x = base.transpose(axes)
    t = bc.from_dlpack(base).transpose(*axes)
    assert t.shape == x.shape
    assert (t.numpy() == x).all()
    assert t.transpose().shape == x.T.shape
    wanted = data.draw(st.lists(st.integers(-1, 12), max_size=4))
    try:
        made = x.reshape(wanted)
    except ValueError:
        with pytest.raises(bc.InvalidProblemError, match="reshape"):
            t.reshape(wanted)
        return
    if made.size and not np.shares_memory(made, x):
        with pytest.raises(bc.InvalidProblemError, match="without a copy"):
            t.reshape(*wanted) if wanted else t.reshape(())
        return
    got = t.reshape(wanted)
    assert got.shape == made.shape
    assert (got.numpy() == made).all()


@pytest.mark.parametrize("key", [[0, 1], np.array([0]), True, np.True_, X > 0, ([0], 1)])
def test_keys_that_copy_read_as_numpys(key: Any) -> None:
    assert np.array_equal(bc.asarray(X)[key].numpy(), X[key])


@pytest.mark.parametrize("key", ["a", 1.0, [0.5]])
def test_keys_of_no_integers_are_refused(key: Any) -> None:
    with pytest.raises(bc.InvalidProblemError, match="want ints, slices"):
        bc.asarray(X)[key]


def test_axes_are_checked() -> None:
    t = bc.asarray(X)
    for axes in ((0,), (0, 0), (0, 2), ("a", 0), (0, 1, 2)):
        with pytest.raises(bc.InvalidProblemError, match="transpose"):
            t.transpose(*axes)
    assert t.transpose(-1, 0).shape == t.transpose((1, 0)).shape == t.transpose(None).shape == (6, 4)


def test_reach_and_contiguity() -> None:
    with pytest.raises(bc.InvalidProblemError, match="at most 8"):
        bc.zeros(1).reshape((1,) * 9)
    assert views.reach((2, 3), (-3, 1)) == (-3, 3)
    assert views.reach((2, 0), (9, 9)) == (0, 0)
    assert views.reach((), ()) == (0, 1)
    assert views.is_contiguous((3, 1, 2), (2, 77, 1))
    assert not views.is_contiguous((3, 2), (1, 3))


# --- devices --------------------------------------------------------------------------------------------------------


@on_devices
def test_devices_are_listed_with_what_they_are() -> None:
    found = {d.name: d for d in bc.devices()}
    assert [name for name in found if name != "metal"] == ["cpu", "cuda:0", "cuda:1"]
    for i, name in enumerate(PLACES):
        d = found[name]
        assert d.usable and not d.reason
        assert (d.backend, d.index, str(d)) == ("cuda", i, name)
        assert d.model and d.arch >= 80 and d.units > 0 and d.memory > 0
        assert d.driver.count(".") == 1 and d.runtime.count(".") == 1
        assert all(text in d.description for text in (d.model, str(d.arch), d.driver, d.runtime))
        assert name in info.text() and d.model in info.text()
    assert bc.Device("cuda") == bc.Device("cuda:0") != bc.Device("cuda:1")
    cpu = bc.Device("cpu")
    assert cpu.usable and cpu.memory > 0 and cpu.units >= 1 and cpu.driver == ""
    facts = json.loads(json.dumps(info.collect()))
    assert [d["name"] for d in facts["devices"]] == list(found)
    missing = bc.Device("cuda:2")
    assert not missing.usable and "2 devices" in missing.description
    assert (missing.model, missing.memory) == ("", 0)
    with pytest.raises(bc.BackendUnavailableError, match=r"cuda:2.*2 devices"):
        missing.check()
    assert bc.capabilities("glu", device="cuda:1", state="usable")


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cuda:-1", "cuda:", "cpu:1", "metal:1", "cuda:0:0", "", None, 3])
def test_names_of_no_device(device: Any) -> None:
    for ask in (bc.Device, bc.synchronize, bc.Stream, lambda d: bc.empty(3, device=d), lambda d: bc.zeros(3, device=d)):
        with pytest.raises(bc.InvalidProblemError, match="device"):
            ask(device)


def test_the_cpu_has_no_streams() -> None:
    with pytest.raises(bc.InvalidProblemError, match="cpu"):
        bc.Stream("cpu")
    bc.synchronize()
    bc.Device("cpu").check()


@needs_emulator
def test_machines_with_fewer_devices() -> None:
    ask = (
        "import baracuda as bc\n"
        "print([(d.name, d.usable, d.reason) for d in bc.devices()])\n"
        "d = bc.GatedActivationDescriptor('glu', (4, 6))\n"
        "for make in (lambda: bc.empty(3, device='cuda:1'), lambda: bc.plan(d, 'cuda:1'), lambda: bc.Stream('cuda:1')):\n"
        "    try: make()\n"
        "    except bc.BackendUnavailableError as e: print('refused', e.code, e)\n"
    )
    for count, text in (("0", "no CUDA-capable device"), ("1", "there is 1 device")):
        env = os.environ | {"BARACUDA_FAKE_CUDA_DEVICES": count}
        done = subprocess.run([sys.executable, "-c", ask], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.count("refused no_device") == 3, done.stdout
        assert done.stdout.lower().count(text.lower()) >= (3 if count == "1" else 1), done.stdout


# --- memory ---------------------------------------------------------------------------------------------------------


@on_devices
@pytest.mark.parametrize("element", [e for e in Element if e.bits >= 8], ids=str)
def test_every_element_goes_and_comes_back(element: Element, rng: np.random.Generator) -> None:
    for shape in ((), (0, 3), (5,), (2, 3, 4)):
        raw = rng.integers(0, 256, (*shape, element.nbytes), np.uint8)
        if element is Element.BOOL:
            raw &= 1
        source = bc.empty(shape, element)
        source.reshape(-1).copy_from(bc.from_pointer(raw.ctypes.data, (source.numel,), element, owner=raw))
        for place in PLACES:
            t = source.to(place)
            assert (t.device, t.element, t.shape) == (place, element, shape)
            assert t.to(place) is t
            back = t.to("cpu")
            assert back.device == "cpu"
            held = (ctypes.c_uint8 * back.nbytes).from_address(back.address)
            assert bytes(held) == raw.tobytes()


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_views_on_a_device_are_those_on_the_host(place: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4, 5)).astype(np.float32)
    t = bc.asarray(x, device=place)
    for key in (1, (..., 2), (slice(None), 1, slice(None, None, -1)), (None, slice(2, 0, -1)), (2, 3, 4), slice(5, 9)):
        got = t[key]
        assert got.device == place
        assert (host(got) == x[key]).all()
    assert (host(t.transpose(2, 0, 1)) == x.transpose(2, 0, 1)).all()
    assert (host(t.transpose()[::2, 1:]) == x.T[::2, 1:]).all()
    assert (host(t.reshape(12, 5).reshape(-1)) == x.reshape(-1)).all()
    assert t[1, 2, 3].item() == x[1, 2, 3].item()
    assert len(t) == 3 and place in repr(t)
    assert [float(r[0, 0].item()) for r in t] == [float(v) for v in x[:, 0, 0]]


@on_devices
def test_views_keep_the_memory() -> None:
    t = bc.asarray(X, device="cuda:1")
    view = t[1:, ::2].transpose()
    address, bytes_before = t.address, live().bytes
    del t
    gc.collect()
    assert live().bytes == bytes_before
    assert view.address == address + 6 * 4
    assert (host(view) == X[1:, ::2].T).all()


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_copy_from_anywhere_to_anywhere(place: str, rng: np.random.Generator) -> None:
    x = rng.normal(size=(4, 6)).astype(np.float32)
    other = PLACES[1 - PLACES.index(place)]
    sources = [x, bc.asarray(x), bc.asarray(x, device=place), bc.asarray(x, device=other)]
    sources += [np.asfortranarray(x), bc.asarray(x.T.copy(), device=place).transpose()]
    sources += [bc.asarray(x.T.copy(), device=other).transpose()]
    for source in sources:
        memory = bc.zeros((9, 13), device=place)
        plain = bc.empty((4, 6), device=place).copy_from(source)
        assert (host(plain) == x).all()
        view = memory[1::2, 12:0:-2]
        assert view.copy_from(source) is view
        bc.synchronize(place)
        want = np.zeros((9, 13), np.float32)
        want[1::2, 12:0:-2] = x
        assert (host(memory) == want).all(), "bytes beside the view stay"
        back = np.zeros((6, 4), np.float32)
        bc.from_dlpack(back).transpose().copy_from(source)
        assert (back == x.T).all()


@on_devices
def test_copy_from_is_checked() -> None:
    t = bc.zeros((4, 6), device="cuda:0")
    for bad in (X[:3], X.astype(np.float64), X.reshape(24)):
        with pytest.raises(bc.InvalidProblemError, match="copy_from"):
            t.copy_from(bad)
    frozen = X.copy()
    frozen.flags.writeable = False
    with pytest.raises(bc.InvalidProblemError, match="read-only"):
        bc.from_dlpack(frozen).copy_from(t)
    with pytest.raises(bc.InvalidProblemError, match="stream"):
        t.copy_from(X, stream=0)
    with pytest.raises(bc.InvalidProblemError, match="stream"):
        t.to("cpu", stream=bc.Stream("cuda:1"))
    assert not host(t).any()


@on_devices
def test_numpy_is_refused_with_the_way_out() -> None:
    t = bc.asarray(X, device="cuda:1")
    for ask in (t.numpy, lambda: np.asarray(t), lambda: np.array(t)):
        with pytest.raises(bc.InvalidProblemError, match=r"to\('cpu'\)"):
            ask()
    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(t)
    assert (bc.asarray(t).numpy() == X).all()
    assert bc.asarray(t, "f64", device="cuda:0").element is Element.F64
    with pytest.raises(bc.InvalidProblemError, match="item"):
        t.item()


@on_devices
def test_pointers_on_a_device() -> None:
    t = bc.asarray(X, device="cuda:1")
    seen = bc.from_pointer(t.address + 4, (4, 5), "f32", (6, 1), "cuda:1", nbytes=t.nbytes - 4, owner=t)
    assert (host(seen) == X[:, 1:]).all()
    with pytest.raises(bc.BufferTooSmallError):
        bc.from_pointer(t.address, (5, 6), "f32", device="cuda:1", nbytes=t.nbytes)
    with pytest.raises(bc.BackendUnavailableError):
        bc.from_pointer(t.address, (4, 6), "f32", device="cuda:2")


@on_devices
def test_memory_that_is_not_there() -> None:
    kept = bc.asarray(X, device="cuda:0")
    before = live()
    with pytest.raises(bc.DeviceMemoryError, match="cuda:0") as caught:
        bc.empty(2**40, device="cuda:0")
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, bc.DeviceError)
    assert caught.value.code == "device_memory"
    assert caught.value.refusals[0].needed == 2**42
    for make in (
        lambda: bc.empty(3, device="cuda:0"), lambda: bc.zeros(3, device="cuda:0"), lambda: bc.asarray(X, device="cuda:0"),
        lambda: bc.asarray(X).to("cuda:0"), lambda: kept.to("cuda:1"),
    ):  # fmt: skip
        with failing("cudaMalloc:1"), pytest.raises(bc.DeviceMemoryError):
            make()
    gc.collect()
    assert live() == before
    assert (host(kept) == X).all()


@on_devices
def test_transfers_that_fail() -> None:
    t = bc.asarray(X, device="cuda:0")
    before = live()
    for api, make in (
        ("cudaMemcpyAsync", lambda: t.to("cpu")), ("cudaMemcpyAsync", lambda: bc.asarray(X, device="cuda:0")),
        ("cudaStreamSynchronize", lambda: t.to("cpu")), ("cudaMemsetAsync", lambda: bc.zeros(3, device="cuda:0")),
        ("cudaDeviceSynchronize", lambda: bc.synchronize("cuda:0")), ("cudaStreamCreateWithFlags", lambda: bc.Stream("cuda:0")),
        ("cudaSetDevice", lambda: bc.empty(3, device="cuda:1")),
    ):  # fmt: skip
        with failing(f"{api}:1"), pytest.raises(bc.DeviceError, match=api) as caught:
            make()
        assert caught.value.code == "launch_failed"
        assert not isinstance(caught.value, MemoryError)
    gc.collect()
    bc.synchronize("cuda:0")
    assert live().allocations == before.allocations
    assert (host(t) == X).all()


# --- DLPack ---------------------------------------------------------------------------------------------------------


class Foreign:
    """Another framework's tensor on a device, which notes what it is asked."""

    def __init__(self, tensor: bc.Tensor, old: bool = False) -> None:
        self.tensor, self.old, self.asked = tensor, old, []

    def __dlpack__(self, **kwargs: Any) -> Any:
        self.asked.append(kwargs)
        if self.old and "max_version" in kwargs:
            raise TypeError("max_version")
        return self.tensor.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@on_devices
@pytest.mark.parametrize("place", PLACES)
def test_dlpack_carries_the_device(place: str) -> None:
    t = bc.asarray(X, device=place)
    where = (2, PLACES.index(place))
    assert t.__dlpack_device__() == where
    assert bc.asarray(X).__dlpack_device__() == (1, 0)
    foreign = Foreign(t)
    seen = bc.from_dlpack(foreign)
    assert foreign.asked[0]["stream"] == -1, "no synchronisation is asked for"
    assert (seen.device, seen.address, seen.shape, seen.read_only) == (place, t.address, t.shape, False)
    assert (host(seen[:, 1]) == X[:, 1]).all()
    old = Foreign(t, old=True)
    assert bc.from_dlpack(old).read_only
    assert old.asked[-1] == {"stream": -1}
    assert bc.from_dlpack(t.__dlpack__(max_version=(1, 0))).device == place
    assert bc.from_dlpack(t.__dlpack__(dl_device=where, max_version=(1, 0))).device == place
    for kwargs in ({"dl_device": (1, 0)}, {"dl_device": (2, 1 - where[1])}, {"copy": True}):
        with pytest.raises(BufferError):
            t.__dlpack__(**kwargs)
    with pytest.raises(ValueError, match="stream 0"):
        t.__dlpack__(stream=0)
    assert (bc.asarray(foreign).numpy() == X).all()


@on_devices
def test_an_export_waits_for_work_unless_told_not_to() -> None:
    t = bc.asarray(X, device="cuda:0")
    source = bc.asarray(X + 1, device="cuda:0")
    stream = bc.Stream("cuda:0", non_blocking=True)
    for kwargs, waits in (
        ({"stream": -1}, False),
        ({"stream": 1}, True),
        ({}, True),
        ({"stream": stream.handle}, True),
    ):
        t.copy_from(source, stream=stream)
        assert live().pending == 1
        t.__dlpack__(max_version=(1, 0), **kwargs)
        assert live().pending == (0 if waits else 1), kwargs
        stream.synchronize()


@on_devices
def test_one_allocation_per_tensor_and_no_others() -> None:
    before = live()
    tensors = [bc.empty((i, 3), device=PLACES[i % 2]) for i in range(6)]
    assert live().allocations == before.allocations + 6
    allocated = calls("cudaMalloc")
    tensors[0].transpose(), tensors[5][1:, ::2], bc.from_dlpack(tensors[3]), tensors[4].to("cuda:0")
    assert calls("cudaMalloc") == allocated


@on_devices
def test_a_forked_child_gets_an_error() -> None:
    t = bc.asarray(X, device="cuda:0")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            bc.zeros(3, device="cuda:0")
            text = b"no error"
        except bc.DeviceError as e:
            text = str(e).encode()
        os.write(write, text)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    assert b"fork" in text
    assert (host(t) == X).all()


def test_plans_are_on_the_cpu_by_default() -> None:
    made, y = bc.plan(bc.GatedActivationDescriptor("swiglu", (4, 6))), bc.zeros((4, 3))
    assert (made.device, _core.device_count(0)) == ("cpu", 1)
    made.run(bc.asarray(X), y)
    assert (y.numpy() == F.swiglu(X)).all()
