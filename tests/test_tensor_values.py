"""bc.Tensor as a Python value: pickled, copied, and written as text; graphs as pictures in notebooks."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.memory.tensor import unbacked, unpickled

RNG = np.random.default_rng(0)
ELEMENTS = [e for e in bc.Element if e.bits >= 8]


def _random(shape: tuple[int, ...], element: bc.Element) -> bc.Tensor:
    """Every bit at random, NaN with payloads among them; truth values are 0 and 1."""
    out = bc.empty(shape, element)
    raw = RNG.integers(0, 2 if element is bc.Element.BOOL else 256, out.nbytes, np.uint8)
    if out.nbytes:
        out._opaque().reshape(-1).view(np.uint8)[...] = raw
    return out


def _bytes(tensor: bc.Tensor) -> bytes:
    return tensor._opaque().tobytes()


def _out_of_band(tensor: bc.Tensor) -> bc.Tensor:
    held: list[pickle.PickleBuffer] = []
    text = pickle.dumps(tensor, 5, buffer_callback=held.append)
    assert len(text) < 300 and len(held) == 1
    return pickle.loads(text, buffers=held)


WAYS: dict[str, Callable[[bc.Tensor], bc.Tensor]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "buffers": _out_of_band,
    **{f"pickle {p}": lambda t, p=p: pickle.loads(pickle.dumps(t, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)},
}


@pytest.mark.parametrize("way", WAYS)
def test_copies_have_the_same_bits_in_memory_of_their_own(way: str) -> None:
    for element in ELEMENTS:
        whole = _random((4, 5, 6), element)
        for x in (
            whole, whole[1:, ::-2], whole.permute(2, 0, 1), whole[1, 2, 3], whole[:0], whole[:1].expand(3, -1, -1),
            whole[:, None, :, 1],
        ):  # fmt: skip
            y = WAYS[way](x)
            assert (y.shape, y.element, y.device) == (x.shape, x.element, x.device)
            assert _bytes(y) == _bytes(x)
            assert y.numel == 0 or (y._opaque().flags.c_contiguous and not np.shares_memory(y._opaque(), x._opaque()))


def test_copies_can_be_written() -> None:
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    x = bc.from_dlpack(array)
    assert x.read_only
    for way in WAYS.values():
        y = way(x)
        assert not y.read_only
        y += 1
        assert (y.tolist(), x.tolist()) == ([1, 2, 3], [0, 1, 2])


def test_deepcopy_keeps_what_is_one_tensor_one() -> None:
    x = bc.zeros(3)
    first, (second, third) = copy.deepcopy([x, [x, x[:]]])
    assert first is second and first is not third and first is not x


def test_another_process_reads_them() -> None:
    text = pickle.dumps({"x": bc.asarray([[1, 2], [3, 4]], "bf16")})
    script = "import pickle, sys; t = pickle.load(sys.stdin.buffer)['x']; print(t.element, t.shape, t.astype('f32').tolist())"
    found = subprocess.run([sys.executable, "-c", script], input=text, capture_output=True, check=True)
    assert found.stdout.split(maxsplit=1) == [b"bf16", b"(2, 2) [[1.0, 2.0], [3.0, 4.0]]\n"]


def test_what_cannot_be_copied_is_refused() -> None:
    nothing = unbacked((2, 3), "f32")
    for way in ("copy", "deepcopy", "pickle 5"):
        with pytest.raises(bc.InvalidProblemError, match=r"(copy|pickle): got a shape without memory"):
            WAYS[way](nothing)
    with pytest.raises(bc.InvalidProblemError, match="got 3 bytes, want 12 for f32"):
        unpickled(b"abc", (3,), "f32", "cpu")
    absent = next((d for d in ("cuda:0", "metal") if bc.Device(d).reason), None)
    if absent is None:
        pytest.skip("all devices are here")
    with pytest.raises(bc.BackendUnavailableError, match=absent.partition(":")[0]):
        unpickled(bytes(12), (3,), "f32", absent)


def test_values_are_copied_while_a_function_is_traced() -> None:
    held = bc.asarray([1.0, 2.0])

    def double(x: bc.Tensor) -> bc.Tensor:
        assert pickle.loads(pickle.dumps(held)).tolist() == [1, 2] and "1., 2." in repr(held)
        return x * copy.copy(held)

    graph = bc.trace(double, bc.TensorSpec((2,), "f64"))
    assert len(graph.nodes) == 1 and len(graph.constants) == 1
    assert np.asarray(graph.compile().run(np.array([3.0, 4.0]))).tolist() == [3, 8]
    with pytest.raises(bc.InvalidProblemError, match="got a tensor without memory"):
        bc.trace(copy.copy, bc.TensorSpec((2,)))


@pytest.mark.parametrize(
    ("value", "element", "text"),
    [
        (3.5, "f32", "bc.Tensor(3.5, shape=(), element='f32')"),
        ([[1, 2], [3, 4]], "i64", "bc.Tensor([[1, 2],\n           [3, 4]],\n          shape=(2, 2), element='i64')"),
        ([True, False], "bool", "bc.Tensor([ True, False], shape=(2,), element='bool')"),
        ([1 + 2j], "c64", "bc.Tensor([1.+2.j], shape=(1,), element='c64')"),
        ([0.1, -0.0, np.nan], "f16", "bc.Tensor([ 0.1, -0. ,  nan], shape=(3,), element='f16')"),
        ([0.1, 2, -np.inf], "bf16", "bc.Tensor([0.1001, 2.    ,   -inf], shape=(3,), element='bf16')"),
        ([0.1, 448, np.nan], "f8e4m3", "bc.Tensor([1.0156e-01, 4.4800e+02,        nan], shape=(3,), element='f8e4m3')"),
        ([0.1, 1.75], "f8e5m2", "bc.Tensor([0.0938, 1.75  ], shape=(2,), element='f8e5m2')"),
        (-1.5, "bf16", "bc.Tensor(-1.5, shape=(), element='bf16')"),
        (-1.5, "f8e4m3", "bc.Tensor(-1.5, shape=(), element='f8e4m3')"),
        (np.zeros((0, 3)), "f64", "bc.Tensor([], shape=(0, 3), element='f64')"),
    ],
)
def test_short_tensors_are_written_whole(value: object, element: str, text: str) -> None:
    assert repr(bc.asarray(value, element)) == text


@pytest.mark.parametrize("element", ["bf16", "f8e4m3", "f8e5m2"])
def test_every_narrow_number_is_read_as_the_kernels_read_it(element: str) -> None:
    from baracuda.memory.text import _numbers

    kind = bc.Element.coerce(element)
    codes = np.arange(1 << kind.bits, dtype=np.uint16 if kind.bits == 16 else np.uint8)
    x = bc.from_pointer(codes.ctypes.data, codes.shape, element, owner=codes)
    want = F.cast(x, "f32").numpy()
    np.testing.assert_array_equal(_numbers(x, copy.copy).astype(np.float32), want)
    np.testing.assert_array_equal(np.signbit(_numbers(x, copy.copy)), np.signbit(want))


def test_what_else_a_tensor_is_stands_behind_its_values() -> None:
    x = bc.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert repr(x.T).endswith("shape=(3, 2), element='f32', strides=(1, 3))")
    assert repr(unbacked((3, 2), "f32", (1, 3))) == (
        "bc.Tensor(shape=(3, 2), element='f32', strides=(1, 3), without memory)"
    )
    assert str(x) == f"{x}" == repr(x)


@pytest.mark.parametrize("shape", [(5000,), (40, 50), (7, 8, 9, 10), (2, 3000), (1001, 1), (3, 1, 6, 100)])
@pytest.mark.parametrize("element", ["f32", "bf16", "i16"])
def test_large_tensors_show_their_edges_as_numpy_does(shape: tuple[int, ...], element: str) -> None:
    array = RNG.integers(-100, 100, shape).astype(np.float32)
    x = bc.asarray(array, element)
    shown = array if element != "i16" else array.astype(np.int16)
    want = np.array2string(shown, separator=", ", prefix="bc.Tensor(", threshold=1000)
    assert repr(x).startswith(f"bc.Tensor({want},") and "..." in want
    with np.printoptions(threshold=10, edgeitems=1):
        want = np.array2string(shown, separator=", ", prefix="bc.Tensor(")
        assert repr(x).startswith(f"bc.Tensor({want},")


def test_a_huge_tensor_is_not_copied() -> None:
    x = bc.zeros(1).expand(1 << 30, 1 << 20)  # no machine has the memory for its values
    assert repr(x) == (
        "bc.Tensor([[0., 0., 0., ..., 0., 0., 0.],\n"
        + "           [0., 0., 0., ..., 0., 0., 0.],\n" * 2
        + "           ...,\n"
        + "           [0., 0., 0., ..., 0., 0., 0.],\n" * 2
        + "           [0., 0., 0., ..., 0., 0., 0.]],\n"
        + "          shape=(1073741824, 1048576), element='f32', strides=(0, 0))"
    )


def test_messages_show_no_values() -> None:
    x = bc.asarray([1.5, 2.5])
    with pytest.raises(bc.InvalidProblemError, match=r"bc\.Tensor\(shape=\(2,\), element='f64', strides=\(1,\)\)"):
        bc.empty(x)  # type: ignore[arg-type]
    with pytest.raises(bc.InvalidProblemError, match=r"got bc\.Tensor\(shape=\(2,\)"):
        bc.Element.coerce(x)


def test_notebooks_draw_graphs_and_plans() -> None:
    graph = bc.trace(lambda x: F.relu(x) + 1, bc.TensorSpec((2, 3)))
    plan = graph.compile()
    for drawn in (graph, plan):
        assert drawn._repr_svg_() == drawn.to_svg() and drawn.to_svg().startswith("<svg")
