"""Methods of bc.Tensor that are functions of bc.functional, and its conversions."""

from __future__ import annotations

import numpy as np
import pytest

import baracuda as bc
import baracuda.functional as F
from baracuda.call.operators import METHODS

NAMES = [name for name, function in METHODS.items() if name == function]
X = np.random.default_rng(0).uniform(0.1, 2, (3, 4)).astype(np.float32)


def _plain(found: object) -> object:
    return [t.tolist() for t in found] if isinstance(found, tuple) else found.tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_the_function(name: str) -> None:
    x = bc.asarray(X)
    method, function = getattr(x, name), getattr(F, name)
    elementwise = name in ("abs", "exp", "log", "sqrt", "clip")
    calls: list[tuple[tuple[object, ...], dict[str, object]]] = (
        [((), {"max": 1.5}), ((0.5, 1.5), {})] if name == "clip" else [((), {})]
    )
    if not elementwise:
        calls += [((1,), {}), ((), {"dim": 0, "keepdim": True})]
    for args, options in calls:
        assert _plain(method(*args, **options)) == _plain(function(x, *args, **options))
    if name not in ("max", "min"):
        out = bc.empty(method(*calls[0][0], **calls[0][1]).shape, method(*calls[0][0], **calls[0][1]).element)
        assert method(*calls[0][0], **calls[0][1], out=out) is out
    with pytest.raises((TypeError, bc.InvalidProblemError)):
        method(colour=1)


def test_conversions() -> None:
    x = bc.asarray([1.75, -2.5])
    assert [str(t.element) for t in (x.float(), x.int(), x.astype("f16"))] == ["f32", "i32", "f16"]
    assert x.int().tolist() == [1, -2]
    same = x.float()
    assert same.float() is same and x.astype("f64") is not x
    assert float(x[0]) == 1.75 and int(x[1]) == -2  # Python's own conversions take one element
    with pytest.raises(bc.InvalidProblemError, match=r"astype"):
        x.to("f16")


def test_methods_are_differentiated() -> None:
    x = bc.asarray(X)
    got = bc.grad(lambda x: (x.float().exp() - x.mean(dim=1, keepdim=True)).abs().sum())(x)
    want = bc.grad(lambda x: F.sum(F.abs(F.sub(F.exp(x), F.mean(x, 1, True)))))(x)
    assert got.tolist() == want.tolist()


def test_methods_are_traced() -> None:
    def centred(x: bc.Tensor) -> bc.Tensor:
        return (x.float() - x.float().mean(dim=1, keepdim=True)).abs().sum()

    graph = bc.trace(centred, bc.TensorSpec((3, 4), "f64"))
    want = np.abs(X - X.mean(1, keepdims=True)).sum()
    assert np.asarray(graph.compile().run(X.astype(np.float64))) == pytest.approx(want, rel=1e-6)


def test_methods_are_fused() -> None:
    fused = bc.expr.fuse(lambda x: (x.exp() + x.mean(dim=-1, keepdim=True)).float())
    x = bc.asarray(X, "f64")
    assert fused(x).tolist() == F.cast(F.exp(x) + F.mean(x, -1, True), "f32").tolist()
