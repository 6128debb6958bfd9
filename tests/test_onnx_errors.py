"""What is wrong with files, inputs and networks is said: which node or input, what came, what is wanted, what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the package onnx: pip install -e '.[test]'")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx_networks import network  # noqa: E402

import baracuda as bc  # noqa: E402
import baracuda.onnx  # noqa: E402
from baracuda import InvalidProblemError, UnsupportedError  # noqa: E402
from conftest import SEED  # noqa: E402

load = baracuda.onnx.load


def model(
    nodes: list[Any], shape: Any = ("n", 3), weights: dict[str, Any] | None = None, opset: int = 17, **domains: int
) -> Any:
    """A network from x to y."""
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    kept = [numpy_helper.from_array(np.asarray(v), name) for name, v in (weights or {}).items()]
    opsets = [
        helper.make_opsetid("", opset),
        *(helper.make_opsetid(d.replace("_", "."), v) for d, v in domains.items()),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", given, made, kept), opset_imports=opsets, ir_version=8)


def node(op: str, inputs: str, output: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), [output], name=f"the_{op}", **attributes)


X = np.ones((2, 3), np.float32)


def test_a_missing_operator_is_named_with_its_node_before_anything_runs() -> None:
    m = load(model([node("Relu", "x", "h"), node("Sparkle", "h", domain="com.example")], com_example=1))
    assert m.missing == {"com.example.Sparkle": ["the_Sparkle"]} and "1 operators missing" in repr(m)
    for run in (lambda: m.run({"x": X}), lambda: m.compile(dims={"n": 2})):
        with pytest.raises(
            UnsupportedError, match=r"(?s)com\.example\.Sparkle: node 'the_Sparkle'.*operators=\{name: function\}"
        ):
            run()


def test_a_function_of_the_users_takes_its_place() -> None:
    import baracuda.functional as F

    proto = model([node("Sparkle", "x", domain="com.example", rate=2.0)], com_example=1)
    m = load(proto, operators={"com.example.Sparkle": lambda x, rate: F.mul(x, rate)})
    assert not m.missing and np.array_equal(m.run({"x": X})["y"], 2 * X)
    assert np.array_equal(m.compile(dims={"n": 2}).run({"x": X})["y"], 2 * X)


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({}, "got no 'x', want x: f32 \\[[n2], 3\\]"),
        ({"z": X}, "got input 'z', want x"),
        ({"x": X, "X": X}, "Is 'x' meant\\?"),
        ({"x": X.astype("f8")}, "input 'x': got elements of f64, want f32"),
        ({"x": X.T}, "input 'x': got shape \\(3, 2\\), want \\[[n2], 3\\]"),
        ({"x": X[0]}, "input 'x': got shape \\(3,\\), want \\[[n2], 3\\]"),
        ({"x": "words"}, "input 'x': got 'words', want an array"),
        ({"x": [["a", "b", "c"]]}, "input 'x': got .* want an array of f32"),
        (X, "want a dict of the inputs x"),
    ],
)
def test_wrong_inputs_are_named(feeds: Any, words: str) -> None:
    m = load(model([node("Relu", "x")]))
    for run in (m.run, m.compile(dims={"n": 2}).run):
        with pytest.raises(InvalidProblemError, match=words):
            run(feeds)


def test_numbers_and_lists_are_taken() -> None:
    m = load(model([node("Relu", "x")]))
    assert np.array_equal(m.run({"x": [[1, -2, 3.5]]})["y"], np.array([[1, 0, 3.5]], np.float32))


def test_open_sizes_are_named() -> None:
    m = load(model([node("Relu", "x")]))
    with pytest.raises(InvalidProblemError, match=r"open sizes n, want numbers or bc.Dims: compile\(dims="):
        m.compile()
    with pytest.raises(InvalidProblemError, match=r"dims: got 'N', want some of n\. Is 'n' meant"):
        load(model([node("Relu", "x")]), dims={"N": 2})
    with pytest.raises(InvalidProblemError, match=r"dims\['n'\]: got -1, want a size"):
        m.compile(dims={"n": -1})
    with pytest.raises(InvalidProblemError, match="got shape"):
        m.compile(dims={"n": bc.Dim("n", max=6)}).run({"x": np.ones((7, 3), np.float32)})


def test_what_a_run_decides_is_named_with_the_inputs_it_comes_from() -> None:
    cast = node("Cast", "x", "shape", to=TensorProto.INT64)
    m = load(model([cast, node("ConstantOfShape", "shape")], shape=(2,)))
    assert m.run({"x": np.array([2, 3], np.float32)})["y"].shape == (2, 3)
    with pytest.raises(
        InvalidProblemError, match=r"(?s)'the_ConstantOfShape'.*input 'shape' depends on the data.*It comes from 'x'"
    ):
        m.compile()
    fixed = load(model([cast, node("ConstantOfShape", "shape")], shape=(2,)), constants={"x": [2, 3]})
    assert not fixed.inputs and fixed.compile().run({})["y"].shape == (2, 3)


def test_a_node_that_is_given_wrong_shapes_is_named() -> None:
    m = load(model([node("MatMul", "x w")], weights={"w": np.ones((4, 2), np.float32)}))
    with pytest.raises(InvalidProblemError, match=r"node 'the_MatMul' \(MatMul\) of f32 \(2, 3\), float32 \(4, 2\): "):
        m.run({"x": X})
    with pytest.raises(InvalidProblemError, match="node 'the_MatMul'"):
        m.compile(dims={"n": 2})


@pytest.mark.parametrize(
    "wrong",
    [
        node("Gemm", "x"), node("Relu", "x x x"), node("Conv", "x w"), node("Softmax", "x", axis=7), node("Softmax", "x", axis="a"),
        node("Transpose", "x", perm=[0, 0]), node("Concat", "x x"), node("Cast", "x", to=99), node("Reshape", "x s"),
        node("Slice", "x s"), node("Gather", "x w"),
    ],
    ids=lambda n: n.op_type,
)  # fmt: skip
def test_a_damaged_node_is_named(wrong: Any) -> None:
    m = load(model([wrong], weights={"w": np.ones((4, 2), np.float32), "s": np.array([-1, -1, 0, 7], np.int64)}))
    with pytest.raises((InvalidProblemError, UnsupportedError, IndexError), match=f"node 'the_{wrong.op_type}'"):
        m.run({"x": X})


def test_files_that_are_no_models(tmp_path: Path) -> None:
    good = model([node("Relu", "x")]).SerializeToString()
    (tmp_path / "cut.onnx").write_bytes(good[: len(good) // 2])
    for source, words in (
        (b"", "no nodes|without nodes"), (b"\xff" * 99, "no ONNX model"), (tmp_path / "cut.onnx", "no ONNX model|without nodes|no node"),
        (tmp_path / "none.onnx", "No such file"), (tmp_path, "the folder"), (3, "want a path"),
    ):  # fmt: skip
        with pytest.raises(InvalidProblemError, match=words):
            load(source)


def test_graphs_that_are_no_graphs() -> None:
    for nodes, words in (
        ([node("Relu", "z")], "node 'the_Relu' .*: got input 'z', which nothing before it makes"),
        ([node("Relu", "x", "h")], "got output 'y', which no node makes"),
        ([node("Relu", "x"), node("Neg", "x")], "got output 'y' a second time"),
    ):
        with pytest.raises(InvalidProblemError, match=words):
            load(model(nodes))
    with pytest.raises(InvalidProblemError, match="opset 99, want 6 to"):
        load(model([node("Relu", "x")], opset=99))
    with pytest.raises(InvalidProblemError, match="opset 3, want 6 to"):
        load(model([node("Relu", "x")], opset=3))


def test_tensors_whose_bytes_are_not_those_of_their_shape() -> None:
    for change in ({"raw_data": b"123"}, {"dims": [5]}, {"dims": [-3]}, {"data_type": 77}, {"dims": [2**40, 2**40]}):
        m = model([node("Add", "x w")], weights={"w": np.ones(3, np.float32)})
        tensor = m.graph.initializer[0]
        for name, value in change.items():
            if name == "dims":
                del tensor.dims[:]
                tensor.dims.extend(value)
            else:
                setattr(tensor, name, value)
        with pytest.raises(InvalidProblemError, match="tensor 'w': got"):
            load(m)


def with_external(folder: Path, **about: Any) -> Path:
    """A model whose weight lies in another file."""
    m = model([node("Add", "x w")], weights={"w": np.arange(3, dtype=np.float32)})
    tensor = m.graph.initializer[0]
    (folder / "w.bin").write_bytes(b"\0" * 64 + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in ({"location": "w.bin", "offset": 64, "length": 12} | about).items():
        tensor.external_data.add(key=key, value=str(value))
    path = folder / "m.onnx"
    path.write_bytes(m.SerializeToString())
    return path


def test_external_data_is_mapped(tmp_path: Path) -> None:
    m = load(with_external(tmp_path))
    assert np.array_equal(m.run({"x": X})["y"], X + np.arange(3, dtype=np.float32))
    weight = m._block.known["w"].array
    base = weight
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap) and not weight.flags.writeable


@pytest.mark.parametrize(
    "about",
    [
        {"location": "../w.bin"}, {"location": "/etc/passwd"}, {"location": ""}, {"location": "none.bin"}, {"offset": 65},
        {"length": 8}, {"length": 2**60}, {"offset": -4}, {"offset": "many"}, {"offset": 2**62},
    ],
    ids=str,
)  # fmt: skip
def test_external_data_elsewhere_or_cut_is_refused(tmp_path: Path, about: Any) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "w.bin").write_bytes(b"\0" * 99)
    path = with_external(tmp_path / "inner", **about)
    with pytest.raises(InvalidProblemError, match="tensor 'w': got"):
        load(path)
    with pytest.raises(InvalidProblemError, match="no folder"):
        load(path.read_bytes())


def test_functions_that_call_themselves_are_refused() -> None:
    m = model([node("F", "x", domain="own")], own=1)
    for name, inner in (("F", "G"), ("G", "F")):
        body = helper.make_node(inner, ["a"], ["b"], domain="own")
        m.functions.append(helper.make_function("own", name, ["a"], ["b"], [body], [helper.make_opsetid("own", 1)]))
    with pytest.raises(InvalidProblemError, match="calls itself"):
        load(m)


def test_functions_of_the_model_are_run() -> None:
    m = model([node("Twice", "x", domain="own")], own=1)
    body = helper.make_node("Add", ["a", "a"], ["b"])
    m.functions.append(helper.make_function("own", "Twice", ["a"], ["b"], [body], [helper.make_opsetid("", 17)]))
    assert np.array_equal(load(m).run({"x": X})["y"], 2 * X)


@pytest.mark.parametrize("turn", range(4))
def test_damaged_bytes_never_crash(turn: int) -> None:
    """Bytes of files changed, left out and doubled: each loads and runs, or is refused."""
    rng = np.random.default_rng([SEED, turn])
    good = network(("images", "tokens", "sequences", "images")[turn], SEED + turn, 17, batch=2).SerializeToString()
    refused = 0
    for _ in range(60):
        data = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            at, kind = int(rng.integers(len(data))), int(rng.integers(4))
            if kind == 0:
                data[at] = int(rng.integers(256))
            elif kind == 1:
                del data[at : at + int(rng.integers(1, 9))]
            elif kind == 2:
                data[at:at] = data[at : at + int(rng.integers(1, 9))]
            else:
                data[at] ^= 1 << int(rng.integers(8))
        try:
            m = load(bytes(data))
            shapes = [tuple(n if isinstance(n, int) else 2 for n in p.shape or ()) for p in m.inputs]
            if any(np.prod(s, dtype=float) > 1e6 for s in shapes):
                continue
            m.run({p.name: np.zeros(s, np.float32) for p, s in zip(m.inputs, shapes, strict=True)})
        except bc.BaracudaError as error:
            assert str(error)
            refused += 1
    assert refused > 5


def test_results_are_no_views_of_inputs_or_weights() -> None:
    w = np.ones((3,), np.float32)
    m = model([node("Identity", "x", "a"), node("Transpose", "a")], weights={"w": w})
    x = X.copy()
    for op in ("Identity", "Dropout", "Flatten", "Squeeze", "Sum", "Clip"):
        y = load(model([node(op, "x")])).run({"x": x})["y"]
        assert not np.shares_memory(x, y), op
        y += 1
    y = load(m).run({"x": x})["y"]
    assert not np.shares_memory(x, y) and y.flags.c_contiguous and np.array_equal(x, X)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n == "baracuda.onnx" or n.startswith("baracuda.onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'baracuda\[onnx\]'"):
        __import__("baracuda.onnx")
