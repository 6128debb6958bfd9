"""Control flow, old and new opsets, quantized and half networks: run function by function, and compiled where it can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the package onnx: pip install -e '.[test]'")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import baracuda as bc  # noqa: E402
import baracuda.onnx  # noqa: E402

load = baracuda.onnx.load
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, kind: int = F32, shape: Any = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: list[Any], given: list[Any], made: list[str], opset: int = 17, **weights: Any) -> Any:
    kept = [numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()]
    graph = helper.make_graph(nodes, "g", given, [info(n) for n in made], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def branches() -> Any:
    then = helper.make_graph([helper.make_node("Relu", ["x"], ["a"])], "then", [], [info("a")])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "else", [], [info("b")])
    node = helper.make_node("If", ["c"], ["y"], name="which", then_branch=then, else_branch=other)
    return model([node], [info("x", F32, ["n", 3]), info("c", BOOL, [])], ["y"])


def test_branches() -> None:
    for c, want in ((True, np.maximum(X, 0)), (False, -X)):
        assert np.array_equal(load(branches()).run({"x": X, "c": c})["y"], want)
        known = load(branches(), constants={"c": c}).compile(dims={"n": bc.Dim("n", max=8)})
        assert np.array_equal(known.run({"x": X})["y"], want)
    with pytest.raises(bc.InvalidProblemError, match=r"node 'which' \(If\).*It comes from 'c'"):
        load(branches()).compile(dims={"n": 2})


def loop(trips: Any) -> Any:
    """v = v * 2 + i, as often as it says, and all of them."""
    body = helper.make_graph(
        [
            helper.make_node("Cast", ["i"], ["j"], to=F32), helper.make_node("Mul", ["v", "two"], ["w"]),
            helper.make_node("Add", ["w", "j"], ["next"]), helper.make_node("Identity", ["go"], ["still"]),
            helper.make_node("Identity", ["next"], ["seen"]),
        ],
        "body", [info("i", I64, []), info("go", BOOL, []), info("v")], [info("still", BOOL, []), info("next"), info("seen", F32, [2, 3])],
    )  # fmt: skip
    node = helper.make_node("Loop", ["m", "", "x"], ["last", "all"], name="again", body=body)
    given, weights = [info("x", F32, [2, 3])], {"two": np.float32(2)}
    if trips is None:
        return model([node], [*given, info("m", I64, [])], ["last", "all"], **weights)
    return model([node], given, ["last", "all"], m=np.int64(trips), **weights)


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_loops(trips: int) -> None:
    want = [X]
    for i in range(trips):
        want.append(want[-1] * 2 + np.float32(i))
    stacked = np.stack(want[1:]) if trips else np.zeros((0, 2, 3), np.float32)
    fixed = load(loop(trips))
    for found in (load(loop(None)).run({"x": X, "m": trips}), fixed.run({"x": X}), fixed.compile().run({"x": X})):
        assert np.array_equal(found["last"], want[-1])
        assert np.array_equal(found["all"], stacked) and found["all"].dtype == np.float32


def test_a_loop_that_a_value_ends() -> None:
    """v doubles until its sum is above 100."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["next"]), helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
            helper.make_node("Less", ["sum", "limit"], ["still"]),
        ],
        "body", [info("i", I64, []), info("go", BOOL, []), info("v")], [info("still", BOOL, []), info("next")],
    )  # fmt: skip
    node = helper.make_node("Loop", ["", "on", "x"], ["y"], name="until", body=body)
    m = model([node], [info("x", F32, [3])], ["y"], on=np.bool_(True), limit=np.float32(100))
    assert np.array_equal(load(m).run({"x": np.ones(3, np.float32)})["y"], np.full(3, 64, np.float32))
    with pytest.raises(bc.InvalidProblemError, match="'until'"):
        load(m).compile()


def test_scans_of_both_directions() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body", [info("s"), info("e")], [info("t"), info("o")],
    )  # fmt: skip
    for back in (0, 1):
        node = helper.make_node("Scan", ["z", "x"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_directions=[back],
                                scan_output_directions=[back])  # fmt: skip
        m = load(model([node], [info("x", F32, [2, 3])], ["last", "y"], z=np.zeros(3, np.float32)))
        turned = X[::-1] if back else X
        sums = np.cumsum(turned, 0, dtype=np.float32)
        for run in (m.run, m.compile().run):
            found = run({"x": X})
            assert np.array_equal(found["last"], sums[-1]) and np.array_equal(found["y"], sums[::-1] if back else sums)


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 16, 18, 21, 23])
def test_softmax_and_reductions_of_every_opset(opset: int) -> None:
    x = np.random.default_rng(opset).normal(size=(2, 3, 4)).astype(np.float32)
    axes = {"axes": [1]} if opset < 13 else {}
    reduce = helper.make_node("ReduceSum", ["s", "one"] if opset >= 13 else ["s"], ["y"], keepdims=0, **axes)
    m = model([helper.make_node("Softmax", ["x"], ["s"], axis=1), reduce], [info("x", F32, ["n", 3, 4])], ["s", "y"], opset,
              **({"one": np.array([1], np.int64)} if opset >= 13 else {}))  # fmt: skip
    rows = x.reshape(2, -1) if opset < 13 else x
    e = np.exp(rows - rows.max(1, keepdims=True))
    want = (e / e.sum(1, keepdims=True)).reshape(x.shape)
    loaded = load(m)
    for run in (loaded.run, loaded.compile(dims={"n": bc.Dim("n", max=6)}).run):
        found = run({"x": x})
        np.testing.assert_allclose(found["s"], want, rtol=1e-5)
        np.testing.assert_allclose(found["y"], want.sum(1), rtol=1e-5)


def test_a_quantized_layer_is_exact() -> None:
    """Codes in, codes out: the integers of the formula, one rounding."""
    rng = np.random.default_rng(3)
    x, w = rng.integers(0, 256, (4, 9)).astype(np.uint8), rng.integers(-128, 128, (9, 5)).astype(np.int8)
    scales = {"rx": np.float32(0.05), "rw": np.float32(0.01), "ry": np.float32(0.25)}
    zeros = {"zx": np.uint8(120), "zw": np.int8(3), "zy": np.uint8(100)}
    node = helper.make_node("QLinearMatMul", ["x", "rx", "zx", "w", "rw", "zw", "ry", "zy"], ["y"])
    m = load(model([node], [info("x", TensorProto.UINT8, [4, 9])], ["y"], w=w, **scales, **zeros))
    whole = (x.astype(int) - 120) @ (w.astype(int) - 3)
    rate = np.float32(np.float32(0.05) * np.float32(0.01)) / np.float32(0.25)
    want = np.clip(np.rint(whole.astype(np.float32) * rate) + 100, 0, 255).astype(np.uint8)
    for run in (m.run, m.compile(frozen=True).run):
        assert np.array_equal(run({"x": x})["y"], want)


def test_networks_of_halves_keep_their_element() -> None:
    w = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float16)
    m = load(model([helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])],
                   [info("x", TensorProto.FLOAT16, ["n", 3])], ["y"], w=w))  # fmt: skip
    x = X.astype(np.float16) / 4
    for run in (m.run, m.compile(dims={"n": bc.Dim("n", max=6)}, frozen=True).run):
        y = run({"x": x})["y"]
        assert y.dtype == np.float16
        np.testing.assert_allclose(y.astype("f8"), np.tanh(x.astype("f8") @ w.astype("f8")), atol=2e-3)


def test_results_are_of_the_inputs_library() -> None:
    torch = pytest.importorskip("torch")
    m = load(model([helper.make_node("Relu", ["x"], ["y"])], [info("x", F32, ["n", 3])], ["y"]))
    for run in (m.run, m.compile(dims={"n": 2}).run):
        assert isinstance(run({"x": torch.from_numpy(X)})["y"], torch.Tensor)
        assert isinstance(run({"x": bc.asarray(X)})["y"], bc.Tensor)
        assert isinstance(run({"x": X})["y"], np.ndarray)


def test_weights_of_the_file_are_not_copied() -> None:
    """A run of a product takes the memory of the model's bytes."""
    w = np.ones((3, 4), np.float32)
    m = load(model([helper.make_node("MatMul", ["x", "w"], ["y"])], [info("x", F32, [2, 3])], ["y"], w=w))
    known = m._block.known["w"]
    assert known.tensor.address == known.array.ctypes.data
    assert np.array_equal(m.run({"x": X})["y"], X @ w)
