"""What the generated tests are too small for, on devices: wide heads and split keys, tiles of all sizes, many ids, numbers
and positions that are tensors of the device, and what kernels find in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.memory.device import Device

Array = np.ndarray[Any, Any]


@pytest.fixture(params=["cuda", "metal"])
def place(request: pytest.FixtureRequest) -> str:
    if not Device(request.param).usable:
        pytest.skip(f"{request.param}: {Device(request.param).reason}")
    return str(request.param)


def host(t: bc.Tensor) -> Array:
    return np.asarray(t.to("cpu").numpy())


def attend(place: str, desc: Any, tensors: dict[str, Array], kv_len: Any) -> dict[str, Array]:
    """Forward and backward of one problem."""

    def run(plan: Any, **given: Any) -> None:
        scratch = bc.empty(plan.workspace_size, "u8", device=place) if plan.workspace_size else None
        plan.run(**given, workspace=scratch)

    at = {name: bc.asarray(x, device=place) for name, x in tensors.items()}
    (b, h, s, _), dv = tensors["q"].shape, tensors["v"].shape[3]
    made = {"out": bc.zeros((b, h, s, dv), device=place), "lse": bc.zeros((b, h, s), device=place)}
    inputs = {name: at[name] for name in "qkv"}
    run(bc.plan(desc, place), **inputs, **made, kv_len=kv_len)
    gradients = {"d" + name: bc.zeros(tensors[name].shape, device=place) for name in "qkv"}
    run(bc.plan(desc.backward(), place), dout=at["dout"], **inputs, **made, **gradients, kv_len=kv_len)
    Device(place).check()
    return {name: host(t) for name, t in (made | gradients).items()}


@pytest.mark.parametrize(
    ("heads", "lengths", "dims", "causal", "kv_len"),
    [
        ((2, 1), (70, 130), (128, 128), True, -1),
        ((2, 2), (33, 70), (100, 130), False, -1),
        ((4, 2), (40, 50), (72, 200), True, 45),
        ((8, 2), (1, 700), (128, 128), True, 530),
        ((24, 1), (1, 300), (64, 96), False, 300),
        ((2, 1), (20, 30), (0, 5), False, -1),
        ((2, 1), (20, 30), (5, 0), True, 7),
    ],
)
@pytest.mark.parametrize("number", [True, False], ids=["number", "tensor"])
def test_attention_of_wide_heads_and_many_keys(
    place: str,
    heads: tuple[int, int],
    lengths: tuple[int, int],
    dims: tuple[int, int],
    causal: bool,
    kv_len: int,
    number: bool,
    rng: np.random.Generator,
) -> None:
    (h, hkv), (sq, sk), (d, dv) = heads, lengths, dims
    shapes = {"q": (1, h, sq, d), "k": (1, hkv, sk, d), "v": (1, hkv, sk, dv), "dout": (1, h, sq, dv)}
    tensors = {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    used = sk if kv_len < 0 else kv_len
    tensors["k"][:, :, used:] = tensors["v"][:, :, used:] = np.nan  # never read
    desc = bc.AttentionDescriptor(shapes["q"], shapes["k"], shapes["v"], causal)
    got = attend(place, desc, tensors, kv_len if number else bc.asarray(np.array(kv_len), device=place))
    want = attend("cpu", desc, tensors, kv_len)
    for name, value in want.items():
        # Both are within the same bound, and scores are of the size of 1.
        assert np.allclose(got[name], value, rtol=1e-5, atol=2e-5), name


def test_attention_of_wide_heads_in_a_window(place: str, rng: np.random.Generator) -> None:
    """Blocks of keys before all windows are NaN and never read, as what is behind kv_len."""
    shapes = {"q": (1, 2, 70, 72), "k": (1, 1, 300, 72), "v": (1, 1, 300, 130), "dout": (1, 2, 70, 130)}
    tensors = {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}
    kv_len = 290
    for name in "kv":
        tensors[name][:, :, :128] = tensors[name][:, :, kv_len:] = np.nan
    desc = bc.AttentionDescriptor(shapes["q"], shapes["k"], shapes["v"], window_left=30, window_right=2, softcap=2.0)
    got, want = attend(place, desc, tensors, kv_len), attend("cpu", desc, tensors, kv_len)
    for name, value in want.items():
        assert np.isfinite(value).all() and np.allclose(got[name], value, rtol=1e-5, atol=2e-5), name


def transposed(x: Array, place: str) -> bc.Tensor:
    """The same values, stored with the last two dimensions exchanged."""
    axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return bc.asarray(np.ascontiguousarray(x.swapaxes(-1, -2)), device=place).transpose(*axes)


@pytest.mark.parametrize(
    ("a", "b"), [((130, 33, 19), (130, 19, 17)), ((70, 300), (3, 300, 70)), ((8, 264), (264, 80)), ((1, 72), (72, 40))]
)
def test_products_of_all_layouts(place: str, a: tuple[int, ...], b: tuple[int, ...], rng: np.random.Generator) -> None:
    x, y = (rng.normal(size=s).astype(np.float32) for s in (a, b))
    want, size = x.astype(np.float64) @ y, np.abs(x).astype(np.float64) @ np.abs(y)
    for left in (bc.asarray(x, device=place), transposed(x, place)):
        for right in (bc.asarray(y, device=place), transposed(y, place)):
            got = host(F.matmul(left, right))
            assert (np.abs(got - want) <= 8 * np.finfo(np.float32).eps * np.sqrt(a[-1]) * size).all()


def test_numbers_of_a_product_on_the_device(place: str, rng: np.random.Generator) -> None:
    a, b, c = (rng.normal(size=s).astype(np.float32) for s in ((9, 5), (5, 7), (9, 7)))
    for beta in (0.0, 0.5):
        given = c if beta else np.full_like(c, np.nan)
        alpha_beta = {k: bc.asarray(np.array(v, np.float32), device=place) for k, v in (("alpha", 2.0), ("beta", beta))}
        got = F.addmm(*(bc.asarray(t, device=place) for t in (given, a, b)), **alpha_beta)
        assert np.allclose(host(got), beta * c + 2 * (a @ b), atol=1e-5)


@pytest.mark.parametrize(("rows", "count", "columns"), [(50000, 5000, 20), (3, 3000, 130)])
def test_gradients_of_many_ids(place: str, rows: int, count: int, columns: int, rng: np.random.Generator) -> None:
    ids = rng.integers(0, rows, count)
    ids[: count // 3] = 1
    dy = rng.normal(size=(count, columns)).astype(np.float32)
    got = host(F.embedding_backward(bc.asarray(dy, device=place), bc.asarray(ids, device=place), rows))
    assert np.array_equal(got, F.embedding_backward(dy, ids, rows))


@pytest.mark.parametrize("element", [np.float32, np.float64])
def test_adamw_reads_its_numbers_on_the_device(place: str, element: Any, rng: np.random.Generator) -> None:
    if place == "metal" and element is np.float64:
        pytest.skip("Metal has no f64")
    shapes = ((5000,), (3, 4))
    params, grads = ([rng.normal(size=s).astype(element) for s in shapes] for _ in range(2))
    lists = [params, grads, [p * element(0.1) for p in params], [p * p for p in params]]
    for step, lr, beta1 in ((3, 1e-3, 0.875), (100000, 1e-2, 0.5)):
        numbers = {"step": np.array(step), "lr": np.array(lr, element), "beta1": np.array(beta1, element)}
        want = [[x.copy() for x in values] for values in lists]
        got = [[bc.asarray(x, device=place) for x in values] for values in lists]
        F.adamw_(*want, **{k: v.item() for k, v in numbers.items()})
        F.adamw_(*got, **{k: bc.asarray(v, device=place) for k, v in numbers.items()})
        Device(place).check()
        for some, others in zip(want, got, strict=True):
            for x, y in zip(some, others, strict=True):
                assert np.allclose(x, host(y), rtol=1e-5, atol=1e-6)
    before = host(got[0][0])
    F.adamw_(*got, step=bc.asarray(np.array(0), device=place))
    with pytest.raises(bc.IndexOutOfRangeError):
        Device(place).check()
    assert np.array_equal(before, host(got[0][0])), "a step that is refused updates nothing"


def calls(place: str) -> dict[str, Callable[[int], object]]:
    """Calls whose index is `bad`, and is found by the kernel."""

    def at(x: Any) -> bc.Tensor:
        return bc.asarray(np.asarray(x), device=place)

    weight, rows = at(np.ones((10, 4), np.float32)), at(np.ones((3, 4), np.float32))
    x, table = at(np.ones((2, 3, 8), np.float32)), at(np.ones((10, 4), np.float32))
    q, k = at(np.ones((1, 1, 3, 4), np.float32)), at(np.ones((1, 1, 9, 4), np.float32))
    lines = at(np.ones((9, 1, 4), np.float32))
    cache, new = at(np.ones((2, 1, 11, 4), np.float32)), at(np.ones((2, 1, 2, 4), np.float32))
    attention = bc.plan(bc.AttentionDescriptor(q.shape, k.shape, k.shape, save_lse=False), place)
    append = bc.plan(bc.KvCacheAppendDescriptor(cache.shape, new.shape, (2,)), place)
    return {
        "embedding": lambda bad: F.embedding(at([1, bad, 3]), weight),
        "embedding_backward": lambda bad: F.embedding_backward(rows, at([1, bad, 3]), 10),
        "rope position": lambda bad: F.rope(x, table, table, at(bad)),
        "rope positions": lambda bad: F.rope(x, table, table, positions=at([[0, 1, 2], [3, bad, 5]])),
        "attention": lambda bad: attention.run(q, k, k, at(np.ones((1, 1, 3, 4), np.float32)), kv_len=at(bad)),
        "packed queries": lambda bad: F.varlen_attn(lines, lines, lines, at([0, bad, 9]), at([0, 4, 9]), 9, 9),
        "packed keys": lambda bad: F.varlen_attn(lines, lines, lines, at([0, 4, 9]), at([0, bad, 9]), 9, 9),
        "append": lambda bad: append.run(new, at([0, bad]), cache),
    }


@pytest.mark.parametrize("bad", [10, -2, 1 << 40])
def test_kernels_find_indices_out_of_range(place: str, bad: int) -> None:
    packed = r"cu_seq_[qk]: got -?\d+ at element 1"
    kinds = {"attention": "kv_len: got length", "packed queries": packed, "packed keys": packed}
    for name, call in calls(place).items():
        call(bad)
        with pytest.raises(bc.IndexOutOfRangeError, match=kinds.get(name, "got index")):
            Device(place).check()
            pytest.fail(f"{name} found nothing")


@pytest.mark.parametrize("base", [10000.0, 1234567.89, np.float32(2.5), np.int64((1 << 24) + 1)], ids=str)
def test_angles_of_far_positions(place: str, base: Any) -> None:
    """Where a float's angle would be off by 1e-3; NumPy numbers are tensors of the device."""
    rows, pairs = 30011, 3
    given = bc.asarray(np.asarray(base), device=place) if isinstance(base, np.generic) else base
    made = {name: bc.zeros((rows, pairs), device=place) for name in ("cos", "sin")}
    bc.plan(bc.RopeTableDescriptor((rows, pairs)), place).run(**made, base=given)
    angle = np.arange(rows)[:, None] * float(base) ** (-np.arange(pairs) / pairs)
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        np.testing.assert_allclose(host(made[name]), function(angle), rtol=0, atol=2**-23)
