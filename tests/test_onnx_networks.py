"""Random networks run as ONNX's own reference does in f64, function by function and compiled, at every size of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the package onnx: pip install -e '.[test]'")

from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx.reference.op_run import OpRun  # noqa: E402
from onnx_networks import network  # noqa: E402

import baracuda as bc  # noqa: E402
import baracuda.onnx  # noqa: E402
from conftest import SEED  # noqa: E402

KINDS, OPSETS, ROUNDS = ("images", "tokens", "sequences"), (13, 15, 17, 18, 20, 22), 12
EPS = float(np.finfo(np.float32).eps)


class MaxPool(OpRun):
    """The package's own mixes up pads that differ."""

    op_domain = ""

    def _run(self, x: Any, kernel_shape: Any = None, pads: Any = None, strides: Any = None, **_: Any) -> tuple[Any]:
        n = len(kernel_shape)
        wide = [(0, 0), (0, 0), *((pads[i], pads[i + n]) for i in range(n))]
        seen = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, wide, constant_values=-np.inf), kernel_shape, tuple(range(2, 2 + n))
        )
        steps = (slice(None), slice(None), *(slice(None, None, s) for s in strides))
        return (seen[steps].max(tuple(range(-n, 0))),)


class BatchNormalization(OpRun):
    """The package's own is another function before opset 14."""

    op_domain = ""

    def _run(self, x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: Any = 1e-5, **_: Any) -> tuple[Any]:
        scale, bias, mean, var = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (scale, bias, mean, var))
        return ((x - mean) / np.sqrt(var + x.dtype.type(epsilon)) * scale + bias,)


def reference(model: Any, x: Any) -> list[Any]:
    with np.errstate(all="ignore"):
        found: list[Any] = ReferenceEvaluator(model, new_ops=[MaxPool, BatchNormalization]).run(None, {"x": x})
    return found


def worst(got: Any, wide: Any) -> float:
    """The largest error, in units of what f32 holds of the largest number."""
    assert got.shape == wide.shape and got.dtype == np.float32
    return float(np.abs(got.astype("f8") - wide).max(initial=0) / max(np.abs(wide).max(initial=0), 1e-30) / EPS)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turn", range(ROUNDS))
def test_networks_give_the_references_numbers(kind: str, turn: int) -> None:
    """No more than four times as far from f64 as NumPy in f32, and a few roundings per layer."""
    seed, opset = SEED + turn, OPSETS[turn % len(OPSETS)]
    model, double = (network(kind, seed, opset, double=d) for d in (False, True))
    loaded = baracuda.onnx.load(model)
    assert not loaded.missing
    rng = np.random.default_rng(seed)
    shape = [s for s in loaded.inputs[0].shape or () if isinstance(s, int)]
    any_batch = loaded.compile(dims={"batch": bc.Dim("n", max=5)}, frozen=bool(turn % 2))
    for batch in (1, 2, 5):
        x = rng.normal(size=(batch, *shape)).astype(np.float32)
        wide, narrow = reference(double, x.astype("f8")), reference(model, x)
        fixed = loaded.compile(dims={"batch": batch}, frozen=True)
        for run in (loaded.run, any_batch.run, fixed.run):
            for got, a, b in zip(run({"x": x}).values(), wide, narrow, strict=True):
                assert worst(got, a) <= 4 * worst(np.asarray(b, np.float32), a) + 64, (kind, seed, opset, batch, run)


def test_a_changed_weight_is_seen() -> None:
    """The tests' bound is not so wide that a wrong network keeps it."""
    model, double = (network("images", SEED, 17, double=d) for d in (False, True))
    x = np.random.default_rng(0).normal(
        size=(2, *[d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim][1:])
    )
    weights = onnx.numpy_helper.to_array(model.graph.initializer[-1]).copy()
    weights += np.float32(1e-3)
    model.graph.initializer[-1].CopyFrom(onnx.numpy_helper.from_array(weights, model.graph.initializer[-1].name))
    got = next(iter(baracuda.onnx.load(model).run({"x": x.astype(np.float32)}).values()))
    assert worst(got, reference(double, x.astype(np.float32).astype("f8"))[0]) > 64


@pytest.mark.parametrize("kind", KINDS)
def test_saved_networks_give_the_same_bits(kind: str, tmp_path: Any) -> None:
    model = baracuda.onnx.load(network(kind, SEED + 1, 17))
    compiled = model.compile(dims={"batch": bc.Dim("n", max=5)}, frozen=True)
    compiled.save(tmp_path / "saved")
    again = baracuda.onnx.CompiledModel.load(tmp_path / "saved")
    assert [str(p) for p in again.inputs] == [str(p) for p in compiled.inputs]
    x = np.random.default_rng(0).normal(size=(3, *[s for s in model.inputs[0].shape or () if isinstance(s, int)]))
    feeds = {"x": x.astype(np.float32)}
    for a, b in zip(compiled.run(feeds).values(), again.run(feeds).values(), strict=True):
        assert np.array_equal(a, b)
