"""Optimizers, gradient clipping, losses and random numbers on devices: numbers that are tensors there, lists longer than a
launch takes, what kernels find in the data, and one stream of random numbers everywhere."""

from __future__ import annotations

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


def host(t: Any) -> Array:
    return np.asarray(t.to("cpu").numpy())


def on(place: str, lists: list[list[Array]]) -> list[list[Any]]:
    return [[bc.asarray(x, device=place) for x in values] for values in lists]


def lists_of(shapes: list[tuple[int, ...]], count: int, rng: np.random.Generator) -> list[list[Array]]:
    return [[np.asarray(rng.uniform(0.1, 1, s), np.float32) for s in shapes] for _ in range(count)]


OPTIMIZERS: list[tuple[Any, int, dict[str, Any]]] = [
    (F.adam_, 4, {"lr": 1e-2, "beta1": 0.875, "weight_decay": 0.125, "step": 3}),
    (F.adam_, 5, {"lr": 1e-2, "step": 100000, "amsgrad": True}),
    (F.adamw_, 5, {"lr": 1e-2, "weight_decay": 0.125, "step": 3, "amsgrad": True, "maximize": True}),
    (F.sgd_, 2, {"lr": 1e-2, "weight_decay": 0.125}),
    (F.sgd_, 3, {"lr": 1e-2, "momentum": 0.5, "dampening": 0.25, "step": 2}),
    (F.sgd_, 3, {"lr": 1e-2, "momentum": 0.5, "nesterov": True, "step": 1}),
    (F.adagrad_, 3, {"lr": 1e-2, "lr_decay": 0.125, "step": 3}),
    (F.rmsprop_, 4, {"lr": 1e-2, "alpha": 0.875, "momentum": 0.5, "maximize": True}),
    (F.adadelta_, 4, {"lr": 0.0625, "rho": 0.875, "weight_decay": 0.125}),
    (F.adamax_, 4, {"lr": 1e-2, "beta2": 0.875, "step": 3}),
    (F.nadam_, 4, {"lr": 1e-2, "mu_product": 0.125, "step": 3, "decoupled_weight_decay": True}),
    (F.radam_, 4, {"lr": 1e-2, "step": 9}),
    (F.lion_, 3, {"lr": 1e-2, "beta1": 0.875, "weight_decay": 0.125}),
]


@pytest.mark.parametrize(("update", "count", "options"), OPTIMIZERS, ids=lambda v: getattr(v, "__name__", None))
def test_optimizers_read_their_numbers_on_the_device(
    place: str, update: Any, count: int, options: dict[str, Any], rng: np.random.Generator
) -> None:
    numbers = {k: np.array(v, np.int64 if k == "step" else np.float32) for k, v in options.items() if v is not True}
    flags = {k: v for k, v in options.items() if v is True}
    want = lists_of([(5000,), (3, 4), ()], count, rng)
    got, plain = on(place, want), on(place, want)
    update(*want, **options)
    update(*plain, **options)
    update(*got, **flags, **{k: bc.asarray(v, device=place) for k, v in numbers.items()})
    Device(place).check()
    for some, others, third in zip(want, got, plain, strict=True):
        for x, y, z in zip(some, others, third, strict=True):
            assert np.allclose(x, host(y), rtol=1e-5, atol=1e-6)
            assert np.allclose(x, host(z), rtol=1e-6, atol=1e-7)
    bad = {k: bc.asarray(v, device=place) for k, v in (numbers | {"lr": np.array(-1.0, np.float32)}).items()}
    before = [host(x) for values in got for x in values]
    update(*got, **flags, **bad)
    with pytest.raises(bc.IndexOutOfRangeError):
        Device(place).check()
    assert all(np.array_equal(a, host(x)) for a, x in zip(before, (x for v in got for x in v), strict=True))


@pytest.mark.parametrize("p", [2.0, 1.0, np.inf, 3.0])
def test_clipping_of_a_long_list(place: str, p: float, rng: np.random.Generator) -> None:
    shapes = [(k % 13, 1 + k % 7) for k in range(700)] + [(300, 41)]
    want = [np.asarray(rng.normal(size=s), np.float32) for s in shapes]
    got = [bc.asarray(x, device=place) for x in want]
    strided = bc.asarray(np.asarray(rng.normal(size=(60, 50)), np.float32), device=place)
    want.append(host(strided)[::2, ::-1].copy())
    got.append(strided[::2, ::-1])
    norm = F.clip_grad_norm_(want, 0.5, p)
    found = F.clip_grad_norm_(got, 0.5, p)
    assert host(found) == pytest.approx(float(norm), rel=1e-5)
    for x, y in zip(want, got, strict=True):
        assert np.allclose(x, host(y), rtol=1e-5)
    F.clip_grad_value_(want, 0.001)
    F.clip_grad_value_(got, bc.asarray(np.array(0.001, np.float32), device=place))
    for x, y in zip(want, got, strict=True):
        assert np.allclose(x, host(y), rtol=1e-5, atol=1e-9)
    Device(place).check()


def test_a_norm_that_is_not_finite_is_reported_when_the_device_is_asked(place: str) -> None:
    g = bc.asarray(np.array([1.0, np.inf], np.float32), device=place)
    F.clip_grad_norm_([g], 1.0)
    Device(place).check()
    F.get_total_norm([g], error_if_nonfinite=True)
    with pytest.raises(bc.ValueOutOfRangeError, match=r"total_norm: got (inf|nan), want a finite number") as caught:
        Device(place).check()
    assert caught.value.code == "value_out_of_range"
    Device(place).check()  # it is raised once


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_probabilities_are_checked(place: str, reduction: str) -> None:
    x, t = np.full((3, 700), 0.5, np.float32), np.full((3, 700), 0.25, np.float32)
    x[1, 300] = 1.5
    F.binary_cross_entropy(*(bc.asarray(v, device=place) for v in (x, t)), reduction=reduction)
    with pytest.raises(bc.ValueOutOfRangeError, match=r"input: got 1\.5 at element 1000, want 0 <= value <= 1"):
        Device(place).check()


def test_losses_of_many_elements_are_the_same_in_every_layout(place: str, rng: np.random.Generator) -> None:
    x, t = (rng.normal(size=(300, 401)).astype(np.float32) for _ in range(2))
    want = float(np.mean(np.square(x.astype(np.float64) - t)))
    a, b = (bc.asarray(v, device=place) for v in (x, t))
    c = bc.asarray(np.ascontiguousarray(x.T), device=place).transpose()
    d = bc.asarray(np.repeat(x, 2, 1), device=place)[:, ::2]
    for given in (a, c, d):
        assert float(host(F.mse_loss(given, b))) == pytest.approx(want, rel=1e-6)
    row = bc.asarray(t[:1], device=place)
    assert float(host(F.l1_loss(a, row, reduction="sum"))) == pytest.approx(float(np.abs(x - t[:1]).sum(dtype=float)))


def test_class_losses_of_many_rows(place: str, rng: np.random.Generator) -> None:
    x, target = rng.normal(size=(3000, 9)).astype(np.float32), rng.integers(0, 9, 3000)
    target[::5] = -100
    weight, q = rng.uniform(0.1, 2, 9).astype(np.float32), rng.uniform(0, 1, (3000, 9)).astype(np.float32)
    a, w = bc.asarray(x, device=place), bc.asarray(weight, device=place)
    for name, t, options in (
        ("cross_entropy", target, {"label_smoothing": 0.1}),
        ("cross_entropy", q, {"label_smoothing": 0.1}),
        ("nll_loss", target, {}),
    ):
        want = getattr(F, name)(x, t, weight, **options)
        got = getattr(F, name)(a, bc.asarray(t, device=place), w, **options)
        assert float(host(got)) == pytest.approx(float(want), rel=1e-5)
    Device(place).check()


def test_random_numbers_are_those_of_the_cpu(place: str, rng: np.random.Generator) -> None:
    p = rng.uniform(0, 1, (7, 300)).astype(np.float32)
    at = bc.asarray(p, device=place)

    def both(call: Any, cpu: Any, device: Any) -> None:
        want, got = call(cpu, bc.Generator(5, 2**33)), call(device, bc.Generator(5, 2**33))
        assert host(got).tobytes() == np.asarray(want).tobytes()

    both(lambda x, g: F.bernoulli(x, generator=g), p, at)
    both(lambda x, g: F.dropout(x, 0.3, generator=g), p, at)
    for replacement in (True, False):
        both(lambda x, g, r=replacement: F.multinomial(x, 40, r, generator=g), p, at)
    for shape, dtype in (((1000,), np.int64), ((3, 5, 7), np.uint8), ((50,), np.float32)):
        cpu, device = np.empty(shape, dtype), bc.empty(shape, bc.Element.coerce(dtype), device=place)
        both(lambda y, g: F.random_(y, 0, 100, generator=g), cpu, device)
        both(lambda y, g: F.bernoulli_(y, 0.25, generator=g), cpu, device)
    for n in (1, 5, 1000):
        cpu, device = np.empty(n, np.int32), bc.empty((n,), "i32", device=place)
        both(lambda y, g, n=n: F.randperm(n, out=y, generator=g), cpu, device)
    Device(place).check()


def test_draws_read_their_numbers_on_the_device(place: str) -> None:
    def there(v: Any, dtype: Any) -> Any:
        return bc.asarray(np.array(v, dtype), device=place)

    y, seed, offset = bc.empty((500,), "i64", device=place), there(9, np.uint64), there(4, np.uint64)
    bc.plan(bc.RandintDescriptor((500,)), place).run(y, there(-3, np.int64), there(70, np.int64), seed, offset)
    want = np.empty(500, np.int64)
    bc.plan(bc.RandintDescriptor((500,))).run(want, -3, 70, 9, 4)
    assert np.array_equal(host(y), want)
    x, z = bc.asarray(np.ones(500, np.float32), device=place), bc.empty((500,), "f32", device=place)
    bc.plan(bc.DropoutDescriptor((500,)), place).run(x, z, there(0.25, np.float32), seed, offset)
    kept = np.empty(500, np.float32)
    bc.plan(bc.DropoutDescriptor((500,))).run(np.ones(500, np.float32), kept, 0.25, 9, 4)
    assert np.allclose(host(z), kept)
    Device(place).check()


def test_what_multinomial_cannot_draw(place: str) -> None:
    p = np.ones((3, 300), np.float32)
    p[2, 299] = -1.0
    F.multinomial(bc.asarray(p, device=place), 2)
    with pytest.raises(bc.ValueOutOfRangeError, match="p: got -1 at element 899, want a finite number that is not neg"):
        Device(place).check()
    p[2] = 0
    for replacement in (True, False):
        F.multinomial(bc.asarray(p, device=place), 2, replacement)
        with pytest.raises(bc.ValueOutOfRangeError, match="at element 600, want a finite sum above 0"):
            Device(place).check()
    p[2, 0] = 1
    F.multinomial(bc.asarray(p, device=place), 2, False)
    with pytest.raises(bc.ValueOutOfRangeError, match="at element 600, want a finite sum above 0"):
        Device(place).check()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [True, False])
def test_linear_cross_entropy_of_several_chunks(
    place: str, reduction: str, weighted: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baracuda.ops.loss.linear_cross_entropy_chunked._CHUNK", 64 * 33)
    tensors = [rng.normal(0, 1, s).astype(np.float32) for s in ((150, 8), (33, 8), (33,))]
    x, w, bias = tensors
    target = rng.integers(0, 33, 150)
    target[::4] = -100
    weight = rng.uniform(0.5, 2, 33).astype(np.float32) if weighted else None
    dloss = np.asarray(rng.normal(1, 0.2, (150,) if reduction == "none" else ()), np.float32)

    def results(where: str, smoothing: float) -> list[Array]:
        options: dict[str, Any] = {"reduction": reduction, "label_smoothing": smoothing}
        there = [None if v is None else bc.asarray(v, device=where) for v in (x, w, target, bias, weight, dloss)]
        given = {"linear_bias": there[3], "weight": there[4], **options}
        loss, lse = F.linear_cross_entropy_forward(*there[:3], **given)
        found = [loss, lse, F.linear_cross_entropy(*there[:3], **given)]
        found += F.linear_cross_entropy_backward(there[5], *there[:3], lse, **given)
        if reduction != "none":
            found += F.linear_cross_entropy_fused(*there[:3], **given, dloss=0.5 + smoothing)
        return [host(v) for v in found]

    for smoothing in (0.1, 0.3):  # a number of the call, not of what is remembered of it
        for got, want in zip(results(place, smoothing), results("cpu", smoothing), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    wrong = bc.asarray(np.where(target == 5, 33, target), device=place)
    if (target == 5).any():
        F.linear_cross_entropy(bc.asarray(x, device=place), bc.asarray(w, device=place), wrong)
        with pytest.raises(bc.IndexOutOfRangeError):
            Device(place).check()


@pytest.mark.parametrize("how", ["prod", "mean", "amax", "amin"])
def test_slices_are_folded_as_on_the_cpu(place: str, how: str, rng: np.random.Generator) -> None:
    x, source = (rng.normal(0, 1, s).astype(np.float32) for s in ((5, 7, 3), (5, 4, 3)))
    index = np.array([6, 0, 6, 2])
    dy = rng.normal(0, 1, x.shape).astype(np.float32)

    def results(where: str) -> list[Array]:
        there = [bc.asarray(v, device=where) for v in (x, index, source, dy)]
        y, pull = bc.vjp(F.index_reduce, there[0], 1, there[1], there[2], how, include_self=how != "mean")
        return [host(v) for v in (y, *pull(there[3]))]

    for got, want in zip(results(place), results("cpu"), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_masked_elements_are_scattered_as_on_the_cpu(place: str, rng: np.random.Generator) -> None:
    x, source, dy = (rng.normal(0, 1, s).astype(np.float32) for s in ((5, 1, 30), (2, 300), (5, 4, 30)))
    mask = rng.uniform(size=(4, 30)) > 0.4

    def results(where: str) -> list[Array]:
        there = [bc.asarray(v, device=where) for v in (x, mask, source, dy)]
        y, pull = bc.vjp(F.masked_scatter, *there[:3])
        return [host(v) for v in (y, *pull(there[3]))]

    for got, want in zip(results(place), results("cpu"), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_numbers_of_f64_on_the_device(place: str) -> None:
    """Metal has no f64, and reads one nevertheless, rounded to f32."""
    lists = lists_of([(40,)], 4, np.random.default_rng(0))
    want, got = on(place, lists), on(place, lists)
    F.adamw_(*want, lr=np.float32(1e-2).item(), step=3)
    lr = bc.asarray(np.array(np.float32(1e-2), np.float64), device=place)
    F.adamw_(*got, lr=lr, step=3)
    for some, others in zip(want, got, strict=True):
        np.testing.assert_array_equal(host(some[0]), host(others[0]))
    assert not (host(got[0][0]) == lists[0][0]).any(), "it moves"
